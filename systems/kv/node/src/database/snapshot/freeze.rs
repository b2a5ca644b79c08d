//! A snapshot that is being written of a database that goes on: what it was of all that changes before it is its turn.
//!
//! Units are written in a fixed order. Before one that is still to come changes for the first time, its records are written
//! aside; when it is its turn they take its place and their memory is free again. So each unit is written once, sooner or
//! later, and what is kept is at most what changes meanwhile. Of a list that only grows its length is kept.

use std::collections::HashMap;

use crc32fast::Hasher as Crc;

use super::aside::{Aside, Records};
use super::unit::{ListThen, Unit};
use super::{CHUNK_BYTES, MAGIC, framed, key, record, session};
use crate::database::Database;
use crate::database::hash::BuildMix;
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
    kept_sessions: HashMap<usize, Records, BuildMix>,
    /// Version and entries of tables that have changed.
    kept_tables: HashMap<u32, (u64, usize), BuildMix>,
    kept: HashMap<(u32, usize), Kept, BuildMix>,
    aside: Aside,
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
            kept_sessions: HashMap::default(),
            kept_tables: HashMap::default(),
            kept: HashMap::default(),
            aside: Aside::default(),
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
        framed(out, |out| {
            while out.len() - start < CHUNK_BYTES && !self.is_over() {
                let record = out.len();
                self.write_record(tables, sessions, out);
                self.checksum.update(&out[record..]);
            }
            if self.is_over() {
                out.push(record::END);
                out.extend_from_slice(&self.checksum.clone().finalize().to_le_bytes());
            }
        });
    }

    pub(super) fn write_record(&mut self, tables: &Tables, sessions: &Sessions, out: &mut Vec<u8>) {
        if let Some(rest) = self.rest.take() {
            self.rest = self.aside.next(rest, out);
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
                    Some(kept) => self.rest = self.aside.next(kept, out),
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
            Some(Kept::Records(records)) => {
                self.rest = self.aside.next(records, out);
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
                    self.aside.keep(|out| {
                        session(sessions.at(place), out);
                        false
                    })
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
        self.aside.bytes()
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
            if let Some(mut unit) = self.unit.take_if(|unit| is_it(unit) && !stays(unit)) {
                self.rest = Some(self.aside.keep(|out| {
                    unit.next(tables, out);
                    !unit.is_over()
                }));
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
            _ => {
                let mut unit: Option<Unit> = None;
                Kept::Records(self.aside.keep(|out| {
                    match &mut unit {
                        Some(unit) => unit.next(tables, out),
                        None => unit = Some(Unit::begin(tables, table, entry, then, out)),
                    }
                    unit.as_ref().is_some_and(|unit| !unit.is_over())
                }))
            }
        };
        self.kept.insert((table, entry), kept);
    }
}

fn of(table: &Table) -> (u64, usize) {
    (table.version, table.root.entries().len())
}
