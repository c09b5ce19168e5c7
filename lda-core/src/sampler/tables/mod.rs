//! Stale alias tables: the proposals of AliasLDA, LightLDA and ZenLDA.
//!
//! A proposal for word w is drawn from
//!
//! ```text
//! q̃_w(k) = f_k · C̃_wk / (C̃_k + Vβ)  +  f_k · β / (C̃_k + Vβ)
//! ```
//!
//! where f_k is 1 or α_k, and a tilde marks counts as of the time when the table was built. The
//! first term is non-zero for the topics of the word only, and is stored per word ([`WordTables`]);
//! the second is the same for all words, and is built once per wave ([`SharedTable`]). Each is a
//! Walker table: a draw costs one random number and one or two cache lines, whatever K is.
//!
//! **The token itself.** A table built in this epoch counts the token for which it proposes, under
//! the topic that the token still has. This makes proposals depend on the token's own topic and
//! biases the chain, by .06 to .13 in total variation on three tiny corpora. So the token is taken
//! out ([`Stale`]) of the draws and of the masses in the acceptance ratio. The remaining bias of
//! .02 to .04 comes from tables that still contain the old topics of other tokens.
//!
//! Memory: 16 bytes and a topic id for each topic that a word can have, min(K, L_w); 8 bytes per
//! topic and thread for the shared table.

/// Tokens that may draw from a table, per topic of the table: building it then costs each of them
/// one topic.
pub(super) const USES: u32 = 1;
/// Distance in words at which rows and tables are prefetched.
pub(super) const AHEAD: usize = 6;

mod columns;
mod shared;
mod stale;
mod words;

pub(in crate::sampler) use shared::SharedTable;
pub(in crate::sampler) use stale::{Proposal, Stale};
pub use words::WordTables;
pub(in crate::sampler) use words::{Mass, WordTable};
