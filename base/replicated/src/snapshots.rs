//! Snapshots: which is in which cell, the one that may be sent to others, and the one that comes.
//!
//! A cell's content is the instance that the snapshot ends with (u64, little-endian) and the snapshot.

use std::collections::VecDeque;

use consensus::{Instance, Value};
use process::Stored;

/// Two cells, written in turn.
pub(crate) const CELLS: usize = 2;

/// What a cell's content is on its way to being.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Made here.
    Made,
    /// Sent by a leader.
    Installed,
}

#[derive(Debug)]
pub(crate) struct Snapshots {
    /// The first of the two cells.
    first_cell: usize,
    /// Which snapshot each holds durably.
    held: [Option<Instance>; CELLS],
    /// What is being written where.
    writing: Option<(usize, Instance, Kind, Value)>,
    /// What is to be written behind it.
    waiting: VecDeque<(Instance, Kind, Value)>,
    /// The latest durable one.
    current: Option<(Instance, Value)>,
    /// The one that the log's durable head names: its cell is not touched.
    named: Option<Instance>,
    /// What has come of one that is sent here.
    incoming: Vec<u8>,
}

impl Snapshots {
    pub(crate) fn new(first_cell: usize, stored: &Stored) -> Self {
        let held = std::array::from_fn(|cell| {
            stored
                .cells
                .get(first_cell + cell)
                .and_then(|content| split(content.as_deref()?))
                .map(|it| it.0)
        });
        Self {
            first_cell,
            held,
            writing: None,
            waiting: VecDeque::new(),
            current: None,
            named: None,
            incoming: Vec::new(),
        }
    }

    /// The stored snapshot that ends with `through`; it is then the current one.
    pub(crate) fn load(&mut self, through: Instance, stored: &Stored) -> Option<Value> {
        let cell = self.held.iter().position(|held| *held == Some(through))?;
        let (_, bytes) = split(stored.cells[self.first_cell + cell].as_deref()?)?;
        let value = Value::from(bytes);
        self.current = Some((through, value.clone()));
        self.named = Some(through);
        Some(value)
    }

    /// Takes one that is to be written, at once or behind the one that is being written.
    pub(crate) fn push(&mut self, through: Instance, bytes: Value, kind: Kind) {
        self.waiting.push_back((through, kind, bytes));
    }

    /// Begins to write the next one. Gives the cell and its content; nothing while another is being written or no cell is
    /// free.
    pub(crate) fn write(&mut self) -> Option<(usize, Vec<u8>)> {
        let current = self.current.as_ref().map(|(through, _)| *through);
        // The log's durable head may name the current one or any before it, as far as their records have come: until it
        // names the current one, no cell is free.
        let is_settled = current.is_none() || current == self.named;
        if self.writing.is_some() || self.waiting.is_empty() || !is_settled {
            return None;
        }
        // The current one may stand in both cells: made once more, or made where one was installed that ends with the same
        // entry. One of them is enough, or else no cell would ever be free again.
        let keeps = self.held.iter().position(|held| held.is_some() && *held == current);
        let cell = (0..CELLS).find(|cell| Some(*cell) != keeps)?;
        let (through, kind, bytes) = self.waiting.pop_front()?;
        self.held[cell] = None;
        let content = [&through.to_le_bytes()[..], &bytes].concat();
        self.writing = Some((cell, through, kind, bytes));
        Some((self.first_cell + cell, content))
    }

    /// The log's head names this one, durably: those before it are not needed.
    pub(crate) fn named(&mut self, through: Instance) {
        self.named = Some(through);
    }

    /// A cell is durable. Gives what that means.
    pub(crate) fn written(&mut self, cell: usize) -> Option<(Instance, Kind)> {
        let (at, through, kind, bytes) =
            self.writing.take_if(|it| self.first_cell + it.0 == cell)?;
        self.held[at] = Some(through);
        // One that was asked for before a later one was installed is of no use any more.
        if self.current.as_ref().is_none_or(|(current, _)| *current < through) {
            self.current = Some((through, bytes));
        }
        Some((through, kind))
    }

    pub(crate) fn is_its(&self, cell: usize) -> bool {
        (self.first_cell..self.first_cell + CELLS).contains(&cell)
    }

