//! A master, a server or a worker whose peers say anything, in any order: it takes what makes sense, turns away what
//! does not, or gives up and says why.
#![no_main]

use std::collections::VecDeque;
use std::sync::Arc;

use lda_core::Corpus;
use lda_dist::cluster::{Port, Role, Setup, SnapshotWriter};
use lda_dist::config::{Options, Routing};
use lda_dist::documents::InMemory;
use lda_dist::spec::ModelSpec;
use lda_dist::storage::Memory;
use lda_dist::sync::SyncMode;
use lda_transport::NodeId;
use lda_transport::rpc::{
    Action, FailureReason, MessageBuf, Outcome, Overloaded, ReplyHandle, RequestId, RequestKind,
};

const TOPICS: u32 = 5;

#[derive(arbitrary::Arbitrary, Debug)]
enum Step<'a> {
    /// A peer joins, for the first time or again.
    Joins { peer: u8, incarnation: u8, restarted: bool },
    /// It asks.
    Asks { peer: u8, body: &'a [u8] },
    /// It answers the oldest request, or the newest.
    Answers { newest: bool, done: bool, body: &'a [u8] },
    /// It takes more.
    Takes { peer: u8 },
}

/// Outstanding requests, to peers that are sometimes busy.
#[derive(Default)]
struct Peers {
    asked: VecDeque<RequestId>,
    count: u64,
}

impl Port for Peers {
    fn ask(
        &mut self,
        peer: NodeId,
        _: RequestKind,
        draft: MessageBuf,
    ) -> Result<RequestId, Overloaded> {
        self.count += 1;
        if self.count % 5 == 0 {
            return Err(Overloaded { peer, message: draft });
        }
        let request = RequestId { peer, number: self.count };
        self.asked.push_back(request);
        Ok(request)
    }

    fn reply(&mut self, _: ReplyHandle, _: MessageBuf) {}

    fn reject(&mut self, _: ReplyHandle, _: MessageBuf) {}

    fn refuse(&mut self, _: NodeId, _: String) {}
}

fn setup(routing: u8) -> Setup {
    let spec = ModelSpec::new(TOPICS, 4, 0.1.into(), 0.1, 1).expect("a job");
    let staleness = u16::from(routing / 3 % 2);
    let sync = match routing / 6 % 2 {
        0 => SyncMode::rounds(staleness),
        _ => SyncMode::bounded(staleness),
    };
    // An elastic run needs a storage.
    let workers = 1 + u32::from(routing >= 192);
    let routing = [Routing::Cheapest, Routing::Pull, Routing::Push][usize::from(routing % 3)];
    let cut = Options { shards: 2, partitions: 3, rounds: 2, sync, ..Options::default() };
    let options = Options { servers: 1, routing, ..cut };
    Setup::new(spec, 7)
        .options(options)
        .workers(workers)
        .min_workers(1)
        .epochs(2)
        .evaluate_every(1)
        .top_words(2)
        .collect_model(true)
        .checkpoint_every(1)
}

libfuzzer_sys::fuzz_target!(|input: (u8, u8, Vec<Step<'_>>)| {
    let (id, routing, steps) = input;
    let corpus = Corpus::from_tokens([[0u32, 1, 1, 3], [2, 2, 0, 3]]).expect("it is legal");
    let documents = InMemory::new(corpus, 2).expect("two documents");
    let snapshot_writer =
        (routing >= 128).then(|| SnapshotWriter::now(Arc::new(Memory::default())));
    let (setup, id) = (setup(routing), NodeId(u32::from(id) % (2 + setup(routing).workers)));
    let mut role = Role::<u16, InMemory>::new(setup, id, documents, snapshot_writer);
    let mut port = Peers::default();
    role.start();
    for step in steps {
        let action = match step {
            Step::Joins { peer, incarnation, restarted } => Action::Joined {
                peer: NodeId(u32::from(peer % 4)),
                role: 0,
                incarnation: u64::from(incarnation) + 1,
                restarted,
            },
            Step::Asks { peer, body } => Action::Request {
                reply_to: ReplyHandle {
                    peer: NodeId(u32::from(peer % 4)),
                    incarnation: 1,
                    number: 1,
                },
                kind: RequestKind::Call,
                body: body.to_vec().into(),
            },
            Step::Answers { newest, done, body } => {
                let next = if newest { port.asked.pop_back() } else { port.asked.pop_front() };
                let Some(request) = next else { continue };
                let outcome = match (done, body) {
                    (true, body) => Outcome::Done(body.to_vec().into()),
                    (false, []) => {
                        Outcome::Unknown { reason: FailureReason::NewIncarnation, sent: true }
                    }
                    (false, body) => Outcome::Rejected(body.to_vec().into()),
                };
                Action::Completed { request, outcome }
            }
            Step::Takes { peer } => Action::Ready { peer: NodeId(u32::from(peer % 4)) },
        };
        role.act(action, &mut port);
        while role.work(&mut port) {}
        if let Some(failed) = role.failed() {
            return assert!(!failed.to_string().is_empty());
        }
    }
});
