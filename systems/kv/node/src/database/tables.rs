//! Tables by name, and what an operation does to one. Each change gives what takes it back; changes are taken back in
//! the reverse order, so each finds the state that it left.

use std::collections::HashMap;

use super::Status;
use super::hash::BuildMix;
use super::list::{Length, List};
use super::map::{Entry, Map, Value};
use super::text::Text;
use super::transaction::{Literal, Path};

/// What a table's place counts for in the bound on memory.
const TABLE_BYTES: u64 = 128;

/// A table: a map with a name.
#[derive(Debug)]
pub struct Table {
    /// Its name.
    pub name: Text,
    /// The position of the last transaction that changed anything in it.
    pub version: u64,
    /// Its entries.
    pub root: Map,
}

/// All tables, in the order in which they were made.
#[derive(Debug, Default)]
pub struct Tables {
    tables: Vec<Table>,
    places: HashMap<Text, u32, BuildMix>,
    bytes: u64,
}

/// A change, as it is taken back: what it was, and where.
#[derive(Debug)]
pub struct Change {
    /// Where the operation begins behind the transaction's head: its path is read again from there.
    pub operation: u8,
    /// The table.
    pub table: u32,
    /// The table's version before.
    pub version: u64,
    /// What was done.
    pub done: Done,
}

/// What was done.
#[derive(Debug)]
pub enum Done {
    /// A table was made, the last one.
    TableMade,
    /// An entry was pushed to the map at so many keys of the path; it is the map's last.
    Pushed(usize),
    /// A value took the place of this one.
    Replaced(Value, u64),
    /// A list became longer: how long it was, and its version.
    Appended(Length, u64),
    /// An entry was taken out of this place.
    Removed(usize, Entry),
    /// Nothing was there to change.
    Nothing,
}

impl Tables {
    /// The tables.
    #[must_use]
    pub fn all(&self) -> &[Table] {
        &self.tables
    }

    /// What they count for in the bound on memory.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The place of the table called `name`; looks at `hint` first.
    #[must_use]
    pub fn find(&self, name: &[u8], hint: u32) -> Option<u32> {
        match self.tables.get(hint as usize) {
            Some(table) if table.name.bytes() == name => Some(hint),
            _ => self.places.get(name).copied(),
        }
    }

    /// Reads a little of each of these tables and of what lies in them, level by level. Gives a number that is made of all
    /// of it, so that nothing is left out.
    #[must_use]
    pub fn touch(&self, places: &[u32]) -> u64 {
        let tables = || places.iter().filter_map(|place| self.tables.get(*place as usize));
        let names = tables().fold(0, |all, table| all ^ table.version);
        let roots = tables().fold(names, |all, table| all ^ table.root.first_version());
        tables().fold(roots, |all, table| all ^ table.root.touch())
    }

    /// The table at a place.
    #[must_use]
    pub fn at(&self, place: u32) -> &Table {
        &self.tables[place as usize]
    }

    /// The table at a place, to be changed.
    pub fn at_mut(&mut self, place: u32) -> &mut Table {
        &mut self.tables[place as usize]
    }

    /// Makes a table of a name that there is none of.
    pub fn make(&mut self, name: &[u8], version: u64) -> u32 {
        let place = u32::try_from(self.tables.len()).expect("memory ends before");
        let name = Text::new(name);
        self.bytes += TABLE_BYTES + 2 * name.heap_bytes();
        self.places.insert(name.clone(), place);
        self.tables.push(Table { name, version, root: Map::default() });
        place
    }

    /// Adds what a snapshot has put into the last table to what is counted.
    pub fn count(&mut self, bytes: u64) {
        self.bytes += bytes;
    }

    /// Stores a value. With `makes_maps` the maps on the way are made; without, they have to be there.
    pub fn store(
        &mut self,
        place: u32,
        path: &Path<'_>,
        literal: &Literal<'_>,
        makes_maps: bool,
        version: u64,
    ) -> Result<Done, Status> {
        let mut map = &mut self.tables[place as usize].root;
        let mut made = None;
        for (depth, key) in path.maps().enumerate() {
            if makes_maps && map.get(key).is_none() {
                let entry = entry_of(key, &Literal::Map, version);
                self.bytes += entry.cost();
                map.push(entry);
                made = made.or(Some(Done::Pushed(depth)));
            }
            map = map_in(map, key)?;
        }
        let key = path.key.expect("checked as it was read");
        let Some(entry) = map.get_mut(key) else {
            let entry = entry_of(key, literal, version);
            self.bytes += entry.cost();
            map.push(entry);
            return Ok(made.unwrap_or(Done::Pushed(path.maps().count())));
        };
        let old = std::mem::replace(&mut entry.value, value_of(literal));
        let old_version = std::mem::replace(&mut entry.version, version);
        self.bytes += entry.value.cost();
        Ok(Done::Replaced(old, old_version))
    }

