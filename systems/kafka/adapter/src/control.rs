//! Questions to a broker beside the load, over a connection of its own, blocking and bounded in time; never used while
//! transactions are timed.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use clock::Clock;
use sut::asker::{Asker, connect};

use crate::messages::{self, Api, Cluster, Code};
use crate::wire::{Reader, Strange, Write as _};

/// The longest wait for a broker to take a connection or answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// The longest answer: the records of one question, and what stands around them.
const ANSWER_BYTES_MAX: usize = (1 << 20) + (64 << 10);

/// The most bytes of records that one question asks for. A broker sends at least one batch, which is bounded by its own
/// `message.max.bytes` at a mebibyte.
pub(crate) const FETCH_BYTES: i32 = 512 << 10;

/// How long a broker may wait for records that are not there yet, milliseconds.
const FETCH_WAIT_MS: i32 = 200;

/// A connection for questions.
pub(crate) struct Control {
    asker: Asker,
    asked: i32,
}

fn broken(Strange(why): Strange) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("the broker's answer: {why}"))
}

impl Control {
    /// Opens a connection to a broker that takes the versions which are used here.
    pub(crate) fn open(broker: SocketAddr, clock: Clock) -> io::Result<Self> {
        let asker = Asker::new(connect(broker, PATIENCE)?, clock);
        let mut control = Self { asker, asked: 0 };
        let versions = control.ask(messages::API_VERSIONS, |_| (), messages::api_versions)?;
        for Api { key, version, name } in messages::APIS {
            let range = versions.iter().find(|it| it.0 == key);
            if !range.is_some_and(|(_, first, last)| (first..=last).contains(&&version)) {
                let words = format!(
                    "expected a broker that takes {name} in version {version}, got one that does not"
                );
                return Err(io::Error::other(words));
            }
        }
        Ok(control)
    }

    /// Asks one question, whose body `write` appends, and reads its answer.
    fn ask<T>(
        &mut self,
        api: Api,
        write: impl FnOnce(&mut Vec<u8>),
        read: impl FnOnce(Reader<'_>) -> Result<T, Strange>,
    ) -> io::Result<T> {
        self.asked += 1;
        let mut out = Vec::new();
        let begun = messages::begin(api, self.asked, &mut out);
        write(&mut out);
        out.end(begun);
        self.asker.send(&out)?;
        loop {
            let answer = messages::answer(self.asker.unread(), ANSWER_BYTES_MAX).map_err(broken)?;
            if let Some((correlation, body, used)) = answer {
                if correlation != self.asked {
                    return Err(broken(Strange("another question's")));
                }
                let read = read(body).map_err(broken);
                self.asker.skip(used);
                return read;
            }
            self.asker.read()?;
        }
    }

    pub(crate) fn cluster(&mut self, topic: &str) -> io::Result<Cluster> {
        self.ask(messages::METADATA, |out| messages::metadata(topic, out), messages::cluster)
    }

    pub(crate) fn create_topic(
        &mut self,
        topic: &str,
        replicas: i16,
        brokers: &[i32],
    ) -> io::Result<(Code, String)> {
        let write = |out: &mut Vec<u8>| messages::create_topic(topic, replicas, brokers, out);
        self.ask(messages::CREATE_TOPICS, write, messages::topic_created)
    }

    /// Asks for a producer's number, as a connection of the load will. Gives the error.
    pub(crate) fn producer_id(&mut self) -> io::Result<Code> {
        let asked =
            self.ask(messages::INIT_PRODUCER_ID, messages::no_transactions, messages::producer_id)?;
        Ok(asked.0)
    }

    pub(crate) fn delete_topic(&mut self, topic: &str) -> io::Result<()> {
        let write = |out: &mut Vec<u8>| messages::delete_topic(topic, out);
        self.ask(messages::DELETE_TOPICS, write, |_| Ok(()))
    }

    /// The end of the partition, as its leader knows it.
    pub(crate) fn end(&mut self, topic: &str) -> io::Result<(Code, i64)> {
        let write = |out: &mut Vec<u8>| messages::list_end(topic, out);
        self.ask(messages::LIST_OFFSETS, write, messages::listed_end)
    }

    /// Reads records from an offset on; `read` is handed them with the offset after the last that consumers are given.
    pub(crate) fn fetch(
        &mut self,
        topic: &str,
        offset: i64,
        read: impl FnOnce(i64, &[u8]) -> Result<(), Strange>,
    ) -> io::Result<Code> {
        let write =
            |out: &mut Vec<u8>| messages::fetch(topic, offset, FETCH_BYTES, FETCH_WAIT_MS, out);
        self.ask(messages::FETCH, write, |body| {
            let fetched = messages::fetched(body)?;
            if fetched.code == 0 {
                read(fetched.end, fetched.records)?;
            }
            Ok(fetched.code)
        })
    }
}
