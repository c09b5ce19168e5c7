//! Ranks that are controlled by another process, so that the conformance suite, which has all nodes
//! in one process, runs on ranks.
//!
//! The driver listens, and each rank connects to it. A command is a letter with its arguments; each
//! has one reply, except `w`, which wakes. Integers are `u64`, little-endian.

use std::env;
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::task::{Wake, Waker};
use std::thread;
use std::time::Duration;

use lda_transport::conformance::Subject;
use lda_transport::mpi::{self, MpiOptions};
use lda_transport::{
    Arrival, Capabilities, DisconnectReason, Frame, NodeId, ReceiveError, SendError, Transport,
    Unsent, Wait,
};

/// Variable with the address of the driver.
const DRIVER: &str = "LDA_MPI_DRIVER";

fn put(to: &mut impl Write, number: u64) -> io::Result<()> {
    to.write_all(&number.to_le_bytes())
}

fn get(from: &mut impl Read) -> io::Result<u64> {
    let mut bytes = [0; 8];
    from.read_exact(&mut bytes)?;
    Ok(u64::from_le_bytes(bytes))
}

fn put_bytes(to: &mut impl Write, bytes: &[u8]) -> io::Result<()> {
    put(to, bytes.len() as u64)?;
    to.write_all(bytes)
}

fn get_bytes(from: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; get(from)? as usize];
    from.read_exact(&mut bytes)?;
    Ok(bytes)
}

fn put_time(to: &mut impl Write, time: Duration) -> io::Result<()> {
    put(to, time.as_nanos() as u64)
}

fn get_letter(from: &mut impl Read) -> io::Result<u8> {
    let mut letter = [0];
    from.read_exact(&mut letter)?;
    Ok(letter[0])
}

enum Order {
    Send(NodeId, Frame),
    Receive(Wait),
    Close(Duration),
}

fn read_order(from: &mut impl Read, waker: &Waker) -> io::Result<Order> {
    loop {
        return Ok(match get_letter(from)? {
            b's' => {
                let to = NodeId(get(from)? as u32);
                Order::Send(to, get_bytes(from)?.into())
            }
            b'n' => Order::Receive(Wait::No),
            b'f' => Order::Receive(Wait::For(Duration::from_nanos(get(from)?))),
            b'e' => Order::Receive(Wait::Forever),
            b'c' => Order::Close(Duration::from_nanos(get(from)?)),
            _ => {
                waker.wake_by_ref();
                continue;
            }
        });
    }
}

fn write_arrival(
    to: &mut impl Write,
    arrival: Result<Option<Arrival>, ReceiveError>,
) -> io::Result<()> {
    let (letter, peer, words) = match &arrival {
        Ok(None) => (b'-', 0, &b""[..]),
        Ok(Some(Arrival::Up { peer })) => (b'u', peer.0, &b""[..]),
        Ok(Some(Arrival::Frame { peer, frame })) => (b'f', peer.0, &frame[..]),
        Ok(Some(Arrival::Writable { peer })) => (b'r', peer.0, &b""[..]),
        Ok(Some(Arrival::Down { peer, reason: DisconnectReason::Closed })) => {
            (b'd', peer.0, &b""[..])
        }
        Ok(Some(Arrival::Woken)) => (b'w', 0, &b""[..]),
        Err(ReceiveError::Closed) => (b'c', 0, &b""[..]),
        other => panic!("{other:?} has no letter"),
    };
    to.write_all(&[letter])?;
    put(to, u64::from(peer))?;
    put_bytes(to, words)
}

/// Executes the commands of the driver until it disconnects.
pub fn serve() {
    let mut options = MpiOptions::default();
    // Small limits, so that a few frames fill the queue.
    (options.queue_frames, options.queue_bytes) = (40, 300_000);
    let mut node = mpi::start(&options).unwrap();
    let stream = TcpStream::connect(env::var(DRIVER).unwrap()).unwrap();
    stream.set_nodelay(true).unwrap();
    let mut to = BufWriter::new(stream.try_clone().unwrap());
    let capabilities = node.capabilities();
    for number in [u64::from(node.id().0), capabilities.max_frame_len as u64] {
        put(&mut to, number).unwrap();
    }
    put(&mut to, capabilities.queue_bytes as u64).unwrap();
    to.flush().unwrap();
    let (orders, taking) = channel();
    let waker = node.waker();
    // This thread reads commands, so that it can wake the other one, which receives.
    thread::spawn(move || {
        let mut from = BufReader::new(stream);
        while let Ok(order) = read_order(&mut from, &waker) {
            orders.send(order).unwrap();
        }
    });
    for order in taking {
        match order {
            Order::Send(peer, frame) => {
                let letter = match node.send(peer, frame).map_err(|unsent| unsent.error) {
                    Ok(()) => b'-',
                    Err(SendError::Full) => b'f',
                    Err(SendError::NotUp) => b'n',
                    Err(SendError::TooLong { .. }) => b't',
                    Err(_) => b'c',
                };
                to.write_all(&[letter]).unwrap();
            }
            Order::Receive(wait) => write_arrival(&mut to, node.receive(wait)).unwrap(),
            Order::Close(patience) => {
                node.close(patience);
                to.write_all(b"-").unwrap();
            }
        }
        to.flush().unwrap();
    }
}

