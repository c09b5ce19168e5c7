//! Assembly of the HTML file.
//!
//! The data are in a `<script type="application/json">` block, which the browser does not run; `<` is
//! escaped as in JSON, so that no data can end the block. The content security policy allows the script
//! and style of the page by their hashes: anything else in the file does not run, and nothing is
//! fetched.

use std::io::{self, Write};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};

use crate::commands::report::contents::Contents;

const TEMPLATE: &str = include_str!("page/index.html");
const STYLE: &str = concat!(
    include_str!("page/frame.css"),
    include_str!("page/topics.css"),
    include_str!("page/documents.css"),
    include_str!("page/narrow.css"),
);
/// Scripts, joined in this order into one scope.
const SCRIPTS: [&str; 10] = [
    include_str!("page/data.js"),
    include_str!("page/dom.js"),
    include_str!("page/state.js"),
    include_str!("page/list.js"),
    include_str!("page/map.js"),
    include_str!("page/chart.js"),
    include_str!("page/topic.js"),
    include_str!("page/document.js"),
    include_str!("page/sheets.js"),
    include_str!("page/app.js"),
];

/// Writes the page.
///
/// # Errors
/// Those of `out`.
pub fn write(contents: &Contents, out: &mut dyn Write) -> io::Result<()> {
    let script = format!("\"use strict\";\n(() => {{\n{}}})();\n", SCRIPTS.join("\n"));
    let policy = format!(
        "default-src 'none'; script-src '{}'; style-src '{}'; base-uri 'none'; form-action 'none'",
        source(&script),
        source(STYLE)
    );
    let page = TEMPLATE
        .replacen("{policy}", &policy, 1)
        .replacen("{style}", STYLE, 1)
        .replacen("{script}", &script, 1);
    // The data are inserted last, so that no placeholder in them is replaced.
    let (before, after) = page.split_once("{data}").expect("the template has it");
    write!(out, "{before}")?;
    write_data(contents, out)?;
    write!(out, "{after}")
}

/// Hash of a script or style, as in a content security policy.
fn source(text: &str) -> String {
    format!("sha256-{}", STANDARD.encode(Sha256::digest(text)))
}

fn write_data(contents: &Contents, out: &mut dyn Write) -> io::Result<()> {
    let json = serde_json::to_string(contents)?;
    // JSON has no `<` outside of strings.
    let mut parts = json.split('<');
    write!(out, "{}", parts.next().unwrap_or_default())?;
    parts.try_for_each(|part| write!(out, "\\u003c{part}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::report::contents::{CorpusSize, CountsScale};

    #[test]
    fn no_data_end_their_block() {
        let words = vec!["</script><!--".to_owned(), "{script}".to_owned(), "\u{2028}".to_owned()];
        let scale =
            CountsScale { beta: 0.1, beta_sum: 0.3, tokens: 0, exact: true, shown: 1, steps: 1 };
        let contents = Contents {
            title: "<title>".to_owned(),
            words: words.clone(),
            frequency_codes: String::new(),
            counts: scale,
            topics: Vec::new(),
            documents: Vec::new(),
            corpus: CorpusSize { documents: 0, tokens: 0, unknown: 0 },
            time: None,
            stress: 0.0,
            coherence: None,
            curves: Vec::new(),
            about: Vec::new(),
        };
        let mut page = Vec::new();
        write(&contents, &mut page).unwrap();
        let page = String::from_utf8(page).unwrap();
        let (_, data) = page.split_once("id=\"data\">").unwrap();
        let (data, after) = data.split_once("</script>").unwrap();
        assert!(!data.contains('<'), "{data}");
        let data: serde_json::Value = serde_json::from_str(data).unwrap();
        assert_eq!(data["words"], serde_json::json!(words));
        assert_eq!(data["title"], "<title>");
        assert!(after.contains("\"use strict\""));
        assert_eq!(page.matches("</script>").count(), 2);
    }

    #[test]
    fn no_part_can_end_another() {
        assert!(!STYLE.contains("</"));
        for script in SCRIPTS {
            assert!(!script.contains("</script") && !script.contains("<!--"));
            for word in ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("]
            {
                assert!(!script.contains(word), "{word}");
            }
        }
        assert_eq!(source("alert(1)"), "sha256-bhHHL3z2vDgxUt0W3dWQOrprscmda2Y5pLsLg4GF+pI=");
    }
}
