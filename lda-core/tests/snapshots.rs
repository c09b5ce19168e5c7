//! Runs that are interrupted and taken up again.

use std::io::Cursor;
use std::path::{Path, PathBuf};
use std::time::Duration;

use lda_benches::synthetic::{Lengths, Spec};
use lda_core::Corpus;
use lda_core::container::FileError;
use lda_core::train::{
    Checkpoints, EpochReport, Flow, Learn, LearnAlpha, LevelOff, Observer, ResumeError,
    SamplerKind, SamplerOptions, Snapshot, TrainOptions, Trainer,
};

/// Documents of 20 to 200 tokens.
fn corpus() -> Corpus {
    let lengths = vec![Lengths { weight: 1.0, mean: 60.0, sigma: 0.6 }];
    let spec =
        Spec { num_documents: 60, num_words: 300, num_topics: 8, lengths, ..Spec::default() };
    spec.generate(3).expect("the parameters are legal").corpus
}

struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("lda-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        Self(path)
    }

    fn files(&self) -> Vec<String> {
        let name = |entry: std::fs::DirEntry| entry.file_name().into_string().unwrap();
        let mut names: Vec<_> = std::fs::read_dir(&self.0).unwrap().flatten().map(name).collect();
        names.sort_unstable();
        names
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The sampler; the hybrid gives documents of more than 60 tokens to WarpLDA.
fn with_short_length(sampler: SamplerKind) -> SamplerOptions {
    let options = SamplerOptions::from(sampler);
    options.with_short_length(60).unwrap_or(options)
}

/// Through a file and back.
fn kept(snapshot: &Snapshot) -> Snapshot {
    let mut bytes = Cursor::new(Vec::new());
    snapshot.write_to(&mut bytes).unwrap();
    bytes.set_position(0);
    let read = Snapshot::read_from(bytes).unwrap();
    assert_eq!(read, *snapshot);
    read
}

/// State after an epoch: topics, and the bits of the log joint, which follow the order of rows.
fn state(trainer: &Trainer<&Corpus>) -> (u64, u64) {
    (trainer.assignments().fingerprint(), trainer.log_joint().total().to_bits())
}

const EPOCHS: usize = 6;

/// Interrupts a run after each of its epochs, and compares what follows with the whole run.
fn take_up_anywhere(corpus: &Corpus, options: &TrainOptions) {
    let mut trainer = Trainer::new(corpus, options).unwrap();
    let (mut states, mut snapshots) = (vec![state(&trainer)], vec![kept(&trainer.snapshot())]);
    for _ in 0..EPOCHS {
        trainer.epoch();
        states.push(state(&trainer));
        snapshots.push(kept(&trainer.snapshot()));
    }
    for (epoch, snapshot) in snapshots.iter().enumerate() {
        // On another number of threads, and taken up once more on the way.
        let threads = snapshot.options().threads(1 + epoch % 3);
        let mut again = Trainer::resume(corpus, snapshot, &threads).unwrap();
        assert_eq!(state(&again), states[epoch], "{options:?} after {epoch}");
        again.check().unwrap();
        for (epoch, expected) in states.iter().enumerate().skip(epoch + 1) {
            again.epoch();
            assert_eq!(state(&again), *expected, "{options:?} in {epoch}");
            let kept = again.snapshot();
            again = Trainer::resume(corpus, &kept, &kept.options()).unwrap();
        }
    }
}

#[test]
fn every_sampler_gives_the_same_bits_when_it_is_taken_up() {
    let corpus = corpus();
    for sampler in SamplerKind::ALL {
        // Few topics: dense rows. More: rows that may be either. Many: lists, ids of 32 bits.
        for (topics, ranges) in [(20, 3), (400, 1), (2000, 2), (70_000, 1)] {
            if topics > 2000 && [SamplerKind::Exact, SamplerKind::Zen].contains(&sampler) {
                continue;
            }
            let options = TrainOptions::new(topics)
                .sampler(with_short_length(sampler))
                .ranges(ranges)
                .alpha(0.1)
                .seed(11);
            take_up_anywhere(&corpus, &options);
        }
    }
}

#[test]
fn so_do_options_that_carry_something() {
    let corpus = corpus();
    let base = TrainOptions::new(300).ranges(2);
    let of = |sampler| base.clone().sampler(with_short_length(sampler));
    let learn = |alpha| Some(Learn { alpha, beta: true, burn_in: 1, every: 2 });
    for options in [
        of(SamplerKind::FPlus).warm_up(3),
        of(SamplerKind::FPlusDoc).warm_up(3).start(lda_core::train::Start::SparseWord),
        base.clone().sampler(SamplerOptions::Sparse { exclude_from: Some(2) }),
        base.clone().sampler(SamplerOptions::ZenHybrid { exclude_from: Some(1) }).warm_up(2),
        of(SamplerKind::Alias).alpha_by_size(100.0).warm_up(2),
        of(SamplerKind::Hybrid).alpha_by_size(100.0),
        of(SamplerKind::FPlus).learn(learn(LearnAlpha::PerTopic)).warm_up(3),
        of(SamplerKind::Warp).learn(learn(LearnAlpha::Symmetric)),
        of(SamplerKind::Hybrid).learn(learn(LearnAlpha::PerTopic)),
        base.clone().sampler(SamplerOptions::Warp { steps: 3 }),
        base.clone().sampler(SamplerOptions::Hybrid {
            steps: 3,
            step_cap: 16,
            short_length: Some(60),
        }),
        base.clone().sampler(SamplerOptions::from(SamplerKind::Light).with_steps(2).unwrap()),
        // Decided by itself: F+LDA after a warm-up.
        base.clone().epochs(EPOCHS as u32),
    ] {
        take_up_anywhere(&corpus, &options);
    }
}

/// Records its calls.
#[derive(Default)]
struct Log {
    epochs: Vec<u32>,
    joints: Vec<Option<u64>>,
    written: Vec<PathBuf>,
    failed: Vec<String>,
}

impl Observer for &mut Log {
    fn epoch(&mut self, report: &EpochReport) -> Flow {
        self.epochs.push(report.epoch);
        self.joints.push(report.log_joint.map(f64::to_bits));
        Flow::Continue
    }

    fn checkpoint(&mut self, outcome: Result<&Path, &FileError>) {
        match outcome {
            Ok(path) => self.written.push(path.to_owned()),
            Err(error) => self.failed.push(error.to_string()),
        }
    }
}

#[test]
fn a_directory_keeps_the_last_ones_and_a_run_goes_on_from_them() {
    let (corpus, scratch) = (corpus(), Scratch::new("checkpoints"));
    // Levelling off looks at evaluations, which have to be carried too.
    let options =
        TrainOptions::new(20).evaluate_every(2).level_off(LevelOff { window: 2, tolerance: 1e-3 });
    let mut whole = Log::default();
    let mut trainer = Trainer::new(&corpus, &options).unwrap();
    trainer.run(&mut whole, || false);
    let expected = state(&trainer);
    let length = *whole.epochs.last().unwrap();
    assert!(length > 20, "{length}");

    let mut log = Log::default();
    let mut trainer = Trainer::new(&corpus, &options).unwrap();
    let checkpoints = Checkpoints::new(&scratch.0).every_epochs(3).keep(2);
    trainer.checkpoint(checkpoints.clone()).unwrap();
    let stop = std::cell::Cell::new(0);
    trainer.run(&mut log, || {
        stop.set(stop.get() + 1);
        stop.get() >= 16
    });
    assert_eq!(scratch.files(), ["epoch-0000000015.snapshot", "epoch-0000000016.snapshot"]);
    assert_eq!((log.written.len(), log.failed.len()), (6, 0));

    // Another run is kept from mixing its own in.
    let error =
        Trainer::new(&corpus, &options).unwrap().checkpoint(checkpoints.clone()).unwrap_err();
    assert!(error.to_string().contains("has snapshots of another run"), "{error}");

    // The newest is damaged: the one before serves.
    std::fs::write(scratch.0.join("epoch-0000000016.snapshot"), "no snapshot").unwrap();
    std::fs::write(scratch.0.join(".epoch-0000000017.snapshot.1-0.partial"), "killed").unwrap();
    let latest = Checkpoints::latest(&scratch.0).unwrap();
    assert_eq!((latest.snapshot.epochs(), latest.unreadable.len()), (15, 1));
    let evaluation = latest
        .snapshot
        .options()
        .evaluate_every(2)
        .level_off(LevelOff { window: 2, tolerance: 1e-3 });
    let mut again = Trainer::resume(&corpus, &latest.snapshot, &evaluation).unwrap();
    again.checkpoint(checkpoints.take_over().every_time(Duration::ZERO)).unwrap();
    let mut rest = Log::default();
    again.run(&mut rest, || false);
    assert_eq!(state(&again), expected);
    assert_eq!(rest.epochs, (16..=length).collect::<Vec<_>>());
    assert_eq!(rest.joints, whole.joints[15..]);
    assert!(rest.failed.is_empty(), "{:?}", rest.failed);
    assert_eq!(scratch.files().len(), 2);
    assert_eq!(Checkpoints::latest(&scratch.0).unwrap().snapshot.epochs(), length);
}

#[test]
fn a_snapshot_that_cannot_be_written_is_told_and_the_run_goes_on() {
    let (corpus, scratch) = (corpus(), Scratch::new("checkpoints-gone"));
    let options = TrainOptions::new(5).epochs(4);
    let mut trainer = Trainer::new(&corpus, &options).unwrap();
    trainer.checkpoint(Checkpoints::new(&scratch.0).every_epochs(1)).unwrap();
    std::fs::remove_dir(&scratch.0).unwrap();
    let mut log = Log::default();
    trainer.run(&mut log, || false);
    assert_eq!((log.epochs.len(), log.failed.len()), (4, 4));
    assert!(log.failed[0].contains("epoch-0000000001.snapshot"), "{}", log.failed[0]);
    let empty = Scratch::new("checkpoints-empty");
    std::fs::create_dir(&empty.0).unwrap();
    assert!(Checkpoints::latest(&empty.0).unwrap_err().to_string().contains("no epoch-*.snapshot"));
    assert!(Checkpoints::latest(&scratch.0).is_err());
}

#[test]
fn what_does_not_belong_together_is_refused() {
    let corpus = corpus();
    let options = TrainOptions::new(30).epochs(5);
    let mut trainer = Trainer::new(&corpus, &options).unwrap();
    for _ in 0..5 {
        trainer.epoch();
    }
    let snapshot = trainer.snapshot();
    let resume = |corpus, change: fn(TrainOptions) -> TrainOptions| {
        let options = change(snapshot.options());
        Trainer::resume(corpus, &snapshot, &options).map(|_| ())
    };
    resume(&corpus, |options| options).unwrap();
    for (option, change) in [
        (
            "topics",
            (|options: TrainOptions| options.topics(31)) as fn(TrainOptions) -> TrainOptions,
        ),
        ("beta", |options| options.beta(0.02)),
        ("alpha", |options| options.alpha(vec![0.1; 30])),
        ("seed", |options| options.seed(1)),
        ("sampler", |options| options.sampler(SamplerKind::Sparse)),
        ("warm-up", |options| options.warm_up(1)),
        ("exclude-converged-from", |options| {
            options.sampler(SamplerOptions::FPlus { exclude_from: Some(3) })
        }),
    ] {
        let error = resume(&corpus, change).unwrap_err();
        let message = error.to_string();
        assert!(matches!(error, ResumeError::Option { .. }), "{message}");
        assert!(message.starts_with(&format!("the run has {option} ")), "{message}");
    }
    let error = resume(&corpus, |options| options.threads(0)).unwrap_err();
    assert!(matches!(error, ResumeError::Options(_)), "{error}");
    let other = Corpus::from_tokens([[0, 1, 2]]).unwrap();
    let error = resume(&other, |options| options).unwrap_err();
    assert!(error.to_string().contains("another corpus (60 documents"), "{error}");
}

#[test]
fn a_snapshot_that_contradicts_itself_never_trains() {
    let corpus = corpus();
    for sampler in [SamplerKind::FPlusDoc, SamplerKind::Warp] {
        let options = TrainOptions::new(400)
            .sampler(SamplerOptions::from(sampler).with_exclusion(1).unwrap_or(sampler.into()));
        let mut trainer = Trainer::new(&corpus, &options).unwrap();
        for _ in 0..3 {
            trainer.epoch();
        }
        let mut file = Cursor::new(Vec::new());
        trainer.snapshot().write_to(&mut file).unwrap();
        let bytes = file.into_inner();
        let mut refused = 0;
        for at in (0..bytes.len()).step_by(7) {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1;
            match Snapshot::read_from(Cursor::new(damaged)) {
                Ok(read) => assert_eq!((read, bytes[at]), (trainer.snapshot(), 0), "byte {at}"),
                Err(_) => refused += 1,
            }
        }
        assert!(refused > bytes.len() / 8, "{refused} of {}", bytes.len());
        assert!(Snapshot::read_from(Cursor::new(&bytes[..bytes.len() - 1])).is_err());
    }
}
