//! What the server holds: its keys by SCAN and their values by MGET, over a connection of its own. A store of keys has
//! no order, and says so.

use std::collections::{HashSet, VecDeque};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use model::TxId;
use model::facts::LedgerEntry;
use sut::content::letters;
use sut::{Ledger, SutError};

use crate::control::Control;
use crate::session::{prefix, transaction};

/// Values that are asked for at once: of the largest values, 64 MiB.
const VALUES_AT_ONCE: usize = 64;

/// Rounds of SCAN without a key of the trial, one after the other: a server that holds a billion keys of others takes as many.
const ROUNDS_MAX: u32 = 1 << 20;

/// The same once the run is to stop: a moment.
const ROUNDS_STOPPED_MAX: u32 = 1_000;

/// The server's keys being read.
pub(crate) struct Keys {
    control: Control,
    run_mark: u64,
    prefix: String,
    /// The right value.
    right: Vec<u8>,
    of: &'static str,
    /// Where SCAN goes on; `None`: it is through.
    next: Option<u64>,
    /// Read and not given yet.
    found: VecDeque<(Option<TxId>, Vec<u8>)>,
    /// SCAN may say a key twice; a key is there once.
    seen: HashSet<Vec<u8>>,
    position: u64,
    /// Set when the run is to stop.
    stop: Arc<AtomicBool>,
    rounds_max: u32,
}

impl Keys {
    pub(crate) fn new(
        control: Control,
        run_mark: u64,
        of: &'static str,
        stop: Arc<AtomicBool>,
    ) -> Self {
        Self {
            control,
            run_mark,
            prefix: prefix(run_mark),
            right: Vec::new(),
            of,
            next: Some(0),
            found: VecDeque::new(),
            seen: HashSet::new(),
            position: 0,
            stop,
            rounds_max: ROUNDS_MAX,
        }
    }

    fn read_on(&mut self, from: u64) -> io::Result<()> {
        let (next, keys) = self.control.scan(from, &self.prefix)?;
        self.next = (next != 0).then_some(next);
        let new: Vec<Vec<u8>> =
            keys.into_iter().filter(|key| self.seen.insert(key.clone())).collect();
        for some in new.chunks(VALUES_AT_ONCE) {
            for (key, value) in some.iter().zip(self.control.get(some)?) {
                // One that is gone in between is not held.
                if let Some(value) = value {
                    self.found.push_back((transaction(key, &self.prefix), value));
                }
            }
        }
        Ok(())
    }
}

impl Ledger for Keys {
    fn next(&mut self, content: &mut Vec<u8>) -> Result<Option<LedgerEntry>, SutError> {
        let mut rounds = 0;
        while self.found.is_empty() {
            let Some(from) = self.next else { return Ok(None) };
            let is_stopped = rounds >= ROUNDS_STOPPED_MAX && self.stop.load(Ordering::Relaxed);
            if rounds >= self.rounds_max || is_stopped {
                let why = if is_stopped { ", and the run is to stop" } else { "" };
                return Err(SutError::Ledger(format!(
                    "expected SCAN to give a key of the trial or to end, got neither in {rounds} rounds{why}"
                )));
            }
            rounds += 1;
            self.read_on(from)
                .map_err(|error| SutError::Ledger(format!("reading the keys back: {error}")))?;
        }
        let (tx, held) = self.found.pop_front().expect("there is one");
        self.right.clear();
        letters(self.run_mark, tx.unwrap_or(TxId::MAX), held.len(), &mut self.right);
        let is_ours = tx.is_some() && self.right == held;
        content.extend_from_slice(&held);
        let entry = LedgerEntry::new(self.position, tx.unwrap_or(TxId::MAX), is_ours);
        self.position += 1;
        Ok(Some(entry))
    }

    fn ordered_from(&self) -> Option<usize> {
        None
    }

    fn way(&self) -> String {
        format!("the {} keys by SCAN and their values by MGET, over a fresh connection", self.of)
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::TcpListener;

    use clock::Clock;

    use super::*;

    /// Claim: a server whose SCAN goes on for ever and gives no key is left after a number of rounds, sooner where the run is
    /// to stop, and the error says so.
    #[test]
    fn scans_without_end() {
        for (is_stopped, rounds_max, words) in
            [(false, 50, "neither in 50 rounds"), (true, u32::MAX, "the run is to stop")]
        {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let address = listener.local_addr().unwrap();
            let server = std::thread::spawn(move || {
                let (mut stream, _) = listener.accept().unwrap();
                let mut asked = [0; 512];
                while stream.read(&mut asked).is_ok_and(|count| count > 0) {
                    stream.write_all(b"*2\r\n$1\r\n7\r\n*0\r\n").unwrap();
                }
            });
            let control = Control::open(address, Clock::start()).unwrap();
            let mut keys = Keys::new(control, 7, "server's", Arc::new(is_stopped.into()));
            keys.rounds_max = rounds_max;
            let error = keys.next(&mut Vec::new()).unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
            drop(keys);
            server.join().unwrap();
        }
    }
}
