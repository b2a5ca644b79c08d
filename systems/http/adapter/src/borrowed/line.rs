//! One connection beside the load, for what comes before it: a session of an adapter is tried on it, or an adapter asks what it
//! has to know. It waits, within bounds, and must never carry a transaction of the load.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use clock::{Clock, Instant};
use model::Outcome;
use sut::{Mark, Marks, Session, Tls, Transaction};

/// How often it is looked whether to stop.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// Bytes taken at once, and the most that are held unread.
const PIECE_BYTES: usize = 16 << 10;
const UNREAD_BYTES_MAX: usize = 64 << 20;

enum Stream {
    Plain(Socket),
    Tls(Box<rustls::StreamOwned<rustls::ClientConnection, Socket>>),
}

/// A socket that looks whether to go on before it reads or writes, within TLS too: a server that always has something to say
/// never lets a reading time out.
struct Socket {
    stream: TcpStream,
    clock: Clock,
    until: Instant,
    stop: Arc<AtomicBool>,
}

impl Socket {
    fn look(&self) -> std::io::Result<()> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(std::io::Error::other("stopped"));
        }
        if self.clock.now() >= self.until {
            return Err(std::io::Error::other("no answer came in time"));
        }
        Ok(())
    }
}

impl Read for Socket {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        self.look()?;
        self.stream.read(into)
    }
}

impl Write for Socket {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.look()?;
        self.stream.write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.stream.flush()
    }
}

/// The connection.
pub struct Line {
    stream: Stream,
    /// Bytes that have arrived and were not used.
    pub unread: Vec<u8>,
}

impl Line {
    /// Connects, and waits for no longer than `wait`, now and for everything that follows.
    ///
    /// # Errors
    /// Why there is no connection, in words.
    pub fn connect(
        address: SocketAddr,
        tls: Option<&Tls>,
        clock: Clock,
        wait: Duration,
        stop: &Arc<AtomicBool>,
    ) -> Result<Self, String> {
        let failed = |error: std::io::Error| format!("connecting to {address}: {error}");
        let stream = sut::asker::connect(address, wait).map_err(failed)?;
        stream.set_read_timeout(Some(LOOK_EVERY)).map_err(failed)?;
        let (until, stop) = (clock.now().plus(wait), Arc::clone(stop));
        let socket = Socket { stream, clock, until, stop };
        let stream = match tls {
            None => Stream::Plain(socket),
            Some(tls) => {
                let client =
                    rustls::ClientConnection::new(tls.config.clone(), tls.server_name.clone())
                        .map_err(|error| format!("connecting to {address}: {error}"))?;
                Stream::Tls(Box::new(rustls::StreamOwned::new(client, socket)))
            }
        };
        Ok(Self { stream, unread: Vec::new() })
    }

    /// Waits for no longer than `wait` from now on.
    pub fn wait_for(&mut self, wait: Duration) {
        let socket = match &mut self.stream {
            Stream::Plain(socket) => socket,
            Stream::Tls(stream) => &mut stream.sock,
        };
        socket.until = socket.clock.now().plus(wait);
    }

    /// Sends everything, and empties the buffer.
    ///
    /// # Errors
    /// When the connection is lost, in words.
    pub fn send(&mut self, bytes: &mut Vec<u8>) -> Result<(), String> {
        let sent = match &mut self.stream {
            Stream::Plain(stream) => stream.write_all(bytes),
            Stream::Tls(stream) => loop {
                match stream.write_all(bytes).and_then(|()| stream.flush()) {
                    // The handshake waits for the server.
                    Err(error) if is_early(&error) && stream.conn.is_handshaking() => {}
                    sent => break sent,
                }
            },
        };
        bytes.clear();
        sent.map_err(|error| lost(&error))
    }

    /// Waits until more has arrived.
    ///
    /// # Errors
    /// When the server closes the connection, or nothing comes in time.
    pub fn receive(&mut self) -> Result<(), String> {
        let mut piece = [0; PIECE_BYTES];
        loop {
            let read = match &mut self.stream {
                Stream::Plain(stream) => stream.read(&mut piece),
                Stream::Tls(stream) => stream.read(&mut piece),
            };
            match read {
                Ok(0) => return Err("the server closed the connection".to_owned()),
                Ok(read) if self.unread.len() + read > UNREAD_BYTES_MAX => {
                    return Err(format!("more than {UNREAD_BYTES_MAX} bytes came at once"));
                }
                Ok(read) => {
                    self.unread.extend_from_slice(&piece[..read]);
                    return Ok(());
                }
                Err(error) if is_early(&error) => {}
                Err(error) => return Err(lost(&error)),
            }
        }
    }
}

