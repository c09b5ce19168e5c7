//! Selection of the documents of a page, and the topic of each of their words.
//!
//! The measure of how typical a document is of a topic is the number of its tokens of the topic
//! times the topic's share of the document. It is low for a text of three words, and for a long
//! text with a minor share of the topic.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use lda_core::Corpus;
use lda_core::corpus::Vocabulary;
use lda_core::infer::{Answer, Inference, Translation};
use lda_core::model::TopicModel;
use rayon::prelude::*;

use crate::commands::report::contents::Document;
use crate::commands::report::encode::{encode, gaps, push};

/// Minimum and maximum number of documents in the list of a topic.
const PER_TOPIC: std::ops::RangeInclusive<usize> = 10..=100;

/// Documents selected for a page.
#[derive(Debug)]
pub struct Chosen {
    /// Ascending.
    pub documents: Vec<usize>,
    /// (index in `documents`, share of the topic) by topic, most typical first.
    pub of_topics: Vec<Vec<(usize, f64)>>,
}

impl Chosen {
    /// Selects all documents, or of more than `limit` the most typical ones, with topics in turn: the
    /// first document of every topic, then the second, up to `limit`.
    pub fn new(inference: &Inference<&TopicModel>, answers: &[Answer], limit: usize) -> Self {
        let topics = inference.model().num_topics();
        let per_topic = (limit / topics.max(1)).clamp(*PER_TOPIC.start(), *PER_TOPIC.end());
        let typical = typical(answers, topics, per_topic);
        let documents: BTreeSet<usize> = if answers.len() <= limit {
            (0..answers.len()).collect()
        } else {
            let ranks =
                (0..per_topic).flat_map(|rank| typical.iter().map(move |list| list.get(rank)));
            let mut chosen = BTreeSet::new();
            for &document in ranks.flatten() {
                if chosen.len() == limit {
                    break;
                }
                chosen.insert(document);
            }
            chosen
        };
        let documents: Vec<usize> = documents.into_iter().collect();
        let places = |(topic, list): (usize, Vec<usize>)| {
            let place = |document: usize| {
                let place = documents.binary_search(&document).ok()?;
                Some((place, inference.theta(&answers[document], topic as u32)))
            };
            list.into_iter().filter_map(place).collect()
        };
        let of_topics = typical.into_iter().enumerate().map(places).collect();
        Self { documents, of_topics }
    }
}

/// The `n` most typical documents of each topic; at equal values, the lower number first.
fn typical(answers: &[Answer], topics: usize, n: usize) -> Vec<Vec<usize>> {
    let mut lists: Vec<Vec<(f64, Reverse<usize>)>> = vec![Vec::new(); topics];
    let prune = |list: &mut Vec<(f64, Reverse<usize>)>| {
        list.sort_unstable_by(|a, b| b.0.total_cmp(&a.0).then(b.1.cmp(&a.1)));
        list.truncate(n);
    };
    for (document, answer) in answers.iter().enumerate() {
        for &(topic, count) in &answer.counts {
            let list = &mut lists[topic as usize];
            list.push((count * count / answer.tokens as f64, Reverse(document)));
            // Sorting at twice the length keeps the amortized cost low.
            if list.len() >= 2 * n + 1000 {
                prune(list);
            }
        }
    }
    lists.iter_mut().for_each(prune);
    lists.into_iter().map(|list| list.into_iter().map(|(_, Reverse(d))| d).collect()).collect()
}

/// A document for display, with word ids of the model.
#[derive(Debug, PartialEq)]
pub struct Picked {
    number: usize,
    /// (topic, share), largest first.
    topics: Vec<(u32, f64)>,
    /// (word, index of its topic in `topics`, tokens), words ascending.
    words: Vec<(u32, usize, u32)>,
    /// Index in `words` of each token.
    order: Option<Vec<usize>>,
}

/// Source of the documents of a page.
pub struct Source<'a> {
    pub corpus: &'a Corpus,
    pub translation: &'a Translation,
    pub titles: Option<&'a Vocabulary>,
    pub texts: Option<&'a [String]>,
    pub inference: &'a Inference<&'a TopicModel>,
    pub answers: &'a [Answer],
}

