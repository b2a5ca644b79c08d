//! Carries out one transaction: all of its operations, or none.

use super::map::Value;
use super::results::{self, Results};
use super::snapshot::{Change as Changes, Freeze};
use super::tables::{Change, Done, Table, Tables, look};
use super::transaction::{Action, Literal, Malformed, Operation, Path, TABLES_MAX, Transaction};
use super::{RESULT_BYTES_MAX, Status};

/// The longest result that is kept where nothing that needs memory is done.
const FULL_RESULT_BYTES_MAX: usize = 128;

/// No table of this name was there when it was last looked for.
const NOWHERE: u32 = u32::MAX;

/// What a transaction is carried out on.
pub struct Execution<'d> {
    pub tables: &'d mut Tables,
    /// Comes and goes empty; kept for its memory.
    pub undo: &'d mut Vec<Change>,
    /// The transaction's own position.
    pub position: u64,
    /// Whether nothing that needs memory may be done.
    pub is_full: bool,
    /// The snapshot that is being written, if one is.
    pub frozen: Option<&'d mut Freeze>,
}

/// A transaction's tables: their names, and where they are.
struct Named<'a> {
    names: [&'a [u8]; TABLES_MAX],
    places: [u32; TABLES_MAX],
}

impl<'a> Named<'a> {
    fn of(transaction: &Transaction<'a>, tables: &Tables, hint: u32) -> Self {
        let mut named = Self { names: [&[]; TABLES_MAX], places: [NOWHERE; TABLES_MAX] };
        for (name, at) in transaction.tables().zip(0..) {
            named.names[at] = name;
            let hint = if at == 0 { hint } else { NOWHERE };
            named.places[at] = tables.find(name, hint).unwrap_or(NOWHERE);
        }
        named
    }

    /// The place of a table; one that was not there is looked for again, because an operation may have made it under
    /// another of the transaction's names for it.
    fn find(&mut self, table: u8, tables: &Tables) -> Option<u32> {
        let at = usize::from(table);
        if self.places[at] == NOWHERE {
            self.places[at] = tables.find(self.names[at], NOWHERE).unwrap_or(NOWHERE);
        }
        Some(self.places[at]).filter(|place| *place != NOWHERE)
    }
}

impl Execution<'_> {
    /// Carries it out and appends its result. `hint` is where its first table may be; where it is comes back.
    pub fn run(mut self, bytes: &[u8], hint: u32, out: &mut Vec<u8>) -> (Status, u32) {
        let Ok(transaction) = Transaction::read(bytes) else {
            results::write_failed(out, Status::Invalid, self.position, 0);
            return (Status::Invalid, hint);
        };
        let mut named = Named::of(&transaction, self.tables, hint);
        let bytes_before = self.tables.bytes();
        let bytes_max = if self.is_full { FULL_RESULT_BYTES_MAX } else { RESULT_BYTES_MAX };
        let count = transaction.operation_count();
        let mut results = Results::begin(out, self.position, count, bytes_max);
        let mut operations = transaction.operations();
        let mut number = 0;
        let failed = loop {
            match operations.next() {
                Err(Malformed) => break Some(Status::Invalid),
                Ok(None) => break None,
                Ok(Some(operation)) => {
                    if let Err(why) = self.step(&operation, number, &mut named, &mut results) {
                        break Some(why);
                    }
                }
            }
            number += 1;
        };
        if let Some(status) = failed {
            self.take_back(&transaction, bytes_before);
            let status = match status {
                // The result would have been kept.
                Status::ResultTooLong if self.is_full => Status::Full,
                status => status,
            };
            results.failed(status, self.position, number);
            return (status, hint);
        }
        for change in self.undo.drain(..) {
            self.tables.let_go(change.done);
        }
        let first = named.places[0];
        (Status::Done, if first == NOWHERE { hint } else { first })
    }

    fn step(
        &mut self,
        operation: &Operation<'_>,
        number: u8,
        named: &mut Named<'_>,
        results: &mut Results<'_>,
    ) -> Result<(), Status> {
        if operation.action.is_read() {
            let table = named.find(operation.table, self.tables).map(|at| self.tables.at(at));
            return read_step(table, operation, results);
        }
        if self.is_full && !operation.action.frees() {
            return Err(Status::Full);
        }
        let place = match named.find(operation.table, self.tables) {
            Some(place) => place,
            None if matches!(operation.action, Action::Delete) => {
                results.done();
                return Ok(());
            }
            None => self.make(operation.table, number, named),
        };
        let (version, path) = (self.position, &operation.path);
        if let Some(frozen) = &mut self.frozen {
            let change = match operation.action {
                Action::Append(_) => Changes::Append,
                Action::Delete => Changes::Delete,
                _ => Changes::Other,
            };
            frozen.before_change(self.tables, place, path, change);
        }
        let mut sum = None;
        let done = match &operation.action {
            Action::Put(value) => self.tables.store(place, path, value, true, version)?,
            Action::Store(value) => self.tables.store(place, path, value, false, version)?,
            Action::Append(value) => self.tables.append(place, path, value, version)?,
            Action::Delete => self.tables.delete(place, path)?,
            Action::Add { amount, floor } => {
                let (new, done) = self.tables.add(place, path, *amount, *floor, version)?;
                sum = Some(new);
                done
            }
            Action::Get | Action::CheckValue(_) | Action::CheckVersion(_) => {
                unreachable!("reads were carried out above")
            }
        };
        if !matches!(done, Done::Nothing) {
            let table = self.tables.at_mut(place);
            let before = std::mem::replace(&mut table.version, version);
            self.undo.push(Change { operation: number, table: place, version: before, done });
        }
        match sum {
            Some(sum) => results.value(version, &Value::Integer(sum)),
            None => {
                results.done();
                Ok(())
            }
        }
    }

    fn make(&mut self, table: u8, number: u8, named: &mut Named<'_>) -> u32 {
        let at = usize::from(table);
        let place = self.tables.make(named.names[at], self.position);
        named.places[at] = place;
        let done = Done::TableMade;
        self.undo.push(Change { operation: number, table: place, version: 0, done });
        place
    }

    fn take_back(&mut self, transaction: &Transaction<'_>, bytes_before: u64) {
        while let Some(change) = self.undo.pop() {
            let path = path_of(transaction, change.operation);
            self.tables.take_back(change, &path);
        }
        self.tables.recount(bytes_before);
    }
}

