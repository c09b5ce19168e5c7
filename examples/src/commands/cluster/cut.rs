//! `lda cluster cut`: divides documents into shards in a directory or an object store.

use lda_dist::documents::{StoredDocuments, store, store_held_out};
use lda_examples::held_out::num_documents;
use lda_examples::reading;

use crate::commands::cluster::args::Cut;
use crate::commands::cluster::error::ClusterError;
use crate::commands::cluster::from_model;
use crate::commands::cluster::held_out::split;

/// Reads the documents and writes them shard by shard.
///
/// # Errors
/// [`ClusterError`].
pub fn run(args: &Cut) -> Result<(), ClusterError> {
    args.program.start_threads()?;
    let note = &mut |text: &str| args.program.note(text);
    let (mut corpus, name) = reading::read_or_sources(args.path.as_deref(), &args.reading, note)?;
    if corpus.num_tokens() == 0 {
        return Err(ClusterError::Empty(name));
    }
    if let Some(model) = from_model::load(args.from.as_deref())? {
        from_model::widen(&mut corpus, &model, note)?;
    }
    let mut held_out = None;
    if let Some(share) = args.held_out {
        let (train, held) = split(&corpus, share, args.seed)?;
        (corpus, held_out) = (train, Some(held));
    }
    let storage = args.out.create()?;
    let place = |error| ClusterError::Stored { place: args.out.to_string(), error };
    store(&corpus, args.shards, &storage).map_err(place)?;
    if let Some(held_out) = &held_out {
        store_held_out(held_out, &storage).map_err(place)?;
    }
    let stored = StoredDocuments::open(storage).map_err(place)?;
    let out = held_out.map_or(String::new(), |held_out| {
        format!("; {} documents are held out", num_documents(&held_out))
    });
    args.program.note(&format!(
        "{}: {} shards of {} documents, {} tokens, {} words{out}",
        args.out,
        stored.num_shards(),
        stored.num_documents(),
        stored.num_tokens(),
        stored.num_words()
    ));
    Ok(())
}
