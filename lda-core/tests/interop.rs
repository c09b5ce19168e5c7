//! Models of other programs: read rightly, refused clearly.

use std::fmt::Write;

use lda_core::Corpus;
use lda_core::infer::Translation;
use lda_core::interop::{InteropError, mallet, npy, warplda};
use lda_core::model::TopicModel;
use lda_core::train::{Init, PseudoCounts, SamplerKind, TrainOptions, Trainer, Weight};

fn corpus() -> Corpus {
    let themes = [["tree", "leaf", "wood", "root"], ["sea", "wave", "foam", "salt"]];
    let word = |d: usize, i: usize| themes[(d + usize::from(i.is_multiple_of(7))) % 2][(d * i) % 4];
    Corpus::from_words((0..30).map(|d| (1..20).map(move |i| word(d, i)))).unwrap()
}

fn run(corpus: &Corpus) -> Trainer<&Corpus> {
    let sampler = Some(SamplerKind::FPlus);
    let options = TrainOptions::new(3).alpha(0.5).beta(0.02).sampler(sampler);
    let mut trainer = Trainer::new(corpus, &options).unwrap();
    for _ in 0..10 {
        trainer.epoch();
    }
    trainer
}

/// φ by name.
fn phi(model: &TopicModel, topic: usize, word: &str) -> f64 {
    let id = model.vocabulary().and_then(|words| words.id(word)).unwrap();
    model.phi(topic, id as usize)
}

/// A run as MALLET would have written it.
fn state(corpus: &Corpus, trainer: &Trainer<&Corpus>) -> String {
    let mut text = "#doc source pos typeindex type topic\n#alpha : 0.5 0.25 0.75 \n".to_owned();
    text.push_str("#beta : 0.02\n");
    let assignments = trainer.assignments();
    for d in 0..corpus.num_documents() {
        for (at, (word, topic)) in assignments.tokens(corpus, d).enumerate() {
            let name = corpus.vocabulary().unwrap().word(word);
            writeln!(text, "{d} file:/my papers/{d}.txt {at} {} {name} {topic}", word + 5).unwrap();
        }
    }
    text
}

#[test]
fn mallet_state_gives_counts() {
    let corpus = corpus();
    let trainer = run(&corpus);
    let own = trainer.model();
    let read = mallet::read_state(state(&corpus, &trainer).as_bytes()).unwrap();
    assert_eq!(read.counts().unwrap().totals(), own.counts().unwrap().totals());
    for word in corpus.vocabulary().unwrap().iter() {
        for topic in 0..3 {
            assert_eq!(phi(&read, topic, word), phi(&own, topic, word), "{word} {topic}");
        }
    }
    assert_eq!(read.alpha().as_slice(), [0.5, 0.25, 0.75]);
    let provenance = read.provenance();
    assert_eq!((provenance.documents, provenance.tokens), (Some(30), Some(corpus.num_tokens())));

    // And can be gone on with.
    let translation = Translation::new(&corpus, &read).unwrap();
    let share = Weight::Share(1.0);
    let counts = PseudoCounts::from_model(&read, &translation, &corpus, 3, share).unwrap();
    let init = Init { pseudo_counts: Some(counts), topics: None };
    let options = TrainOptions::new(3);
    let mut trainer = Trainer::with_init(&corpus, &options, init).unwrap();
    trainer.epoch();
    trainer.check().unwrap();
}

#[test]
fn compressed_state_is_read() {
    let corpus = corpus();
    let text = state(&corpus, &run(&corpus));
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut packed, text.as_bytes()).unwrap();
    let path = std::env::temp_dir().join(format!("lda-state-{}.gz", std::process::id()));
    std::fs::write(&path, packed.finish().unwrap()).unwrap();
    let read = mallet::load_state(&path);
    std::fs::remove_file(&path).unwrap();
    assert_eq!(read.unwrap(), mallet::read_state(text.as_bytes()).unwrap());
}

