//! Gibbs samplers that split the conditional (1) into two parts, by word or by document.
//!
//! One axis is *visited*: words, or documents. While a row of it is visited, its counts lie in a
//! dense array and
//!
//! ```text
//! b_k = (visited count + its prior) / (C_k + Vβ)
//! ```
//!
//! is kept for every topic, the token itself left out. The other axis, the *partner*, changes with
//! every token, and only its non-zeros are read:
//!
//! ```text
//! p(k) ∝ partner count · b_k + partner's prior · b_k
//! ```
//!
//! | visited | b_k | first part | second part |
//! |---|---|---|---|
//! | words | (C_wk + β) / (C_k + Vβ) | C_dk · b_k | α_k · b_k |
//! | documents | (C_dk + α_k) / (C_k + Vβ) | C_wk · b_k | β · b_k |
//!
//! The first part is scanned, sixteen non-zeros at a time. The second part does not depend on the
//! partner. F+LDA sums and draws it with a tree, SparseLDA with two buckets: [`SmoothingBucket`].
//! The [`sweep`] over a block is written once for both and both axes.

mod axis;
mod other_axis;
mod sweep;
mod visited_row;

pub(super) use axis::{Axis, ByDocument, ByWord, Priors};
pub(super) use other_axis::{Place, count, places, shift, shift_at};
pub(super) use sweep::{Part, SmoothingBucket, SweepScratch, sweep_block};
pub(super) use visited_row::{TopicEntry, VisitedRow};

/// Implements `Sampler` by the [`sweep`] with one kind of [`SmoothingBucket`]: over one axis, or
/// over both in two passes, where `$placement` assigns tokens to passes.
macro_rules! sweep_sampler {
    ($sampler:ty, $scratch:ident, $rest:ty, $axis:ident: $name:literal) => {
        sweep_sampler!(
            $sampler, $scratch, $rest,
            $crate::layout::TokenOrder::All($axis::ORDER), [$axis: $name]
        );
    };
    ($sampler:ty, $scratch:ident, $rest:ty, $placement:expr, [$($axis:ident: $name:literal),+]) => {
        impl<T: TopicIndex> Sampler<T> for $sampler {
            type Scratch = $scratch<T>;

            fn requires(&self) -> Requires {
                Requires {
                    token_order: $placement,
                    ..Requires::default()
                }
            }

            fn passes(&self) -> &'static [Pass] {
                &[$(Pass { name: $name, shape: Shape::Grid($axis::ORDER) }),+]
            }

            fn scratch(&self, topics: usize) -> $scratch<T> {
                $scratch(SweepScratch::new(topics))
            }

            fn sample(
                &self,
                pass: usize,
                cx: &Context<'_>,
                scratch: &mut $scratch<T>,
                block: Block<'_, T>,
            ) -> Outcome {
                let sweeps = [$(sweep_block::<T, $axis, $rest>),+];
                sweeps[pass](pass, cx, &mut scratch.0, block.into_grid())
            }
        }
    };
}
pub(super) use sweep_sampler;