    /// Appends to a list, which is made if nothing is there.
    pub fn append(
        &mut self,
        place: u32,
        path: &Path<'_>,
        literal: &Literal<'_>,
        version: u64,
    ) -> Result<Done, Status> {
        let map = walk(&mut self.tables[place as usize].root, path)?;
        let key = path.key.expect("checked as it was read");
        let length = literal.encoded_bytes();
        if let Some(entry) = map.get_mut(key) {
            let Value::List(list) = &mut entry.value else { return Err(Status::WrongType) };
            let before = list.length();
            list.append(length, |out| literal.write(out));
            self.bytes += length as u64;
            return Ok(Done::Appended(before, std::mem::replace(&mut entry.version, version)));
        }
        let mut list = Box::<List>::default();
        list.append(length, |out| literal.write(out));
        let entry = Entry { key: Text::new(key), version, value: Value::List(list) };
        self.bytes += entry.cost();
        map.push(entry);
        Ok(Done::Pushed(path.maps().count()))
    }

    /// Takes a value out, if it is there.
    pub fn delete(&mut self, place: u32, path: &Path<'_>) -> Result<Done, Status> {
        let map = walk(&mut self.tables[place as usize].root, path)?;
        let Some((at, entry)) = map.remove(path.key.expect("checked as it was read")) else {
            return Ok(Done::Nothing);
        };
        Ok(Done::Removed(at, entry))
    }

    /// Adds to an integer. Gives the sum, too.
    pub fn add(
        &mut self,
        place: u32,
        path: &Path<'_>,
        amount: i64,
        floor: i64,
        version: u64,
    ) -> Result<(i64, Done), Status> {
        let map = walk(&mut self.tables[place as usize].root, path)?;
        let key = path.key.expect("checked as it was read");
        let before = match map.get(key).map(|entry| &entry.value) {
            None => 0,
            Some(Value::Integer(number)) => *number,
            Some(_) => return Err(Status::WrongType),
        };
        let sum = before.checked_add(amount).filter(|sum| *sum >= floor);
        let sum = sum.ok_or(Status::OutOfRange)?;
        let done = self.store(place, path, &Literal::Integer(sum), false, version)?;
        Ok((sum, done))
    }

    /// Takes a change back. `path` is that of its operation. What is counted is put right by the caller.
    pub fn take_back(&mut self, change: Change, path: &Path<'_>) {
        let key = path.key.expect("only what has a key changes anything");
        let table = &mut self.tables[change.table as usize];
        table.version = change.version;
        let way = "the way was there when it was changed";
        match change.done {
            Done::Nothing => {}
            Done::TableMade => {
                let table = self.tables.pop().expect("it was made");
                self.places.remove(table.name.bytes());
            }
            Done::Pushed(depth) => {
                let mut map = &mut table.root;
                for key in path.maps().take(depth) {
                    map = map_in(map, key).expect(way);
                }
                map.pop();
            }
            Done::Replaced(value, version) => {
                let entry = walk(&mut table.root, path).expect(way).get_mut(key).expect(way);
                (entry.value, entry.version) = (value, version);
            }
            Done::Appended(length, version) => {
                let entry = walk(&mut table.root, path).expect(way).get_mut(key).expect(way);
                let Value::List(list) = &mut entry.value else { unreachable!("it was a list") };
                list.cut(length);
                entry.version = version;
            }
            Done::Removed(at, entry) => {
                walk(&mut table.root, path).expect(way).put_back(at, entry);
            }
        }
    }

    /// Lets go what a change has put out of its place, once it will not be taken back. What was there counts until then: to
    /// look through a large map costs no more than to free it.
    pub fn let_go(&mut self, done: Done) {
        self.bytes -= match done {
            Done::Replaced(value, _) => value.cost(),
            Done::Removed(_, entry) => entry.cost(),
            Done::TableMade | Done::Pushed(_) | Done::Appended(..) | Done::Nothing => 0,
        };
    }

    /// Sets what is counted to what it was before changes that were taken back.
    pub fn recount(&mut self, bytes: u64) {
        self.bytes = bytes;
    }
}

/// The map that a path's last key stands in.
fn walk<'m>(root: &'m mut Map, path: &Path<'_>) -> Result<&'m mut Map, Status> {
    let mut map = root;
    for key in path.maps() {
        map = map_in(map, key)?;
    }
    Ok(map)
}

fn map_in<'m>(map: &'m mut Map, key: &[u8]) -> Result<&'m mut Map, Status> {
    match &mut map.get_mut(key).ok_or(Status::Missing)?.value {
        Value::Map(map) => Ok(map),
        _ => Err(Status::WrongType),
    }
}

/// What is at a path below a table's root; `None`: nothing. A map on the way that is not there is nothing, too.
pub fn look<'m>(root: &'m Map, path: &Path<'_>, key: &[u8]) -> Result<Option<&'m Entry>, Status> {
    let mut map = root;
    for key in path.maps() {
        match map.get(key).map(|entry| &entry.value) {
            None => return Ok(None),
            Some(Value::Map(inner)) => map = inner,
            Some(_) => return Err(Status::WrongType),
        }
    }
    Ok(map.get(key))
}

fn entry_of(key: &[u8], literal: &Literal<'_>, version: u64) -> Entry {
    Entry { key: Text::new(key), version, value: value_of(literal) }
}

fn value_of(literal: &Literal<'_>) -> Value {
    match literal {
        Literal::Absent => unreachable!("what is stored is something: checked as it was read"),
        Literal::Integer(number) => Value::Integer(*number),
        Literal::String(bytes) => Value::String(Text::new(bytes)),
        Literal::Bytes(bytes) => Value::Bytes(Text::new(bytes)),
        Literal::List => Value::List(Box::default()),
        Literal::Map => Value::Map(Box::default()),
    }
}
