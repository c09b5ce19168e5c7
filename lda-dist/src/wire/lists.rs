//! Several decoded rows in one buffer, without an allocation per row.

use super::{RowCode, Value, WireError};

/// Rows of (topic, value) in the order in which they were added.
#[derive(Clone, Debug)]
pub struct Lists<V> {
    entries: Vec<(u32, V)>,
    /// End of each row in `entries`.
    ends: Vec<usize>,
}

impl<V> Default for Lists<V> {
    fn default() -> Self {
        Self { entries: Vec::new(), ends: Vec::new() }
    }
}

impl<V: Value> Lists<V> {
    /// Removes all rows and keeps the memory.
    pub fn clear(&mut self) {
        self.entries.clear();
        self.ends.clear();
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Number of entries of all rows.
    pub fn entries(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Decodes one more row off the front of `from`, and returns it.
    ///
    /// # Errors
    /// [`WireError`] if the row is malformed; the rows and `from` are then unchanged.
    pub fn read(&mut self, code: RowCode, from: &mut &[u8]) -> Result<&[(u32, V)], WireError> {
        let start = self.entries.len();
        code.decode_behind(from, &mut self.entries)?;
        self.ends.push(self.entries.len());
        Ok(&self.entries[start..])
    }

    /// Decodes a further slice of the last row off the front of `from`, and appends it. `first` is
    /// the first topic of the slice, whose topics are numbered from 0.
    ///
    /// # Errors
    /// [`WireError`] if the slice is malformed; the rows and `from` are then unchanged.
    pub fn read_more(
        &mut self,
        code: RowCode,
        first: u32,
        from: &mut &[u8],
    ) -> Result<(), WireError> {
        let start = self.entries.len();
        code.decode_behind(from, &mut self.entries)?;
        self.entries[start..].iter_mut().for_each(|entry| entry.0 += first);
        if let Some(end) = self.ends.last_mut() {
            *end = self.entries.len();
        }
        Ok(())
    }

    /// The last row; empty if there is none.
    pub fn last_mut(&mut self) -> &mut [(u32, V)] {
        let start = self.ends.len().checked_sub(2).map_or(0, |before| self.ends[before]);
        &mut self.entries[start..]
    }

    /// Appends a row.
    pub fn push(&mut self, row: &[(u32, V)]) {
        self.entries.extend_from_slice(row);
        self.ends.push(self.entries.len());
    }

    /// Bytes allocated.
    pub fn memory(&self) -> usize {
        size_of::<(u32, V)>() * self.entries.capacity() + size_of::<usize>() * self.ends.capacity()
    }

    /// The rows, in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[(u32, V)]> {
        let mut start = 0;
        self.ends.iter().map(move |&end| &self.entries[std::mem::replace(&mut start, end)..end])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decoded_rows_come_back_in_order() {
        let code = RowCode::new(10);
        let rows: [&[(u32, u32)]; 3] = [&[(1, 2), (7, 1)], &[], &[(9, 300)]];
        let mut bytes = Vec::new();
        rows.iter().for_each(|row| code.encode(row, &mut bytes));
        let (mut lists, mut rest) = (Lists::<u32>::default(), &bytes[..]);
        for row in rows {
            assert_eq!(lists.read(code, &mut rest), Ok(row));
        }
        assert!(lists.iter().eq(rows) && lists.len() == 3 && !lists.is_empty());
        assert_eq!(lists.entries(), 3);
        assert_eq!(lists.read(code, &mut rest), Err(WireError::Truncated));
        assert_eq!(lists.len(), 3);
        lists.push(&[(0, 1)]);
        assert_eq!(lists.last_mut(), [(0, 1)]);
        assert_eq!(lists.read_more(code, 10, &mut &bytes[..]), Ok(()));
        assert_eq!(lists.last_mut(), [(0, 1), (11, 2), (17, 1)]);
        assert_eq!(lists.read_more(code, 10, &mut &[][..]), Err(WireError::Truncated));
        assert_eq!((lists.last_mut().len(), lists.len()), (3, 4));
        lists.push(&[(0, 1)]);
        lists.last_mut()[0].1 = 5;
        assert_eq!(lists.iter().last(), Some(&[(0, 5)][..]));
        lists.clear();
        assert!(lists.is_empty() && lists.last_mut().is_empty());
    }
}
