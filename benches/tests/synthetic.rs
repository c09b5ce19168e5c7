//! The presets: equal tokens on every machine, and the documented shape.

use std::path::Path;

use lda_benches::synthetic::{Preset, Spec, Synthetic};
use lda_core::Corpus;
use lda_core::corpus::blocks::Blocks;

fn hundredth(preset: Preset) -> Spec {
    preset.spec().scaled(0.01).unwrap()
}

fn in_pool(threads: usize, spec: &Spec, seed: u64) -> Synthetic {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
    pool.install(|| spec.generate(seed).unwrap())
}

/// A change of these values means other corpora and invalidates every figure published with a
/// preset. Mark it "value-breaking" in the changelog.
#[test]
fn fingerprints_at_scale_one_hundredth_are_pinned() {
    let found =
        Preset::ALL.map(|preset| hundredth(preset).generate(1).unwrap().corpus.fingerprint());
    let expected = [
        0x4825_dee3_5ded_9af4,
        0x8e28_9a3c_9548_9133,
        0x134f_fd36_2d21_04b9,
        0x7e49_ac4b_cc18_d7e4,
        0x5d07_648d_88e6_735a,
    ];
    assert_eq!(found, expected, "{found:#x?}");
}

/// The same, with the sizes that tables show, of those that are not for sizes.
#[test]
fn fingerprints_at_scale_one_are_pinned() {
    let found = [Preset::NytLike, Preset::PubmedLike, Preset::BaikeLike].map(|preset| {
        let corpus = preset.spec().generate(1).unwrap().corpus;
        (corpus.num_documents(), corpus.num_words(), corpus.num_tokens(), corpus.fingerprint())
    });
    let expected = [
        (30_000, 63_178, 9_814_841, 0x7334_3287_18ba_ddd5),
        (110_000, 63_183, 9_880_885, 0x0a60_2e51_98f0_cf39),
        (67_000, 63_408, 10_062_819, 0xeb8e_e285_bdb0_2523),
    ];
    assert_eq!(found, expected);
}

#[test]
fn threads_do_not_matter_and_seeds_do() {
    let spec = Spec { num_topics: 20, ..hundredth(Preset::BaikeLike) };
    let one = in_pool(1, &spec, 7);
    for threads in [2, 3, 7] {
        let other = in_pool(threads, &spec, 7);
        assert_eq!(one.corpus, other.corpus);
        assert_eq!(one.topics, other.topics);
    }
    assert_ne!(one.corpus.fingerprint(), in_pool(2, &spec, 8).corpus.fingerprint());
}

/// The words of a document by name, with their counts.
fn named(corpus: &Corpus, d: usize) -> Vec<(&str, u32)> {
    let words = corpus.vocabulary().unwrap();
    corpus.document(d).iter().map(|(word, count)| (words.word(word), count)).collect()
}

#[test]
fn a_smaller_corpus_is_the_first_part_of_a_larger_one() {
    let small = Preset::NytLike.spec().scaled(0.002).unwrap().generate(1).unwrap().corpus;
    let large = Preset::NytLike.spec().scaled(0.01).unwrap().generate(1).unwrap().corpus;
    assert!(small.num_words() < large.num_words());
    for d in 0..small.num_documents() {
        assert_eq!(named(&small, d), named(&large, d), "document {d}");
    }
}

fn lengths(corpus: &Corpus) -> Vec<u64> {
    let mut lengths: Vec<u64> = corpus.documents().map(|document| document.len()).collect();
    lengths.sort_unstable();
    lengths
}

#[test]
fn lengths_are_those_of_the_preset() {
    let mean = |lengths: &[u64]| lengths.iter().sum::<u64>() as f64 / lengths.len() as f64;
    // Lengths do not depend on the number of topics, and few topics are faster.
    let tenth = |preset: Preset| {
        let spec = Spec { num_topics: 10, ..preset.spec().scaled(0.1).unwrap() };
        lengths(&spec.generate(2).unwrap().corpus)
    };
    // Within five standard errors of the means.
    let nyt = tenth(Preset::NytLike);
    assert!((mean(&nyt) - 330.0).abs() < 25.0, "{}", mean(&nyt));
    let pubmed = tenth(Preset::PubmedLike);
    assert!((mean(&pubmed) - 90.0).abs() < 2.5, "{}", mean(&pubmed));
    let baike = tenth(Preset::BaikeLike);
    let (short, long) = baike.split_at(baike.partition_point(|&length| length < 250));
    assert!((mean(short) - 30.0).abs() < 1.1, "{}", mean(short));
    assert!((mean(long) - 1_500.0).abs() < 150.0, "{}", mean(long));
    let share = long.iter().sum::<u64>() as f64 / baike.iter().sum::<u64>() as f64;
    assert!((0.75..0.87).contains(&share), "{share}");
}

