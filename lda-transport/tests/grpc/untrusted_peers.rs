//! Peers that violate the protocol: each is rejected with a reason, and no other peer is affected.

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
use lda_transport::grpc::{ConnectError, Grpc, StartError, Token};
use lda_transport::{Arrival, DisconnectReason, NodeId, Transport};
use tonic::body::Body;
use tonic::codegen::{Service, http};
use tonic::server::NamedService;
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;
use tonic::{Code, Status};

use crate::common::*;
use crate::raw::{Raw, hello, message};

/// Runs `visit` on one of two connected nodes and checks their traffic before and after.
fn with_others(visit: impl FnOnce(&mut Grpc, SocketAddr)) {
    let (mut first, mut second) = pair(options(), options());
    let at = address(&first);
    check_traffic(&mut first, &mut second);
    visit(&mut first, at);
    check_traffic(&mut first, &mut second);
}

fn last(node: &Grpc) -> ConnectError {
    wait_for("a rejected connection", || node.rejected().last).1
}

fn refusal(at: SocketAddr, first: &[u8]) -> Status {
    match Raw::call(at, Bytes::copy_from_slice(first)).and_then(|mut raw| raw.next()) {
        Err(status) => status,
        Ok(answer) => panic!("{answer:?}"),
    }
}

#[test]
fn a_frame_before_the_hello_is_rejected() {
    with_others(|node, at| {
        for first in [&b""[..], &message(b"a row"), &message(b"lda-grpc")] {
            let status = refusal(at, first);
            assert_eq!(status.code(), Code::FailedPrecondition, "{status:?}");
            assert_eq!(status.message(), WireError::NotHello.to_string());
        }
        assert_eq!(node.rejected().count, 3);
        assert_eq!(last(node), ConnectError::Wire(WireError::NotHello));
        // A first message that is not even a `Frame`.
        refusal(at, b"\x0a\x7f");
        wait_for("a fourth", || (node.rejected().count == 4).then_some(()));
    });
}

#[test]
fn a_long_first_message_is_rejected_at_its_length() {
    with_others(|node, at| {
        let status = refusal(at, &message(&vec![b'a'; 1 << 16]));
        assert!(status.message().contains("more than a hello"), "{status:?}");
        assert!(last(node).to_string().contains("more than a hello"));
        // After the hello, frames may be as long as agreed.
        let mut raw = Raw::peer(at, 5, 0).unwrap();
        expect_up(node, 5);
        let frame = vec![b'b'; 1 << 16];
        raw.send(message(&frame));
        expect_frame(node, 5, &frame);
        raw.end();
        expect_down(node, 5);
    });
}

#[test]
fn another_version_is_rejected() {
    with_others(|node, at| {
        let mut bytes = hello(5, 0).encode().to_vec();
        bytes[8] = 9;
        let status = refusal(at, &message(&bytes));
        assert_eq!(status.message(), WireError::Version { theirs: 9 }.to_string());
        assert_eq!(last(node), ConnectError::Wire(WireError::Version { theirs: 9 }));
    });
}

#[test]
fn smaller_numbers_and_unlisted_peers_are_rejected() {
    let mut first = start(5, options());
    let at = address(&first);
    for from in [4, 5] {
        let status = Raw::peer(at, from, 5).err().unwrap();
        assert_eq!(status.code(), Code::FailedPrecondition, "{status:?}");
        assert!(
            matches!(last(&first), ConnectError::NotAllowed { peer, .. } if peer == NodeId(from))
        );
    }
    let _six = Raw::peer(at, 6, 5).unwrap();
    expect_up(&mut first, 6);

    let mut options = options();
    options.allowlist_only = true;
    options.peers.insert(NodeId(7), Default::default());
    let mut first = start(5, options);
    let at = address(&first);
    assert!(Raw::peer(at, 6, 5).is_err());
    let _seven = Raw::peer(at, 7, 5).unwrap();
    expect_up(&mut first, 7);
}

#[test]
fn both_sides_report_a_wrong_address() {
    let first = start(0, options());
    let second = start(9, with_peer(options(), 3, address(&first)));
    let expected = ConnectError::WrongNode { expected: NodeId(3), found: NodeId(0) };
    assert_eq!(wait_for("a connection error", || second.connect_error(NodeId(3))), expected);
    assert_eq!(last(&first), expected);
}

#[test]
fn both_sides_report_different_frame_limits() {
    let first = start(0, options());
    let mut other = with_peer(options(), 0, address(&first));
    other.max_frame_len = 1000;
    let second = start(1, other);
    let expected = ConnectError::FrameLimitMismatch { ours: 1000, theirs: 16 << 20 };
    assert_eq!(wait_for("a connection error", || second.connect_error(NodeId(0))), expected);
    assert!(matches!(last(&first), ConnectError::FrameLimitMismatch { theirs: 1000, .. }));
}

