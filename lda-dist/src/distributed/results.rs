//! The results of a run, gathered from the roles of its nodes.

use lda_core::Corpus;
use lda_core::counts::TopicIndex;
use lda_core::model::{Provenance, TopicModel};
use lda_core::train::{Assignments, EpochReport, PseudoCounts, Resolved, Trained};

use super::Borrowed;
use crate::cluster::{CollectedCounts, Failed, MASTER, Role, RunError, Setup};
use crate::config::Options;
use crate::priors::Priors;
use crate::sync::SyncMode;

/// Assembles a finished run: the model from the rows of the servers, the assignments from the shards
/// of the workers.
pub(super) fn trained<T: TopicIndex>(
    setup: &Setup,
    documents: Borrowed<'_>,
    nodes: &[Role<T, Borrowed<'_>>],
    resolved: Resolved,
    last: EpochReport,
) -> Result<Trained, RunError> {
    let corpus = documents.corpus;
    let counts = collect(setup, nodes)?;
    let master = nodes.iter().find_map(|node| match node {
        Role::Master(master) => Some(master),
        _ => None,
    });
    let Priors { alpha, beta } =
        master.map_or_else(|| setup.spec.priors(), |master| master.priors());
    let model = TopicModel::from_counts(&counts, alpha, beta)
        .with_vocabulary(corpus.vocabulary().cloned())
        .with_provenance(provenance(setup, corpus, &resolved, &last));
    let topics = assignments(documents, nodes);
    let assignments = Assignments::new(corpus, topics).expect("shards have all tokens");
    Ok(Trained::new(model, assignments, resolved, last))
}

/// C_w and C_k in the servers' rows.
fn collect<T: TopicIndex>(
    setup: &Setup,
    nodes: &[Role<T, Borrowed<'_>>],
) -> Result<CollectedCounts, RunError> {
    let (topics, words) = (setup.spec.topics() as usize, setup.spec.words() as usize);
    let mut counts = CollectedCounts::new(topics, words);
    for node in nodes {
        if let Role::Server(server) = node
            && let Some(rows) = server.rows()
        {
            rows.for_each(|word, row| counts.add(word, 0, row));
        }
    }
    // Slices of a hot word lie on several servers.
    counts.merge();
    let adds_up = |node: &Role<T, Borrowed<'_>>| match node {
        Role::Master(master) => counts.add_up_to(master.totals()),
        _ => true,
    };
    if nodes.iter().all(adds_up) {
        return Ok(counts);
    }
    let what = "rows that do not add up to the totals".to_owned();
    Err(Failed::Message { peer: MASTER, what }.into())
}

/// The topic of every token: documents in order, in each document words ascending.
fn assignments<T: TopicIndex>(
    documents: Borrowed<'_>,
    nodes: &[Role<T, Borrowed<'_>>],
) -> Vec<u32> {
    let Borrowed { corpus, firsts } = documents;
    let mut next: Vec<usize> = Vec::with_capacity(corpus.num_documents());
    let mut end = 0;
    for document in corpus.documents() {
        next.push(end);
        end += document.len() as usize;
    }
    let starts = next.clone();
    let mut tokens = vec![(0, 0); end];
    for node in nodes {
        let Role::Worker(worker) = node else { continue };
        for shard in worker.shards() {
            let first = firsts[usize::from(shard.number())];
            shard.tokens().for_each(|document, word, topic| {
                let at = &mut next[first + document as usize];
                tokens[*at] = (word, topic);
                *at += 1;
            });
        }
    }
    // A stable sort: tokens of a word stay in the order of their shard, which no number of workers
    // changes.
    for (&start, &end) in starts.iter().zip(&next) {
        tokens[start..end].sort_by_key(|token| token.0);
    }
    tokens.into_iter().map(|(_, topic)| topic).collect()
}

/// The provenance of the model. Options of `Lda` are not set, because they would not reproduce the
/// run; a note has those of this run.
fn provenance(
    setup: &Setup,
    corpus: &Corpus,
    resolved: &Resolved,
    last: &EpochReport,
) -> Provenance {
    let Options { shards, partitions, rounds, sync, servers, hybrid, .. } = setup.options;
    let (sampler, seed) = (resolved.sampler.name(), resolved.seed);
    let warp = match hybrid.short_length {
        0 | u32::MAX => String::new(),
        tokens => format!(", warp above {tokens} tokens"),
    };
    let staleness = match sync {
        SyncMode::Rounds { staleness } => format!("staleness {staleness}"),
        SyncMode::Bounded { staleness } => format!("staleness of at most {staleness}"),
    };
    let note = format!(
        "{sampler}{warp}, seed {seed}; {shards} shards, {partitions} partitions, {rounds} rounds per \
         epoch, {staleness}, {servers} servers"
    );
    let mut provenance = Provenance::default();
    provenance.epochs = Some(last.epoch);
    provenance.log_joint = last.log_joint_per_token();
    provenance.documents = Some(corpus.num_documents() as u64);
    provenance.tokens = Some(corpus.num_tokens());
    provenance.corpus = Some(corpus.fingerprint());
    provenance.pseudo_counts = setup.spec.pseudo_counts().map(PseudoCounts::fingerprint);
    provenance.notes.push(("lda-dist".to_owned(), note));
    provenance
}
