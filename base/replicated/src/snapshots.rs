//! Snapshots: which is in which cell, the one that is being made, and the one that comes. They are never in memory as a whole:
//! they go to the disk part by part, and what a follower is sent is read from there.
//!
//! A cell's content is the instance that the snapshot ends with (u64, little-endian) and the snapshot.

use std::collections::VecDeque;

use consensus::{Instance, ReplicaId, Value};
use process::{Outputs, Stored};

/// Two cells, written in turn.
pub(crate) const CELLS: usize = 2;

/// Bytes before the snapshot in its cell.
const HEAD_BYTES: u64 = 8;

/// What a cell's content is on its way to being.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Made here.
    Made,
    /// Sent by a leader.
    Installed,
}

/// A part of one that a leader sends.
#[derive(Debug)]
pub(crate) struct Incoming {
    pub(crate) through: Instance,
    pub(crate) offset: u64,
    pub(crate) bytes: Value,
    pub(crate) is_last: bool,
}

/// A part of the latest one that a follower is to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Asked {
    pub(crate) to: ReplicaId,
    pub(crate) through: Instance,
    pub(crate) offset: u64,
    cell: usize,
    /// How long the snapshot is.
    end: u64,
}

/// One on its way to the disk.
#[derive(Debug)]
struct Writing {
    cell: usize,
    through: Instance,
    kind: Kind,
    /// How much of it was given to the disk.
    bytes: u64,
    /// Parts that the disk has not told of.
    parts: usize,
    /// All of it was given to the disk.
    is_whole: bool,
}

#[derive(Debug)]
struct Held {
    cell: usize,
    through: Instance,
    bytes: u64,
}

#[derive(Debug)]
pub(crate) struct Snapshots {
    /// The first of the two cells.
    first_cell: usize,
    /// The latest durable one.
    current: Option<Held>,
    /// The one that the log's durable head names: its cell is not touched.
    named: Option<Instance>,
    writing: Option<Writing>,
    /// The log is long enough for one to be made.
    is_wanted: bool,
    /// Parts that came while no cell was free for them.
    incoming: VecDeque<Incoming>,
    /// By cell: parts that were given up, and that the disk will still tell of.
    given_up: [usize; CELLS],
    /// Reads from the disk under way.
    reads: Vec<Asked>,
}

impl Snapshots {
    pub(crate) fn new(first_cell: usize) -> Self {
        Self {
            first_cell,
            current: None,
            named: None,
            writing: None,
            is_wanted: false,
            incoming: VecDeque::new(),
            given_up: [0; CELLS],
            reads: Vec::new(),
        }
    }

