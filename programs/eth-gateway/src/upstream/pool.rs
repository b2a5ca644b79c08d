//! Connections to the node: kept and used again, no more than a bound of them, and every answer bounded in time and size.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::header::{
    AUTHORIZATION, CONNECTION, CONTENT_TYPE, HOST, HeaderName, HeaderValue, RETRY_AFTER,
};
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use super::address::Address;
use super::identity::{Identity, Pinned};
use crate::memory::{self, Memory, Untaken};
use crate::options::Options;
use crate::rpc::{self, Call, Failure, Reply, Stated};

/// How long a connection may take to be there.
const CONNECT_MAX: Duration = Duration::from_secs(3);
/// All answers that are being received have this much memory together.
const RECEIVING_BYTES_MAX: usize = 256 << 20;

/// An answer, whatever it is.
#[derive(Debug)]
pub struct Received {
    pub status: u16,
    pub retry_after: Option<Duration>,
    pub body: Bytes,
}

/// The end of a post.
#[derive(Debug)]
pub enum Posted {
    Answered(Received),
    /// The limiter refused to say which chain the node is of: the post was not sent.
    Limited(Stated),
}

/// Of the places for posts slow calls have this part.
const SLOW_PART: usize = 4;

/// How long a node may take: each has places of its own, so that no number of slow calls keeps quick ones waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Speed {
    Quick,
    Slow,
}

/// See the module.
pub struct Pool {
    address: Address,
    tls: Option<TlsConnector>,
    keeps: bool,
    idle: Mutex<Vec<SendRequest<Full<Bytes>>>>,
    quick: Semaphore,
    slow: Semaphore,
    wait_max: Duration,
    /// The chain that each new connection must be of; none where connections are not kept, and nothing else is.
    pinned: Option<Arc<Pinned>>,
    batches: bool,
    header: Option<(HeaderName, HeaderValue)>,
    memory: Memory,
    answer_bytes_max: usize,
    answer_max: Duration,
}

impl Pool {
    /// # Errors
    /// When the certificates of the host cannot be read.
    pub fn new(options: &Options, address: Address, pinned: Arc<Pinned>) -> Result<Self, String> {
        let slow = (options.upstream_connections_max / SLOW_PART).max(1);
        let quick = options.upstream_connections_max.saturating_sub(slow).max(1);
        let tls = if address.is_tls { Some(super::address::connector()?) } else { None };
        Ok(Self {
            address,
            tls,
            keeps: options.pool,
            idle: Mutex::new(Vec::new()),
            quick: Semaphore::new(quick),
            slow: Semaphore::new(slow),
            wait_max: options.queue_max,
            pinned: options.pool.then_some(pinned),
            batches: options.batch,
            header: options.upstream_header.clone(),
            memory: Memory::new(RECEIVING_BYTES_MAX),
            answer_bytes_max: options.upstream_bytes_max,
            answer_max: options.upstream_timeout,
        })
    }

    /// Posts one body and gives what comes back. `was_sent` is true from where the node may have got it: a connection that
    /// does not come to stand, or is of another chain, has sent nothing.
    pub async fn post(
        &self,
        body: Bytes,
        speed: Speed,
        was_sent: &AtomicBool,
    ) -> Result<Posted, Failure> {
        let places = if speed == Speed::Slow { &self.slow } else { &self.quick };
        let Ok(place) = timeout(self.wait_max, places.acquire()).await else {
            return Err(Failure::Busy);
        };
        let _place = place.map_err(|_| Failure::Busy)?;
        timeout(self.answer_max, self.exchange(body, was_sent)).await.unwrap_or(Err(Failure::Late))
    }

    async fn exchange(&self, body: Bytes, was_sent: &AtomicBool) -> Result<Posted, Failure> {
        let mut request = self.request(body)?;
        // A kept connection may have ended while it was idle. What was not sent on it is sent on another.
        while let Some(mut connection) = self.take_idle() {
            was_sent.store(true, Relaxed);
            match connection.try_send_request(request).await {
                Ok(response) => {
                    let received = self.receive(response).await?;
                    self.put_back(connection);
                    return Ok(Posted::Answered(received));
                }
                Err(mut error) => match error.take_message() {
                    Some(unsent) => {
                        was_sent.store(false, Relaxed);
                        request = unsent;
                    }
                    None => return Err(unreachable(error.error())),
                },
            }
        }
        let mut connection = timeout(CONNECT_MAX, self.connect()).await.map_err(|_| {
            Failure::Unreachable(format!("no connection in {} s", CONNECT_MAX.as_secs()))
        })??;
        if let Some(pinned) = &self.pinned
            && let Some(stated) = self.greet(&mut connection, pinned).await?
        {
            return Ok(Posted::Limited(stated));
        }
        was_sent.store(true, Relaxed);
        let response =
            connection.send_request(request).await.map_err(|error| unreachable(&error))?;
        let received = self.receive(response).await?;
        self.put_back(connection);
        Ok(Posted::Answered(received))
    }