/// A rank in another process.
#[derive(Debug)]
struct Remote {
    id: NodeId,
    capabilities: Capabilities,
    from: BufReader<TcpStream>,
    to: Arc<Sending>,
}

#[derive(Debug)]
struct Sending(Mutex<BufWriter<TcpStream>>);

impl Sending {
    fn order(&self, order: impl FnOnce(&mut BufWriter<TcpStream>) -> io::Result<()>) {
        let mut to = self.0.lock().unwrap();
        order(&mut to).and_then(|()| to.flush()).unwrap();
    }
}

impl Wake for Sending {
    fn wake(self: Arc<Self>) {
        self.order(|to| to.write_all(b"w"));
    }
}

impl Remote {
    fn new(stream: TcpStream) -> Self {
        stream.set_nodelay(true).unwrap();
        let mut from = BufReader::new(stream.try_clone().unwrap());
        let id = NodeId(get(&mut from).unwrap() as u32);
        let mut bound = || get(&mut from).unwrap() as usize;
        let capabilities = Capabilities::new(bound(), bound());
        let to = Arc::new(Sending(Mutex::new(BufWriter::new(stream))));
        Self { id, capabilities, from, to }
    }
}

impl Transport for Remote {
    fn id(&self) -> NodeId {
        self.id
    }

    fn capabilities(&self) -> Capabilities {
        self.capabilities
    }

    fn send(&mut self, peer: NodeId, frame: Frame) -> Result<(), Unsent> {
        let (len, longest) = (frame.len(), self.capabilities.max_frame_len);
        self.to.order(|to| {
            to.write_all(b"s")?;
            put(to, u64::from(peer.0))?;
            put_bytes(to, &frame)
        });
        let error = match get_letter(&mut self.from).unwrap() {
            b'-' => return Ok(()),
            b'f' => SendError::Full,
            b'n' => SendError::NotUp,
            b't' => SendError::TooLong { len, longest },
            _ => SendError::Closed,
        };
        Err(Unsent { to: peer, frame, error })
    }

    fn receive(&mut self, wait: Wait) -> Result<Option<Arrival>, ReceiveError> {
        self.to.order(|to| match wait {
            Wait::No => to.write_all(b"n"),
            Wait::For(time) => to.write_all(b"f").and_then(|()| put_time(to, time)),
            Wait::Forever => to.write_all(b"e"),
        });
        let letter = get_letter(&mut self.from).unwrap();
        let peer = NodeId(get(&mut self.from).unwrap() as u32);
        let words = get_bytes(&mut self.from).unwrap();
        Ok(Some(match letter {
            b'-' => return Ok(None),
            b'u' => Arrival::Up { peer },
            b'f' => Arrival::Frame { peer, frame: words.into() },
            b'r' => Arrival::Writable { peer },
            b'd' => Arrival::Down { peer, reason: DisconnectReason::Closed },
            b'w' => Arrival::Woken,
            _ => return Err(ReceiveError::Closed),
        }))
    }

    fn waker(&self) -> Waker {
        Waker::from(Arc::clone(&self.to))
    }

    fn close(&mut self, patience: Duration) {
        self.to.order(|to| to.write_all(b"c").and_then(|()| put_time(to, patience)));
        get_letter(&mut self.from).unwrap();
    }
}

/// Jobs with the numbers of ranks that the suite needs, one after the other.
pub struct Ranks {
    listener: TcpListener,
    job: Option<crate::Job>,
}

impl Ranks {
    pub fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut ranks = Self { listener, job: None };
        ranks.launch(1);
        drop(ranks.accept(1));
        ranks
    }

    fn launch(&mut self, ranks: u32) {
        let address = self.listener.local_addr().unwrap().to_string();
        self.job = Some(crate::launch(ranks, "remote", &[(DRIVER, &address)]));
    }

    fn accept(&self, ranks: u32) -> Vec<Remote> {
        let accept = |_| Remote::new(self.listener.accept().unwrap().0);
        let mut nodes: Vec<Remote> = (0..ranks).map(accept).collect();
        nodes.sort_by_key(|node| node.id);
        nodes
    }

    /// Waits for the end of the job, which must succeed since all ranks were dropped.
    pub fn end(&mut self) {
        if let Some(job) = self.job.take() {
            let status = crate::end(job);
            assert!(status.success(), "{status}");
        }
    }
}

impl Subject for Ranks {
    fn mesh(&mut self, nodes: u32) -> Vec<Box<dyn Transport>> {
        self.end();
        self.launch(nodes);
        self.accept(nodes).into_iter().map(|node| Box::new(node) as Box<dyn Transport>).collect()
    }
}
