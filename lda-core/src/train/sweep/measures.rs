//! Measures of one model.

use serde::{Deserialize, Serialize};

use super::SweepError;
use crate::corpus::Corpus;
use crate::eval::num_topics::{arun, cao_juan, deveaud};
use crate::eval::{
    CoherenceOptions, CompletionOptions, Measure, Phi, coherence_while, held_out_perplexity_while,
    leading_words,
};
use crate::model::TopicModel;
use crate::train::report::EpochReport;
use crate::train::trainer::Trainer;

/// Measures of a trained model. Those that need something that is not there are `None`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct ModelMeasures {
    /// Epochs of the run.
    pub epochs: u32,
    /// Seconds of sampling.
    pub seconds: f64,
    /// Log joint likelihood per token at the end. Not comparable between numbers of topics.
    pub log_joint_per_token: Option<f64>,
    /// Perplexity of held-out documents by document completion, with the same halves for all models.
    pub perplexity: Option<f64>,
    /// Mean C_V of the topics in windows of 110 tokens of the corpus; `None` without token order.
    pub c_v: Option<f64>,
    /// Mean C_NPMI of the topics in windows of 10 tokens, or in whole documents without token order.
    pub npmi: Option<f64>,
    /// Mean U_Mass of the topics, the coherence of Mimno, Wallach, Talley, Leenders and McCallum 2011.
    pub u_mass: Option<f64>,
    /// Mean exclusivity of the top words ([`TopicDiagnostics`](crate::eval::TopicDiagnostics)) over
    /// topics with tokens. `None` of a single topic, which has every word for itself.
    pub exclusivity: Option<f64>,
    /// Share of distinct words among all top words.
    pub diversity: f64,
    /// [`cao_juan`](crate::eval::num_topics::cao_juan) of the model.
    pub cao_juan: Option<f64>,
    /// [`deveaud`](crate::eval::num_topics::deveaud) of the model.
    pub deveaud: Option<f64>,
    /// [`arun`](crate::eval::num_topics::arun) of the model.
    pub arun: Option<f64>,
}

/// Measures the model of a finished run, in the current rayon pool.
pub(super) fn measure(
    trainer: &Trainer<&Corpus>,
    model: &TopicModel,
    last: &EpochReport,
    held_out: Option<&Corpus>,
    words: usize,
    go_on: &(dyn Fn() -> bool + Sync),
) -> Result<ModelMeasures, SweepError> {
    let corpus = trainer.corpus();
    let diagnostics = trainer.diagnose(words);
    let used = diagnostics.topics.iter().filter(|topic| topic.tokens > 0);
    let exclusivities: Vec<f64> = used.map(|topic| topic.exclusivity).collect();
    let perplexity = held_out.map(|documents| {
        let phi = Phi::from_model(model).expect("beta was checked");
        let options = CompletionOptions::default();
        held_out_perplexity_while(documents, &phi, model.alpha(), &options, go_on)
    });
    let lists = leading_words(model, words);
    let mean = |measure| -> Result<Option<f64>, SweepError> {
        let options = CoherenceOptions::fitting(measure, corpus);
        Ok(coherence_while(corpus, &lists, &options, go_on)?.mean())
    };
    Ok(ModelMeasures {
        epochs: last.epoch,
        seconds: last.seconds,
        log_joint_per_token: last.log_joint_per_token(),
        perplexity: perplexity.transpose()?.map(|found| found.perplexity()),
        c_v: if corpus.has_token_order() { mean(Measure::Cv)? } else { None },
        npmi: mean(Measure::Npmi)?,
        u_mass: mean(Measure::UMass)?,
        exclusivity: mean_of(&exclusivities).filter(|_| model.num_topics() > 1),
        diversity: diagnostics.diversity,
        cao_juan: cao_juan(model),
        deveaud: deveaud(model),
        arun: arun(model, corpus, &trainer.assignments()),
    })
}

/// Mean; `None` without values.
pub(super) fn mean_of(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}
