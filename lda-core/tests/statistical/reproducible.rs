//! Same resolved options, same bits: at any number of threads, on any instruction set, in a pool of
//! its own or the caller's, in debug and in release.

use crate::corpora::made;
use crate::corpora::with_short_length;
use lda_core::Corpus;
use lda_core::prior::Alpha;
use lda_core::simd::Isa;
use lda_core::train::{SamplerKind, TrainOptions, Trainer};

/// Fingerprints of [`corpus`] after [`EPOCHS`] epochs. A change is value-breaking and belongs in
/// the changelog; `LDA_PRINT_GOLDEN=1 cargo test --test statistical golden -- --nocapture` prints
/// the table again.
const GOLDEN: [(SamplerKind, u32, u64); 33] = [
    (SamplerKind::Exact, 10, 0xbeb2_0ab6_d6cd_f843),
    (SamplerKind::Exact, 200, 0x28bf_6bb7_19f0_d9fc),
    (SamplerKind::Exact, 66_000, 0xf0d5_31e7_5d99_c152),
    (SamplerKind::FPlus, 10, 0xbeb2_0ab6_d6cd_f843),
    (SamplerKind::FPlus, 200, 0x51b0_93c9_db9a_6f49),
    (SamplerKind::FPlus, 66_000, 0x45e6_643d_415a_beab),
    (SamplerKind::FPlusDoc, 10, 0x1c4b_de8a_d1a6_8a25),
    (SamplerKind::FPlusDoc, 200, 0x2074_5b8c_90b9_92f9),
    (SamplerKind::FPlusDoc, 66_000, 0xaccb_5207_2eac_c83c),
    (SamplerKind::Sparse, 10, 0x1c4b_de8a_d1a6_8a25),
    (SamplerKind::Sparse, 200, 0xe81c_d89b_5d49_cf50),
    (SamplerKind::Sparse, 66_000, 0xb63a_637a_ddd2_4f1b),
    (SamplerKind::Alias, 10, 0x85df_9d64_54a7_96a9),
    (SamplerKind::Alias, 200, 0xc8b5_47c7_782b_c353),
    (SamplerKind::Alias, 66_000, 0x304a_a554_4f6b_b03e),
    (SamplerKind::Light, 10, 0xabe9_4774_41b3_7a37),
    (SamplerKind::Light, 200, 0xae9f_194f_f838_4d77),
    (SamplerKind::Light, 66_000, 0x8128_058d_3966_cdd8),
    (SamplerKind::Zen, 10, 0xbeb2_0ab6_d6cd_f843),
    (SamplerKind::Zen, 200, 0xf7df_5b43_cf4a_9f0e),
    (SamplerKind::Zen, 66_000, 0xe7f8_0bfc_7ced_a437),
    (SamplerKind::ZenDoc, 10, 0x1c4b_de8a_d1a6_8a25),
    (SamplerKind::ZenDoc, 200, 0xf547_0cb3_eca1_3ee0),
    (SamplerKind::ZenDoc, 66_000, 0x31ff_717c_e855_30ed),
    (SamplerKind::ZenHybrid, 10, 0x63bb_b025_2fb6_69ad),
    (SamplerKind::ZenHybrid, 200, 0x6646_8748_2080_f8c0),
    (SamplerKind::ZenHybrid, 66_000, 0xa42b_e7d8_f191_cbe0),
    (SamplerKind::Warp, 10, 0xd923_5ed6_74e5_19af),
    (SamplerKind::Warp, 200, 0x193f_0a75_ac1d_50d2),
    (SamplerKind::Warp, 66_000, 0xc3a2_c24a_5e0f_932c),
    (SamplerKind::Hybrid, 10, 0xbfea_6da5_3de0_200a),
    (SamplerKind::Hybrid, 200, 0x5026_9375_dd8f_e949),
    (SamplerKind::Hybrid, 66_000, 0xf459_bc8f_b13d_a238),
];

const EPOCHS: u32 = 3;

fn corpus() -> Corpus {
    made(120, 150, 8, 50.0)
}

/// Eight ranges of documents and of words.
fn options(sampler: SamplerKind, topics: u32) -> TrainOptions {
    let alpha = (0..topics).map(|k| 0.05 * f64::from(1 + k % 3));
    TrainOptions::new(topics)
        .alpha(Alpha::from(alpha.collect::<Vec<_>>()))
        .sampler(with_short_length(sampler, 50))
        .seed(4)
        .ranges(8)
}

fn fingerprint(corpus: &Corpus, options: &TrainOptions) -> u64 {
    let mut trainer = Trainer::new(corpus, options).expect("the options are legal");
    for _ in 0..EPOCHS {
        trainer.epoch();
    }
    trainer.assignments().fingerprint()
}

#[test]
#[allow(clippy::print_stdout, reason = "prints the table on request")]
fn golden() {
    let corpus = corpus();
    let print = std::env::var_os("LDA_PRINT_GOLDEN").is_some();
    for (sampler, topics, golden) in GOLDEN {
        let found = fingerprint(&corpus, &options(sampler, topics));
        if print {
            println!("    (SamplerKind::{sampler:?}, {topics}, 0x{found:016x}),");
        } else {
            assert_eq!(found, golden, "{sampler}, K = {topics}: 0x{found:016x}");
        }
    }
}

#[test]
fn at_any_number_of_threads() {
    let corpus = corpus();
    for sampler in SamplerKind::ALL {
        let options = options(sampler, 60);
        let alone = fingerprint(&corpus, &options.clone().threads(1));
        for threads in [2, 3, 4, 7] {
            let options = options.clone().threads(threads);
            assert_eq!(fingerprint(&corpus, &options), alone, "{sampler}, {threads} threads");
        }
        let pool = rayon::ThreadPoolBuilder::new().num_threads(3).build().expect("three threads");
        let lent = pool.install(|| fingerprint(&corpus, &options));
        assert_eq!(lent, alone, "{sampler}, in the caller's pool");
    }
}

#[test]
fn on_any_instruction_set() {
    let corpus = corpus();
    for sampler in SamplerKind::ALL {
        for topics in [10, 100, 1000] {
            let run = |isa| fingerprint(&corpus, &options(sampler, topics).isa(isa));
            let scalar = run(Isa::Scalar);
            for isa in Isa::available() {
                assert_eq!(run(isa), scalar, "{sampler}, K = {topics}, {isa}");
            }
        }
    }
}

#[test]
fn seeds_differ() {
    let corpus = corpus();
    for sampler in SamplerKind::ALL {
        let options = options(sampler, 60);
        let other = options.clone().seed(5);
        assert_ne!(fingerprint(&corpus, &options), fingerprint(&corpus, &other), "{sampler}");
    }
}
