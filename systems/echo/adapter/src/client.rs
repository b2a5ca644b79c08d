//! The node's client library, as a system without a protocol to speak would have one: it blocks until a transaction
//! has ended, and keeps its own connection. For `load_by = "call"` and `probe_by = "call"`.

use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use echo_node::protocol::{Answer, Code, Reply, read_reply, write_submit};
use model::{Class, Outcome, TxId};
use sut::{Client, Returned, Transaction};
use wire::frames::next_frame;

/// The longest wait for a connection and for an answer: the library's own, whatever the engine's timeout is.
const PATIENCE: Duration = Duration::from_secs(5);
/// While an answer is waited for, it is looked this often whether the trial is over.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// A client, which connects when it is first called and after each failure.
pub(crate) struct EchoClient {
    node: SocketAddr,
    run_mark: u64,
    stages: u8,
    stream: Option<TcpStream>,
    unread: Vec<u8>,
    question: Vec<u8>,
    /// What it says of its last failure.
    words: String,
    /// Nothing is waited for any more.
    over: Arc<AtomicBool>,
}

impl EchoClient {
    pub(crate) const fn new(
        node: SocketAddr,
        run_mark: u64,
        stages: u8,
        over: Arc<AtomicBool>,
    ) -> Self {
        Self {
            node,
            run_mark,
            stages,
            stream: None,
            unread: Vec::new(),
            question: Vec::new(),
            words: String::new(),
            over,
        }
    }

    fn connect(&mut self) -> io::Result<&mut TcpStream> {
        if self.stream.is_none() {
            let stream = sut::asker::connect(self.node, PATIENCE)?;
            stream.set_read_timeout(Some(LOOK_EVERY))?;
            self.unread.clear();
            self.stream = Some(stream);
        }
        Ok(self.stream.as_mut().expect("made above"))
    }

    /// Waits for the answer that ends `tx`; those of stages below are told on the way.
    fn wait(&mut self, tx: TxId, reached: &mut dyn FnMut(u8)) -> io::Result<Answer> {
        let mut chunk = [0; 4096];
        let mut waited = Duration::ZERO;
        loop {
            let mut used = 0;
            while let Some(frame) = next_frame(&self.unread[used..]).map_err(io::Error::other)? {
                let reply = read_reply(frame.payload).map_err(io::Error::other)?;
                used += frame.used;
                let Reply::Answer(answer) = reply else { continue };
                match answer.code {
                    _ if answer.tx != tx => {}
                    Code::Accepted if self.stages >= 2 => reached(0),
                    Code::Started if self.stages == 3 => reached(1),
                    Code::Accepted | Code::Started => {}
                    _ => {
                        self.unread.drain(..used);
                        return Ok(answer);
                    }
                }
            }
            self.unread.drain(..used);
            let stream = self.stream.as_mut().ok_or(io::ErrorKind::NotConnected)?;
            match stream.read(&mut chunk) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(count) => self.unread.extend_from_slice(&chunk[..count]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    waited += LOOK_EVERY;
                    if waited >= PATIENCE || self.over.load(Ordering::Relaxed) {
                        return Err(io::ErrorKind::TimedOut.into());
                    }
                }
                Err(error) => return Err(error),
            }
        }
    }

    fn failed(&mut self, attempt: &str, error: &io::Error, outcome: Outcome) -> Returned<'_> {
        self.stream = None;
        // The kind and not the text: what an operating system adds differs each time.
        self.words = format!("{attempt}: {}", error.kind());
        Returned::ended(outcome, 0, &self.words)
    }
}

impl Client for EchoClient {
    fn execute(
        &mut self,
        tx: &Transaction<'_>,
        reached: &mut dyn FnMut(u8),
        _seen: &mut dyn FnMut(&[u8]),
    ) -> Returned<'_> {
        let kind = u16::try_from(tx.kind).expect("the workload has fewer kinds");
        self.question.clear();
        write_submit(&mut self.question, self.run_mark, tx.id, kind, tx.payload);
        if let Err(error) = self.connect() {
            return self.failed("connecting", &error, Outcome::Rejected(Class::Transport));
        }
        let question = std::mem::take(&mut self.question);
        let sent = self.connect().and_then(|stream| stream.write_all(&question));
        self.question = question;
        let answer = match sent.and_then(|()| self.wait(tx.id, reached)) {
            Ok(answer) => answer,
            Err(error) => return self.failed("submitting", &error, Outcome::Unknown),
        };
        let number = answer.code as u16;
        let refused = |class, why| Returned::ended(Outcome::Rejected(class), number, why);
        match answer.code {
            Code::Limited => refused(Class::Limited, "rate limited"),
            Code::Overloaded => refused(Class::Overloaded, "queue full"),
            Code::Invalid => refused(Class::BadRequest, "refused as invalid"),
            Code::Conflict => refused(Class::Conflict, "not its client's turn"),
            Code::Committed | Code::Accepted | Code::Started => {
                reached(self.stages - 1);
                Returned::committed(number, 0)
            }
        }
    }
}
