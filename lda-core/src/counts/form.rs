//! Storage forms of a row of counts, and positions of rows.

use crate::counts::topic::TopicIndex;
use crate::simd::LANES;

/// Storage form of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// List of (topic, count).
    Sparse = 0,
    /// K counts of 16 bits.
    Dense16 = 1,
    /// K counts of 32 bits.
    Dense32 = 2,
}

/// Rule that decides when a row is dense.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Density {
    /// Dense if that takes little more memory than the sparse form.
    Auto,
    /// Always dense.
    Dense,
}

/// Cache lines per row by which dense counts may exceed a list: they are faster for small K.
const LINES_FOR_SPEED: u64 = 2;

impl Form {
    /// The form of a row of up to `tokens` tokens over `topics` topics.
    pub fn of<T: TopicIndex>(topics: usize, tokens: u64, density: Density) -> Self {
        let entries = (topics as u64).min(tokens) + 1;
        let sparse = entries.div_ceil(LANES as u64) * T::LINES as u64;
        let wide = if tokens < 1 << 16 { Self::Dense16 } else { Self::Dense32 };
        let dense = wide.dense_lines(topics) as u64;
        // An entry of 16-bit topics counts to 65,535.
        let must = T::LINES == 1 && tokens >= 1 << 16;
        let little = dense <= sparse + LINES_FOR_SPEED;
        if must || density == Density::Dense || little { wide } else { Self::Sparse }
    }

    /// Cache lines of a dense row.
    pub(super) fn dense_lines(self, topics: usize) -> usize {
        match self {
            Self::Dense16 => topics.div_ceil(2 * LANES),
            _ => topics.div_ceil(LANES),
        }
    }

    /// The form and the number of cache lines of a row.
    pub(super) fn with_lines<T: TopicIndex>(
        topics: usize,
        tokens: u64,
        density: Density,
    ) -> (Self, usize) {
        let form = Self::of::<T>(topics, tokens, density);
        let lines = match form {
            Self::Sparse => {
                ((topics as u64).min(tokens) + 1).div_ceil(LANES as u64) as usize * T::LINES
            }
            dense => dense.dense_lines(topics),
        };
        (form, lines)
    }
}

/// Position and form of a row: two bits of form, thirty bits of line number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place(u32);

const PLACE_BITS: u32 = 30;

impl Place {
    pub(super) fn new(form: Form, line: usize) -> Option<Self> {
        (line < 1 << PLACE_BITS).then_some(Self((form as u32) << PLACE_BITS | line as u32))
    }

    #[inline(always)]
    pub(super) fn form(self) -> Form {
        match self.0 >> PLACE_BITS {
            0 => Form::Sparse,
            1 => Form::Dense16,
            _ => Form::Dense32,
        }
    }

    #[inline(always)]
    pub(super) fn line(self) -> usize {
        (self.0 & ((1 << PLACE_BITS) - 1)) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn form_follows_memory_and_width() {
        assert_eq!(Form::of::<u16>(1000, 100, Density::Auto), Form::Sparse);
        assert_eq!(Form::of::<u16>(100, 40, Density::Auto), Form::Dense16);
        assert_eq!(Form::of::<u16>(1000, 600, Density::Auto), Form::Dense16);
        assert_eq!(Form::of::<u16>(1000, 70_000, Density::Auto), Form::Dense32);
        assert_eq!(Form::of::<u32>(1_000_000, 70_000, Density::Auto), Form::Sparse);
        assert_eq!(Form::of::<u16>(1000, 1, Density::Dense), Form::Dense16);
    }
}
