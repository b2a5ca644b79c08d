//! The timestamp service as a value: it signs that a link existed at a time. It keeps nothing.

use clock::Instant;
use process::{Input, Node, Outputs};
use wire::metrics::Number;

use crate::data::Hash;
use crate::delay::Delay;
use crate::fault::{Fault, Kind};
use crate::keys::Key;
use crate::protocol::{Frame, Refused, kind, write_frame, write_refused};
use crate::service::{Answering, Asked, Doors, Later};

/// Answers that may wait for their time; what comes beyond is refused.
const WAITING_MAX: usize = 65_536;

/// A timestamp service.
#[derive(Debug)]
pub struct Timestamp {
    key: Key,
    /// The ledger's beginning.
    ledger: Hash,
    /// The wall time of the origin of the shell's clock, nanoseconds after the Unix epoch.
    origin_unix_ns: i64,
    delay: Delay,
    doors: Doors,
    later: Later<(Asked, Hash)>,
    issued: u64,
    /// The fault that it commits on purpose.
    pub fault: Option<Fault>,
}

impl Timestamp {
    /// One of the ledger that begins with `ledger`; it answers after `delay`: what a service far away would take.
    #[must_use]
    pub fn new(key: Key, ledger: Hash, origin_unix_ns: i64, delay: Delay) -> Self {
        let (doors, later) = (Doors::default(), Later::default());
        Self { key, ledger, origin_unix_ns, delay, doors, later, issued: 0, fault: None }
    }
}

impl Answering for Timestamp {
    fn doors(&mut self) -> &mut Doors {
        &mut self.doors
    }

    fn metrics(&self) -> Vec<Number> {
        vec![("ledger_tokens_total", true, "Timestamp tokens issued.", self.issued)]
    }

    fn is_guarded(&self, kind: u8) -> bool {
        kind == kind::TIMESTAMP
    }

    fn asked(&mut self, now: Instant, asked: Asked, frame: Frame<'_>, out: &mut Outputs) {
        let to = out.send(asked.connection);
        match (frame.kind, Hash::try_from(frame.payload)) {
            (kind::KEY, _) => write_frame(to, kind::PUBLIC_KEY, asked.id, &[&self.key.public()]),
            (kind::TIMESTAMP, Ok(_)) if self.later.len() >= WAITING_MAX => {
                write_refused(to, asked.id, Refused::Full);
            }
            (kind::TIMESTAMP, Ok(link)) => {
                self.later.add(now.plus(self.delay.draw()), (asked, link))
            }
            _ => write_refused(to, asked.id, Refused::Malformed),
        }
    }
}

impl Node for Timestamp {
    fn step(&mut self, now: Instant, input: Input<'_>, out: &mut Outputs) {
        self.hear(now, input, out);
        while let Some((asked, link)) = self.later.take(now) {
            self.issued += 1;
            let is_other = Fault::is_on(self.fault, Kind::OtherKey, self.issued);
            let other = is_other.then(|| Key::of_seed(&[0x0F; 32]));
            let token = other.as_ref().unwrap_or(&self.key).token(
                &self.ledger,
                link,
                self.origin_unix_ns.saturating_add(now.as_ns()),
            );
            let to = out.send(asked.connection);
            write_frame(to, kind::TOKEN, asked.id, &[&token.encoded()]);
        }
        if let Some(at) = self.later.first() {
            out.wake_at(at);
        }
    }
}