impl Source<'_> {
    /// Reads documents with at most this many words each.
    pub fn pick(&self, documents: &[usize], most: usize) -> Vec<Picked> {
        documents.par_iter().map(|&document| self.pick_one(document, most)).collect()
    }

    fn pick_one(&self, number: usize, most: usize) -> Picked {
        let answer = &self.answers[number];
        let tokens: Option<Vec<u32>> = self.corpus.tokens(number).map(|tokens| {
            tokens.iter().filter_map(|&word| self.translation.word(word)).take(most).collect()
        });
        let shown: Vec<(u32, u32)> = match &tokens {
            Some(tokens) => count(tokens.clone()),
            None => {
                let pairs = self.corpus.document(number).iter();
                let known =
                    pairs.filter_map(|(word, tokens)| Some((self.translation.word(word)?, tokens)));
                let mut known: Vec<(u32, u32)> = known.collect();
                known.sort_unstable_by_key(|&(word, tokens)| (Reverse(tokens), word));
                known.truncate(most);
                known.sort_unstable();
                known
            }
        };
        let mut topics = self.inference.leading(answer);
        let theta = self.inference.distribution(answer);
        let best = best_topics(self.inference.model(), &theta, answer, &shown);
        let words: Vec<(u32, usize, u32)> = shown
            .iter()
            .zip(best)
            .map(|(&(word, tokens), topic)| {
                let known = topics.iter().position(|&(other, _)| other == topic);
                let place = known.unwrap_or_else(|| {
                    topics.push((topic, theta[topic as usize]));
                    topics.len() - 1
                });
                (word, place, tokens)
            })
            .collect();
        let place = |word: &u32| shown.partition_point(|&(other, _)| other < *word);
        let order = tokens.map(|tokens| tokens.iter().map(place).collect());
        Picked { number, topics, words, order }
    }

    /// Converts to the JSON of the page; `place` maps a word id to its index in the page.
    pub fn describe(&self, picked: &Picked, place: &impl Fn(u32) -> u32) -> Document {
        let Picked { number, topics, words, order } = picked;
        let number = *number;
        let answer = &self.answers[number];
        let mut word_codes = String::new();
        let gaps = gaps(words.iter().map(|&(word, ..)| place(word)));
        for (gap, &(_, topic, tokens)) in gaps.zip(words) {
            for number in [gap, topic as u64, u64::from(tokens)] {
                push(&mut word_codes, number);
            }
        }
        let title = self.titles.map(|titles| titles.word(number as u32).to_owned());
        Document {
            number,
            title: title.filter(|title| !title.is_empty()),
            text: self.texts.map(|texts| texts[number].clone()).filter(|text| !text.is_empty()),
            date: self.corpus.dates().map(|dates| dates[number].to_string()),
            tokens: answer.tokens,
            unknown: answer.unknown,
            topic_codes: encode(
                topics.iter().flat_map(|&(topic, share)| [u64::from(topic), thousandths(share)]),
            ),
            word_codes,
            order_codes: order.as_ref().map(|order| encode(order.iter().map(|&at| at as u64))),
        }
    }
}

impl Picked {
    /// Words of the document, ascending.
    pub fn words(&self) -> impl Iterator<Item = u32> {
        self.words.iter().map(|&(word, ..)| word)
    }
}

/// Rounds a share to thousandths.
pub fn thousandths(share: f64) -> u64 {
    (share * 1000.0).round() as u64
}

/// Distinct words, ascending, with their counts.
fn count(mut words: Vec<u32>) -> Vec<(u32, u32)> {
    words.sort_unstable();
    words.chunk_by(|a, b| a == b).map(|chunk| (chunk[0], chunk.len() as u32)).collect()
}

/// argmax_k θ_k φ_kw of each word, the lowest topic at equal values.
///
/// Compares the topics with an entry for the word, those with tokens in the document, and of all others
/// the best one by its floor. If that topic has an entry for the word, its value by the floor is too
/// low, but then it was compared as a topic with an entry already.
fn best_topics(
    model: &TopicModel,
    theta: &[f64],
    answer: &Answer,
    words: &[(u32, u32)],
) -> Vec<u32> {
    let better = |best: (u32, f64), topic: u32, weight: f64| {
        if weight > best.1 || (weight == best.1 && topic < best.0) { (topic, weight) } else { best }
    };
    let floors = (0..).zip(theta).map(|(k, share)| (k, share * model.floor(k as usize)));
    let anywhere = floors.fold((u32::MAX, -1.0), |best, (k, weight)| better(best, k, weight));
    let best = |&(word, _): &(u32, u32)| {
        let mut best = anywhere;
        model.for_each_phi(word as usize, |topic, phi| {
            best = better(best, topic, theta[topic as usize] * phi);
        });
        for &(topic, _) in &answer.counts {
            let phi = model.phi(topic as usize, word as usize);
            best = better(best, topic, theta[topic as usize] * phi);
        }
        best.0
    };
    words.iter().map(best).collect()
}

#[cfg(test)]
mod tests {
    use lda_core::corpus::CorpusBuilder;
    use lda_core::infer::Method;
    use lda_core::train::Lda;

