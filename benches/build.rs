//! Passes the compiler's version and flags to the lab, which records them with every figure.

// cargo reads standard output.
#![allow(clippy::print_stdout)]

use std::env;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let variable = |name: &str| env::var(name).unwrap_or_default();
    let version = Command::new(variable("RUSTC")).arg("--version").output();
    let version = version.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    println!("cargo::rustc-env=LAB_COMPILER={}", version.unwrap_or_else(|_| "unknown".into()));
    let flags = variable("CARGO_ENCODED_RUSTFLAGS").replace('\x1f', " ");
    let build = format!("{}, {} {flags}", variable("TARGET"), variable("PROFILE"));
    println!("cargo::rustc-env=LAB_BUILD={}", build.trim());
}
