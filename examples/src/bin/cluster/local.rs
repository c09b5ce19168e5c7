//! All nodes as threads of this process.

use lda_core::Corpus;
use lda_core::counts::TopicIndex;
use lda_dist::cluster::{Failed, Role, RunError, Setup, run_local};
use lda_dist::documents::InMemory;
use lda_dist::placement::WordUses;
use lda_dist::together::place;
use lda_examples::output::Output;
use lda_examples::reading;

use crate::args::{Local, RoleName};
use crate::config::Which;
use crate::error::ClusterError;
use crate::results::Results;
use crate::training::Extent;
use crate::watched::Watched;

/// Trains, from the documents to the model.
///
/// # Errors
/// [`ClusterError`].
pub fn run(args: &Local) -> Result<(), ClusterError> {
    args.program.start_threads()?;
    let output = args.training.save.as_deref().map(Output::create_file).transpose()?;
    let read = reading::read(&args.path, &args.reading, &mut |text| args.program.note(text))?;
    let corpus = read.corpus;
    if corpus.num_tokens() == 0 {
        return Err(ClusterError::Empty(args.path.display().to_string()));
    }
    let (documents, words) = (corpus.num_documents() as u64, corpus.num_words() as u32);
    let extent = Extent { documents, words, fingerprint: corpus.fingerprint() };
    let setup = args.training.setup(args.shards, extent)?;
    let documents = divide(&setup, corpus).map_err(RunError::from)?;
    let (tokens, address) = (documents.corpus().num_tokens(), args.status.as_deref());
    let master = Which { role: RoleName::Master, index: 0 };
    let (log, vocabulary) = (args.training.log.as_deref(), documents.corpus().vocabulary());
    let mut watched = Watched::new(&args.program, &setup, master, tokens, address, log)?
        .naming(vocabulary, args.training.show_topics);
    let results = if u64::from(setup.job.topics()) <= u16::MAX_TOPICS {
        results(&run_local::<u16, _>(&setup, &documents, |master| watched.look(master))?)
    } else {
        results(&run_local::<u32, _>(&setup, &documents, |master| watched.look(master))?)
    };
    match results {
        Some(results) => results.write(&args.training, &setup, vocabulary, output),
        None => Ok(()),
    }
}

/// Shards of the documents. Here all is known that nodes would find out.
fn divide(setup: &Setup, corpus: Corpus) -> Result<InMemory, Failed> {
    setup.check()?;
    let (words, documents) = (WordUses::of(&corpus), corpus.num_documents() as u64);
    place(&setup.job, &setup.options, &words, documents)?;
    Ok(InMemory::new(corpus, setup.options.shards)?)
}

/// What the master has, which comes first.
fn results<T: TopicIndex>(nodes: &[Role<T, InMemory>]) -> Option<Results> {
    nodes.first().and_then(Results::of)
}