    use super::*;
    use crate::commands::report::encode::decode;

    fn answer(counts: &[(u32, f64)]) -> Answer {
        let tokens = counts.iter().map(|pair| pair.1).sum::<f64>() as u64;
        Answer { counts: counts.to_vec(), tokens, unknown: 0 }
    }

    fn trained(topics: u32) -> (Corpus, TopicModel) {
        let mut builder = CorpusBuilder::new().keep_order();
        for d in 0..30u32 {
            builder.push_tokens((0..20).map(|i| (d % 3) * 5 + i * (d + 3) % 7)).unwrap();
        }
        let corpus = builder.build().unwrap();
        let lda = Lda::topics(topics).alpha(0.1).seed(2).epochs(30);
        let model = lda.train(&corpus, ()).unwrap().model;
        (corpus, model)
    }

    #[test]
    fn typical_are_tokens_and_share() {
        let answers = [
            answer(&[(0, 3.0)]),
            answer(&[(0, 20.0), (1, 180.0)]),
            answer(&[]),
            answer(&[(0, 15.0), (1, 5.0)]),
            answer(&[(0, 3.0)]),
        ];
        assert_eq!(typical(&answers, 3, 3), [vec![3, 0, 4], vec![1, 3], vec![]]);
    }

    #[test]
    fn topics_take_turns_and_all_documents_are_selected_below_the_limit() {
        let (corpus, model) = trained(3);
        let inference = Inference::new(&model, Method::FOLD_IN, 0).unwrap();
        let answers = inference.infer_corpus(&corpus);
        let all = Chosen::new(&inference, &answers, 30);
        assert_eq!(all.documents, (0..30).collect::<Vec<_>>());
        let few = Chosen::new(&inference, &answers, 5);
        assert_eq!(few.documents.len(), 5);
        for list in &few.of_topics {
            assert!(!list.is_empty());
            assert!(list.iter().all(|&(place, share)| place < 5 && share > 0.0 && share <= 1.0));
        }
        let none = Chosen::new(&inference, &answers, 0);
        assert!(none.documents.is_empty() && none.of_topics.iter().all(Vec::is_empty));
    }

    #[test]
    fn best_topics_equal_those_of_dense_weights() {
        let (corpus, model) = trained(9);
        let inference = Inference::new(&model, Method::FOLD_IN, 0).unwrap();
        let answers = inference.infer_corpus(&corpus);
        for (document, answer) in corpus.documents().zip(&answers) {
            let theta = inference.distribution(answer);
            let words: Vec<_> = document.iter().collect();
            let found = best_topics(&model, &theta, answer, &words);
            for (&(word, _), topic) in words.iter().zip(found) {
                let weight = |k: usize| theta[k] * model.phi(k, word as usize);
                let best = (0..9).map(weight).fold(0.0, f64::max);
                assert_eq!(weight(topic as usize), best);
            }
        }
    }

    #[test]
    fn documents_keep_their_order_and_are_cut() {
        let (corpus, model) = trained(3);
        let inference = Inference::new(&model, Method::FOLD_IN, 0).unwrap();
        let answers = inference.infer_corpus(&corpus);
        let translation = Translation::new(&corpus, &model).unwrap();
        let source = Source {
            corpus: &corpus,
            translation: &translation,
            titles: None,
            texts: None,
            inference: &inference,
            answers: &answers,
        };
        let picked = source.pick_one(4, 12);
        let order = picked.order.as_ref().unwrap();
        let words: Vec<u32> = order.iter().map(|&at| picked.words[at].0).collect();
        assert_eq!(words, corpus.tokens(4).unwrap()[..12]);
        assert_eq!(picked.words.iter().map(|word| word.2).sum::<u32>(), 12);
        let described = source.describe(&picked, &|word| word + 5);
        let codes = decode(&described.word_codes);
        assert_eq!(codes.len(), 3 * picked.words.len());
        assert_eq!(codes[0], u64::from(picked.words[0].0 + 5));
        assert_eq!(decode(&described.order_codes.unwrap()).len(), 12);
        assert_eq!((described.number, described.tokens), (4, 20));

        let bags = Corpus::from_pairs([vec![(3, 1), (0, 2), (5, 9)]]).unwrap();
        let answers = inference.infer_corpus(&bags);
        let source = Source { corpus: &bags, answers: &answers, ..source };
        let picked = source.pick_one(0, 2);
        let shown: Vec<_> = picked.words.iter().map(|word| (word.0, word.2)).collect();
        assert_eq!((shown, picked.order), (vec![(0, 2), (5, 9)], None));
    }
}
