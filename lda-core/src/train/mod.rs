//! Training.

mod driver;
mod state;
