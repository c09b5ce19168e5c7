//! Writes `scale.csv`, `summary.md` and the plots.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use super::super::LabError;
use super::super::files::write_report;
use super::draw::draw;
use super::limits::limits;
use super::{Checked, Line, Measured, Rates, ScalePlan, Time, largest};

pub(super) fn write(
    plan: &ScalePlan,
    measured: &Measured,
    lines: &[Line],
    directory: &Path,
) -> Result<Vec<PathBuf>, LabError> {
    let files = vec![
        ("scale.csv".to_owned(), csv(lines).into_bytes()),
        ("summary.md".to_owned(), markdown(plan, measured, lines).into_bytes()),
    ];
    write_report(directory, files, draw(plan, measured, lines))
}

/// One CSV row per line and link rate. Names contain no commas.
fn csv(lines: &[Line]) -> String {
    let mut out = "arm,machines,tokens_grow,tokens,after,shards,servers,partitions,rounds,staleness,bytes,sizes,routes,rows,\
                   gained,pushed,answers,totals,pushed_share,sent,worker_to,worker_from,server_to,server_from,master_to,\
                   master_from,heaviest,worker_memory,server_memory,master_memory,worker_seconds,server_seconds,\
                   end_seconds,entries,gbit,worker_link,server_link,master_link,beside,sampling,hidden,waited,cores\n"
        .to_owned();
    for line in lines {
        let Line { arm, machines, grows, tokens, after, shards, servers, takes, .. } = line;
        let Line { partitions, rounds, staleness, .. } = line;
        for time in &takes.times {
            // Writing to a string cannot fail.
            let _ = write!(
                out,
                "{arm},{machines},{grows},{tokens},{after},{shards},{servers},{partitions},{rounds},{staleness},{:.0}",
                takes.bytes.total()
            );
            for (_, bytes) in takes.bytes.each() {
                let _ = write!(out, ",{bytes:.0}");
            }
            let links = [takes.worker, takes.server, takes.master];
            let _ = write!(out, ",{:.4},{:.3}", takes.pushed, takes.sent);
            for link in links {
                let _ = write!(out, ",{:.0},{:.0}", link.to, link.from);
            }
            let _ = write!(
                out,
                ",{:.3},{:.0},{:.0},{:.0},{:.4},{:.4},{:.4},{:.0}",
                takes.heaviest,
                takes.worker_memory,
                takes.server_memory,
                takes.master_memory,
                takes.worker_seconds,
                takes.server_seconds,
                takes.end_seconds,
                takes.entries
            );
            let Time { gbit, worker, server, master, beside, sampling, hidden, waited, cores } =
                time;
            let _ = write!(out, ",{gbit}");
            let seconds = [worker, server, master, beside, sampling, hidden, waited, cores];
            for seconds in seconds {
                let _ = write!(out, ",{seconds:.5}");
            }
            out.push('\n');
        }
    }
    out
}

/// The reference line that `line` is compared with.
pub(super) fn beside<'a>(plan: &ScalePlan, lines: &'a [Line], line: &Line) -> Option<&'a Line> {
    let is_like = |other: &&Line| {
        let key = |line: &Line| (line.machines, line.grows, line.after);
        other.arm == plan.beside && key(other) == key(line)
    };
    lines.iter().find(is_like)
}

/// Formats with at least three significant digits.
fn short(value: f64) -> String {
    match value.abs() {
        0.0 => "0".to_owned(),
        v if v < 0.01 => format!("{value:.1e}"),
        v if v < 10.0 => format!("{value:.2}"),
        v if v < 100.0 => format!("{value:.1}"),
        v if v < 1e7 => format!("{value:.0}"),
        _ => format!("{value:.2e}"),
    }
}

/// Formats bytes with a unit.
fn bytes(value: f64) -> String {
    let units = ["B", "kB", "MB", "GB", "TB", "PB"];
    let mut at = 0;
    let mut value = value;
    while value >= 1000.0 && at + 1 < units.len() {
        value /= 1000.0;
        at += 1;
    }
    format!("{} {}", short(value), units[at])
}

