//! Options of a run, beside its checkpoints, so that a change of them does not go unnoticed.
//!
//! ```text
//! options                as text:
//!                          lda-dist options 1
//!                          partitions 16
//!                          sampler f-plus
//!                          ...                 (a line for each option that changes results)
//! ```
//!
//! A run can continue from a checkpoint with other options. Then it may end with the result of neither, which
//! the master [reports](crate::cluster::CheckpointError::OtherOptions).

use crate::config::{Hybrid, Options};

/// Name of the object.
pub(crate) const OPTIONS: &str = "options";
const TITLE: &str = "lda-dist options 1";

/// Encodes the options that change results, but the number of shards, which is part of the run's identity.
pub(crate) fn encode(options: &Options) -> String {
    let Options {
        shards: _,
        partitions,
        ranges,
        rounds,
        sync,
        servers,
        partitioner,
        routing,
        max_pushed_len,
        sampler,
        hybrid,
        passes,
    } = options;
    let staleness = sync.staleness();
    let reads = if sync.reads_newest() { "newest" } else { "of-start" };
    let kind = sampler.kind().map_or("auto", |kind| kind.name());
    let or_none = |number: Option<u32>| number.map_or("none".to_owned(), |it| it.to_string());
    let Hybrid { short_length, mh_steps } = *hybrid;
    let long = Some(short_length).filter(|&tokens| tokens < u32::MAX);
    let (steps, long_steps) = (or_none(sampler.steps()), or_none(long.map(|_| mh_steps.into())));
    let exclude_from = or_none(sampler.exclude_from());
    let long = or_none(long);
    format!(
        "{TITLE}\npartitions {partitions}\nranges {ranges}\nrounds {rounds}\nstaleness {staleness}\n\
         reads {reads}\nservers {servers}\npartitioner {partitioner:?}\nrouting {routing:?}\n\
         max-pushed-len {max_pushed_len}\nsampler {kind}\nmh-steps {steps}\n\
         exclude-converged-from {exclude_from}\nshort-length {long}\n\
         mh-steps-of-long-documents {long_steps}\npasses {passes}\n"
    )
}

/// Describes how options differ from those that were saved before; `None` if they do not, or if those before
/// are unknown.
pub(crate) fn changes(before: &[u8], now: &str) -> Option<String> {
    let before = std::str::from_utf8(before).ok()?.strip_prefix(TITLE)?;
    let values = |text: &str| -> Vec<(String, String)> {
        let lines = text.lines().filter_map(|line| line.split_once(' '));
        lines.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
    };
    let before = values(before);
    let changed = values(now.strip_prefix(TITLE)?).into_iter().filter_map(|(name, value)| {
        let (_, old) = before.iter().find(|(other, _)| *other == name)?;
        (*old != value).then(|| format!("{name} {value} instead of {old}"))
    });
    let changed: Vec<String> = changed.collect();
    (!changed.is_empty()).then(|| changed.join(", "))
}

#[cfg(test)]
mod tests {
    use lda_core::train::{SamplerKind, SamplerOptions};

    use super::*;
    use crate::config::Routing;
    use crate::sync::SyncMode;

    #[test]
    fn changed_options_are_named() {
        let options = Options { partitions: 9, ..Options::default() };
        let before = encode(&options);
        let changes = |now: Options| changes(before.as_bytes(), &encode(&now));
        assert_eq!(changes(options), None);
        assert_eq!(changes(Options { shards: 3, ..options }), None);
        let light = Options { sampler: SamplerKind::Light.into(), ..options };
        assert_eq!(
            changes(Options { rounds: 5, ..light }).unwrap(),
            "rounds 5 instead of 1, sampler light instead of f-plus, mh-steps 1 instead of none"
        );
        let hybrid = Hybrid { short_length: 30, mh_steps: 2 };
        for other in [
            Options { partitions: 8, ..options },
            Options { ranges: 30, ..options },
            Options { sync: SyncMode::rounds(2), ..options },
            Options { servers: 2, ..options },
            Options { routing: Routing::Push, ..options },
            Options { max_pushed_len: 2, ..options },
            Options { passes: 2, ..options },
            Options { sampler: SamplerOptions::FPlus { exclude_from: Some(9) }, ..options },
            Options { hybrid, ..options },
            Options { hybrid: Hybrid { mh_steps: 1, ..hybrid }, ..options },
        ] {
            assert!(changes(other).is_some(), "{other:?}");
        }
    }

    #[test]
    fn unknown_options_are_no_change() {
        let now = encode(&Options::default());
        assert_eq!(changes(b"partitions 3", &now), None);
        assert_eq!(changes(&[255], &now), None);
        assert_eq!(changes(b"lda-dist options 1\nother 3\npasses", &now), None);
    }
}
