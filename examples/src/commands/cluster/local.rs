//! `lda cluster local`: all nodes as threads of this process.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use lda_core::Corpus;
use lda_core::counts::TopicIndex;
use lda_dist::cluster::{Failed, Role, RunError, Setup, run_local};
use lda_dist::documents::InMemory;
use lda_dist::placement::{DocumentLengths, WordStats};
use lda_dist::plan::place;
use lda_dist::storage::Storage;
use lda_examples::output::Output;
use lda_examples::reading;

use crate::commands::cluster::args::Local;
use crate::commands::cluster::error::ClusterError;
use crate::commands::cluster::from_model::{self, FromModel};
use crate::commands::cluster::held_out::{HeldOutDocuments, split};
use crate::commands::cluster::monitor::Monitor;
use crate::commands::cluster::results::Results;
use crate::commands::cluster::role::{NodeName, RoleName};
use crate::commands::cluster::stop;
use crate::commands::cluster::stop_rule::StopRule;
use crate::commands::cluster::storage_url::StorageUrl;
use crate::commands::cluster::training::Extent;

/// Reads the documents, trains, and writes the results.
///
/// # Errors
/// [`ClusterError`].
pub fn run(args: &Local) -> Result<(), ClusterError> {
    args.program.start_threads()?;
    let output = args.training.save.as_deref().map(Output::create_file).transpose()?;
    let note = &mut |text: &str| args.program.note(text);
    let (mut corpus, name) = reading::read_or_sources(args.path.as_deref(), &args.reading, note)?;
    if corpus.num_tokens() == 0 {
        return Err(ClusterError::Empty(name));
    }
    let model = from_model::load(args.training.from.as_deref())?;
    if let Some(model) = &model {
        from_model::widen(&mut corpus, model, note)?;
    }
    let (corpus, held_out) = hold_out(args, corpus)?;
    let from = model.map(|model| FromModel::new(model, &corpus, &args.training)).transpose()?;
    let (documents, words) = (corpus.num_documents() as u64, corpus.num_words() as u32);
    let (mean_length, fingerprint) = (corpus.mean_length(), corpus.fingerprint());
    let extent = Extent { documents, words, mean_length, fingerprint };
    let mut setup = args.training.setup(args.shards, extent, from.as_ref())?;
    let storage = args.snapshots.as_ref().map(StorageUrl::create).transpose()?;
    let kept = storage.is_some();
    setup.checkpoint_every = if kept { args.snapshot_every } else { 0 };
    setup.collect_evaluated = args.patience.is_some();
    setup.collect_model |= held_out.is_some();
    let asked =
        stop::listen(if kept { stop::AfterEpoch::Checkpoint } else { stop::AfterEpoch::Results });
    let asked = asked.map_err(ClusterError::Signals)?;
    // Without checkpoints, the run ends with its results.
    let (stop, ends) = if kept { (Some(asked), None) } else { (None, Some(asked)) };
    setup.check().map_err(|error| RunError::from(Failed::from(error)))?;
    ClusterError::check_threads(args.program.threads(), &setup, 0..setup.workers)?;
    let needed = setup.least_memory_local(corpus.num_tokens());
    ClusterError::check_memory("all nodes together need", needed)?;
    let documents = divide(&setup, corpus).map_err(RunError::from)?;
    let (tokens, address) = (documents.corpus().num_tokens(), args.status.as_deref());
    let master = NodeName { role: RoleName::Master, index: 0 };
    let rule = held_out.as_ref().and_then(HeldOutDocuments::rule);
    let (log, vocabulary) = (args.training.log.as_deref(), documents.corpus().vocabulary());
    let mut monitor = Monitor::new(&args.program, &setup, master, tokens, address, log)?
        .stopping(StopRule::new(&args.training, ends).held_out(rule))
        .evaluating(held_out.clone())
        .naming(vocabulary, args.training.show_topics);
    let results = if u64::from(setup.spec.topics()) <= u16::MAX_TOPICS {
        train::<u16>(&setup, &documents, storage.as_ref(), stop.as_deref(), &mut monitor)?
    } else {
        train::<u32>(&setup, &documents, storage.as_ref(), stop.as_deref(), &mut monitor)?
    };
    match results {
        Some(results) => results.write(&args.training, vocabulary, output, held_out.as_ref()),
        None => Ok(()),
    }
}

/// Keeps documents out of training, if any are to be held out.
fn hold_out(
    args: &Local,
    corpus: Corpus,
) -> Result<(Corpus, Option<HeldOutDocuments>), ClusterError> {
    let Some(share) = args.held_out else { return Ok((corpus, None)) };
    if args.patience.is_some() && args.training.evaluate_every == 0 {
        let why = "--patience needs evaluations: set --evaluate-every above 0, or omit --patience";
        return Err(ClusterError::Usage(why.to_owned()));
    }
    let seed = args.training.seed;
    let (train, held) = split(&corpus, share, seed)?;
    Ok((train, Some(HeldOutDocuments::new(held, seed, args.patience))))
}

/// Divides the documents into shards, after words are placed as each node of a network does by itself.
fn divide(setup: &Setup, corpus: Corpus) -> Result<InMemory, Failed> {
    place(&setup.spec, &setup.options, &WordStats::of(&corpus), DocumentLengths::of(&corpus))?;
    Ok(InMemory::new(corpus, setup.options.shards)?)
}

/// Runs all nodes to the end and returns the results of the master, which is the first node.
fn train<T: TopicIndex>(
    setup: &Setup,
    documents: &InMemory,
    storage: Option<&Arc<dyn Storage>>,
    stop: Option<&AtomicBool>,
    monitor: &mut Monitor<'_>,
) -> Result<Option<Results>, ClusterError> {
    let watch = |master: &mut Role<T, InMemory>| monitor.poll(master, None);
    let nodes = run_local(setup, documents, storage, stop, watch)?;
    Ok(nodes.first().and_then(Results::of))
}