    /// The stored snapshot that ends with `through`; it is then the current one.
    pub(crate) fn load<'s>(&mut self, through: Instance, stored: &'s Stored) -> Option<&'s [u8]> {
        let content = |cell: usize| split(stored.cells.get(self.first_cell + cell)?.as_deref()?);
        let is_it = |cell: &usize| content(*cell).is_some_and(|(there, _)| there == through);
        let cell = (0..CELLS).find(is_it)?;
        let (_, bytes) = content(cell)?;
        self.current = Some(Held { cell, through, bytes: bytes.len() as u64 });
        self.named = Some(through);
        Some(bytes)
    }

    /// The log is long enough for one to be made.
    pub(crate) fn want(&mut self) {
        self.is_wanted = true;
    }

    /// Whether one is to be made now; asked once for each.
    pub(crate) fn is_time(&mut self, is_installing: bool) -> bool {
        let is_time = self.is_wanted && !is_installing && self.free_cell().is_some();
        self.is_wanted &= !is_time;
        is_time
    }

    /// Takes the next part of one that is made here. Whether more of it is wanted: one that a leader sends goes before it,
    /// and it is asked for again later.
    pub(crate) fn part<M>(
        &mut self,
        through: Instance,
        bytes: &[u8],
        is_last: bool,
        out: &mut Outputs<M>,
    ) -> bool {
        let is_this = |it: &Writing| it.kind == Kind::Made && it.through == through && !it.is_whole;
        if !self.writing.as_ref().is_some_and(is_this) {
            let Some(cell) = self.free_cell().filter(|_| self.incoming.is_empty()) else {
                self.is_wanted = true;
                return false;
            };
            self.writing = Some(Writing::new(cell, through, Kind::Made));
        }
        self.write(bytes, is_last, out);
        !is_last
    }

    /// A part of one that a leader sends.
    pub(crate) fn incoming<M>(&mut self, part: Incoming, out: &mut Outputs<M>) {
        self.incoming.push_back(part);
        self.write_incoming(out);
    }

    /// Writes what has come, as far as a cell is free.
    pub(crate) fn write_incoming<M>(&mut self, out: &mut Outputs<M>) {
        while let Some(part) = self.incoming.front() {
            let (through, offset) = (part.through, part.offset);
            if offset == 0 {
                self.give_up(out);
            }
            let is_open = |it: &Writing| {
                it.kind == Kind::Installed && it.through == through && it.bytes == offset
            };
            match &self.writing {
                Some(writing) if writing.is_whole => return,
                Some(writing) if is_open(writing) => {}
                None if offset == 0 => {
                    let Some(cell) = self.free_cell() else { return };
                    self.writing = Some(Writing::new(cell, through, Kind::Installed));
                }
                // Of one that was given up.
                _ => {
                    self.incoming.pop_front();
                    continue;
                }
            }
            let Some(part) = self.incoming.pop_front() else { return };
            self.write(&part.bytes, part.is_last, out);
        }
    }

    /// Gives up what is being written, unless all of it was given to the disk.
    fn give_up<M>(&mut self, out: &mut Outputs<M>) {
        let Some(writing) = self.writing.take_if(|it| !it.is_whole) else { return };
        self.given_up[writing.cell] += writing.parts;
        self.is_wanted |= writing.kind == Kind::Made;
        out.drop_parts(self.first_cell + writing.cell);
    }

    fn write<M>(&mut self, bytes: &[u8], is_last: bool, out: &mut Outputs<M>) {
        let Some(writing) = &mut self.writing else { return };
        let cell = self.first_cell + writing.cell;
        let head = if writing.bytes == 0 { &writing.through.to_le_bytes()[..] } else { &[] };
        let content = [head, bytes].concat();
        writing.bytes += bytes.len() as u64;
        writing.is_whole = is_last;
        if is_last {
            out.replace(cell, content);
        } else {
            writing.parts += 1;
            out.extend(cell, content);
        }
    }

    /// A cell that may be written over. The log's durable head may name the current one or any before it, as far as their
    /// records have come: until it names the current one, no cell is free.
    fn free_cell(&self) -> Option<usize> {
        let through = self.current.as_ref().map(|held| held.through);
        let is_settled = through.is_none() || through == self.named;
        let keeps = self.current.as_ref().map(|held| held.cell);
        (0..CELLS)
            .find(|cell| Some(*cell) != keeps)
            .filter(|_| is_settled && self.writing.is_none())
    }

    /// The disk has written a part: whether the next one of what is made here is wanted.
    pub(crate) fn extended(&mut self, cell: usize) -> bool {
        let cell = cell - self.first_cell;
        if self.given_up[cell] > 0 {
            self.given_up[cell] -= 1;
            return false;
        }
        let Some(writing) = self.writing.as_mut().filter(|it| it.cell == cell) else {
            return false;
        };
        writing.parts -= 1;
        writing.kind == Kind::Made && writing.parts == 0 && !writing.is_whole
    }

    /// A cell is durable. Gives what that means.
    pub(crate) fn written(&mut self, cell: usize) -> Option<(Instance, Kind)> {
        let Writing { cell, through, kind, bytes, .. } =
            self.writing.take_if(|it| self.first_cell + it.cell == cell && it.is_whole)?;
        self.current = Some(Held { cell, through, bytes });
        self.is_wanted &= kind == Kind::Made;
        Some((through, kind))
    }

    /// The log's head names this one, durably: those before it are not needed.
    pub(crate) fn named(&mut self, through: Instance) {
        self.named = Some(through);
    }

    pub(crate) fn is_its(&self, cell: usize) -> bool {
        (self.first_cell..self.first_cell + CELLS).contains(&cell)
    }

    /// Reads a part of the current one for a follower.
    pub(crate) fn read<M>(
        &mut self,
        to: ReplicaId,
        through: Instance,
        offset: u64,
        bytes_max: u32,
        out: &mut Outputs<M>,
    ) {
        let Some(held) = self.current.as_ref().filter(|held| held.through == through) else {
            return;
        };
        let asked = Asked { to, through, offset, cell: held.cell, end: held.bytes };
        if offset <= held.bytes && !self.reads.contains(&asked) {
            self.reads.push(asked);
            let bytes_max = usize::try_from(bytes_max).unwrap_or(usize::MAX);
            out.read(self.first_cell + held.cell, HEAD_BYTES + offset, bytes_max);
        }
    }

    /// A part was read: what it is, and whether it is the last.
    pub(crate) fn was_read(
        &mut self,
        cell: usize,
        offset: u64,
        bytes: usize,
    ) -> Option<(Asked, bool)> {
        let is_it = |asked: &Asked| {
            (self.first_cell + asked.cell, HEAD_BYTES + asked.offset) == (cell, offset)
        };
        let place = self.reads.iter().position(is_it)?;
        let asked = self.reads.swap_remove(place);
        Some((asked, asked.offset + bytes as u64 >= asked.end))
    }
}

