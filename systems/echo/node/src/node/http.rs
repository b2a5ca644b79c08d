//! HTTP/1.1: requests that wait in the same queue, and what the server says of itself.

use std::cmp::Reverse;
use std::time::Duration;

use clock::Instant;
use process::{Connection, Outputs};

use super::{Departure, EchoNode, WAITING_MAX, What};
use crate::faults::{Lie, Struck};
use crate::http_face::{self, HttpReply};
use crate::metrics::{self, Said};
use crate::protocol::Code;

/// With more than this to be sent, whoever asks on is hung up on.
pub(super) const UNSENT_BYTES_MAX: usize = 64 << 20;

impl EchoNode {
    pub(super) fn read_http(
        &mut self,
        now: Instant,
        connection: Connection,
        bytes: &[u8],
        out: &mut Outputs,
    ) {
        let read: Result<(), Option<String>> = out.read_pieces(bytes, |rest, out| {
            let Some((reply, length)) = http_face::read(rest).map_err(Some)? else {
                return Ok(None);
            };
            self.http_request(now, connection, reply, out);
            // Bytes after the last request have no meaning.
            if reply.keep_alive { Ok(Some(length)) } else { Err(None) }
        });
        if let Err(Some(why)) = read {
            http_face::write_refusal(out.send(connection), &why);
            out.close(connection);
        }
    }

    pub(super) fn read_metrics(&mut self, connection: Connection, bytes: &[u8], out: &mut Outputs) {
        let waiting =
            |it: &&Reverse<Departure>| matches!(it.0.what, What::Commit(_) | What::Http(..));
        let queued = self.departures.iter().filter(waiting).count();
        let said = Said { commits: self.served, queued: u64::try_from(queued).unwrap_or(u64::MAX) };
        let (used, is_over) =
            wire::metrics::serve(bytes, || metrics::text(said), out.send(connection));
        out.used(used);
        if is_over {
            out.close(connection);
        }
    }

    fn http_request(
        &mut self,
        now: Instant,
        connection: Connection,
        reply: HttpReply,
        out: &mut Outputs,
    ) {
        let last = self.lines[connection.index()].last_departure;
        let taken = self.limit(now).and_then(|()| self.admit(now, Duration::ZERO, 1));
        let (reply, struck, departure) = match taken {
            Ok(served) => (reply, self.liar.strike(), served.departure),
            Err((Code::Limited, wait)) => {
                let reply = reply.limited(self.allowed_per_s(), whole_seconds(wait));
                (reply, Struck::default(), self.thaw(now))
            }
            Err(_) => (reply.overloaded(), Struck::default(), self.thaw(now)),
        };
        let departure = departure.max(last);
        if departure <= now {
            self.http_served(now, connection, reply, struck, out);
            return;
        }
        if self.departures.len() >= 2 * WAITING_MAX {
            return out.close(connection);
        }
        self.lines[connection.index()].last_departure = departure;
        self.leave(departure, connection, What::Http(reply, struck));
    }

    pub(super) fn http_served(
        &mut self,
        now: Instant,
        connection: Connection,
        reply: HttpReply,
        struck: Struck,
        out: &mut Outputs,
    ) {
        self.served += 1;
        if struck.is_none() {
            http_say(connection, reply, out);
            return;
        }
        let mut by =
            |lie| struck.by(lie).then(|| self.commits.confess(lie, struck.number)).is_some();
        if by(Lie::Drop) {
        } else if by(Lie::Close) {
            out.close(connection);
        } else if by(Lie::Garbage) {
            self.commits.garbage(out.send(connection));
        } else if by(Lie::Late) {
            let at = now.plus(self.options.faults.late_by);
            self.lines[connection.index()].last_departure = at;
            self.leave(at, connection, What::HttpSay(reply));
        } else {
            if by(Lie::Twice) {
                reply.write(out.send(connection));
            }
            http_say(connection, reply, out);
        }
    }

    fn allowed_per_s(&self) -> u32 {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a float saturates, and a rate is not negative"
        )]
        self.options.faults.limit.map_or(0, |limit| limit.rate.round() as u32)
    }
}

pub(super) fn http_say(connection: Connection, reply: HttpReply, out: &mut Outputs) {
    if out.unsent(connection) > UNSENT_BYTES_MAX {
        return out.close(connection);
    }
    reply.write(out.send(connection));
    if !reply.keep_alive {
        out.close(connection);
    }
}

fn whole_seconds(wait: Duration) -> u32 {
    u32::try_from(wait.as_millis().div_ceil(1000)).unwrap_or(u32::MAX)
}
