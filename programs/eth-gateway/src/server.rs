//! Connections of clients: how many there may be, how slow they may be, and how they end when the gateway ends.

mod limits;
mod paced;
mod respond;
mod socket;

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio_rustls::TlsAcceptor;

use crate::cors::Origins;
use crate::gateway::Gateway;
#[cfg(feature = "grpc")]
use crate::grpc::Calls;
use crate::log::Log;
use crate::memory::Memory;
use crate::options::Options;
use crate::signed::Signed;
use crate::tls;
use limits::Limits;
use paced::Paced;
#[cfg(feature = "grpc")]
pub use respond::let_in;
use respond::respond;

/// A request's head may have this many bytes; the longest route has about 4,500.
const HEAD_BYTES_MAX: usize = 16 << 10;
/// The answer to a client whose connection is one too many.
const FULL: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
/// Descriptors beside those of clients' connections.
const DESCRIPTORS: u64 = 256;
/// Requests at once on one connection of HTTP/2.
const STREAMS_MAX: u32 = 100;

/// All bodies of requests that are held have this much memory together, beyond what each connection has.
const BODIES_BYTES_MAX: usize = 128 << 20;
/// The bodies of one connection have this much that no other one can take: as much as a head.
const OWN_BYTES_MAX: usize = HEAD_BYTES_MAX;

/// Shared by all connections.
pub struct Serving {
    gateway: Arc<Gateway>,
    #[cfg(feature = "grpc")]
    calls: Calls,
    origins: Origins,
    log: Log,
    signed: Signed,
    limits: Limits,
    bodies: Memory,
    needs_token: bool,
    token_age: Duration,
    head_timeout: Duration,
    write_timeout: Duration,
}

/// What is spoken at an address.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Speaks {
    Rest,
    #[cfg(feature = "grpc")]
    Grpc,
}

/// Where a connection is from, and what its client speaks.
struct Caller {
    peer: SocketAddr,
    is_http2: bool,
    lingers: Arc<AtomicBool>,
    place: Arc<Place>,
}

/// A connection's place among all that there may be. What the connection is upgraded to has it, too.
struct Place {
    _permit: OwnedSemaphorePermit,
    gateway: Arc<Gateway>,
    bodies: Memory,
}

impl Place {
    fn new(permit: OwnedSemaphorePermit, gateway: &Arc<Gateway>) -> Arc<Self> {
        gateway.metrics.opened();
        let (gateway, bodies) = (Arc::clone(gateway), Memory::new(OWN_BYTES_MAX));
        Arc::new(Self { _permit: permit, gateway, bodies })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.gateway.metrics.closed();
    }
}

/// An address that is listened at.
struct Door {
    listener: TcpListener,
    tls: Option<TlsAcceptor>,
    speaks: Speaks,
}

