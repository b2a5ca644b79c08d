//! A database as naive as can be, which copies itself before each transaction, and random transactions for both.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng as _, SeedableRng as _};

use super::super::compose::Composer;
use super::super::fuzz::{contents_of, copy_of};
use super::super::results::{Given, GivenValue, ResultReader};
use super::super::transaction::{Literal, tag};
use super::super::{Applied, Database, Limits, Status};

/// A value.
#[derive(Clone, Debug, PartialEq)]
enum Naive {
    Integer(i64),
    String(Vec<u8>),
    Bytes(Vec<u8>),
    List(Vec<Naive>),
    Map(Entries),
}

/// Entries in their order: key, version, value.
type Entries = Vec<(Vec<u8>, u64, Naive)>;

#[derive(Clone, Debug)]
enum Act {
    Get,
    Put(Naive),
    Store(Naive),
    Append(Naive),
    Delete,
    CheckValue(Option<Naive>),
    CheckVersion(u64),
    Add(i64, i64),
}

#[derive(Clone, Debug)]
struct Op {
    table: u8,
    path: Vec<Vec<u8>>,
    act: Act,
}

/// What an operation gives.
#[derive(Debug, PartialEq)]
enum Gives {
    Done,
    Absent,
    Value(u64, Naive),
}

/// The naive database: its tables with versions.
#[derive(Clone, Debug, Default, PartialEq)]
struct Model {
    tables: Vec<(Vec<u8>, u64, Entries)>,
}

impl Model {
    fn run(
        &mut self,
        names: &[&[u8]],
        ops: &[Op],
        position: u64,
    ) -> Result<Vec<Gives>, (Status, u8)> {
        let before = self.clone();
        let mut gives = Vec::new();
        for (op, number) in ops.iter().zip(0..) {
            match self.step(names[usize::from(op.table)], op, position) {
                Ok(given) => gives.push(given),
                Err(why) => {
                    *self = before;
                    return Err((why, number));
                }
            }
        }
        Ok(gives)
    }

    fn step(&mut self, name: &[u8], op: &Op, position: u64) -> Result<Gives, Status> {
        let is_read = matches!(op.act, Act::Get | Act::CheckValue(_) | Act::CheckVersion(_));
        let mut found = self.tables.iter().position(|table| table.0 == name);
        if found.is_none() && !is_read {
            if matches!(op.act, Act::Delete) {
                return Ok(Gives::Done);
            }
            self.tables.push((name.to_vec(), position, Vec::new()));
            found = Some(self.tables.len() - 1);
        }
        let Some(place) = found else { return check(&op.act, None) };
        if is_read {
            let (_, version, root) = &self.tables[place];
            let whole = (*version, Naive::Map(root.clone()));
            return check(&op.act, descend(whole, &op.path)?);
        }
        let (_, version, root) = &mut self.tables[place];
        let (key, maps) = op.path.split_last().expect("writes have a key");
        let mut map = root;
        for step in maps {
            let known = map.iter().any(|entry| entry.0 == *step);
            if !known && matches!(op.act, Act::Put(_)) {
                map.push((step.clone(), position, Naive::Map(Vec::new())));
            }
            let entry = map.iter_mut().find(|entry| entry.0 == *step);
            match &mut entry.ok_or(Status::Missing)?.2 {
                Naive::Map(inner) => map = inner,
                _ => return Err(Status::WrongType),
            }
        }
        let at = map.iter().position(|entry| entry.0 == *key);
        let new = match (&op.act, at.map(|at| map[at].2.clone())) {
            (Act::Put(value) | Act::Store(value), _) => value.clone(),
            (Act::Append(value), None) => Naive::List(vec![value.clone()]),
            (Act::Append(value), Some(Naive::List(mut list))) => {
                list.push(value.clone());
                Naive::List(list)
            }
            (Act::Add(amount, floor), None | Some(Naive::Integer(_))) => {
                let now = match at.map(|at| &map[at].2) {
                    Some(Naive::Integer(now)) => *now,
                    _ => 0,
                };
                let sum = now.checked_add(*amount).filter(|sum| sum >= floor);
                Naive::Integer(sum.ok_or(Status::OutOfRange)?)
            }
            (Act::Delete, None) => return Ok(Gives::Done),
            (Act::Delete, Some(_)) => {
                map.swap_remove(at.expect("found"));
                *version = position;
                return Ok(Gives::Done);
            }
            _ => return Err(Status::WrongType),
        };
        match at {
            Some(at) => (map[at].1, map[at].2) = (position, new.clone()),
            None => map.push((key.clone(), position, new.clone())),
        }
        *version = position;
        Ok(if matches!(op.act, Act::Add(..)) { Gives::Value(position, new) } else { Gives::Done })
    }
}