impl Writing {
    fn new(cell: usize, through: Instance, kind: Kind) -> Self {
        Self { cell, through, kind, bytes: 0, parts: 0, is_whole: false }
    }
}

fn split(content: &[u8]) -> Option<(Instance, &[u8])> {
    let (through, bytes) = content.split_first_chunk::<8>()?;
    Some((Instance::from_le_bytes(*through), bytes))
}

#[cfg(test)]
mod tests {
    use process::host::Store;

    use super::*;

    /// The orders to the disk since the last call.
    fn stores(out: &mut Outputs) -> Vec<Store> {
        let (mut stores, mut records) = (Vec::new(), Vec::new());
        out.take_stores(&mut stores, &mut records);
        stores
    }

    /// One that is made at once; the cell that it went to.
    fn made(snapshots: &mut Snapshots, through: Instance, out: &mut Outputs) -> Option<usize> {
        snapshots.part(through, b"content", true, out);
        match &stores(out)[..] {
            [Store::Replace { cell, content }] => {
                assert_eq!(content[..8], through.to_le_bytes());
                Some(*cell)
            }
            [] => None,
            other => panic!("{other:?}"),
        }
    }

    fn part(through: Instance, offset: u64, is_last: bool) -> Incoming {
        Incoming { through, offset, bytes: Value::from(b"part"), is_last }
    }

    /// Claim: while the log's durable head may still name an earlier snapshot than the current one, no cell is written over,
    /// and one that is wanted waits for that.
    #[test]
    fn no_cell_is_written_over_that_the_log_may_name() {
        let (mut snapshots, mut out) = (Snapshots::new(0), Outputs::default());
        let first = made(&mut snapshots, 313, &mut out).unwrap();
        assert_eq!(snapshots.written(first), Some((313, Kind::Made)));
        snapshots.want();
        assert!(!snapshots.is_time(false), "the head that names 313 is not durable");
        assert_eq!(made(&mut snapshots, 600, &mut out), None);
        snapshots.named(313);
        assert!(!snapshots.is_time(true) && snapshots.is_time(false) && !snapshots.is_time(false));
        let second = made(&mut snapshots, 600, &mut out).unwrap();
        assert_ne!(second, first);
        assert_eq!(snapshots.written(second), Some((600, Kind::Made)));
        assert_eq!(made(&mut snapshots, 900, &mut out), None, "the head may name 313 or 600");
        snapshots.named(600);
        assert_eq!(made(&mut snapshots, 900, &mut out), Some(first));
    }

