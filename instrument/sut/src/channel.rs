//! The engine's end of a socket pair whose other end a program has inherited: a client of the system in a language of its
//! own. What goes wrong between it and us is the client's failure, in the program's own words, and never the system's; but
//! where a fault of the plan ended the program, it is the plan's, as for any node.

use std::fmt;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::marks::{TEXT_CHARS_MAX, cut};

/// One end of a connected stream socket in each life of the program. Copies are of the same channel. A life is taken once:
/// a program that has ended, or that is not understood any more, is spoken with again only in a new life.
#[derive(Clone)]
pub struct Channel {
    inner: Arc<Inner>,
}

struct Inner {
    name: String,
    last_lines: Box<dyn Fn() -> String + Send + Sync>,
    lives: Mutex<Lives>,
}

/// The life that is spoken with, and the one after it.
#[derive(Default)]
struct Lives {
    next: Option<(OwnedFd, Arc<AtomicBool>)>,
    /// Whether a fault ended the life that was taken last.
    is_asked_to_end: Arc<AtomicBool>,
    failure: Option<Failure>,
}

/// Why a channel is of no use at present.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The words for all transactions that it fails for.
    pub words: Arc<str>,
    /// Whether a fault of the plan ended the program: then it is a node that is down, and no client that failed.
    pub is_planned: bool,
}

impl Channel {
    /// A channel without a life yet; what the program is called in messages; and what gives the last lines that it wrote, of
    /// which as much is kept as of any text. That is asked once a life, when the channel fails, and may read a small file.
    #[must_use]
    pub fn new(name: &str, last_lines: Box<dyn Fn() -> String + Send + Sync>) -> Self {
        let name = name.to_owned();
        Self { inner: Arc::new(Inner { name, last_lines, lives: Mutex::default() }) }
    }

    /// A life of the program begins: our end of its pair, and the mark that is set before a fault ends it.
    pub fn begin(&self, socket: OwnedFd, is_asked_to_end: Arc<AtomicBool>) {
        self.lives().next = Some((socket, is_asked_to_end));
    }

    /// The socket of a life that began, once; `None`: it was taken before, and no other has begun.
    #[must_use]
    pub fn take(&self) -> Option<OwnedFd> {
        let mut lives = self.lives();
        let (socket, is_asked_to_end) = lives.next.take()?;
        lives.is_asked_to_end = is_asked_to_end;
        lives.failure = None;
        Some(socket)
    }

    /// The program's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// Whether a fault of the plan ended the life that was taken last.
    #[must_use]
    pub fn is_ended_by_plan(&self) -> bool {
        self.lives().is_asked_to_end.load(Ordering::SeqCst)
    }

    /// The channel has failed, because of `why`. It fails once a life: what comes later has the words of the first time.
    #[must_use]
    pub fn fail(&self, why: &str) -> Failure {
        let mut lives = self.lives();
        let is_planned = lives.is_asked_to_end.load(Ordering::SeqCst);
        let words = || match is_planned {
            true => format!("{}: a fault of the plan ended it", self.inner.name),
            false => self.words(why),
        };
        lives.failure.get_or_insert_with(|| Failure { words: words().into(), is_planned }).clone()
    }

    /// The program was started again and does not come up, because of `why`: that is its own failure.
    pub fn stays_down(&self, why: &str) {
        let words = self.words(why).into();
        self.lives().failure = Some(Failure { words, is_planned: false });
    }

    fn lives(&self) -> MutexGuard<'_, Lives> {
        self.inner.lives.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn words(&self, why: &str) -> String {
        let said = (self.inner.last_lines)();
        let lines: Vec<&str> = said.lines().collect();
        let last = lines[lines.len().saturating_sub(LINES_MAX)..].join(" / ");
        let (name, why) = (&self.inner.name, cut(why));
        match last.chars().count() {
            0 => format!("{name}: {why}"),
            count => {
                let from = last.char_indices().nth(count.saturating_sub(TEXT_CHARS_MAX));
                let end = &last[from.map_or(0, |(at, _)| at)..];
                format!("{name}: {why}; its last lines: {end}")
            }
        }
    }
}

/// So many of its last lines are told: the error itself, and where it was.
const LINES_MAX: usize = 3;

impl fmt::Debug for Channel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Channel").field("name", &self.inner.name).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use super::*;

    fn socket() -> OwnedFd {
        UnixStream::pair().unwrap().0.into()
    }

    /// Claim: the words of a failure have its reason and the end of what was said, bounded, and stay those of the first.
    #[test]
    fn fails_once_and_in_bounds() {
        let said = format!("first\nsecond\n{}\nlast", "ü".repeat(5_000));
        let channel = Channel::new("client.py", Box::new(move || said.clone()));
        channel.begin(socket(), Arc::default());
        assert!(channel.take().is_some() && channel.take().is_none());
        let failure = channel.fail("it closed the channel");
        let text = &failure.words;
        assert!(text.starts_with("client.py: it closed the channel; its last lines: "), "{text}");
        assert!(text.ends_with("/ last") && !text.contains("first"), "{text}");
        assert!(text.chars().count() <= 2 * TEXT_CHARS_MAX + 50, "{text}");
        assert!(!failure.is_planned && !channel.is_ended_by_plan());
        assert_eq!(channel.clone().fail("again"), failure);
    }

    /// Claim: the end of a life that a fault asked for is the plan's failure until the next life is taken, whose own end is
    /// the client's again; one that does not come up is the client's at once.
    #[test]
    fn lives_follow_each_other() {
        let channel = Channel::new("client.py", Box::new(|| "the last line".to_owned()));
        let (first, second): (Arc<AtomicBool>, Arc<AtomicBool>) = Default::default();
        channel.begin(socket(), Arc::clone(&first));
        assert!(channel.take().is_some());
        first.store(true, Ordering::SeqCst);
        // The next life begins before the end of the first is noticed.
        channel.begin(socket(), second);
        let failure = channel.fail("it closed the channel");
        assert!(failure.is_planned && channel.is_ended_by_plan());
        assert_eq!(&*failure.words, "client.py: a fault of the plan ended it");
        assert!(channel.take().is_some() && !channel.is_ended_by_plan());
        let failure = channel.fail("it closed the channel");
        assert!(!failure.is_planned && failure.words.contains("the last line"));
        channel.stays_down("no disk");
        assert!(channel.fail("").words.starts_with("client.py: no disk"));
    }
}