/// Serves until `ends` says so, then lets requests in flight finish.
pub async fn serve(
    options: &Options,
    gateway: Arc<Gateway>,
    ready: impl FnOnce(&str),
    ends: impl Future<Output = ()>,
) -> Result<(), String> {
    let is_tls = options.tls_certificate.is_some();
    let signed =
        Signed::new(&options.auth_secret, &options.auth_domain, is_tls, options.token_age)?;
    let serving = Arc::new(Serving {
        #[cfg(feature = "grpc")]
        calls: Calls::new(Arc::clone(&gateway))?,
        gateway,
        origins: options.cors_origins.clone(),
        log: Log::start(options.log_one_in)?,
        signed,
        limits: Limits::new(options.keys.as_deref(), options.client_rps)?,
        bodies: Memory::new(BODIES_BYTES_MAX),
        needs_token: options.auth,
        token_age: options.token_age,
        head_timeout: options.head_timeout,
        write_timeout: options.write_timeout,
    });
    let (rest, at) = open(options, options.listen, Speaks::Rest).await?;
    let mut addresses = format!("{}={at}", if rest.tls.is_some() { "https" } else { "http" });
    let grpc = open_grpc(options).await?;
    if let Some((_, at)) = &grpc {
        addresses.push_str(&format!(" grpc={at}"));
    }
    allow_descriptors(options.connections_max as u64 + DESCRIPTORS);
    ready(&addresses);
    let places = Arc::new(Semaphore::new(options.connections_max));
    let (ending, ended) = watch::channel(false);
    let second = async {
        match &grpc {
            Some((door, _)) => accept_at(door, &places, &serving, &ended).await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        () = accept_at(&rest, &places, &serving, &ended) => {}
        () = second => {}
        () = ends => {}
    }
    drop((rest, grpc));
    let _ = ending.send(true);
    // All places are free when all connections have ended.
    let all = u32::try_from(options.connections_max).unwrap_or(u32::MAX);
    let finished = tokio::time::timeout(options.drain, places.acquire_many(all)).await;
    if finished.is_err() {
        let left = options.connections_max - places.available_permits();
        eprintln!("{left} connections were cut off after {} s", options.drain.as_secs());
    }
    Ok(())
}

/// The address of gRPC, if there is to be one.
#[cfg(feature = "grpc")]
async fn open_grpc(options: &Options) -> Result<Option<(Door, SocketAddr)>, String> {
    match options.grpc {
        Some(address) => open(options, address, Speaks::Grpc).await.map(Some),
        None => Ok(None),
    }
}

#[cfg(not(feature = "grpc"))]
async fn open_grpc(options: &Options) -> Result<Option<(Door, SocketAddr)>, String> {
    match options.grpc {
        Some(_) => {
            Err("this program was built without gRPC; build it with --features grpc".to_owned())
        }
        None => Ok(None),
    }
}

async fn open(
    options: &Options,
    address: SocketAddr,
    speaks: Speaks,
) -> Result<(Door, SocketAddr), String> {
    let protocols: &[&str] = if speaks == Speaks::Rest { &["h2", "http/1.1"] } else { &["h2"] };
    let tls = match (&options.tls_certificate, &options.tls_key) {
        (Some(certificate), Some(key)) => Some(tls::acceptor(certificate, key, protocols)?),
        (None, None) => None,
        _ => return Err("TLS needs both tls_certificate and tls_key".to_owned()),
    };
    let failed = |error: std::io::Error| format!("listening at {address}: {error}");
    let listener = TcpListener::bind(address).await.map_err(failed)?;
    let at = listener.local_addr().map_err(failed)?;
    Ok((Door { listener, tls, speaks }, at))
}

async fn accept_at(
    door: &Door,
    places: &Arc<Semaphore>,
    serving: &Arc<Serving>,
    ended: &watch::Receiver<bool>,
) {
    loop {
        let Ok((stream, peer)) = door.listener.accept().await else {
            // Out of descriptors, mostly: those who are here may finish meanwhile.
            tokio::time::sleep(Duration::from_millis(10)).await;
            continue;
        };
        let metrics = &serving.gateway.metrics;
        let Ok(permit) = Arc::clone(places).try_acquire_owned() else {
            metrics.refused_connection();
            tokio::spawn(refuse(stream));
            continue;
        };
        let _ = stream.set_nodelay(true);
        let place = Place::new(permit, &serving.gateway);
        let (serving, ended) = (Arc::clone(serving), ended.clone());
        let (tls, speaks) = (door.tls.clone(), door.speaks);
        tokio::spawn(async move {
            let head_timeout = serving.head_timeout;
            match tls {
                None => {
                    // The end does not wait for a client that says nothing.
                    let mut over = ended.clone();
                    let begins = tokio::select! {
                        begins = begins_as_http2(&stream, head_timeout) => begins,
                        () = async { let _ = over.wait_for(|ended| *ended).await; } => None,
                    };
                    if let Some(is_http2) = begins {
                        let stream = Paced::new(stream, serving.write_timeout);
                        let from = Caller { peer, is_http2, lingers: stream.lingers(), place };
                        connection(stream, from, &serving, speaks, ended).await;
                    }
                }
                Some(tls) => {
                    let stream = Paced::new(stream, serving.write_timeout);
                    let greeted = tokio::time::timeout(head_timeout, tls.accept(stream));
                    if let Ok(Ok(stream)) = greeted.await {
                        let (under, session) = stream.get_ref();
                        let is_http2 = session.alpn_protocol() == Some(b"h2");
                        let from = Caller { peer, is_http2, lingers: under.lingers(), place };
                        connection(stream, from, &serving, speaks, ended).await;
                    }
                }
            }
        });
    }
}

async fn refuse(mut stream: TcpStream) {
    let _ = tokio::time::timeout(Duration::from_secs(1), stream.write_all(FULL)).await;
}

/// HTTP/2 with the bounds that HTTP/1.1 has.
fn http2(serving: &Serving) -> http2::Builder<TokioExecutor> {
    let mut builder = http2::Builder::new(TokioExecutor::new());
    builder
        .timer(TokioTimer::new())
        .keep_alive_interval(serving.head_timeout)
        .keep_alive_timeout(serving.head_timeout)
        .max_header_list_size(u32::try_from(HEAD_BYTES_MAX).expect("few"))
        .max_concurrent_streams(STREAMS_MAX);
    builder
}

/// Whether a client without TLS begins as HTTP/2 does; none if it does not begin in time.
async fn begins_as_http2(stream: &TcpStream, head_timeout: Duration) -> Option<bool> {
    let mut first = [0; 3];
    let peeked = tokio::time::timeout(head_timeout, stream.peek(&mut first)).await;
    // No method of HTTP/1.1 begins with these letters.
    peeked.ok()?.ok().filter(|count| *count > 0).map(|count| count == 3 && first == *b"PRI")
}

/// A client that breaks the protocol or goes away ends its connection and nothing else.
async fn connection<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(
    stream: S,
    Caller { peer, is_http2, lingers, place }: Caller,
    serving: &Arc<Serving>,
    speaks: Speaks,
    mut ended: watch::Receiver<bool>,
) {
    let io = TokioIo::new(stream);
    let ends = ended.clone();
    let is_ended = async move {
        let _ = ended.wait_for(|ended| *ended).await;
    };
    match speaks {
        Speaks::Rest => {
            if is_http2 {
                let service = service_fn(|request| {
                    let (serving, ends) = (Arc::clone(serving), ends.clone());
                    let place = Arc::clone(&place);
                    async move {
                        Ok::<_, Infallible>(respond(&serving, request, (peer, &place), &ends).await)
                    }
                });
                let work = http2(serving).serve_connection(io, service);
                let mut work = std::pin::pin!(work);
                tokio::select! { _ = work.as_mut() => return, () = is_ended => {} }
                work.as_mut().graceful_shutdown();
                let _ = work.await;
                return;
            }
            let (ends, place) = (&ends, &place);
            let service = service_fn(move |request| async move {
                Ok::<_, Infallible>(respond(serving, request, (peer, place), ends).await)
            });
            let work = http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(serving.head_timeout)
                // Without `pipeline_flush`, which would keep the answer to a head that is too large from going out.
                .max_buf_size(HEAD_BYTES_MAX)
                // Head and body of most answers are small: one copy and `send` cost less than `writev`.
                .writev(false)
                .serve_connection(io, service)
                .with_upgrades();
            let mut work = std::pin::pin!(work);
            tokio::select! {
                done = work.as_mut() => {
                    // A head that is too large or malformed was answered, and its client may still be sending it.
                    let is_refused = done.is_err_and(|error| error.is_parse());
                    return lingers.store(is_refused, Relaxed);
                }
                () = is_ended => {}
            }
            work.as_mut().graceful_shutdown();
            let _ = work.await;
        }
        #[cfg(feature = "grpc")]
        Speaks::Grpc => {
            let service = service_fn(|request| {
                let serving = Arc::clone(serving);
                async move { serving.calls.respond(request, peer, &serving).await }
            });
            let work = http2(serving).serve_connection(io, service);
            let mut work = std::pin::pin!(work);
            tokio::select! { _ = work.as_mut() => return, () = is_ended => {} }
            work.as_mut().graceful_shutdown();
            let _ = work.await;
        }
    }
}

/// Lets this process have as many descriptors as its connections need, as far as the host allows.
fn allow_descriptors(wanted: u64) {
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_none_or(|current| current >= wanted) {
        return;
    }
    let most = limit.maximum.unwrap_or(u64::MAX);
    // Above the host's bound only root may go.
    let raised = Rlimit { current: Some(wanted), maximum: Some(most.max(wanted)) };
    if setrlimit(Resource::Nofile, raised).is_err() {
        eprintln!("this host allows {most} descriptors; connections_max wants {wanted}");
        let _ = setrlimit(Resource::Nofile, Rlimit { current: Some(most), maximum: limit.maximum });
    }
}
