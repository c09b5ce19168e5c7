//! Distances between topics, neighbours and a map, for models with too many topics for a matrix of all
//! pairs.
//!
//! [`TopicDistances`] takes time and memory for each pair of topics: 40 GB for 100,000 topics. Here a
//! topic is its [`LEADING`] most probable words, the probability that all words have (the floor), and a
//! rest, which counts as different in all topics:
//!
//! ```text
//! JSD(p, q) = 1 − Σ_w s(p_w, q_w) over the shared leading words and the floors,
//! s(a, b) = (a + b) / 2 − (a log2(2a / (a + b)) + b log2(2b / (a + b))) / 2
//! ```
//!
//! So a distance is too large by the words of the rests that two topics share. It is exact for topics with at
//! most as many words as are kept.
//!
//! * [`nearest`](ApproximateDistances::nearest) compares topics that share a leading word which is not
//!   common: words that lead more than 512 topics do not count there.
//! * [`map`](ApproximateDistances::map) places 512 topics by [`smacof`], and each other
//!   topic where its distances from those are best preserved (de Silva and Tenenbaum 2004, with the stress
//!   of SMACOF in place of their projection).
//!
//! # Cost
//! One pass over the entries of the model, and at most 2 KiB per topic. The page that
//! `lda report` writes about 100,000 topics of 50 words each took 44 CPU seconds of a virtual AMD EPYC
//! and 0.5 GB in all. Everything runs in the current rayon pool, with the same bits on any number of
//! threads.

use rayon::prelude::*;

use super::distance::TopicDistances;
use super::mds::{classical_scaling, smacof};
use crate::model::TopicModel;
use crate::random::Xoshiro256PlusPlus;

/// Number of words that are kept of a topic.
pub const LEADING: usize = 64;
/// Maximum number of topics that a word may lead, to count for neighbours.
const COMMON: usize = 512;
/// Number of topics that are placed by all their distances.
const LANDMARKS: usize = 512;
/// Candidates for each neighbour, whose distances are computed.
const CANDIDATES: usize = 4;
/// Iterations of the place of a topic that is no landmark.
const PLACE_ITERATIONS: u32 = 30;

/// Distances between the topics of a model by their leading words. See the [module](self).
///
/// ```
/// use lda_core::eval::ApproximateDistances;
/// use lda_core::model::{TopicModel, Weights};
///
/// let rows = [[0.5, 0.5, 0.0], [0.0, 0.0, 1.0], [0.5, 0.25, 0.25]];
/// let model = TopicModel::from_weights(Weights::from_rows(&rows)?, 0.1.into());
/// let distances = ApproximateDistances::new(&model);
/// assert!((distances.get(0, 1) - 1.0).abs() < 1e-6);
/// assert_eq!(distances.nearest(1)[0][0].0, 2);
/// # Ok::<(), lda_core::model::WeightsError>(())
/// ```
#[derive(Clone, Debug)]
pub struct ApproximateDistances {
    topics: Vec<Leading>,
    num_words: usize,
}

/// Leading words of a topic.
#[derive(Clone, Debug, Default)]
struct Leading {
    /// (word, φ − floor), words ascending.
    words: Vec<(u32, f32)>,
    /// Probability of all words together at the floor.
    floor: f32,
}

/// Topics by leading word.
struct Index {
    offsets: Vec<u32>,
    /// (number of the topic, φ − floor).
    topics: Vec<(u32, f32)>,
}

impl ApproximateDistances {
    /// Takes the leading words of each topic.
    pub fn new(model: &TopicModel) -> Self {
        let (num_words, num_topics) = (model.num_words(), model.num_topics());
        let mut found: Vec<Vec<(u32, f32)>> = vec![Vec::new(); num_topics];
        for word in 0..num_words {
            model.for_each_phi(word, |topic, phi| {
                let excess = (phi - model.floor(topic as usize)) as f32;
                let words = &mut found[topic as usize];
                if excess > 0.0 {
                    words.push((word as u32, excess));
                }
                if words.len() == 2 * LEADING {
                    shorten(words);
                }
            });
        }
        let topics = found.into_par_iter().enumerate().map(|(topic, mut words)| {
            shorten(&mut words);
            words.sort_unstable_by_key(|&(word, _)| word);
            words.shrink_to_fit();
            let floor = (model.floor(topic) * num_words as f64) as f32;
            Leading { words, floor }
        });
        Self { topics: topics.collect(), num_words }
    }

    /// Number of topics K.
    pub fn num_topics(&self) -> usize {
        self.topics.len()
    }

