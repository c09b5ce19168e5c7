//! Tests of models in memory and in files.

use std::io::Cursor;
use std::path::PathBuf;

use super::*;
use crate::Corpus;
use crate::container::FileProblem;
use crate::random::Xoshiro256PlusPlus;
use crate::train::{Lda, Resolved, TrainOptions, Trainer};

fn trained(topics: u32) -> TopicModel {
    let documents = [
        vec!["tree", "leaf", "root", "tree"],
        vec!["sea", "wave", "sand", "sea", "ä"],
        vec![],
        vec!["leaf", "root", "tree", ""],
    ];
    let corpus = Corpus::from_words(documents).unwrap();
    Lda::topics(topics).alpha(0.1).epochs(5).train(&corpus, ()).unwrap().model
}

fn imported() -> TopicModel {
    let mut rng = Xoshiro256PlusPlus::from_seed(1);
    let rows: Vec<Vec<f64>> = (0..5)
        .map(|_| (0..30).map(|_| if rng.below(3) == 0 { rng.next_f64() } else { 0.25 }).collect())
        .collect();
    let weights = Weights::from_rows(&rows).unwrap();
    let mut names = Vocabulary::new();
    (0..30).for_each(|word| assert_eq!(names.push(&format!("word{}", word % 29)), Ok(word)));
    let notes = vec![("source".to_owned(), "made up".to_owned())];
    let provenance = Provenance { notes, ..Provenance::default() };
    let alpha = Alpha::from(vec![0.1, 0.2, 0.3, 0.4, 0.5]);
    TopicModel::from_weights(weights, alpha)
        .with_vocabulary(Some(names))
        .with_provenance(provenance)
}

fn bytes(model: &TopicModel) -> Vec<u8> {
    let mut out = Cursor::new(Vec::new());
    model.write_to(&mut out).unwrap();
    out.into_inner()
}

fn read(bytes: &[u8]) -> Result<TopicModel, crate::container::FileError> {
    TopicModel::read_from(Cursor::new(bytes))
}

struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        Self(std::env::temp_dir().join(format!("lda-{name}-{}", std::process::id())))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// The model at `path`, mapped with and without verification.
#[cfg(feature = "mmap")]
#[allow(unsafe_code)]
fn mapped(path: &std::path::Path) -> [Result<TopicModel, crate::container::FileError>; 2] {
    // SAFETY: the tests write scratch files only before they map them, or replace them by a rename.
    unsafe { [TopicModel::map(path), TopicModel::map_unverified(path)] }
}

fn models() -> [TopicModel; 4] {
    // Above 65,536 topics ids are wider.
    [trained(3), trained(70_000), imported(), trained(3).with_vocabulary(None)]
}

#[test]
fn saved_models_load_unchanged() {
    let scratch = Scratch::new("model-files");
    for model in models() {
        model.save(&scratch.0).unwrap();
        let read = TopicModel::load(&scratch.0).unwrap();
        assert_eq!(read, model);
        assert_eq!(bytes(&read), bytes(&model));
        #[cfg(feature = "mmap")]
        for mapped in mapped(&scratch.0) {
            let mapped = mapped.unwrap();
            assert_eq!(mapped.memory(), 0);
            assert_eq!(mapped, model);
            assert_eq!(bytes(&mapped), bytes(&model));
            assert!(model.vocabulary().is_none() || mapped.memory() > 0);
        }
    }
}

#[cfg(all(feature = "mmap", unix))]
#[test]
fn a_mapped_model_outlives_its_replacement() {
    let scratch = Scratch::new("model-replaced");
    trained(3).save(&scratch.0).unwrap();
    let mapped_before = mapped(&scratch.0);
    imported().save(&scratch.0).unwrap();
    mapped_before.into_iter().for_each(|model| assert_eq!(model.unwrap(), trained(3)));
    mapped(&scratch.0).into_iter().for_each(|model| assert_eq!(model.unwrap(), imported()));
}

#[test]
fn provenance_is_kept() {
    let model = trained(3);
    let provenance = read(&bytes(&model)).unwrap().provenance().clone();
    assert_eq!(Resolved::from_provenance(&provenance).unwrap().unwrap().topics, 3);
    assert_eq!(
        (provenance.epochs, provenance.documents, provenance.tokens),
        (Some(5), Some(4), Some(13))
    );
    assert!(provenance.log_joint.unwrap() < 0.0);
    assert_eq!(read(&bytes(&imported())).unwrap().provenance().notes[0].1, "made up");
}

