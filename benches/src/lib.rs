//! Benchmarks of the topic model library.
