//! The HTTP client that the stores are given: connections that are kept and used again, with TLS where the address asks for it.
//!
//! Nothing is tried again here: that is the business of whoever knows what may be repeated.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use http::header::HOST;
use http::{HeaderValue, Uri};
use http_body_util::BodyExt as _;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use object_store::ClientOptions;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpRequestBody,
    HttpResponse, HttpResponseBody, HttpService,
};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

/// How long a connection may take to be there.
const CONNECT_MAX: Duration = Duration::from_secs(3);
/// How long an answer's head may take.
const ANSWER_MAX: Duration = Duration::from_secs(15);
/// Idle connections that are kept.
const IDLE_MAX: usize = 128;
/// An answer's body has at most so many bytes: the largest piece, which a full copy is, with its head. Lists are shorter.
const BODY_BYTES_MAX: usize = crate::data::WHOLE_BYTES_MAX + SMALL_BYTES;
/// So many bytes of a body are read whatever else is: those of a number and of a block are fewer.
const SMALL_BYTES: usize = 64 << 10;
/// Bodies of one store that are longer are read so many at a time: a store that lies holds up its own others alone, and fills
/// no more memory than these.
const LARGE_MAX: usize = 1;

/// Makes clients; each has connections of its own.
#[derive(Debug, Default)]
pub struct Connector;

impl HttpConnector for Connector {
    fn connect(&self, _: &ClientOptions) -> object_store::Result<HttpClient> {
        Ok(HttpClient::new(Client {
            idle: Mutex::new(Vec::new()),
            tls: Mutex::new(None),
            large: Semaphore::new(LARGE_MAX),
        }))
    }
}

/// A connection, and what it goes to.
type Idle = (String, SendRequest<HttpRequestBody>);

struct Client {
    idle: Mutex<Vec<Idle>>,
    /// Made when the first address asks for it.
    tls: Mutex<Option<TlsConnector>>,
    large: Semaphore,
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Client")
    }
}

fn failed(kind: HttpErrorKind, why: impl Into<String>) -> HttpError {
    HttpError::new(kind, std::io::Error::other(why.into()))
}

#[async_trait]
impl HttpService for Client {
    async fn call(&self, mut request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let uri = request.uri().clone();
        let place = place_of(&uri)?;
        let path = uri.path_and_query().map_or("/", |it| it.as_str());
        *request.uri_mut() =
            path.parse().map_err(|error| HttpError::new(HttpErrorKind::Unknown, error))?;
        if !request.headers().contains_key(HOST) {
            let host = uri.authority().map_or("", |it| it.as_str());
            let host = HeaderValue::from_str(host)
                .map_err(|error| HttpError::new(HttpErrorKind::Unknown, error))?;
            request.headers_mut().insert(HOST, host);
        }
        let answered = timeout(ANSWER_MAX, self.exchange(&uri, &place, request)).await;
        answered.unwrap_or_else(|_| Err(failed(HttpErrorKind::Timeout, "no answer in time")))
    }
}

impl Client {
    async fn exchange(
        &self,
        uri: &Uri,
        place: &str,
        mut request: HttpRequest,
    ) -> Result<HttpResponse, HttpError> {
        // A kept connection may have ended while it was idle. What was not sent on it is sent on another.
        while let Some(mut connection) = self.take_idle(place) {
            match connection.try_send_request(request).await {
                Ok(response) => return self.receive(place, connection, response).await,
                Err(mut error) => match error.take_message() {
                    Some(unsent) => request = unsent,
                    None => return Err(kind_of(error.into_error())),
                },
            }
        }
        let connecting = timeout(CONNECT_MAX, self.connect(uri)).await;
        let mut connection = connecting
            .unwrap_or_else(|_| Err(failed(HttpErrorKind::Connect, "no connection in time")))?;
        let response = connection.send_request(request).await.map_err(kind_of)?;
        self.receive(place, connection, response).await
    }

