//! Nodes over gRPC: the contract, and what is theirs alone.

mod certificates;
mod common;
mod contract;
mod health;
mod lines;
mod many;
mod raw;
mod strangers;
