//! Those who say what no node says: each is told, or shown the door, and nobody else feels it.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::task::{Context, Poll};
use std::thread;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use lda_transport::grpc::wire::{SERVICE, WireError};
use lda_transport::grpc::{Grpc, StartError, Trouble};
use lda_transport::{Arrival, Loss, NodeId, Transport};
use tonic::body::Body;
use tonic::codegen::{Service, http};
use tonic::server::NamedService;
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;
use tonic::{Code, Status};

use crate::common::*;
use crate::raw::{Raw, hello, message};

/// Two nodes that talk before and after.
fn with_others(visit: impl FnOnce(&mut Grpc, SocketAddr)) {
    let (mut first, mut second) = pair(options(), options());
    let at = address(&first);
    talk(&mut first, &mut second);
    visit(&mut first, at);
    talk(&mut first, &mut second);
}

fn last(node: &Grpc) -> Trouble {
    until("somebody to be turned away", || node.strangers().last).1
}

fn refusal(at: SocketAddr, first: &[u8]) -> Status {
    match Raw::call(at, Bytes::copy_from_slice(first)).and_then(|mut raw| raw.next()) {
        Err(status) => status,
        Ok(answer) => panic!("{answer:?}"),
    }
}

#[test]
fn a_peer_that_talks_before_its_hello_is_refused() {
    with_others(|node, at| {
        for first in [&b""[..], &message(b"a row"), &message(b"lda-grpc")] {
            let status = refusal(at, first);
            assert_eq!(status.code(), Code::FailedPrecondition, "{status:?}");
            assert_eq!(status.message(), WireError::NotHello.to_string());
        }
        assert_eq!(node.strangers().refused, 3);
        assert_eq!(last(node), Trouble::Wire(WireError::NotHello));
        // And one whose first message is of no form at all.
        refusal(at, b"\x0a\x7f");
        until("a fourth", || (node.strangers().refused == 4).then_some(()));
    });
}

#[test]
fn a_peer_of_another_version_is_told_so() {
    with_others(|node, at| {
        let mut bytes = hello(5, 0).encode().to_vec();
        bytes[8] = 9;
        let status = refusal(at, &message(&bytes));
        assert_eq!(status.message(), WireError::Version { theirs: 9 }.to_string());
        assert_eq!(last(node), Trouble::Wire(WireError::Version { theirs: 9 }));
    });
}

#[test]
fn who_should_not_connect_is_told_so() {
    let mut first = start(5, options());
    let at = address(&first);
    for from in [4, 5] {
        let status = Raw::peer(at, from, 5).err().unwrap();
        assert_eq!(status.code(), Code::FailedPrecondition, "{status:?}");
        assert!(matches!(last(&first), Trouble::Uninvited { peer, .. } if peer == NodeId(from)));
    }
    let _six = Raw::peer(at, 6, 5).unwrap();
    hears_up(&mut first, 6);

    let mut options = options();
    options.known_only = true;
    options.peers.insert(NodeId(7), Default::default());
    let mut first = start(5, options);
    let at = address(&first);
    assert!(Raw::peer(at, 6, 5).is_err());
    let _seven = Raw::peer(at, 7, 5).unwrap();
    hears_up(&mut first, 7);
}

#[test]
fn a_wrong_address_is_told_on_both_sides() {
    let first = start(0, options());
    let second = start(9, with_peer(options(), 3, address(&first)));
    let expected = Trouble::WrongNode { expected: NodeId(3), found: NodeId(0) };
    assert_eq!(until("trouble", || second.trouble(NodeId(3))), expected);
    assert_eq!(last(&first), expected);
}

#[test]
fn nodes_of_different_options_are_told_so() {
    let first = start(0, options());
    let mut other = with_peer(options(), 0, address(&first));
    other.longest_frame = 1000;
    let second = start(1, other);
    let expected = Trouble::LongestFrame { ours: 1000, theirs: 16 << 20 };
    assert_eq!(until("trouble", || second.trouble(NodeId(0))), expected);
    assert!(matches!(last(&first), Trouble::LongestFrame { theirs: 1000, .. }));
}

#[test]
fn no_more_peers_come_than_may() {
    let mut few = options();
    few.most_peers = 2;
    let mut node = start(0, few);
    let at = address(&node);
    let mut one = Raw::peer(at, 1, 0).unwrap();
    hears_up(&mut node, 1);
    let _two = Raw::peer(at, 2, 0).unwrap();
    hears_up(&mut node, 2);
    assert!(Raw::peer(at, 3, 0).is_err());
    assert_eq!(last(&node), Trouble::TooMany { most: 2 });
    one.end();
    assert_eq!(hears_down(&mut node, 1), Loss::Closed);
    assert_eq!(one.next().unwrap(), None);
    let _three = until("a free seat", || Raw::peer(at, 3, 0).ok());
    hears_up(&mut node, 3);
}

