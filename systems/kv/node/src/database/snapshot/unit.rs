//! A unit of a snapshot: an entry of a table's own map, with all that lies in it. It is written record by record.

use super::{PIECE_BYTES, key, record};
use crate::database::list::{Length, List};
use crate::database::map::{Entry, Map, Value};
use crate::database::tables::Tables;
use crate::database::transaction::Literal;

/// Version and length of a list when the snapshot began. Lists only grow at their end, so that is all there is to keep.
#[derive(Clone, Copy, Debug)]
pub(super) struct ListThen {
    pub(super) version: u64,
    pub(super) length: Length,
}

/// A unit that is being written.
#[derive(Debug)]
pub(super) struct Unit {
    table: u32,
    pub(super) entry: usize,
    /// Of each map on the way to what is written next, which of its entries is next.
    maps: Vec<usize>,
    list: Option<ListAt>,
}

/// Where in a list the next piece begins, and how much of the list is left.
#[derive(Debug)]
struct ListAt {
    segment: usize,
    offset: usize,
    left: u64,
}

impl Unit {
    /// Appends its first record to `out`. A list is written as it was `then`.
    pub(super) fn begin(
        tables: &Tables,
        table: u32,
        entry: usize,
        then: Option<ListThen>,
        out: &mut Vec<u8>,
    ) -> Self {
        let mut unit = Self { table, entry, maps: Vec::new(), list: None };
        unit.write_entry(root(tables, table, entry), then, out);
        unit
    }

    /// Whether all of it is written.
    pub(super) fn is_over(&self) -> bool {
        self.maps.is_empty() && self.list.is_none()
    }

    /// Whether it is a list of the table's own map: what is appended to it does not concern what is still to come.
    pub(super) fn is_list(&self) -> bool {
        self.maps.is_empty() && self.list.is_some()
    }

    /// Appends the next record to `out`.
    pub(super) fn next(&mut self, tables: &Tables, out: &mut Vec<u8>) {
        if self.list.is_some() {
            return self.write_piece(tables, out);
        }
        let Some(map) = self.map(tables) else { return };
        let at = self.maps.last_mut().expect("a map is open");
        let entry = map.entries().get(*at);
        *at += 1;
        match entry {
            Some(entry) => self.write_entry(entry, None, out),
            None => {
                self.maps.pop();
                out.push(record::MAP_END);
            }
        }
    }

    /// The innermost open map.
    fn map<'t>(&self, tables: &'t Tables) -> Option<&'t Map> {
        let (_, outer) = self.maps.split_last()?;
        let mut map = map_of(root(tables, self.table, self.entry))?;
        for next in outer {
            map = map_of(&map.entries()[next - 1])?;
        }
        Some(map)
    }

    /// The list that is being written.
    fn list<'t>(&self, tables: &'t Tables) -> Option<&'t List> {
        let entry = match self.maps.last() {
            None => root(tables, self.table, self.entry),
            Some(next) => &self.map(tables)?.entries()[next - 1],
        };
        match &entry.value {
            Value::List(list) => Some(list),
            _ => None,
        }
    }

    fn write_entry(&mut self, entry: &Entry, then: Option<ListThen>, out: &mut Vec<u8>) {
        let scalar = match &entry.value {
            Value::Integer(number) => Literal::Integer(*number),
            Value::String(text) => Literal::String(text.bytes()),
            Value::Bytes(text) => Literal::Bytes(text.bytes()),
            Value::List(list) => {
                let now = ListThen { version: entry.version, length: list.length() };
                let then = then.unwrap_or(now);
                key(out, record::LIST, &entry.key, then.version);
                out.extend_from_slice(&then.length.elements().to_le_bytes());
                self.list = Some(ListAt { segment: 0, offset: 0, left: then.length.bytes() });
                return;
            }
            Value::Map(_) => {
                key(out, record::MAP, &entry.key, entry.version);
                self.maps.push(0);
                return;
            }
        };
        key(out, record::SCALAR, &entry.key, entry.version);
        scalar.write(out);
    }

    /// Pieces are cut by bytes, not as segments happen to lie, so that the bytes say nothing of how a list came to be.
    fn write_piece(&mut self, tables: &Tables, out: &mut Vec<u8>) {
        let list = self.list(tables).expect("a unit that changes is kept as it was");
        let at = self.list.as_mut().expect("a list is open");
        let mut left = usize::try_from(at.left).unwrap_or(PIECE_BYTES).min(PIECE_BYTES);
        if left == 0 {
            out.push(record::LIST_END);
            self.list = None;
            return;
        }
        at.left -= left as u64;
        out.push(record::PIECE);
        out.extend_from_slice(&u32::try_from(left).expect("bounded").to_le_bytes());
        while left > 0 {
            let segment = list.segments().nth(at.segment).expect("a list has its bytes");
            let piece = &segment[at.offset..];
            let piece = &piece[..left.min(piece.len())];
            out.extend_from_slice(piece);
            left -= piece.len();
            at.offset += piece.len();
            // The last segment may have grown, but nothing of that is written.
            if left > 0 {
                (at.segment, at.offset) = (at.segment + 1, 0);
            }
        }
    }
}

fn root(tables: &Tables, table: u32, entry: usize) -> &Entry {
    &tables.at(table).root.entries()[entry]
}

fn map_of(entry: &Entry) -> Option<&Map> {
    match &entry.value {
        Value::Map(map) => Some(map),
        _ => None,
    }
}
