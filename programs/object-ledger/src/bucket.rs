//! A bucket as a service: the part of S3 that the crate `object_store` uses, over files.
//!
//! PUT is answered when the file is in place and durable; an object is never seen in part. Signatures are taken as they come:
//! it is a server for loopback and for networks of a trial's own, and protects nothing.

mod files;
mod listing;

use std::convert::Infallible;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

use crate::data::WHOLE_BYTES_MAX;
use crate::delay::Delay;
use crate::fault::{Fault, Kind};
use crate::pieces::Piece;
use files::{Files, Kept, Put};

/// An object has at most so many bytes.
const OBJECT_BYTES_MAX: usize = WHOLE_BYTES_MAX + (1 << 20);
/// Connections at once.
const CONNECTIONS_MAX: usize = 4_096;
/// A request's head may take so long.
const HEAD_MAX: Duration = Duration::from_secs(60);

/// What the service is told.
pub(crate) struct Options {
    pub(crate) data: PathBuf,
    pub(crate) delay: Delay,
    pub(crate) fault: Option<Fault>,
}

struct Serving {
    files: Arc<Files>,
    delay: Mutex<Delay>,
    fault: Option<Fault>,
    /// Names that were put in the second half of the count until a rollback.
    to_forget: Mutex<Vec<String>>,
    puts: AtomicU64,
    gets: AtomicU64,
    lists: AtomicU64,
    missing: AtomicU64,
    failed: AtomicU64,
}

/// Serves requests at one address and metrics at another, until `ends`.
pub(crate) async fn serve(
    options: Options,
    requests: TcpListener,
    metrics: TcpListener,
    ready: impl FnOnce(SocketAddr, SocketAddr) -> Result<(), String>,
    ends: impl Future<Output = ()>,
) -> Result<(), String> {
    let files = Files::open(&options.data)
        .map_err(|error| format!("the folder {}: {error}", options.data.display()))?;
    let serving = Arc::new(Serving {
        files: Arc::new(files),
        delay: Mutex::new(options.delay),
        fault: options.fault,
        to_forget: Mutex::default(),
        puts: AtomicU64::new(0),
        gets: AtomicU64::new(0),
        lists: AtomicU64::new(0),
        missing: AtomicU64::new(0),
        failed: AtomicU64::new(0),
    });
    let local = |it: &TcpListener| it.local_addr().map_err(|error| error.to_string());
    ready(local(&requests)?, local(&metrics)?)?;
    let told = Arc::clone(&serving);
    let says = crate::metrics_door::serve(metrics, move || told.metrics());
    tokio::select! {
        () = accept(requests, serving) => {}
        () = says => {}
        () = ends => {}
    }
    Ok(())
}

async fn accept(listener: TcpListener, serving: Arc<Serving>) {
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
        let Ok((stream, _)) = listener.accept().await else {
            // Out of descriptors: others have to end first.
            tokio::time::sleep(Duration::from_millis(20)).await;
            continue;
        };
        let _ = stream.set_nodelay(true);
        let serving = Arc::clone(&serving);
        tokio::spawn(async move {
            let answer = service_fn(|request| answer(&serving, request));
            let mut http = http1::Builder::new();
            http.timer(TokioTimer::new()).header_read_timeout(HEAD_MAX);
            // The asker is gone, and gets no answer.
            let _ = http.serve_connection(TokioIo::new(stream), answer).await;
            drop(place);
        });
    }
}

async fn answer(
    serving: &Serving,
    request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let delay = serving.delay.lock().unwrap_or_else(PoisonError::into_inner).draw();
    tokio::time::sleep(delay).await;
    Ok(serving.answer(request).await.unwrap_or_else(|error| {
        serving.failed.fetch_add(1, Relaxed);
        said(StatusCode::INTERNAL_SERVER_ERROR, "InternalError", &error)
    }))
}

