//! The spans of training, as a subscriber of `tracing` receives them.

use std::fmt::Debug;
use std::sync::{Arc, Mutex};

use lda_core::{Corpus, SamplerKind, TrainOptions, Trainer};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

/// Lists every span as "level name field=value ...", indented by its depth.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Spans>>);

#[derive(Default)]
struct Spans {
    lines: Vec<String>,
    depth: usize,
}

struct Fields(String);

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0 += &format!(" {}={value:?}", field.name());
    }
}

impl Subscriber for Log {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "lda_core"
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let mut fields = Fields(String::new());
        span.record(&mut fields);
        let mut spans = self.0.lock().unwrap();
        let metadata = span.metadata();
        let indent = "  ".repeat(spans.depth);
        spans.lines.push(format!("{indent}{} {}{}", metadata.level(), metadata.name(), fields.0));
        Id::from_u64(spans.lines.len() as u64)
    }

    fn enter(&self, _: &Id) {
        self.0.lock().unwrap().depth += 1;
    }

    fn exit(&self, _: &Id) {
        self.0.lock().unwrap().depth -= 1;
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, _: &Event<'_>) {}
}

#[test]
fn epochs_and_passes_have_spans() {
    let corpus = Corpus::from_tokens([[0, 1, 2], [0, 0, 1]]).unwrap();
    let options = TrainOptions::new(2).sampler(SamplerKind::FPlus).warm_up(1);
    let mut trainer = Trainer::new(&corpus, &options).unwrap();
    let log = Log::default();
    tracing::subscriber::with_default(log.clone(), || {
        trainer.epoch();
        trainer.epoch();
    });
    let spans = log.0.lock().unwrap();
    assert_eq!(spans.depth, 0, "every span has ended");
    assert_eq!(
        spans.lines,
        [
            "INFO epoch epoch=1 sampler=\"warp\"",
            "  DEBUG pass name=\"warp words\" set=0 round=0",
            "  DEBUG pass name=\"warp documents\" set=0 round=0",
            "INFO epoch epoch=2 sampler=\"f-plus\"",
            "  DEBUG pass name=\"f-plus\" set=0 round=0",
        ]
    );
}
