//! Counts of a run whose nodes are all in this process.

use std::ops::Range;

use lda_core::counts::TopicIndex;
use lda_core::eval::{Visit, WordCounts};

use super::{Documents, Role, Setup};

/// C_w of all servers and C_k, for a [`TopicModel`](lda_core::model::TopicModel).
#[derive(Clone, Debug, PartialEq)]
pub struct Gathered {
    topics: usize,
    totals: Vec<u64>,
    rows: Vec<Vec<(u32, u32)>>,
}

impl Gathered {
    /// Of the nodes of a run that is finished.
    pub fn new<T: TopicIndex, D: Documents>(setup: &Setup, nodes: &[Role<T, D>]) -> Self {
        let topics = setup.job.topics() as usize;
        let mut rows = vec![Vec::new(); setup.job.words() as usize];
        let mut totals = vec![0; topics];
        for node in nodes {
            if let Role::Server(server) = node
                && let Some(server) = server.rows()
            {
                server.for_each(|word, row| rows[word as usize] = row.to_vec());
            }
        }
        for &(topic, count) in rows.iter().flatten() {
            totals[topic as usize] += u64::from(count);
        }
        Self { topics, totals, rows }
    }
}

impl WordCounts for Gathered {
    fn num_topics(&self) -> usize {
        self.topics
    }

    fn num_words(&self) -> usize {
        self.rows.len()
    }

    fn topic_total(&self, topic: usize) -> u64 {
        self.totals[topic]
    }

    fn visit_words(&self, words: Range<usize>, visit: &mut Visit<'_>) {
        words.for_each(|word| visit(word, &self.rows[word]));
    }
}
