//! The ledger: the trial's keys in the order of the revisions at which they were made, from another member than
//! the load began with, as they are at one revision: that of the first range, which the member answers once it knows that it
//! lags none (a linearizable read). It goes through the JSON gateway, so that it shares no code with the session.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;

use clock::Clock;
use model::TxId;
use model::facts::LedgerEntry;
use serde_json::{Value, json};
use sut::content::letters;
use sut::{Ledger, SutError};

use crate::gateway::{base64, bytes_of};
use crate::keys::{prefix, transaction};
use crate::members::ask;

/// Keys of one range.
const PART: u32 = 2_000;

/// The keys being read.
pub(crate) struct Keys {
    member: SocketAddr,
    clock: Clock,
    run_mark: u64,
    prefix: String,
    /// The revision of the first part, at which the others are read; 0 before it: the newest.
    revision: u64,
    /// The revision that the next part begins at; `None`: all were read.
    next: Option<u64>,
    held: VecDeque<(LedgerEntry, Vec<u8>)>,
}

impl Keys {
    /// The keys at a member, whose first part is read at once: a member that cannot serve says so.
    pub(crate) fn new(member: SocketAddr, run_mark: u64, clock: Clock) -> io::Result<Self> {
        let (prefix, held) = (prefix(run_mark), VecDeque::new());
        let mut keys = Self { member, clock, run_mark, prefix, revision: 0, next: Some(1), held };
        keys.more()?;
        Ok(keys)
    }

    fn more(&mut self) -> io::Result<()> {
        let Some(from) = self.next else { return Ok(()) };
        let text = |bytes: &[u8]| {
            let mut out = Vec::new();
            base64(bytes, &mut out);
            String::from_utf8(out).expect("letters")
        };
        // The end of a range is the first key that has no such beginning.
        let mut end = self.prefix.clone().into_bytes();
        if let Some(last) = end.last_mut() {
            *last += 1;
        }
        let body = json!({
            "key": text(self.prefix.as_bytes()), "range_end": text(&end), "limit": PART.to_string(),
            "min_create_revision": from.to_string(), "sort_target": "CREATE", "sort_order": "ASCEND",
            "revision": self.revision.to_string(),
        });
        let answer = ask(self.member, "/v3/kv/range", &body.to_string(), self.clock)?;
        if self.revision == 0 {
            self.revision = number(&answer["header"], "revision")
                .ok_or_else(|| io::Error::other("a range without a revision"))?;
        }
        let found = answer["kvs"].as_array().cloned().unwrap_or_default();
        let mut last = from;
        for key in &found {
            let entry = self.entry(key);
            let (entry, held, times) =
                entry.ok_or_else(|| io::Error::other(format!("a key that is none: {key}")))?;
            if entry.position < last {
                return Err(io::Error::other(format!(
                    "expected keys made at revision {last} or later, got one of {}; a member that orders none by revision \
                     cannot be read",
                    entry.position
                )));
            }
            last = entry.position;
            // A key that was put more than once is there once, and says so: twice is enough to be a duplicate.
            for _ in 0..times.min(2) {
                self.held.push_back((entry, held.clone()));
            }
        }
        let is_all = answer["more"].as_bool() != Some(true);
        if !is_all && found.is_empty() {
            return Err(io::Error::other(format!(
                "no key from revision {from} on, and more of them"
            )));
        }
        // Nothing is made after the last revision that there can be.
        self.next = if is_all { None } else { last.checked_add(1) };
        Ok(())
    }

    fn entry(&self, key: &Value) -> Option<(LedgerEntry, Vec<u8>, u64)> {
        let name = bytes_of(key["key"].as_str()?)?;
        // A value of no bytes is left out.
        let held = bytes_of(key["value"].as_str().unwrap_or_default())?;
        let tx = transaction(&name, &self.prefix);
        let mut right = Vec::new();
        letters(self.run_mark, tx.unwrap_or(TxId::MAX), held.len(), &mut right);
        let is_ours = tx.is_some() && right == held;
        let entry =
            LedgerEntry::new(number(key, "create_revision")?, tx.unwrap_or(TxId::MAX), is_ours);
        // A key that is there has been put.
        let times = number(key, "version").filter(|times| *times > 0)?;
        Some((entry, held, times))
    }
}

/// A number of 64 bits.
fn number(of: &Value, name: &str) -> Option<u64> {
    of[name].as_str()?.parse().ok()
}

