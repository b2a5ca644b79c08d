//! Something posted to a server beside the load, each time anew: metrics of a run. One connection, bounded in time and bytes;
//! nothing is posted twice, and no redirect is followed.

use std::net::{SocketAddr, ToSocketAddrs as _};
use std::time::Duration;

use clock::Clock;
use sut::Tls;
use sut::ask::Questioner;
use wire::http1::{Asked, Limits, write_request};

use crate::requests::USER_AGENT;
use crate::targets::check_header;
use crate::tls;
use crate::url::{self, Origin, Place};

/// The longest wait for the answer to a post.
const PATIENCE: Duration = Duration::from_secs(2);

/// The server that is posted to.
pub struct Receiver {
    origin: Origin,
    target: String,
    headers: Vec<(String, String)>,
    questioner: Questioner,
}

impl Receiver {
    /// Looks at a URL that is to be posted to, and at nothing else: no name is looked up.
    ///
    /// # Errors
    /// When it is none, in words.
    pub fn check(text: &str) -> Result<(), String> {
        place(text).map(drop)
    }

    /// The receiver at a URL, each post with these headers. Its name is looked up once; it need not be there yet.
    ///
    /// # Errors
    /// When it is no URL, its name leads nowhere, or a header cannot be sent; in words.
    pub fn new(text: &str, headers: Vec<(String, String)>, clock: Clock) -> Result<Self, String> {
        let (origin, target) = place(text)?;
        for (name, value) in &headers {
            check_header(name, value)?;
        }
        let mut addresses = (origin.host.as_str(), origin.port)
            .to_socket_addrs()
            .map_err(|error| format!("looking up `{}`: {error}", origin.host))?;
        let address: SocketAddr =
            addresses.next().ok_or_else(|| format!("`{}` has no address", origin.host))?;
        let trust = tls::Trust::default();
        let tls: Option<Tls> = match origin.is_tls {
            true => Some(tls::tls(&origin.host, trust)?),
            false => None,
        };
        let questioner = Questioner::new(address, tls, Limits::CLIENT, clock);
        Ok(Self { origin, target, headers, questioner })
    }

    /// Posts a body, and waits until it was taken.
    ///
    /// # Errors
    /// When it was not, in words.
    pub fn post(&mut self, media_type: &str, body: &[u8]) -> Result<(), String> {
        let host = self.origin.authority();
        let own =
            [("Host", host.as_str()), ("User-Agent", USER_AGENT), ("Content-Type", media_type)];
        let headers: Vec<(&str, &[u8])> = own
            .into_iter()
            .chain(self.headers.iter().map(|(name, value)| (name.as_str(), value.as_str())))
            .map(|(name, value)| (name, value.as_bytes()))
            .collect();
        let mut request = Vec::new();
        write_request(&mut request, "POST", &self.target, &headers, body);
        let answer = self.questioner.ask(&request, Asked::Other, PATIENCE);
        let answer = answer.map_err(|error| tls::explain(&error, &self.origin.host))?;
        match answer.response.status {
            200..=299 => Ok(()),
            status => Err(format!(
                "POST {}: {status} {}",
                self.target,
                sut::shown(answer.reason.as_bytes())
            )),
        }
    }
}

fn place(text: &str) -> Result<(Origin, String), String> {
    let Place { origin, target } = url::parse(text)?;
    let origin = origin.ok_or_else(|| {
        format!("`{text}` names no server; expected a URL such as http://127.0.0.1:4318")
    })?;
    Ok((origin, target))
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::TcpListener;

    use super::*;

    /// Claim: a post has its headers and its body, and an answer that refuses it is said with its status.
    #[test]
    fn what_is_posted() {
        for (answer, expected) in [
            ("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", Ok(())),
            (
                "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n",
                Err("POST /v1/metrics: 404 Not Found".to_owned()),
            ),
        ] {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let url = format!("http://{}/v1/metrics", listener.local_addr().unwrap());
            let headers = vec![("Api-Key".to_owned(), "k".to_owned())];
            let mut receiver = Receiver::new(&url, headers, Clock::start()).unwrap();
            let (said, request) = std::thread::scope(|scope| {
                let server = scope.spawn(|| {
                    let (mut stream, _) = listener.accept().unwrap();
                    let (mut request, mut piece) = (Vec::new(), [0; 1024]);
                    while !request.ends_with(b"body") {
                        let read = stream.read(&mut piece).unwrap();
                        assert!(read > 0, "the body comes whole");
                        request.extend_from_slice(&piece[..read]);
                    }
                    stream.write_all(answer.as_bytes()).unwrap();
                    String::from_utf8(request).unwrap()
                });
                (receiver.post("text/plain", b"body"), server.join().unwrap())
            });
            assert_eq!(said, expected);
            assert!(request.starts_with("POST /v1/metrics HTTP/1.1\r\nHost: 127.0.0.1:"));
            assert!(
                request.contains("Api-Key: k\r\n") && request.contains("Content-Length: 4\r\n")
            );
        }
        let wrong = |text: &str| Receiver::new(text, Vec::new(), Clock::start()).err().unwrap();
        assert!(wrong("/x").contains("names no server"));
        assert!(
            wrong("ftp://a/")
                .contains("expected a URL of http:// or https://, got one of `ftp://`")
        );
    }
}
