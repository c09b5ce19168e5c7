//! The event loop of a node: a [`Program`] over an [`Endpoint`] and a transport, in real time.

use std::collections::BTreeMap;
use std::fmt;
use std::time::{Duration, Instant};

use super::{Config, Context, Endpoint, Event, Host, MessageBuf, Program};
use crate::split_mix::{SplitMix64, mixed};
use crate::time::Time;
use crate::transport::{Arrival, ReceiveError, Transport, Wait};

/// Maximum number of arrivals that are handled before the frames that they lead to are sent.
const ARRIVALS_PER_WAIT: usize = 64;

/// Runs a [`Program`] over a transport, on the thread of the caller.
///
/// The driver owns the [`Endpoint`]: it passes arrivals and time to the endpoint, actions of the
/// endpoint to the program, and frames to the transport. A loop of [`step`](Self::step) is a
/// complete node. A caller that works between messages calls [`flush`](Self::flush) and
/// [`wait`](Self::wait) itself.
///
/// ```
/// use std::time::Duration;
///
/// use lda_transport::rpc::{Action, Config, Context, Driver, Identity, Outcome, Program};
/// use lda_transport::{NodeId, local};
///
/// /// Answers each request with its length, and keeps the outcome of its own request.
/// #[derive(Default)]
/// struct Lengths(Option<Outcome>);
///
/// impl Program for Lengths {
///     fn act(&mut self, action: Action, cx: &mut Context<'_>) {
///         match action {
///             Action::Request { reply_to, body, .. } => {
///                 cx.reply(reply_to, [body.len() as u8][..].into());
///             }
///             Action::Completed { outcome, .. } => self.0 = Some(outcome),
///             _ => {}
///         }
///     }
/// }
///
/// let config = Config::new(Identity { incarnation: 1, role: 0, run: 1, configuration: 0 });
/// let mut nodes = local::mesh(2, &local::Options::default()).into_iter();
/// let (mut server, mut client) = (Lengths::default(), Lengths::default());
/// let mut a = Driver::new(nodes.next().unwrap(), config.clone());
/// let mut b = Driver::new(nodes.next().unwrap(), config);
///
/// let (body, timeout) = (b"how long?"[..].into(), Duration::from_secs(60));
/// b.context().request(NodeId(0), lda_transport::rpc::RequestKind::Call, body, timeout)?;
/// while client.0.is_none() {
///     a.step(&mut server, lda_transport::Time::ZERO)?;
///     b.step(&mut client, lda_transport::Time::ZERO)?;
/// }
/// assert_eq!(client.0, Some(Outcome::Done(vec![9].into())));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Driver<T> {
    transport: T,
    endpoint: Endpoint,
    rng: SplitMix64,
    timers: Timers,
    /// Instant of [`Time`] 1: at time 0 nothing has happened yet.
    origin: Instant,
}

/// Timers of the program, by time and then by the order in which they were set.
#[derive(Debug, Default)]
struct Timers {
    pending: BTreeMap<(Time, u64), u64>,
    /// Number of timers set so far.
    set: u64,
}

impl Timers {
    fn next(&self) -> Time {
        self.pending.first_key_value().map_or(Time::NEVER, |(&(time, _), _)| time)
    }

    fn pop_due(&mut self, now: Time) -> Option<u64> {
        let first = self.pending.first_entry()?;
        (first.key().0 <= now).then(|| first.remove())
    }
}

impl Host for Timers {
    fn set_timer(&mut self, at: Time, timer: u64) {
        self.pending.insert((at, self.set), timer);
        self.set += 1;
    }

    fn note(&mut self, text: &dyn fmt::Display) {
        #[cfg(feature = "tracing")]
        tracing::debug!("{text}");
        #[cfg(not(feature = "tracing"))]
        let _ = text;
    }
}

impl<T: Transport> Driver<T> {
    /// Creates a node over `transport`. Random numbers of its programs are seeded with the node's
    /// number and incarnation.
    ///
    /// # Panics
    /// As [`Endpoint::new`].
    pub fn new(transport: T, config: Config) -> Self {
        let seed = mixed(config.identity.incarnation) ^ u64::from(transport.id().0);
        Self {
            transport,
            endpoint: Endpoint::new(config),
            rng: SplitMix64::new(mixed(seed)),
            timers: Timers::default(),
            origin: Instant::now(),
        }
    }

    /// Returns the time now.
    pub fn now(&self) -> Time {
        Time(1) + self.origin.elapsed()
    }

