//! Fates, from the buckets alone: the ledger's own audit reads the folders of the buckets, verifies everything and says what
//! stands on the main chain; here it is found out whose that is. It reads nothing before the queue has nothing left, for what
//! was acknowledged a moment ago is still on its way.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::Ordering;
use std::time::Duration;

use model::facts::LedgerEntry;
use sut::{Deployment, Ledger, SutError};

use crate::frames::{self, Answer};
use crate::workload::transaction;

/// How often the queue is asked what is left, and how long it may take to answer.
const LOOK_EVERY: Duration = Duration::from_millis(50);
const ANSWER_WITHIN: Duration = Duration::from_secs(5);

/// Waits until the queue has nothing left, at most so long; gives what is left then, in words, if anything is.
pub(crate) fn settle(
    queue: SocketAddr,
    pipelines: &[SocketAddr],
    within: Duration,
    of: &Deployment,
) -> Option<String> {
    let deadline = of.clock.now().plus(within);
    loop {
        let words = match standing(queue) {
            Ok((0, 0)) => return None,
            Ok((pending, open)) => {
                format!("{pending} transactions and {open} batches were not done")
            }
            Err(error) => format!("the queue did not say what was left ({error})"),
        };
        if of.clock.now() >= deadline || of.stop.load(Ordering::Relaxed) {
            let why: Vec<String> = pipelines.iter().flat_map(|it| failing(*it)).collect();
            return Some(if why.is_empty() {
                words
            } else {
                format!("{words}: {}", why.join("; "))
            });
        }
        of.clock.sleep_until(of.clock.now().plus(LOOK_EVERY));
    }
}

/// Bytes of metrics at most.
const METRICS_BYTES_MAX: u64 = 1 << 20;

/// What a pipeline says that fails, in its words; nothing where it does not answer.
fn failing(pipeline: SocketAddr) -> Vec<String> {
    let asked = || -> std::io::Result<String> {
        let mut stream = TcpStream::connect_timeout(&pipeline, ANSWER_WITHIN)?;
        stream.set_read_timeout(Some(ANSWER_WITHIN))?;
        stream
            .write_all(b"GET /metrics HTTP/1.1\r\nhost: pipeline\r\nconnection: close\r\n\r\n")?;
        let mut text = String::new();
        // What came before a connection was not closed in time is text all the same.
        let _ = stream.take(METRICS_BYTES_MAX).read_to_string(&mut text);
        Ok(text)
    };
    let text = asked().unwrap_or_default();
    let words = text.lines().filter_map(|line| {
        let (_, words) = line.strip_prefix("ledger_stalled_words{")?.split_once("words=\"")?;
        Some(words.rsplit_once("\"}")?.0.to_owned())
    });
    words.collect()
}

/// Transactions that are in no batch, and batches that are not done.
fn standing(queue: SocketAddr) -> std::io::Result<(u64, u64)> {
    let mut stream = TcpStream::connect_timeout(&queue, ANSWER_WITHIN)?;
    stream.set_read_timeout(Some(ANSWER_WITHIN))?;
    stream.set_write_timeout(Some(ANSWER_WITHIN))?;
    let mut question = Vec::new();
    frames::write_standing(&mut question, 1);
    stream.write_all(&question)?;
    let (mut unread, mut chunk) = (Vec::new(), [0; frames::ANSWER_BYTES_MAX]);
    loop {
        match frames::read(&unread).map_err(std::io::Error::other)? {
            Some(frames::Answered { answer: Answer::Stands { pending, open }, .. }) => {
                return Ok((pending, open));
            }
            Some(_) => return Err(std::io::Error::other("it answered another question")),
            None => {}
        }
        match stream.read(&mut chunk)? {
            0 => return Err(std::io::ErrorKind::UnexpectedEof.into()),
            count => unread.extend_from_slice(&chunk[..count]),
        }
    }
}

/// What the audit says, with the transactions that the entries are.
pub(crate) struct Audited {
    pub(crate) inner: Box<dyn Ledger>,
    pub(crate) run_mark: u64,
    /// What was left in the queue, if anything was.
    pub(crate) left: Option<String>,
    /// Whether the ledger promises the order in which transactions were acknowledged.
    pub(crate) is_ordered: bool,
}

impl Ledger for Audited {
    fn next(&mut self, content: &mut Vec<u8>) -> Result<Option<LedgerEntry>, SutError> {
        let Some(entry) = self.inner.next(content)? else { return Ok(None) };
        let tx = transaction(content, self.run_mark);
        content.clear();
        let ours = LedgerEntry::new(entry.position, tx.unwrap_or(u64::MAX), tx.is_some());
        Ok(Some(LedgerEntry { block: entry.block, ..ours }))
    }

    fn ordered_from(&self) -> Option<usize> {
        self.inner.ordered_from().filter(|_| self.is_ordered)
    }

    fn way(&self) -> String {
        match &self.left {
            None => self.inner.way(),
            Some(left) => format!("{}; when it was read, {left}", self.inner.way()),
        }
    }
}
