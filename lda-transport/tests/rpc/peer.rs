//! A program that asks others at random, answers at random, and writes down what comes of it.

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

use crate::log::{Log, is_rejected, is_untold, serial_of};
use crate::together::Together;

const MILLISECOND: Duration = Duration::from_millis(1);
/// Operations in a row that miss their deadline before a program asks where the others are.
const MISSED: u32 = 3;
const KINDS: [RequestKind; 3] = [RequestKind::Pull, RequestKind::Push, RequestKind::Call];
/// The timer by which it asks; others are answers.
const ASK: u64 = 0;
/// The timer by which it begins what is done together.
const GATHER: u64 = u64::MAX;
/// Bytes of a reply that no transport here takes.
pub const TOO_LONG: usize = 2000;

pub struct Peer {
    pub log: Rc<RefCell<Log>>,
    pub nodes: u32,
    /// Between two requests of it, at most.
    pub gap: Duration,
    /// How long requests may take, in times.
    pub patience: u32,
    /// Milliseconds that answers take, while nodes ask.
    pub times: [u32; 5],
    /// A mistake made on purpose: what a new incarnation does not know of is asked again.
    pub resends: bool,
    /// Whether a new incarnation knows in which group the others are; else it finds out, group by group, and asks
    /// when nobody has come to some of them.
    pub is_told: bool,
    /// Operations in a row that have missed their deadline.
    missed: u32,
    open: BTreeMap<RequestId, Vec<u8>>,
    /// Those to come, and whether it was done.
    answers: BTreeMap<u64, (ReplyHandle, bool, Vec<u8>)>,
    answered: u64,
    doing: BTreeMap<NodeId, usize>,
    /// Those that have joined, and as what they did last.
    joined: BTreeMap<NodeId, (bool, u64)>,
    together: Together,
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
            together: Together::default(),
        }
    }

    /// Requests and operations without an end.
    pub fn open(&self) -> usize {
        self.open.len() + usize::from(self.together.is_running())
    }

    /// Group and number of the operation that runs.
    pub fn running(&self) -> Option<(u64, u64)> {
        self.together.is_running().then(|| self.together.next())
    }

    fn gather(&mut self, cx: &mut Context<'_>) {
        // None lasts as long as a link may be silent, or those that went on to another group.
        let patience = (MILLISECOND * 1500 + self.gap * 16) * self.patience;
        self.log.borrow_mut().begins(self.together.next());
        if let Err(what) = self.together.begin(self.nodes, patience, cx) {
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

    fn ask_somebody(&mut self, cx: &mut Context<'_>) {
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
            let what = format!("{request:?} ended, which {} had not open: {outcome:?}", cx.id());
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
            self.together.start_after(self.log.borrow().last_begun.0);
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
                let ended = self.together.ended(operation, &result, self.nodes, cx.id().0);
                let mut log = self.log.borrow_mut();
                let missed = matches!(result, Err(CollectiveError::Deadline { .. }));
                self.missed = if missed { self.missed + 1 } else { 0 };
                // Those that were away for long would never catch up with others, who wait as long for them.
                if self.missed == MISSED && self.together.next().0 < log.last_begun.0 {
                    self.together.start_after(log.last_begun.0);
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
            self.log.borrow_mut().blame(format!("{in_flight} bytes are underway of {}", cx.id()));
        }
    }

    fn timer(&mut self, timer: u64, cx: &mut Context<'_>) {
        if timer == ASK {
            if self.log.borrow().asking {
                self.ask_somebody(cx);
            }
            return;
        }
        if timer == GATHER {
            let log = self.log.borrow();
            // What others have begun is brought to an end.
            let goes_on = log.gathering || self.together.next() <= log.last_begun;
            drop(log);
            if goes_on {
                self.gather(cx);
            }
            return;
        }
        let (reply_to, done, reply) = self.answers.remove(&timer).expect("it was set once");
        *self.doing.entry(reply_to.peer).or_default() -= 1;
        let message = MessageBuf::from(&reply[..]);
        if done {
            cx.reply(reply_to, message);
        } else {
            cx.reject(reply_to, message);
        }
    }
}
