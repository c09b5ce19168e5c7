//! Converged-token exclusion (ZenLDA §5.1).
//!
//! A token that was sampled t times in a row and kept its topic, and has been left out for i epochs
//! since, is sampled with probability min{1, 2^(i−t)}; a change of topic sets both to 0. Settled
//! tokens are sampled less and less often, but each is sampled again after t epochs at most. The
//! paper does not say whether i continues when a token is sampled and stays; here it restarts at 0,
//! since otherwise no token would be left out for long.
//!
//! The driver of a run does this without the sampler's help: it builds a block of the tokens that are due,
//! while rows count all tokens. Cost: one byte per token, and a copy of the due tokens of each
//! block.
//!
//! **Biased.** Which tokens move depends on whether they moved before, so no law is preserved; the
//! bias has not been enumerated here. Use it to get a rough model quickly, not to sample from the
//! posterior.

use crate::counts::TopicIndex;
use crate::layout::RowRun;
use crate::random::Xoshiro256PlusPlus;
use crate::sampler::{GridBlock, Outcome};

/// How settled a token is, for converged-token exclusion (ZenLDA §5.1): the number of times t in a row that
/// it was sampled and kept its topic, and the number i of epochs since then that left it out. Both are 15 at
/// most. The age of a token that was not sampled yet is the default.
///
/// ```
/// use lda_core::random::{Purpose, StreamKey};
/// use lda_core::train::TokenAge;
///
/// let key = StreamKey { seed: 0, epoch: 1, pass: 0, block: 0, purpose: Purpose::Exclude };
/// let mut rng = key.stream();
/// let settled = TokenAge::default().sampled(false).sampled(false);
/// // It is due with probability 1/4; after two epochs without it, surely.
/// assert!(settled.skipped().skipped().is_due(&mut rng));
/// assert_eq!(settled.sampled(true), TokenAge::default());
/// ```
// t in the upper four bits, i in the lower four.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TokenAge(u8);

impl TokenAge {
    const MOST: u8 = 15;

    fn new(kept: u8, left_out: u8) -> Self {
        Self(kept.min(Self::MOST) << 4 | left_out.min(Self::MOST))
    }

    /// The byte that a checkpoint stores; every byte is valid.
    pub fn to_byte(self) -> u8 {
        self.0
    }

    /// Inverse of [`to_byte`](Self::to_byte).
    pub fn from_byte(byte: u8) -> Self {
        Self(byte)
    }

    fn kept(self) -> u8 {
        self.0 >> 4
    }

    fn left_out(self) -> u8 {
        self.0 & 0xf
    }

    /// Returns true with probability min{1, 2^(i−t)}: whether an epoch samples the token.
    pub fn is_due(self, rng: &mut Xoshiro256PlusPlus) -> bool {
        let exponent = self.kept().saturating_sub(self.left_out());
        exponent == 0 || rng.next_u64() >> (64 - exponent) == 0
    }

    /// The age after the token was sampled, and `changed` its topic or kept it.
    pub fn sampled(self, changed: bool) -> Self {
        if changed { Self::default() } else { Self::new(self.kept() + 1, 0) }
    }

    /// The age after an epoch that left the token out.
    pub fn skipped(self) -> Self {
        Self::new(self.kept(), self.left_out() + 1)
    }
}

