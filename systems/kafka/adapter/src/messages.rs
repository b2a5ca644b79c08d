//! The requests that a trial needs and their answers (*Kafka protocol guide*), each in the last version that has no tagged
//! fields and that brokers from 2.4 to 4.x take. Values only: no socket, no time.

use model::{Class, Outcome};

use crate::wire::{Reader, Strange, Write};

/// A request's kind, and its version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Api {
    pub(crate) key: i16,
    pub(crate) version: i16,
    pub(crate) name: &'static str,
}

pub(crate) const PRODUCE: Api = Api { key: 0, version: 7, name: "Produce" };
pub(crate) const FETCH: Api = Api { key: 1, version: 11, name: "Fetch" };
pub(crate) const LIST_OFFSETS: Api = Api { key: 2, version: 5, name: "ListOffsets" };
pub(crate) const METADATA: Api = Api { key: 3, version: 4, name: "Metadata" };
pub(crate) const API_VERSIONS: Api = Api { key: 18, version: 0, name: "ApiVersions" };
pub(crate) const CREATE_TOPICS: Api = Api { key: 19, version: 4, name: "CreateTopics" };
pub(crate) const DELETE_TOPICS: Api = Api { key: 20, version: 1, name: "DeleteTopics" };
pub(crate) const INIT_PRODUCER_ID: Api = Api { key: 22, version: 1, name: "InitProducerId" };

/// All of them.
pub(crate) const APIS: [Api; 8] = [
    PRODUCE,
    FETCH,
    LIST_OFFSETS,
    METADATA,
    API_VERSIONS,
    CREATE_TOPICS,
    DELETE_TOPICS,
    INIT_PRODUCER_ID,
];

/// The only partition of a trial's topic.
const PARTITION: i32 = 0;

/// How long a broker may wait for others before it refuses, milliseconds: shorter than what is called an unknown outcome.
const BROKER_PATIENCE_MS: i32 = 30_000;

/// Begins a request, up to its body; [`Write::end`] with what this gives ends it.
pub(crate) fn begin(api: Api, correlation: i32, out: &mut Vec<u8>) -> usize {
    let begun = out.begin();
    out.i16(api.key);
    out.i16(api.version);
    out.i32(correlation);
    out.text("assay");
    begun
}

/// An error of the protocol by its number: 0 is none.
pub(crate) type Code = i16;

pub(crate) const UNKNOWN_TOPIC: Code = 3;
pub(crate) const TOPIC_EXISTS: Code = 36;

/// Errors that producing may meet, by name, and what each says of a record.
const CODES: [(Code, &str, Outcome); 20] = {
    const BAD: Outcome = Outcome::Rejected(Class::BadRequest);
    const SERVER: Outcome = Outcome::Rejected(Class::Server);
    [
        // The broker does not say if it was written.
        (-1, "UNKNOWN_SERVER_ERROR", Outcome::Unknown),
        (2, "CORRUPT_MESSAGE", BAD),
        // The leader may have had it before it lost the partition; the next one may have it then.
        (3, "UNKNOWN_TOPIC_OR_PARTITION", Outcome::Unknown),
        (5, "LEADER_NOT_AVAILABLE", SERVER),
        (6, "NOT_LEADER_OR_FOLLOWER", Outcome::Unknown),
        // The leader has it, and others may get it.
        (7, "REQUEST_TIMED_OUT", Outcome::Unknown),
        (10, "MESSAGE_TOO_LARGE", BAD),
        (14, "COORDINATOR_LOAD_IN_PROGRESS", SERVER),
        (15, "COORDINATOR_NOT_AVAILABLE", SERVER),
        (18, "RECORD_LIST_TOO_LARGE", BAD),
        (19, "NOT_ENOUGH_REPLICAS", SERVER),
        // The same.
        (20, "NOT_ENOUGH_REPLICAS_AFTER_APPEND", Outcome::Unknown),
        (21, "INVALID_REQUIRED_ACKS", BAD),
        (41, "NOT_CONTROLLER", SERVER),
        (42, "INVALID_REQUEST", BAD),
        (45, "OUT_OF_ORDER_SEQUENCE_NUMBER", Outcome::Rejected(Class::Conflict)),
        (56, "KAFKA_STORAGE_ERROR", Outcome::Unknown),
        (59, "UNKNOWN_PRODUCER_ID", Outcome::Rejected(Class::Conflict)),
        (87, "INVALID_RECORD", BAD),
        (89, "THROTTLING_QUOTA_EXCEEDED", Outcome::Rejected(Class::Limited)),
    ]
};

