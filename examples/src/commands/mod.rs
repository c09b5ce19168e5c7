//! The subcommands of `lda`, one module each.

#[cfg(feature = "cluster")]
pub mod cluster;
#[cfg(feature = "convert")]
pub mod convert;
#[cfg(feature = "train")]
pub mod cut;
#[cfg(feature = "infer")]
pub mod infer;
#[cfg(feature = "report")]
pub mod report;
#[cfg(feature = "serve")]
pub mod serve;
#[cfg(feature = "sweep")]
pub mod sweep;
#[cfg(feature = "train")]
pub mod train;