/// Difference of the prediction from the measurement, in percent.
fn off(pair: (f64, f64)) -> String {
    if pair.0 == 0.0 { String::new() } else { format!("{:+.1} %", 100.0 * (pair.1 / pair.0 - 1.0)) }
}

fn markdown(plan: &ScalePlan, measured: &Measured, lines: &[Line]) -> String {
    let corpus = &plan.corpus;
    let mut out = format!(
        "# {}\n\nA projection: {} documents, {} words, {} tokens, K = {}. The word of rank r occurs in proportion to 1/(r + \
         {})^{}, logarithms of lengths differ by {}. A machine has a worker and a server; a node has {} \
         cores. A message takes {} ms to arrive and {} µs of the master. \"After\" is the number of completed epochs; rows of 0 are \
         those of the start.\n\n",
        plan.name,
        corpus.documents,
        corpus.words,
        corpus.tokens,
        plan.topics,
        corpus.shift,
        corpus.exponent,
        corpus.spread,
        plan.machine.cores,
        plan.machine.latency_ms,
        plan.machine.message_us,
    );
    if let Some(worst) = worst(&measured.checked) {
        let _ = writeln!(
            out,
            "For {} epochs of real runs, the same model predicted all bytes within {:.1} % of the bytes moved, memory of \
             workers within {:.1} %, of servers within {:.1} %, CPU seconds of workers within {:.0} % and of servers within \
             {:.0} % (below). Beyond those runs, the projection is as good as its curves.\n",
            measured.checked.len(),
            worst[0],
            worst[1],
            worst[2],
            worst[3],
            worst[4],
        );
    }
    out.push_str(&divisions(plan, lines));
    out.push_str(&roles(plan, lines));
    out.push_str(&times(plan, lines));
    out.push_str(&sweep(plan, lines));
    out.push_str(&broken(plan, measured, lines));
    out.push_str(&checks(measured));
    out.push_str(&rows(plan, measured));
    out.push_str(&rates(&measured.rates));
    out.push_str("\nMade on ");
    let mut machines: Vec<String> = Vec::new();
    for place in &measured.places {
        let machine = format!("{}; commit {}", place.machine.describe(), place.machine.commit);
        if !machines.contains(&machine) {
            machines.push(machine);
        }
    }
    let _ = writeln!(out, "{}.", machines.join("; and on "));
    let loads = measured.places.iter().map(|place| {
        let (before, after) = place.load;
        format!("{} {before:.1} to {after:.1}", place.what)
    });
    let loads: Vec<String> = loads.collect();
    let _ = writeln!(out, "Processes that wanted a core, before and after: {}.", loads.join(", "));
    out
}

/// Largest errors in percent: bytes, memory of workers and servers, seconds of workers and servers.
fn worst(checked: &[Checked]) -> Option<[f64; 5]> {
    if checked.is_empty() {
        return None;
    }
    let of = |pair: &dyn Fn(&Checked) -> (f64, f64)| {
        let each = checked.iter().map(pair).filter(|pair| pair.0 > 0.0);
        each.map(|(real, model)| 100.0 * (model / real - 1.0).abs()).fold(0.0, f64::max)
    };
    Some([
        of(&|it| (it.measured.total(), it.predicted.total())),
        of(&|it| it.workers),
        of(&|it| it.server_memory),
        of(&|it| it.worker_seconds),
        of(&|it| it.server_seconds),
    ])
}