fn is_early(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
}

/// The end of a connection, in words: the socket's own for one that this client gives up.
fn lost(error: &std::io::Error) -> String {
    match error.kind() {
        ErrorKind::Other => error.to_string(),
        _ => format!("the connection is lost: {error}"),
    }
}

/// How a transaction that was tried ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tried {
    /// As a transaction of the load would have.
    pub outcome: Outcome,
    /// The system's code.
    pub code: u16,
    /// The error, in words; empty where there is none.
    pub text: String,
}

/// Tries one transaction on a new session, as the load will send it. `last` is the ladder's last stage.
///
/// # Errors
/// When there is no answer, in words.
pub fn try_one(
    session: &mut dyn Session,
    tx: &Transaction<'_>,
    last: u8,
    line: &mut Line,
) -> Result<Tried, String> {
    let (mut out, mut marks) = (Vec::new(), Marks::default());
    session.open(&mut out);
    let mut is_submitted = false;
    loop {
        if !is_submitted && session.is_ready() {
            session.submit(tx, &mut out);
            session.gathered(&mut out);
            is_submitted = true;
        }
        if !out.is_empty() {
            line.send(&mut out)?;
        }
        let received = line.receive();
        if let Err(why) = received {
            session.closed(&mut marks);
            return ended(&marks, tx.id, last).ok_or(why);
        }
        let used = session.receive(&line.unread, &mut out, &mut marks);
        if let Some(tried) = ended(&marks, tx.id, last) {
            return Ok(tried);
        }
        let used = used.map_err(|error| error.to_string())?;
        if marks.wants_close() {
            return Err("the server ends the connection without an answer".to_owned());
        }
        line.unread.drain(..used);
        marks.clear();
    }
}

fn ended(marks: &Marks, of: model::TxId, last: u8) -> Option<Tried> {
    marks.list().iter().find_map(|mark| match mark {
        Mark::Reached { tx, stage, code, .. } if *tx == of && *stage == last => {
            Some(Tried { outcome: Outcome::Committed, code: *code, text: String::new() })
        }
        Mark::Ended { tx, answer } if *tx == of => {
            let text = marks.text(answer).to_owned();
            Some(Tried { outcome: answer.outcome, code: answer.code, text })
        }
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use clock::WallTime;

    use super::*;
    use crate::tls::{Trust, tls};

    const WAIT: Duration = Duration::from_secs(10);
    /// Times that the server says something, and the one at which the wait is over.
    const SAYINGS: u32 = 400;
    const OVER_AT: u32 = 5;

    /// The end of a line to a server that greets, and then says `word` again and again without ever answering; at `over_at` the
    /// time is over, or where `is_stopped` the line is stopped.
    fn end(tls: Option<&Tls>, greeting: &[u8], word: &[u8], is_stopped: bool) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (clock, mut hand) = Clock::by_hand(Instant::ZERO, WallTime::from_unix_ns(0));
        let stop = Arc::new(AtomicBool::new(false));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let (mut stream, _) = listener.accept().unwrap();
                stream.write_all(greeting).unwrap();
                for saying in 0..SAYINGS {
                    if saying == OVER_AT && is_stopped {
                        stop.store(true, Ordering::Relaxed);
                    } else if saying == OVER_AT {
                        hand.move_to(Instant::ZERO.plus(WAIT));
                    }
                    std::thread::sleep(Duration::from_millis(20));
                    if stream.write_all(word).is_err() {
                        break;
                    }
                }
            });
            let mut line = Line::connect(address, tls, clock, WAIT, &stop).unwrap();
            let mut last = line.send(&mut b"hello".to_vec());
            while last.is_ok() {
                line.unread.clear();
                last = line.receive();
            }
            last.unwrap_err()
        })
    }

    /// Claim: a server that says something all the time and never answers is left when the time is over or the run is stopped,
    /// in the middle of its TLS handshake too.
    #[test]
    fn a_server_that_never_falls_silent() {
        let tls = tls("localhost", Trust { is_insecure: true, ..Trust::default() }).unwrap();
        let ping = &b"\x89\x00"[..];
        for (is_stopped, why) in [(false, "no answer came in time"), (true, "stopped")] {
            assert_eq!(end(None, b"", ping, is_stopped), why);
            // The beginning of a record of 16 KiB, which then comes byte by byte.
            assert_eq!(end(Some(&tls), b"\x16\x03\x03\x40\x00", b"\x02", is_stopped), why);
        }
    }
}
