//! Lines that fall silent, or are cut.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use lda_transport::{Loss, NodeId};

use crate::common::*;

/// A line to an address that can be made to lose what it carries.
struct Line {
    address: SocketAddr,
    mute: Arc<AtomicBool>,
    streams: Arc<Mutex<Vec<TcpStream>>>,
}

impl Line {
    fn to(address: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let line = Self {
            address: listener.local_addr().unwrap(),
            mute: Arc::default(),
            streams: Arc::default(),
        };
        let (mute, streams) = (Arc::clone(&line.mute), Arc::clone(&line.streams));
        thread::spawn(move || {
            for near in listener.incoming().flatten() {
                let Ok(far) = TcpStream::connect(address) else { continue };
                for (from, to) in [(&near, &far), (&far, &near)] {
                    let [from, to] = [from, to].map(|stream| stream.try_clone().unwrap());
                    let mute = Arc::clone(&mute);
                    thread::spawn(move || carry(from, to, &mute));
                }
                streams.lock().unwrap().extend([near, far]);
            }
        });
        line
    }

    fn cut(&self) {
        for stream in self.streams.lock().unwrap().drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

fn carry(mut from: TcpStream, mut to: TcpStream, mute: &AtomicBool) {
    let mut bytes = [0; 1 << 16];
    while let Ok(read) = from.read(&mut bytes) {
        if read == 0 {
            break;
        }
        if !mute.load(SeqCst) && to.write_all(&bytes[..read]).is_err() {
            break;
        }
    }
    if !mute.load(SeqCst) {
        let _ = to.shutdown(Shutdown::Both);
    }
}

#[test]
fn a_line_that_falls_silent_is_lost_in_time() {
    let mut first = start(0, options());
    let line = Line::to(address(&first));
    let mut second = start(1, with_peer(options(), 0, line.address));
    hears_up(&mut first, 1);
    hears_up(&mut second, 0);
    talk(&mut first, &mut second);
    line.mute.store(true, SeqCst);
    let start = Instant::now();
    for (node, peer) in [(&mut first, 1), (&mut second, 0)] {
        let why = hears_broken(node, peer);
        assert!(!why.is_empty());
        // Two seconds, and what a busy machine takes.
        assert!(start.elapsed() < Duration::from_secs(4), "{:?}", start.elapsed());
    }
    line.mute.store(false, SeqCst);
    hears_up(&mut second, 0);
    hears_up(&mut first, 1);
    talk(&mut first, &mut second);
}

#[test]
fn a_line_that_is_cut_is_made_again() {
    let mut first = start(0, options());
    let line = Line::to(address(&first));
    let mut second = start(1, with_peer(options(), 0, line.address));
    let (mut sent, mut came) = (0u32, Vec::new());
    for _ in 0..5 {
        hears_up(&mut first, 1);
        hears_up(&mut second, 0);
        for _ in 0..100 {
            send(&mut second, 0, &sent.to_le_bytes());
            sent += 1;
        }
        line.cut();
        hears_down(&mut second, 0);
        // What came before the end of the connection is had, and none twice or out of its order.
        loop {
            match heard(&mut first) {
                lda_transport::Arrival::Frame { peer: NodeId(1), frame } => {
                    came.push(u32::from_le_bytes(frame[..].try_into().unwrap()));
                }
                lda_transport::Arrival::Down { peer: NodeId(1), loss } => {
                    assert_eq!(loss, Loss::Closed, "the line ends as a program does");
                    break;
                }
                other => panic!("{other:?}"),
            }
        }
    }
    assert!(came.is_sorted_by(|a, b| a < b), "{came:?}");
}