#[test]
fn errors_in_a_mallet_state_are_reported() {
    let head = "#doc source pos typeindex type topic\n#alpha : 0.5 0.5\n#beta : 0.1\n";
    let refused = |text: &str| mallet::read_state(text.as_bytes()).unwrap_err().to_string();
    for (text, said) in [
        ("".to_owned(), "not a MALLET state"),
        ("0 NA 0 0 a 1\n".to_owned(), "line 1: it is not a MALLET state"),
        (head.replace("#alpha : 0.5 0.5", "#alpha : "), "line 2: expected \"#alpha :\""),
        (head.replace("0.5 0.5", "0.5 x"), "line 2: expected"),
        (head.replace("0.5 0.5", "0.5 -1"), "line 2: "),
        (head.replace("#beta : 0.1", "#beta : 0.1 0.2"), "line 3: expected one number"),
        (head.to_owned(), "has no tokens"),
        (format!("{head}0 NA 0 0 a 2\n"), "line 4: topic \"2\" is not an integer below 2"),
        (format!("{head}0 NA 0 0 a 1\n0 a 1\n"), "line 5: expected: doc source"),
        (format!("{head}0 NA 0 0 a \u{fffd}\n"), "line 4: topic"),
    ] {
        let error = refused(&text);
        assert!(error.contains(said), "{text:?}: {error}");
    }
    let bytes = [head.as_bytes(), b"0 NA 0 0 \xff 1\n"].concat();
    assert!(mallet::read_state(&bytes[..]).unwrap_err().to_string().contains("UTF-8"));
    let gone = mallet::load_state("nowhere.gz").unwrap_err();
    assert!(matches!(gone, InteropError::File { .. }) && gone.to_string().contains("nowhere.gz"));
}

#[test]
fn warplda_model_is_read() {
    let corpus = corpus();
    let own = run(&corpus).model();
    let counts = own.counts().unwrap();
    let mut text = format!("{} 3 0.5 0.02\n", counts.num_words());
    for word in 0..counts.num_words() {
        let row = counts.word(word);
        write!(text, "{}\t", row.len()).unwrap();
        // Its rows lie in the order of a hash table.
        for (topic, count) in row.iter().collect::<Vec<_>>().into_iter().rev() {
            write!(text, "{topic}:{count} ").unwrap();
        }
        text.push('\n');
    }
    let read = warplda::read_model(text.as_bytes()).unwrap();
    assert_eq!(read.counts(), own.counts());
    assert_eq!(read.alpha(), own.alpha());
    let named = read.with_vocabulary(corpus.vocabulary().cloned());
    assert_eq!(phi(&named, 1, "sea"), phi(&own, 1, "sea"));
}

#[test]
fn errors_in_a_warplda_model_are_reported() {
    for (text, said) in [
        ("", "line 1: expected numbers"),
        ("2 2 0.5\n", "line 1: expected numbers"),
        ("2 0 0.5 0.1\n", "0 topics"),
        ("2 99999999999 0.5 0.1\n", "99999999999 topics"),
        ("2.5 2 0.5 0.1\n", "2.5 words"),
        ("2 2 -1 0.1\n", "line 1: "),
        ("2 2 0.5 0\n", "line 1: "),
        ("2 2 0.5 0.1\n1\t0:3\n", "ends after 1 of 2 words"),
        ("1 2 0.5 0.1\n2\t0:3\n", "line 2: it has 1 pairs"),
        ("1 2 0.5 0.1\n1\t2:3\n", "line 2: \"2:3\" is not topic:count"),
        ("1 2 0.5 0.1\n1\t1:0\n", "line 2: \"1:0\""),
        ("1 2 0.5 0.1\n2\t1:1 1:2\n", "line 2: topic 1 occurs twice"),
        ("1 2 0.5 0.1\n1\t1:1\n1\t0:1\n", "line 3: lines follow the last of 1 words"),
    ] {
        let error = warplda::read_model(text.as_bytes()).unwrap_err().to_string();
        assert!(error.contains(said), "{text:?}: {error}");
    }
}

#[test]
fn an_array_serves_inference_and_training() {
    let corpus = corpus();
    let own = run(&corpus).model();
    let (topics, words) = (own.num_topics(), own.num_words());
    let mut file = Vec::new();
    npy::write_header(&mut file, "<f8", &[topics, words]).unwrap();
    for topic in 0..topics {
        for word in 0..words {
            // Not normalised, as λ of gensim is not.
            file.extend((own.phi(topic, word) * 1234.5).to_le_bytes());
        }
    }
    let weights = npy::read_topics(&file[..]).unwrap();
    let read = TopicModel::from_weights(weights, own.alpha().clone())
        .with_vocabulary(corpus.vocabulary().cloned());
    for topic in 0..topics {
        for word in 0..words {
            let (read, own) = (read.phi(topic, word), own.phi(topic, word));
            assert!((read - own).abs() < 1e-6, "{read} {own}");
        }
    }
    let translation = Translation::new(&corpus, &read).unwrap();
    let weight = Weight::TokensPerTopic(500.0);
    let counts = PseudoCounts::from_model(&read, &translation, &corpus, 3, weight).unwrap();
    assert!((1400..=1500).contains(&counts.sum()), "{}", counts.sum());
}