    fn take_idle(&self, place: &str) -> Option<SendRequest<HttpRequestBody>> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.retain(|(_, connection)| !connection.is_closed());
        let ready = idle.iter().rposition(|(to, it)| to == place && it.is_ready())?;
        Some(idle.swap_remove(ready).1)
    }

    /// The whole answer is read before its connection is kept: objects are bounded, and no other request waits behind it.
    async fn receive(
        &self,
        place: &str,
        connection: SendRequest<HttpRequestBody>,
        response: http::Response<hyper::body::Incoming>,
    ) -> Result<HttpResponse, HttpError> {
        let (parts, body) = response.into_parts();
        let body = self.whole(body).await?;
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < IDLE_MAX {
            idle.push((place.to_owned(), connection));
        }
        drop(idle);
        Ok(HttpResponse::from_parts(parts, HttpResponseBody::from(body)))
    }

    /// Reads a body to its end, or to where it is too long.
    async fn whole(&self, mut body: hyper::body::Incoming) -> Result<Vec<u8>, HttpError> {
        let (mut bytes, mut is_large) = (Vec::new(), None);
        while let Some(frame) = body.frame().await {
            let Ok(more) = frame.map_err(kind_of)?.into_data() else { continue };
            let length = bytes.len() + more.len();
            if length > BODY_BYTES_MAX {
                let why = format!("expected a body of at most {BODY_BYTES_MAX} bytes, got more");
                return Err(failed(HttpErrorKind::Decode, why));
            }
            if length > SMALL_BYTES && is_large.is_none() {
                let turn = self.large.acquire().await;
                is_large =
                    Some(turn.map_err(|error| HttpError::new(HttpErrorKind::Unknown, error))?);
            }
            bytes.extend_from_slice(&more);
        }
        Ok(bytes)
    }

    async fn connect(&self, uri: &Uri) -> Result<SendRequest<HttpRequestBody>, HttpError> {
        let is_tls = uri.scheme_str() == Some("https");
        let host = uri.host().unwrap_or_default().trim_matches(['[', ']']).to_owned();
        let port = uri.port_u16().unwrap_or(if is_tls { 443 } else { 80 });
        let connect = |error| HttpError::new(HttpErrorKind::Connect, error);
        let stream = TcpStream::connect((host.as_str(), port)).await.map_err(connect)?;
        stream.set_nodelay(true).map_err(connect)?;
        if is_tls {
            let name = rustls::pki_types::ServerName::try_from(host)
                .map_err(|error| HttpError::new(HttpErrorKind::Connect, error))?;
            let stream = self.tls()?.connect(name, stream).await.map_err(connect)?;
            return begin(TokioIo::new(stream)).await;
        }
        begin(TokioIo::new(stream)).await
    }

    fn tls(&self) -> Result<TlsConnector, HttpError> {
        let mut tls = self.tls.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(tls) = &*tls {
            return Ok(tls.clone());
        }
        let made = connector().map_err(|why| failed(HttpErrorKind::Unknown, why))?;
        Ok(tls.insert(made).clone())
    }
}

async fn begin<S>(stream: TokioIo<S>) -> Result<SendRequest<HttpRequestBody>, HttpError>
where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static,
{
    let (connection, drives) = handshake(stream).await.map_err(kind_of)?;
    // It ends when its connection does; what went wrong with it is told to who waits for an answer.
    tokio::spawn(async move { drives.await.ok() });
    Ok(connection)
}

fn place_of(uri: &Uri) -> Result<String, HttpError> {
    let (Some(scheme), Some(authority)) = (uri.scheme_str(), uri.authority()) else {
        return Err(failed(HttpErrorKind::Unknown, format!("{uri} is no whole address")));
    };
    Ok(format!("{scheme}://{authority}"))
}

fn kind_of(error: hyper::Error) -> HttpError {
    let kind = if error.is_timeout() {
        HttpErrorKind::Timeout
    } else if error.is_closed() || error.is_incomplete_message() || error.is_canceled() {
        HttpErrorKind::Request
    } else if error.is_parse() {
        HttpErrorKind::Decode
    } else {
        HttpErrorKind::Interrupted
    };
    HttpError::new(kind, error)
}

/// TLS that trusts what the host trusts.
fn connector() -> Result<TlsConnector, String> {
    let mut roots = rustls::RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if roots.is_empty() {
        return Err(
            "this host has no certificates that it trusts; install ca-certificates".to_owned()
        );
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| format!("TLS: {error}"))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(TlsConnector::from(Arc::new(config)))
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::TcpListener;

    use super::*;

    /// Claim (D10): a body that never ends is cut off at the bound, and its connection closed: no more is read of it.
    #[test]
    fn a_body_has_an_end() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let at = listener.local_addr().unwrap();
        let pours = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let _ = stream.read(&mut [0; 4096]).unwrap();
            stream.write_all(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n").unwrap();
            let chunk = [b"10000\r\n".to_vec(), vec![b'x'; 1 << 16], b"\r\n".to_vec()].concat();
            let mut poured = 0;
            while stream.write_all(&chunk).is_ok() {
                poured += chunk.len();
                assert!(poured < 4 * BODY_BYTES_MAX, "it reads on and on");
            }
            poured
        });
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let client = Connector.connect(&ClientOptions::default()).unwrap();
        let request = http::Request::get(format!("http://{at}/endless"));
        let request = request.body(HttpRequestBody::empty()).unwrap();
        let error = runtime.block_on(client.execute(request)).unwrap_err();
        assert!(error.to_string().contains("got more"), "{error}");
        drop((client, runtime));
        assert!(pours.join().unwrap() > BODY_BYTES_MAX / 2, "all that is allowed was read");
    }
}
