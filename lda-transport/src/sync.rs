//! Synchronisation primitives: those of `loom` under `--cfg loom`, which checks all interleavings
//! of threads, and those of the standard library otherwise.

#[cfg(loom)]
pub(crate) use loom::sync::atomic::{AtomicBool, AtomicUsize};
#[cfg(not(loom))]
pub(crate) use std::sync::atomic::{AtomicBool, AtomicUsize};
