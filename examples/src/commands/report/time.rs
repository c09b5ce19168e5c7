//! Topics over time.

use lda_core::corpus::Date;
use lda_core::infer::Answer;

use crate::commands::report::contents::Time;
use crate::commands::report::encode::encode;

/// Maximum number of bins, for a readable curve; never exceeded by centuries.
const MAX_BINS: u32 = 120;

/// Function that maps a date to the number of its bin.
type Bin = fn(Date) -> u32;

/// Bin lengths, shortest first.
const UNITS: [(&str, Bin); 4] = [
    ("month", |date| date.year() * 12 + date.month().unwrap_or(1) - 1),
    ("year", |date| date.year()),
    ("decade", |date| date.year() / 10),
    ("century", |date| date.year() / 100),
];

/// Shares of topics per month if all dates have one, otherwise per year, or per longer bin if there
/// would be too many. `None` without documents.
pub fn over_time(dates: &[Date], answers: &[Answer], topics: usize) -> Option<Time> {
    let (first, last) = (dates.iter().min()?, dates.iter().max()?);
    let shortest = usize::from(dates.iter().any(|date| date.month().is_none()));
    let few = |&&(_, bin): &&(&str, Bin)| bin(*last) - bin(*first) < MAX_BINS;
    let &(unit, bin) = UNITS[shortest..].iter().find(few).unwrap_or(&UNITS[UNITS.len() - 1]);
    let origin = bin(*first);
    let bins = (bin(*last) - origin + 1) as usize;
    let mut shares = vec![vec![0.0; bins]; topics];
    let mut tokens = vec![0; bins];
    for (&date, answer) in dates.iter().zip(answers) {
        let at = (bin(date) - origin) as usize;
        tokens[at] += answer.tokens;
        for &(topic, count) in &answer.counts {
            shares[topic as usize][at] += count;
        }
    }
    let code = |row: &Vec<f64>| {
        let share = |(&sum, &of): (&f64, &u64)| (1e4 * sum / of.max(1) as f64).round() as u64;
        encode(row.iter().zip(&tokens).map(share))
    };
    let share_codes = shares.iter().map(code).collect();
    let bins = (origin..).take(bins).map(|bin| name(unit, bin)).collect();
    Some(Time { unit, bins, tokens, share_codes })
}

fn name(unit: &str, bin: u32) -> String {
    match unit {
        "month" => format!("{:04}-{:02}", bin / 12, bin % 12 + 1),
        "decade" => format!("{:03}0s", bin),
        "century" => format!("{:02}00s", bin),
        _ => format!("{bin:04}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::report::encode::decode;

    fn time(dates: &[&str]) -> Time {
        let dates: Vec<Date> = dates.iter().map(|date| date.parse().unwrap()).collect();
        let answer = |d: usize| Answer {
            counts: vec![(0, 1.0), (1 + (d % 2) as u32, 3.0)],
            tokens: 4,
            unknown: 2,
        };
        let answers: Vec<Answer> = (0..dates.len()).map(answer).collect();
        over_time(&dates, &answers, 4).unwrap()
    }

    #[test]
    fn bins_have_the_shortest_length_that_fits() {
        let units = |dates: &[&str]| {
            let found = time(dates);
            (found.unit, found.bins.len(), found.bins[0].clone())
        };
        assert_eq!(units(&["1999-12-31", "2000-02-01"]), ("month", 3, "1999-12".to_owned()));
        assert_eq!(units(&["1999", "2000-02-01"]), ("year", 2, "1999".to_owned()));
        assert_eq!(units(&["1990-01-01", "2000-02-01"]), ("year", 11, "1990".to_owned()));
        assert_eq!(units(&["1800", "2000"]), ("decade", 21, "1800s".to_owned()));
        assert_eq!(units(&["0000", "9999"]), ("century", 100, "0000s".to_owned()));
        assert_eq!(units(&["2001"]), ("year", 1, "2001".to_owned()));
        assert_eq!(over_time(&[], &[], 3), None);
    }

    #[test]
    fn shares_are_of_the_tokens_of_a_bin() {
        let found = time(&["1987", "1990", "1987", "1987"]);
        assert_eq!(found.bins, ["1987", "1988", "1989", "1990"]);
        assert_eq!(found.tokens, [12, 0, 0, 4]);
        let shares: Vec<_> = found.share_codes.iter().map(|codes| decode(codes)).collect();
        assert_eq!(shares[0], [2500, 0, 0, 2500]);
        assert_eq!(shares[1], [5000, 0, 0, 0]);
        assert_eq!(shares[2], [2500, 0, 0, 7500]);
        assert_eq!(shares[3], [0; 4]);
    }
}
