//! A bucket: it keeps what it is given under a name, and has it only once it is durable; what it has it never overwrites. Some
//! lie.

use std::collections::{BTreeMap, VecDeque};

use clock::Instant;
use object_ledger_node::pieces::Piece;
use object_ledger_node::protocol::{PAYLOAD_BYTES_MAX, next_frame, write_frame};
use process::{Connection, Input, Node, Outputs, Stored};

pub const PUT: u8 = 0x40;
pub const GET: u8 = 0x41;
pub const KEPT: u8 = 0xC0;
pub const HAS: u8 = 0xC1;
pub const NONE: u8 = 0xC2;

struct Writing {
    record: u64,
    connection: Connection,
    id: u64,
    name: String,
    piece: Vec<u8>,
}

/// How a bucket lies, all the time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lie {
    /// It says that it keeps, and keeps nothing.
    Forgets,
    /// It has nothing of anything.
    Hides,
    /// It gives pieces of its own, with hashes that fit.
    MakesUp,
    /// It gives bytes that are none.
    Garbles,
}

impl Lie {
    pub const ALL: [Self; 4] = [Self::Forgets, Self::Hides, Self::MakesUp, Self::Garbles];
}

#[derive(Default)]
pub struct Bucket {
    objects: BTreeMap<String, Vec<u8>>,
    lie: Option<Lie>,
    writing: VecDeque<Writing>,
}

/// Name and bytes behind its length (1 byte).
pub fn named<'a>(name: &'a str, length: &'a [u8; 1], piece: &'a [u8]) -> [&'a [u8]; 3] {
    [length, name.as_bytes(), piece]
}

fn parts(record: &[u8]) -> (String, Vec<u8>) {
    let (name, piece) = record[1..].split_at(record[0].into());
    (String::from_utf8(name.to_vec()).expect("names are text"), piece.to_vec())
}

impl Bucket {
    pub fn new(stored: &Stored, lie: Option<Lie>) -> Self {
        let mut objects = BTreeMap::new();
        for (name, piece) in stored.logs[0].iter().map(|(_, record)| parts(record)) {
            objects.entry(name).or_insert(piece);
        }
        Self { objects, lie, writing: VecDeque::new() }
    }

    /// Its own word for its contents.
    pub fn get(&self, name: &str) -> Option<Vec<u8>> {
        let piece = self.objects.get(name)?;
        match self.lie {
            None => Some(piece.clone()),
            Some(Lie::Forgets | Lie::Hides) => None,
            Some(Lie::MakesUp) => Some(Piece::made_up(piece)),
            Some(Lie::Garbles) => Some(piece.iter().map(|byte| byte ^ 0x55).collect()),
        }
    }
}

impl Node for Bucket {
    fn step(&mut self, _: Instant, input: Input<'_>, out: &mut Outputs) {
        match input {
            Input::Persisted { below, .. } => {
                while self.writing.front().is_some_and(|it| it.record < below) {
                    let it = self.writing.pop_front().expect("looked");
                    self.objects.entry(it.name).or_insert(it.piece);
                    write_frame(out.send(it.connection), KEPT, it.id, &[]);
                }
            }
            Input::Bytes(connection, bytes) => {
                let mut used = 0;
                while let Some(frame) =
                    next_frame(&bytes[used..], PAYLOAD_BYTES_MAX).expect("nodes send frames")
                {
                    used += frame.used;
                    let id = frame.id;
                    if frame.kind == PUT && self.lie == Some(Lie::Forgets) {
                        write_frame(out.send(connection), KEPT, id, &[]);
                        continue;
                    }
                    if frame.kind == PUT {
                        let record = out.append(0, frame.payload);
                        let (name, piece) = parts(frame.payload);
                        self.writing.push_back(Writing { record, connection, id, name, piece });
                        continue;
                    }
                    let (name, _) = parts(frame.payload);
                    match self.get(&name) {
                        Some(piece) => write_frame(out.send(connection), HAS, id, &[&piece]),
                        None => write_frame(out.send(connection), NONE, id, &[]),
                    }
                }
                out.used(used);
            }
            _ => {}
        }
    }
}
