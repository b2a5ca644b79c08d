//! Asking a service: one connection, any number of questions on it, each answered or failed in time.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::data::{Hash, Malformed};
use crate::known::{Secret, Side};
use crate::protocol::{PAYLOAD_BYTES_MAX, Refused, kind, next_frame, write_frame};

/// How long a connection may take to be there.
const CONNECT_MAX: Duration = Duration::from_secs(2);
/// Questions that may wait to be written.
const WAITING_MAX: usize = 1_024;

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoAnswer {
    /// The service is not there, or went away before it had answered: whether it did what was asked is not known.
    #[error("{0}")]
    Lost(String),
    /// It did not answer in time.
    #[error("{0} did not answer in time")]
    Late(String),
    /// It refuses.
    #[error("{}", .0.words())]
    Refused(Refused),
    /// What it says is none of the protocol.
    #[error("{0} says something that is no answer")]
    Garbled(String),
}

type Answered = Result<(u8, Vec<u8>), NoAnswer>;
type Open = Arc<Mutex<HashMap<u64, oneshot::Sender<Answered>>>>;

struct Question {
    kind: u8,
    payload: Vec<u8>,
    answer: oneshot::Sender<Answered>,
}

/// A service that can be asked; clones share the connection.
#[derive(Clone)]
pub struct Service {
    address: String,
    questions: mpsc::Sender<Question>,
}

impl Service {
    /// The service at an address. It is connected when it is first asked, and again after a connection has ended.
    #[must_use]
    pub fn at(address: &str) -> Self {
        Self::known(address, None)
    }

    /// The service at an address, which shares a secret with us.
    #[must_use]
    pub fn known(address: &str, secret: Option<Secret>) -> Self {
        let (questions, asked) = mpsc::channel(WAITING_MAX);
        let asking = Asking { address: address.to_owned(), secret, open: Open::default(), last: 0 };
        tokio::spawn(asking.run(asked));
        Self { address: address.to_owned(), questions }
    }

    /// Asks, and waits for the answer so long.
    ///
    /// # Errors
    /// Why there is none.
    pub async fn ask(&self, kind: u8, payload: Vec<u8>, within: Duration) -> Answered {
        let (answer, answered) = oneshot::channel();
        let ask = async {
            let lost = |_| NoAnswer::Lost("the asker has ended".to_owned());
            self.questions.send(Question { kind, payload, answer }).await.map_err(lost)?;
            answered.await.map_err(|_| NoAnswer::Lost(format!("{} went away", self.address)))?
        };
        let answered = timeout(within, ask).await;
        let (kind, payload) =
            answered.unwrap_or_else(|_| Err(NoAnswer::Late(self.address.clone())))?;
        if kind == kind::REFUSED {
            let why = payload.first().and_then(|byte| Refused::of(*byte));
            return Err(why.map_or_else(|| self.garbled(), NoAnswer::Refused));
        }
        Ok((kind, payload))
    }

    /// Asks for an answer of one kind.
    ///
    /// # Errors
    /// Why there is none.
    pub async fn ask_for(
        &self,
        wanted: u8,
        kind: u8,
        payload: Vec<u8>,
        within: Duration,
    ) -> Result<Vec<u8>, NoAnswer> {
        let (kind, payload) = self.ask(kind, payload, within).await?;
        if kind == wanted { Ok(payload) } else { Err(self.garbled()) }
    }

    /// That what came is no answer.
    #[must_use]
    pub fn garbled(&self) -> NoAnswer {
        NoAnswer::Garbled(self.address.clone())
    }
}

struct Asking {
    address: String,
    secret: Option<Secret>,
    open: Open,
    last: u64,
}

impl Asking {
    async fn run(mut self, mut asked: mpsc::Receiver<Question>) {
        let mut line: Option<(OwnedWriteHalf, JoinHandle<()>)> = None;
        while let Some(question) = asked.recv().await {
            if line.as_ref().is_some_and(|(_, reads)| reads.is_finished()) {
                line = None;
            }
            let (writes, reads) = match &mut line {
                Some(line) => line,
                none => match self.connect().await {
                    Ok(made) => none.insert(made),
                    Err(why) => {
                        let _ = question.answer.send(Err(NoAnswer::Lost(why)));
                        continue;
                    }
                },
            };
            self.last += 1;
            let mut bytes = Vec::new();
            write_frame(&mut bytes, question.kind, self.last, &[&question.payload]);
            locked(&self.open).insert(self.last, question.answer);
            let written = writes.write_all(&bytes).await;
            // The reader may have ended, and failed all that were open, just before this one was.
            if written.is_err() || reads.is_finished() {
                reads.abort();
                fail_all(&self.open, &self.address);
                line = None;
            }
        }
        if let Some((_, reads)) = line {
            reads.abort();
        }
    }

