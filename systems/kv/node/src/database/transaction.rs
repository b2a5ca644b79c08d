//! Transactions as bytes, read in place: nothing is copied and nothing allocated until an operation is carried out. The
//! README gives the form byte by byte. Any bytes can come; what is not a transaction is refused and changes nothing.

/// The longest transaction.
pub const TRANSACTION_BYTES_MAX: usize = 1 << 20;

/// Tables that one transaction may name.
pub const TABLES_MAX: usize = 8;

/// Operations of one transaction.
pub const OPERATIONS_MAX: usize = 64;

/// Keys on the way from a table's root to a value: what bounds how deep maps lie in each other.
pub const DEPTH_MAX: usize = 8;

/// The tags of values, wherever they are written.
pub mod tag {
    /// Nothing is there.
    pub const ABSENT: u8 = 0;
    /// A signed number.
    pub const INTEGER: u8 = 1;
    /// Text.
    pub const STRING: u8 = 2;
    /// Bytes.
    pub const BYTES: u8 = 3;
    /// A list.
    pub const LIST: u8 = 4;
    /// A map.
    pub const MAP: u8 = 5;
    /// In results: the operation was carried out and gives nothing.
    pub const DONE: u8 = 6;
}

/// The codes of operations.
pub mod code {
    /// Reads a value.
    pub const GET: u8 = 1;
    /// Stores a value, making the maps on the way to it.
    pub const PUT: u8 = 2;
    /// Appends to a list.
    pub const LIST_APPEND: u8 = 3;
    /// Stores a value in a map that is there.
    pub const MAP_STORE: u8 = 4;
    /// Takes a value out of a map.
    pub const MAP_DELETE: u8 = 5;
    /// Demands a value.
    pub const CHECK_VALUE: u8 = 6;
    /// Demands a version.
    pub const CHECK_VERSION: u8 = 7;
    /// Adds to an integer.
    pub const ADD: u8 = 8;
}

/// Bytes that are no transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed;

/// A transaction's head: which tables it names. Its operations are read as they are carried out.
#[derive(Clone, Copy, Debug)]
pub struct Transaction<'a> {
    names: &'a [u8],
    tables: u8,
    operations: u8,
    rest: &'a [u8],
}

impl<'a> Transaction<'a> {
    /// Reads the head.
    ///
    /// # Errors
    /// When the bytes cannot be a transaction's.
    pub fn read(bytes: &'a [u8]) -> Result<Self, Malformed> {
        if bytes.len() > TRANSACTION_BYTES_MAX {
            return Err(Malformed);
        }
        let mut reader = Reader(bytes);
        let tables = reader.byte()?;
        let names = reader.0;
        for _ in 0..tables {
            reader.short()?;
        }
        let operations = reader.byte()?;
        if usize::from(tables) > TABLES_MAX || !(1..=OPERATIONS_MAX).contains(&operations.into()) {
            return Err(Malformed);
        }
        Ok(Self { names, tables, operations, rest: reader.0 })
    }

    /// The names of its tables.
    pub fn tables(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let mut reader = Reader(self.names);
        (0..self.tables).map(move |_| reader.short().expect("read with the head"))
    }

    /// How many operations it announces.
    #[must_use]
    pub const fn operation_count(&self) -> u8 {
        self.operations
    }

    /// Its operations.
    #[must_use]
    pub const fn operations(&self) -> Operations<'a> {
        Operations { reader: Reader(self.rest), left: self.operations, tables: self.tables }
    }

    /// Whether all it does is to read: such a transaction need not stand in the log. One that is malformed is not, so
    /// that it is refused by whoever carries it out.
    #[must_use]
    pub fn is_read_only(&self) -> bool {
        let mut operations = self.operations();
        loop {
            match operations.next() {
                Ok(Some(operation)) if operation.action.is_read() => {}
                Ok(Some(_)) | Err(Malformed) => return false,
                Ok(None) => return true,
            }
        }
    }
}

/// The operations of a transaction, one after another.
#[derive(Clone, Copy, Debug)]
pub struct Operations<'a> {
    reader: Reader<'a>,
    left: u8,
    tables: u8,
}

