//! A snapshot that is being written of a database that goes on: what it was of all that changes before it is its turn.
//!
//! Units are written in a fixed order. Before one that is still to come changes for the first time, its records are written
//! aside; when it is its turn they take its place and their memory is free again. So each unit is written once, sooner or
//! later, and what is kept is at most what changes meanwhile. Of a list that only grows its length is kept.

use std::collections::BTreeMap;

use crc32fast::Hasher as Crc;

use super::unit::{ListThen, Records, Unit};
use super::{CHUNK_BYTES, MAGIC, key, record, session};
use crate::database::Database;
use crate::database::map::Value;
use crate::database::sessions::Sessions;
use crate::database::tables::{Table, Tables};
use crate::database::transaction::Path;

/// The kind of change that a transaction makes at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::database) enum Change {
    /// It appends to a list.
    Append,
    /// It takes it out.
    Delete,
    /// Anything else.
    Other,
}

/// Records of a unit that were written aside, or the length of a list.
#[derive(Debug)]
enum Kept {
    Records(Records),
    List(ListThen),
}

/// Where the writer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Head,
    Sessions(usize),
    Tables(u32),
    Over,
}

/// A table that is being written.
#[derive(Clone, Copy, Debug)]
struct Open {
    entries: usize,
    next: usize,
}

/// A database as it was.
#[derive(Debug)]
pub struct Freeze {
    /// Position, repeated, and the three of the sessions.
    numbers: [u64; 5],
    sessions: usize,
    tables: u32,
    stage: Stage,
    open: Option<Open>,
    unit: Option<Unit>,
    /// Records of the unit that is being written, where it has changed since.
    rest: Option<Records>,
    kept_sessions: BTreeMap<usize, Vec<u8>>,
    /// Version and entries of tables that have changed.
    kept_tables: BTreeMap<u32, (u64, usize)>,
    kept: BTreeMap<(u32, usize), Kept>,
    checksum: Crc,
}

impl Freeze {
    /// The database as it is now.
    #[must_use]
    pub fn new(database: &Database) -> Self {
        let [cursor, forgotten_to, forgotten] = database.sessions.counters();
        let tables = database.tables.all().len();
        Self {
            numbers: [database.position, database.repeated, cursor, forgotten_to, forgotten],
            sessions: database.sessions.all().len(),
            tables: u32::try_from(tables).expect("memory ends before"),
            stage: Stage::Head,
            open: None,
            unit: None,
            rest: None,
            kept_sessions: BTreeMap::new(),
            kept_tables: BTreeMap::new(),
            kept: BTreeMap::new(),
            checksum: Crc::new(),
        }
    }

    /// Its tables alone.
    pub(super) fn of_tables(database: &Database) -> Self {
        Self { stage: Stage::Tables(0), ..Self::new(database) }
    }

