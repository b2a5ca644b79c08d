//! A description that a server gives of itself: asked for once, before there is any load. It follows no redirect, and what
//! it reads is bounded in bytes and time.

use std::net::ToSocketAddrs as _;
use std::time::Duration;

use clock::Clock;
use sut::ask::Questioner;
use wire::http1::{Asked, Limits, write_request};

use crate::tls;
use crate::url::{self, Place};

/// The longest description: those of large APIs have some megabytes.
const BYTES_MAX: usize = 64 << 20;

/// The longest wait for it.
const PATIENCE: Duration = Duration::from_secs(30);

const LIMITS: Limits = Limits::keeping(BYTES_MAX);

/// What is at a URL, and the server that it came from: what a description calls relative is relative to that.
///
/// # Errors
/// Why there is nothing, and what to do, in words.
pub fn fetch(text: &str, clock: Clock) -> Result<(Vec<u8>, String), String> {
    let Place { origin, target } = url::parse(text)?;
    let origin = origin.ok_or_else(|| format!("`{text}` names no server"))?;
    let mut addresses = (origin.host.as_str(), origin.port)
        .to_socket_addrs()
        .map_err(|error| format!("looking up `{}`: {error}", origin.host))?;
    let address = addresses.next().ok_or_else(|| format!("`{}` has no address", origin.host))?;
    let tls =
        if origin.is_tls { Some(tls::tls(&origin.host, tls::Trust::default())?) } else { None };
    let mut questioner = Questioner::new(address, tls, LIMITS, clock);
    let mut request = Vec::new();
    let host = origin.authority();
    let headers: [(&str, &[u8]); 2] =
        [("Host", host.as_bytes()), ("Accept", b"application/json, application/yaml, */*")];
    write_request(&mut request, "GET", &target, &headers, b"");
    let answer = questioner
        .ask(&request, Asked::Other, PATIENCE)
        .map_err(|error| format!("asking {text}: {}", tls::explain(&error, &origin.host)))?;
    match answer.response.status {
        200..=299 => Ok((answer.body.to_vec(), origin.to_string())),
        300..=399 if !answer.location.is_empty() => Err(format!(
            "{text} is elsewhere ({}); give that URL: {}",
            answer.response.status,
            sut::shown(answer.location.as_bytes())
        )),
        status => Err(format!(
            "asking {text}: {status} {}; give the URL of its OpenAPI description, such as http://host/openapi.json",
            sut::shown(answer.reason.as_bytes())
        )),
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::TcpListener;

    use super::*;

    /// Asks a server that answers this.
    fn asked(answer: &'static str) -> Result<(Vec<u8>, String), String> {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let (mut stream, _) = listener.accept().unwrap();
                let mut request = [0; 1024];
                let read = stream.read(&mut request).unwrap();
                assert!(request[..read].starts_with(b"GET /v3/api HTTP/1.1\r\n"));
                stream.write_all(answer.as_bytes()).unwrap();
            });
            fetch(&format!("http://{address}/v3/api"), Clock::start())
        })
    }

    /// Claim: what a server says is given with where it came from; a redirect, an error and silence are said, with what to
    /// do.
    #[test]
    fn what_a_server_says() {
        let (bytes, origin) = asked("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}").unwrap();
        assert!(bytes == b"{}" && origin.starts_with("http://127.0.0.1:"), "{origin}");
        let moved = asked("HTTP/1.1 301 Moved\r\nLocation: /new\r\nContent-Length: 0\r\n\r\n");
        assert!(moved.unwrap_err().contains("give that URL: /new"));
        let absent = asked("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n").unwrap_err();
        assert!(absent.contains("404 Not Found; give the URL"), "{absent}");
        assert!(asked("").unwrap_err().contains("asking http://"));
    }
}