impl<'a> Operations<'a> {
    /// The next operation; `None` behind the last one.
    ///
    /// # Errors
    /// When the bytes are not one, or something stands behind the last one.
    #[expect(clippy::should_implement_trait, reason = "an error ends it: not an iterator")]
    pub fn next(&mut self) -> Result<Option<Operation<'a>>, Malformed> {
        let Some(left) = self.left.checked_sub(1) else {
            return if self.reader.0.is_empty() { Ok(None) } else { Err(Malformed) };
        };
        self.left = left;
        let code = self.reader.byte()?;
        let table = self.reader.byte()?;
        if table >= self.tables {
            return Err(Malformed);
        }
        let path = self.reader.path()?;
        let action = match code {
            code::GET => Action::Get,
            code::PUT => Action::Put(self.reader.literal()?),
            code::LIST_APPEND => Action::Append(self.reader.literal()?),
            code::MAP_STORE => Action::Store(self.reader.literal()?),
            code::MAP_DELETE => Action::Delete,
            code::CHECK_VALUE => Action::CheckValue(self.reader.literal()?),
            code::CHECK_VERSION => Action::CheckVersion(self.reader.u64()?),
            code::ADD => Action::Add {
                amount: self.reader.u64()?.cast_signed(),
                floor: self.reader.u64()?.cast_signed(),
            },
            _ => return Err(Malformed),
        };
        if !action.fits(&path) {
            return Err(Malformed);
        }
        Ok(Some(Operation { code, table, path, action }))
    }
}

/// One operation.
#[derive(Clone, Copy, Debug)]
pub struct Operation<'a> {
    /// Its code: one of [`code`].
    pub code: u8,
    /// Which of the transaction's tables.
    pub table: u8,
    /// Where in it.
    pub path: Path<'a>,
    /// What.
    pub action: Action<'a>,
}

