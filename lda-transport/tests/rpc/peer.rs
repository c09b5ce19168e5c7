//! A program that makes and answers random requests and logs the outcomes.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use lda_transport::NodeId;
use lda_transport::rpc::{
    Action, CollectiveError, FailureReason, MessageBuf, Outcome, ReplyHandle, RequestId,
    RequestKind,
};
use lda_transport::rpc::{Context, Program};

use crate::collectives::Operations;
use crate::log::{Log, is_rejected, is_untold, serial_of};

const MILLISECOND: Duration = Duration::from_millis(1);
/// Number of operations in a row that miss their deadline before a program looks up the group of
/// the others.
const MISSED: u32 = 3;
const KINDS: [RequestKind; 3] = [RequestKind::Pull, RequestKind::Push, RequestKind::Call];
/// Timer of the next request; the others are those of answers.
const ASK: u64 = 0;
/// Timer of the next operation.
const GATHER: u64 = u64::MAX;
/// Length of a reply that is too long for the network.
pub const TOO_LONG: usize = 2000;

pub struct Peer {
    pub log: Rc<RefCell<Log>>,
    pub nodes: u32,
    /// Longest time between two of its requests.
    pub gap: Duration,
    /// Factor of all deadlines.
    pub patience: u32,
    /// Milliseconds that answers take while nodes make requests.
    pub times: [u32; 5],
    /// A seeded bug: requests are repeated to a new incarnation.
    pub resends: bool,
    /// Whether a new incarnation knows the group of the others. Otherwise it goes from group to
    /// group, and looks it up when several in a row time out.
    pub is_told: bool,
    /// Number of operations in a row that have missed their deadline.
    missed: u32,
    open: BTreeMap<RequestId, Vec<u8>>,
    /// Answers to send, and whether the request was executed.
    answers: BTreeMap<u64, (ReplyHandle, bool, Vec<u8>)>,
    answered: u64,
    doing: BTreeMap<NodeId, usize>,
    /// Whether each peer has joined, and its last incarnation.
    joined: BTreeMap<NodeId, (bool, u64)>,
    operations: Operations,
}

impl Peer {
    pub fn new(log: Rc<RefCell<Log>>, nodes: u32, gap: Duration, patience: u32) -> Self {
        Self {
            log,
            nodes,
            gap,
            patience,
            times: [0; 5],
            resends: false,
            is_told: false,
            missed: 0,
            open: BTreeMap::new(),
            answers: BTreeMap::new(),
            answered: ASK,
            doing: BTreeMap::new(),
            joined: BTreeMap::new(),
            operations: Operations::default(),
        }
    }

    /// Returns the number of open requests and operations.
    pub fn open(&self) -> usize {
        self.open.len() + usize::from(self.operations.is_running())
    }

    /// Returns group and number of the running operation.
    pub fn running(&self) -> Option<(u64, u64)> {
        self.operations.is_running().then(|| self.operations.next())
    }

    fn gather(&mut self, cx: &mut Context<'_>) {
        // Longer than a silence of a link, and than the wait for nodes that are in another group.
        let patience = (MILLISECOND * 1500 + self.gap * 16) * self.patience;
        self.log.borrow_mut().begins(self.operations.next());
        if let Err(what) = self.operations.begin(self.nodes, patience, cx) {
            self.log.borrow_mut().blame(what);
        }
    }

    pub fn ask(
        &mut self,
        to: NodeId,
        kind: RequestKind,
        len: usize,
        patience: Duration,
        cx: &mut Context<'_>,
    ) {
        let mut log = self.log.borrow_mut();
        let serial = log.next();
        let mut body = serial.to_le_bytes().to_vec();
        body.resize(8 + len, serial as u8);
        if let Ok(request) = cx.request(to, kind, MessageBuf::from(&body[..]), patience) {
            log.made(kind);
            self.open.insert(request, body);
        }
    }

    fn request_at_random(&mut self, cx: &mut Context<'_>) {
        let to = NodeId(cx.rng().below(u64::from(self.nodes)) as u32);
        let kind = KINDS[cx.rng().below(3) as usize];
        let len = cx.rng().below(200) as usize;
        let patience = MILLISECOND * (100 + cx.rng().below(2000) as u32) * self.patience;
        if to != cx.id() {
            self.ask(to, kind, len, patience, cx);
        }
        self.ask_later(cx);
    }

    fn ask_later(&mut self, cx: &mut Context<'_>) {
        let gap = cx.rng().up_to(self.gap);
        cx.set_timer(gap, ASK);
    }

