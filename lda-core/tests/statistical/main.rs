//! Do the samplers draw from the laws they claim, in any host, on any machine, with counts that are
//! always right?
//!
//! | module | question |
//! |---|---|
//! | [`enumeration`] | are the exact laws of tiny corpora themselves right? |
//! | [`invariance`] | is one epoch of a sampler a step of its enumerated chain? |
//! | [`kernel`], [`kernel_warp`] | do draws follow their formulas at real sizes, on every path? |
//! | [`drivers`] | do three hosts that share nothing get the same bits for the same block? |
//! | [`counts`] | do counts always equal a recount? |
//! | [`reproducible`] | same options, same bits, whatever the machine is busy with? |
//! | [`conformance`] | does the suite for other samplers accept these, and find mistakes? |
//! | [`options`] | do options beside the samplers do what they say, and are the others refused? |
//! | [`curves`] | does training arrive where it should? |
//!
//! `.ci/mutants` shows that these tests can fail: it breaks the samplers in a list of ways and asks
//! that each is noticed.
//!
//! One binary, since most of its cost is compiling every sampler for every topic width and
//! instruction set, and two binaries would do that twice.

#[path = "../common/mod.rs"]
mod common;
mod conformance;
mod corpora;
mod counts;
mod curves;
mod driver;
mod drivers;
mod enumerate;
mod enumerate_mh;
mod enumeration;
mod invariance;
mod kernel;
mod kernel_warp;
mod options;
mod paranoid;
mod reproducible;