/// An error in words, and the outcome of a record that meets it.
pub(crate) fn meaning(code: Code) -> (&'static str, Outcome) {
    let known = CODES.iter().find(|(known, ..)| *known == code);
    known.map_or(("an error", Outcome::Unknown), |(_, name, outcome)| (*name, *outcome))
}

/// An error in words, with its number.
pub(crate) fn words(code: Code) -> String {
    format!("{} ({code})", meaning(code).0)
}

/// Produces a batch, which `batch` writes, with acknowledgement by `acks`: 0 none, 1 the leader, -1 all in sync.
pub(crate) fn produce(
    (correlation, acks): (i32, i16),
    topic: &str,
    batch: impl FnOnce(&mut Vec<u8>),
    out: &mut Vec<u8>,
) {
    let begun = begin(PRODUCE, correlation, out);
    out.i16(-1);
    out.i16(acks);
    out.i32(BROKER_PATIENCE_MS);
    out.count(1);
    out.text(topic);
    out.count(1);
    out.i32(PARTITION);
    let records = out.begin();
    batch(out);
    out.end(records);
    out.end(begun);
}

/// Produces nothing: a question that a broker answers after it has dealt with all that came before on the connection.
pub(crate) fn produce_nothing(correlation: i32, out: &mut Vec<u8>) {
    let begun = begin(PRODUCE, correlation, out);
    out.i16(-1);
    out.i16(1);
    out.i32(BROKER_PATIENCE_MS);
    out.count(0);
    out.end(begun);
}

/// The answer to [`produce`] or [`produce_nothing`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Produced {
    /// Of the batch; `None`: there was none.
    pub(crate) code: Option<Code>,
}

/// Reads the answer of a topic.
pub(crate) fn produced(mut reader: Reader<'_>, topic: &str) -> Result<Produced, Strange> {
    let mut code = None;
    let topics = reader.count()?;
    if topics > 1 {
        return Err(Strange("an answer of several topics"));
    }
    if topics == 1 {
        if reader.text()? != topic.as_bytes() {
            return Err(Strange("an answer of another topic"));
        }
        if reader.count()? != 1 || reader.i32()? != PARTITION {
            return Err(Strange("an answer of another partition"));
        }
        let error = reader.i16()?;
        let offset = reader.i64()?;
        // When it was appended, and the first offset of the partition.
        reader.take(16)?;
        if error == 0 && offset < 0 {
            return Err(Strange("an acknowledgement without an offset"));
        }
        code = Some(error);
    }
    reader.i32()?;
    reader.end()?;
    Ok(Produced { code })
}

/// Asks for a producer's number.
pub(crate) fn init_producer_id(correlation: i32, out: &mut Vec<u8>) {
    let begun = begin(INIT_PRODUCER_ID, correlation, out);
    no_transactions(out);
    out.end(begun);
}

/// The body of that: the producer has no transactions.
pub(crate) fn no_transactions(out: &mut Vec<u8>) {
    out.i16(-1);
    out.i32(-1);
}

/// Reads the answer: an error, the number and its epoch.
pub(crate) fn producer_id(mut reader: Reader<'_>) -> Result<(Code, i64, i16), Strange> {
    reader.i32()?;
    let answer = (reader.i16()?, reader.i64()?, reader.i16()?);
    reader.end()?;
    Ok(answer)
}

