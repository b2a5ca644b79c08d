//! The timestamp service as a value: it signs that a link existed at a time. It keeps nothing.

use std::time::Duration;

use clock::Instant;
use process::{Input, Node, Outputs};

use crate::data::Hash;
use crate::keys::Key;
use crate::protocol::{Frame, Refused, kind, write_frame, write_refused};
use crate::service::{Answering, Asked, Doors, Later};

/// Answers that may wait for their time; what comes beyond is refused.
const WAITING_MAX: usize = 65_536;

/// A timestamp service.
#[derive(Debug)]
pub struct Timestamp {
    key: Key,
    /// The wall time of the origin of the shell's clock, nanoseconds after the Unix epoch.
    origin_unix_ns: i64,
    delay: Duration,
    doors: Doors,
    later: Later<(Asked, Hash)>,
    issued: u64,
}

impl Timestamp {
    /// One that answers after `delay`: what a service far away would take.
    #[must_use]
    pub fn new(key: Key, origin_unix_ns: i64, delay: Duration) -> Self {
        let (doors, later) = (Doors::default(), Later::default());
        Self { key, origin_unix_ns, delay, doors, later, issued: 0 }
    }
}

impl Answering for Timestamp {
    fn doors(&mut self) -> &mut Doors {
        &mut self.doors
    }

    fn metrics(&self) -> String {
        wire::metrics::text(&[
            ("ledger_tokens_total", true, "Timestamp tokens issued.", self.issued),
            (
                "ledger_malformed_total",
                true,
                "Connections closed for what they sent.",
                self.doors.malformed,
            ),
        ])
    }

    fn asked(&mut self, now: Instant, asked: Asked, frame: Frame<'_>, out: &mut Outputs) {
        let to = out.send(asked.connection);
        match (frame.kind, Hash::try_from(frame.payload)) {
            (kind::KEY, _) => write_frame(to, kind::PUBLIC_KEY, asked.id, &[&self.key.public()]),
            (kind::TIMESTAMP, Ok(_)) if self.later.len() >= WAITING_MAX => {
                write_refused(to, asked.id, Refused::Full);
            }
            (kind::TIMESTAMP, Ok(link)) => self.later.add(now.plus(self.delay), (asked, link)),
            _ => write_refused(to, asked.id, Refused::Malformed),
        }
    }
}

impl Node for Timestamp {
    fn step(&mut self, now: Instant, input: Input<'_>, out: &mut Outputs) {
        self.hear(now, input, out);
        while let Some((asked, link)) = self.later.take(now) {
            self.issued += 1;
            let token = self.key.token(link, self.origin_unix_ns.saturating_add(now.as_ns()));
            let to = out.send(asked.connection);
            write_frame(to, kind::TOKEN, asked.id, &[&token.encoded()]);
        }
        if let Some(at) = self.later.first() {
            out.wake_at(at);
        }
    }
}
