//! The program `lda` itself: its version, its help, and subcommands that are not compiled in.

use std::process::{Command, Output};

fn lda(line: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_lda")).args(line.split_whitespace()).output().unwrap()
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

#[test]
fn the_version_names_features_and_instruction_set() {
    let version = stdout(&lda("--version"));
    let lines: Vec<&str> = version.lines().collect();
    assert_eq!(lines.len(), 3, "{version}");
    assert_eq!(lines[0], format!("lda {}", env!("CARGO_PKG_VERSION")));
    let features: Vec<&str> = lines[1].strip_prefix("features: ").unwrap().split(' ').collect();
    assert_eq!(features.contains(&"train"), cfg!(feature = "train"), "{version}");
    assert_eq!(features.contains(&"report"), cfg!(feature = "report"), "{version}");
    let isa = lines[2].strip_prefix("instruction set: ").unwrap();
    assert!(["scalar", "avx2", "avx512"].contains(&isa), "{version}");
    assert_eq!(stdout(&lda("-V")), format!("lda {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn help_lists_every_subcommand() {
    let help = stdout(&lda("--help"));
    for name in ["train", "infer", "convert", "report", "serve", "cluster"] {
        assert!(help.lines().any(|line| line.trim_start().starts_with(name)), "{name}: {help}");
    }
    assert_eq!(lda("").status.code(), Some(2));
    assert_eq!(lda("guess").status.code(), Some(2));
}

/// A subcommand that is not compiled in fails with any arguments.
#[cfg(not(feature = "report"))]
#[test]
fn a_subcommand_that_is_not_compiled_in_names_its_feature() {
    for line in ["report", "report --help", "report m.lda docs.txt --out page.html"] {
        let output = lda(line);
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{line}: {error}");
        assert!(error.contains("--features report"), "{line}: {error}");
    }
}
