//! Every behaviour of the list, played to a session: whole, and byte by byte as a network may cut it.

use sut::{Mark, Marks, Session as _, Transaction};

use super::hostile_list::{BEHAVIOURS, Behaviour, Seen, Step};
use super::system;
use crate::session::HttpSession;

/// The most unread bytes that a session may leave to the engine: a head that is not complete.
const UNREAD_MAX: usize = (64 << 10) + 64;
/// How much of what has no end is played.
const ENDLESS: usize = 200 << 10;

/// No step waits for longer.
const PAUSE_MS_MAX: u64 = 200;

/// What was seen of a behaviour.
#[derive(Debug, Default)]
struct Found {
    committed: usize,
    unasked: u64,
    error: Option<String>,
    is_over: bool,
}

/// A connection as the engine has it.
struct Line {
    session: HttpSession,
    unread: Vec<u8>,
    piece: usize,
    found: Found,
}

impl Line {
    fn hear(&mut self, bytes: &[u8]) {
        for piece in bytes.chunks(self.piece) {
            if self.found.is_over {
                return;
            }
            self.unread.extend_from_slice(piece);
            let mut marks = Marks::default();
            let result = self.session.receive(&self.unread, &mut Vec::new(), &mut marks);
            self.take(&marks);
            self.found.is_over = result.is_err() || marks.wants_close();
            match result {
                Ok(used) => drop(self.unread.drain(..used)),
                Err(error) => self.found.error = Some(error.0),
            }
            let held = if self.found.is_over { 0 } else { self.unread.len() };
            assert!(held <= UNREAD_MAX, "{held} bytes are held");
        }
    }

    fn take(&mut self, marks: &Marks) {
        let is_commit = |mark: &&Mark| matches!(mark, Mark::Reached { .. });
        self.found.committed += marks.list().iter().filter(is_commit).count();
        self.found.unasked += marks.unasked_bytes();
    }

    fn play(&mut self, steps: &[Step]) {
        for step in steps {
            match *step {
                Step::Say(bytes) => self.hear(bytes),
                Step::Drip(bytes, pause_ms) => {
                    assert!(pause_ms < PAUSE_MS_MAX, "the whole list is to take seconds");
                    self.hear(bytes);
                }
                Step::Wait(ms) => assert!(ms < PAUSE_MS_MAX, "the whole list is to take seconds"),
                Step::Flood(first, more) => {
                    self.hear(first);
                    self.hear(&more.repeat(ENDLESS / more.len()));
                }
                Step::Close if !self.found.is_over => {
                    let mut marks = Marks::default();
                    self.session.closed(&mut marks);
                    self.take(&marks);
                    self.found.is_over = true;
                }
                Step::Close | Step::Hush | Step::Reset => {}
            }
        }
    }
}

fn played(behaviour: &Behaviour, piece: usize) -> Found {
    let system = system("http://h/", "{}");
    let session = HttpSession::new(system.requests.clone(), system.rules.clone(), 1);
    let mut line = Line { session, unread: Vec::new(), piece, found: Found::default() };
    line.play(behaviour.greets);
    if !line.found.is_over {
        line.session.submit(&Transaction::new(0, 0, &[]), &mut Vec::new());
        line.play(behaviour.answers);
    }
    line.found
}

/// Claim: of each behaviour the session sees what must be seen, however its bytes are cut; it holds no more of them than a
/// head; what is strange and right is taken; and the names are the behaviours' own.
#[test]
fn none_passes_unseen() {
    let mut names: Vec<&str> = BEHAVIOURS.iter().map(|it| it.name).collect();
    names.sort_unstable();
    names.dedup();
    assert!(names.len() == BEHAVIOURS.len() && names.len() >= 60, "{} names", names.len());
    for behaviour in BEHAVIOURS {
        for piece in [usize::MAX, 7, 1] {
            let found = played(behaviour, piece);
            let is_broken = found.error.is_some() || found.unasked > 0;
            let is_seen = match behaviour.seen {
                // Cut into pieces, what comes behind the last answer of a closing connection is not looked at.
                Seen::Broken => is_broken || (piece < usize::MAX && found.is_over),
                Seen::Failed => found.committed == 0,
                Seen::Fine => found.committed == 1 && !is_broken,
            };
            assert!(
                is_seen,
                "{} ({}), in pieces of {piece}: {found:?}",
                behaviour.name, behaviour.does
            );
        }
    }
}