impl Serving {
    async fn answer(&self, request: Request<Incoming>) -> Result<Response<Full<Bytes>>, String> {
        let path = request.uri().path().trim_start_matches('/').to_owned();
        let query = request.uri().query().unwrap_or_default().to_owned();
        let Some((bucket, key)) = path.split_once('/').or(Some((&path[..], ""))) else {
            unreachable!("there is always a bucket's name, if an empty one")
        };
        if !files::is_name(bucket) || !(key.is_empty() || key.split('/').all(files::is_name)) {
            let why =
                "names have letters, digits, `-`, `_`, `=` and `.`, and do not begin with a dot";
            return Ok(said(StatusCode::BAD_REQUEST, "InvalidURI", why));
        }
        let (files, path) = (Arc::clone(&self.files), path.clone());
        match (request.method().clone(), key.is_empty()) {
            (Method::GET, true) => {
                self.lists.fetch_add(1, Relaxed);
                let Some(asked) = listing::Asked::parse(&query) else {
                    return Ok(said(
                        StatusCode::BAD_REQUEST,
                        "InvalidArgument",
                        "the query is none",
                    ));
                };
                let bucket = bucket.to_owned();
                let listed = blocking(move || files.list(&bucket, &asked)).await?;
                let xml = ("content-type", "application/xml".to_owned());
                Ok(response(StatusCode::OK, &[xml], Bytes::from(listed)))
            }
            (Method::PUT, false) => {
                let count = self.puts.fetch_add(1, Relaxed) + 1;
                let is_new = request.headers().get("if-none-match").is_some_and(|it| it == "*");
                let body = Limited::new(request.into_body(), OBJECT_BYTES_MAX).collect().await;
                let Ok(body) = body else {
                    return Ok(said(
                        StatusCode::BAD_REQUEST,
                        "IncompleteBody",
                        "the object did not come whole, or is too large",
                    ));
                };
                let mut body = body.to_bytes();
                let e_tag = files::e_tag(&body);
                let done =
                    || Ok(response(StatusCode::OK, &[("etag", e_tag.clone())], Bytes::new()));
                if Fault::is_on(self.fault, Kind::Forgets, count) {
                    return done();
                }
                if Fault::is_on(self.fault, Kind::Lies, count) {
                    body = Piece::made_up(&body).into();
                }
                self.roll_back(count, &path).await?;
                match blocking(move || files.put(&path, &body, is_new)).await? {
                    Put::Done => done(),
                    Put::IsThere => Ok(said(
                        StatusCode::PRECONDITION_FAILED,
                        "PreconditionFailed",
                        "the object is there",
                    )),
                }
            }
            (method @ (Method::GET | Method::HEAD), false) => {
                self.gets.fetch_add(1, Relaxed);
                let Some(Kept { bytes, modified }) = blocking(move || files.get(&path)).await?
                else {
                    self.missing.fetch_add(1, Relaxed);
                    return Ok(said(StatusCode::NOT_FOUND, "NoSuchKey", "there is no such object"));
                };
                let heads = [
                    ("etag", files::e_tag(&bytes)),
                    ("last-modified", modified),
                    ("content-length", bytes.len().to_string()),
                ];
                let body = if method == Method::HEAD { Vec::new() } else { bytes };
                Ok(response(StatusCode::OK, &heads, body.into()))
            }
            _ => Ok(said(
                StatusCode::NOT_IMPLEMENTED,
                "NotImplemented",
                "this bucket has PUT, GET, HEAD and lists",
            )),
        }
    }

    /// Goes back, once, to what it had at half of the count, where that is its fault.
    async fn roll_back(&self, count: u64, path: &str) -> Result<(), String> {
        let Some(Fault { kind: Kind::RolledBack, after }) = self.fault else { return Ok(()) };
        let lost = {
            let mut to_forget = self.to_forget.lock().unwrap_or_else(PoisonError::into_inner);
            if count > after / 2 && count <= after {
                to_forget.push(path.to_owned());
            }
            if count > after { std::mem::take(&mut *to_forget) } else { Vec::new() }
        };
        let files = Arc::clone(&self.files);
        blocking(move || lost.iter().try_for_each(|name| files.forget(name))).await
    }

    fn metrics(&self) -> String {
        wire::metrics::text(&[
            (
                "ledger_puts_total",
                true,
                "Objects that were to be written.",
                self.puts.load(Relaxed),
            ),
            ("ledger_gets_total", true, "Objects that were asked for.", self.gets.load(Relaxed)),
            (
                "ledger_missing_total",
                true,
                "Objects that were asked for and not there.",
                self.missing.load(Relaxed),
            ),
            ("ledger_lists_total", true, "Lists that were asked for.", self.lists.load(Relaxed)),
            ("ledger_failed_total", true, "Requests that failed here.", self.failed.load(Relaxed)),
        ])
    }
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> std::io::Result<T> + Send + 'static,
) -> Result<T, String> {
    let worked = tokio::task::spawn_blocking(work).await.map_err(|error| error.to_string())?;
    worked.map_err(|error| error.to_string())
}

fn response(status: StatusCode, heads: &[(&str, String)], body: Bytes) -> Response<Full<Bytes>> {
    let mut response = Response::builder().status(status);
    for (name, value) in heads {
        response = response.header(*name, value);
    }
    response.body(Full::new(body)).expect("heads are made here, of digits and letters")
}

/// An error as S3 says it.
fn said(status: StatusCode, code: &str, why: &str) -> Response<Full<Bytes>> {
    let why = why.replace('&', "&amp;").replace('<', "&lt;");
    let xml = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Error><Code>{code}</Code><Message>{why}</Message></Error>"
    );
    response(status, &[("content-type", "application/xml".to_owned())], Bytes::from(xml))
}