    /// A part of the current one, and whether it is the last.
    pub(crate) fn part(
        &self,
        through: Instance,
        offset: u64,
        bytes_max: u32,
    ) -> Option<(Value, bool)> {
        let (_, bytes) = self.current.as_ref().filter(|(current, _)| *current == through)?;
        let start = usize::try_from(offset).ok().filter(|start| *start <= bytes.len())?;
        let end = bytes.len().min(start + usize::try_from(bytes_max).ok()?);
        Some((Value::from(&bytes[start..end]), end == bytes.len()))
    }

    /// A part of one that is sent here. Gives the whole with its last part.
    pub(crate) fn incoming(&mut self, offset: u64, bytes: &[u8], is_last: bool) -> Option<Value> {
        if offset == 0 {
            self.incoming.clear();
        }
        self.incoming.extend_from_slice(bytes);
        is_last.then(|| Value::from(std::mem::take(&mut self.incoming)))
    }
}

fn split(content: &[u8]) -> Option<(Instance, &[u8])> {
    let (through, bytes) = content.split_first_chunk::<8>()?;
    Some((Instance::from_le_bytes(*through), bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn snapshot(through: Instance) -> Value {
        Value::from(&through.to_le_bytes()[..])
    }

    /// Claim: while the log's durable head may still name an earlier snapshot than the current one, no cell is written over:
    /// also where no head has named any yet, and two of them are on their way.
    #[test]
    fn no_cell_is_written_over_that_the_log_may_name() {
        let mut snapshots = Snapshots::new(0, &Stored::default());
        snapshots.push(313, snapshot(313), Kind::Made);
        let (first, _) = snapshots.write().unwrap();
        assert_eq!(snapshots.written(first), Some((313, Kind::Made)));
        for through in [600, 900] {
            snapshots.push(through, snapshot(through), Kind::Made);
            assert_eq!(snapshots.write(), None, "the head that names 313 is not durable");
        }
        snapshots.named(313);
        let (second, content) = snapshots.write().unwrap();
        assert!(second != first && content[..8] == 600_u64.to_le_bytes());
        assert_eq!(snapshots.written(second), Some((600, Kind::Made)));
        assert_eq!(snapshots.write(), None, "the head may name 313 or 600");
        snapshots.named(600);
        assert_eq!(snapshots.write().unwrap().0, first);
    }

    /// Claim: one that was made before a later one was installed takes nothing from that, and does not stand in the way.
    #[test]
    fn an_earlier_one_stands_in_nobodys_way() {
        let mut snapshots = Snapshots::new(0, &Stored::default());
        snapshots.push(500, snapshot(500), Kind::Installed);
        snapshots.push(200, snapshot(200), Kind::Made);
        let (first, _) = snapshots.write().unwrap();
        snapshots.written(first);
        snapshots.named(500);
        let (second, _) = snapshots.write().unwrap();
        assert_eq!(snapshots.written(second), Some((200, Kind::Made)));
        assert_eq!(snapshots.part(500, 0, 100), Some((snapshot(500), true)));
        snapshots.push(900, snapshot(900), Kind::Made);
        assert_eq!(snapshots.write().unwrap().0, second);
    }

    /// Claim: the same one twice, made again or made where it was installed, leaves a cell free; so does a disk that holds it
    /// twice.
    #[test]
    fn the_same_one_twice_blocks_nothing() {
        for kind in [Kind::Made, Kind::Installed] {
            let mut snapshots = Snapshots::new(0, &Stored::default());
            snapshots.push(500, snapshot(500), kind);
            snapshots.push(500, snapshot(500), Kind::Made);
            let (first, _) = snapshots.write().unwrap();
            snapshots.written(first);
            snapshots.named(500);
            let (second, content) = snapshots.write().unwrap();
            assert_ne!(second, first);
            snapshots.written(second);
            let stored =
                Stored { cells: vec![Some(content.clone()), Some(content)], ..Stored::default() };
            let mut again = Snapshots::new(0, &stored);
            assert_eq!(again.load(500, &stored), Some(snapshot(500)));
            for mut snapshots in [snapshots, again] {
                for through in [900, 1_300] {
                    snapshots.push(through, snapshot(through), Kind::Made);
                    let (cell, content) = snapshots.write().expect("a cell is free");
                    assert_eq!(content[..8], through.to_le_bytes());
                    snapshots.written(cell);
                    snapshots.named(through);
                }
                assert_eq!(snapshots.part(1_300, 0, 100), Some((snapshot(1_300), true)));
            }
        }
    }
}
