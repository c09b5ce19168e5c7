//! Seeded draws for the traffic model.

use lda_core::random::{Xoshiro256PlusPlus, mix};

/// Above this mean a Poisson draw is a rounded normal draw.
const MANY: f64 = 64.0;

/// A stream of random draws.
pub(super) struct Rng(Xoshiro256PlusPlus);

impl Rng {
    /// Stream `number` of a seed.
    pub fn new(seed: u64, number: u64) -> Self {
        Self(Xoshiro256PlusPlus::from_seed(mix(mix(seed) ^ number)))
    }

    /// Uniform in [0, 1).
    pub fn unit(&mut self) -> f64 {
        self.0.next_f64()
    }

    /// Uniform below `n`.
    pub fn below(&mut self, n: u32) -> u32 {
        self.0.below(n)
    }

    /// Bernoulli draw.
    pub fn happens(&mut self, probability: f64) -> bool {
        self.unit() < probability
    }

    /// Rounds `mean` up or down at random, so that the expectation is `mean`.
    pub fn round(&mut self, mean: f64) -> u64 {
        (mean + self.unit()).max(0.0) as u64
    }

    /// Standard normal by Box–Muller; the second value is dropped.
    pub fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.unit()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.unit()).cos()
    }

    /// Poisson draw.
    pub fn poisson(&mut self, mean: f64) -> u64 {
        if mean > MANY {
            return (mean + mean.sqrt() * self.normal() + 0.5).max(0.0) as u64;
        }
        let (end, mut product, mut count) = ((-mean).exp(), self.unit(), 0);
        while product > end {
            product *= self.unit();
            count += 1;
        }
        count
    }

    /// Geometric draw from 1 on with this mean.
    pub fn run(&mut self, mean: f64) -> u64 {
        if mean <= 1.0 {
            return 1;
        }
        let more = 1.0 - 1.0 / mean;
        1 + ((1.0 - self.unit()).ln() / more.ln()) as u64
    }

    /// Sum of `runs` geometric draws.
    pub fn runs(&mut self, runs: u64, mean: f64) -> u64 {
        if runs as f64 <= MANY {
            return (0..runs).map(|_| self.run(mean)).sum();
        }
        let spread = (runs as f64 * mean * (mean - 1.0)).sqrt();
        let all = runs as f64 * mean + spread * self.normal();
        (all + 0.5).max(runs as f64) as u64
    }

    /// Draws `count` distinct numbers below `below`, ascending.
    pub fn some(&mut self, count: u32, below: u32) -> Vec<u32> {
        if count.saturating_mul(8) < below {
            let mut some: Vec<u32> = Vec::with_capacity(count as usize);
            while some.len() < count as usize {
                let lacking = count as usize - some.len();
                some.extend((0..lacking).map(|_| self.0.below(below)));
                some.sort_unstable();
                some.dedup();
            }
            return some;
        }
        let mut left = count;
        let mut some = Vec::with_capacity(count as usize);
        for number in 0..below {
            if self.0.below(below - number) < left {
                some.push(number);
                left -= 1;
            }
        }
        some
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_have_their_means() {
        let mut rng = Rng::new(1, 2);
        let mut mean = |of: &mut dyn FnMut(&mut Rng) -> f64| {
            (0..40_000).map(|_| of(&mut rng)).sum::<f64>() / 40_000.0
        };
        for of in [0.3, 4.0, 900.0] {
            let found = mean(&mut |rng| rng.poisson(of) as f64);
            assert!((found / of - 1.0).abs() < 0.02, "{found} of {of}");
        }
        assert!((mean(&mut |rng| rng.run(1.25) as f64) - 1.25).abs() < 0.01);
        assert!((mean(&mut |rng| rng.runs(100, 1.25) as f64) - 125.0).abs() < 0.5);
        assert!((mean(&mut |rng| rng.round(2.3) as f64) - 2.3).abs() < 0.01);
    }

    #[test]
    fn some_numbers_ascend_and_are_as_many() {
        let mut rng = Rng::new(3, 0);
        for (count, below) in [(0, 9), (1, 1), (5, 8000), (7999, 8000), (8000, 8000), (3, 10)] {
            let some = rng.some(count, below);
            assert_eq!(some.len(), count as usize);
            assert!(some.is_sorted_by(|a, b| a < b) && some.iter().all(|&number| number < below));
        }
    }
}