#[test]
fn a_frame_that_is_too_long_ends_its_sender_alone() {
    with_others(|node, at| {
        let longest = node.capabilities().longest_frame;
        for bad in [message(&vec![0; longest + 1]), message(&vec![0; longest + 1000])] {
            let raw = Raw::peer(at, 2, 0).unwrap();
            hears_up(node, 2);
            raw.say(message(b"good"));
            raw.say(message(&vec![1; longest]));
            raw.say(bad);
            hears_frame(node, 2, b"good");
            hears_frame(node, 2, &vec![1; longest]);
            let why = hears_broken(node, 2);
            assert!(why.contains("the limit") || why.contains("is the most"), "{why}");
        }
    });
}

#[test]
fn a_message_of_another_form_ends_its_sender_alone() {
    with_others(|node, at| {
        for bad in [&b"\x0a\x05abc"[..], b"\x08\x01", b"\xff"] {
            let raw = Raw::peer(at, 2, 0).unwrap();
            hears_up(node, 2);
            raw.say(message(b""));
            raw.say(Bytes::copy_from_slice(bad));
            hears_frame(node, 2, b"");
            let why = hears_broken(node, 2);
            assert!(why.contains("`Frame`"), "{why}");
        }
    });
}

#[test]
fn a_second_connection_takes_the_place_of_the_first() {
    with_others(|node, at| {
        let mut old = Raw::peer(at, 2, 0).unwrap();
        hears_up(node, 2);
        old.say(message(b"old"));
        hears_frame(node, 2, b"old");
        let new = Raw::peer(at, 2, 0).unwrap();
        let why = hears_broken(node, 2);
        assert!(why.contains("anew"), "{why}");
        hears_up(node, 2);
        // The old one hears its end, and what it says still is not heard.
        assert_eq!(old.next().unwrap(), None);
        old.say(message(b"late"));
        new.say(message(b"new"));
        hears_frame(node, 2, b"new");
        drop((old, new));
        assert_eq!(hears_down(node, 2), Loss::Closed);
    });
}

/// While the program does not receive, a peer that comes again and again waits for its turn.
#[test]
fn a_peer_that_comes_again_and_again_is_heard_once() {
    let mut node = start(0, options());
    let at = address(&node);
    let frame = message(&vec![3; 1 << 20]);
    let mut last = None;
    for _ in 0..20 {
        let raw = Raw::peer(at, 1, 0).unwrap();
        // Three times what an inbox takes.
        (0..48).for_each(|_| raw.say(frame.clone()));
        last = Some(raw);
    }
    let (mut ups, mut bytes) = (0, 0);
    let start = Instant::now();
    loop {
        match heard(&mut node) {
            Arrival::Up { .. } => ups += 1,
            Arrival::Frame { frame, .. } => bytes += frame.len(),
            Arrival::Down { .. } => {
                assert!(bytes <= 17 << 20, "{bytes} bytes lay there");
                break;
            }
            other => panic!("{other:?}"),
        }
        assert!(start.elapsed() < PATIENCE);
    }
    assert_eq!(ups, 1);
    hears_up(&mut node, 1);
    // The last that came is the one that is up.
    let mut frames = 0;
    while frames < 48 {
        match heard(&mut node) {
            Arrival::Frame { .. } => frames += 1,
            other => panic!("{other:?} after {frames} frames"),
        }
    }
    last.unwrap().end();
    assert_eq!(hears_down(&mut node, 1), Loss::Closed);
}

#[test]
fn a_call_that_is_broken_off_is_an_end() {
    with_others(|node, at| {
        let mut raw = Raw::peer(at, 2, 0).unwrap();
        hears_up(node, 2);
        raw.say(message(b"x"));
        hears_frame(node, 2, b"x");
        raw.cancel();
        assert_eq!(hears_down(node, 2), Loss::Closed);
    });
}

#[test]
fn what_is_no_grpc_is_shown_the_door() {
    with_others(|_, at| {
        for said in
            [&b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"[..], &[0xff; 1000], b"PRI * HTTP/2.0\r\n\r\nXX"]
        {
            let mut stream = TcpStream::connect(at).unwrap();
            stream.set_read_timeout(Some(PATIENCE)).unwrap();
            stream.write_all(said).unwrap();
            let mut answer = Vec::new();
            // It ends, in order or not.
            match stream.read_to_end(&mut answer) {
                Ok(_) => {}
                Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset),
            }
        }
    });
}

#[test]
fn who_says_nothing_is_shown_the_door_in_time() {
    let mut quick = options();
    quick.hello = Duration::from_millis(200);
    let (mut first, mut second) = pair(quick.clone(), options());
    let at = address(&first);
    // Nothing; a part of HTTP/2; HTTP/2 without a call; a call without a hello.
    let mut silent = TcpStream::connect(at).unwrap();
    let mut slow = TcpStream::connect(at).unwrap();
    slow.write_all(b"PRI * HTTP/2.0\r\n").unwrap();
    let mut idle = TcpStream::connect(at).unwrap();
    idle.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0").unwrap();
    for stream in [&mut silent, &mut slow, &mut idle] {
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let start = Instant::now();
        let _ = stream.read_to_end(&mut Vec::new());
        assert!(start.elapsed() < PATIENCE / 2);
    }
    until("three", || (first.strangers().refused == 3).then_some(()));
    assert_eq!(last(&first), Trouble::NoHello);
    talk(&mut first, &mut second);
}