#[test]
fn peers_beyond_the_limit_are_rejected() {
    let mut few = options();
    few.max_peers = 2;
    let mut node = start(0, few);
    let at = address(&node);
    let mut one = Raw::peer(at, 1, 0).unwrap();
    expect_up(&mut node, 1);
    let _two = Raw::peer(at, 2, 0).unwrap();
    expect_up(&mut node, 2);
    assert!(Raw::peer(at, 3, 0).is_err());
    assert_eq!(last(&node), ConnectError::TooManyPeers { limit: 2 });
    one.end();
    assert_eq!(expect_down(&mut node, 1), DisconnectReason::Closed);
    assert_eq!(one.next().unwrap(), None);
    let _three = wait_for("a free slot", || Raw::peer(at, 3, 0).ok());
    expect_up(&mut node, 3);
}

#[test]
fn a_frame_that_is_too_long_ends_only_its_connection() {
    with_others(|node, at| {
        let longest = node.capabilities().max_frame_len;
        for bad in [message(&vec![0; longest + 1]), message(&vec![0; longest + 1000])] {
            let raw = Raw::peer(at, 2, 0).unwrap();
            expect_up(node, 2);
            raw.send(message(b"good"));
            raw.send(message(&vec![1; longest]));
            raw.send(bad);
            expect_frame(node, 2, b"good");
            expect_frame(node, 2, &vec![1; longest]);
            let reason = expect_broken(node, 2);
            assert!(reason.contains("the limit") || reason.contains("the maximum is"), "{reason}");
        }
    });
}

#[test]
fn a_malformed_message_ends_only_its_connection() {
    with_others(|node, at| {
        for bad in [&b"\x0a\x05abc"[..], b"\x08\x01", b"\xff"] {
            let raw = Raw::peer(at, 2, 0).unwrap();
            expect_up(node, 2);
            raw.send(message(b""));
            raw.send(Bytes::copy_from_slice(bad));
            expect_frame(node, 2, b"");
            let reason = expect_broken(node, 2);
            assert!(reason.contains("`Frame`"), "{reason}");
        }
    });
}

#[test]
fn peers_without_the_token_are_rejected() {
    let with = |secret: &str| {
        let mut options = options();
        options.token = Token::new(secret).unwrap();
        options
    };
    let first = start(0, with("a secret of the run"));
    let at = address(&first);
    let status = Raw::peer(at, 2, 0).err().unwrap();
    assert_eq!(status.message(), ConnectError::Token.to_string());
    assert_eq!(last(&first), ConnectError::Token);
    for other in [with("a secret of the rum"), options()] {
        let second = start(1, with_peer(other, 0, at));
        let error = wait_for("a connection error", || second.connect_error(NodeId(0)));
        assert!(error.to_string().contains("has another token"), "{error}");
    }
    // A stranger learns nothing but that: here the number of the node.
    let status = Raw::peer(at, 2, 7).err().unwrap();
    assert_eq!(status.message(), ConnectError::Token.to_string());
    drop(first);
    pair(with("a secret of the run"), with("a secret of the run"));
}

#[test]
fn a_node_that_others_reach_needs_tls_or_consent() {
    let mut options = options();
    options.listen = Some("0.0.0.0:0".to_owned());
    let refused = Grpc::start(NodeId(0), options.clone()).unwrap_err().to_string();
    assert!(refused.contains("this node listens on 0.0.0.0:"), "{refused}");
    options.insecure = true;
    assert!(Grpc::start(NodeId(0), options).is_ok());
}

#[test]
fn a_number_cannot_be_taken_from_an_open_connection() {
    with_others(|node, at| {
        let old = Raw::peer(at, 2, 0).unwrap();
        expect_up(node, 2);
        let status = Raw::peer(at, 2, 0).err().unwrap();
        assert!(status.message().contains("node 2 is connected from 127.0.0.1:"), "{status:?}");
        assert!(matches!(last(node), ConnectError::NumberTaken { peer: NodeId(2), .. }));
        old.send(message(b"old"));
        expect_frame(node, 2, b"old");
        drop(old);
        assert_eq!(expect_down(node, 2), DisconnectReason::Closed);
        let new = wait_for("its number", || Raw::peer(at, 2, 0).ok());
        expect_up(node, 2);
        new.send(message(b"new"));
        expect_frame(node, 2, b"new");
        drop(new);
        assert_eq!(expect_down(node, 2), DisconnectReason::Closed);
    });
}

/// A peer reconnects again and again while the program does not receive: only one connection is up.
#[test]
fn a_peer_that_reconnects_often_has_one_inbox() {
    let mut node = start(0, options());
    let at = address(&node);
    let frame = message(&vec![3; 1 << 20]);
    let mut last = None;
    for _ in 0..20 {
        drop(last.take());
        let raw = wait_for("its number", || Raw::peer(at, 1, 0).ok());
        // Three times the size of an inbox.
        (0..48).for_each(|_| raw.send(frame.clone()));
        last = Some(raw);
    }
    let (mut ups, mut bytes) = (0, 0);
    let start = Instant::now();
    loop {
        match next_arrival(&mut node) {
            Arrival::Up { .. } => ups += 1,
            Arrival::Frame { frame, .. } => bytes += frame.len(),
            Arrival::Down { .. } => {
                assert!(bytes <= 17 << 20, "the inbox held {bytes} bytes");
                break;
            }
            other => panic!("{other:?}"),
        }
        assert!(start.elapsed() < PATIENCE);
    }
    assert_eq!(ups, 1);
    expect_up(&mut node, 1);
    // The last connection is the one that is up.
    let mut frames = 0;
    while frames < 48 {
        match next_arrival(&mut node) {
            Arrival::Frame { .. } => frames += 1,
            other => panic!("{other:?} after {frames} frames"),
        }
    }
    last.unwrap().end();
    assert_eq!(expect_down(&mut node, 1), DisconnectReason::Closed);
}