/// Reads which versions a broker takes: each kind's number, its first and its last.
pub(crate) fn api_versions(mut reader: Reader<'_>) -> Result<Vec<(i16, i16, i16)>, Strange> {
    reader.i16()?;
    let count = reader.count()?;
    let mut versions = Vec::new();
    for _ in 0..count {
        versions.push((reader.i16()?, reader.i16()?, reader.i16()?));
    }
    reader.end()?;
    Ok(versions)
}

/// Asks for the brokers and a topic.
pub(crate) fn metadata(topic: &str, out: &mut Vec<u8>) {
    out.count(1);
    out.text(topic);
    // It is not made by asking.
    out.i8(0);
}

/// The answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Cluster {
    /// Number, host and port.
    pub(crate) brokers: Vec<(i32, String, i32)>,
    /// The topic's error.
    pub(crate) code: Code,
    /// The broker that leads its partition; -1: none.
    pub(crate) leader: i32,
    pub(crate) replicas: Vec<i32>,
    pub(crate) in_sync: Vec<i32>,
}

/// Reads it.
pub(crate) fn cluster(mut reader: Reader<'_>) -> Result<Cluster, Strange> {
    reader.i32()?;
    let mut cluster = Cluster { leader: -1, ..Cluster::default() };
    for _ in 0..reader.count()? {
        let number = reader.i32()?;
        let host = String::from_utf8_lossy(reader.text()?).into_owned();
        let port = reader.i32()?;
        reader.nullable_text()?;
        cluster.brokers.push((number, host, port));
    }
    reader.nullable_text()?;
    reader.i32()?;
    for _ in 0..reader.count()? {
        cluster.code = reader.i16()?;
        reader.text()?;
        reader.i8()?;
        for _ in 0..reader.count()? {
            reader.i16()?;
            let is_ours = reader.i32()? == PARTITION;
            let leader = reader.i32()?;
            let mut members = || -> Result<Vec<i32>, Strange> {
                let count = reader.count()?;
                (0..count).map(|_| reader.i32()).collect()
            };
            let (replicas, in_sync) = (members()?, members()?);
            if is_ours {
                (cluster.leader, cluster.replicas, cluster.in_sync) = (leader, replicas, in_sync);
            }
        }
    }
    reader.end()?;
    Ok(cluster)
}

/// Makes a topic of one partition, with its replicas at these brokers, of which the first is to lead; or with so many
/// replicas, where no numbers of brokers are known.
pub(crate) fn create_topic(topic: &str, replicas: i16, brokers: &[i32], out: &mut Vec<u8>) {
    out.count(1);
    out.text(topic);
    if brokers.is_empty() {
        out.i32(1);
        out.i16(replicas);
        out.count(0);
    } else {
        out.i32(-1);
        out.i16(-1);
        out.count(1);
        out.i32(PARTITION);
        out.count(brokers.len());
        brokers.iter().for_each(|number| out.i32(*number));
    }
    out.count(0);
    out.i32(BROKER_PATIENCE_MS);
    out.i8(0);
}

/// Removes it.
pub(crate) fn delete_topic(topic: &str, out: &mut Vec<u8>) {
    out.count(1);
    out.text(topic);
    out.i32(BROKER_PATIENCE_MS);
}

/// Reads the beginning of an answer about one topic.
fn topic(reader: &mut Reader<'_>) -> Result<(), Strange> {
    if reader.count()? != 1 {
        return Err(Strange("an answer of another number of topics"));
    }
    reader.text().map(drop)
}

/// The same of its one partition.
fn partition(reader: &mut Reader<'_>) -> Result<(), Strange> {
    topic(reader)?;
    if reader.count()? != 1 || reader.i32()? != PARTITION {
        return Err(Strange("an answer of another partition"));
    }
    Ok(())
}