    /// Distance between two topics, 0 to 1.
    ///
    /// # Panics
    /// If a topic is not below K.
    pub fn get(&self, first: usize, second: usize) -> f64 {
        if first == second {
            return 0.0;
        }
        let (a, b) = (&self.topics[first], &self.topics[second]);
        let mut common = shared(a.floor, b.floor);
        let mut others = b.words.iter().peekable();
        for &(word, p) in &a.words {
            while others.next_if(|other| other.0 < word).is_some() {}
            if let Some(&(_, q)) = others.next_if(|other| other.0 == word) {
                common += shared(p, q);
            }
        }
        distance(common)
    }

    /// Up to `n` topics near each topic, nearest first; ties: lower topic first.
    pub fn nearest(&self, n: usize) -> Vec<Vec<(u32, f64)>> {
        let index = self.index(0..self.topics.len());
        let num_topics = self.topics.len();
        let of = |(scores, touched): &mut (Vec<f32>, Vec<u32>), topic: usize| {
            for &(word, p) in &self.topics[topic].words {
                let also = index.of(word);
                if also.len() > COMMON {
                    continue;
                }
                for &(other, q) in also {
                    if scores[other as usize] == 0.0 {
                        touched.push(other);
                    }
                    // The Bhattacharyya coefficient has no logarithm and about the same order. It is
                    // above 0, also where p q is not.
                    scores[other as usize] += p.sqrt() * q.sqrt();
                }
            }
            let mut candidates: Vec<(u32, f32)> = Vec::with_capacity(touched.len());
            for other in touched.drain(..) {
                let score = std::mem::take(&mut scores[other as usize]);
                if other as usize != topic {
                    candidates.push((other, score));
                }
            }
            candidates.sort_unstable_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
            candidates.truncate(CANDIDATES * n);
            let far = |(other, _)| (other, self.get(topic, other as usize));
            let mut near: Vec<(u32, f64)> = candidates.into_iter().map(far).collect();
            near.sort_unstable_by(|a, b| a.1.total_cmp(&b.1).then(a.0.cmp(&b.0)));
            near.truncate(n);
            near
        };
        let scratch = || (vec![0.0f32; num_topics], Vec::new());
        (0..num_topics).into_par_iter().map_init(scratch, of).collect()
    }

    /// A map: one point per topic, and the stress of the distances from the landmarks, which are random
    /// topics of a fixed seed (0 for a map without distortion). `iterations` as of [`smacof`].
    pub fn map(&self, iterations: u32) -> (Vec<[f64; 2]>, f64) {
        let all = self.topics.len();
        let landmarks = landmarks(all);
        let between =
            TopicDistances::from_fn(landmarks.len(), |i, j| self.get(landmarks[i], landmarks[j]));
        let mut fixed = classical_scaling(&between);
        smacof(&between, &mut fixed, iterations);
        let index = self.index(landmarks.iter().copied());
        let placed: Vec<([f64; 2], [f64; 2])> = (0..all)
            .into_par_iter()
            .map_init(Vec::new, |wanted, topic| {
                self.to_landmarks(topic, &landmarks, &index, wanted);
                let point = match landmarks.binary_search(&topic) {
                    Ok(at) => fixed[at],
                    Err(_) => place(wanted, &fixed),
                };
                (point, errors(point, wanted, &fixed))
            })
            .collect();
        let sum = |of: usize| placed.iter().map(|(_, errors)| errors[of]).sum::<f64>();
        let stress = if sum(1) > 0.0 { (sum(0) / sum(1)).sqrt() } else { 0.0 };
        (placed.into_iter().map(|(point, _)| point).collect(), stress)
    }

    /// Distances of a topic from all landmarks.
    fn to_landmarks(
        &self,
        topic: usize,
        landmarks: &[usize],
        index: &Index,
        wanted: &mut Vec<f64>,
    ) {
        let own = &self.topics[topic];
        wanted.clear();
        wanted.extend(landmarks.iter().map(|&other| shared(own.floor, self.topics[other].floor)));
        for &(word, p) in &own.words {
            for &(landmark, q) in index.of(word) {
                wanted[landmark as usize] += shared(p, q);
            }
        }
        for (wanted, &other) in wanted.iter_mut().zip(landmarks) {
            *wanted = if other == topic { 0.0 } else { distance(*wanted) };
        }
    }

