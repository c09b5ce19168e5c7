//! Rows one behind the other in one piece of memory: those of a message, without an allocation each.

use super::{RowCode, Value, WireError};

/// Rows, in the order that they were read.
#[derive(Clone, Debug)]
pub struct Lists<V> {
    entries: Vec<(u32, V)>,
    /// Where each row ends.
    ends: Vec<usize>,
}

impl<V> Default for Lists<V> {
    fn default() -> Self {
        Self { entries: Vec::new(), ends: Vec::new() }
    }
}

impl<V: Value> Lists<V> {
    /// Takes all rows away.
    pub fn clear(&mut self) {
        self.entries.clear();
        self.ends.clear();
    }

    /// How many rows there are.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// How many topics all of them have.
    pub fn entries(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Reads one more row from the front of `from`, and takes it off; gives it back.
    ///
    /// # Errors
    /// [`WireError`], and then nothing has changed.
    pub fn read(&mut self, code: RowCode, from: &mut &[u8]) -> Result<&[(u32, V)], WireError> {
        let start = self.entries.len();
        code.decode_behind(from, &mut self.entries)?;
        self.ends.push(self.entries.len());
        Ok(&self.entries[start..])
    }

    /// Reads what else the row that came last has, behind what it has: topics count from `first` on.
    ///
    /// # Errors
    /// [`WireError`], and then nothing has changed.
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

    /// The row that came last.
    pub fn last_mut(&mut self) -> &mut [(u32, V)] {
        let start = self.ends.len().checked_sub(2).map_or(0, |before| self.ends[before]);
        &mut self.entries[start..]
    }

    /// One more row.
    pub fn push(&mut self, row: &[(u32, V)]) {
        self.entries.extend_from_slice(row);
        self.ends.push(self.entries.len());
    }

    /// Bytes held.
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
    fn rows_are_those_of_the_bytes() {
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