    /// Returns the endpoint.
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// Returns the transport, for example to [close](Transport::close) it. Frames must only be sent
    /// and received by the driver.
    pub fn transport(&mut self) -> &mut T {
        &mut self.transport
    }

    /// Returns an empty message in memory that the transport has used before.
    pub fn message(&mut self) -> MessageBuf {
        MessageBuf::in_buffer(self.transport.take_buffer())
    }

    /// Returns the context of a call to the program from outside, for example to make a request.
    /// The next [`flush`](Self::flush) sends it.
    pub fn context(&mut self) -> Context<'_> {
        let (id, now) = (self.transport.id(), self.now());
        Context::new(id, now, &mut self.endpoint, &mut self.rng, &mut self.timers)
    }

    /// Starts the program. Called once, before everything else.
    pub fn start(&mut self, program: &mut impl Program) {
        program.start(&mut self.context());
    }

    /// Passes all actions to the program and sends all frames that the transport takes.
    pub fn flush(&mut self, program: &mut impl Program) {
        self.act(program);
        loop {
            while let Some((to, frame)) = self.endpoint.transmit(self.now()) {
                if let Err(unsent) = self.transport.send(to, frame) {
                    // INVARIANT: the frame is given back before anything else is handled, so that
                    // the endpoint keeps the order of frames to a peer.
                    self.endpoint.unsent(to, unsent.frame, unsent.error, self.now());
                }
            }
            // A frame that was too long ends a request, and the program may make another.
            if !self.act(program) {
                return;
            }
        }
    }

    /// Waits for an arrival, a timer or a [wake-up](Transport::waker), until `until` at the latest,
    /// and handles what has arrived. Returns the time that it waited. Does not wait if `until` has
    /// passed.
    ///
    /// # Errors
    /// [`ReceiveError`]: the transport is closed or has failed.
    pub fn wait(
        &mut self,
        program: &mut impl Program,
        until: Time,
    ) -> Result<Duration, ReceiveError> {
        let start = self.now();
        let next = until.min(self.endpoint.next_timer()).min(self.timers.next());
        let mut wait = match next {
            Time::NEVER => Wait::Forever,
            next if next <= start => Wait::No,
            next => Wait::For(next.since(start)),
        };
        let mut waited = Duration::ZERO;
        for _ in 0..ARRIVALS_PER_WAIT {
            let arrival = self.transport.receive(wait)?;
            if wait != Wait::No {
                waited = self.now().since(start);
            }
            let Some(arrival) = arrival else { break };
            wait = Wait::No;
            self.arrive(arrival, program);
        }
        self.expire(program);
        Ok(waited)
    }

    /// [Flushes](Self::flush), then [waits](Self::wait).
    ///
    /// # Errors
    /// As [`wait`](Self::wait).
    pub fn step(&mut self, program: &mut impl Program, until: Time) -> Result<(), ReceiveError> {
        self.flush(program);
        self.wait(program, until).map(drop)
    }

    fn arrive(&mut self, arrival: Arrival, program: &mut impl Program) {
        let event = match arrival {
            Arrival::Up { peer } => {
                program.connected(peer, &mut self.context());
                Event::Up { peer }
            }
            Arrival::Down { peer, reason } => {
                program.disconnected(peer, &reason, &mut self.context());
                Event::Down { peer, reason }
            }
            Arrival::Frame { peer, frame } => Event::Frame { peer, frame },
            Arrival::Writable { peer } => Event::Writable { peer },
            _ => return,
        };
        self.endpoint.handle(event, self.now());
        self.act(program);
    }

    /// Passes the time to the endpoint, and expired timers to the program.
    fn expire(&mut self, program: &mut impl Program) {
        let now = self.now();
        if now >= self.endpoint.next_timer() {
            self.endpoint.handle(Event::Tick, now);
            self.act(program);
        }
        while let Some(timer) = self.timers.pop_due(now) {
            program.timer(timer, &mut self.context());
        }
    }

    /// Passes actions to the program until there is none. Returns whether there was one.
    fn act(&mut self, program: &mut impl Program) -> bool {
        let mut acted = false;
        loop {
            // Released before the program acts, so that its next message can reuse the memory.
            while let Some(frame) = self.endpoint.spent() {
                self.transport.release(frame);
            }
            let Some(action) = self.endpoint.poll() else { return acted };
            program.act(action, &mut self.context());
            acted = true;
        }
    }
}