/// What an operation does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action<'a> {
    /// Reads a value.
    Get,
    /// Stores a value, making the maps on the way to it.
    Put(Literal<'a>),
    /// Stores a value in a map that is there.
    Store(Literal<'a>),
    /// Appends to a list; one that is not there is made.
    Append(Literal<'a>),
    /// Takes a value out of its map, if it is there.
    Delete,
    /// Demands a value.
    CheckValue(Literal<'a>),
    /// Demands a version; 0: nothing is there.
    CheckVersion(u64),
    /// Adds to an integer, of which 0 is there before the first time; fails if less than `floor` would be left.
    Add {
        /// What is added.
        amount: i64,
        /// The least that may be there then.
        floor: i64,
    },
}

impl Action<'_> {
    /// Whether it changes nothing.
    #[must_use]
    pub const fn is_read(&self) -> bool {
        matches!(self, Self::Get | Self::CheckValue(_) | Self::CheckVersion(_))
    }

    /// Whether it needs no memory of its own.
    #[must_use]
    pub const fn frees(&self) -> bool {
        self.is_read() || matches!(self, Self::Delete)
    }

    /// Whether its path and value are of the form that it takes.
    const fn fits(&self, path: &Path<'_>) -> bool {
        match self {
            Self::Get | Self::CheckValue(_) | Self::CheckVersion(_) => true,
            Self::Put(value) | Self::Store(value) => {
                path.key.is_some() && !matches!(value, Literal::Absent)
            }
            Self::Append(value) => path.key.is_some() && value.is_scalar(),
            Self::Delete | Self::Add { .. } => path.key.is_some(),
        }
    }
}

/// A value as an operation gives it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Literal<'a> {
    /// Nothing: only to check.
    Absent,
    /// A number.
    Integer(i64),
    /// Text.
    String(&'a [u8]),
    /// Bytes.
    Bytes(&'a [u8]),
    /// An empty list.
    List,
    /// An empty map.
    Map,
}

impl Literal<'_> {
    /// Whether it can be an element of a list.
    #[must_use]
    pub const fn is_scalar(&self) -> bool {
        matches!(self, Self::Integer(_) | Self::String(_) | Self::Bytes(_))
    }

    /// How many bytes [`Literal::write`] appends.
    #[must_use]
    pub const fn encoded_bytes(&self) -> usize {
        match self {
            Self::Absent | Self::List | Self::Map => 1,
            Self::Integer(_) => 9,
            Self::String(bytes) | Self::Bytes(bytes) => 5 + bytes.len(),
        }
    }

    /// Appends it as it stands in transactions and lists.
    pub fn write(&self, out: &mut Vec<u8>) {
        let (tag, bytes) = match self {
            Self::Absent => (tag::ABSENT, None),
            Self::Integer(number) => {
                out.push(tag::INTEGER);
                out.extend_from_slice(&number.to_le_bytes());
                return;
            }
            Self::String(bytes) => (tag::STRING, Some(bytes)),
            Self::Bytes(bytes) => (tag::BYTES, Some(bytes)),
            Self::List => (tag::LIST, None),
            Self::Map => (tag::MAP, None),
        };
        out.push(tag);
        if let Some(bytes) = bytes {
            let length = u32::try_from(bytes.len()).expect("no longer than a transaction");
            out.extend_from_slice(&length.to_le_bytes());
            out.extend_from_slice(bytes);
        }
    }
}

/// Where a value stands in a table: keys from its root. Without a key it is the root itself.
#[derive(Clone, Copy, Debug)]
pub struct Path<'a> {
    /// The keys but the last, each behind its length.
    maps: &'a [u8],
    /// The last key.
    pub key: Option<&'a [u8]>,
}

impl<'a> Path<'a> {
    /// The keys of the maps on the way.
    pub fn maps(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let mut reader = Reader(self.maps);
        std::iter::from_fn(move || reader.short().ok())
    }
}

/// Bytes, read from the front.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reader<'a>(pub &'a [u8]);

impl<'a> Reader<'a> {
    pub fn byte(&mut self) -> Result<u8, Malformed> {
        let (byte, rest) = self.0.split_first().ok_or(Malformed)?;
        self.0 = rest;
        Ok(*byte)
    }

    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let (array, rest) = self.0.split_first_chunk().ok_or(Malformed)?;
        self.0 = rest;
        Ok(*array)
    }

    pub fn u32(&mut self) -> Result<u32, Malformed> {
        self.array().map(u32::from_le_bytes)
    }

    pub fn u64(&mut self) -> Result<u64, Malformed> {
        self.array().map(u64::from_le_bytes)
    }

    pub fn bytes(&mut self, length: usize) -> Result<&'a [u8], Malformed> {
        let (bytes, rest) = self.0.split_at_checked(length).ok_or(Malformed)?;
        self.0 = rest;
        Ok(bytes)
    }

    /// Bytes behind their length in one byte.
    pub fn short(&mut self) -> Result<&'a [u8], Malformed> {
        let length = self.byte()?;
        self.bytes(usize::from(length))
    }

    /// Bytes behind their length in four.
    pub fn long(&mut self) -> Result<&'a [u8], Malformed> {
        let length = self.u32()?;
        self.bytes(usize::try_from(length).map_err(|_| Malformed)?)
    }

    pub fn literal(&mut self) -> Result<Literal<'a>, Malformed> {
        Ok(match self.byte()? {
            tag::ABSENT => Literal::Absent,
            tag::INTEGER => Literal::Integer(self.u64()?.cast_signed()),
            tag::STRING => Literal::String(self.long()?),
            tag::BYTES => Literal::Bytes(self.long()?),
            tag::LIST => Literal::List,
            tag::MAP => Literal::Map,
            _ => return Err(Malformed),
        })
    }

    fn path(&mut self) -> Result<Path<'a>, Malformed> {
        let depth = usize::from(self.byte()?);
        if depth > DEPTH_MAX {
            return Err(Malformed);
        }
        let all = self.0;
        for _ in 1..depth {
            self.short()?;
        }
        let maps = &all[..all.len() - self.0.len()];
        let key = if depth > 0 { Some(self.short()?) } else { None };
        Ok(Path { maps, key })
    }
}
