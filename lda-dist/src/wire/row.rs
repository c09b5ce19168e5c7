//! Encoding of one row of counts or deltas.

use std::ops::Range;

use super::WireError;
use super::bits::{Reader, WINDOW, Writer};

/// Number of orders of the value code; the encoder takes the best.
const ORDERS: usize = 8;
/// Largest number of entries that is stored in the first byte.
const FEW: usize = 7;

/// Largest number of leading zeros in the code of a 32-bit number.
const MOST_ZEROS: u32 = 32;

/// Value of a row's entry: a count (`u32`) or a signed change (`i32`).
pub trait Value: Copy + Default {
    /// Maps the value to an unsigned number; 0, and nothing else, is mapped to 0.
    fn code(self) -> u32;
    /// Inverse of [`code`](Self::code); `None` if no value has this number.
    fn of(code: u32) -> Option<Self>;
}

impl Value for u32 {
    #[inline(always)]
    fn code(self) -> u32 {
        self
    }

    #[inline(always)]
    fn of(code: u32) -> Option<Self> {
        Some(code)
    }
}

/// Signed values, in zigzag order. -2³¹ cannot be encoded.
impl Value for i32 {
    #[inline(always)]
    fn code(self) -> u32 {
        // 1, −1, 2, −2 become 1, 2, 3, 4.
        let doubled = (self as u32).wrapping_shl(1);
        if self > 0 { doubled.wrapping_sub(1) } else { doubled.wrapping_neg() }
    }

    #[inline(always)]
    fn of(code: u32) -> Option<Self> {
        let half = (code / 2) as i32;
        if code % 2 == 1 { half.checked_add(1) } else { Some(-half) }
    }
}

/// Encoder and decoder of rows of K topics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowCode {
    topics: u32,
}

/// Form of an encoded row, and the order of the value code.
#[derive(Clone, Copy, Debug)]
enum Form {
    Empty,
    Sparse { order: u32 },
    Dense { order: u32 },
}

/// l: the largest number with `entries` · 2^l ≤ `room`, or 0.
#[inline(always)]
fn low_bits(entries: u64, room: u64) -> u32 {
    (room / entries.max(1)).checked_ilog2().unwrap_or(0)
}

/// Length of a number's code in bits.
const fn bits_of(number: u32, order: usize) -> u64 {
    let q = (number >> order) as u64 + 1;
    2 * q.ilog2() as u64 + 1 + order as u64
}

/// Numbers below this, nearly all that occur, have their code lengths in a table.
const SMALL: usize = 256;

/// Code lengths in bits, by number and order.
static BITS: [[u32; ORDERS]; SMALL] = {
    let mut bits = [[0; ORDERS]; SMALL];
    let mut number = 0;
    while number < SMALL {
        let mut order = 0;
        while order < ORDERS {
            bits[number][order] = bits_of(number as u32, order) as u32;
            order += 1;
        }
        number += 1;
    }
    bits
};

/// Number of entries whose code lengths add up to less than 2³².
const AT_ONCE: usize = 1 << 20;

/// Total length in bits of the codes of value − `by` for each order.
fn bits_of_all<V: Value>(row: &[(u32, V)], by: u32) -> [u64; ORDERS] {
    let mut all = [0; ORDERS];
    for some in row.chunks(AT_ONCE) {
        let mut sum = [0; ORDERS];
        for &(_, value) in some {
            let number = value.code() - by;
            match BITS.get(number as usize) {
                Some(bits) => (0..ORDERS).for_each(|order| sum[order] += bits[order]),
                None => (0..ORDERS).for_each(|order| sum[order] += bits_of(number, order) as u32),
            }
        }
        (0..ORDERS).for_each(|order| all[order] += u64::from(sum[order]));
    }
    all
}

/// The fewest bits and their order; the lowest order on a tie.
fn fewest(bits: [u64; ORDERS]) -> (u64, u32) {
    let each = bits.into_iter().zip(0..);
    each.min_by_key(|&(bits, _)| bits).expect("there is an order")
}

impl RowCode {
    /// A code for rows of K topics.
    ///
    /// # Panics
    /// If K is 0.
    pub fn new(topics: u32) -> Self {
        assert!(topics > 0, "rows without topics");
        Self { topics }
    }

