//! Tests of the master alone.

use lda_core::Corpus;
use lda_transport::NodeId;
use lda_transport::rpc::{Action, Outcome, ReplyHandle};

use super::*;
use crate::cluster::epoch_range::EpochRange;
use crate::cluster::recorder::Recorder;
use crate::cluster::{Role, Setup};
use crate::config::Options;
use crate::documents::InMemory;
use crate::placement::DocumentLengths;
use crate::spec::ModelSpec;
use crate::storage::Memory;
use crate::wire::RowCode;

const SERVER: NodeId = NodeId(1);
const WORKER: NodeId = NodeId(2);

/// The master of a run with one server and one worker, which are ready.
fn master(asked: &mut Recorder) -> Master {
    master_with(None, asked)
}

/// The same with storage for checkpoints.
fn master_with(writer: Option<SnapshotWriter>, asked: &mut Recorder) -> Master {
    let corpus = Corpus::from_tokens([[0u32, 1, 1]]).unwrap();
    let cut = Options { shards: 1, partitions: 1, rounds: 1, ..Options::default() };
    let setup = Setup::new(ModelSpec::new(3, 2, 0.1.into(), 0.1, 1).unwrap(), 1)
        .options(Options { servers: 1, ..cut })
        .epochs(9)
        .evaluate_every(0)
        .checkpoint_every(1)
        .prefetch(0);
    let mut master = Master::new(setup, writer, None);
    let word_stats = vec![(0, 1, 1), (1, 2, 1)];
    let words = Control::Words { shard: 0, lengths: DocumentLengths::of(&corpus), word_stats };
    let here = Control::Ready { attempt: 0, in_memory: EpochRange::default() };
    for (peer, control) in [(WORKER, &words), (WORKER, &here), (SERVER, &here)] {
        master.act(message(peer, control), asked).unwrap();
    }
    assert_eq!(master.step, Step::Starting(1));
    end(&mut master, asked, &[]).unwrap();
    assert_eq!((master.step, master.round()), (Step::Working, Round::joining(0, 1)));
    master
}

fn message(peer: NodeId, control: &Control) -> Action {
    let reply_to = ReplyHandle { peer, incarnation: 1, number: 1 };
    Action::Request { reply_to, kind: RequestKind::Push, body: control.encode(3, 2).into() }
}

/// Replies to the last request.
fn end(master: &mut Master, asked: &mut Recorder, reply: &[u8]) -> Result<(), Failed> {
    let (request, outcome) = (*asked.asked.last().unwrap(), Outcome::Done(reply.to_vec().into()));
    master.act(Action::Completed { request, outcome }, asked)
}

/// A worker's report of a round, without priors.
fn round_done(
    round: Round,
    (kept, writing): (u32, bool),
    delta: Vec<(u32, i32)>,
    epoch_stats: Option<WorkerEpochStats>,
) -> Control {
    let (priors, documents) = (None, None);
    Control::RoundDone { round, kept, writing, delta, priors, documents, epoch_stats }
}

/// Otherwise servers would refuse requests of the attempt that is on, as those of another one.
#[test]
fn a_node_that_comes_does_not_change_the_number_of_the_attempt() {
    let mut asked = Recorder::default();
    let mut master = master(&mut asked);
    // It has had attempts with a master before this one.
    let ready = Control::Ready { attempt: 7, in_memory: EpochRange::default() };
    master.act(message(WORKER, &ready), &mut asked).unwrap();
    assert_eq!((master.step, master.attempt), (Step::Working, 1));
    master.abandon_attempt(&mut asked);
    master.act(message(WORKER, &ready), &mut asked).unwrap();
    assert_eq!((master.attempt, master.round()), (8, Round::joining(0, 8)));
}

/// Otherwise a run would go on from topics that do not exist, and others would be removed.
#[test]
fn a_kept_epoch_in_a_report_is_not_in_the_future() {
    for (kept, is_legal) in [(0, true), (1, false), (u32::MAX, false)] {
        let mut asked = Recorder::default();
        let mut master = master(&mut asked);
        let (round, epoch_stats) = (Round::joining(0, 1), None);
        let done = round_done(round, (kept, false), Vec::new(), epoch_stats);
        let ended = master.act(message(WORKER, &done), &mut asked);
        assert_eq!(ended.is_ok(), is_legal, "{kept}: {ended:?}");
        if let Err(failed) = ended {
            assert!(failed.to_string().contains(&format!("has kept epoch {kept}")));
        }
    }
}

/// A node whose messages make no sense does not end the run: it is refused, and its successor takes part
/// in the next attempt.
#[test]
fn a_node_that_sends_nonsense_is_refused() {
    let mut asked = Recorder::default();
    let mut role: Role<u16, InMemory> = Role::Master(Box::new(master(&mut asked)));
    let step = |role: &Role<u16, InMemory>| match role {
        Role::Master(master) => (master.step, master.attempt),
        _ => unreachable!(),
    };
    let nonsense = Control::Keep { round: Round::joining(9, 1) };
    role.act(message(WORKER, &nonsense), &mut asked);
    assert_eq!((role.failed(), asked.refused.as_slice()), (None, &[WORKER][..]));
    assert_eq!(step(&role), (Step::Waiting, 1));
    // The server alone is not enough for another attempt.
    role.act(
        message(SERVER, &Control::Ready { attempt: 1, in_memory: EpochRange::default() }),
        &mut asked,
    );
    assert_eq!(step(&role), (Step::Waiting, 1));
    role.act(
        message(WORKER, &Control::Ready { attempt: 0, in_memory: EpochRange::default() }),
        &mut asked,
    );
    assert_eq!(step(&role), (Step::Starting(1), 2));
}

