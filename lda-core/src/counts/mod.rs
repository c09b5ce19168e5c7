//! Counts: how often each topic occurs in each document (C_d), for each word (C_w) and in all (C_k).
//!
//! Counts are a cache of the assignments z: at any time they equal a recount from z.

mod rows;
mod topic;

pub use rows::{Density, Form, RowMut, Rows, RowsTooLarge, SparseMut, dense16, dense16_add};
pub use topic::TopicIndex;