    /// Asks a node that was just connected to which chain it is of. Gives what its limiter says where it refuses
    /// that; the rest of what came answers nothing that a client asked.
    async fn greet(
        &self,
        connection: &mut SendRequest<Full<Bytes>>,
        pinned: &Pinned,
    ) -> Result<Option<Stated>, Failure> {
        let calls = Identity::calls();
        let posts = if self.batches { vec![&calls[..]] } else { calls.chunks(1).collect() };
        let mut answers = Vec::with_capacity(calls.len());
        for post in posts {
            let failed = |error: hyper::Error| unreachable(&error);
            connection.ready().await.map_err(failed)?;
            let request = self.request(body(post))?;
            let response = connection.send_request(request).await.map_err(failed)?;
            let came = self.receive(response).await?;
            for reply in rpc::read(came.status, came.retry_after, &came.body, post.len()) {
                match reply {
                    Reply::Limited(stated) => {
                        let backoff = came.retry_after.or(stated.backoff);
                        return Ok(Some(Stated { backoff, ..stated }));
                    }
                    Reply::Answer(answer) => answers.push(answer),
                }
            }
        }
        pinned.check(Identity::read(&answers)?)?;
        connection.ready().await.map_err(|error| unreachable(&error))?;
        Ok(None)
    }

    fn put_back(&self, connection: SendRequest<Full<Bytes>>) {
        if self.keeps {
            self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(connection);
        }
    }

    fn take_idle(&self) -> Option<SendRequest<Full<Bytes>>> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.retain(|connection| !connection.is_closed());
        let ready = idle.iter().rposition(SendRequest::is_ready)?;
        Some(idle.swap_remove(ready))
    }

    fn request(&self, body: Bytes) -> Result<Request<Full<Bytes>>, Failure> {
        let mut request = Request::post(&self.address.path)
            .header(HOST, &self.address.authority)
            .header(CONTENT_TYPE, "application/json");
        if let Some(authorization) = &self.address.authorization {
            request = request.header(AUTHORIZATION, authorization);
        }
        if let Some((name, value)) = &self.header {
            request = request.header(name, value);
        }
        if !self.keeps {
            request = request.header(CONNECTION, HeaderValue::from_static("close"));
        }
        let request = request.body(Full::new(body));
        request.map_err(|error| {
            Failure::Unreachable(format!("asking {}: {error}", self.address.authority))
        })
    }

    async fn connect(&self) -> Result<SendRequest<Full<Bytes>>, Failure> {
        let failed = |error: std::io::Error| Failure::Unreachable(error.to_string());
        let stream = TcpStream::connect((self.address.host.as_str(), self.address.port));
        let stream = stream.await.map_err(failed)?;
        stream.set_nodelay(true).map_err(failed)?;
        let (connection, work) = match &self.tls {
            None => {
                let (connection, work) =
                    handshake(TokioIo::new(stream)).await.map_err(|error| unreachable(&error))?;
                (connection, tokio::spawn(async move { work.await.map_err(drop) }))
            }
            Some(tls) => {
                let name = self.address.server_name()?;
                let stream = tls.connect(name, stream).await.map_err(failed)?;
                let (connection, work) =
                    handshake(TokioIo::new(stream)).await.map_err(|error| unreachable(&error))?;
                (connection, tokio::spawn(async move { work.await.map_err(drop) }))
            }
        };
        // It ends with its connection.
        drop(work);
        Ok(connection)
    }

    async fn receive(&self, response: Response<Incoming>) -> Result<Received, Failure> {
        let status = response.status().as_u16();
        let retry_after = response.headers().get(RETRY_AFTER).and_then(seconds);
        let mut held = self.memory.none();
        let body = memory::take(response.into_body(), self.answer_bytes_max, &mut held).await;
        let body = body.map_err(|untaken| match untaken {
            Untaken::TooLarge => Failure::TooLarge,
            Untaken::Full => Failure::Busy,
            Untaken::Broken(error) => unreachable(&error),
        })?;
        Ok(Received { status, retry_after, body })
    }
}

fn unreachable(error: &hyper::Error) -> Failure {
    if error.is_parse() {
        return Failure::Garbage(format!("no HTTP: {error}"));
    }
    let mut words = error.to_string();
    if let Some(cause) = std::error::Error::source(error) {
        words = format!("{words}: {cause}");
    }
    Failure::Unreachable(words)
}

fn seconds(value: &HeaderValue) -> Option<Duration> {
    value.to_str().ok()?.trim().parse().ok().map(Duration::from_secs)
}

/// Calls as the body of one post; their ids are their places.
pub(super) fn body(calls: &[Call]) -> Bytes {
    let mut body = Vec::with_capacity(160 * calls.len());
    if let [only] = calls {
        only.write(0, &mut body);
        return body.into();
    }
    for (index, call) in calls.iter().enumerate() {
        body.push(if index == 0 { b'[' } else { b',' });
        call.write(index, &mut body);
    }
    body.push(b']');
    body.into()
}