    async fn connect(&self) -> Result<(OwnedWriteHalf, JoinHandle<()>), String> {
        let failed = |error| format!("reaching {}: {error}", self.address);
        let mut stream = match timeout(CONNECT_MAX, TcpStream::connect(&self.address)).await {
            Ok(stream) => stream.map_err(failed)?,
            Err(_) => return Err(format!("reaching {}: no connection in time", self.address)),
        };
        stream.set_nodelay(true).map_err(failed)?;
        if let Some(secret) = &self.secret {
            let shaken = timeout(CONNECT_MAX, shake_hands(&mut stream, secret));
            let shaken = shaken.await.unwrap_or_else(|_| Err("no answer in time".to_owned()));
            shaken.map_err(|why| format!("{}: {why}", self.address))?;
        }
        let (reads, writes) = stream.into_split();
        let (open, address) = (Arc::clone(&self.open), self.address.clone());
        let reader = tokio::spawn(async move {
            let _ = read(reads, &open).await;
            fail_all(&open, &address);
        });
        Ok((writes, reader))
    }
}

/// Proves to a service that we have its secret, after it has proven it to us.
async fn shake_hands(stream: &mut TcpStream, secret: &Secret) -> Result<(), String> {
    let mut ours: Hash = [0; 32];
    ring::rand::SecureRandom::fill(&ring::rand::SystemRandom::new(), &mut ours)
        .map_err(|_| "the system has no randomness".to_owned())?;
    let (kind, answer) = exchange(stream, kind::HELLO, &ours).await?;
    let (theirs, proof) = answer.split_first_chunk::<32>().unwrap_or((&[0; 32], &[]));
    if kind != kind::GREETED || !secret.is_proof(Side::Service, &ours, theirs, proof) {
        return Err(
            "the service does not prove that it has the secret of the ledger's file".to_owned()
        );
    }
    let (kind, _) =
        exchange(stream, kind::PROVE, &secret.proof(Side::Asker, &ours, theirs)).await?;
    if kind == kind::NOTED { Ok(()) } else { Err(Refused::Unknown.words().to_owned()) }
}

async fn exchange(
    stream: &mut TcpStream,
    kind: u8,
    payload: &[u8],
) -> Result<(u8, Vec<u8>), String> {
    let mut bytes = Vec::new();
    write_frame(&mut bytes, kind, 0, &[payload]);
    stream.write_all(&bytes).await.map_err(|error| error.to_string())?;
    bytes.clear();
    loop {
        if let Some(frame) = next_frame(&bytes, 256).map_err(|error| error.to_string())? {
            return Ok((frame.kind, frame.payload.to_vec()));
        }
        if stream.read_buf(&mut bytes).await.map_err(|error| error.to_string())? == 0 {
            return Err("it closed the connection".to_owned());
        }
    }
}

async fn read(mut reads: OwnedReadHalf, open: &Open) -> Result<(), Malformed> {
    let (mut bytes, mut used) = (Vec::new(), 0);
    loop {
        while let Some(frame) = next_frame(&bytes[used..], PAYLOAD_BYTES_MAX)? {
            used += frame.used;
            // Who asked may not wait any more.
            if let Some(answer) = locked(open).remove(&frame.id) {
                let _ = answer.send(Ok((frame.kind, frame.payload.to_vec())));
            }
        }
        bytes.drain(..used);
        used = 0;
        if reads.read_buf(&mut bytes).await.unwrap_or(0) == 0 {
            return Ok(());
        }
    }
}

fn fail_all(open: &Open, address: &str) {
    for (_, answer) in locked(open).drain() {
        let _ = answer.send(Err(NoAnswer::Lost(format!("{address} went away"))));
    }
}

fn locked(open: &Open) -> std::sync::MutexGuard<'_, HashMap<u64, oneshot::Sender<Answered>>> {
    open.lock().unwrap_or_else(PoisonError::into_inner)
}