fn descend(from: (u64, Naive), path: &[Vec<u8>]) -> Result<Option<(u64, Naive)>, Status> {
    let Some((key, rest)) = path.split_first() else { return Ok(Some(from)) };
    let Naive::Map(map) = from.1 else { return Err(Status::WrongType) };
    match map.into_iter().find(|entry| entry.0 == *key) {
        Some((_, version, value)) => descend((version, value), rest),
        None => Ok(None),
    }
}

fn check(act: &Act, found: Option<(u64, Naive)>) -> Result<Gives, Status> {
    let is_met = match act {
        Act::CheckVersion(version) => found.map_or(0, |found| found.0) == *version,
        Act::CheckValue(expected) => found.map(|found| found.1) == *expected,
        _ => {
            return Ok(found.map_or(Gives::Absent, |(version, value)| Gives::Value(version, value)));
        }
    };
    if is_met { Ok(Gives::Done) } else { Err(Status::CheckFailed) }
}

/// Random transactions, of few keys so that they meet.
struct Maker(Xoshiro256PlusPlus);

impl Maker {
    fn below(&mut self, bound: u64) -> u64 {
        self.0.next_u64() % bound
    }

    fn scalar(&mut self) -> Naive {
        let size = [1, 3, 22, 23, 70, 3000][usize::try_from(self.below(6)).unwrap()];
        match self.below(3) {
            0 => Naive::Integer(i64::try_from(self.below(5)).unwrap() - 2),
            1 => Naive::String(vec![b's'; size]),
            _ => Naive::Bytes(vec![7; size]),
        }
    }

    fn value(&mut self) -> Naive {
        match self.below(6) {
            0 => Naive::List(Vec::new()),
            1 | 2 => Naive::Map(Vec::new()),
            _ => self.scalar(),
        }
    }

    fn path(&mut self, least: u64) -> Vec<Vec<u8>> {
        let depth = [0, 1, 1, 1, 2, 2, 3][usize::try_from(self.below(7)).unwrap()].max(least);
        // One table has many keys, so that maps have an index.
        (0..depth)
            .map(|at| {
                let keys = if at == 0 { 24 } else { 3 };
                format!("k{}", self.below(keys)).into_bytes()
            })
            .collect()
    }

    fn op(&mut self, tables: u64, position: u64) -> Op {
        let table = u8::try_from(self.below(tables)).unwrap();
        let act = match self.below(16) {
            0..=2 => Act::Get,
            3 | 4 => Act::Put(self.value()),
            5..=7 => Act::Store(self.value()),
            8..=10 => Act::Append(self.scalar()),
            11 | 12 => Act::Delete,
            13 => Act::CheckValue((self.below(3) > 0).then(|| self.value())),
            14 => Act::CheckVersion(self.below(position + 2) * self.below(2)),
            _ => Act::Add(i64::try_from(self.below(9)).unwrap() - 4, -3),
        };
        let is_read = matches!(act, Act::Get | Act::CheckValue(_) | Act::CheckVersion(_));
        Op { table, path: self.path(u64::from(!is_read)), act }
    }
}

fn literal(value: &Naive) -> Literal<'_> {
    match value {
        Naive::Integer(number) => Literal::Integer(*number),
        Naive::String(bytes) => Literal::String(bytes),
        Naive::Bytes(bytes) => Literal::Bytes(bytes),
        Naive::List(_) => Literal::List,
        Naive::Map(_) => Literal::Map,
    }
}

fn compose(names: &[&[u8]], ops: &[Op]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut composer = Composer::begin(&mut out, names);
    for Op { table, path, act } in ops {
        let keys: Vec<&[u8]> = path.iter().map(Vec::as_slice).collect();
        let (table, keys) = (*table, &keys[..]);
        match act {
            Act::Get => composer.get(table, keys),
            Act::Put(value) => composer.put(table, keys, literal(value)),
            Act::Store(value) => composer.store(table, keys, literal(value)),
            Act::Append(value) => composer.append(table, keys, literal(value)),
            Act::Delete => composer.delete(table, keys),
            Act::CheckValue(value) => {
                let value = value.as_ref().map_or(Literal::Absent, literal);
                composer.check_value(table, keys, value)
            }
            Act::CheckVersion(version) => composer.check_version(table, keys, *version),
            Act::Add(amount, floor) => composer.add(table, keys, *amount, *floor),
        };
    }
    out
}

fn given(given: &Given<'_>) -> Gives {
    match given {
        Given::Done => Gives::Done,
        Given::Absent => Gives::Absent,
        Given::Value(version, value) => Gives::Value(*version, value_of(value)),
    }
}