fn divisions(plan: &ScalePlan, lines: &[Line]) -> String {
    let mut out = "## Bytes per epoch\n\n\
         | arm | shards | servers | partitions | rounds | staleness | after | all | less | rows | gained | documents | answers | \
         sizes, routes | C_k | tokens pushed | times a document is sent | worker, to and from | heaviest server | over the mean | master |\n\
         |---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n"
        .to_owned();
    for line in largest(plan, lines) {
        let takes = &line.takes;
        let of = &takes.bytes;
        let other = beside(plan, lines, line).filter(|other| other.arm != line.arm);
        let less = other.map_or(String::new(), |other| {
            format!("{:.1} %", 100.0 * (1.0 - of.total() / other.takes.bytes.total()))
        });
        let _ = writeln!(
            out,
            "| {} | {} | {} | {} | {} | {} | {} | {} | {less} | {} | {} | {} | {} | {} | {} | {:.1} % | {} | {}, {} | {}, {} | {:.2} | {}, {} |",
            line.arm,
            line.shards,
            line.servers,
            line.partitions,
            line.rounds,
            line.staleness,
            line.after,
            bytes(of.total()),
            bytes(of.rows),
            bytes(of.gained),
            bytes(of.pushed),
            bytes(of.answers),
            bytes(of.sizes + of.routes),
            bytes(of.totals),
            100.0 * takes.pushed,
            short(takes.sent),
            bytes(takes.worker.to),
            bytes(takes.worker.from),
            bytes(takes.server.to),
            bytes(takes.server.from),
            takes.heaviest,
            bytes(takes.master.to),
            bytes(takes.master.from),
        );
    }
    out
}

fn roles(plan: &ScalePlan, lines: &[Line]) -> String {
    let mut out = "\n## Memory and CPU seconds of a role\n\n\
         The master's memory is that of the start: a copy of the word frequencies for each node that it sends them to at once. \
         Connections are those of a worker, a server, the master, and all. Seconds are of one core.\n\n\
         | arm | after | worker | server | master | connections | worker samples | heaviest server samples | rebuilds rows |\n\
         |---|--:|--:|--:|--:|--:|--:|--:|--:|\n"
        .to_owned();
    for line in largest(plan, lines) {
        let takes = &line.takes;
        let (shards, servers) = (u64::from(line.shards), u64::from(line.servers));
        let _ = writeln!(
            out,
            "| {} | {} | {} | {} | {} | {}, {}, {}, {} | {} s | {} s | {} s |",
            line.arm,
            line.after,
            bytes(takes.worker_memory),
            bytes(takes.server_memory),
            bytes(takes.master_memory),
            servers + 1,
            shards + 1,
            shards + servers,
            shards * servers + shards + servers,
            short(takes.worker_seconds),
            short(takes.server_seconds),
            short(takes.end_seconds),
        );
    }
    out
}

fn times(plan: &ScalePlan, lines: &[Line]) -> String {
    let mut out = format!(
        "\n## Seconds per epoch\n\n\
         \"Rounds\" is sampling alone, each round as long as its slowest shard; \"beside\" is the rest of all rounds: \
         messages, C_k through the master's link, rebuilt rows. \"Hidden\" is the epoch if prefetching hides the network, \
         \"waited\" if it does not; both are at least the time of each link and server. \"{} cores\" is \"hidden\" with \
         a thread per core, for which a worker needs as many shards; the other seconds are those of one thread.\n\n\
         | arm | after | links | worker's link | heaviest server's | master's | rounds | beside | hidden | waited | {} cores |\n\
         |---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n",
        plan.machine.cores, plan.machine.cores
    );
    for line in largest(plan, lines) {
        for time in &line.takes.times {
            let Time { gbit, worker, server, master, beside, sampling, hidden, waited, cores } =
                *time;
            let beside = beside * f64::from(line.rounds);
            let cells =
                [worker, server, master, sampling, beside, hidden, waited, cores].map(short);
            let _ = writeln!(
                out,
                "| {} | {} | {gbit} Gbit/s | {} |",
                line.arm,
                line.after,
                cells.join(" | ")
            );
        }
    }
    out
}

