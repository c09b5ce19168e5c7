//! A sweep, from the options to the table.

use std::collections::BTreeMap;
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use lda_core::Corpus;
use lda_core::container::checksum;
use lda_core::corpus::BuildError;
use lda_core::eval::{consensus, leading_words};
use lda_core::model::TopicModel;
use lda_core::train::sweep::{Criterion, stability};
use lda_core::train::{Flow, Sweep, SweepRun};
use lda_examples::matrix::write_field;
use lda_examples::output::Output;
use lda_examples::program::StartError;
use lda_examples::{memory, reading, signals, table};
use serde_json::{Map, Value, json};

use crate::commands::sweep::args::Args;
use crate::commands::sweep::directory::Directory;
use crate::commands::sweep::error::SweepError;
use crate::commands::sweep::{page, results};
use lda_examples::held_out;

/// Reads the documents, trains what is left, and writes the results.
///
/// # Errors
/// [`SweepError`].
pub fn run(args: &Args) -> Result<(), SweepError> {
    let cancel = listen()?;
    args.program.start_threads()?;
    let note = |text: &str| args.program.note(text);
    let read = reading::read_in_order(&args.path, &args.reading, None, &mut |text| note(text))?;
    if !read.corpus.has_token_order() {
        note(
            "the documents have no order of tokens: npmi is of whole documents, and c-v is left out",
        );
    }
    let (corpus, held) = split(args, &read.corpus)?;
    let identity = identity(args, &read.corpus);
    drop(read);
    let sweep = Sweep::new(args.topics.iter().copied())
        .seeds(args.seeds)
        .train(|_| args.options().memory_limit(memory::of_process()))
        .held_out(held)
        .top_words(args.top_words.into())
        .cancel_when(Arc::clone(&cancel));
    let sweep = match args.jobs {
        Some(jobs) => sweep.jobs(jobs.into()),
        None => sweep,
    };
    sweep.check(&corpus)?;
    let mut directory = Directory::open(&args.out, &identity, &mut |text| note(text))?;
    directory.tidy()?;
    let sweep = sweep.skip(directory.done());
    train(args, &sweep, &corpus, &mut directory)?;
    let left = sweep.skip(directory.done()).left().len();
    finish(args, &directory)?;
    if left > 0 { Err(SweepError::Stopped { left }) } else { Ok(()) }
}

/// A flag that the first signal sets. The second exits.
fn listen() -> Result<Arc<AtomicBool>, SweepError> {
    let (cancel, flag) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let asked = Arc::clone(&cancel);
    signals::listen(move |signal| {
        asked.store(true, Ordering::Relaxed);
        if flag.swap(true, Ordering::Relaxed) {
            signals::exit(signal);
        }
    })
    .map_err(StartError::Signals)?;
    Ok(cancel)
}

fn split(args: &Args, corpus: &Corpus) -> Result<(Corpus, Corpus), SweepError> {
    held_out::split(corpus, args.held_out, args.seed).map_err(|source| match source {
        BuildError::NoTokens => {
            SweepError::HeldOut { share: args.held_out, documents: held_out::num_documents(corpus) }
        }
        source => SweepError::Build { path: args.path.clone(), source },
    })
}

/// Options that all runs of a sweep have in common; numbers of topics may be added.
fn identity(args: &Args, corpus: &Corpus) -> Map<String, Value> {
    let options = json!({
        "version": env!("CARGO_PKG_VERSION"),
        "documents": format!("{:016x}", fingerprint(corpus)),
        "seed": args.seed,
        "seeds": args.seeds,
        "held-out": args.held_out,
        "epochs": args.epochs,
        "alpha": args.alpha,
        "beta": args.beta,
        "top-words": args.top_words,
        "consensus": args.consensus,
    });
    match options {
        Value::Object(options) => options,
        _ => Map::new(),
    }
}

/// A hash of the documents, their words and the order of their tokens.
fn fingerprint(corpus: &Corpus) -> u64 {
    let mut hash = corpus.fingerprint();
    let mut add = |bytes: &[u8]| {
        hash = checksum(&[&hash.to_le_bytes(), bytes].concat());
    };
    for tokens in (0..corpus.num_documents()).map_while(|d| corpus.tokens(d)) {
        add(&tokens.iter().flat_map(|token| token.to_le_bytes()).collect::<Vec<_>>());
    }
    for word in corpus.vocabulary().into_iter().flat_map(|words| words.iter()) {
        add(word.as_bytes());
    }
    hash
}