/// Reads the answer to [`create_topic`]: an error, and a broker's words.
pub(crate) fn topic_created(mut reader: Reader<'_>) -> Result<(Code, String), Strange> {
    reader.i32()?;
    topic(&mut reader)?;
    let code = reader.i16()?;
    let words = reader.nullable_text()?.unwrap_or_default();
    reader.end()?;
    Ok((code, String::from_utf8_lossy(words).into_owned()))
}

/// Asks the leader for the end of the partition: the offset after the last record that all in sync have. A leader that has
/// been elected does not say it until it knows (OFFSET_NOT_AVAILABLE).
pub(crate) fn list_end(topic: &str, out: &mut Vec<u8>) {
    const LATEST: i64 = -1;
    out.i32(-1);
    out.i8(0);
    out.count(1);
    out.text(topic);
    out.count(1);
    out.i32(PARTITION);
    out.i32(-1);
    out.i64(LATEST);
}

/// Reads the answer to [`list_end`].
pub(crate) fn listed_end(mut reader: Reader<'_>) -> Result<(Code, i64), Strange> {
    reader.i32()?;
    partition(&mut reader)?;
    let code = reader.i16()?;
    reader.i64()?;
    let end = reader.i64()?;
    reader.i32()?;
    reader.end()?;
    Ok((code, end))
}

/// Asks for records from an offset on. It waits a little where there are none.
pub(crate) fn fetch(topic: &str, offset: i64, bytes_max: i32, wait_ms: i32, out: &mut Vec<u8>) {
    out.i32(-1);
    out.i32(wait_ms);
    out.i32(1);
    out.i32(bytes_max);
    // Records of open transactions are read, too: there are none.
    out.i8(0);
    // No session of fetches.
    out.i32(0);
    out.i32(-1);
    out.count(1);
    out.text(topic);
    out.count(1);
    out.i32(PARTITION);
    out.i32(-1);
    out.i64(offset);
    out.i64(-1);
    out.i32(bytes_max);
    out.count(0);
    out.text("");
}

/// The answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fetched<'a> {
    pub(crate) code: Code,
    /// The offset after the last record that consumers are given.
    pub(crate) end: i64,
    /// Batches.
    pub(crate) records: &'a [u8],
}

/// Reads it.
pub(crate) fn fetched(mut reader: Reader<'_>) -> Result<Fetched<'_>, Strange> {
    reader.i32()?;
    let code = reader.i16()?;
    reader.i32()?;
    if code != 0 {
        return Ok(Fetched { code, end: -1, records: &[] });
    }
    partition(&mut reader)?;
    let code = reader.i16()?;
    let end = reader.i64()?;
    // The offset after the last transaction, and the first of the partition.
    reader.take(16)?;
    for _ in 0..reader.count()? {
        reader.take(16)?;
    }
    reader.i32()?;
    let records = reader.bytes()?;
    reader.end()?;
    Ok(Fetched { code, end, records })
}

/// The longest answer to an acknowledgement, a handshake or a question beside the load.
pub(crate) const ANSWER_BYTES_MAX: usize = 64 << 10;

/// The answer at the beginning of `bytes`: its request's number, its body, and how many bytes it takes; `None`: it is not
/// whole yet.
pub(crate) fn answer(
    bytes: &[u8],
    bytes_max: usize,
) -> Result<Option<(i32, Reader<'_>, usize)>, Strange> {
    let Some(length) = bytes.first_chunk::<4>() else { return Ok(None) };
    let length = usize::try_from(i32::from_be_bytes(*length)).unwrap_or(usize::MAX);
    if !(4..=bytes_max).contains(&length) {
        return Err(Strange("a length of no answer"));
    }
    let Some(body) = bytes.get(4..4 + length) else { return Ok(None) };
    let mut reader = Reader(body);
    let correlation = reader.i32()?;
    Ok(Some((correlation, reader, 4 + length)))
}
