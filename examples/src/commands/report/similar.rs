//! Similar topics: the map of all topics, and the topics near each topic.

use lda_core::eval::{ApproximateDistances, TopicDistances, classical_scaling, smacof};
use lda_core::model::TopicModel;

/// Iterations of the map's stress minimization.
const MAP_ITERATIONS: u32 = 300;
/// Number of similar topics listed per topic.
const NEAR: usize = 6;
/// Maximum number of topics whose distances are all computed: their matrix and the map take time and
/// memory that grow with the square of it. 2,000 topics take seconds and 100 MB.
const EXACT: usize = 2000;

/// Map and neighbours of the topics.
#[derive(Debug)]
pub struct Similar {
    /// (topic, distance) of the nearest topics, nearest first, by topic.
    pub near: Vec<Vec<(u32, f64)>>,
    /// Points of the map, by topic.
    pub points: Vec<[f64; 2]>,
    /// Stress of the map.
    pub stress: f64,
    /// Whether distances are by the leading words of the topics alone.
    pub is_approximate: bool,
}

impl Similar {
    /// Computes both.
    pub fn new(model: &TopicModel) -> Self {
        match model.num_topics() {
            0..=EXACT => Self::exact(model),
            _ => Self::approximate(model),
        }
    }

    fn exact(model: &TopicModel) -> Self {
        let distances = TopicDistances::jensen_shannon(model);
        let mut points = classical_scaling(&distances);
        let stress = smacof(&distances, &mut points, MAP_ITERATIONS);
        let near = (0..model.num_topics()).map(|topic| distances.nearest(topic, NEAR)).collect();
        Self { near, points, stress, is_approximate: false }
    }

    fn approximate(model: &TopicModel) -> Self {
        let distances = ApproximateDistances::new(model);
        let (points, stress) = distances.map(MAP_ITERATIONS);
        Self { near: distances.nearest(NEAR), points, stress, is_approximate: true }
    }
}
