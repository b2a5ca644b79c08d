//! A client of NATS: one thread a connection, which reads, writes, answers PING and connects again when the server is gone.
//! A message that is published while there is no server is lost, as in NATS itself; those who need more ask and answer.
//!
//! It never waits for a message's effect, and it never shows a credential.

mod connection;

use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use clock::{Clock, Instant};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};

use crate::AgentsError;
pub use connection::Credentials;
use connection::{Connection, Place};

/// The port of NATS.
const PORT: u16 = 4222;
/// Messages that wait to be sent or to be taken.
const QUEUE_MAX: usize = 1_024;
/// Between two attempts to reach a server that is gone.
pub(crate) const AGAIN_AFTER: Duration = Duration::from_millis(200);
/// A server that says nothing for so long is asked, and is gone when it has said nothing for twice as long.
const QUIET_MAX: Duration = Duration::from_secs(10);
/// The longest sleep of the thread.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// A server of NATS and how to speak to it.
#[derive(Clone)]
pub struct Server {
    place: Place,
    credentials: Credentials,
}

impl Server {
    /// Reads `nats://HOST[:PORT]` or `tls://HOST[:PORT]`; `ca` is a file of certificates to trust instead of the host's.
    ///
    /// # Errors
    /// When it is no such URL, holds credentials, or the certificates cannot be read.
    pub fn new(
        url: &str,
        ca: Option<&Path>,
        credentials: Credentials,
    ) -> Result<Self, AgentsError> {
        let wrong =
            |why: &str| AgentsError::Nats { server: Place::shown(url), why: why.to_owned() };
        let (scheme, rest) = url.split_once("://").unwrap_or(("nats", url));
        let is_encrypted = match scheme {
            "nats" => false,
            "tls" => true,
            _ => return Err(wrong("expected nats://HOST:PORT or tls://HOST:PORT")),
        };
        if rest.contains('@') {
            return Err(wrong(
                "expected no credentials in the URL, where the list of processes shows them; put them into NATS_USER and \
                 NATS_PASSWORD, or NATS_TOKEN",
            ));
        }
        if ca.is_some() && !is_encrypted {
            return Err(wrong("expected tls:// with --nats-ca, got nats://"));
        }
        let rest = rest.trim_end_matches('/');
        let (host, port) = match rest.rsplit_once(':') {
            Some((host, port)) if !rest.ends_with(']') => {
                let port = port.parse().map_err(|_| wrong("expected a port after the last `:`"))?;
                (host, port)
            }
            _ => (rest, PORT),
        };
        if host.is_empty() {
            return Err(wrong("expected nats://HOST:PORT or tls://HOST:PORT"));
        }
        let place = Place::new(host, port, is_encrypted, ca)?;
        Ok(Self { place, credentials })
    }
}

/// A message as it came.
#[derive(Debug)]
pub struct Delivered {
    /// Its content.
    pub payload: Vec<u8>,
    /// When it was read.
    pub at: Instant,
}

/// A connection that stays.
pub struct Nats {
    publisher: Publisher,
    messages: Receiver<Delivered>,
    thread: Option<JoinHandle<()>>,
}

/// The sending side of a connection.
#[derive(Clone)]
pub struct Publisher {
    out: SyncSender<Vec<u8>>,
    shared: Arc<Shared>,
}

struct Shared {
    bell: OwnedFd,
    is_up: AtomicBool,
    is_over: AtomicBool,
}

impl Nats {
    /// Connects and subscribes.
    ///
    /// # Errors
    /// When the server cannot be reached, its certificate does not hold, or it refuses the client.
    pub fn connect(server: Server, subjects: &[String], clock: Clock) -> Result<Self, AgentsError> {
        let connection = Connection::open(&server.place, &server.credentials, subjects, clock)?;
        let failed = |error: std::io::Error| AgentsError::Nats {
            server: server.place.to_string(),
            why: format!("starting its thread: {error}"),
        };
        let bell = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK);
        let bell = bell.map_err(|error| failed(error.into()))?;
        let (out, outgoing) = sync_channel(QUEUE_MAX);
        let (to, messages) = sync_channel(QUEUE_MAX);
        let (is_up, is_over) = (AtomicBool::new(true), AtomicBool::new(false));
        let shared = Arc::new(Shared { bell, is_up, is_over });
        let (subjects, of) = (subjects.to_vec(), Arc::clone(&shared));
        let keeper = Keeper { server: server.clone(), subjects, shared: of, outgoing, to, clock };
        let thread = std::thread::Builder::new().name("nats".to_owned());
        let thread = thread.spawn(move || keeper.run(connection)).map_err(failed)?;
        Ok(Self { publisher: Publisher { out, shared }, messages, thread: Some(thread) })
    }

    /// The sending side.
    #[must_use]
    pub fn publisher(&self) -> Publisher {
        self.publisher.clone()
    }

    /// The next message, if one comes in time.
    #[must_use]
    pub fn next(&self, within: Duration) -> Option<Delivered> {
        match self.messages.recv_timeout(within) {
            Ok(message) => Some(message),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => {
                // The thread is gone; whoever waits in a loop must not spin.
                std::thread::sleep(within);
                None
            }
        }
    }

    /// Whether the server is there.
    #[must_use]
    pub fn is_up(&self) -> bool {
        self.publisher.shared.is_up.load(SeqCst)
    }
}