/// The path of a transaction's operation that was read before.
fn path_of<'a>(transaction: &Transaction<'a>, number: u8) -> Path<'a> {
    let mut operations = transaction.operations();
    for _ in 0..number {
        let _ = operations.next();
    }
    match operations.next() {
        Ok(Some(operation)) => operation.path,
        _ => unreachable!("it was carried out before"),
    }
}

/// Carries out a transaction that only reads.
pub fn read(tables: &Tables, position: u64, bytes: &[u8], out: &mut Vec<u8>) -> Status {
    let Ok(transaction) = Transaction::read(bytes) else {
        results::write_failed(out, Status::Invalid, position, 0);
        return Status::Invalid;
    };
    let mut named = Named::of(&transaction, tables, NOWHERE);
    let count = transaction.operation_count();
    let mut results = Results::begin(out, position, count, RESULT_BYTES_MAX);
    let mut operations = transaction.operations();
    for number in 0..=transaction.operation_count() {
        let status = match operations.next() {
            Ok(None) => break,
            Ok(Some(operation)) if operation.action.is_read() => {
                let table = named.find(operation.table, tables).map(|at| tables.at(at));
                read_step(table, &operation, &mut results).err()
            }
            Ok(Some(_)) | Err(Malformed) => Some(Status::Invalid),
        };
        if let Some(status) = status {
            results.failed(status, position, number);
            return status;
        }
    }
    Status::Done
}

fn read_step(
    table: Option<&Table>,
    operation: &Operation<'_>,
    results: &mut Results<'_>,
) -> Result<(), Status> {
    let path = &operation.path;
    let Some(key) = path.key else { return read_root(table, operation, results) };
    let found = match table {
        Some(table) => look(&table.root, path, key)?,
        None => None,
    };
    match &operation.action {
        Action::CheckValue(expected) => {
            let is_met = is_value(found.map(|entry| &entry.value), expected);
            results.checked(is_met)
        }
        Action::CheckVersion(expected) => {
            results.checked(found.map_or(0, |entry| entry.version) == *expected)
        }
        _ => match found {
            Some(entry) => results.value(entry.version, &entry.value),
            None => {
                results.absent();
                Ok(())
            }
        },
    }
}

/// What is asked of a whole table.
fn read_root(
    table: Option<&Table>,
    operation: &Operation<'_>,
    results: &mut Results<'_>,
) -> Result<(), Status> {
    match (&operation.action, table) {
        (Action::CheckVersion(expected), _) => {
            results.checked(table.map_or(0, |table| table.version) == *expected)
        }
        (Action::CheckValue(Literal::Absent), _) => results.checked(table.is_none()),
        (Action::CheckValue(Literal::Map), Some(table)) => {
            results.checked(table.root.entries().is_empty())
        }
        (Action::CheckValue(_), _) => results.checked(false),
        (_, Some(table)) => results.map(table.version, &table.root),
        (_, None) => {
            results.absent();
            Ok(())
        }
    }
}

/// Whether what is there is what was demanded; of lists and maps only whether they are empty can be.
fn is_value(found: Option<&Value>, expected: &Literal<'_>) -> bool {
    match (found, expected) {
        (None, Literal::Absent) => true,
        (Some(Value::Integer(found)), Literal::Integer(expected)) => found == expected,
        (Some(Value::String(found)), Literal::String(expected))
        | (Some(Value::Bytes(found)), Literal::Bytes(expected)) => found.bytes() == *expected,
        (Some(Value::List(list)), Literal::List) => list.elements() == 0,
        (Some(Value::Map(map)), Literal::Map) => map.entries().is_empty(),
        _ => false,
    }
}