    /// Claim: one that a leader sends goes before one that is being made, which is asked for again; what the disk still
    /// tells of the parts of that is not taken for the other's.
    #[test]
    fn what_a_leader_sends_goes_first() {
        let (mut snapshots, mut out) = (Snapshots::new(3), Outputs::default());
        assert!(snapshots.part(10, b"first", false, &mut out));
        snapshots.incoming(part(50, 0, false), &mut out);
        let asked = stores(&mut out);
        assert!(
            matches!(
                &asked[..],
                [
                    Store::Extend { cell: 3, .. },
                    Store::DropParts { cell: 3 },
                    Store::Extend { cell: 3, .. }
                ]
            ),
            "{asked:?}"
        );
        assert!(!snapshots.part(10, b"second", false, &mut out) && stores(&mut out).is_empty());
        assert!(!snapshots.extended(3) && !snapshots.extended(3));
        snapshots.incoming(part(50, 4, true), &mut out);
        assert!(matches!(&stores(&mut out)[..], [Store::Replace { cell: 3, .. }]));
        assert!(!snapshots.is_time(false), "a cell is being written");
        assert_eq!(snapshots.written(3), Some((50, Kind::Installed)));
        snapshots.named(50);
        assert!(!snapshots.is_time(false), "the installed one is as good");
    }

    /// Claim: what comes while a whole one becomes durable waits for that, and for the log to name it.
    #[test]
    fn what_comes_waits_for_a_cell() {
        let (mut snapshots, mut out) = (Snapshots::new(0), Outputs::default());
        let first = made(&mut snapshots, 10, &mut out).unwrap();
        snapshots.incoming(part(50, 0, false), &mut out);
        snapshots.incoming(part(50, 4, true), &mut out);
        snapshots.written(first);
        snapshots.write_incoming(&mut out);
        assert!(stores(&mut out).is_empty());
        snapshots.named(10);
        snapshots.write_incoming(&mut out);
        let asked = stores(&mut out);
        assert!(
            matches!(&asked[..], [Store::Extend { cell: 1, .. }, Store::Replace { cell: 1, .. }]),
            "{asked:?}"
        );
    }

    /// Claim: a part is read from the cell that holds the current one, once however often it is asked for, and the last one
    /// is told as such; the same snapshot in both cells blocks nothing.
    #[test]
    fn parts_are_read() {
        let content = [&500_u64.to_le_bytes()[..], b"abcdefg"].concat();
        let stored =
            Stored { cells: vec![Some(content.clone()), Some(content)], ..Stored::default() };
        let (mut snapshots, mut out) = (Snapshots::new(0), Outputs::default());
        assert_eq!(snapshots.load(500, &stored), Some(&b"abcdefg"[..]));
        assert_eq!(snapshots.load(501, &stored), None);
        for _ in 0..2 {
            snapshots.read(ReplicaId(1), 500, 4, 100, &mut out);
        }
        snapshots.read(ReplicaId(1), 499, 0, 100, &mut out);
        assert_eq!(stores(&mut out), [Store::Read { cell: 0, offset: 12, bytes_max: 100 }]);
        let (asked, is_last) = snapshots.was_read(0, 12, 3).unwrap();
        assert_eq!((asked.to, asked.offset, is_last), (ReplicaId(1), 4, true));
        assert_eq!(snapshots.was_read(0, 12, 3), None);
        assert_eq!(made(&mut snapshots, 900, &mut out), Some(1));
    }
}
