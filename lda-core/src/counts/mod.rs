//! Counts: how often each topic occurs in each document (C_d), for each word (C_w) and in all (C_k).
//!
//! Counts are a cache of the assignments z: at any time they equal a recount from z.

mod form;
mod row;
mod rows;
mod topic;

pub use form::{Density, Form};
pub use row::{RowMut, SparseMut, dense16, dense16_add};
pub use rows::{Rows, RowsTooLarge};
pub use topic::TopicIndex;