impl Drop for Nats {
    fn drop(&mut self) {
        self.publisher.shared.is_over.store(true, SeqCst);
        self.publisher.shared.ring();
        // A thread that waits for room among the messages must find that its reader has gone.
        let (_, none) = sync_channel(1);
        drop(std::mem::replace(&mut self.messages, none));
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Publisher {
    /// Sends a message, unless there is no server or no room.
    pub fn publish(&self, subject: &str, payload: &[u8]) {
        if !self.shared.is_up.load(SeqCst) {
            return;
        }
        let mut bytes = format!("PUB {subject} {}\r\n", payload.len()).into_bytes();
        bytes.extend_from_slice(payload);
        bytes.extend_from_slice(b"\r\n");
        let _ = self.out.try_send(bytes);
        self.shared.ring();
    }
}

impl Shared {
    fn ring(&self) {
        let _ = rustix::io::write(&self.bell, &1_u64.to_ne_bytes());
    }
}

/// The thread of a connection.
struct Keeper {
    server: Server,
    subjects: Vec<String>,
    shared: Arc<Shared>,
    outgoing: Receiver<Vec<u8>>,
    to: SyncSender<Delivered>,
    clock: Clock,
}

impl Keeper {
    fn run(self, mut connection: Connection) {
        loop {
            let _ended = self.keep(&mut connection);
            self.shared.is_up.store(false, SeqCst);
            loop {
                if self.shared.is_over.load(SeqCst) {
                    return;
                }
                // Waiting messages were for the connection that is gone.
                while self.outgoing.try_recv().is_ok() {}
                std::thread::sleep(AGAIN_AFTER);
                let (place, credentials) = (&self.server.place, &self.server.credentials);
                let again = Connection::open(place, credentials, &self.subjects, self.clock);
                if let Ok(again) = again {
                    connection = again;
                    break;
                }
            }
            self.shared.is_up.store(true, SeqCst);
        }
    }

    /// Reads and writes until the connection ends.
    fn keep(&self, connection: &mut Connection) -> std::io::Result<()> {
        let mut heard = self.clock.now();
        let mut has_asked = false;
        loop {
            while let Ok(bytes) = self.outgoing.try_recv() {
                connection.write(&bytes)?;
            }
            if self.shared.is_over.load(SeqCst) {
                return Ok(());
            }
            let mut waits = [
                PollFd::new(connection.socket(), PollFlags::IN),
                PollFd::new(&self.shared.bell, PollFlags::IN),
            ];
            let sleep = Timespec::try_from(LOOK_EVERY).expect("a fifth of a second");
            match poll(&mut waits, Some(&sleep)) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            let is_readable = !waits[0].revents().is_empty();
            if !waits[1].revents().is_empty() {
                let mut count = [0; 8];
                let _ = rustix::io::read(&self.shared.bell, &mut count);
            }
            let now = self.clock.now();
            if is_readable {
                connection.read()?;
                (heard, has_asked) = (now, false);
                for payload in connection.take_messages()? {
                    if self.to.send(Delivered { payload, at: now }).is_err() {
                        return Ok(());
                    }
                }
            }
            let quiet = now.saturating_since(heard);
            if quiet > QUIET_MAX * 2 {
                return Err(std::io::ErrorKind::TimedOut.into());
            }
            if quiet > QUIET_MAX && !has_asked {
                has_asked = true;
                connection.write(b"PING\r\n")?;
            }
        }
    }
}