fn value_of(value: &GivenValue<'_>) -> Naive {
    match value {
        GivenValue::Integer(number) => Naive::Integer(*number),
        GivenValue::String(bytes) => Naive::String(bytes.to_vec()),
        GivenValue::Bytes(bytes) => Naive::Bytes(bytes.to_vec()),
        GivenValue::List(count, bytes) => {
            let list = elements(bytes);
            assert_eq!(list.len(), *count as usize);
            Naive::List(list)
        }
        GivenValue::Map(entries) => {
            let entry = |(key, inside): &(&[u8], Given<'_>)| match given(inside) {
                Gives::Value(version, value) => (key.to_vec(), version, value),
                other => panic!("{other:?} in a map"),
            };
            Naive::Map(entries.iter().map(entry).collect())
        }
    }
}

fn elements(mut bytes: &[u8]) -> Vec<Naive> {
    let mut list = Vec::new();
    while let Some((kind, rest)) = bytes.split_first() {
        if *kind == tag::INTEGER {
            let (number, rest) = rest.split_first_chunk().unwrap();
            list.push(Naive::Integer(i64::from_le_bytes(*number)));
            bytes = rest;
            continue;
        }
        let (length, rest) = rest.split_first_chunk().unwrap();
        let (content, rest) = rest.split_at(u32::from_le_bytes(*length) as usize);
        let is_string = *kind == tag::STRING;
        let content = content.to_vec();
        list.push(if is_string { Naive::String(content) } else { Naive::Bytes(content) });
        bytes = rest;
    }
    list
}

fn read_result(bytes: &[u8]) -> (u64, Result<Vec<Gives>, (Status, u8)>) {
    let mut reader = ResultReader::read(bytes).unwrap();
    if reader.status != Status::Done {
        return (reader.position, Err((reader.status, reader.failed_operation)));
    }
    let mut gives = Vec::new();
    while let Some(next) = reader.next().unwrap() {
        gives.push(given(&next));
    }
    (reader.position, Ok(gives))
}

/// Claim: random transactions on few keys give, operation by operation, what a naive database gives that copies itself
/// before each; a failed one leaves no trace and says which operation failed; reads say the same without the log; and
/// a database that was written and read goes on the same.
#[test]
fn it_does_what_a_naive_database_does() {
    let names: [&[u8]; 3] = [b"one", b"a table with a name that is long", b"one"];
    let (mut failures, mut successes, mut most_entries) = (0, 0, 0);
    for seed in 0..60 {
        let mut maker = Maker(Xoshiro256PlusPlus::seed_from_u64(seed));
        let mut database = Database::new(Limits::default());
        let mut model = Model::default();
        for sequence in 1..=200 {
            let names = &names[..usize::try_from(1 + maker.below(3)).unwrap()];
            let count = 1 + maker.below(5);
            let make = |_| maker.op(names.len() as u64, sequence);
            let ops: Vec<Op> = (0..count).map(make).collect();
            let bytes = compose(names, &ops);
            let (mut out, mut read, mut scratch) = (Vec::new(), Vec::new(), model.clone());
            let read_status = database.read(&bytes, &mut read);
            let (before, counted) = (contents_of(&database), database.tables.bytes());
            let applied = database.apply(0, 9, sequence, &bytes, &mut out);
            let expected = model.run(names, &ops, sequence);
            let (position, result) = read_result(&out);
            assert_eq!((position, &result), (sequence, &expected), "seed {seed}: {ops:?}");
            match &expected {
                Ok(_) => successes += 1,
                Err((status, _)) => {
                    failures += 1;
                    assert_eq!(applied, Applied::Executed(*status));
                    assert!(before == contents_of(&database), "seed {seed}: a trace of {ops:?}");
                    assert_eq!(counted, database.tables.bytes());
                }
            }
            if Database::is_read_only(&bytes) {
                let expected = scratch.run(names, &ops, sequence);
                assert_eq!(read_result(&read), (sequence - 1, expected));
            } else {
                assert_ne!(read_status, Status::Done, "a read that writes: {ops:?}");
            }
            if sequence % 50 == 0 {
                let copy = copy_of(&database);
                assert_eq!((copy.digest(), copy.counts()), (database.digest(), database.counts()));
                database = copy;
            }
        }
        let entries = model.tables.iter().map(|table| table.2.len()).max().unwrap_or(0);
        most_entries = most_entries.max(entries);
    }
    assert!(failures > 1000 && successes > 1000, "{failures} failed and {successes} did not");
    assert!(most_entries > 16, "maps had at most {most_entries} entries: none had an index");
}
