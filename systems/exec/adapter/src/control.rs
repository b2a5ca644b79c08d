//! The control channel: one question and its answer, in turn, beside the load. Every wait ends: at its deadline, when the
//! run is to stop, or when the program closes the channel.

use std::io::{ErrorKind, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use clock::Clock;
use serde_json::{Value, json};

use crate::line::{self, Answer};

/// How long one read waits, between two looks at what ends the waiting.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Our end of it.
#[derive(Debug)]
pub(crate) struct Control {
    socket: UnixStream,
    unread: Vec<u8>,
    clock: Clock,
}

impl Control {
    pub(crate) const fn new(socket: UnixStream, clock: Clock) -> Self {
        Self { socket, unread: Vec::new(), clock }
    }

    /// Asks `verb`, with what more is in the question.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(crate) fn ask(&mut self, verb: &str, mut more: Value) -> Result<(), String> {
        let mut question = json!({ "do": verb });
        if let (Some(question), Some(more)) = (question.as_object_mut(), more.as_object_mut()) {
            question.append(more);
        }
        let failed = |error: std::io::Error| format!("asking `{verb}`: {error}");
        // A program that reads nothing at all would hold us here.
        self.socket.set_write_timeout(Some(Duration::from_secs(5))).map_err(failed)?;
        match self.socket.write_all(format!("{question}\n").as_bytes()) {
            // What it said before it ended is still to be read, and says more.
            Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
            written => written.map_err(failed),
        }
    }

    /// The next line that answers `verb`.
    ///
    /// # Errors
    /// When there is none in time, it is not of the protocol, or the program says that it failed.
    pub(crate) fn answer(
        &mut self,
        verb: &str,
        within: Duration,
        stop: Option<&AtomicBool>,
    ) -> Result<Answer, String> {
        let said = |why: String| format!("answering `{verb}`: {why}");
        let closed = || said("it closed the control channel".to_owned());
        let deadline = self.clock.now().plus(within);
        let failed = |error: std::io::Error| said(error.to_string());
        self.socket.set_read_timeout(Some(LOOK_EVERY)).map_err(failed)?;
        let mut chunk = [0; 16 << 10];
        loop {
            if let Some((text, length)) = line::first(&self.unread).map_err(said)? {
                let answer: Answer = line::read(text).map_err(said)?;
                self.unread.drain(..length);
                if let Some(why) = answer.failed {
                    return Err(said(format!("it says that it failed: {}", sut::cut(&why))));
                }
                match &answer.did {
                    Some(did) if did != verb => {
                        return Err(said(format!("it answered `{}`", sut::cut(did))));
                    }
                    None if answer.entries.is_none() && answer.refused.is_none() => {
                        return Err(said("a line without `did`".to_owned()));
                    }
                    _ => return Ok(answer),
                }
            }
            if stop.is_some_and(|stop| stop.load(Ordering::Relaxed)) {
                return Err(said("stopped by request".to_owned()));
            }
            if self.clock.now() >= deadline {
                return Err(said(format!("no answer within {within:?}")));
            }
            match self.socket.read(&mut chunk) {
                Ok(0) => return Err(closed()),
                // It ended and had not read all that it was asked.
                Err(error) if error.kind() == ErrorKind::ConnectionReset => return Err(closed()),
                Ok(count) => self.unread.extend_from_slice(&chunk[..count]),
                Err(error)
                    if matches!(
                        error.kind(),
                        ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted
                    ) => {}
                Err(error) => return Err(failed(error)),
            }
        }
    }

    /// Asks, and gives the one line of answer.
    ///
    /// # Errors
    /// As [`Control::ask`] and [`Control::answer`].
    pub(crate) fn question(
        &mut self,
        verb: &str,
        more: Value,
        within: Duration,
        stop: Option<&AtomicBool>,
    ) -> Result<Answer, String> {
        self.ask(verb, more)?;
        self.answer(verb, within, stop)
    }
}
