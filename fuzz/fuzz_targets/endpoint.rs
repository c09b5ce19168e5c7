//! Two endpoints, and a wire on which anything happens: no panic, every request ends once, bounds hold.
#![no_main]

use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

use arbitrary::Arbitrary;
use lda_transport::rpc::{
    Action, Collective, Config, Element, Endpoint, Event, Group, Identity, MessageBuf, OperationId,
    ReplyHandle, RequestId, RequestKind, Window,
};
use lda_transport::{DisconnectReason, Frame, NodeId, SendError, Time};

#[derive(Arbitrary, Debug)]
enum Step {
    Deliver,
    Lose,
    Double,
    /// Changes a byte of the next frame.
    Change {
        place: u8,
        by: u8,
    },
    Cut {
        len: u8,
    },
    Inject(Vec<u8>),
    /// A message of a kind, from the expected peer, with any numbers.
    Forge {
        kind: u8,
        detail: u8,
        id: u8,
        floor: u8,
        body: u8,
    },
    Request {
        kind: u8,
        len: u16,
        patience: u8,
    },
    Answer {
        reject: bool,
    },
    Begin {
        kind: u8,
        len: u16,
        patience: u8,
    },
    /// A part of an operation, whose numbers may fit.
    Part {
        id: u8,
        tag: [u8; 12],
        body: u8,
    },
    Abandon,
    Pass {
        tenths: u8,
    },
    Down,
    Up,
    Restart,
    Full,
}

struct Side {
    endpoint: Endpoint,
    out: VecDeque<Frame>,
    open: BTreeSet<RequestId>,
    asked: VecDeque<ReplyHandle>,
    operations: BTreeSet<OperationId>,
}

fn side(incarnation: u64) -> Side {
    let identity = Identity { incarnation, role: 0, run: 1, configuration: 1 };
    let config = Config {
        window: Window { requests: 2, bytes: 300 },
        in_flight: 500,
        queue: 3,
        retry: Some(Duration::from_millis(300)),
        part_len: 64,
        max_content_len: 4096,
        ..Config::new(identity)
    };
    let (out, open, asked, operations) = Default::default();
    Side { endpoint: Endpoint::new(config), out, open, asked, operations }
}

fn drain(sides: &mut [Side; 2], now: Time) {
    for side in sides {
        while let Some(action) = side.endpoint.poll() {
            match action {
                Action::Request { reply_to, .. } => side.asked.push_back(reply_to),
                Action::Completed { request, .. } => assert!(side.open.remove(&request), "twice"),
                Action::CollectiveDone { operation, result } => {
                    assert!(side.operations.remove(&operation), "twice");
                    assert!(result.iter().flatten().all(|content| content.len() <= 4096));
                }
                _ => {}
            }
        }
        // One request may be longer than the bound.
        assert!(side.endpoint.in_flight() <= 500 + (1 << 16) + 40);
        while side.out.len() < 100 {
            let Some((_, frame)) = side.endpoint.transmit(now) else { break };
            side.out.push_back(frame);
        }
    }
}

