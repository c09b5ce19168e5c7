//! Connections that lose packets silently, or are cut.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use lda_transport::{DisconnectReason, NodeId};

use crate::common::*;

/// TCP proxy that can drop all data or cut its connections.
struct Proxy {
    address: SocketAddr,
    drops_data: Arc<AtomicBool>,
    streams: Arc<Mutex<Vec<TcpStream>>>,
}

impl Proxy {
    fn to(address: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let proxy = Self {
            address: listener.local_addr().unwrap(),
            drops_data: Arc::default(),
            streams: Arc::default(),
        };
        let (drops_data, streams) = (Arc::clone(&proxy.drops_data), Arc::clone(&proxy.streams));
        thread::spawn(move || {
            for near in listener.incoming().flatten() {
                let Ok(far) = TcpStream::connect(address) else { continue };
                for (from, to) in [(&near, &far), (&far, &near)] {
                    let [from, to] = [from, to].map(|stream| stream.try_clone().unwrap());
                    let drops_data = Arc::clone(&drops_data);
                    thread::spawn(move || forward(from, to, &drops_data));
                }
                streams.lock().unwrap().extend([near, far]);
            }
        });
        proxy
    }

    fn cut(&self) {
        for stream in self.streams.lock().unwrap().drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

fn forward(mut from: TcpStream, mut to: TcpStream, drops_data: &AtomicBool) {
    let mut bytes = [0; 1 << 16];
    while let Ok(read) = from.read(&mut bytes) {
        if read == 0 {
            break;
        }
        if !drops_data.load(SeqCst) && to.write_all(&bytes[..read]).is_err() {
            break;
        }
    }
    if !drops_data.load(SeqCst) {
        let _ = to.shutdown(Shutdown::Both);
    }
}

#[test]
fn a_silent_connection_times_out() {
    let mut first = start(0, options());
    let proxy = Proxy::to(address(&first));
    let mut second = start(1, with_peer(options(), 0, proxy.address));
    expect_up(&mut first, 1);
    expect_up(&mut second, 0);
    check_traffic(&mut first, &mut second);
    proxy.drops_data.store(true, SeqCst);
    let start = Instant::now();
    for (node, peer) in [(&mut first, 1), (&mut second, 0)] {
        let reason = expect_broken(node, peer);
        assert!(!reason.is_empty());
        // The limit is 2 s; the rest is for a busy machine.
        assert!(start.elapsed() < Duration::from_secs(4), "{:?}", start.elapsed());
    }
    proxy.drops_data.store(false, SeqCst);
    expect_up(&mut second, 0);
    expect_up(&mut first, 1);
    check_traffic(&mut first, &mut second);
}

#[test]
fn a_cut_connection_is_reestablished() {
    let mut first = start(0, options());
    let proxy = Proxy::to(address(&first));
    let mut second = start(1, with_peer(options(), 0, proxy.address));
    let (mut sent, mut received) = (0u32, Vec::new());
    for _ in 0..5 {
        expect_up(&mut first, 1);
        expect_up(&mut second, 0);
        for _ in 0..100 {
            send(&mut second, 0, &sent.to_le_bytes());
            sent += 1;
        }
        proxy.cut();
        expect_down(&mut second, 0);
        // Frames that arrived before the end are delivered, in order and without duplicates.
        loop {
            match next_arrival(&mut first) {
                lda_transport::Arrival::Frame { peer: NodeId(1), frame } => {
                    received.push(u32::from_le_bytes(frame[..].try_into().unwrap()));
                }
                lda_transport::Arrival::Down { peer: NodeId(1), reason } => {
                    assert_eq!(
                        reason,
                        DisconnectReason::Closed,
                        "a cut looks like the exit of the program"
                    );
                    break;
                }
                other => panic!("{other:?}"),
            }
        }
    }
    assert!(received.is_sorted_by(|a, b| a < b), "{received:?}");
}
