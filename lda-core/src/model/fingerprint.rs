//! Fingerprint of a model.

use super::rows::Entries;
use super::{Parameters, TopicModel};
use crate::checksum::Xxh64;
use crate::corpus::read::TokenizerOptions;

impl TopicModel {
    /// Hash of everything that inference depends on: φ, α, the names of words and
    /// the rules by which texts are cut into them. Provenance and
    /// the form of storage are not included. The value is the same on every machine and does not
    /// change between versions (XXH64 of little-endian numbers). One pass over the entries.
    ///
    /// ```
    /// use lda_core::model::{TopicModel, Weights};
    ///
    /// let model = |alpha: f64| {
    ///     let weights = Weights::from_rows(&[[0.7, 0.2, 0.1], [0.1, 0.3, 0.6]])?;
    ///     Ok::<_, lda_core::model::WeightsError>(TopicModel::from_weights(weights, alpha.into()))
    /// };
    /// assert_eq!(model(0.1)?.fingerprint(), model(0.1)?.fingerprint());
    /// assert_ne!(model(0.1)?.fingerprint(), model(0.2)?.fingerprint());
    /// # Ok::<(), lda_core::model::WeightsError>(())
    /// ```
    pub fn fingerprint(&self) -> u64 {
        let mut hash = Xxh64::new();
        let words = self.num_words();
        let alpha = self.alpha.as_slice();
        for length in [self.num_topics(), words, alpha.len()] {
            hash.update(&(length as u64).to_le_bytes());
        }
        alpha.iter().for_each(|alpha| hash.update(&alpha.to_le_bytes()));
        match &self.parameters {
            Parameters::Counts(counts) => {
                hash.update(b"counts");
                hash.update(&counts.beta.to_le_bytes());
                (0..words).for_each(|word| row(&mut hash, counts.word(word), u32::to_le_bytes));
            }
            Parameters::Weights(weights) => {
                hash.update(b"weights");
                weights.floors.iter().for_each(|floor| hash.update(&floor.to_le_bytes()));
                (0..words).for_each(|word| row(&mut hash, weights.word(word), f32::to_le_bytes));
            }
        }
        if let Some(names) = self.vocabulary() {
            let (text, ends) = names.parts();
            ends.iter().for_each(|end| hash.update(&end.to_le_bytes()));
            hash.update(text.as_bytes());
            for (name, value) in
                names.tokenizer().map(TokenizerOptions::to_pairs).unwrap_or_default()
            {
                hash.update(name.as_bytes());
                hash.update(value.as_bytes());
            }
        }
        hash.digest()
    }
}

fn row<V: Copy>(hash: &mut Xxh64, entries: Entries<'_, V>, bytes: impl Fn(V) -> [u8; 4]) {
    hash.update(&(entries.len() as u64).to_le_bytes());
    for (topic, value) in entries.iter() {
        hash.update(&topic.to_le_bytes());
        hash.update(&bytes(value));
    }
}

#[cfg(test)]
mod tests {
    use super::super::Weights;
    use super::*;
    use crate::corpus::{Corpus, Vocabulary};
    use crate::train::{EpochReport, Flow, Lda};

    fn trained(beta: f64) -> TopicModel {
        let corpus = Corpus::from_words([["a", "b", "b"], ["c", "b", "a"]]).unwrap();
        let lda = Lda::topics(2).alpha(0.1).beta(beta).seed(1).epochs(2);
        lda.train(&corpus, |_: &EpochReport| Flow::Continue).unwrap().model
    }

    #[test]
    fn fingerprint_depends_on_everything_but_provenance() {
        let weights = |rows: &[[f64; 3]]| {
            TopicModel::from_weights(Weights::from_rows(rows).unwrap(), 0.1.into())
        };
        let names = |words: [&str; 3]| {
            let mut vocabulary = Vocabulary::new();
            words.iter().for_each(|word| assert!(vocabulary.push(word).is_ok()));
            Some(vocabulary)
        };
        let rows = [[0.7, 0.2, 0.1], [0.1, 0.3, 0.6]];
        let model = trained(0.1);
        let models = [
            weights(&rows),
            weights(&[rows[1], rows[0]]),
            weights(&rows).with_vocabulary(names(["a", "b", "c"])),
            weights(&rows).with_vocabulary(names(["a", "bc", ""])),
            trained(0.2),
            model.clone().with_vocabulary(None),
        ];
        let mut prints: Vec<u64> = models.iter().map(TopicModel::fingerprint).collect();
        let anonymous = model.clone().with_provenance(Default::default());
        assert_eq!(model.fingerprint(), anonymous.fingerprint());
        prints.push(model.fingerprint());
        prints.sort_unstable();
        prints.dedup();
        assert_eq!(prints.len(), 7);
        let pinned = weights(&rows).fingerprint();
        assert_eq!(
            pinned, 8_473_315_029_224_374_075,
            "pinned: services compare it across versions"
        );
    }

    #[test]
    fn fingerprint_survives_saving() {
        let model = trained(0.1);
        let mut file = std::io::Cursor::new(Vec::new());
        model.write_to(&mut file).unwrap();
        file.set_position(0);
        assert_eq!(TopicModel::read_from(file).unwrap().fingerprint(), model.fingerprint());
    }
}
