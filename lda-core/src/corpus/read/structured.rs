//! Text that is data rather than prose: JSON, tables, Vowpal Wabbit, GibbsLDA++.
//!
//! Read as plain text, keys, headers and labels would become words of the documents, and counts
//! after a colon would be lost. JSON lines and tables have readers; the other files are refused, with
//! what to do. `format` = text reads them as they are.

use super::detect::{Sample, is_number};

/// A kind of data.
pub(super) struct Kind {
    /// Its name, with an article.
    pub name: &'static str,
    /// How to get documents from it.
    pub remedy: &'static str,
    is: fn(&Sample<'_>) -> bool,
}

/// All kinds, in the order in which they are tried.
static KINDS: [Kind; 3] = [
    Kind {
        name: "JSON",
        remedy: "write JSON lines, one object per line, for example with `jq -c '.[]'`",
        is: is_json,
    },
    Kind { name: "Vowpal Wabbit", remedy: "convert it to SVMlight or UCI", is: is_vowpal_wabbit },
    Kind {
        name: "a GibbsLDA++ file, whose first line is the number of documents",
        remedy: "remove that line",
        is: is_gibbs_lda,
    },
];

/// Names of columns by which a table without a telling file name is recognised.
const COLUMNS: [&str; 14] = [
    "id", "text", "title", "label", "body", "content", "date", "author", "category", "abstract",
    "class", "target", "review", "url",
];

/// The kind of a text that is data; `None` if it may be prose.
pub(super) fn recognise(sample: &Sample<'_>) -> Option<&'static Kind> {
    KINDS.iter().find(|kind| (kind.is)(sample))
}

/// Whether each line is an object.
pub(super) fn is_json_lines(sample: &Sample<'_>) -> bool {
    let is_object = |line: &&[u8]| match line.trim_ascii() {
        [b'{', inner @ .., b'}'] => matches!(inner.trim_ascii(), [b'"', ..] | []),
        _ => false,
    };
    match &sample.lines[..] {
        [] => false,
        // A first line that is longer than the sample.
        [line] if !sample.is_whole() => is_json(sample) && !line.trim_ascii().starts_with(b"["),
        lines => lines.iter().all(is_object),
    }
}

/// Whether the text begins as an object, or as an array of objects or strings.
fn is_json(sample: &Sample<'_>) -> bool {
    let (first, rest) = match sample.bytes.trim_ascii_start() {
        [first, rest @ ..] => (*first, rest.trim_ascii_start()),
        [] => return false,
    };
    match first {
        b'{' => rest.starts_with(b"\""),
        b'[' => rest.starts_with(b"{") || rest.starts_with(b"\"") && contains(rest, b"\","),
        _ => false,
    }
}

/// Whether all lines have the same tabs, or the first line is that of a table.
pub(super) fn is_table(sample: &Sample<'_>) -> bool {
    let count = |line: &[u8], byte| line.iter().filter(|&&other| other == byte).count();
    let Some(first) = sample.lines.first() else { return false };
    let tabs = count(first, b'\t');
    let has_columns = tabs > 0 && sample.lines.iter().all(|line| count(line, b'\t') == tabs);
    let is_header = [b',', b';'].iter().any(|separator| {
        let mut names = first.split(|byte| byte == separator).map(|name| {
            let name = name.trim_ascii().trim_ascii_start();
            String::from_utf8_lossy(name).trim_matches('"').to_ascii_lowercase()
        });
        let is_known = names.clone().any(|name| COLUMNS.contains(&name.as_str()));
        is_known && count(first, *separator) > 0 && names.all(|name| !name.contains(' '))
    });
    sample.lines.len() > 1 && (has_columns || is_header)
}

/// Whether each line is `label |namespace word:count ...`.
fn is_vowpal_wabbit(sample: &Sample<'_>) -> bool {
    let is_example = |line: &&[u8]| {
        let Some(bar) = line.iter().position(|&byte| byte == b'|') else { return false };
        let labels = line[..bar].split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
        labels.count() <= 3
    };
    let is_count = |word: &[u8]| {
        let colon = word.iter().rposition(|&byte| byte == b':');
        colon.is_some_and(|at| at > 0 && is_number(&word[at + 1..]))
    };
    let mut words = sample.lines.iter().flat_map(|line| line.split(u8::is_ascii_whitespace));
    !sample.lines.is_empty() && sample.lines.iter().all(is_example) && words.any(is_count)
}

/// Whether the first line is the number of the lines that follow, which are words.
fn is_gibbs_lda(sample: &Sample<'_>) -> bool {
    let [first, rest @ ..] = &sample.lines[..] else { return false };
    let first = first.trim_ascii();
    let stated = std::str::from_utf8(first).ok().and_then(|text| text.parse::<usize>().ok());
    let Some(stated) = stated.filter(|_| is_number(first)) else { return false };
    let all = sample.bytes.trim_ascii_start().split(|&byte| byte == b'\n').count();
    let fits = match sample.is_whole() {
        // Documents may be blank lines, and the last line may lack its end.
        true => stated > 0 && (rest.len()..=all).contains(&stated) && stated + 2 >= all,
        false => stated > rest.len(),
    };
    fits && !rest.iter().all(|line| is_number(line.trim_ascii()))
}

fn contains(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|window| window == part)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(content: &str) -> Option<&'static str> {
        let sample = Sample::new(content.as_bytes(), true);
        match (is_json_lines(&sample), is_table(&sample)) {
            (true, _) => Some("JSON lines"),
            (_, true) => Some("a table"),
            _ => recognise(&sample).map(|kind| kind.name),
        }
    }

    #[test]
    fn data_are_recognised() {
        for (content, expected) in [
            ("{\"id\": 0, \"text\": \"a\"}\n{\"id\": 1}\n", "JSON lines"),
            ("{\n  \"text\": \"a\"\n}\n", "JSON"),
            ("\n[\n {\n  \"text\": \"a\"\n }\n]\n", "JSON"),
            ("[\"first text\", \"second\"]", "JSON"),
            ("id,title,text,label\n0,\"Doc, one\",words,x\n", "a table"),
            ("\"text\";\"class\"\nwords;1\n", "a table"),
            ("0\tgood\tsome words\n1\tbad\tother words\n", "a table"),
            ("d1 |text river:2 bank:1\nd2 |text stock:3\n", "Vowpal Wabbit"),
            ("1 'tag | river:2\n| bank:1\n", "Vowpal Wabbit"),
            ("2\nhuman interface\ngraph trees\n", KINDS[2].name),
            ("3\nhuman interface\n\ngraph trees", KINDS[2].name),
        ] {
            assert_eq!(kind(content), Some(expected), "{content:?}");
        }
    }

    #[test]
    fn prose_is_not_data() {
        for content in [
            "",
            "\n",
            "One text, with commas\nAnother, too\n",
            "A title, a date and an author\nmore text, here\n",
            "[[Link]] of a wiki\n",
            "{{Box}} of a wiki\n",
            "[1] A reference\n",
            "words\tcut\tat tabs\nothers\tare not\n",
            "a | b | c\nd | e\n",
            "1984\nwas a year\nand a book\n",
            "12\n13\n14\n",
            "At 12:30 it rained\n",
        ] {
            assert_eq!(kind(content), None, "{content:?}");
        }
    }
}