#[test]
fn of_many_who_say_nothing_the_first_has_to_go() {
    let mut few = options();
    few.strangers = 8;
    few.hello = Duration::from_secs(60);
    let (mut first, mut second) = pair(few, options());
    let at = address(&first);
    let crowd: Vec<TcpStream> = (0..30).map(|_| TcpStream::connect(at).unwrap()).collect();
    until("22", || (first.strangers().refused == 22).then_some(()));
    assert_eq!(last(&first), Trouble::Crowded);
    // Who has something to say comes in all the same.
    let mut third = start(2, with_peer(options(), 0, at));
    hears_up(&mut third, 0);
    hears_up(&mut first, 2);
    talk(&mut first, &mut third);
    talk(&mut first, &mut second);
    drop(crowd);
}

#[test]
fn what_cannot_be_listened_at_is_told() {
    let first = start(0, options());
    let at = address(&first);
    let refused = |listen: &str| {
        let mut options = options();
        options.listen = Some(listen.to_owned());
        Grpc::start(NodeId(1), options).unwrap_err()
    };
    let error = refused(&at.to_string());
    assert!(matches!(error, StartError::InUse { address } if address == at), "{error:?}");
    let error = refused("no-such-host.invalid:0");
    assert!(matches!(error, StartError::Resolve { .. }), "{error:?}");
    let error = refused("nowhere");
    assert!(matches!(error, StartError::Resolve { .. }), "{error:?}");
    // Of those that are kept for books.
    let error = refused("192.0.2.1:0");
    assert!(matches!(error, StartError::Listen { .. }), "{error:?}");
}

#[test]
fn who_cannot_be_reached_is_told() {
    let closed = {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.local_addr().unwrap()
    };
    let mut options = with_peer(options(), 0, closed);
    let unknown = lda_transport::grpc::Peer::at("no-such-host.invalid:1");
    options.peers.insert(NodeId(1), unknown);
    // It takes connections and says nothing.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    options = with_peer(options, 2, silent.local_addr().unwrap());
    options.hello = Duration::from_millis(200);
    let node = start(3, options);
    let trouble = |peer| until("trouble", || node.trouble(NodeId(peer)));
    assert!(matches!(trouble(0), Trouble::Connect { .. }), "{:?}", trouble(0));
    assert!(matches!(trouble(1), Trouble::Resolve { .. }), "{:?}", trouble(1));
    assert_eq!(trouble(2), Trouble::NoHello);
}

/// A server that says whatever it likes to one who connects.
#[test]
fn a_server_that_is_none_is_told() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let at = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let _ = stream.read(&mut [0; 100]);
            let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n");
        }
    });
    let node = start(1, with_peer(options(), 0, at));
    let trouble = until("trouble", || node.trouble(NodeId(0)));
    assert!(matches!(trouble, Trouble::Broken { .. }), "{trouble:?}");
}

/// A server that greets, and ends with a status that tonic panics at.
#[derive(Clone)]
struct Rogue;

impl NamedService for Rogue {
    const NAME: &'static str = SERVICE;
}

impl Service<http::Request<Body>> for Rogue {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = Ready<Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: http::Request<Body>) -> Self::Future {
        let hello = message(&hello(0, 1).encode());
        let framed = [&[0, 0, 0, 0, hello.len() as u8], &hello[..]].concat();
        let mut trailers = http::HeaderMap::new();
        trailers.insert("grpc-status", http::HeaderValue::from_static("13"));
        trailers.insert("grpc-status-details-bin", http::HeaderValue::from_static("?"));
        let body = Full::new(Bytes::from(framed)).with_trailers(ready(Some(Ok(trailers))));
        let response = http::Response::builder().header("content-type", "application/grpc");
        ready(Ok(response.body(Body::new(body)).unwrap()))
    }
}

#[test]
fn a_server_that_makes_tonic_panic_ends_its_connection_alone() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let at = listener.local_addr().unwrap();
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    let runtime = runtime.unwrap();
    runtime.spawn(async move {
        let listener = tokio::net::TcpListener::from_std(listener).unwrap();
        let incoming = TcpIncoming::from(listener);
        Server::builder().add_service(Rogue).serve_with_incoming(incoming).await.unwrap();
    });
    let mut node = start(1, with_peer(options(), 0, at));
    for _ in 0..3 {
        hears_up(&mut node, 0);
        let why = hears_broken(&mut node, 0);
        assert!(why.contains("panic"), "{why}");
    }
    // Others come and talk.
    let mut third = start(2, with_peer(options(), 1, address(&node)));
    hears_up(&mut third, 1);
    let up = |node: &mut Grpc| heard(node) == Arrival::Up { peer: NodeId(2) };
    while !up(&mut node) {}
    send(&mut node, 2, b"there");
    hears_frame(&mut third, 1, b"there");
}