    /// The index of these topics, which are numbered from 0.
    fn index(&self, topics: impl Iterator<Item = usize> + Clone) -> Index {
        let mut offsets = vec![0u32; self.num_words + 1];
        let words = |topic: usize| self.topics[topic].words.iter().copied();
        for (word, _) in topics.clone().flat_map(words) {
            offsets[word as usize + 1] += 1;
        }
        for word in 0..self.num_words {
            offsets[word + 1] += offsets[word];
        }
        let mut next = offsets.clone();
        let mut placed = vec![(0, 0.0); offsets[self.num_words] as usize];
        for (number, topic) in (0..).zip(topics) {
            for (word, p) in words(topic) {
                let at = &mut next[word as usize];
                placed[*at as usize] = (number, p);
                *at += 1;
            }
        }
        Index { offsets, topics: placed }
    }
}

impl Index {
    fn of(&self, word: u32) -> &[(u32, f32)] {
        let word = word as usize;
        &self.topics[self.offsets[word] as usize..self.offsets[word + 1] as usize]
    }
}

/// Up to [`LANDMARKS`] of so many topics, ascending.
fn landmarks(topics: usize) -> Vec<usize> {
    let mut rng = Xoshiro256PlusPlus::from_seed(0);
    let (mut chosen, mut wanted) = (Vec::new(), LANDMARKS.min(topics));
    for topic in 0..topics {
        if rng.next_f64() * ((topics - topic) as f64) < wanted as f64 {
            chosen.push(topic);
            wanted -= 1;
        }
    }
    chosen
}

