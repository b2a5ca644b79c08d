//! Small answers over HTTP/1.1 on a listener of our own: what `--metrics` and `assay watch --web` serve. A request is bounded in
//! bytes and in time, its body is not read, and each connection carries one. It knows no path and no content.

use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

/// A reader that takes longer than this is left.
const PATIENCE: Duration = Duration::from_secs(2);
/// The longest request that is read.
const REQUEST_BYTES_MAX: usize = 8 << 10;
/// The pieces in which it may come, of 1 KiB at most.
const PIECES_MAX: usize = 32;
/// The pause after a connection could not be accepted.
const PAUSE: Duration = Duration::from_millis(20);

/// A request, as far as it matters here.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Asked {
    /// `GET`.
    pub method: String,
    /// The target before the query.
    pub path: String,
    /// The target after `?`; empty: there is nothing.
    pub query: String,
    /// The field `Host`; empty: there is none.
    pub host: String,
}

/// An answer whose length is known.
pub struct Answer<'a> {
    /// `200 OK`.
    pub status: &'a str,
    /// Its media type.
    pub kind: &'a str,
    /// More fields, each with its line end.
    pub fields: &'a str,
    /// Its content.
    pub body: &'a str,
}

/// Listens at an address, and hands on what connects until the process ends. Gives the address, whose port is a free one where
/// 0 was asked for.
///
/// # Errors
/// When it cannot be listened at, with the option that asks for it.
pub fn listen(
    option: &str,
    address: SocketAddr,
    mut work: impl FnMut(TcpStream) + Send + 'static,
) -> Result<SocketAddr, String> {
    let failed = |error| {
        format!("{option} {address}: {error}; is another run there? port 0 takes a free one")
    };
    let listener = TcpListener::bind(address).map_err(failed)?;
    let bound = listener.local_addr().map_err(failed)?;
    let accept = move || {
        loop {
            match listener.accept() {
                Ok((stream, _)) => {
                    let bounded = stream.set_read_timeout(Some(PATIENCE));
                    if bounded.and_then(|()| stream.set_write_timeout(Some(PATIENCE))).is_ok() {
                        work(stream);
                    }
                }
                // Out of descriptors: others have to end first.
                Err(_) => std::thread::sleep(PAUSE),
            }
        }
    };
    let thread = std::thread::Builder::new().name(option.trim_start_matches('-').to_owned());
    thread.spawn(accept).map_err(|error| format!("{option} {address}: {error}"))?;
    Ok(bound)
}

/// Reads a request; `None`: none came, or one that is too long or in too many pieces.
///
/// # Errors
/// When the connection fails or nothing comes in time.
pub fn asked(stream: &mut TcpStream) -> io::Result<Option<Asked>> {
    let (mut request, mut piece) = (Vec::new(), [0; 1024]);
    for _ in 0..PIECES_MAX {
        let count = stream.read(&mut piece)?;
        if count == 0 || request.len() + count > REQUEST_BYTES_MAX {
            break;
        }
        request.extend_from_slice(&piece[..count]);
        if request.windows(4).any(|four| four == b"\r\n\r\n") {
            return Ok(Some(read(&String::from_utf8_lossy(&request))));
        }
    }
    Ok(None)
}

fn read(request: &str) -> Asked {
    let mut lines = request.split("\r\n");
    let mut words = lines.next().unwrap_or_default().split(' ');
    let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let fields = lines.filter_map(|line| line.split_once(':'));
    let host = fields.into_iter().find(|(name, _)| name.eq_ignore_ascii_case("host"));
    Asked {
        method: method.to_owned(),
        path: path.to_owned(),
        query: query.to_owned(),
        host: host.map(|(_, value)| value.trim().to_owned()).unwrap_or_default(),
    }
}

/// Answers; to a request of the method HEAD without the content.
///
/// # Errors
/// When the connection fails or the reader is too slow.
pub fn answer(stream: &mut TcpStream, to: &Asked, answer: &Answer<'_>) -> io::Result<()> {
    let Answer { status, kind, fields, body } = answer;
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n{fields}Connection: close\r\n\r\n"
    );
    stream.write_all(head.as_bytes())?;
    if to.method == "HEAD" { Ok(()) } else { stream.write_all(body.as_bytes()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Claim: who sends a request byte after byte is left long before its bytes are too many, and a whole one that comes in
    /// a few pieces is read.
    #[test]
    fn a_request_in_pieces() {
        let (told, asks) = std::sync::mpsc::channel();
        let work = move |mut stream: TcpStream| told.send(asked(&mut stream).ok()).expect("heard");
        let address = listen("--test", ([127, 0, 0, 1], 0).into(), work).expect("a free port");
        let mut slow = TcpStream::connect(address).expect("it listens");
        let mut sent = 0;
        let answer = loop {
            let _ = slow.write_all(b"x");
            sent += 1;
            if let Ok(answer) = asks.recv_timeout(Duration::from_millis(2)) {
                break answer;
            }
        };
        assert!(answer == Some(None) && sent < REQUEST_BYTES_MAX / 2, "{sent}: {answer:?}");
        let mut quick = TcpStream::connect(address).expect("it listens");
        for piece in ["GET /a HT", "TP/1.1\r\nHost: h\r\n", "\r\n"] {
            quick.write_all(piece.as_bytes()).expect("it reads");
        }
        let asked = asks.recv().expect("an answer").flatten().expect("a request");
        assert_eq!((asked.path.as_str(), asked.host.as_str()), ("/a", "h"));
    }

    /// Claim: method, path, query and host are what the request says, and empty where it says nothing.
    #[test]
    fn requests() {
        let asked = |method: &str, path: &str, query: &str, host: &str| Asked {
            method: method.to_owned(),
            path: path.to_owned(),
            query: query.to_owned(),
            host: host.to_owned(),
        };
        for (request, expected) in [
            (
                "GET /a?b=c HTTP/1.1\r\nX: y\r\nhOST:  h:1 \r\n\r\n",
                asked("GET", "/a", "b=c", "h:1"),
            ),
            ("GET / HTTP/1.1\r\n\r\n", asked("GET", "/", "", "")),
            ("\r\n\r\n", Asked::default()),
        ] {
            assert_eq!(read(request), expected);
        }
    }
}