#[test]
fn an_updated_prior_is_stored_next_to_the_initial_one() {
    let corpus = Corpus::from_tokens([[0, 1, 2, 0], [2, 3, 2, 2]]).unwrap();
    let options = TrainOptions::new(3).alpha_by_size(10.0);
    let mut trainer = Trainer::new(&corpus, &options).unwrap();
    trainer.epoch();
    let model = trainer.model();
    assert!(matches!(model.alpha(), Alpha::PerTopic(_)));
    let again = read(&bytes(&model)).unwrap();
    assert_eq!(again, model);
    let resolved = Resolved::from_provenance(again.provenance()).unwrap().unwrap();
    assert_eq!(resolved.alpha, TrainOptions::default_alpha(3, 4.0));
    // The only epoch belonged to the warm-up, which a model says as it was.
    assert_eq!(resolved, Resolved { warm_up: 1, ..trainer.resolved().clone() });
}

#[test]
fn weights_are_probabilities_above_a_floor() {
    let rows = [vec![7.0, 2.0, 1.0, 1.0], vec![0.0, 0.0, 3.0, 1.0]];
    let weights = Weights::from_rows(&rows).unwrap();
    assert_eq!(weights.floors(), [1.0 / 11.0, 0.0]);
    assert_eq!(weights.num_entries(), 4);
    for (topic, row) in rows.iter().enumerate() {
        let sum: f64 = row.iter().sum();
        for (word, value) in row.iter().enumerate() {
            assert!((weights.phi(topic, word) - value / sum).abs() < 1e-7);
        }
    }
    let nothing: [[f64; 0]; 1] = [[]];
    assert_eq!(Weights::from_rows(&nothing), Err(WeightsError::Empty));
    assert_eq!(
        Weights::from_rows(&[vec![1.0, 1.0], vec![1.0]]),
        Err(WeightsError::Ragged { topic: 1, found: 1, expected: 2 })
    );
    for value in [-1.0, f64::INFINITY] {
        assert_eq!(
            Weights::from_rows(&[[1.0, value]]),
            Err(WeightsError::NotAWeight { topic: 0, word: 1, value })
        );
    }
    let refused = Weights::from_rows(&[[1.0, 2.0], [0.0, 0.0]]);
    assert_eq!(refused, Err(WeightsError::NoShare { topic: 1, sum: 0.0 }));
    assert!(Weights::from_rows(&[[f64::MAX, f64::MAX]]).is_err());
}

/// Each of 30 topics has 3 of 500 words; the other weights are smoothing, rounded in several ways.
#[test]
fn smoothed_weights_are_stored_as_sparsely_as_their_counts() {
    let counts = |topic: usize| {
        let mut row = vec![0.0; 500];
        (0..3).for_each(|i| row[(topic * 37 + i * 91) % 500] = (topic + 5 * i + 1) as f64);
        row
    };
    for (times, single) in [(1.0, false), (1.0 / 3.0, false), (1e-3, true)] {
        let row = |topic| {
            let smoothed: Vec<f64> = counts(topic).iter().map(|count| count + 0.013).collect();
            let sum: f64 = smoothed.iter().sum();
            let share = |value: &f64| value / sum * times * (topic + 1) as f64;
            let single = |value: f64| if single { f64::from(value as f32) } else { value };
            smoothed.iter().map(share).map(single).collect::<Vec<f64>>()
        };
        let rows: Vec<Vec<f64>> = (0..30).map(row).collect();
        let weights = Weights::from_rows(&rows).unwrap();
        assert_eq!(weights.num_entries(), 90, "{times}");
    }
}

#[test]
fn every_damaged_byte_is_detected() {
    for model in [trained(3), imported()] {
        let bytes = bytes(&model);
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1 << (at % 8);
            if let Ok(read) = read(&damaged) {
                assert_eq!((read, bytes[at]), (model.clone(), 0), "byte {at} is no padding");
            }
        }
    }
}