#[test]
fn a_cancelled_call_is_an_orderly_end() {
    with_others(|node, at| {
        let mut raw = Raw::peer(at, 2, 0).unwrap();
        expect_up(node, 2);
        raw.send(message(b"x"));
        expect_frame(node, 2, b"x");
        raw.cancel();
        assert_eq!(expect_down(node, 2), DisconnectReason::Closed);
    });
}

#[test]
fn other_protocols_are_disconnected() {
    with_others(|_, at| {
        for bytes in
            [&b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"[..], &[0xff; 1000], b"PRI * HTTP/2.0\r\n\r\nXX"]
        {
            let mut stream = TcpStream::connect(at).unwrap();
            stream.set_read_timeout(Some(PATIENCE)).unwrap();
            stream.write_all(bytes).unwrap();
            let mut answer = Vec::new();
            // It ends with a close or a reset.
            match stream.read_to_end(&mut answer) {
                Ok(_) => {}
                Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset),
            }
        }
    });
}

#[test]
fn silent_connections_time_out() {
    let mut quick = options();
    quick.handshake_timeout = Duration::from_millis(200);
    let (mut first, mut second) = pair(quick.clone(), options());
    let at = address(&first);
    // No bytes; half an HTTP/2 preface; HTTP/2 without a call.
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
    wait_for("three rejections", || (first.rejected().count == 3).then_some(()));
    assert_eq!(last(&first), ConnectError::HelloTimeout);
    check_traffic(&mut first, &mut second);
}

#[test]
fn the_oldest_silent_connection_is_evicted() {
    let mut few = options();
    few.max_unauthenticated = 8;
    few.handshake_timeout = Duration::from_secs(60);
    let (mut first, mut second) = pair(few, options());
    let at = address(&first);
    let crowd: Vec<TcpStream> = (0..30).map(|_| TcpStream::connect(at).unwrap()).collect();
    wait_for("22 evictions", || (first.rejected().count == 22).then_some(()));
    assert_eq!(last(&first), ConnectError::Evicted);
    // A node still gets in.
    let mut third = start(2, with_peer(options(), 0, at));
    expect_up(&mut third, 0);
    expect_up(&mut first, 2);
    check_traffic(&mut first, &mut third);
    check_traffic(&mut first, &mut second);
    drop(crowd);
}

#[test]
fn invalid_listen_addresses_are_reported() {
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
    // An address that is reserved for documentation (RFC 5737).
    let error = refused("192.0.2.1:0");
    assert!(matches!(error, StartError::Listen { .. }), "{error:?}");
}

#[test]
fn unreachable_peers_are_reported() {
    let closed = {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.local_addr().unwrap()
    };
    let mut options = with_peer(options(), 0, closed);
    let unknown = lda_transport::grpc::Peer::at("no-such-host.invalid:1");
    options.peers.insert(NodeId(1), unknown);
    options.insecure = true;
    // Accepts connections and sends nothing.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    options = with_peer(options, 2, silent.local_addr().unwrap());
    options.handshake_timeout = Duration::from_millis(200);
    let node = start(3, options);
    let error = |peer| wait_for("a connection error", || node.connect_error(NodeId(peer)));
    assert!(matches!(error(0), ConnectError::Connect { .. }), "{:?}", error(0));
    assert!(matches!(error(1), ConnectError::Resolve { .. }), "{:?}", error(1));
    assert_eq!(error(2), ConnectError::HelloTimeout);
}

/// A server of another protocol.
#[test]
fn a_server_of_another_protocol_is_reported() {
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
    let error = wait_for("a connection error", || node.connect_error(NodeId(0)));
    assert!(matches!(error, ConnectError::Broken { .. }), "{error:?}");
}

/// A server that sends a hello and then a status at which tonic panics.
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
fn a_panic_in_tonic_ends_only_its_connection() {
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
        expect_up(&mut node, 0);
        let reason = expect_broken(&mut node, 0);
        assert!(reason.contains("panic"), "{reason}");
    }
    // Other peers are not affected.
    let mut third = start(2, with_peer(options(), 1, address(&node)));
    expect_up(&mut third, 1);
    let up = |node: &mut Grpc| next_arrival(node) == Arrival::Up { peer: NodeId(2) };
    while !up(&mut node) {}
    send(&mut node, 2, b"there");
    expect_frame(&mut third, 1, b"there");
}
