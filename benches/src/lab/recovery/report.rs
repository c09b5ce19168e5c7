//! Writes `recovery.csv` and `summary.md`.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use super::super::files::write_report;
use super::super::{LabError, Machine, median};
use super::{Kill, RecoveryPlan};

pub(super) fn write(
    plan: &RecoveryPlan,
    epoch: f64,
    kills: &[Kill],
    directory: &Path,
) -> Result<Vec<PathBuf>, LabError> {
    let files = vec![
        ("recovery.csv".to_owned(), csv(kills).into_bytes()),
        ("summary.md".to_owned(), markdown(plan, epoch, kills).into_bytes()),
    ];
    write_report(directory, files, Vec::new())
}

fn csv(kills: &[Kill]) -> String {
    let mut out = "role,seconds,repeated\n".to_owned();
    for Kill { role, seconds, repeated } in kills {
        // Writing to a string cannot fail.
        let _ = writeln!(out, "{role},{seconds:.4},{repeated}");
    }
    out
}

fn markdown(plan: &RecoveryPlan, epoch: f64, kills: &[Kill]) -> String {
    let RecoveryPlan { name, topics, workers, servers, shards, checkpoint_every, .. } = plan;
    let corpus = plan.corpus.as_ref().map_or(String::new(), ToString::to_string);
    let mut out = format!(
        "# {name}\n\n{corpus}, K = {topics}, a master, {servers} servers and {workers} workers on one machine, {shards} \
         shards of the documents, a checkpoint every {checkpoint_every} epochs, {epoch:.3} s per epoch. A process was killed \
         at random moments, and started again at once. \"Seconds\" are from the kill to the end of the first epoch after \
         it, less the median epoch: what a failure costs beside the epochs that are sampled again. All runs ended \
         with the model of one that nothing has disturbed.\n\n\
         | killed | times | seconds, median | worst | epochs sampled again, median |\n|---|--:|--:|--:|--:|\n"
    );
    let mut roles: Vec<&str> = kills.iter().map(|kill| kill.role).collect();
    roles.dedup();
    for role in roles {
        let of_role = || kills.iter().filter(|kill| kill.role == role);
        let middle = |of: fn(&Kill) -> f64| median(of_role().map(of)).unwrap_or(0.0);
        let worst = of_role().map(|kill| kill.seconds).fold(0.0, f64::max);
        let _ = writeln!(
            out,
            "| {role} | {} | {:.2} | {worst:.2} | {} |",
            of_role().count(),
            middle(|kill| kill.seconds),
            middle(|kill| f64::from(kill.repeated)),
        );
    }
    let machine = Machine::detect();
    let _ = writeln!(out, "\nMade on {}; commit {}.", machine.describe(), machine.commit);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_have_a_row_for_each_role() {
        let kill = |role, seconds, repeated| Kill { role, seconds, repeated };
        let kills = [kill("server", 0.5, 0), kill("server", 1.5, 0), kill("worker", 2.0, 3)];
        let text = markdown(&RecoveryPlan::default(), 0.25, &kills);
        assert!(text.contains("| server | 2 | 1.00 | 1.50 | 0 |"), "{text}");
        assert!(text.contains("| worker | 1 | 2.00 | 2.00 | 3 |"), "{text}");
        assert_eq!(csv(&kills).lines().nth(3), Some("worker,2.0000,3"));
    }
}
