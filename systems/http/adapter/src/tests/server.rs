//! A small server for tests, plain or over TLS: it answers by path, one thread a connection, and ends with the
//! test. Some of its paths break the protocol on purpose.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use rustls::{ServerConfig, ServerConnection, StreamOwned};
use wire::http1::{Limits, parse_request, write_response};

/// The server; dropping it ends it.
pub(super) struct Server {
    pub(super) address: SocketAddr,
    ends: Arc<AtomicBool>,
}

impl Server {
    /// Listens on a free port of 127.0.0.1.
    pub(super) fn start(tls: Option<Arc<ServerConfig>>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let ends = Arc::new(AtomicBool::new(false));
        let seen = ends.clone();
        let asked = Arc::<AtomicU64>::default();
        std::thread::spawn(move || {
            for stream in listener.incoming().take_while(|_| !seen.load(Ordering::SeqCst)) {
                let (stream, tls, asked) = (stream.unwrap(), tls.clone(), asked.clone());
                stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
                std::thread::spawn(move || match tls {
                    None => serve(stream, &asked),
                    // As common servers do it.
                    Some(_) if !begins_tls(&stream) => serve_plain_on_tls(stream),
                    Some(config) => serve(
                        StreamOwned::new(ServerConnection::new(config).unwrap(), stream),
                        &asked,
                    ),
                });
            }
        });
        Self { address, ends }
    }

    pub(super) fn url(&self, scheme: &str, host: &str) -> String {
        format!("{scheme}://{host}:{}/", self.address.port())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::SeqCst);
        // Wakes the listener, so that it sees the end.
        drop(TcpStream::connect(self.address));
    }
}

/// Whether the client begins with a handshake.
fn begins_tls(stream: &TcpStream) -> bool {
    let mut first = [0];
    stream.peek(&mut first).is_ok_and(|count| count == 0) || first == [22]
}

fn serve_plain_on_tls(mut stream: TcpStream) {
    let mut out = Vec::new();
    let _ = stream.read(&mut [0; 4096]);
    write_response(&mut out, 400, &[], b"this is a port for TLS", false);
    let _ = stream.write_all(&out);
}

fn serve(mut stream: impl Read + Write, asked: &AtomicU64) {
    let (mut received, mut piece) = (Vec::new(), [0; 4096]);
    loop {
        match parse_request(&received, &Limits::SERVER) {
            Ok(Some(request)) => {
                let id = request.head.header("x-request-id").unwrap_or_default();
                let (answer, goes_on) = answer(request.head.path(), id, asked);
                received.drain(..request.used);
                if stream.write_all(&answer).and_then(|()| stream.flush()).is_err() || !goes_on {
                    return;
                }
            }
            Ok(None) => match stream.read(&mut piece) {
                Ok(count @ 1..) => received.extend_from_slice(&piece[..count]),
                _ => return,
            },
            Err(_) => return,
        }
    }
}

fn answer(path: &str, id: &[u8], asked: &AtomicU64) -> (Vec<u8>, bool) {
    let mut out = Vec::new();
    // The first request for a path that fails once is told from the second by its bit.
    let is_first = |bit: u64| asked.fetch_or(1 << bit, Ordering::SeqCst) >> bit & 1 == 0;
    match path {
        "/once-reset" if is_first(0) => return (Vec::new(), false),
        "/once-500" if is_first(1) => write_response(&mut out, 500, &[], b"", true),
        "/stray" => {
            write_response(&mut out, 200, &[], b"", true);
            out.extend_from_slice(b"stray");
        }
        "/echo" => write_response(&mut out, 200, &[("X-Request-Id", id)], b"", true),
        "/same" => write_response(&mut out, 200, &[("X-Request-Id", b"7")], b"", true),
        "/bad" => write_response(&mut out, 400, &[], b"no", true),
        "/missing" => write_response(&mut out, 404, &[], b"no", true),
        "/limited" => write_response(&mut out, 429, &[], b"", true),
        "/moved" => write_response(&mut out, 301, &[("Location", b"/elsewhere")], b"", true),
        "/last" => {
            write_response(&mut out, 200, &[], b"", false);
            return (out, false);
        }
        "/until-close" => return (b"HTTP/1.1 200 OK\r\n\r\nall".to_vec(), false),
        "/cut" => return (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nall".to_vec(), false),
        "/nothing" => return (Vec::new(), false),
        "/garbage" => return (b"hello\r\n\r\n".to_vec(), false),
        _ => write_response(&mut out, 200, &[], b"hello", true),
    }
    (out, true)
}