/// Trains the runs that are left. Each is stored when it is finished.
fn train(
    args: &Args,
    sweep: &Sweep,
    corpus: &Corpus,
    directory: &mut Directory,
) -> Result<(), SweepError> {
    let left = sweep.left();
    let mut missing: BTreeMap<u32, usize> = BTreeMap::new();
    left.iter().for_each(|&(topics, _)| *missing.entry(topics).or_default() += 1);
    // All runs of a number may be there without its own line, if a sweep was interrupted then.
    let complete = |directory: &Directory| -> Vec<u32> {
        let open = directory.results.iter().filter(|(_, results)| results.kept.is_none());
        open.map(|(&topics, _)| topics).filter(|topics| args.topics.contains(topics)).collect()
    };
    for topics in complete(directory) {
        if !missing.contains_key(&topics) {
            compare(args, topics, directory)?;
        }
    }
    let (mut done, mut failed) = (0, None);
    sweep.run(corpus, |run: SweepRun| {
        done += 1;
        let SweepRun { topics, seed, .. } = run;
        let seconds = run.measures.seconds;
        let stored = directory.add_run(&run).and_then(|()| {
            let missing = missing.get_mut(&topics).map_or(0, |missing| {
                *missing -= 1;
                *missing
            });
            if missing == 0 { compare(args, topics, directory) } else { Ok(()) }
        });
        args.program.note(&format!(
            "{done} of {}: {topics} topics, seed {seed}: {} epochs in {seconds:.1} s",
            left.len(),
            run.measures.epochs
        ));
        match stored {
            Ok(()) => Flow::Continue,
            Err(error) => {
                failed.get_or_insert(error);
                Flow::Stop
            }
        }
    })?;
    failed.map_or(Ok(()), Err)
}

/// Compares the models of a number of topics, and keeps the one whose topics the others share most; of a
/// single one, itself.
fn compare(args: &Args, topics: u32, directory: &mut Directory) -> Result<(), SweepError> {
    let models = directory.models(topics)?;
    if args.consensus {
        keep_consensus(args, topics, &models, directory)?;
    }
    let found = stability(&models);
    let seeds: Vec<u64> = directory.results[&topics].runs.keys().copied().collect();
    let overlaps = found.as_ref().map(|found| found.models.as_slice()).unwrap_or_default();
    let best = overlaps.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let at = overlaps.iter().position(|&overlap| overlap == best).unwrap_or(0);
    directory.finish(topics, seeds[at], found)?;
    directory.tidy()
}

/// Least overlap of topics that are the same in a consensus.
const LEAST_OVERLAP: f64 = 0.5;

/// Writes the topics that most models share.
fn keep_consensus(
    args: &Args,
    topics: u32,
    models: &[TopicModel],
    directory: &Directory,
) -> Result<(), SweepError> {
    let found = match consensus(models, LEAST_OVERLAP) {
        Ok(found) => found,
        Err(error) => {
            args.program.note(&format!("{topics} topics: no consensus: {error}"));
            return Ok(());
        }
    };
    found.model.save(directory.file(&format!("consensus-{topics}.lda")))?;
    let words = leading_words(&found.model, args.top_words.into());
    let table = directory.file(&format!("consensus-{topics}.csv"));
    Output::create_file(&table)?.fill(|out| {
        writeln!(out, "topic,support,overlap,words")?;
        for (number, (topic, words)) in found.topics.iter().zip(&words).enumerate() {
            let names: Vec<String> =
                words.iter().map(|&word| table::name(found.model.vocabulary(), word)).collect();
            write!(out, "{number},{},{},", topic.support, topic.overlap)?;
            write_field(out, &names.join(" "))?;
            writeln!(out)?;
        }
        Ok(())
    })?;
    args.program.note(&format!(
        "{topics} topics: {} are in more than half of the {} models: {}",
        found.topics.len(),
        models.len(),
        table.display()
    ));
    Ok(())
}

/// Writes the files and prints the table of what is finished.
fn finish(args: &Args, directory: &Directory) -> Result<(), SweepError> {
    let summaries = results::summaries(directory);
    if summaries.is_empty() {
        return Ok(());
    }
    let table = directory.file("sweep.csv");
    Output::create_file(&table)?.fill(|out| results::write_csv(directory, out))?;
    let written = directory.file("index.html");
    Output::create_file(&written)?.fill(|out| page::write(&summaries, args.seeds, out))?;
    table::print(|out| {
        results::print(&summaries, out)?;
        for (topics, criteria) in results::worth_a_look(&summaries) {
            let names: Vec<&str> = criteria.into_iter().map(Criterion::name).collect();
            let model = directory.model(topics);
            writeln!(out, "worth a look: {} ({})", model.display(), names.join(", "))?;
        }
        Ok(())
    })
    .map_err(SweepError::Print)
}
