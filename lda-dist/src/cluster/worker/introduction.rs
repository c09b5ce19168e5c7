//! Introduction of a worker to a master that does not know it: word counts of its shards, and its readiness.

use lda_core::counts::TopicIndex;

use super::attempt::Attempt;
use super::{Failed, Port, Worker};
use crate::cluster::Documents;
use crate::cluster::control::Control;
use crate::cluster::epoch_range::EpochRange;
use crate::placement::DocumentLengths;
use crate::shard::Shard;

/// (word, tokens, documents) of each word, ascending.
type WordCounts = Vec<(u32, u64, u32)>;

impl<T: TopicIndex, D: Documents> Worker<T, D> {
    /// Sends the word counts of the shards to a master that does not have them, unless it has the statistics
    /// of the documents: from the shards' tokens if they are here, else from the documents.
    pub(super) fn introduce(&mut self, port: &mut dyn Port) -> Result<(), Failed> {
        if self.documents.statistics().is_none() {
            for shard in self.setup.shards(self.number) {
                self.send_words(shard, port)?;
            }
        }
        let in_memory =
            self.attempt.as_ref().map_or(EpochRange::default(), Attempt::epochs_in_memory);
        let attempt = self.attempt_number().max(self.over);
        self.link.introduce(attempt, in_memory, &self.setup, port);
        Ok(())
    }

    /// Sends the word counts of a shard to the master.
    pub(super) fn send_words(&mut self, shard: u16, port: &mut dyn Port) -> Result<(), Failed> {
        let found = self.shards().iter().find(|it| it.number() == shard).map(Shard::tokens);
        let (lengths, words) = match found {
            Some(tokens) => (tokens.document_lengths(), tokens.word_stats()),
            None => self.count_words(shard)?,
        };
        let word_stats: Result<Vec<(u32, u32, u32)>, _> = words
            .into_iter()
            .map(|(word, tokens, documents)| {
                u32::try_from(tokens).map(|tokens| (word, tokens, documents))
            })
            .collect();
        let word_stats = word_stats.map_err(|_| Failed::Documents {
            shard,
            why: "a word of more than 2^32 tokens: cut it into more shards".to_owned(),
        })?;
        let words = Control::Words { shard, lengths, word_stats };
        self.link.send(&words, &self.setup, port);
        Ok(())
    }

    /// Lengths of a shard's documents, and counts of its words.
    fn count_words(&self, shard: u16) -> Result<(DocumentLengths, WordCounts), Failed> {
        let failed = |why: String| Failed::Documents { shard, why };
        let (corpus, _) = self.documents.read(shard).map_err(|error| failed(error.to_string()))?;
        let words = self.setup.spec.words();
        if corpus.num_words() != words as usize {
            return Err(failed(format!("{} words for a job of {words}", corpus.num_words())));
        }
        let both = corpus.word_frequencies().into_iter().zip(corpus.document_frequencies());
        let there = (0..).zip(both).filter(|(_, (tokens, _))| *tokens > 0);
        let words = there.map(|(word, (tokens, documents))| (word, tokens, documents)).collect();
        Ok((DocumentLengths::of(&corpus), words))
    }
}
