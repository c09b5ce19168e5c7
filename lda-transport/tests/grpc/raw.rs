//! A gRPC client that sends arbitrary messages to a node.

use std::net::SocketAddr;

use bytes::{Buf, BufMut, Bytes};
use lda_transport::NodeId;
use lda_transport::grpc::wire::{Hello, METHOD};
use lda_transport::grpc::{GrpcOptions, Token};
use tokio::runtime::Runtime;
use tokio::sync::mpsc;
use tokio_stream::wrappers::UnboundedReceiverStream;
use tonic::client::Grpc;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::codegen::http::uri::PathAndQuery;
use tonic::transport::Endpoint;
use tonic::{Request, Status, Streaming};

use crate::common::PATIENCE;

/// Codec that passes messages through.
#[derive(Clone, Copy)]
struct Bare;

impl Codec for Bare {
    type Encode = Bytes;
    type Decode = Bytes;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        *self
    }

    fn decoder(&mut self) -> Self {
        *self
    }
}

impl Encoder for Bare {
    type Item = Bytes;
    type Error = Status;

    fn encode(&mut self, message: Bytes, buf: &mut EncodeBuf<'_>) -> Result<(), Status> {
        buf.put(message);
        Ok(())
    }
}

impl Decoder for Bare {
    type Item = Bytes;
    type Error = Status;

    fn decode(&mut self, buf: &mut DecodeBuf<'_>) -> Result<Option<Bytes>, Status> {
        Ok(Some(buf.copy_to_bytes(buf.remaining())))
    }
}

pub struct Raw {
    runtime: Runtime,
    out: Option<mpsc::UnboundedSender<Bytes>>,
    back: Option<Streaming<Bytes>>,
}

impl Raw {
    /// Connects and sends a first message.
    pub fn call(at: SocketAddr, first: Bytes) -> Result<Self, Status> {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.unwrap();
        let (out, messages) = mpsc::unbounded_channel();
        out.send(first).unwrap();
        let back = runtime.block_on(async {
            let endpoint = Endpoint::from_shared(format!("http://{at}")).unwrap();
            let mut grpc = Grpc::new(endpoint.connect().await.unwrap());
            grpc.ready().await.unwrap();
            let request = Request::new(UnboundedReceiverStream::new(messages));
            let path = PathAndQuery::from_static(METHOD);
            let answer = grpc.streaming(request, path, Bare).await?;
            Ok::<_, Status>(answer.into_inner())
        })?;
        Ok(Self { runtime, out: Some(out), back: Some(back) })
    }

    /// Connects as node `from` with the default options.
    pub fn peer(at: SocketAddr, from: u32, to: u32) -> Result<Self, Status> {
        let mut raw = Self::call(at, message(&hello(from, to).encode()))?;
        let answer = raw.next()?.expect("a hello");
        assert_eq!(answer, message(&hello(to, from).encode()));
        Ok(raw)
    }

    /// Sends a message; ignored if the call has ended.
    pub fn send(&self, message: impl Into<Bytes>) {
        let _ = self.out.as_ref().expect("the client has not ended its half").send(message.into());
    }

    /// Ends the client's half of the stream.
    pub fn end(&mut self) {
        self.out = None;
    }

    pub fn next(&mut self) -> Result<Option<Bytes>, Status> {
        let back = self.back.as_mut().expect("the call is not cancelled");
        let next = async { tokio::time::timeout(PATIENCE, back.message()).await };
        self.runtime.block_on(next).expect("a message in time")
    }

    /// Cancels the call.
    pub fn cancel(&mut self) {
        self.back = None;
        self.out = None;
    }
}

pub fn hello(from: u32, to: u32) -> Hello {
    let max_frame_len = GrpcOptions::default().max_frame_len as u64;
    Hello { from: NodeId(from), to: NodeId(to), max_frame_len, token: Token::default() }
}

/// Encodes data as a message, with the shortest encoding of the length.
pub fn message(data: &[u8]) -> Bytes {
    let mut message = vec![0x0a];
    let mut len = data.len();
    while len >= 0x80 {
        message.push(len as u8 | 0x80);
        len >>= 7;
    }
    message.push(len as u8);
    message.extend_from_slice(data);
    message.into()
}
