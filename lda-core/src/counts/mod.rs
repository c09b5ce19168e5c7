//! Counts of topic assignments: per document (C_d), per word (C_w) and in total (C_k).
//!
//! Counts are a cache of the topic assignments z: at any time they equal a recount from z.
//! [`Rows`] stores them compactly; [`DocumentCounts`] and [`WordCounts`] read them row by row.

mod form;
mod row;
mod rows;
mod topic;
mod view;

pub use form::{Density, Form};
pub use row::{RowMut, SparseMut, dense16, dense16_add};
pub use rows::{Rows, RowsTooLarge};
pub use topic::TopicIndex;
pub use view::{DocumentCounts, VisitRow, WordCounts};
