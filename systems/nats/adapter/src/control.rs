//! Questions to a server beside the load, over a connection of its own, blocking and bounded in time; never used while
//! transactions are timed. JetStream is asked by requests to subjects below `$JS.API` (docs.nats.io, *JetStream wire API
//! Reference*).

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use clock::Clock;
use serde_json::Value;
use sut::asker::{Asker, connect};

use crate::messages::{self, Said};

/// The longest wait for a server to take a connection or answer: a cluster that elects answers within a few seconds or
/// not at all.
const PATIENCE: Duration = Duration::from_secs(5);

/// The answer to a question.
pub(crate) struct Answer {
    /// Of a status that a server itself sends.
    pub(crate) status: Option<u16>,
    /// Where a message would be acknowledged; for one of a stream it names its place.
    pub(crate) reply: Vec<u8>,
    pub(crate) payload: Vec<u8>,
}

/// A connection for questions.
pub(crate) struct Control {
    asker: Asker,
    /// Of the server, from its greeting.
    pub(crate) version: String,
    inbox: String,
    asked: u64,
}

impl Control {
    pub(crate) fn open(server: SocketAddr, clock: Clock) -> io::Result<Self> {
        let asker = Asker::new(connect(server, PATIENCE)?, clock);
        // No other connection of this host has the port of this end.
        let inbox = format!("_INBOX.assay.{}.", asker.stream().local_addr()?.port());
        let mut control = Self { asker, version: String::new(), inbox, asked: 0 };
        let mut out = Vec::new();
        messages::connect(&mut out);
        messages::subscribe(&control.inbox, &mut out);
        out.extend_from_slice(b"PING\r\n");
        control.asker.send(&out)?;
        while control.next()?.is_some() {}
        Ok(control)
    }

    /// Asks one question that has one answer.
    pub(crate) fn ask(&mut self, subject: &str, payload: &[u8]) -> io::Result<Answer> {
        self.begin(subject, payload)?;
        self.answer()
    }

    /// The same of JetStream: its answer as JSON, an error of its as one.
    pub(crate) fn api(
        &mut self,
        subject: &str,
        payload: &str,
    ) -> io::Result<Result<Value, Refused>> {
        let answer = self.ask(&format!("$JS.API.{subject}"), payload.as_bytes())?;
        if let Some(status) = answer.status {
            return Ok(Err(Refused { code: status.into(), words: "no server answers".to_owned() }));
        }
        let value: Value = serde_json::from_slice(&answer.payload).map_err(io::Error::other)?;
        let Some(error) = value.get("error") else { return Ok(Ok(value)) };
        let code = error["err_code"].as_u64().unwrap_or_default();
        let words = error["description"].as_str().unwrap_or_default().to_owned();
        Ok(Err(Refused { code, words }))
    }

    /// Asks something that may have several answers.
    pub(crate) fn begin(&mut self, subject: &str, payload: &[u8]) -> io::Result<()> {
        self.asked += 1;
        let mut out = Vec::new();
        let reply = format!("{}{}", self.inbox, self.asked);
        messages::publish(subject, &[reply.as_bytes()], &[], &[payload], &mut out);
        self.asker.send(&out)
    }

    /// The next answer to the question that was asked last; earlier ones' are skipped.
    pub(crate) fn answer(&mut self) -> io::Result<Answer> {
        self.asker.go_on();
        loop {
            if let Some(answer) = self.next()? {
                return Ok(answer);
            }
        }
    }

    /// The next answer, or `None` for a PONG.
    fn next(&mut self) -> io::Result<Option<Answer>> {
        loop {
            let read = messages::said(self.asker.unread());
            let read = read.map_err(|strange| io::Error::other(strange.0))?;
            let Some((said, length)) = read else {
                self.asker.read()?;
                continue;
            };
            let mut answer = None;
            let (mut is_ping, mut is_pong, mut greeting) = (false, false, None);
            match said {
                Said::Info(text) => greeting = Some(text.to_vec()),
                Said::Ping => is_ping = true,
                Said::Pong => is_pong = true,
                Said::Error(text) => {
                    let text = String::from_utf8_lossy(text).into_owned();
                    return Err(io::Error::other(format!("the server says {text}")));
                }
                Said::Message(message) => {
                    let number = message.subject.strip_prefix(self.inbox.as_bytes());
                    // A message of a stream comes under its own subject, in answer to a question all the same.
                    let is_old = number.is_some_and(|it| it != self.asked.to_string().as_bytes());
                    answer = (!is_old).then(|| Answer {
                        status: message.status(),
                        reply: message.reply.to_vec(),
                        payload: message.payload.to_vec(),
                    });
                }
            }
            self.asker.skip(length);
            if let Some(text) = greeting {
                let info: Value = serde_json::from_slice(&text).map_err(io::Error::other)?;
                self.version = info["version"].as_str().unwrap_or_default().to_owned();
            }
            if is_ping {
                self.asker.say(b"PONG\r\n")?;
            }
            if is_pong || answer.is_some() {
                return Ok(answer);
            }
        }
    }
}

/// A refusal of JetStream, by the numbers of its errors.
#[derive(Debug)]
pub(crate) struct Refused {
    pub(crate) code: u64,
    words: String,
}

impl std::fmt::Display for Refused {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ({})", self.words, self.code)
    }
}
