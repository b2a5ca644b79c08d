//! Entry points for fuzzing: bytes from a peer and from a damaged file. What can be read is asserted to be written as the
//! same bytes, in one piece and in two, and a replica made of any records must not panic.

use crate::config::Config;
use crate::ids::{Members, ReplicaId};
use crate::message::Message;
use crate::record::Record;
use crate::replica::Replica;

/// Any bytes as a message, as a record, and as a log of records behind lengths of one byte.
///
/// # Panics
/// If what was read is written differently.
pub fn fuzz_consensus(bytes: &[u8]) {
    if let Ok(message) = Message::decode(bytes) {
        let mut written = Vec::new();
        message.encode_head(&mut written);
        for body in message.bodies() {
            written.extend_from_slice(body);
        }
        assert_eq!(written, bytes, "{message:?} is written differently");
    }
    if let Ok(record) = Record::decode(bytes) {
        let mut written = Vec::new();
        record.encode(&mut written);
        assert_eq!(written, bytes, "{record:?} is written differently");
    }
    let mut records = Vec::new();
    let mut rest = bytes;
    while let Some((length, behind)) = rest.split_first() {
        let (record, behind) = behind.split_at(behind.len().min((*length).into()));
        records.push(record);
        rest = behind;
    }
    let id = ReplicaId(0);
    if let Some(members) = Members::new(&[id]) {
        drop(Replica::recover(Config::new(id, members), 0, records));
    }
}
