//! The plot of document lengths: LDA*'s figure 2(a).

use super::super::documents::LengthBin;
use super::super::plot::{Chart, Color, Curve, PALETTE, Scale, Scene};
use super::super::{CorpusName, Record};

/// For every corpus, the cumulative shares of documents and of tokens by document length; `None` if
/// no record has lengths.
///
/// Cumulative rather than by bin, so that the curve does not depend on the bins, and the share of
/// longer documents can be read off at any length.
pub(super) fn draw(records: &[Record]) -> Option<Scene> {
    let mut seen: Vec<&CorpusName> = Vec::new();
    let mut curves = Vec::new();
    for record in records {
        let (corpus, bins) = (&record.cell.corpus, &record.outcome.lengths);
        if bins.is_empty() || seen.contains(&corpus) {
            continue;
        }
        let color = PALETTE[seen.len() % PALETTE.len()];
        seen.push(corpus);
        let line = |dashed, count| curve(corpus.to_string(), color, dashed, bins, count);
        curves.push(line(false, |bin: &LengthBin| bin.documents));
        curves.push(line(true, |bin: &LengthBin| bin.tokens));
    }
    Chart {
        title: "Lengths of documents".to_owned(),
        note:
            "share of the documents (solid), and of all tokens (dashed), in documents of at most \
               that length"
                .to_owned(),
        x_label: "tokens of a document".to_owned(),
        y_label: "share, %".to_owned(),
        x_scale: Scale::Log,
        y_low: Some(0.0),
        y_high: Some(100.0),
        curves,
        marks: Vec::new(),
    }
    .draw()
}

/// Cumulative percentages. The curve starts just below the first bin; otherwise a corpus of one
/// length would have no line.
fn curve(
    label: String,
    color: Color,
    dashed: bool,
    bins: &[LengthBin],
    count: fn(&LengthBin) -> u64,
) -> Curve {
    let all: u64 = bins.iter().map(count).sum();
    let share = |sum: u64| 100.0 * sum as f64 / all as f64;
    // Documents without tokens have no place on a logarithmic axis.
    let (empty, rest): (Vec<_>, Vec<_>) = bins.iter().partition(|bin| bin.longest == 0);
    let mut sum = empty.into_iter().map(count).sum();
    let mut points: Vec<(f64, f64)> =
        rest.first().map(|bin| (0.9 * bin.longest as f64, share(sum))).into_iter().collect();
    for bin in rest {
        sum += count(bin);
        points.push((bin.longest as f64, share(sum)));
    }
    Curve { label, color, dashed, points }
}

#[cfg(test)]
mod tests {
    use super::super::tests::kos_record;
    use super::*;

    fn bin(longest: u64, documents: u64, tokens: u64) -> LengthBin {
        LengthBin { longest, documents, tokens }
    }

    #[test]
    fn a_corpus_has_two_curves_however_many_runs() {
        let mut records = [1, 2].map(|seed| kos_record(seed, 1.0, -9.0));
        assert!(draw(&records).is_none());
        for record in &mut records {
            record.outcome.lengths = vec![bin(1, 3, 3), bin(7, 1, 7)];
        }
        let svg = draw(&records).unwrap().svg();
        assert!(svg.contains(">kos<") && svg.contains("stroke-dasharray"), "{svg}");
        assert_eq!(svg.matches("clip-path=").count(), 2);
    }

    #[test]
    fn shares_add_up_to_all() {
        let bins = [bin(0, 1, 0), bin(2, 2, 4), bin(10, 1, 6)];
        let points = |count| curve(String::new(), PALETTE[0], false, &bins, count).points;
        assert_eq!(points(|bin| bin.documents), [(1.8, 25.0), (2.0, 75.0), (10.0, 100.0)]);
        assert_eq!(points(|bin| bin.tokens), [(1.8, 0.0), (2.0, 40.0), (10.0, 100.0)]);
    }
}
