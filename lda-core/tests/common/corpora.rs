//! Corpora for tests: real ones where they are at hand, made ones with known topics everywhere.

use std::path::PathBuf;

use lda_core::Corpus;
use lda_core::corpus::CorpusBuilder;
use lda_core::random::Xoshiro256PlusPlus;

/// The corpus of that name, or `None`, said aloud, where it is not on this machine: `LDA_CORPORA`,
/// or the folder beside the repository.
#[allow(clippy::print_stderr, reason = "a test that is skipped says so")]
pub(crate) fn real(name: &str) -> Option<Corpus> {
    let folder = std::env::var_os("LDA_CORPORA").map_or_else(
        || concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared/corpora").into(),
        PathBuf::from,
    );
    let path = folder.join(format!("docword.{name}.txt.gz"));
    if !path.exists() {
        eprintln!("skipped: {} is not here; set LDA_CORPORA", path.display());
        return None;
    }
    Some(Corpus::read(path).expect("a published file"))
}

/// A corpus drawn from the model itself.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Made {
    pub documents: usize,
    pub words: usize,
    pub topics: usize,
    /// Mean tokens a document; lengths are geometric, so short and long ones both occur.
    pub mean_length: u32,
    /// Dirichlet parameter of a document's topics.
    pub alpha: f64,
    /// Dirichlet parameter of a topic's words.
    pub beta: f64,
    pub seed: u64,
}

impl Made {
    /// The corpus, and the words' probabilities under each topic.
    pub(crate) fn make(&self) -> (Corpus, Vec<Vec<f64>>) {
        let mut rng = Xoshiro256PlusPlus::from_seed(self.seed);
        let phi: Vec<Vec<f64>> =
            (0..self.topics).map(|_| dirichlet(&mut rng, self.beta, self.words)).collect();
        let cumulative: Vec<Vec<f64>> = phi.iter().map(|p| running_sum(p)).collect();
        let mut builder = CorpusBuilder::new().num_words(self.words as u32);
        for _ in 0..self.documents {
            let theta = running_sum(&dirichlet(&mut rng, self.alpha, self.topics));
            let length = (-(1.0 - rng.next_f64()).ln() * f64::from(self.mean_length)).ceil() as u32;
            let tokens: Vec<u32> = (0..length.max(1))
                .map(|_| locate(&cumulative[locate(&theta, rng.next_f64())], rng.next_f64()) as u32)
                .collect();
            builder.push_tokens(&tokens).expect("ids are in range");
        }
        (builder.build().expect("there are tokens"), phi)
    }
}

fn running_sum(weights: &[f64]) -> Vec<f64> {
    weights
        .iter()
        .scan(0.0, |sum, w| {
            *sum += w;
            Some(*sum)
        })
        .collect()
}

/// The index at `u`, in [0, 1), of a running sum.
pub(crate) fn locate(cumulative: &[f64], u: f64) -> usize {
    let total = cumulative.last().expect("a law has cells");
    cumulative.partition_point(|&sum| sum <= u * total).min(cumulative.len() - 1)
}

/// Symmetric Dirichlet through gammas, on the logarithmic scale so that tiny shapes do not vanish.
fn dirichlet(rng: &mut Xoshiro256PlusPlus, shape: f64, n: usize) -> Vec<f64> {
    let logs: Vec<f64> = (0..n).map(|_| ln_gamma_variate(rng, shape)).collect();
    let max = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let sum: f64 = logs.iter().map(|l| (l - max).exp()).sum();
    logs.iter().map(|l| (l - max).exp() / sum).collect()
}

/// ln of a gamma variate (Marsaglia and Tsang 2000; shapes below 1 by Gamma(a) = Gamma(a + 1) U^(1/a)).
fn ln_gamma_variate(rng: &mut Xoshiro256PlusPlus, shape: f64) -> f64 {
    let boost = if shape < 1.0 { (1.0 - rng.next_f64()).ln() / shape } else { 0.0 };
    let d = if shape < 1.0 { shape + 1.0 } else { shape } - 1.0 / 3.0;
    let c = 1.0 / (9.0 * d).sqrt();
    loop {
        let (u, v) = (1.0 - rng.next_f64(), rng.next_f64());
        let normal = (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos();
        let cube = (1.0 + c * normal).powi(3);
        if cube > 0.0
            && (1.0 - rng.next_f64()).ln() < 0.5 * normal * normal + d * (1.0 - cube + cube.ln())
        {
            return boost + (d * cube).ln();
        }
    }
}
