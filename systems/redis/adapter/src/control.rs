//! Questions to the server beside the load: does it serve, which version is it, what does it hold. A connection of
//! its own, blocking and bounded in time; never used while transactions are timed.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use clock::Clock;
use sut::asker::{Asker, connect};

use crate::resp::{self, Ending, Reply};

/// The longest wait for the server to take a connection or answer a question.
const PATIENCE: Duration = Duration::from_secs(10);

/// A connection for questions.
pub(crate) struct Control {
    asker: Asker,
}

impl Control {
    pub(crate) fn open(server: SocketAddr, clock: Clock) -> io::Result<Self> {
        Ok(Self { asker: Asker::new(connect(server, PATIENCE)?, clock) })
    }

    /// Whether it serves: a server that still reads its file says that it is loading.
    pub(crate) fn is_serving(server: SocketAddr, clock: Clock) -> bool {
        let asked = Self::open(server, clock).and_then(|mut control| control.ask(&[b"PING"]));
        matches!(asked, Ok(Reply::Simple(word)) if word == "PONG")
    }

    /// Makes a replica a primary: what its own had not sent it by now it will never have.
    pub(crate) fn promote(&mut self) -> io::Result<()> {
        match self.ask(&[b"REPLICAOF", b"NO", b"ONE"])? {
            Reply::Simple(_) => Ok(()),
            _ => Err(strange("REPLICAOF was answered by no word")),
        }
    }

    /// The value of a line of INFO; empty if it has none.
    pub(crate) fn info(&mut self, name: &str) -> io::Result<String> {
        let Reply::Bulk(Some(text)) = self.ask(&[b"INFO"])? else {
            return Err(strange("INFO was not answered by a text"));
        };
        let text = String::from_utf8_lossy(&text).into_owned();
        let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        Ok(value.unwrap_or_default().to_owned())
    }

    /// The value of a setting; `None`: the server has none of this name, or does not tell, as those that others run.
    pub(crate) fn setting(&mut self, name: &str) -> Option<String> {
        let Ok(Reply::Array(found)) = self.ask(&[b"CONFIG", b"GET", name.as_bytes()]) else {
            return None;
        };
        let value = values(found).into_iter().nth(1)??;
        Some(String::from_utf8_lossy(&value).into_owned())
    }

    /// Some of the keys with this beginning, and from where to go on; 0 was the last.
    pub(crate) fn scan(&mut self, from: u64, prefix: &str) -> io::Result<(u64, Vec<Vec<u8>>)> {
        let (from, pattern) = (from.to_string(), format!("{prefix}*"));
        let command: [&[u8]; 6] =
            [b"SCAN", from.as_bytes(), b"MATCH", pattern.as_bytes(), b"COUNT", b"1000"];
        let Reply::Array(answer) = self.ask(&command)? else {
            return Err(strange("SCAN was not answered by a list"));
        };
        match <[Reply; 2]>::try_from(answer) {
            Ok([Reply::Bulk(Some(next)), Reply::Array(keys)]) => {
                let next = String::from_utf8_lossy(&next).parse();
                let next = next.map_err(|_| strange("SCAN gave no place to go on from"))?;
                Ok((next, values(keys).into_iter().flatten().collect()))
            }
            _ => Err(strange("SCAN was not answered by a place and keys")),
        }
    }

    /// The values of keys, `None` for one that is not there.
    pub(crate) fn get(&mut self, keys: &[Vec<u8>]) -> io::Result<Vec<Option<Vec<u8>>>> {
        let command: Vec<&[u8]> =
            std::iter::once(&b"MGET"[..]).chain(keys.iter().map(Vec::as_slice)).collect();
        match self.ask(&command)? {
            Reply::Array(found) if found.len() == keys.len() => Ok(values(found)),
            _ => Err(strange("MGET was not answered by a value for each key")),
        }
    }

    fn ask(&mut self, command: &[&[u8]]) -> io::Result<Reply> {
        let mut question = Vec::new();
        resp::write_command(command, &mut question);
        self.asker.send(&question)?;
        let mut ending = Ending::new();
        while !ending.has_come(self.asker.unread()).map_err(|why| strange(&why.0))? {
            self.asker.read()?;
        }
        let read = resp::reply(self.asker.unread()).map_err(|why| strange(&why.0))?;
        let (reply, used) = read.ok_or_else(|| strange("a reply that does not end"))?;
        self.asker.skip(used);
        match reply {
            Reply::Error(text) => Err(strange(&text)),
            reply => Ok(reply),
        }
    }
}

fn values(list: Vec<Reply>) -> Vec<Option<Vec<u8>>> {
    let value = |item| match item {
        Reply::Bulk(value) => value,
        _ => None,
    };
    list.into_iter().map(value).collect()
}

fn strange(why: &str) -> io::Error {
    io::Error::other(format!("the server says: {why}"))
}
