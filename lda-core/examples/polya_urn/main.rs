//! Trains with a sampler of one's own: [`PolyaUrn`], in `sampler.rs`, implements the trait
//! [`Sampler`](lda_core::sampler::Sampler), and `Trainer::with_sampler` gives it all that the
//! library's samplers have: epochs, threads, reports, checks, checkpoints.
//!
//! ```sh
//! cargo run --release -p lda-core --example polya_urn
//! ```

mod sampler;

use lda_core::Corpus;
use lda_core::train::{EpochReport, Flow, Init, TrainOptions, Trainer};
use sampler::PolyaUrn;

#[allow(clippy::print_stdout, reason = "an example shows its result")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let themes = [["tree", "leaf", "wood", "root"], ["sea", "wave", "foam", "tide"]];
    let corpus = Corpus::from_words((0..200).map(|d| themes[d % 2]))?;
    let options = TrainOptions::new(2).alpha(0.1).beta(0.1).epochs(50);
    let sampler = PolyaUrn::default();
    let mut trainer = Trainer::with_sampler(&corpus, &options, sampler, Init::default())?;
    let report = |epoch: &EpochReport| {
        if epoch.log_joint.is_some() {
            println!("{epoch}");
        }
        Flow::Continue
    };
    trainer.run(report, || false);
    trainer.check()?;
    Ok(())
}
