//! Makes the bytes of transactions: the other side of [`super::transaction`], for clients and tests.

use wire::http1::decimal;

use super::transaction::{DEPTH_MAX, Literal, OPERATIONS_MAX, TABLES_MAX, code};

/// A transaction that is being written.
#[derive(Debug)]
pub struct Composer<'o> {
    out: &'o mut Vec<u8>,
    count_at: usize,
    count: u8,
}

impl<'o> Composer<'o> {
    /// Begins a transaction on these tables, behind what `out` holds.
    ///
    /// # Panics
    /// If there are too many tables, or a name is longer than 255 bytes.
    pub fn begin(out: &'o mut Vec<u8>, tables: &[&[u8]]) -> Self {
        assert!(tables.len() <= TABLES_MAX, "{} tables in one transaction", tables.len());
        out.push(u8::try_from(tables.len()).expect("checked above"));
        for name in tables {
            short(out, name);
        }
        out.push(0);
        Self { count_at: out.len() - 1, out, count: 0 }
    }

    /// Reads what is at `path` of the `table`-th table.
    pub fn get(&mut self, table: u8, path: &[&[u8]]) -> &mut Self {
        self.operation(code::GET, table, path)
    }

    /// Stores a value, making the maps on the way.
    pub fn put(&mut self, table: u8, path: &[&[u8]], value: Literal<'_>) -> &mut Self {
        self.operation(code::PUT, table, path).value(value)
    }

    /// Stores a value in a map that is there.
    pub fn store(&mut self, table: u8, path: &[&[u8]], value: Literal<'_>) -> &mut Self {
        self.operation(code::MAP_STORE, table, path).value(value)
    }

    /// Appends to a list.
    pub fn append(&mut self, table: u8, path: &[&[u8]], value: Literal<'_>) -> &mut Self {
        self.operation(code::LIST_APPEND, table, path).value(value)
    }

    /// Takes a value out.
    pub fn delete(&mut self, table: u8, path: &[&[u8]]) -> &mut Self {
        self.operation(code::MAP_DELETE, table, path)
    }

    /// Demands a value.
    pub fn check_value(&mut self, table: u8, path: &[&[u8]], value: Literal<'_>) -> &mut Self {
        self.operation(code::CHECK_VALUE, table, path).value(value)
    }

    /// Demands a version.
    pub fn check_version(&mut self, table: u8, path: &[&[u8]], version: u64) -> &mut Self {
        let this = self.operation(code::CHECK_VERSION, table, path);
        this.out.extend_from_slice(&version.to_le_bytes());
        this
    }

    /// Adds to an integer, of which at least `floor` must be left.
    pub fn add(&mut self, table: u8, path: &[&[u8]], amount: i64, floor: i64) -> &mut Self {
        let this = self.operation(code::ADD, table, path);
        this.out.extend_from_slice(&amount.to_le_bytes());
        this.out.extend_from_slice(&floor.to_le_bytes());
        this
    }

    fn operation(&mut self, code: u8, table: u8, path: &[&[u8]]) -> &mut Self {
        assert!(usize::from(self.count) < OPERATIONS_MAX, "too many operations");
        assert!(path.len() <= DEPTH_MAX, "a path of {} keys", path.len());
        self.count += 1;
        self.out[self.count_at] = self.count;
        self.out.push(code);
        self.out.push(table);
        self.out.push(u8::try_from(path.len()).expect("checked above"));
        for key in path {
            short(self.out, key);
        }
        self
    }

    fn value(&mut self, value: Literal<'_>) -> &mut Self {
        value.write(self.out);
        self
    }
}

/// Bytes behind their length in one byte.
fn short(out: &mut Vec<u8>, bytes: &[u8]) {
    out.push(u8::try_from(bytes.len()).expect("names and keys have at most 255 bytes"));
    out.extend_from_slice(bytes);
}

/// The transaction of the published benchmark (sdh21/dstore, `main/client_templates.go`): seven operations on a table that
/// is named as the client, which leave the table as large as it was.
pub fn published(out: &mut Vec<u8>, client: u64, value: &[u8]) {
    let mut digits = [0; 20];
    let name = decimal(client, &mut digits);
    let list: [&[u8]; 2] = [b"23456", b"nested-list"];
    Composer::begin(out, &[name])
        .store(0, &[b"1"], Literal::String(b"1"))
        .store(0, &[b"12"], Literal::String(b"1234323"))
        .store(0, &list[..1], Literal::Map)
        .store(0, &list, Literal::List)
        .append(0, &list, Literal::String(b"1111111111"))
        .append(0, &list, Literal::String(b"1111111111"))
        .append(0, &list, Literal::String(value));
}