    /// Appends the part of a row that is in a range of topics, encoded as a row of that many
    /// topics, which are numbered from 0. `part` is scratch memory.
    ///
    /// # Panics
    /// If the range is empty.
    pub fn encode_part<V: Value>(
        row: &[(u32, V)],
        topics: &Range<u32>,
        part: &mut Vec<(u32, V)>,
        to: &mut Vec<u8>,
    ) {
        let position = |topic| row.partition_point(|entry| entry.0 < topic);
        let own = &row[position(topics.start)..position(topics.end)];
        let code = Self::new(topics.end - topics.start);
        if topics.start == 0 {
            return code.encode(own, to);
        }
        part.clear();
        part.extend(own.iter().map(|&(topic, value)| (topic - topics.start, value)));
        code.encode(part, to);
    }

    /// Number of topics K.
    pub fn topics(self) -> u32 {
        self.topics
    }

    /// Exclusive upper bound of t_i − i.
    fn room(self, entries: u64) -> u64 {
        u64::from(self.topics) - entries + 1
    }

    /// The shortest form of a row, and its length in bits after the first byte.
    fn form<V: Value>(self, row: &[(u32, V)]) -> (Form, u64) {
        let Some(&(last, _)) = row.last() else { return (Form::Empty, 0) };
        let entries = row.len() as u64;
        let number = if row.len() > FEW { u64::from(entries.ilog2()) / 7 + 1 } else { 0 };
        let low = low_bits(entries, self.room(entries));
        let of_topics = entries * u64::from(low + 1) + ((u64::from(last) - (entries - 1)) >> low);
        let (of_values, order) = fewest(bits_of_all(row, 1));
        let sparse = of_values + of_topics + number * 8;
        // A dense row takes at least one bit per topic, so it cannot be shorter than a sparse row
        // of at most K bits.
        if sparse > self.topics.into() {
            let without = u64::from(self.topics) - entries;
            let mut bits = bits_of_all(row, 0);
            bits.iter_mut().zip(1..).for_each(|(bits, zero)| *bits += without * zero);
            let (dense, order) = fewest(bits);
            if dense < sparse {
                return (Form::Dense { order }, dense);
            }
        }
        (Form::Sparse { order }, sparse)
    }

    /// Length of an encoded row in bytes.
    ///
    /// # Panics
    /// See [`encode`](Self::encode).
    pub fn size<V: Value>(self, row: &[(u32, V)]) -> usize {
        self.check(row);
        1 + self.form(row).1.div_ceil(8) as usize
    }

    /// Panics if this is not a row of K topics.
    fn check<V: Value>(self, row: &[(u32, V)]) {
        let (mut next, mut is_row) = (0, true);
        for &(topic, value) in row {
            is_row &= u64::from(topic) >= next && value.code() > 0;
            next = u64::from(topic) + 1;
        }
        assert!(is_row && next <= self.topics.into(), "not a row of {} topics", self.topics);
    }

    /// Appends an encoded row to `to`.
    ///
    /// # Panics
    /// If topics do not ascend or are not below K, or if a value is 0 or -2³¹.
    pub fn encode<V: Value>(self, row: &[(u32, V)], to: &mut Vec<u8>) {
        self.check(row);
        match self.form(row).0 {
            Form::Empty => to.push(0),
            Form::Sparse { order } => self.encode_sparse(row, order, to),
            Form::Dense { order } => self.encode_dense(row, order, to),
        }
    }

    fn encode_sparse<V: Value>(self, row: &[(u32, V)], order: u32, to: &mut Vec<u8>) {
        let few = if row.len() <= FEW { row.len() } else { 0 };
        to.push(1 | (order as u8) << 2 | (few as u8) << 5);
        if few == 0 {
            let mut rest = row.len() as u64;
            while rest >= 0x80 {
                to.push(rest as u8 | 0x80);
                rest >>= 7;
            }
            to.push(rest as u8);
        }
        let entries = row.len() as u64;
        let low = low_bits(entries, self.room(entries));
        let mut writer = Writer::new(to);
        let places = || row.iter().zip(0..).map(|(entry, i)| u64::from(entry.0) - i);
        for place in places() {
            writer.put(place & ((1 << low) - 1), low);
        }
        let mut before = 0;
        for place in places() {
            writer.unary((place >> low) - before);
            before = place >> low;
        }
        for &(_, value) in row {
            put(&mut writer, value.code() - 1, order);
        }
        writer.finish();
    }

    fn encode_dense<V: Value>(self, row: &[(u32, V)], order: u32, to: &mut Vec<u8>) {
        to.push(2 | (order as u8) << 2);
        let mut writer = Writer::new(to);
        let mut next = 0;
        for &(topic, value) in row {
            (next..topic).for_each(|_| put(&mut writer, 0, order));
            put(&mut writer, value.code(), order);
            next = topic + 1;
        }
        (next..self.topics).for_each(|_| put(&mut writer, 0, order));
        writer.finish();
    }