    /// Whether all of it is written.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.stage == Stage::Over
    }

    /// Appends the next chunk to `out`.
    pub(in crate::database) fn next_chunk(
        &mut self,
        tables: &Tables,
        sessions: &Sessions,
        out: &mut Vec<u8>,
    ) {
        let start = out.len();
        out.extend_from_slice(&[0; 4]);
        while out.len() - start < CHUNK_BYTES && !self.is_over() {
            let record = out.len();
            self.write_record(tables, sessions, out);
            self.checksum.update(&out[record..]);
        }
        if self.is_over() {
            out.push(record::END);
            out.extend_from_slice(&self.checksum.clone().finalize().to_le_bytes());
        }
        let length = u32::try_from(out.len() - start - 4).expect("bounded above");
        out[start..start + 4].copy_from_slice(&length.to_le_bytes());
    }

    pub(super) fn write_record(&mut self, tables: &Tables, sessions: &Sessions, out: &mut Vec<u8>) {
        if let Some(rest) = &mut self.rest {
            if !rest.next(out) {
                self.rest = None;
            }
        } else if let Some(unit) = self.unit.as_mut().filter(|unit| !unit.is_over()) {
            unit.next(tables, out);
        } else {
            self.unit = None;
            self.write_stage(tables, sessions, out);
        }
    }

    fn write_stage(&mut self, tables: &Tables, sessions: &Sessions, out: &mut Vec<u8>) {
        match self.stage {
            Stage::Head => {
                out.push(record::HEAD);
                out.extend_from_slice(MAGIC);
                self.numbers.iter().for_each(|it| out.extend_from_slice(&it.to_le_bytes()));
                self.stage = Stage::Sessions(0);
            }
            Stage::Sessions(at) if at == self.sessions => self.stage = Stage::Tables(0),
            Stage::Sessions(at) => {
                match self.kept_sessions.remove(&at) {
                    Some(kept) => out.extend_from_slice(&kept),
                    None => session(sessions.at(at), out),
                }
                self.stage = Stage::Sessions(at + 1);
            }
            Stage::Tables(at) if at == self.tables => self.stage = Stage::Over,
            Stage::Tables(at) => self.write_table(at, tables, out),
            Stage::Over => {}
        }
    }

    /// The next record of a table: its head, the first of a unit, or its end.
    fn write_table(&mut self, at: u32, tables: &Tables, out: &mut Vec<u8>) {
        let Some(open) = &mut self.open else {
            let table = tables.at(at);
            let (version, entries) = self.kept_tables.remove(&at).unwrap_or(of(table));
            key(out, record::TABLE, &table.name, version);
            self.open = Some(Open { entries, next: 0 });
            return;
        };
        if open.next == open.entries {
            out.push(record::MAP_END);
            self.open = None;
            self.stage = Stage::Tables(at + 1);
            return;
        }
        let entry = open.next;
        open.next += 1;
        let then = match self.kept.remove(&(at, entry)) {
            Some(Kept::Records(mut records)) => {
                self.rest = records.next(out).then_some(records);
                return;
            }
            Some(Kept::List(then)) => Some(then),
            None => None,
        };
        self.unit = Some(Unit::begin(tables, at, entry, then, out));
    }

    /// Sessions are about to change: that of `client`, or those in whose place it may come.
    pub(in crate::database) fn before_session(&mut self, sessions: &Sessions, client: u64) {
        let begun = match self.stage {
            Stage::Head => 0,
            Stage::Sessions(at) => at,
            Stage::Tables(_) | Stage::Over => return,
        };
        for place in sessions.places_of(client) {
            if (begun..self.sessions).contains(&place) {
                self.kept_sessions.entry(place).or_insert_with(|| {
                    let mut bytes = Vec::new();
                    session(sessions.at(place), &mut bytes);
                    bytes
                });
            }
        }
    }

    /// The value at a path of a table is about to change.
    pub(in crate::database) fn before_change(
        &mut self,
        tables: &Tables,
        table: u32,
        path: &Path<'_>,
        change: Change,
    ) {
        let Some(first) = path.maps().next().or(path.key) else { return };
        let is_passed = match self.stage {
            Stage::Head | Stage::Sessions(_) => false,
            Stage::Tables(at) => table < at,
            Stage::Over => true,
        };
        if is_passed || table >= self.tables {
            return;
        }
        let is_open = self.stage == Stage::Tables(table) && self.open.is_some();
        let now = tables.at(table);
        if !is_open {
            self.kept_tables.entry(table).or_insert_with(|| of(now));
        }
        let Some(entry) = now.root.place(first) else { return };
        let is_in_map = path.maps().next().is_some();
        let change = if is_in_map { Change::Other } else { change };
        self.before_unit(tables, table, entry, change);
        if change == Change::Delete {
            // The last one takes its place.
            self.before_unit(tables, table, now.root.entries().len() - 1, change);
        }
    }

    /// Bytes that are kept.
    #[cfg(test)]
    pub(super) fn kept_bytes(&self) -> usize {
        let units = self.kept.values().map(|kept| match kept {
            Kept::Records(records) => records.bytes(),
            Kept::List(_) => 0,
        });
        units.sum::<usize>() + self.kept_sessions.values().map(Vec::len).sum::<usize>()
    }

    fn before_unit(&mut self, tables: &Tables, table: u32, entry: usize, change: Change) {
        let is_its = |_: &&Open| self.stage == Stage::Tables(table);
        let (next, entries) = match self.open.as_ref().filter(is_its) {
            Some(open) => (open.next, open.entries),
            None => (0, self.kept_tables.get(&table).map_or(0, |kept| kept.1)),
        };
        if entry >= entries {
            return;
        }
        if entry < next {
            let is_it = |unit: &Unit| unit.entry == entry && !unit.is_over();
            let stays = |unit: &Unit| change == Change::Append && unit.is_list();
            if let Some(unit) = self.unit.take_if(|unit| is_it(unit) && !stays(unit)) {
                self.rest = Some(unit.rest(tables));
            }
            return;
        }
        let then = match self.kept.get(&(table, entry)) {
            Some(Kept::Records(_)) => return,
            Some(Kept::List(_)) if change == Change::Append => return,
            Some(Kept::List(then)) => Some(*then),
            None => None,
        };
        let now = &tables.at(table).root.entries()[entry];
        let kept = match &now.value {
            Value::List(list) if change == Change::Append => {
                Kept::List(ListThen { version: now.version, length: list.length() })
            }
            _ => Kept::Records(Unit::whole(tables, table, entry, then)),
        };
        self.kept.insert((table, entry), kept);
    }
}

fn of(table: &Table) -> (u64, usize) {
    (table.version, table.root.entries().len())
}
