//! Beginnings of the texts of documents, which a reader keeps on request, for display.

/// Mark at the end of a text of which only the beginning is kept.
const ELLIPSIS: char = '…';

/// Largest number of bytes of all texts.
const MAX_BYTES: usize = 512 << 20;
/// Number of bytes of a text below which the limit is not halved.
const SHORT: usize = 32;

/// Texts of the documents so far, and that of the open one.
pub(super) struct KeptTexts {
    /// Largest number of bytes of a text, without the mark. It is halved where all texts together become
    /// too long.
    limit: usize,
    max_bytes: usize,
    /// Bytes of `texts`.
    bytes: usize,
    open: String,
    is_cut: bool,
    texts: Vec<String>,
}

impl KeptTexts {
    pub fn new(limit: usize) -> Self {
        let (open, texts) = (String::new(), Vec::new());
        Self { limit, max_bytes: MAX_BYTES, bytes: 0, open, is_cut: false, texts }
    }

    /// Adds the next part of the open text.
    pub fn push(&mut self, part: &str) {
        // Blanks at the beginning and the end are left out.
        let part = if self.open.is_empty() { part.trim_start() } else { part };
        if self.is_cut {
            return;
        }
        let room = self.limit - self.open.len();
        if part.len() <= room {
            self.open.push_str(part);
            return;
        }
        let (kept, rest) = part.split_at(boundary(part, room));
        self.open.push_str(kept);
        self.is_cut = !rest.trim().is_empty();
    }

    /// Ends a line, or a field of a table.
    pub fn end_line(&mut self) {
        if !self.open.is_empty() {
            self.push("\n");
        }
    }

    /// Ends the open text.
    pub fn end(&mut self) {
        let mut text = std::mem::take(&mut self.open);
        text.truncate(text.trim_end().len());
        if std::mem::take(&mut self.is_cut) {
            text.push(ELLIPSIS);
        }
        text.shrink_to_fit();
        self.bytes += text.len();
        self.texts.push(text);
        while self.bytes > self.max_bytes && self.limit > SHORT {
            self.halve();
        }
    }

    /// Halves the limit, and cuts all texts to it.
    fn halve(&mut self) {
        self.limit /= 2;
        self.bytes = 0;
        for text in &mut self.texts {
            if text.trim_end_matches(ELLIPSIS).len() > self.limit {
                text.truncate(boundary(text, self.limit));
                text.push(ELLIPSIS);
                text.shrink_to_fit();
            }
            self.bytes += text.len();
        }
    }

    /// Forgets the open text.
    pub fn clear(&mut self) {
        self.open.clear();
        self.is_cut = false;
    }

    pub fn finish(self) -> Vec<String> {
        self.texts
    }
}

/// The last place between two characters that is not after `at`.
fn boundary(text: &str, at: usize) -> usize {
    (0..=at.min(text.len())).rev().find(|&end| text.is_char_boundary(end)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_texts_together_have_a_limit() {
        let mut texts = KeptTexts { max_bytes: 10_000, ..KeptTexts::new(500) };
        for number in 0..300 {
            texts.push(&format!("{number} {}", "aé".repeat(number)));
            texts.end();
            assert!(texts.bytes <= texts.max_bytes || texts.limit <= SHORT);
            assert_eq!(texts.bytes, texts.texts.iter().map(String::len).sum::<usize>());
        }
        let texts = texts.finish();
        assert_eq!(texts.len(), 300);
        for (number, text) in texts.iter().enumerate() {
            assert!(text.starts_with(&number.to_string()), "{text}");
            let whole = format!("{number} {}", "aé".repeat(number));
            let kept = text.strip_suffix(ELLIPSIS);
            assert!(
                kept.map_or(*text == whole.trim_end(), |kept| whole.starts_with(kept)),
                "{text}"
            );
        }
    }

    #[test]
    fn texts_are_cut_between_characters() {
        let kept = |limit: usize, parts: &[&str]| {
            let mut texts = KeptTexts::new(limit);
            for part in parts {
                texts.push(part);
                texts.end_line();
            }
            texts.end();
            texts.finish().remove(0)
        };
        assert_eq!(kept(10, &["  a text  "]), "a text");
        assert_eq!(kept(10, &["", "one", "two"]), "one\ntwo");
        assert_eq!(kept(5, &["one", "two"]), "one\nt…");
        assert_eq!(kept(3, &["one"]), "one");
        assert_eq!(kept(3, &["one", ""]), "one");
        assert_eq!(kept(3, &["one", "two"]), "one…");
        assert_eq!(kept(3, &["aéé"]), "aé…");
        assert_eq!(kept(2, &["aé"]), "a…");
        assert_eq!(kept(1, &["é"]), "…");
        let mut texts = KeptTexts::new(9);
        texts.push("skipped");
        texts.clear();
        texts.push("kept");
        texts.end();
        texts.end();
        assert_eq!(texts.finish(), ["kept", ""]);
    }
}