    fn asked(&mut self, reply_to: ReplyHandle, body: Vec<u8>, cx: &mut Context<'_>) {
        let mut log = self.log.borrow_mut();
        let joined = self.joined.get(&reply_to.peer);
        if joined != Some(&(true, reply_to.incarnation)) {
            log.blame(format!("{reply_to:?} has not joined {}", cx.id()));
        }
        let doing = self.doing.entry(reply_to.peer).or_default();
        *doing += 1;
        log.most_doing = log.most_doing.max(*doing);
        let serial = serial_of(&body);
        let done = !is_rejected(serial);
        let mut reply = b"no".to_vec();
        if done {
            reply = log.did(serial, cx.incarnation()).to_le_bytes().to_vec();
        }
        reply.extend(&body);
        if is_untold(serial) {
            reply.resize(TOO_LONG, 0);
        }
        self.answered += 1;
        self.answers.insert(self.answered, (reply_to, done, reply));
        let time = self.times[cx.rng().below(5) as usize];
        let time = MILLISECOND * if log.asking { time } else { 1 };
        cx.set_timer(time, self.answered);
    }

    fn ended(&mut self, request: RequestId, outcome: &Outcome, cx: &mut Context<'_>) {
        let Some(body) = self.open.remove(&request) else {
            let what = format!("{request:?} ended, which was not open at {}: {outcome:?}", cx.id());
            return self.log.borrow_mut().blame(what);
        };
        let restarted =
            matches!(outcome, Outcome::Unknown { reason: FailureReason::NewIncarnation, .. });
        if self.resends && restarted {
            let message = MessageBuf::from(&body[..]);
            if let Ok(again) =
                cx.request(request.peer, RequestKind::Push, message, MILLISECOND * 2000)
            {
                self.open.insert(again, body);
                return;
            }
        }
        self.log.borrow_mut().ended(serial_of(&body), &body, outcome);
    }
}

impl Program for Peer {
    fn start(&mut self, cx: &mut Context<'_>) {
        self.ask_later(cx);
        if self.is_told {
            self.operations.start_after(self.log.borrow().last_begun.0);
        }
        self.gather(cx);
    }

    fn act(&mut self, action: Action, cx: &mut Context<'_>) {
        match action {
            Action::Request { reply_to, body, .. } => self.asked(reply_to, body.to_vec(), cx),
            Action::Completed { request, outcome } => self.ended(request, &outcome, cx),
            Action::Joined { peer, incarnation, restarted, .. } => {
                let before = self.joined.insert(peer, (true, incarnation));
                if before.is_some_and(|(here, last)| {
                    here || !restarted && last != incarnation && last != 0
                }) {
                    let what = format!("{peer} joined {} as {incarnation}: {before:?}", cx.id());
                    self.log.borrow_mut().blame(what);
                }
            }
            Action::Left { peer, .. } => {
                let before = self.joined.get_mut(&peer).map(|joined| &mut joined.0);
                if !before.is_some_and(std::mem::take) {
                    let what = format!("{peer} left {}, and had not joined", cx.id());
                    self.log.borrow_mut().blame(what);
                }
            }
            Action::Refused { peer, reason } => {
                self.joined.entry(peer).or_insert((false, 0)).0 = false;
                let mut log = self.log.borrow_mut();
                if log.peaceful {
                    log.blame(format!("{} refuses {peer}: {reason}", cx.id()));
                }
            }
            Action::CollectiveDone { operation, result } => {
                let ended = self.operations.ended(operation, &result, self.nodes, cx.id().0);
                let mut log = self.log.borrow_mut();
                let missed = matches!(result, Err(CollectiveError::Deadline { .. }));
                self.missed = if missed { self.missed + 1 } else { 0 };
                // A node that was away for long would never catch up, since the others wait as long
                // for it.
                if self.missed == MISSED && self.operations.next().0 < log.last_begun.0 {
                    self.operations.start_after(log.last_begun.0);
                }
                match ended {
                    Ok(got) => log.gathered(cx.id(), got),
                    Err(what) => log.blame(what),
                }
                let gap = cx.rng().up_to(self.gap * 4);
                cx.set_timer(gap, GATHER);
            }
            _ => {}
        }
        let (in_flight, most) = (cx.endpoint().in_flight(), cx.endpoint().config().in_flight);
        if in_flight > most {
            self.log
                .borrow_mut()
                .blame(format!("{in_flight} bytes are in flight from {}", cx.id()));
        }
    }

    fn timer(&mut self, timer: u64, cx: &mut Context<'_>) {
        if timer == ASK {
            if self.log.borrow().asking {
                self.request_at_random(cx);
            }
            return;
        }
        if timer == GATHER {
            let log = self.log.borrow();
            // Operations that others have begun are completed.
            let goes_on = log.gathering || self.operations.next() <= log.last_begun;
            drop(log);
            if goes_on {
                self.gather(cx);
            }
            return;
        }
        let (reply_to, done, reply) =
            self.answers.remove(&timer).expect("each timer has an answer");
        *self.doing.entry(reply_to.peer).or_default() -= 1;
        let message = MessageBuf::from(&reply[..]);
        if done {
            cx.reply(reply_to, message);
        } else {
            cx.reject(reply_to, message);
        }
    }
}
