//! One stream of messages by tonic alone: the upper limit for `grpc`.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Buf, BufMut, Bytes};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::mpsc;
use tokio_stream::wrappers::{ReceiverStream, TcpListenerStream};
use tokio_stream::{Stream, StreamExt};
use tonic::body::Body;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::codegen::{BoxFuture, Service, http};
use tonic::transport::{Endpoint, Server};
use tonic::{Request, Response, Status, Streaming};

use super::{Result, Sender};

/// Windows of HTTP/2, as in `lda_transport::grpc`.
const WINDOW: u32 = 16 << 20;
const LONGEST: usize = 32 << 20;

/// Codec of messages that are plain bytes.
#[derive(Clone, Copy)]
struct Plain;

impl Codec for Plain {
    type Encode = Bytes;
    type Decode = Bytes;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        Self
    }

    fn decoder(&mut self) -> Self {
        Self
    }
}

impl Encoder for Plain {
    type Item = Bytes;
    type Error = Status;

    fn encode(
        &mut self,
        message: Bytes,
        to: &mut EncodeBuf<'_>,
    ) -> std::result::Result<(), Status> {
        to.reserve(message.len());
        to.put(message);
        Ok(())
    }
}

impl Decoder for Plain {
    type Item = Bytes;
    type Error = Status;

    fn decode(&mut self, from: &mut DecodeBuf<'_>) -> std::result::Result<Option<Bytes>, Status> {
        Ok(Some(from.copy_to_bytes(from.remaining())))
    }
}

/// Sends back the messages of round trips.
#[derive(Clone)]
struct Back;

impl tonic::server::NamedService for Back {
    const NAME: &'static str = "bare.Back";
}

impl Service<http::Request<Body>> for Back {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<Self::Response, Infallible>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<std::result::Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        Box::pin(async move {
            let mut grpc = tonic::server::Grpc::new(Plain).max_decoding_message_size(LONGEST);
            Ok(grpc.streaming(Messages, request).await)
        })
    }
}

struct Messages;

type Out = Pin<Box<dyn Stream<Item = std::result::Result<Bytes, Status>> + Send>>;

impl Service<Request<Streaming<Bytes>>> for Messages {
    type Response = Response<Out>;
    type Error = Status;
    type Future = BoxFuture<Self::Response, Status>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<std::result::Result<(), Status>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Streaming<Bytes>>) -> Self::Future {
        Box::pin(async move {
            let back = request.into_inner().filter(|message| match message {
                Ok(message) => message.first() == Some(&1),
                Err(_) => true,
            });
            Ok(Response::new(Box::pin(back) as Out))
        })
    }
}

fn runtime() -> Result<Runtime> {
    Ok(Builder::new_multi_thread().worker_threads(1).enable_all().build()?)
}

pub fn receive() -> Result<()> {
    runtime()?.block_on(async {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
        println!("{}", listener.local_addr()?);
        let streams = TcpListenerStream::new(listener)
            .map(|stream| stream.and_then(|stream| stream.set_nodelay(true).map(|()| stream)));
        let server = Server::builder()
            .initial_stream_window_size(WINDOW)
            .initial_connection_window_size(WINDOW + (1 << 20))
            .add_service(Back)
            .serve_with_incoming(streams);
        Ok(tokio::spawn(server).await??)
    })
}

pub struct Bare {
    runtime: Runtime,
    to: mpsc::Sender<Bytes>,
    back: Option<Streaming<Bytes>>,
}

impl Bare {
    pub fn connect(address: &str) -> Result<Self> {
        let runtime = runtime()?;
        let endpoint = Endpoint::from_shared(format!("http://{address}"))?
            .initial_stream_window_size(WINDOW)
            .initial_connection_window_size(WINDOW + (1 << 20))
            .tcp_nodelay(true);
        let (to, messages) = mpsc::channel(64);
        let back = runtime.block_on(async {
            let mut grpc = tonic::client::Grpc::new(endpoint.connect().await?);
            grpc.ready().await?;
            let path = http::uri::PathAndQuery::from_static("/bare.Back/All");
            let request = Request::new(ReceiverStream::new(messages));
            let answer = grpc.streaming(request, path, Plain).await?;
            Ok::<_, Box<dyn std::error::Error + Send + Sync>>(answer.into_inner())
        })?;
        Ok(Self { runtime, to, back: Some(back) })
    }

    /// Sends within the runtime, and waits for the messages that are sent back.
    fn within(&mut self, count: usize, len: usize, asks: usize) -> Result<()> {
        let to = self.to.clone();
        let mut back = self.back.take().ok_or("the stream is broken")?;
        let task = self.runtime.spawn(async move {
            for number in 0..count {
                let mut message = vec![0; len];
                message[0] = u8::from(number >= count - asks);
                to.send(message.into()).await?;
                if number >= count - asks {
                    back.message().await?.ok_or("it has ended")?;
                }
            }
            Ok::<_, Box<dyn std::error::Error + Send + Sync>>(back)
        });
        self.back = Some(self.runtime.block_on(task)??);
        Ok(())
    }
}

impl Sender for Bare {
    fn pour(&mut self, count: usize, len: usize) -> Result<()> {
        self.within(count, len, 1)
    }

    fn round(&mut self, len: usize) -> Result<()> {
        self.within(1, len, 1)
    }
}
