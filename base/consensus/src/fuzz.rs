//! Entry points for fuzzing: bytes from a peer and from a damaged file. What can be read is asserted to be written as the
//! same bytes, in one piece and in two; and a replica made of any records, and told any messages, must not panic and must
//! deliver in order.

use std::time::Duration;

use clock::Instant;

use crate::config::Config;
use crate::effects::{Effect, Effects, Input};
use crate::ids::{Instance, Members, ReplicaId};
use crate::message::Message;
use crate::record::Record;
use crate::replica::Replica;
use crate::value::Value;

/// Any bytes as a message, as a record, and as pieces behind lengths of one byte: those that are records are the log of a
/// replica, and those that are messages are told to it.
///
/// # Panics
/// If what was read is written differently, or the replica delivers out of order.
pub fn fuzz_consensus(bytes: &[u8]) {
    check_bytes(bytes);
    let mut pieces = Vec::new();
    let mut rest = bytes;
    while let Some((length, behind)) = rest.split_first() {
        let (piece, behind) = behind.split_at(behind.len().min((*length).into()));
        pieces.push(piece);
        rest = behind;
    }
    let messages: Vec<Message> =
        pieces.iter().filter_map(|piece| Message::decode(piece).ok()).collect();
    let records = pieces.into_iter().filter(|piece| Record::decode(piece).is_ok());
    let id = ReplicaId(0);
    let members = Members::new(&[id]).expect("one is enough");
    if let Ok(replica) = Replica::recover(Config::new(id, members), 0, records) {
        live(replica, messages);
    }
}

fn check_bytes(bytes: &[u8]) {
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
}

/// Tells a replica everything that it can be told, one after the other; a third of a second passes before each.
fn live(mut replica: Replica, messages: Vec<Message>) {
    let mut now = Instant::ZERO;
    let mut delivered = replica.delivered();
    let mut inputs = vec![Input::Wake];
    for (id, message) in (0..).zip(messages) {
        let from = message.ballot().replica;
        inputs.push(Input::Received { from, message });
        inputs.push(Input::Wake);
        inputs.push(Input::Propose { id, value: Value::from(&[]) });
        inputs.push(Input::Read { id });
    }
    for input in inputs {
        now = now.plus(Duration::from_millis(300));
        step(&mut replica, now, input, &mut delivered);
        let through = replica.next_record;
        step(&mut replica, now, Input::Persisted { through }, &mut delivered);
    }
}

fn step(replica: &mut Replica, now: Instant, input: Input, delivered: &mut Instance) {
    let mut out = Effects::default();
    replica.step(now, input, &mut out);
    let mut installed = None;
    for effect in out.drain() {
        match effect {
            Effect::Deliver { instance, .. } => {
                assert_eq!(instance, *delivered + 1, "delivered out of order");
                *delivered = instance;
            }
            Effect::InstallPart { through, is_last: true, .. } => installed = Some(through),
            _ => {}
        }
    }
    if let Some(through) = installed {
        *delivered = through;
        step(replica, now, Input::SnapshotInstalled { through }, delivered);
    }
}
