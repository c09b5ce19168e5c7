//! Names of documents.

/// Texts one after another, 8 bytes each beside their own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct DocumentNames {
    text: String,
    /// Name `d` ends before byte `ends[d]`.
    ends: Vec<u64>,
}

impl DocumentNames {
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    pub fn push(&mut self, name: &str) {
        self.text.push_str(name);
        self.ends.push(self.text.len() as u64);
    }

    /// # Panics
    /// If there is no name `d`.
    pub fn get(&self, d: usize) -> &str {
        let start = if d == 0 { 0 } else { self.ends[d - 1] };
        &self.text[start as usize..self.ends[d] as usize]
    }

    pub fn select(&self, kept: &[usize]) -> Self {
        let mut part = Self::default();
        kept.iter().for_each(|&d| part.push(self.get(d)));
        part
    }

    /// Removes the first `documents` names; `None` if there are not so many.
    pub fn take_first(&mut self, documents: usize) -> Option<Self> {
        if self.len() < documents || documents == 0 {
            return None;
        }
        let end = self.ends[documents - 1];
        let text = self.text[end as usize..].to_owned();
        let ends = self.ends[documents..].iter().map(|next| next - end).collect();
        let mut first = std::mem::replace(self, Self { text, ends });
        first.text.truncate(end as usize);
        first.ends.truncate(documents);
        Some(first)
    }

    pub fn memory(&self) -> usize {
        self.text.capacity() + 8 * self.ends.capacity()
    }

    /// The concatenated names and the end of each.
    pub fn parts(&self) -> (&str, &[u64]) {
        (&self.text, &self.ends)
    }

    /// Names from their [parts](Self::parts); `None` if the ends do not ascend, or are not character
    /// boundaries of UTF-8.
    pub fn from_parts(bytes: Vec<u8>, ends: Vec<u64>) -> Option<Self> {
        let text = String::from_utf8(bytes).ok()?;
        let divide = ends.is_sorted()
            && ends.last().map_or(0, |&end| end) == text.len() as u64
            && ends.iter().all(|&end| text.is_char_boundary(end as usize));
        divide.then_some(Self { text, ends })
    }
}