impl Ledger for Keys {
    fn next(&mut self, content: &mut Vec<u8>) -> Result<Option<LedgerEntry>, SutError> {
        while self.held.is_empty() {
            if self.next.is_none() {
                return Ok(None);
            }
            self.more().map_err(|error| SutError::Ledger(format!("reading the keys: {error}")))?;
        }
        let Some((entry, mut held)) = self.held.pop_front() else { return Ok(None) };
        content.append(&mut held);
        Ok(Some(entry))
    }

    fn way(&self) -> String {
        format!(
            "the keys at revision {} by linearizable ranges from the member at {}, in the order of their revisions",
            self.revision, self.member
        )
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::TcpListener;

    use super::*;

    /// A member that answers the questions of one reading with these pages, one after the other; gives the questions.
    fn member(pages: Vec<Value>) -> (SocketAddr, std::thread::JoinHandle<Vec<Value>>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let member = listener.local_addr().unwrap();
        let answer = move |page: Value| {
            let (mut stream, _) = listener.accept().unwrap();
            let mut asked = String::new();
            while !asked.ends_with('}') {
                let mut some = [0; 4096];
                let count = stream.read(&mut some).unwrap();
                asked.push_str(std::str::from_utf8(&some[..count]).unwrap());
            }
            let body = page.to_string();
            write!(stream, "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len())
                .unwrap();
            serde_json::from_str(asked.split("\r\n\r\n").nth(1).unwrap()).unwrap()
        };
        (member, std::thread::spawn(move || pages.into_iter().map(answer).collect()))
    }

    /// A page with the key of transaction `tx`, made at this revision and put so often.
    fn page(tx: &str, revision: &str, version: &str, is_last: bool) -> Value {
        let mut key = Vec::new();
        base64(format!("{}{tx:0>16}", prefix(7)).as_bytes(), &mut key);
        let key = String::from_utf8(key).unwrap();
        json!({
            "header": {"revision": revision}, "more": !is_last,
            "kvs": [{"key": key, "create_revision": revision, "version": version}],
        })
    }

    /// Everything that a member of these pages holds.
    fn read(pages: &[Value]) -> Result<Vec<(TxId, u64)>, String> {
        let (member, server) = member(pages.to_vec());
        let mut keys = Keys::new(member, 7, Clock::start()).map_err(|error| error.to_string())?;
        let mut found = Vec::new();
        while let Some(entry) = keys.next(&mut Vec::new()).map_err(|error| error.to_string())? {
            found.push((entry.tx, entry.position));
        }
        server.join().unwrap();
        Ok(found)
    }

    /// Claim: a key that was put more than once stands there twice, however often the member says that it was.
    #[test]
    fn keys_that_were_put_often() {
        let of = |version| read(&[page("10", "10", version, true)]);
        assert_eq!(of("1"), Ok(vec![(0x10, 10)]));
        for version in ["2", "3", "18446744073709551615"] {
            assert_eq!(of(version), Ok(vec![(0x10, 10), (0x10, 10)]), "{version}");
        }
        assert!(of("0").is_err() && of("many").is_err());
    }

    /// Claim: a member that does not get on is left with an error: the same page again, none where there are more, and none can
    /// follow the last revision.
    #[test]
    fn pages_that_repeat() {
        let first = page("10", "10", "1", false);
        let error = read(&[first.clone(), first.clone()]).unwrap_err();
        assert!(error.contains("revision 11 or later, got one of 10"), "{error}");
        let none = json!({"header": {"revision": "10"}, "more": true});
        let error = read(&[first, none]).unwrap_err();
        assert!(error.contains("no key from revision 11 on"), "{error}");
        let last = u64::MAX.to_string();
        assert_eq!(read(&[page("10", &last, "1", false)]), Ok(vec![(0x10, u64::MAX)]));
    }

    /// Claim: all parts are read at the revision of the first, so that a put which ends while they are read is in all or in none.
    #[test]
    fn one_revision() {
        let (member, server) =
            member(vec![page("10", "10", "1", false), page("99", "99", "1", true)]);
        let mut keys = Keys::new(member, 7, Clock::start()).unwrap();
        let mut found = Vec::new();
        while let Some(entry) = keys.next(&mut Vec::new()).unwrap() {
            found.push((entry.tx, entry.position));
        }
        assert_eq!(found, [(0x10, 10), (0x99, 99)]);
        let [first, second] = server.join().unwrap().try_into().unwrap();
        assert_eq!((&first["revision"], &first["min_create_revision"]), (&json!("0"), &json!("1")));
        let expected = (&json!("10"), &json!("11"));
        assert_eq!((&second["revision"], &second["min_create_revision"]), expected);
    }
}
