//! Encoding of histograms of counts, from which priors are learnt.
//!
//! ```text
//! number of counts (8 bytes) and of sums (8); for each count its topic, the count and its occurrences, and
//! for each sum the sum and its occurrences: 7 bits per byte, lowest first, the highest bit 1 except in the
//! last byte of a number
//! ```

use lda_core::prior::learn::CountHistograms;

use super::take;

/// Largest number of occurrences of all counts together, so that sums do not overflow.
pub(crate) const MAX_OCCURRENCES: u64 = 1 << 48;

/// Appends histograms.
pub(crate) fn put_histograms(histograms: &CountHistograms, to: &mut Vec<u8>) {
    let (counts, sums) = (histograms.counts().count(), histograms.sums().count());
    to.extend((counts as u64).to_le_bytes());
    to.extend((sums as u64).to_le_bytes());
    for (topic, count, times) in histograms.counts() {
        [topic.into(), count.into(), times].into_iter().for_each(|number| put_number(number, to));
    }
    for (sum, times) in histograms.sums() {
        put_number(sum, to);
        put_number(times, to);
    }
}

/// Decodes histograms off the front of `from`, and adds them to others of so many topics. Returns the number of
/// occurrences, at most [`MAX_OCCURRENCES`]; `None` if the bytes are malformed, and then the histograms are
/// unspecified.
#[must_use]
pub(crate) fn add_histograms(
    topics: u32,
    from: &mut &[u8],
    to: &mut CountHistograms,
) -> Option<u64> {
    let (counts, sums) = (u64::from_le_bytes(take(from)?), u64::from_le_bytes(take(from)?));
    let (mut all, mut of_sums) = (0u64, 0u64);
    let add = |all: &mut u64, times: u64| {
        *all = all.checked_add(times)?;
        (times > 0 && *all <= MAX_OCCURRENCES).then_some(())
    };
    for _ in 0..counts {
        let (topic, count) =
            (u32::try_from(take_number(from)?).ok()?, u32::try_from(take_number(from)?).ok()?);
        let times = take_number(from)?;
        if topic >= topics || count == 0 {
            return None;
        }
        add(&mut all, times)?;
        to.add(topic, count, times);
    }
    for _ in 0..sums {
        let (sum, times) = (take_number(from)?, take_number(from)?);
        if sum == 0 {
            return None;
        }
        add(&mut of_sums, times)?;
        to.add_sum(sum, times);
    }
    Some(all)
}

/// Appends a number: 7 bits per byte, lowest first, the highest bit 1 except in the last byte.
pub(crate) fn put_number(mut number: u64, to: &mut Vec<u8>) {
    while number > 0x7f {
        to.push(number as u8 | 0x80);
        number >>= 7;
    }
    to.push(number as u8);
}

/// Takes a number off the front; `None` if the bytes are malformed.
pub(crate) fn take_number(from: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let [byte] = take(from)?;
        let part = u64::from(byte & 0x7f);
        number |= part.checked_shl(shift).filter(|bits| bits >> shift == part)?;
        if byte < 0x80 {
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn numbers_are_read_as_written(numbers in prop::collection::vec(any::<u64>(), 0..9)) {
            let mut bytes = Vec::new();
            for (shift, &number) in numbers.iter().enumerate() {
                put_number(number >> (7 * shift), &mut bytes);
            }
            let mut rest = &bytes[..];
            for (shift, &number) in numbers.iter().enumerate() {
                prop_assert_eq!(take_number(&mut rest), Some(number >> (7 * shift)));
            }
            prop_assert!(rest.is_empty());
        }

        #[test]
        fn histograms_add_up(
            rows in prop::collection::vec(prop::collection::vec((0..3u32, 1..200u32), 0..5), 0..30),
            half in 0..30usize,
        ) {
            let (mut all, mut found) = (CountHistograms::per_topic(3), CountHistograms::per_topic(3));
            rows.iter().for_each(|row| all.add_row(row));
            let (first, second) = rows.split_at(half.min(rows.len()));
            for rows in [first, second] {
                let (mut part, mut bytes) = (CountHistograms::per_topic(3), Vec::new());
                rows.iter().for_each(|row| part.add_row(row));
                put_histograms(&part, &mut bytes);
                let mut rest = &bytes[..];
                let occurrences = rows.iter().map(|row| row.len() as u64).sum::<u64>();
                prop_assert_eq!(add_histograms(3, &mut rest, &mut found), Some(occurrences));
                prop_assert!(rest.is_empty());
                for cut in 0..bytes.len() {
                    let mut other = CountHistograms::per_topic(3);
                    prop_assert_eq!(add_histograms(3, &mut &bytes[..cut], &mut other), None);
                }
            }
            all.merge();
            found.merge();
            prop_assert_eq!(all, found);
        }

        #[test]
        fn any_bytes_are_histograms_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            let mut found = CountHistograms::per_topic(3);
            let _ = add_histograms(3, &mut &bytes[..], &mut found);
        }
    }
}