fn sweep(plan: &ScalePlan, lines: &[Line]) -> String {
    let last = lines.iter().map(|line| line.after).max().unwrap_or(0);
    let mut out = format!(
        "\n## By machines\n\nAfter {last} epochs; bytes, seconds with the network hidden (slow and fast links), and memory of a worker: \
         with a constant number of tokens per machine, and with all tokens on few machines.\n\n\
         | arm | machines | tokens | bytes | per token | less | seconds | worker |\n|---|--:|--:|--:|--:|--:|--:|--:|\n"
    );
    for grows in [true, false] {
        for (arm, _) in plan.arms() {
            for line in lines {
                let is_here = line.arm == arm && line.after == last;
                // The largest number of machines appears in both tables.
                let is_last = Some(&line.machines) == plan.machines.last();
                if !is_here || (line.grows != grows && !is_last) {
                    continue;
                }
                let all = line.takes.bytes.total();
                let other = beside(plan, lines, line).filter(|other| other.arm != line.arm);
                let less = other.map_or(String::new(), |other| {
                    format!("{:.1} %", 100.0 * (1.0 - all / other.takes.bytes.total()))
                });
                let seconds = line.takes.times.iter().map(|time| short(time.hidden));
                let _ = writeln!(
                    out,
                    "| {arm} | {} | {} | {} | {:.2} | {less} | {} | {} |",
                    line.machines,
                    short(line.tokens),
                    bytes(all),
                    all / line.tokens,
                    seconds.collect::<Vec<_>>().join(", "),
                    bytes(line.takes.worker_memory),
                );
            }
        }
    }
    out
}

fn broken(plan: &ScalePlan, measured: &Measured, lines: &[Line]) -> String {
    let mut out = String::new();
    let last = lines.iter().map(|line| line.after).max().unwrap_or(0);
    let arms = plan.arms();
    // This plot shows the architecture itself, not the reference.
    let Some((arm, _)) = arms.iter().find(|(name, _)| *name != plan.beside) else { return out };
    let Some(line) =
        largest(plan, lines).into_iter().find(|line| line.arm == *arm && line.after == last)
    else {
        return out;
    };
    let _ = writeln!(
        out,
        "\n## What breaks first\n\n{arm}, {} shards and {} servers, after {last} epochs. \"Over\" is the value over its limit: above 1 the \
         limit is exceeded, or the epoch waits for it. A value in proportion to the tokens reaches its limit at 1/over of this \
         corpus. A node has {} GiB of memory.\n\n\
         | limit | value | maximum | over | consequence | remedy |\n|---|--:|--:|--:|---|---|",
        line.shards, line.servers, plan.machine.memory_gib
    );
    for limit in limits(plan, measured, line) {
        let of = |value: f64| {
            if limit.unit == "bytes" {
                bytes(value)
            } else {
                format!("{} {}", short(value), limit.unit)
            }
        };
        let _ = writeln!(
            out,
            "| {} | {} | {} | {} | {} | {} |",
            limit.what,
            of(limit.there),
            of(limit.bound),
            short(limit.over()),
            limit.then,
            limit.next
        );
    }
    out
}

fn checks(measured: &Measured) -> String {
    let mut out = "\n## The model against runs\n\n\
         Runs in one process, which encode and decode all messages. MB moved, and the error of the prediction, by kind; memory \
         and CPU seconds of all workers and of all servers.\n\n\
         | corpus | shards | servers | rounds | way | epoch | all | off | rows | gained | documents | answers | sizes | routes | C_k | \
         tokens pushed | predicted | workers, MB | off | servers, MB | off | workers, s | off | servers, s | off |\n\
         |---|--:|--:|--:|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n"
        .to_owned();
    for it in &measured.checked {
        let way = if it.symmetric { "symmetric" } else { "asymmetric" };
        let all = (it.measured.total(), it.predicted.total());
        let _ = write!(
            out,
            "| {} | {} | {} | {} | {way} | {} | {:.1} | {} |",
            it.corpus,
            it.shards,
            it.servers,
            it.rounds,
            it.epoch,
            all.0 / 1e6,
            off(all)
        );
        let both = it.measured.each().into_iter().zip(it.predicted.each());
        let of = |name: &str| {
            let found = both.clone().find(|(measured, _)| measured.0 == name);
            let (real, model) = found.map_or((0.0, 0.0), |(real, model)| (real.1, model.1));
            match real {
                real if real > 0.0 => format!("{:.2} ({})", real / 1e6, off((real, model))),
                _ => String::new(),
            }
        };
        for name in ["rows", "gained", "documents", "answers", "sizes", "routes", "totals"] {
            let _ = write!(out, " {} |", of(name));
        }
        let _ = write!(out, " {:.1} % | {:.1} % |", 100.0 * it.pushed.0, 100.0 * it.pushed.1);
        for pair in [it.workers, it.server_memory] {
            let _ = write!(out, " {:.1} | {} |", pair.0 / 1e6, off(pair));
        }
        for pair in [it.worker_seconds, it.server_seconds] {
            let _ = write!(out, " {:.2} | {} |", pair.0, off(pair));
        }
        out.push('\n');
    }
    out
}

