//! Subcommands that are not compiled in.

use std::ffi::OsString;
use std::process::ExitCode;

use lda_examples::program;

/// Exit status of a wrong usage.
const USAGE: u8 = 2;

/// Any arguments: a subcommand that is not compiled in has no options to check them against.
#[derive(Debug, clap::Args)]
#[command(disable_help_flag = true, disable_version_flag = true)]
pub struct Args {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
    _arguments: Vec<OsString>,
}

/// Reports that `subcommand` needs the feature of its name; exit status 2.
pub fn execute(subcommand: &str) -> ExitCode {
    let reason = format!(
        "this build of lda has no `{subcommand}`; build it with \
         `cargo install --path examples --features {subcommand}`"
    );
    program::end(Err(reason), |_| USAGE)
}
