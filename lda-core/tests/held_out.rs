//! Runs that documents which they do not see judge, and end.

use std::io::Cursor;

use lda_benches::synthetic::{Lengths, Spec};
use lda_core::Corpus;
use lda_core::eval::{CompletionError, CompletionOptions};
use lda_core::train::{EpochReport, Flow, HeldOut, SamplerKind, Snapshot, TrainOptions, Trainer};

/// Documents to train on, and others.
fn corpora() -> (Corpus, Corpus) {
    let lengths = vec![Lengths { weight: 1.0, mean: 60.0, sigma: 0.4 }];
    let spec =
        Spec { num_documents: 240, num_words: 200, num_topics: 6, lengths, ..Spec::default() };
    let all = spec.generate(9).expect("the parameters are legal").corpus;
    (all.select(0..200), all.select(200..240))
}

fn options(sampler: SamplerKind) -> TrainOptions {
    TrainOptions::new(6).alpha(0.2).sampler(sampler).evaluate_every(2).seed(1)
}

fn judge(test: &Corpus) -> HeldOut {
    let completion = CompletionOptions { samples: 10, ..CompletionOptions::default() };
    HeldOut::new(test.clone()).completion(completion).patience(3)
}

fn run(trainer: &mut Trainer<&Corpus>) -> Vec<EpochReport> {
    let mut reports = Vec::new();
    trainer.run(
        |report: &EpochReport| {
            reports.push(report.clone());
            Flow::Continue
        },
        || false,
    );
    reports
}

#[test]
fn early_stopping_ends_when_held_out_perplexity_stalls() {
    let (train, test) = corpora();
    for sampler in [SamplerKind::FPlus, SamplerKind::Warp, SamplerKind::Light] {
        let options = options(sampler);
        let mut trainer = Trainer::new(&train, &options).unwrap();
        trainer.early_stopping(judge(&test)).unwrap();
        let reports = run(&mut trainer);
        let judged = reports.iter().filter_map(|r| Some((r.epoch, r.perplexity?)));
        let judged: Vec<(u32, f64)> = judged.collect();
        assert!(judged.iter().all(|(epoch, _)| epoch % 2 == 0));
        let (end, _) = judged[judged.len() - 1];
        assert_eq!(end, reports.len() as u32);
        // It has learnt something first, and the last three were no better than the best.
        let (before, last) = judged.split_at(judged.len() - 3);
        let least = |part: &[(u32, f64)]| part.iter().map(|p| p.1).fold(f64::INFINITY, f64::min);
        assert!(least(before) < 0.95 * judged[0].1, "{sampler}: {judged:?}");
        assert!(least(last) >= least(before) * 0.998, "{sampler}: {judged:?}");

        // Nothing else is changed by it.
        let alone = options.clone().epochs(end);
        let mut plain = Trainer::new(&train, &alone).unwrap();
        assert!(run(&mut plain).iter().all(|report| report.perplexity.is_none()));
        assert_eq!(plain.assignments(), trainer.assignments());
    }
}

#[test]
fn a_run_that_is_taken_up_ends_where_it_would_have() {
    let (train, test) = corpora();
    let options = options(SamplerKind::FPlus);
    let mut whole = Trainer::new(&train, &options).unwrap();
    whole.early_stopping(judge(&test)).unwrap();
    let end = run(&mut whole).len() as u32;
    let mut half = Trainer::new(&train, &options.clone().epochs(4)).unwrap();
    half.early_stopping(judge(&test)).unwrap();
    run(&mut half);
    let mut bytes = Cursor::new(Vec::new());
    half.snapshot().write_to(&mut bytes).unwrap();
    bytes.set_position(0);
    let snapshot = Snapshot::read_from(bytes).unwrap();
    assert_eq!(snapshot, half.snapshot());
    let mut again = Trainer::resume(&train, &snapshot, &options).unwrap();
    again.early_stopping(judge(&test)).unwrap();
    run(&mut again);
    assert_eq!((again.epochs(), again.assignments()), (end, whole.assignments()));
}

#[test]
fn documents_that_tell_nothing_are_refused() {
    let (train, _) = corpora();
    let mut trainer = Trainer::new(&train, &options(SamplerKind::FPlus)).unwrap();
    let single = Corpus::from_tokens([[0], [1]]).unwrap();
    let refused = trainer.early_stopping(HeldOut::new(single)).unwrap_err();
    assert!(matches!(refused, CompletionError::NothingToPredict { .. }));
    let pair = || HeldOut::new(Corpus::from_tokens([[0, 1]]).unwrap());
    let none = CompletionOptions { samples: 0, ..CompletionOptions::default() };
    assert_eq!(trainer.early_stopping(pair().completion(none)), Err(CompletionError::NoSamples));
    trainer.early_stopping(pair()).unwrap();
}
