//! One connection beside the load, for what comes before it: a session of an adapter is tried on it, or an adapter asks what it
//! has to know. It waits, within bounds, and must never carry a transaction of the load.

use std::io::{ErrorKind, Read as _, Write as _};
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
    Plain(TcpStream),
    Tls(Box<rustls::StreamOwned<rustls::ClientConnection, TcpStream>>),
}

/// The connection.
pub struct Line {
    stream: Stream,
    clock: Clock,
    until: Instant,
    stop: Arc<AtomicBool>,
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
        let socket = sut::asker::connect(address, wait).map_err(failed)?;
        socket.set_read_timeout(Some(LOOK_EVERY)).map_err(failed)?;
        let stream = match tls {
            None => Stream::Plain(socket),
            Some(tls) => {
                let client =
                    rustls::ClientConnection::new(tls.config.clone(), tls.server_name.clone())
                        .map_err(|error| format!("connecting to {address}: {error}"))?;
                Stream::Tls(Box::new(rustls::StreamOwned::new(client, socket)))
            }
        };
        let (until, stop) = (clock.now().plus(wait), Arc::clone(stop));
        Ok(Self { stream, clock, until, stop, unread: Vec::new() })
    }

    /// Waits for no longer than `wait` from now on.
    pub fn wait_for(&mut self, wait: Duration) {
        self.until = self.clock.now().plus(wait);
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
                    Err(error) if is_early(&error) && stream.conn.is_handshaking() => {
                        if self.clock.now() >= self.until || self.stop.load(Ordering::Relaxed) {
                            break Err(error);
                        }
                    }
                    sent => break sent,
                }
            },
        };
        bytes.clear();
        sent.map_err(|error| format!("the connection is lost: {error}"))
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
                Err(error) => return Err(format!("the connection is lost: {error}")),
            }
            if self.stop.load(Ordering::Relaxed) {
                return Err("stopped".to_owned());
            }
            if self.clock.now() >= self.until {
                return Err("no answer came in time".to_owned());
            }
        }
    }
}

fn is_early(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
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
