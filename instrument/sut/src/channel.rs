//! The engine's end of a socket pair whose other end a program has inherited: a client of the system in a language of its
//! own. What goes wrong between it and us is the client's failure, in the program's own words, and never the system's.

use std::fmt;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use crate::marks::{TEXT_CHARS_MAX, cut};

/// One end of a connected stream socket. Copies are of the same channel. It has one life: a program that has ended, or
/// that is not understood any more, is not spoken with again.
#[derive(Clone)]
pub struct Channel {
    inner: Arc<Inner>,
}

struct Inner {
    name: String,
    socket: Mutex<Option<OwnedFd>>,
    last_lines: Box<dyn Fn() -> String + Send + Sync>,
    failure: OnceLock<String>,
}

impl Channel {
    /// Our end of the pair; what the program is called in messages; and what gives the last lines that it wrote, of which
    /// as much is kept as of any text. That is asked once, when the channel fails, and may read a small file.
    #[must_use]
    pub fn new(
        name: &str,
        socket: OwnedFd,
        last_lines: Box<dyn Fn() -> String + Send + Sync>,
    ) -> Self {
        let socket = Mutex::new(Some(socket));
        let name = name.to_owned();
        Self { inner: Arc::new(Inner { name, socket, last_lines, failure: OnceLock::new() }) }
    }

    /// The socket, for the channel's one life; `None`: it has been taken before.
    #[must_use]
    pub fn take(&self) -> Option<OwnedFd> {
        self.inner.socket.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// The program's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// The channel has failed, because of `why`; gives the words for all transactions that it fails for. It fails once:
    /// what comes later has the words of the first time.
    pub fn fails(&self, why: &str) -> &str {
        self.inner.failure.get_or_init(|| {
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
        })
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
    use super::*;

    /// Claim: the words of a failure have its reason and the end of what was said, bounded, and stay those of the first.
    #[test]
    fn fails_once_and_in_bounds() {
        let (ours, _theirs) = std::os::unix::net::UnixStream::pair().unwrap();
        let said = format!("first\nsecond\n{}\nlast", "ü".repeat(5_000));
        let channel = Channel::new("client.py", ours.into(), Box::new(move || said.clone()));
        let text = channel.fails("it closed the channel").to_owned();
        assert!(text.starts_with("client.py: it closed the channel; its last lines: "), "{text}");
        assert!(text.ends_with("/ last") && !text.contains("first"), "{text}");
        assert!(text.chars().count() <= 2 * TEXT_CHARS_MAX + 50, "{text}");
        assert_eq!(channel.clone().fails("again"), text);
        assert!(channel.take().is_some() && channel.take().is_none());
    }
}