libfuzzer_sys::fuzz_target!(|steps: Vec<(bool, Step)>| {
    let mut sides = [side(1), side(2)];
    let (mut now, mut incarnation, mut up) = (Time(1), 3, false);
    for (second, step) in steps {
        let (at, peer) = (usize::from(second), NodeId(u32::from(!second)));
        match step {
            Step::Deliver | Step::Double => {
                if let Some(frame) = sides[1 - at].out.pop_front() {
                    if matches!(step, Step::Double) {
                        sides[1 - at].out.push_back(frame.clone());
                    }
                    sides[at].endpoint.handle(Event::Frame { peer, frame }, now);
                }
            }
            Step::Lose => drop(sides[at].out.pop_front()),
            Step::Change { place, by } => {
                if let Some(frame) = sides[at].out.front_mut() {
                    let mut bytes = frame.to_vec();
                    let place = usize::from(place) % bytes.len().max(1);
                    bytes.iter_mut().skip(place).take(1).for_each(|byte| *byte ^= by);
                    *frame = Frame::from(bytes);
                }
            }
            Step::Cut { len } => {
                if let Some(frame) = sides[at].out.front_mut() {
                    *frame = Frame::from(frame[..frame.len().min(len.into())].to_vec());
                }
            }
            Step::Inject(bytes) => {
                sides[at].endpoint.handle(Event::Frame { peer, frame: Frame::from(bytes) }, now);
            }
            Step::Forge { kind, detail, id, floor, body } => {
                let identity = |side: &Side| side.endpoint.config().identity.incarnation;
                let mut bytes = vec![0; 40 + usize::from(body)];
                bytes[..2].copy_from_slice(&[kind % 8, detail % 4]);
                let numbers =
                    [identity(&sides[1 - at]), identity(&sides[at]), id.into(), floor.into()];
                for (place, number) in bytes[8..40].chunks_exact_mut(8).zip(numbers) {
                    place.copy_from_slice(&number.to_le_bytes());
                }
                sides[at].endpoint.handle(Event::Frame { peer, frame: Frame::from(bytes) }, now);
            }
            Step::Request { kind, len, patience } => {
                let kind = [RequestKind::Pull, RequestKind::Push, RequestKind::Call]
                    [usize::from(kind) % 3];
                let mut draft = MessageBuf::new();
                draft.resize(len.into(), 1);
                let deadline = now + Duration::from_millis(100) * patience.into();
                if let Ok(request) = sides[at].endpoint.request(peer, kind, draft, deadline) {
                    assert!(sides[at].open.insert(request));
                }
            }
            Step::Answer { reject } => {
                if let Some(reply_to) = sides[at].asked.pop_front() {
                    let endpoint = &mut sides[at].endpoint;
                    if reject {
                        endpoint.reject(reply_to, MessageBuf::new(), now);
                    } else {
                        endpoint.reply(reply_to, MessageBuf::new(), now);
                    }
                }
            }
            Step::Begin { kind, len, patience } => {
                let content = Frame::from(vec![at as u8; usize::from(len) % 4096]);
                let root = NodeId(u32::from(kind) / 4 % 2);
                let own = root.0 as usize == at;
                let collective = match kind % 4 {
                    0 => Collective::Barrier,
                    1 => Collective::Broadcast { root, content: own.then_some(content) },
                    2 => Collective::ReduceScatter { element: Element::I32, values: content },
                    _ => Collective::AllGather { content },
                };
                let group = Group::new(1, vec![NodeId(0), NodeId(1)], NodeId(at as u32));
                let deadline = now + Duration::from_millis(100) * patience.into();
                let Side { endpoint, operations, .. } = &mut sides[at];
                if let Ok(id) = endpoint.begin(&group.expect("two"), collective, deadline, now) {
                    assert!(operations.insert(id));
                }
            }
            Step::Part { id, tag, body } => {
                let identity = |side: &Side| side.endpoint.config().identity.incarnation;
                let mut bytes = vec![0; 40 + 56 + usize::from(body)];
                bytes[..2].copy_from_slice(&[3, 3]);
                let numbers = [identity(&sides[1 - at]), identity(&sides[at]), id.into(), 0];
                for (place, number) in bytes[8..40].chunks_exact_mut(8).zip(numbers) {
                    place.copy_from_slice(&number.to_le_bytes());
                }
                // Group, operation, kind, element, direct, root, length, origin, index, and length of a part.
                let places = [0, 8, 16, 17, 18, 20, 24, 25, 32, 36, 40, 41];
                for (place, byte) in places.into_iter().zip(tag) {
                    bytes[40 + place] = byte;
                }
                // As members 0 and 1 in this order have it.
                let members =
                    [0u8, 0, 0, 0, 1, 0, 0, 0].iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
                        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
                    });
                bytes[40 + 48..40 + 56].copy_from_slice(&u64::to_le_bytes(members));
                sides[at].endpoint.handle(Event::Frame { peer, frame: Frame::from(bytes) }, now);
            }
            Step::Abandon => {
                if let Some(&operation) = sides[at].operations.first() {
                    sides[at].endpoint.abandon(operation, now);
                }
            }
            Step::Pass { tenths } => {
                now = now + Duration::from_millis(100) * tenths.into();
                for side in &mut sides {
                    side.endpoint.handle(Event::Tick, now);
                    assert!(side.endpoint.next_timer() > now);
                }
            }
            Step::Down | Step::Up => {
                up = matches!(step, Step::Up);
                for (place, side) in sides.iter_mut().enumerate() {
                    let peer = NodeId(1 - place as u32);
                    let event = match up {
                        true => Event::Up { peer },
                        false => Event::Down { peer, reason: DisconnectReason::Closed },
                    };
                    side.endpoint.handle(event, now);
                }
            }
            Step::Restart => {
                sides[at] = side(incarnation);
                incarnation += 1;
                if up {
                    sides[at].endpoint.handle(Event::Up { peer }, now);
                }
            }
            Step::Full => {
                if let Some((to, frame)) = sides[at].endpoint.transmit(now) {
                    sides[at].endpoint.unsent(to, frame, SendError::Full, now);
                    sides[at].endpoint.handle(Event::Writable { peer: to }, now);
                }
            }
        }
        drain(&mut sides, now);
    }
    // In the end all has ended.
    now = now + Duration::from_secs(60);
    for side in &mut sides {
        side.endpoint.handle(Event::Tick, now);
    }
    drain(&mut sides, now);
    assert!(sides.iter().all(|side| side.open.is_empty() && side.operations.is_empty()));
    assert!(sides.iter().all(|side| side.endpoint.in_flight() == 0));
});