    /// Decodes a row off the front of `from`. Its topics ascend and are below K, and no value is 0.
    ///
    /// # Errors
    /// [`WireError`] if the bytes are malformed; `row` is then empty and `from` unchanged.
    pub fn decode<V: Value>(
        self,
        from: &mut &[u8],
        row: &mut Vec<(u32, V)>,
    ) -> Result<(), WireError> {
        row.clear();
        self.decode_behind(from, row)
    }

    /// Decodes a row off the front of `from`, and appends it to `rows`.
    ///
    /// # Errors
    /// [`WireError`] if the bytes are malformed; `rows` and `from` are then unchanged.
    pub fn decode_behind<V: Value>(
        self,
        from: &mut &[u8],
        rows: &mut Vec<(u32, V)>,
    ) -> Result<(), WireError> {
        let before = rows.len();
        let read = self.read(from, rows);
        if read.is_err() {
            rows.truncate(before);
        }
        read
    }

    fn read<V: Value>(self, from: &mut &[u8], row: &mut Vec<(u32, V)>) -> Result<(), WireError> {
        let (&first, mut rest) = from.split_first().ok_or(WireError::Truncated)?;
        let (form, order, few) = (first & 3, u32::from(first >> 2 & 7), u64::from(first >> 5));
        let used = match (form, few) {
            (0, 0) if order == 0 => 0,
            (1, 0) => {
                let entries = number(&mut rest, 5)?;
                self.read_sparse(Reader(rest), entries, order, row)?
            }
            (1, _) => self.read_sparse(Reader(rest), few, order, row)?,
            (2, 0) => self.read_dense(Reader(rest), order, row)?,
            _ => return Err(WireError::Form { byte: first }),
        };
        // The readers do not check for the end, beyond which they see zeros: check it here.
        let bytes = usize::try_from(used.div_ceil(8)).map_err(|_| WireError::Truncated)?;
        *from = rest.get(bytes..).ok_or(WireError::Truncated)?;
        Ok(())
    }

    /// Decodes a sparse row, and returns the number of bits that it took.
    fn read_sparse<V: Value>(
        self,
        bits: Reader<'_>,
        entries: u64,
        order: u32,
        row: &mut Vec<(u32, V)>,
    ) -> Result<u64, WireError> {
        let topics = self.topics;
        if entries == 0 || entries > u64::from(topics) {
            return Err(WireError::Entries { entries, topics });
        }
        let low = low_bits(entries, self.room(entries));
        // The least number of bits per entry bounds the allocation by the length of the input.
        if entries * u64::from(low + 2 + order) > bits.len() {
            return Err(WireError::Truncated);
        }
        let before = row.len();
        row.resize(before + entries as usize, (0, V::default()));
        let row = &mut row[before..];
        let mask = (1u64 << low) - 1;
        let (mut low_at, mut at, mut high) = (0, entries * u64::from(low), 0);
        let (mut place, mut ascends) = (0, true);
        for (entry, i) in row.iter_mut().zip(0u64..) {
            let mut window = bits.window(at);
            while window == 0 {
                high += u64::from(WINDOW);
                at += u64::from(WINDOW);
                if at > bits.len() {
                    return Err(WireError::Truncated);
                }
                window = bits.window(at);
            }
            let zeros = u64::from(window.trailing_zeros());
            high += zeros;
            at += zeros + 1;
            let before = place;
            place = high << low | bits.window(low_at) & mask;
            ascends &= place >= before;
            // Only the last topic, the largest, is checked against K, after the loop.
            entry.0 = (place + i) as u32;
            low_at += u64::from(low);
        }
        if !ascends {
            return Err(WireError::Order);
        }
        let last = place + entries - 1;
        if last >= u64::from(topics) {
            return Err(WireError::Topic { topic: last, topics });
        }
        for entry in row.iter_mut() {
            let code = get(bits, &mut at, order)?.checked_add(1).ok_or(WireError::Number)?;
            entry.1 = V::of(code).ok_or(WireError::Number)?;
        }
        Ok(at)
    }