/// Frequencies follow Zipf's law up to the noise of the topics: between ranks 10 and 1,000 they
/// fall by about 100^1.07.
#[test]
fn frequent_words_follow_zipf() {
    let mut frequencies = Preset::PubmedLike
        .spec()
        .scaled(0.1)
        .unwrap()
        .generate(3)
        .unwrap()
        .corpus
        .word_frequencies();
    frequencies.sort_unstable_by(|a, b| b.cmp(a));
    let around = |rank: usize| {
        let near = &frequencies[rank - rank / 10..rank + rank / 10];
        near.iter().sum::<u64>() as f64 / near.len() as f64
    };
    let exponent = (around(10) / around(1_000)).ln() / 100f64.ln();
    assert!((exponent - 1.07).abs() < 0.1, "{exponent}");
}

#[test]
fn topics_are_distributions_and_explain_the_words() {
    let Synthetic { corpus, topics } =
        Spec { num_documents: 3_000, ..Spec::default() }.generate(4).unwrap();
    let mut expected = vec![0.0; corpus.num_words()];
    for topic in &topics {
        assert!(topic.is_sorted_by(|a, b| a.0 < b.0));
        let sum: f64 = topic.iter().map(|pair| pair.1).sum();
        assert!(sum <= 1.0 + 1e-12 && sum > 0.99, "{sum}");
        for &(word, probability) in topic {
            expected[word as usize] += probability / topics.len() as f64;
        }
    }
    // Topics are equally likely, so the mean topic is the distribution of the corpus.
    let distance: f64 = corpus
        .word_frequencies()
        .iter()
        .zip(&expected)
        .map(|(&n, p)| (n as f64 / corpus.num_tokens() as f64 - p).abs() / 2.0)
        .sum();
    assert!(distance < 0.05, "total variation {distance}");
}

#[test]
fn words_have_distinct_ascending_names() {
    let corpus = hundredth(Preset::PubmedLike).generate(1).unwrap().corpus;
    let names: Vec<&str> = corpus.vocabulary().unwrap().iter().collect();
    assert_eq!(names.len(), corpus.num_words());
    assert!(names.is_sorted_by(|a, b| a < b));
    assert!(names.iter().all(|name| name.starts_with('w')));
    assert!(corpus.word_frequencies().iter().all(|&n| n > 0));
}

#[test]
fn the_smallest_corpus_is_one_token() {
    let spec = Spec { num_documents: 1, num_words: 1, num_topics: 1, ..Spec::default() };
    let Synthetic { corpus, topics } = spec.generate(0).unwrap();
    assert_eq!(corpus.num_words(), 1);
    assert_eq!(topics, [[(0, 1.0)]]);
}

/// Blocks have the documents and words of the corpus in memory, however they are cut.
#[test]
fn blocks_are_the_corpus() {
    let spec = Spec { num_topics: 20, ..hundredth(Preset::WebLike) };
    let whole = spec.generate(3).unwrap().corpus;
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("synthetic-blocks");
    for tokens in [40_000, u64::MAX] {
        let blocks = spec.generate_blocks(3, tokens, &path).unwrap();
        assert_eq!(blocks.parts().len() > 5, tokens < u64::MAX);
        assert_eq!(blocks.vocabulary(), whole.vocabulary());
        let mut d = 0;
        for block in 0..blocks.parts().len() {
            let documents = blocks.read(block).unwrap();
            for document in documents.documents() {
                assert_eq!(document, whole.document(d));
                d += 1;
            }
        }
        assert_eq!(d, whole.num_documents());
    }
    std::fs::remove_dir_all(&path).unwrap();
}