fn rows(plan: &ScalePlan, measured: &Measured) -> String {
    let decades: Vec<u32> = (0..=9).collect();
    let mut out = format!(
        "\n## Rows\n\nTopics of a row by its number of tokens, measured on {} tokens and extrapolated; for the next epoch, the share of \
         tokens that change their topic, and the share of these whose new topic their document has; the largest topic over the mean.\n\n| after |",
        measured.tokens
    );
    for decade in &decades {
        let _ = write!(out, " 10^{decade} |");
    }
    out.push_str(" document of 20 | of 140 | changed | within | largest |\n|--:|");
    out.push_str(&"--:|".repeat(decades.len() + 5));
    out.push('\n');
    for state in &measured.states {
        let _ = write!(out, "| {} |", state.after);
        for &decade in &decades {
            let entries = state.words.entries(plan.topics, 10f64.powi(decade as i32));
            let _ = write!(out, " {} |", short(entries));
        }
        for length in [20.0, 140.0] {
            let _ = write!(out, " {} |", short(state.documents.entries(plan.topics, length)));
        }
        let _ = writeln!(
            out,
            " {:.1} % | {:.1} % | {:.1} |",
            100.0 * state.changed,
            100.0 * state.within,
            state.largest
        );
    }
    out
}

fn rates(rates: &[Rates]) -> String {
    let mut out = "\n## Rates\n\nNanoseconds of a core: of a token that is sampled by a pulled row and of a topic of that row; \
         of a pushed token and a topic of its document's row, on the worker and on the server; on a server, of a byte of a \
         row that is pulled, of a topic in a delta, and of a topic of a rebuilt row; of an encoded and a decoded byte of \
         rows. Sampling takes longer with more topics per document; between corpora the rates are interpolated linearly.\n\n\
         | corpus | topics of a document | after | token | topic of a row | pushed, worker | topic | pushed, server | topic | served byte | gained topic | \
         rebuilt topic | written byte | read byte |\n|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n"
        .to_owned();
    for of in rates {
        let each = [
            of.token,
            of.entry,
            of.asked_token,
            of.asked_entry,
            of.pushed_token,
            of.pushed_entry,
            of.served_byte,
            of.gained_entry,
            of.ended_entry,
            of.written_byte,
            of.read_byte,
        ];
        let each = each.map(|seconds| short(1e9 * seconds));
        let _ = writeln!(
            out,
            "| {} | {:.1} | {} | {} |",
            of.corpus,
            of.document_topics,
            of.after,
            each.join(" | ")
        );
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_three_digits() {
        assert_eq!(short(0.0), "0");
        assert_eq!(short(0.001234), "1.2e-3");
        assert_eq!(
            (short(1.234), short(12.34), short(1234.4)),
            ("1.23".into(), "12.3".into(), "1234".into())
        );
        assert_eq!(short(3.08e11), "3.08e11");
        assert_eq!((bytes(999.0), bytes(31_294_504.0)), ("999 B".into(), "31.3 MB".into()));
        assert_eq!((off((2.0, 2.1)), off((0.0, 1.0))), ("+5.0 %".into(), String::new()));
    }
}
