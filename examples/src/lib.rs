//! What the programs share: how documents are read and methods chosen from the command line, and how
//! files appear.

#[cfg(feature = "common")]
pub mod method;
#[cfg(feature = "common")]
pub mod output;
#[cfg(feature = "common")]
pub mod parsers;
#[cfg(feature = "common")]
pub mod reading;