/// Calls `sample` with the tokens of `block` that are due; `ages` is as long as the block.
pub(crate) fn sample_due<T: TopicIndex>(
    block: GridBlock<'_, T>,
    ages: &mut [TokenAge],
    rng: &mut Xoshiro256PlusPlus,
    sample: &mut dyn FnMut(GridBlock<'_, T>) -> Outcome,
) -> Outcome {
    let GridBlock { key, visits, partner, z, words, documents, tables } = block;
    let mut due = Vec::new();
    let mut due_visits = Vec::new();
    let mut start = 0;
    for &RowRun { row, end } in visits {
        for slot in start..end {
            let age = &mut ages[slot as usize];
            if age.is_due(rng) {
                due.push(slot);
            } else {
                *age = age.skipped();
            }
        }
        start = end;
        let end = due.len() as u32;
        if due_visits.last().map_or(0, |last: &RowRun| last.end) < end {
            due_visits.push(RowRun { row, end });
        }
    }
    let due_partner: Vec<u32> = due.iter().map(|&slot| partner[slot as usize]).collect();
    let mut due_z: Vec<T> = due.iter().map(|&slot| z[slot as usize]).collect();
    let outcome = sample(GridBlock {
        key,
        visits: &due_visits,
        partner: &due_partner,
        z: &mut due_z,
        words,
        documents,
        tables,
    });
    for (slot, new) in due.into_iter().zip(due_z) {
        let (old, age) = (&mut z[slot as usize], &mut ages[slot as usize]);
        *age = age.sampled(*old != new);
        *old = new;
    }
    outcome
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counts::{Density, Rows};
    use crate::sampler::BlockKey;

    #[test]
    fn a_token_is_due_half_as_often_each_time_it_stays() {
        let mut rng = Xoshiro256PlusPlus::from_seed(1);
        for kept in 0..=15 {
            for left_out in 0..=15 {
                let age = TokenAge::new(kept, left_out);
                let p = 2f64.powi(i32::from(left_out) - i32::from(kept)).min(1.0);
                let repeats = 40_000.0;
                let due = (0..40_000).filter(|_| age.is_due(&mut rng)).count() as f64;
                let error = (repeats * p * (1.0 - p)).sqrt();
                // Tolerance: six standard errors, plus three tokens for small expectations.
                assert!(
                    (due - repeats * p).abs() <= 6.0 * error + 3.0,
                    "{kept}, {left_out}: {due}"
                );
            }
        }
    }

    #[test]
    fn ages_follow_what_happened() {
        let age = TokenAge::default().sampled(false).sampled(false).skipped();
        assert_eq!((age.kept(), age.left_out()), (2, 1));
        let again = age.sampled(false);
        assert_eq!((again.kept(), again.left_out()), (3, 0));
        assert_eq!(age.sampled(true), TokenAge::default());
        let old = (0..100).fold(TokenAge::default(), |age, _| age.sampled(false));
        let waiting = (0..100).fold(old, |age, _| age.skipped());
        assert_eq!((waiting.kept(), waiting.left_out()), (15, 15));
    }

    /// Tokens that are not due are neither passed on nor changed.
    #[test]
    fn only_due_tokens_are_sampled() {
        let mut z: Vec<u16> = vec![1, 2, 3, 4, 5];
        let visits =
            [RowRun { row: 0, end: 2 }, RowRun { row: 3, end: 3 }, RowRun { row: 4, end: 5 }];
        let rows = || Rows::<u16>::new(10, [5].into_iter(), Density::Dense).expect("small");
        let (mut words, mut documents) = (rows(), rows());
        let block = GridBlock {
            key: BlockKey::default(),
            visits: &visits,
            partner: &[10, 11, 12, 13, 14],
            z: &mut z,
            words: &mut words,
            documents: &mut documents,
            tables: None,
        };
        // With probability 2⁻¹⁵; it does not happen with this seed.
        let settled = TokenAge::new(15, 0);
        let mut ages = [TokenAge::default(), settled, settled, settled, TokenAge::new(3, 3)];
        let mut rng = Xoshiro256PlusPlus::from_seed(1);
        sample_due(block, &mut ages, &mut rng, &mut |block| {
            assert_eq!(block.visits, [RowRun { row: 0, end: 1 }, RowRun { row: 4, end: 2 }]);
            assert_eq!(block.partner, [10, 14]);
            assert_eq!(block.z, [1, 5]);
            block.z[0] = 9;
            Outcome::default()
        });
        assert_eq!(z, [9, 2, 3, 4, 5]);
        let expected =
            [TokenAge::default(), TokenAge::new(15, 1), TokenAge::new(15, 1), TokenAge::new(15, 1)];
        assert_eq!(ages[..4], expected);
        assert_eq!(ages[4], TokenAge::new(4, 0));
    }
}
