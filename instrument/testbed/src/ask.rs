//! Questions to an HTTP/1.1 server beside the load: a node's metrics, how high it is, what its ledger holds, whether a
//! target would be taken. One [`Dialogue`] for all of them, over `wire`; a [`Questioner`] waits for its answers.
//!
//! Bounded in time (a deadline a question), in bytes ([`Limits`]) and in connections (one). It must never time a
//! transaction, look a name up, follow a redirect, or send a question twice: bytes that may have arrived are the
//! caller's to judge.

mod dialogue;
mod error;
mod fuzz;
mod stream;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use clock::Clock;
use rustix::event::{PollFd, Timespec, poll};
use wire::http1::{Asked, Limits, Response};

pub(crate) use dialogue::{Dialogue, Turn};
pub use error::AskError;
pub use fuzz::fuzz_ask;
pub use stream::Tls;

/// Asks one server, and waits.
pub struct Questioner {
    dialogue: Dialogue,
    clock: Clock,
    stop: Arc<AtomicBool>,
}

/// How often it is looked whether to stop, while an answer is waited for.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// A complete answer. What its status means is the caller's business.
#[derive(Clone, Copy, Debug)]
pub struct Answer<'a> {
    /// Status, size, and whether the connection stays.
    pub response: Response,
    /// The reason phrase, as sent.
    pub reason: &'a str,
    /// `Location`, if it is a redirect and has one: said, never followed.
    pub location: &'a str,
    /// As much of the body as [`Limits::body_kept_max`] keeps.
    pub body: &'a [u8],
    /// The value of the header that is [watched](Questioner::watching), if the answer has it once.
    pub watched: Option<&'a [u8]>,
    /// Its head, where heads are [kept](Questioner::keeping_heads); else nothing.
    pub head: &'a [u8],
}

impl Questioner {
    /// Nothing is opened before something is asked.
    #[must_use]
    pub fn new(address: SocketAddr, tls: Option<Tls>, limits: Limits, clock: Clock) -> Self {
        Self { dialogue: Dialogue::new(address, tls, limits), clock, stop: Arc::default() }
    }

    /// The same, which gives up soon after `stop` is set.
    #[must_use]
    pub fn stopped_by(self, stop: &Arc<AtomicBool>) -> Self {
        Self { stop: Arc::clone(stop), ..self }
    }

    /// The same, which keeps the value of one header of each answer.
    #[must_use]
    pub fn watching(mut self, name: &str) -> Self {
        self.dialogue.watch(name);
        self
    }

    /// The same, which keeps the head of each answer.
    #[must_use]
    pub fn keeping_heads(mut self) -> Self {
        self.dialogue.keep_heads();
        self
    }

    /// How many unsolicited bytes came after answers or between them. Counted from the last call on.
    pub fn stray_bytes(&mut self) -> usize {
        std::mem::take(&mut self.dialogue.stray_bytes)
    }

    /// Where it asks.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.dialogue.address()
    }

    /// Makes sure that there is a connection, shaken hands with, that the server has not closed.
    ///
    /// # Errors
    /// Refused, timed out, a bad certificate.
    pub fn connect(&mut self, wait: Duration) -> Result<(), AskError> {
        let turn = self.dialogue.open(self.clock.now().plus(wait));
        self.until_settled(turn, wait).map(|_| ())
    }

    /// Asks `request`, whole and as [`wire::http1::write_request`] writes it, on the connection that there is or on a
    /// new one, and waits for the answer; `wait` bounds all of it. After an error the connection is gone, and the next
    /// question opens another.
    ///
    /// # Errors
    /// When there is no connection, or no answer on it.
    pub fn ask(
        &mut self,
        request: &[u8],
        asked: Asked,
        wait: Duration,
    ) -> Result<Answer<'_>, AskError> {
        let turn = self.dialogue.begin(request, asked, self.clock.now().plus(wait));
        let response = self.until_settled(turn, wait)?;
        let response = response.expect("a question is settled by an answer or by an error");
        let Dialogue { reader, .. } = &self.dialogue;
        let (reason, location) = (reader.reason(), reader.location());
        let (body, watched, head) = (reader.body(), reader.watched(), reader.kept_head());
        Ok(Answer { response, reason, location, body, watched, head })
    }

    /// How the connection is encrypted: `TLS 1.3, TLS13_AES_256_GCM_SHA384`, or `plain`.
    #[must_use]
    pub fn transport(&self) -> String {
        self.dialogue.transport()
    }

    fn until_settled(
        &mut self,
        mut turn: Turn,
        wait: Duration,
    ) -> Result<Option<Response>, AskError> {
        loop {
            match turn {
                Turn::Answered(response) => return Ok(Some(response)),
                Turn::Open => return Ok(None),
                Turn::Failed(error) => return Err(error),
                Turn::Waiting => {}
            }
            let deadline = self.dialogue.deadline().unwrap_or(self.clock.now());
            let left = deadline.saturating_since(self.clock.now());
            if left.is_zero() {
                self.dialogue.give_up();
                return Err(AskError::TimedOut(wait));
            }
            if self.stop.load(Ordering::Relaxed) {
                self.dialogue.give_up();
                return Err(AskError::Stopped);
            }
            let left = left.min(LOOK_EVERY);
            let Some((stream, flags)) = self.dialogue.interest() else {
                return Err(AskError::ClosedEarly);
            };
            let timeout = Timespec {
                tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
                tv_nsec: left.subsec_nanos().into(),
            };
            // Interrupted by a signal, or too early: the next turn finds nothing and waits again.
            let _ = poll(&mut [PollFd::from_borrowed_fd(stream, flags)], Some(&timeout));
            turn = self.dialogue.ready();
        }
    }
}

#[cfg(test)]
mod tests;