    /// Decodes a dense row, and returns the number of bits that it took.
    fn read_dense<V: Value>(
        self,
        bits: Reader<'_>,
        order: u32,
        row: &mut Vec<(u32, V)>,
    ) -> Result<u64, WireError> {
        if u64::from(self.topics) * u64::from(order + 1) > bits.len() {
            return Err(WireError::Truncated);
        }
        let mut at = 0;
        for topic in 0..self.topics {
            let code = get(bits, &mut at, order)?;
            if code > 0 {
                row.push((topic, V::of(code).ok_or(WireError::Number)?));
            }
        }
        Ok(at)
    }
}

/// Appends the code of a number.
#[inline(always)]
pub(super) fn put(writer: &mut Writer<'_>, number: u32, order: u32) {
    let q = u64::from(number >> order) + 1;
    let length = q.ilog2();
    writer.unary(u64::from(length));
    writer.put(q & ((1 << length) - 1), length);
    writer.put(u64::from(number) & ((1 << order) - 1), order);
}

/// Decodes a number at bit `at`, and moves `at` behind it.
#[inline(always)]
pub(super) fn get(bits: Reader<'_>, at: &mut u64, order: u32) -> Result<u32, WireError> {
    let mut window = bits.window(*at);
    let length = window.trailing_zeros();
    if length > MOST_ZEROS {
        let cut_off = *at + u64::from(MOST_ZEROS) >= bits.len();
        return Err(if cut_off { WireError::Truncated } else { WireError::Number });
    }
    *at += u64::from(length) + 1;
    window >>= length + 1;
    if 2 * length + 1 + order > WINDOW {
        window = bits.window(*at);
    }
    *at += u64::from(length + order);
    let q = 1 << length | window & ((1 << length) - 1);
    let low = window >> length & ((1 << order) - 1);
    u32::try_from((q - 1) << order | low).map_err(|_| WireError::Number)
}