/// Keeps the most probable words; ties: lower word first.
fn shorten(words: &mut Vec<(u32, f32)>) {
    if words.len() > LEADING {
        words.select_nth_unstable_by(LEADING, |a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        words.truncate(LEADING);
    }
}

/// The part of 1 that equal probabilities take from a divergence; 0 if one of them is.
fn shared(p: f32, q: f32) -> f64 {
    let (p, q) = (f64::from(p), f64::from(q));
    if p <= 0.0 || q <= 0.0 {
        return 0.0;
    }
    let both = p + q;
    let excess = |x: f64| x * (2.0 * x / both).log2();
    (both - excess(p) - excess(q)) / 2.0
}

/// The distance of topics that share so much; rounding may take it out of its range.
fn distance(common: f64) -> f64 {
    (1.0 - common).clamp(0.0, 1.0).sqrt()
}

/// The place of a point with these distances from fixed points: from the mean of the nearest three to a
/// minimum of the stress, by majorization.
fn place(wanted: &[f64], fixed: &[[f64; 2]]) -> [f64; 2] {
    let mut near: Vec<usize> = (0..fixed.len()).collect();
    let three = 3.min(near.len());
    near.sort_unstable_by(|&a, &b| wanted[a].total_cmp(&wanted[b]).then(a.cmp(&b)));
    let mean = |axis: usize| near[..three].iter().map(|&at| fixed[at][axis]).sum::<f64>();
    let mut point = [0, 1].map(|axis| mean(axis) / three as f64);
    for _ in 0..PLACE_ITERATIONS {
        let mut to = [0.0; 2];
        for (&[u, v], wanted) in fixed.iter().zip(wanted) {
            let (dx, dy) = (point[0] - u, point[1] - v);
            let found = (dx * dx + dy * dy).sqrt();
            let pull = if found > 1e-12 { wanted / found } else { 0.0 };
            to[0] += u + pull * dx;
            to[1] += v + pull * dy;
        }
        point = to.map(|sum| sum / fixed.len() as f64);
    }
    point
}

/// Sums of squares: of the errors of a point's distances, and of the wanted distances.
fn errors(point: [f64; 2], wanted: &[f64], fixed: &[[f64; 2]]) -> [f64; 2] {
    let (mut errors, mut squares) = (0.0, 0.0);
    for (&[u, v], wanted) in fixed.iter().zip(wanted) {
        let found = (point[0] - u).hypot(point[1] - v);
        errors += (found - wanted) * (found - wanted);
        squares += wanted * wanted;
    }
    [errors, squares]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Weights;

    /// Topics in groups that share words, each of at most `width` words.
    fn model(topics: usize, groups: usize, words: usize, width: usize) -> TopicModel {
        let mut rng = Xoshiro256PlusPlus::from_seed(5);
        let rows: Vec<Vec<f64>> = (0..topics)
            .map(|topic| {
                let mut row = vec![0.0; words];
                for _ in 0..width {
                    let at = (topic % groups) * words / groups;
                    let word = at + (rng.next_f64() * (words / groups) as f64) as usize;
                    row[word] += rng.next_f64() + 1e-3;
                }
                row
            })
            .collect();
        TopicModel::from_weights(Weights::from_rows(&rows).unwrap(), 0.1.into())
    }

    #[test]
    fn distances_of_short_topics_are_exact() {
        let model = model(40, 4, 200, 50);
        let (exact, found) =
            (TopicDistances::jensen_shannon(&model), ApproximateDistances::new(&model));
        for (i, j) in (0..40).flat_map(|i| (0..40).map(move |j| (i, j))) {
            assert!((exact.get(i, j) - found.get(i, j)).abs() < 1e-3, "{i}, {j}");
        }
        let near = found.nearest(5);
        assert_eq!(near.len(), 40);
        for (topic, near) in near.iter().enumerate() {
            let worst = exact.nearest(topic, 5).last().unwrap().1;
            assert_eq!(near.len(), 5);
            assert!(near.iter().all(|&(_, far)| far <= worst + 2e-3), "{topic}");
        }
    }

    #[test]
    fn longer_topics_are_farther_by_their_rests() {
        let model = model(30, 2, 2000, 600);
        let (exact, found) =
            (TopicDistances::jensen_shannon(&model), ApproximateDistances::new(&model));
        assert!(found.topics.iter().all(|topic| topic.words.len() == LEADING));
        for (i, j) in (0..30).flat_map(|i| (0..i).map(move |j| (i, j))) {
            assert!(found.get(i, j) >= exact.get(i, j) - 1e-3 && found.get(i, j) <= 1.0);
        }
    }

    #[test]
    fn topics_without_tokens_are_equal() {
        use crate::train::Lda;
        let corpus = crate::Corpus::from_tokens((0..30).map(|d| vec![d % 3, d % 3])).unwrap();
        let trained = Lda::topics(20).alpha(0.01).epochs(30).train(&corpus, ()).unwrap();
        let found = ApproximateDistances::new(&trained.model);
        let totals = trained.model.counts().unwrap().totals();
        let empty: Vec<usize> = (0..20).filter(|&topic| totals[topic] == 0).collect();
        assert!(empty.len() > 1 && found.get(empty[0], empty[1]) < 1e-3);
    }

    #[test]
    fn a_neighbour_is_named_once_whatever_its_probabilities() {
        // The product of two of these is 0 in single precision.
        let tiny = 1e-30;
        let rows = [[tiny, tiny, 1.0, 0.0], [tiny, tiny, 0.0, 1.0], [0.0, 1.0, 0.0, 0.0]];
        let model = TopicModel::from_weights(Weights::from_rows(&rows).unwrap(), 0.1.into());
        for (topic, near) in ApproximateDistances::new(&model).nearest(3).iter().enumerate() {
            let mut names: Vec<u32> = near.iter().map(|&(other, _)| other).collect();
            names.sort_unstable();
            let others: Vec<u32> = (0..3).filter(|&other| other as usize != topic).collect();
            assert_eq!(names, others, "of topic {topic}");
        }
    }

    #[test]
    fn groups_are_apart_on_the_map_of_many_topics() {
        let groups = 3;
        let model = model(1500, groups, 90, 20);
        let found = ApproximateDistances::new(&model);
        let (points, stress) = found.map(100);
        assert_eq!(points.len(), 1500);
        assert!(stress > 0.0 && stress < 0.5, "{stress}");
        let mean = |group: usize, axis: usize| {
            let own = points.iter().skip(group).step_by(groups);
            own.map(|point| point[axis]).sum::<f64>() / 500.0
        };
        let centres: Vec<[f64; 2]> =
            (0..groups).map(|group| [mean(group, 0), mean(group, 1)]).collect();
        let far = |a: [f64; 2], b: [f64; 2]| (a[0] - b[0]).hypot(a[1] - b[1]);
        for (topic, &point) in points.iter().enumerate() {
            let nearest = (0..groups)
                .min_by(|&a, &b| far(point, centres[a]).total_cmp(&far(point, centres[b])));
            assert_eq!(nearest, Some(topic % groups), "{topic}");
        }
    }

    #[test]
    fn threads_do_not_matter_and_few_topics_do_no_harm() {
        let model = model(700, 5, 300, 30);
        let on = |threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| {
                let found = ApproximateDistances::new(&model);
                (found.nearest(4), found.map(20))
            })
        };
        assert_eq!(on(1), on(3));
        let one = TopicModel::from_weights(Weights::from_rows(&[[1.0, 2.0]]).unwrap(), 0.1.into());
        let found = ApproximateDistances::new(&one);
        assert_eq!((found.nearest(3), found.map(9)), (vec![Vec::new()], (vec![[0.0; 2]], 0.0)));
    }
}
