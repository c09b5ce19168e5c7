//! Events of an in-process epoch, for measurements.

use crate::request::Kind;
use crate::wire::Document;

/// An event of an epoch, as [`InProcess::epoch_watched`](super::InProcess::epoch_watched) reports
/// it.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// A server starts to process a request or the end of a round. The observer takes the time.
    Begins {
        /// Index of the server.
        server: u32,
    },
    /// The server has finished what it started.
    Ends {
        /// Index of the server.
        server: u32,
    },
    /// A shard has sent a request to a server and received the reply.
    Exchange(Exchange<'a>),
}

/// A request and its reply.
#[derive(Clone, Copy, Debug)]
pub struct Exchange<'a> {
    /// Index of the server.
    pub server: u32,
    /// Kind of the request.
    pub kind: Kind,
    /// Bytes of the request.
    pub request: u64,
    /// Bytes of the reply.
    pub reply: u64,
    /// Rows that were pulled, or whose deltas were pushed; 0 for other kinds. The rows of a
    /// partition with several slices are counted in the exchange of the first.
    pub rows: u64,
    /// Topics of all these rows or deltas.
    pub entries: u64,
    /// Documents that were pushed; empty for other kinds.
    pub documents: &'a [Document],
}

/// Receiver of events.
pub(super) type Observer<'a> = &'a mut dyn FnMut(Event<'_>);