/// Otherwise a round would end without a worker.
#[test]
fn a_server_is_not_done_in_place_of_a_worker() {
    let mut asked = Recorder::default();
    let mut master = master(&mut asked);
    let (round, epoch_stats) = (Round::joining(0, 1), None);
    let done = round_done(round, (0, false), Vec::new(), epoch_stats);
    let failed = master.act(message(SERVER, &done), &mut asked).unwrap_err();
    assert!(failed.to_string().contains("that it is done"), "{failed}");
    assert_eq!(master.step, Step::Working);
}

#[test]
fn a_kept_epoch_in_a_reply_is_not_in_the_future() {
    for (reply, is_legal) in [(&[2, 0, 0, 0][..], true), (&[3, 0, 0, 0], false), (&[2], false)] {
        let mut asked = Recorder::default();
        let mut master = master(&mut asked);
        master.rounds.oldest = Round { epoch: 2, number: 0, attempt: 1 };
        master.step = Step::Keeping(1);
        let keep = Control::Keep { round: Round::joining(2, 1) };
        master.send_workers(&keep, RequestKind::Call, RequestPurpose::Keep, &mut asked);
        let ended = end(&mut master, &mut asked, reply);
        assert_eq!(ended.is_ok(), is_legal, "{reply:?}: {ended:?}");
    }
}

/// Otherwise the model would not be written because a worker died after the last round.
#[test]
fn the_run_ends_without_a_node_that_is_lost_after_the_last_round() {
    let mut asked = Recorder::default();
    let mut master = master(&mut asked);
    assert!(master.needs(WORKER) && master.needs(SERVER));
    master.finish_without(WORKER, &mut asked);
    assert_eq!(master.step, Step::Working, "the run is not over");
    master.finish(&mut asked);
    let of_worker = *asked.asked.last().unwrap();
    assert_eq!((of_worker.peer, master.step), (WORKER, Step::Finishing(2)));
    master.finish_without(WORKER, &mut asked);
    assert_eq!(master.step, Step::Finishing(1));
    // It is given up once, whatever arrives later.
    master.finish_without(WORKER, &mut asked);
    let outcome = Outcome::Done(Vec::new().into());
    master.act(Action::Completed { request: of_worker, outcome }, &mut asked).unwrap();
    assert_eq!(master.step, Step::Finishing(1));
    assert!(master.needs(SERVER) && !master.needs(WORKER));
    master.finish_without(SERVER, &mut asked);
    assert!(master.is_finished() && !master.needs(SERVER));
}

/// A worker may lose what it has in memory after the master has heard of it.
#[test]
fn a_run_goes_back_to_a_checkpoint_without_topics_in_memory() {
    let mut asked = Recorder::default();
    let mut master = master(&mut asked);
    let ready = |epoch| {
        let in_memory = EpochRange::one(epoch);
        message(WORKER, &Control::Ready { attempt: 1, in_memory })
    };
    let failed = master.act(ready(10), &mut asked).unwrap_err();
    assert!(failed.to_string().contains("that it has topics of epoch 10"), "{failed}");
    master.act(ready(4), &mut asked).unwrap();
    master.abandon_attempt(&mut asked);
    master.act(ready(4), &mut asked).unwrap();
    assert_eq!(master.round(), Round::joining(4, 2));
    end(&mut master, &mut asked, &[]).unwrap();
    let unreadable = Control::Unreadable { attempt: 2, why: "lost".to_owned() };
    master.act(message(WORKER, &unreadable), &mut asked).unwrap();
    assert_eq!((master.step, master.round()), (Step::Starting(1), Round::joining(0, 3)));
    assert!(master.trouble().is_none(), "no checkpoint is damaged");
}

/// Otherwise a master that is lost in between would go on after an epoch that has no report.
#[test]
fn a_checkpoint_is_recorded_when_its_epoch_is_reported() {
    let mut asked = Recorder::default();
    let writer = SnapshotWriter::now(Arc::new(Memory::default()));
    let mut master = master_with(Some(writer), &mut asked);
    // Changes of C_k, and bytes held.
    let reply = |delta: &[(u32, i32)]| {
        let mut reply = Vec::new();
        RowCode::new(3).encode(delta, &mut reply);
        [reply, vec![0; 8]].concat()
    };
    let done = |round, kept, epoch_stats| {
        let (writing, delta) = (false, Vec::new());
        message(WORKER, &round_done(round, (kept, writing), delta, epoch_stats))
    };
    master.act(done(Round::joining(0, 1), 0, None), &mut asked).unwrap();
    end(&mut master, &mut asked, &reply(&[(0, 3)])).unwrap();
    end(&mut master, &mut asked, &[]).unwrap();
    let round = Round { epoch: 1, number: 0, attempt: 1 };
    assert_eq!((master.step, master.round()), (Step::Working, round));
    master.act(done(round, 1, Some(WorkerEpochStats::default())), &mut asked).unwrap();
    assert_eq!((master.step, master.kept(), master.report()), (Step::Ending(1), 0, None));
    end(&mut master, &mut asked, &reply(&[])).unwrap();
    assert_eq!((master.kept(), master.report().map(|report| report.kept)), (1, Some(1)));
}
