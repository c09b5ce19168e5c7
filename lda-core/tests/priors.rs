//! Priors learnt while a run goes on.

use lda_benches::synthetic::{Lengths, Spec};
use lda_core::Corpus;
use lda_core::corpus::CorpusBuilder;
use lda_core::eval::{CompletionOptions, Phi, held_out_perplexity};
use lda_core::prior::Alpha;
use lda_core::train::{Learn, LearnAlpha, OptionsError, SamplerKind, TrainOptions, Trainer};

fn corpus(seed: u64) -> Corpus {
    let lengths = vec![Lengths { weight: 1.0, mean: 80.0, sigma: 0.4 }];
    let spec =
        Spec { num_documents: 400, num_words: 400, num_topics: 8, lengths, ..Spec::default() };
    spec.generate(seed).expect("the parameters are legal").corpus
}

/// Priors that are far off.
fn options(sampler: SamplerKind, learn: Option<Learn>) -> TrainOptions {
    TrainOptions::new(8).alpha(5.0).beta(1.0).sampler(sampler).seed(4).learn(learn)
}

fn trained<'a>(corpus: &'a Corpus, options: &TrainOptions, epochs: u32) -> Trainer<&'a Corpus> {
    let mut trainer = Trainer::new(corpus, options).unwrap();
    for _ in 0..epochs {
        trainer.epoch();
        trainer.check().unwrap();
    }
    trainer
}

fn learn(alpha: LearnAlpha, beta: bool) -> Option<Learn> {
    Some(Learn { alpha, beta, burn_in: 10, every: 5 })
}

#[test]
fn every_sampler_goes_on_with_what_is_learnt() {
    let corpus = corpus(1);
    for sampler in SamplerKind::ALL {
        let fixed = trained(&corpus, &options(sampler, None), 60);
        let learnt = trained(&corpus, &options(sampler, learn(LearnAlpha::PerTopic, true)), 60);
        let (alpha, beta) = learnt.priors();
        assert!(matches!(alpha, Alpha::PerTopic(_)), "{sampler}");
        assert!(alpha.sum(8) < 10.0 && beta < 0.5, "{sampler}: {alpha:?} {beta}");
        let (fixed, learnt) = (fixed.log_joint().total(), learnt.log_joint().total());
        let gain = (learnt - fixed) / corpus.num_tokens() as f64;
        assert!(gain > 0.3, "{sampler}: {gain} a token");
    }
}

#[test]
fn learnt_priors_lower_held_out_perplexity() {
    let all = corpus(2);
    let part = |documents: std::ops::Range<usize>| {
        let mut builder = CorpusBuilder::new().num_words(all.num_words() as u32);
        builder.extend_pairs(documents.map(|d| all.document(d).iter())).unwrap();
        builder.build().unwrap()
    };
    let (corpus, unseen) = (part(0..320), part(320..400));
    let perplexity = |learn| {
        let model = trained(&corpus, &options(SamplerKind::FPlus, learn), 100).model();
        let phi = Phi::from_model(&model).unwrap();
        let options = CompletionOptions::default();
        held_out_perplexity(&unseen, &phi, model.alpha(), &options).unwrap().perplexity()
    };
    let fixed = perplexity(None);
    for alpha in [LearnAlpha::Symmetric, LearnAlpha::PerTopic] {
        let learnt = perplexity(learn(alpha, true));
        assert!(learnt < 0.9 * fixed, "{alpha:?}: {learnt} against {fixed}");
    }
}

#[test]
fn only_what_was_asked_for_is_learnt_and_when() {
    let corpus = corpus(3);
    let asked = (Alpha::Symmetric(5.0), 1.0);
    let priors =
        |learn, epochs| trained(&corpus, &options(SamplerKind::Sparse, learn), epochs).priors();
    assert_eq!(priors(learn(LearnAlpha::PerTopic, true), 10), asked);
    let symmetric = priors(learn(LearnAlpha::Symmetric, false), 11);
    assert!(matches!(symmetric.0, Alpha::Symmetric(alpha) if alpha < 5.0), "{symmetric:?}");
    assert_eq!(symmetric.1, 1.0);
    let only_beta = priors(learn(LearnAlpha::Fixed, true), 11);
    assert!(only_beta.0 == asked.0 && only_beta.1 < 1.0, "{only_beta:?}");
    // Until the next time they stay.
    assert_eq!(priors(learn(LearnAlpha::Symmetric, false), 15), symmetric);
    assert_ne!(priors(learn(LearnAlpha::Symmetric, false), 16), symmetric);

    // Through the hand-over of a warm-up, and into the model.
    let warm = options(SamplerKind::FPlusDoc, learn(LearnAlpha::Symmetric, true)).warm_up(12);
    let trainer = trained(&corpus, &warm, 13);
    let (alpha, beta) = trainer.priors();
    assert!(alpha.get(0) < 5.0 && beta < 1.0);
    let model = trainer.model();
    assert_eq!((model.alpha(), model.counts().unwrap().beta()), (&alpha, beta));
}

#[test]
fn what_does_not_go_together_is_refused() {
    let corpus = corpus(1);
    let base = options(SamplerKind::FPlus, learn(LearnAlpha::PerTopic, true));
    for (options, option) in [
        (base.clone().alpha_by_size(10.0), "alpha-by-size"),
        (base.clone().learn(Learn { every: 0, ..Learn::default() }), "learn-every"),
        (base.clone().alpha(vec![0.1; 8]).learn(learn(LearnAlpha::Symmetric, true)), "learn-alpha"),
    ] {
        let error = Trainer::new(&corpus, &options).map(|_| ()).unwrap_err();
        assert!(
            matches!(error, OptionsError::Value { option: found, .. } if found == option),
            "{error}"
        );
    }
}
