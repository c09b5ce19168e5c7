//! Tests of the gRPC transport: the contract of [`Transport`](lda_transport::Transport), and the
//! rest.

mod certificates;
mod common;
mod contract;
mod health;
mod lost_connections;
mod raw;
mod scale;
mod untrusted_peers;
