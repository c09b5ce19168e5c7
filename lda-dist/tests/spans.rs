//! The spans of rounds, pulls and pushes, as a subscriber of `tracing` receives them.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use lda_core::Corpus;
use lda_dist::Distributed;
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

/// Counts spans of `lda_dist` by level, name and names of fields, and those that have ended.
#[derive(Clone, Default)]
struct Counts {
    opened: Arc<Mutex<BTreeMap<String, u64>>>,
    closed: Arc<AtomicU64>,
}

impl Subscriber for Counts {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "lda_dist"
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let metadata = span.metadata();
        let fields: Vec<&str> = metadata.fields().iter().map(|field| field.name()).collect();
        let name = format!("{} {} {}", metadata.level(), metadata.name(), fields.join(" "));
        *self.opened.lock().unwrap().entry(name).or_default() += 1;
        Id::from_u64(1)
    }

    fn try_close(&self, _: Id) -> bool {
        self.closed.fetch_add(1, Ordering::Relaxed);
        true
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn event(&self, _: &Event<'_>) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

#[test]
fn rounds_pulls_and_pushes_have_spans_that_end() {
    let counts = Counts::default();
    // Nodes run on threads of their own.
    tracing::subscriber::set_global_default(counts.clone()).unwrap();
    let corpus = Corpus::from_words((0..40).map(|document| {
        let themes = [["tree", "leaf", "wood"], ["sea", "wave", "foam"]];
        (0..20).map(move |token| themes[document % 2][token % 3])
    }))
    .unwrap();
    let run =
        Distributed::topics(2).workers(2).servers(2).epochs(3).shards(2).partitions(2).rounds(2);
    run.train(&corpus, ()).unwrap();

    let opened = counts.opened.lock().unwrap();
    let of = |level: Level, name: &str| {
        let fields = if name == "round" { "epoch round" } else { "epoch round shard partition" };
        opened.get(&format!("{level} {name} {fields}")).copied().unwrap_or(0)
    };
    assert_eq!(of(Level::INFO, "round"), 12, "3 epochs of 2 rounds on 2 workers");
    // A shard visits each of the 2 partitions once per epoch, and the rows do not stay at its worker.
    let (pulls, pushes) = (of(Level::DEBUG, "pull"), of(Level::DEBUG, "push"));
    assert!(pulls <= 12 && pushes <= 12, "{pulls} pulls, {pushes} pushes");
    assert!(pulls + pushes >= 12, "{pulls} pulls, {pushes} pushes");
    assert_eq!(opened.values().sum::<u64>(), 12 + pulls + pushes, "no others: {opened:?}");
    assert_eq!(counts.closed.load(Ordering::Relaxed), 12 + pulls + pushes, "all have ended");
}
