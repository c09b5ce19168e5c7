//! The page of a sweep: a table and a plot per measure, in one file without scripts.

use std::io::{self, Write};

use lda_core::train::sweep::{Criterion, Summary, best};

use crate::commands::sweep::results::{present, shown};
use crate::commands::train::plot::{Chart, Picture};

const HEAD: &str = "<!DOCTYPE html>
<html lang=\"en\">
<meta charset=\"utf-8\">
<meta name=\"viewport\" content=\"width=device-width\">
<title>Numbers of topics</title>
<style>
body { font: 16px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 100rem; padding: 0 1rem }
table { border-collapse: collapse; display: block; overflow-x: auto }
th, td { padding: .2rem .8rem; text-align: right; font-variant-numeric: tabular-nums }
th { border-bottom: 1px solid #bbb; font-weight: 600 }
.best { font-weight: 700; color: #0072b2 }
.plots { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 40rem), 1fr)); gap: 1rem }
svg { width: 100%; height: auto }
</style>
";

/// Meaning of a criterion, in a few words.
fn explanation(criterion: Criterion) -> &'static str {
    match criterion {
        Criterion::Perplexity => "how hard held-out words are to guess, lower is better",
        Criterion::CV => "coherence of top words in windows of 110 tokens, higher is better",
        Criterion::Npmi => "coherence of pairs of top words, higher is better",
        Criterion::UMass => "coherence in whole documents, higher is better",
        Criterion::Exclusivity => "share of its topic in a top word, higher is better",
        Criterion::Stability => "overlap of topics between seeds, higher is better",
        Criterion::Arun => "divergence of matrices, lower is better",
        Criterion::CaoJuan => "mean cosine between topics, lower is better",
        _ => "mean divergence between topics, higher is better",
    }
}

/// Writes the page.
///
/// # Errors
/// Those of `out`.
pub fn write(summaries: &[Summary], seeds: u32, out: &mut impl Write) -> io::Result<()> {
    let criteria = present(summaries);
    write!(
        out,
        "{HEAD}<h1>Numbers of topics</h1>\n<p>Means over {seeds} random seeds, with their standard "
    )?;
    writeln!(
        out,
        "deviation. Bold: the best of a column. Look at those models before you choose.</p>"
    )?;
    write!(out, "<table>\n<tr><th>topics</th>")?;
    for criterion in &criteria {
        write!(out, "<th title=\"{}\">{}</th>", explanation(*criterion), criterion.name())?;
    }
    writeln!(out, "</tr>")?;
    for summary in summaries {
        write!(out, "<tr><td>{}</td>", summary.topics())?;
        for &criterion in &criteria {
            let is_best = best(summaries, criterion) == Some(summary.topics());
            let class = if is_best { " class=\"best\"" } else { "" };
            write!(out, "<td{class}>{}</td>", cell(summary, criterion))?;
        }
        writeln!(out, "</tr>")?;
    }
    writeln!(out, "</table>\n<div class=\"plots\">")?;
    for criterion in criteria {
        let point = |summary: &Summary| {
            let value = summary.mean(criterion).filter(|value| value.is_finite());
            value.map(|value| (f64::from(summary.topics()), value))
        };
        let chart = Chart {
            title: criterion.name().to_owned(),
            y_label: explanation(criterion).to_owned(),
            x_label: "topics".to_owned(),
            caption: String::new(),
            points: summaries.iter().filter_map(point).collect(),
        };
        write!(out, "<div>")?;
        Picture::Svg.write(&chart, "", out)?;
        writeln!(out, "</div>")?;
    }
    writeln!(out, "</div>\n</html>")
}

fn cell(summary: &Summary, criterion: Criterion) -> String {
    let Some(mean) = summary.mean(criterion) else { return "–".to_owned() };
    match summary.deviation(criterion) {
        Some(deviation) if deviation > 0.0 => {
            format!("{} ± {}", shown(criterion, mean), shown(criterion, deviation))
        }
        _ => shown(criterion, mean),
    }
}
