//! An aggregate of the program: the entropy of each topic's words, computed by the servers on their
//! own rows. Only one number per topic travels to the master, not the rows.
//!
//! The entropy of topic k is ln C_k − (Σ_w C_wk ln C_wk) / C_k, in nats. Each server sums its words'
//! C_wk ln C_wk; the master adds the sums of all servers, and has C_k.
//!
//! ```text
//! cargo run -p lda-dist --example own_aggregate
//! ```

#![allow(clippy::print_stdout, reason = "an example shows its result")]

use lda_core::Corpus;
use lda_core::train::Flow;
use lda_dist::Distributed;
use lda_dist::aggregate::{Aggregate, Registry};

/// Σ_w C_wk ln C_wk and C_k of each topic.
#[derive(Debug)]
struct Entropy {
    sums: Vec<(f64, u64)>,
}

impl Entropy {
    fn of_topics(&self) -> impl Iterator<Item = f64> {
        self.sums.iter().map(|&(sum, tokens)| (tokens as f64).ln() - sum / tokens as f64)
    }
}

impl Aggregate for Entropy {
    fn add_row(&mut self, _slice: u16, _word: u32, row: &[(u32, u32)]) {
        for &(topic, count) in row {
            let (sum, tokens) = &mut self.sums[topic as usize];
            *sum += f64::from(count) * f64::from(count).ln();
            *tokens += u64::from(count);
        }
    }

    fn encode(&self, to: &mut Vec<u8>) {
        for (sum, tokens) in &self.sums {
            to.extend(sum.to_le_bytes());
            to.extend(tokens.to_le_bytes());
        }
    }

    fn merge(&mut self, from: &mut &[u8]) -> Option<()> {
        for (sum, tokens) in &mut self.sums {
            let (bytes, rest) = from.split_first_chunk::<16>()?;
            let (more_sum, more_tokens) = bytes.split_at(8);
            *sum += f64::from_le_bytes(more_sum.try_into().ok()?);
            *tokens = tokens.checked_add(u64::from_le_bytes(more_tokens.try_into().ok()?))?;
            *from = rest;
        }
        Some(())
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let corpus = Corpus::from_tokens(
        (0..200).map(|d| (0..30).map(move |i| d % 4 * 9 + i * i % (5 + d % 4))),
    )?;
    let registry = Registry::default()
        .register("entropy", |spec| Entropy { sums: vec![(0.0, 0); spec.topics() as usize] })?;
    let run = Distributed::topics(4).alpha(0.1).servers(3).workers(2).epochs(30).seed(1);
    run.aggregates(registry).train_reporting(&corpus, |epoch, report| {
        if let Some(entropy) = report.aggregate::<Entropy>("entropy") {
            let topics: Vec<String> =
                entropy.of_topics().map(|nats| format!("{nats:.3}")).collect();
            println!("epoch {}: entropy of topics {}", epoch.epoch, topics.join(" "));
        }
        Flow::Continue
    })?;
    Ok(())
}
