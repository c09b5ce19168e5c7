//! Bound on the first message of a call.
//!
//! tonic reserves memory for a message as soon as its length has arrived, so that a prefix of 5 bytes
//! could make a node reserve the longest frame. Before its hello a connection is a stranger's, and a
//! hello is short: a call whose first message is longer fails at its prefix.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body, Frame};
use tonic::Status;

/// Maximum length of the first message in bytes; a hello of a later version may be longer than ours.
const MAX_LEN: u32 = 128;
/// Bytes before a message of gRPC: whether it is compressed, and its length in 4 bytes.
const PREFIX_LEN: usize = 5;

/// The body of a call.
pub(super) struct FirstMessage<B> {
    body: B,
    /// First bytes of the body, as far as they have arrived.
    prefix: Vec<u8>,
}

impl<B> FirstMessage<B> {
    pub fn of(body: B) -> Self {
        Self { body, prefix: Vec::with_capacity(PREFIX_LEN) }
    }

    /// Checks the next bytes of the body.
    fn check(&mut self, data: &[u8]) -> Result<(), Status> {
        let missing = PREFIX_LEN - self.prefix.len();
        if missing == 0 {
            return Ok(());
        }
        self.prefix.extend_from_slice(&data[..missing.min(data.len())]);
        let Some(&[_, a, b, c, d]) = self.prefix.first_chunk::<PREFIX_LEN>() else { return Ok(()) };
        match u32::from_be_bytes([a, b, c, d]) {
            len if len > MAX_LEN => Err(Status::out_of_range(format!(
                "the first message has {len} bytes, more than a hello: check that the other end is \
                 a node"
            ))),
            _ => Ok(()),
        }
    }
}

impl<B> Body for FirstMessage<B>
where
    B: Body<Data = Bytes, Error = Status> + Unpin,
{
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(cx));
        Poll::Ready(frame.map(|frame| {
            let frame = frame?;
            frame.data_ref().map_or(Ok(()), |data| self.check(data))?;
            Ok(frame)
        }))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Result of a body that arrives in pieces.
    fn check(pieces: &[&[u8]]) -> Result<(), Status> {
        let mut body = FirstMessage::of(());
        pieces.iter().try_for_each(|piece| body.check(piece))
    }

    #[test]
    fn only_the_first_prefix_counts() {
        assert!(check(&[&[0, 0, 0, 0, 64], &[1; 64], &[0, 0xff, 0xff, 0xff, 0xff]]).is_ok());
        assert!(check(&[&[0], &[0, 0, 0], &[129, 1, 1]]).is_err());
        assert!(check(&[&[0, 0xff, 0xff, 0xff, 0xff]]).is_err());
        assert!(check(&[&[], &[0, 0xff]]).is_ok());
    }
}