/// Decodes a number of 7 bits per byte and at most `most` bytes off the front of `from`.
pub(super) fn number(from: &mut &[u8], most: u32) -> Result<u64, WireError> {
    let mut value = 0;
    for shift in (0..7 * most).step_by(7) {
        let (&byte, rest) = from.split_first().ok_or(WireError::Truncated)?;
        *from = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Ok(value);
        }
    }
    Err(WireError::Number)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    fn written<V: Value>(code: RowCode, row: &[(u32, V)]) -> Vec<u8> {
        let mut bytes = Vec::new();
        code.encode(row, &mut bytes);
        bytes
    }

    fn read<V: Value>(
        code: RowCode,
        mut bytes: &[u8],
    ) -> Result<(Vec<(u32, V)>, usize), WireError> {
        let mut row = vec![(9, V::default())];
        let result = code.decode(&mut bytes, &mut row);
        assert!(result.is_ok() || row.is_empty());
        result.map(|()| (row, bytes.len()))
    }

    /// Rows of all densities, with values of all sizes, and their number of topics.
    fn rows() -> impl Strategy<Value = (u32, Vec<(u32, u32)>)> {
        let topics = prop_oneof![Just(1), 2..40u32, 1000..9000u32, Just(1 << 20), Just(u32::MAX)];
        (topics, 0..200usize, 0..32u32).prop_flat_map(|(topics, len, bits)| {
            let value =
                (0..=bits, any::<u32>()).prop_map(|(bits, value)| (value >> (31 - bits)).max(1));
            let entries =
                prop::collection::btree_map(0..topics, value, 0..=len.min(topics as usize));
            (Just(topics), entries.prop_map(BTreeMap::into_iter).prop_map(Iterator::collect))
        })
    }

    proptest! {
        #[test]
        fn rows_come_back_from_the_computed_number_of_bytes((topics, row) in rows()) {
            let code = RowCode::new(topics);
            let mut bytes = written(code, &row);
            prop_assert_eq!(bytes.len(), code.size(&row));
            bytes.extend([0xff; 9]);
            prop_assert_eq!(read(code, &bytes), Ok((row, 9)));
        }

        #[test]
        fn the_shortest_form_is_taken((topics, row) in rows()) {
            prop_assume!(topics < 10_000 && !row.is_empty());
            let code = RowCode::new(topics);
            let forms = (0..ORDERS as u32).flat_map(|order| {
                let (mut sparse, mut dense) = (Vec::new(), Vec::new());
                code.encode_sparse(&row, order, &mut sparse);
                code.encode_dense(&row, order, &mut dense);
                [sparse.len(), dense.len()]
            });
            prop_assert_eq!(Some(code.size(&row)), forms.min());
        }

        #[test]
        fn deltas_come_back((topics, row) in rows(), signs: u64) {
            let code = RowCode::new(topics);
            let signed = |(i, &(topic, value)): (usize, &(u32, u32))| {
                let value = (value >> 1).max(1) as i32;
                (topic, if signs >> (i % 64) & 1 == 1 { -value } else { value })
            };
            let row: Vec<(u32, i32)> = row.iter().enumerate().map(signed).collect();
            let bytes = written(code, &row);
            prop_assert_eq!(bytes.len(), code.size(&row));
            prop_assert_eq!(read(code, &bytes), Ok((row, 0)));
        }

        #[test]
        fn a_truncated_row_is_refused((topics, row) in rows()) {
            let code = RowCode::new(topics);
            let bytes = written(code, &row);
            for len in 0..bytes.len() {
                prop_assert_eq!(read::<u32>(code, &bytes[..len]), Err(WireError::Truncated));
            }
        }

        #[test]
        fn any_bytes_decode_or_fail(bytes in prop::collection::vec(any::<u8>(), 0..60), topics in 1..300u32) {
            let code = RowCode::new(topics);
            if let Ok((row, _)) = read::<u32>(code, &bytes) {
                // `written` panics unless the decoded row is valid.
                let again = written(code, &row);
                prop_assert_eq!(read(code, &again), Ok((row, 0)));
            }
            if let Ok((row, _)) = read::<i32>(code, &bytes) {
                written(code, &row);
            }
        }
    }

    #[test]
    fn extreme_values_come_back() {
        let all: Vec<(u32, u32)> = (0..5000).map(|k| (k, k % 3 + 1)).collect();
        for (topics, row) in [
            (u32::MAX, vec![(0, 1), (u32::MAX - 1, u32::MAX)]),
            (1, vec![(0, u32::MAX)]),
            (5000, all),
            (1 << 20, vec![((1 << 20) - 1, 1)]),
            (7, vec![]),
        ] {
            let code = RowCode::new(topics);
            assert_eq!(read(code, &written(code, &row)), Ok((row, 0)));
        }
        let deltas = vec![(0, i32::MIN + 1), (1, i32::MAX), (2, -1)];
        let code = RowCode::new(3);
        assert_eq!(read(code, &written(code, &deltas)), Ok((deltas, 0)));
    }

    #[test]
    fn bytes_match_the_documented_format() {
        let code = RowCode::new(1000);
        assert_eq!(written::<u32>(code, &[]), [0]);
        // n = 1: l = 9 bits of 700, its upper part 1 as a zero and a one, and 1 − 1 = 0 as a one.
        let row = [(700, 1u32)];
        let bits: u16 = (700 % 512) | 0b10 << 9 | 1 << 11;
        assert_eq!(written(code, &row), [&[1 | 1 << 5][..], &bits.to_le_bytes()].concat());
        // Dense: 1, 0, 3 are "010", "1", "00100".
        let three = RowCode::new(3);
        let row = [(0, 1u32), (2, 3)];
        assert_eq!(read(three, &[2, 0b0100_1010, 0]), Ok((row.to_vec(), 0)));
    }

    #[test]
    fn malformed_rows_are_refused() {
        let code = RowCode::new(100);
        let error = |bytes: &[u8]| read::<u32>(code, bytes).unwrap_err();
        assert_eq!(error(&[]), WireError::Truncated);
        assert_eq!(error(&[3]), WireError::Form { byte: 3 });
        assert_eq!(error(&[4]), WireError::Form { byte: 4 });
        assert_eq!(error(&[2 | 1 << 5]), WireError::Form { byte: 0x22 });
        assert_eq!(error(&[1, 0]), WireError::Entries { entries: 0, topics: 100 });
        assert_eq!(error(&[1, 101]), WireError::Entries { entries: 101, topics: 100 });
        assert_eq!(error(&[1, 0xff, 0xff, 0xff, 0xff, 0xff]), WireError::Number);
        // One entry, l = 6: its upper part is 2, with lower bits of 63.
        assert_eq!(error(&[0x21, 0x3f, 0xff]), WireError::Topic { topic: 191, topics: 100 });
        assert_eq!(error(&[0x21, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]), WireError::Truncated);
    }

    #[test]
    #[should_panic(expected = "not a row of 10 topics")]
    fn topics_in_disorder_are_refused() {
        written(RowCode::new(10), &[(3, 1u32), (3, 1)]);
    }

    #[test]
    #[should_panic(expected = "not a row of 10 topics")]
    fn a_zero_is_refused() {
        written(RowCode::new(10), &[(3, 0u32)]);
    }
}
