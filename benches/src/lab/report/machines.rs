//! The machines on which the runs of a report were made.
//!
//! A plan that takes hours may continue on another machine, and seconds of different machines are
//! not comparable. If there was more than one, each table lists its machines, seed by seed if
//! necessary.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use super::super::{Machine, Record, Results};

/// Machines of a report in the order of the runs, with the commits that ran on each.
pub(super) struct Machines<'a> {
    kinds: Vec<(&'a Machine, Vec<&'a str>)>,
}

impl<'a> Machines<'a> {
    pub fn of(results: &'a Results) -> Self {
        let mut kinds: Vec<(&Machine, Vec<&str>)> = Vec::new();
        for Record { machine, .. } in &results.records {
            let commit = machine.commit.as_str();
            match kinds.iter_mut().find(|(kind, _)| kind.is_like(machine)) {
                None => kinds.push((machine, vec![commit])),
                Some((_, commits)) if !commits.contains(&commit) => commits.push(commit),
                Some(_) => {}
            }
        }
        Self { kinds }
    }

    /// Machines of a table's runs; empty if the whole report has only one machine.
    pub fn of_table(&self, results: &Results, corpus: &str, topics: u32) -> String {
        if self.kinds.len() < 2 {
            return String::new();
        }
        let mut seeds: BTreeMap<usize, BTreeSet<u64>> = BTreeMap::new();
        for record in &results.records {
            let Record { cell, machine, .. } = record;
            if cell.corpus.as_str() == corpus && cell.topics == topics {
                let kind = self.kinds.iter().position(|(kind, _)| kind.is_like(machine));
                seeds.entry(kind.unwrap_or_default() + 1).or_default().insert(cell.seed);
            }
        }
        let seeds: Vec<(usize, BTreeSet<u64>)> = seeds.into_iter().collect();
        if let [(kind, _)] = &seeds[..] {
            return format!("\nOn machine {kind}.\n");
        }
        let of_kind = |(kind, seeds): &(usize, BTreeSet<u64>)| {
            let seeds: Vec<String> = seeds.iter().map(u64::to_string).collect();
            let s = if seeds.len() == 1 { "" } else { "s" };
            format!("on machine {kind} seed{s} {}", seeds.join(", "))
        };
        let parts: Vec<String> = seeds.iter().map(of_kind).collect();
        let text = parts.join("; ");
        format!("\nO{}.\n", &text[1..])
    }

    /// Descriptions of all machines.
    pub fn describe(&self) -> String {
        let mut out = String::new();
        for (number, (machine, commits)) in (1..).zip(&self.kinds) {
            let number = if self.kinds.len() > 1 { format!(" {number}") } else { String::new() };
            let s = if commits.len() == 1 { "" } else { "s" };
            let (hardware, commits) = (machine.describe(), commits.join(", "));
            // Writing to a string cannot fail.
            let _ = writeln!(out, "\nMachine{number}: {hardware}; commit{s} {commits}.");
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{kos_record, results};
    use super::*;

    #[test]
    fn tables_name_their_machines_if_there_are_several() {
        let mut records = [1, 2, 3].map(|seed| kos_record(seed, 1.0, -9.0));
        for record in &mut records {
            record.machine.commit = "abc".to_owned();
        }
        let one = results(records.clone());
        assert_eq!(Machines::of(&one).of_table(&one, "kos", 1000), "");
        assert!(Machines::of(&one).describe().ends_with("; commit abc.\n"));
        assert!(Machines::of(&one).describe().starts_with("\nMachine: "));

        records[1].machine.cpu = "another".to_owned();
        records[2].machine.commit = "def".to_owned();
        let two = results(records.clone());
        let machines = Machines::of(&two);
        let said = "\nOn machine 1 seeds 1, 3; on machine 2 seed 2.\n";
        assert_eq!(machines.of_table(&two, "kos", 1000), said);
        let text = machines.describe();
        assert!(text.contains("; commits abc, def.\n\nMachine 2: another, "), "{text}");

        records[1].cell.topics = 10;
        let apart = results(records);
        let machines = Machines::of(&apart);
        assert_eq!(machines.of_table(&apart, "kos", 10), "\nOn machine 2.\n");
        assert_eq!(machines.of_table(&apart, "kos", 1000), "\nOn machine 1.\n");
    }
}