/// The file of a model, with one section replaced.
fn with_section<T: crate::container::Number>(
    model: &TopicModel,
    name: &str,
    values: &[T],
) -> Vec<u8> {
    use crate::container::{Kind, Reader, Source, Writer};
    let bytes = bytes(model);
    let names = [
        "about",
        "alpha",
        "totals",
        "floors",
        "offsets",
        "topics",
        "counts",
        "weights",
        "word-ends",
        "word-names",
    ];
    let mut from = Reader::open(Cursor::new(&bytes), Kind::Model).unwrap();
    let there: Vec<&str> = names.into_iter().filter(|name| from.has(name)).collect();
    let mut to = Writer::new(Cursor::new(Vec::new()), Kind::Model, there.len()).unwrap();
    for section in there {
        if section == name {
            to.section(section, values.iter().copied()).unwrap();
            continue;
        }
        macro_rules! copy {
            ($($number:ty),+) => {$(
                if from.has_of::<$number>(section) {
                    to.section(section, from.numbers::<$number>(section).unwrap()).unwrap();
                }
            )+};
        }
        copy!(u8, u16, u32, u64, f32, f64);
    }
    to.finish().unwrap().into_inner()
}

#[test]
fn an_inconsistent_file_is_rejected() {
    let counts = trained(3);
    let refused = |model: &TopicModel, bytes: Vec<u8>, part: &str, what: &str| {
        let error = read(&bytes).expect_err(what);
        let FileProblem::Malformed { part: found, reason } = error.problem() else {
            panic!("{what}: {error}")
        };
        assert_eq!(found, part, "{what}: {error}");
        assert!(reason.contains(what), "{what}: {error}");
        // Without verification the file may open, with it it must not.
        #[cfg(feature = "mmap")]
        {
            let scratch = Scratch::new(&format!("model-hostile-{}", model.num_topics()));
            std::fs::write(&scratch.0, &bytes).unwrap();
            let [verified, _] = mapped(&scratch.0);
            assert!(verified.is_err());
        }
        let _ = model;
    };
    let entries = counts.counts().unwrap().num_entries() as u64;
    let words = counts.num_words();
    let mut offsets = vec![0; words + 1];
    offsets[words] = entries;
    offsets[1] = entries + 1;
    refused(&counts, with_section(&counts, "offsets", &offsets), "offsets", "ascend");
    refused(&counts, with_section(&counts, "offsets", &offsets[1..]), "offsets", "values, not");
    refused(&counts, with_section(&counts, "alpha", &[0.0]), "alpha", "finite number above 0");
    refused(&counts, with_section(&counts, "alpha", &[0.1, 0.1]), "alpha", "one a topic");
    refused(&counts, with_section::<f64>(&counts, "alpha", &[]), "alpha", "empty");
    let topics = vec![3u16; entries as usize];
    refused(&counts, with_section(&counts, "topics", &topics), "topics", "ascend below 3");
    let none = vec![0u32; entries as usize];
    refused(&counts, with_section(&counts, "counts", &none), "counts", "count of 0");
    refused(&counts, with_section(&counts, "totals", &[13u64, 0, 0]), "totals", "not the sum");
    refused(&counts, with_section(&counts, "totals", &[13u32, 0, 0]), "totals", "another type");
    refused(&counts, with_section(&counts, "word-names", &[0xffu8]), "word-names", "not UTF-8");
    let ends = vec![1u32; words];
    refused(&counts, with_section(&counts, "word-ends", &ends), "word-ends", "not ends of names");
    refused(&counts, with_section(&counts, "about", &[0u8, 0, 0, 0]), "about", "topics is missing");

    let real = imported();
    let entries = real.weights().unwrap().num_entries();
    refused(&real, with_section(&real, "floors", &[f64::NAN; 5]), "floors", "not a probability");
    refused(
        &real,
        with_section(&real, "weights", &vec![0f32; entries]),
        "weights",
        "not a probability",
    );
}

#[test]
fn foreign_files_are_rejected() {
    let error = TopicModel::load("no-such.lda").unwrap_err();
    assert!(error.to_string().starts_with("no-such.lda: "), "{error}");
    let scratch = Scratch::new("model-foreign");
    std::fs::write(&scratch.0, "some text").unwrap();
    let error = TopicModel::load(&scratch.0).unwrap_err();
    assert!(
        error.to_string().contains("not a file of this library: it begins with \"some tex"),
        "{error}"
    );
    #[cfg(feature = "mmap")]
    {
        assert!(mapped(&scratch.0).iter().all(Result::is_err));
        std::fs::write(&scratch.0, "").unwrap();
        for mapped in mapped(&scratch.0) {
            let error = mapped.unwrap_err();
            assert!(matches!(error.problem(), FileProblem::Foreign { .. }), "{error}");
        }
    }
}
