//! Reads transactions.parquet back, column by column into rows. A file that breaks the format is an error, never a panic.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::Path;

use model::{Class, NO_STAMP, Outcome, Row, STAGES_MAX};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, Int32Type, Int64Type};
use parquet::errors::ParquetError;

use super::{FIRST, LAST, SCHEMA, SCHEMA_WITHOUT_LAG, columns, last_stamp, ready_else_due};
use crate::carried::Carried;
use crate::columns::{ColumnReader, ColumnsReader, GroupReader, Source, WordReader, guarded};
use crate::counted::Share;
use crate::error::RecordError;
use crate::row_code::BEFORE_FIRST;

/// Rows that a reader holds at a time: 425 kB, so that columns meet rows in the processor's cache.
const READ_ROWS_MAX: usize = 4096;

/// Reads rows back, a batch at a time.
pub struct TransactionsReader<'a> {
    path: &'a Path,
    file: ColumnsReader,
    stage_count: usize,
    has_lag: bool,
    groups: Range<usize>,
    group: Option<Group>,
    carried: Carried,
    rows: Vec<Row>,
}

impl<'a> TransactionsReader<'a> {
    /// Opens a file and checks that it has the columns of one; `path` is for messages.
    pub fn open(path: &'a Path, source: Source) -> Result<Self, RecordError> {
        let file = guarded(path, || ColumnsReader::open(source))?;
        let has_lag = match file.note("assay.schema") {
            Some(schema) if schema == SCHEMA_WITHOUT_LAG => false,
            Some(found) if found != SCHEMA => {
                let (path, known) = (path.to_owned(), SCHEMA);
                return Err(RecordError::OtherVersion { path, found, known });
            }
            _ => true,
        };
        let (file, stage_count) = guarded(path, || {
            let names = file.names();
            let others = FIRST + LAST + usize::from(has_lag);
            let stage_count = names.len().saturating_sub(others).min(STAGES_MAX);
            let stages = names.get(FIRST..FIRST + stage_count).unwrap_or_default();
            file.check(&columns(stages, has_lag))?;
            Ok((file, stage_count))
        })?;
        let (carried, rows) = (Carried::new(), Vec::new());
        let groups = 0..file.group_count();
        Ok(Self { path, file, stage_count, has_lag, groups, group: None, carried, rows })
    }

    /// Reads only the row groups of a share. Those before it are read as far back as its rows follow one of theirs.
    pub fn only(&mut self, share: Share) -> Result<(), RecordError> {
        let path = self.path;
        self.groups = share.range(self.file.group_count());
        self.carried = guarded(path, || self.before(self.groups.clone()))?;
        Ok(())
    }

    /// The state of connections before row groups, as far as rows of them ask for it.
    fn before(&self, groups: Range<usize>) -> Result<Carried, ParquetError> {
        let (mut carried, mut rows) = (Carried::new(), Vec::new());
        if groups.start == 0 {
            return Ok(carried);
        }
        let mut asked = self.asked(groups.clone())?;
        let mut found = Vec::new();
        for index in (0..groups.start).rev() {
            if asked.is_empty() {
                break;
            }
            let mut group = self.open_group(index)?;
            let (mut middle, mut last) = (Carried::from_the_middle(), BTreeMap::new());
            while group.read(&mut rows, &mut middle)? {
                for row in rows.iter().filter(|row| row.sent != NO_STAMP) {
                    let way = (row.worker, row.connection);
                    if asked.contains(&way) {
                        last.insert(way, *row);
                    }
                }
            }
            asked.retain(|way| !last.contains_key(way));
            found.extend(last.into_values());
        }
        found.iter().for_each(|row| carried.pass(row));
        Ok(carried)
    }

    /// The connections of which a row follows one that was before these groups: by worker and number.
    fn asked(&self, groups: Range<usize>) -> Result<BTreeSet<(u8, u32)>, ParquetError> {
        let (mut asked, mut passed) = (BTreeSet::new(), BTreeSet::new());
        let mut rows = Vec::new();
        for index in groups {
            let mut group = self.open_group(index)?;
            while let Some(follows) = group.read_ways(&mut rows)? {
                for (row, follows) in rows.iter().zip(follows) {
                    let way = (row.worker, row.connection);
                    if *follows && !passed.contains(&way) {
                        asked.insert(way);
                    }
                    if row.sent != NO_STAMP {
                        passed.insert(way);
                    }
                }
            }
        }
        Ok(asked)
    }

    fn open_group(&self, index: usize) -> Result<Group, ParquetError> {
        Group::open(self.file.group(index)?, self.stage_count, self.has_lag)
    }

    /// Rows that the file claims to have.
    pub fn row_count(&self) -> u64 {
        self.file.row_count()
    }

    /// How many stages its rows have.
    pub const fn stage_count(&self) -> usize {
        self.stage_count
    }

    /// An entry of the file's metadata.
    pub fn note(&self, key: &str) -> Option<String> {
        self.file.note(key)
    }

    /// The next rows; `None` at the end.
    pub fn next_batch(&mut self) -> Result<Option<&[Row]>, RecordError> {
        let path = self.path;
        if guarded(path, || self.read_batch())? { Ok(Some(&self.rows)) } else { Ok(None) }
    }

    fn read_batch(&mut self) -> Result<bool, ParquetError> {
        loop {
            if let Some(group) = &mut self.group {
                if group.read(&mut self.rows, &mut self.carried)? {
                    return Ok(true);
                }
                self.group = None;
            }
            let Some(index) = self.groups.next() else { return Ok(false) };
            self.group = Some(self.open_group(index)?);
        }
    }
}

/// The columns of one row group.
struct Group {
    group: GroupReader,
    tx: ColumnReader<Int64Type>,
    due: ColumnReader<Int64Type>,
    follows: ColumnReader<BoolType>,
    ready: ColumnReader<Int64Type>,
    sent: ColumnReader<Int64Type>,
    marks: Vec<ColumnReader<Int64Type>>,
    end: ColumnReader<Int64Type>,
    outcome: OutcomeReader,
    class: ColumnReader<ByteArrayType>,
    code: ColumnReader<Int32Type>,
    error: ColumnReader<Int32Type>,
    kind: ColumnReader<Int32Type>,
    connection: ColumnReader<Int32Type>,
    worker: ColumnReader<Int32Type>,
    stream: ColumnReader<Int32Type>,
    client: ColumnReader<Int32Type>,
    attempts: ColumnReader<Int32Type>,
    bytes_out: ColumnReader<Int32Type>,
    bytes_in: ColumnReader<Int32Type>,
    receive_lag: Option<ColumnReader<Int64Type>>,
}

impl Group {
    /// Columns are taken in the order of the schema; the fields stand in it.
    fn open(
        mut group: GroupReader,
        stage_count: usize,
        has_lag: bool,
    ) -> Result<Self, ParquetError> {
        Ok(Self {
            tx: group.column()?,
            due: group.column()?,
            follows: group.column()?,
            ready: group.column()?,
            sent: group.column()?,
            marks: (0..stage_count).map(|_| group.column()).collect::<Result<_, _>>()?,
            end: group.column()?,
            outcome: OutcomeReader::open(group.words()?)?,
            class: group.column()?,
            code: group.column()?,
            error: group.column()?,
            kind: group.column()?,
            connection: group.column()?,
            worker: group.column()?,
            stream: group.column()?,
            client: group.column()?,
            attempts: group.column()?,
            bytes_out: group.column()?,
            bytes_in: group.column()?,
            receive_lag: has_lag.then(|| group.column()).transpose()?,
            group,
        })
    }

    /// Reads the next rows into `rows`; says whether there were any.
    fn read(&mut self, rows: &mut Vec<Row>, carried: &mut Carried) -> Result<bool, ParquetError> {
        let count = self.group.take_rows(READ_ROWS_MAX);
        // What the last batch left is written over: every field but the marks of stages that the file does not have.
        rows.resize(count, BEFORE_FIRST);
        if count == 0 {
            return Ok(false);
        }
        let (tx, due) = (self.tx.required(count)?, self.due.required(count)?);
        for ((row, tx), due) in rows.iter_mut().zip(tx).zip(due) {
            (row.tx, row.due) = (tx.cast_unsigned(), *due);
        }
        for (stage, column) in self.marks.iter_mut().enumerate() {
            put_after_due(rows, column.optional(count)?, |row, stamp| row.marks[stage] = stamp)?;
        }
        put(rows, self.end.required(count)?, |row, value| {
            row.end = last_stamp(row).wrapping_add(value);
        });
        self.outcome.read(rows, count)?;
        put_classes(rows, self.class.optional(count)?)?;
        self.read_numbers(rows, count)?;
        match &mut self.receive_lag {
            Some(column) => put_lags(rows, column.optional(count)?)?,
            None => rows.iter_mut().for_each(|row| row.receive_lag = NO_STAMP),
        }
        // Last, when ends and connections of all rows are known.
        let (ready, sent) = (self.ready.optional(count)?, self.sent.optional(count)?);
        put_ready_and_sent(rows, self.follows.required(count)?, ready, sent, carried)?;
        Ok(true)
    }

    /// Reads of the next rows only on which connection they went and whether they were sent, instead of [`Self::read`]; says
    /// which of them follow another.
    fn read_ways(&mut self, rows: &mut Vec<Row>) -> Result<Option<&[bool]>, ParquetError> {
        let count = self.group.take_rows(READ_ROWS_MAX);
        rows.clear();
        rows.resize(count, Row::EMPTY);
        if count == 0 {
            return Ok(None);
        }
        let (connection, worker) = (self.connection.required(count)?, self.worker.required(count)?);
        let (_, is_sent) = self.sent.optional(count)?;
        for (at, row) in rows.iter_mut().enumerate() {
            (row.connection, row.worker) = (connection[at].cast_unsigned(), worker[at] as u8);
            row.sent = if is_sent[at] == 0 { NO_STAMP } else { 0 };
        }
        self.follows.required(count).map(Some)
    }

    /// All at once: a row is fetched from memory and put back one time.
    fn read_numbers(&mut self, rows: &mut [Row], count: usize) -> Result<(), ParquetError> {
        let (code, error) = (self.code.required(count)?, self.error.required(count)?);
        let (kind, connection) = (self.kind.required(count)?, self.connection.required(count)?);
        let (worker, stream) = (self.worker.required(count)?, self.stream.required(count)?);
        let (client, attempts) = (self.client.required(count)?, self.attempts.required(count)?);
        let (sent, received) = (self.bytes_out.required(count)?, self.bytes_in.required(count)?);
        for (at, row) in rows.iter_mut().enumerate() {
            // A number that does not fit was not written by us; its low bits are as good as any.
            (row.code, row.error) = (code[at] as u16, error[at] as u16);
            (row.kind, row.connection) = (kind[at].cast_unsigned(), connection[at].cast_unsigned());
            (row.worker, row.stream) = (worker[at] as u8, stream[at] as u8);
            (row.client, row.attempts) = (client[at].cast_unsigned(), attempts[at] as u8);
            (row.bytes_out, row.bytes_in) =
                (sent[at].cast_unsigned(), received[at].cast_unsigned());
        }
        Ok(())
    }
}

fn put<T: Copy>(rows: &mut [Row], values: &[T], set: impl Fn(&mut Row, T)) {
    for (row, value) in rows.iter_mut().zip(values) {
        set(row, *value);
    }
}

fn put_after_due(
    rows: &mut [Row],
    (values, levels): (&[i64], &[i16]),
    set: impl Fn(&mut Row, i64),
) -> Result<(), ParquetError> {
    if values.len() == rows.len() {
        for (row, value) in rows.iter_mut().zip(values) {
            let stamp = row.due.wrapping_add(*value);
            set(row, stamp);
        }
        return Ok(());
    }
    let mut values = values.iter();
    for (row, level) in rows.iter_mut().zip(levels) {
        let mut stamp = NO_STAMP;
        if *level != 0 {
            stamp = row.due.wrapping_add(*values.next().ok_or_else(unequal)?);
        }
        set(row, stamp);
    }
    Ok(())
}

fn put_lags(rows: &mut [Row], (values, levels): (&[i64], &[i16])) -> Result<(), ParquetError> {
    let mut values = values.iter();
    for (row, level) in rows.iter_mut().zip(levels) {
        row.receive_lag = NO_STAMP;
        if *level != 0 {
            row.receive_lag = *values.next().ok_or_else(unequal)?;
        }
    }
    Ok(())
}

/// The rest of a row once its end is known; rows come in the order of the file.
fn put_ready_and_sent(
    rows: &mut [Row],
    follows: &[bool],
    (ready, ready_levels): (&[i64], &[i16]),
    (sent, sent_levels): (&[i64], &[i16]),
    carried: &mut Carried,
) -> Result<(), ParquetError> {
    let (mut ready, mut sent) = (ready.iter(), sent.iter());
    let levels = ready_levels.iter().zip(sent_levels);
    for ((row, follows), (is_ready, is_sent)) in rows.iter_mut().zip(follows).zip(levels) {
        row.ready = NO_STAMP;
        if *is_ready != 0 {
            let base = if *follows { carried.end_before(row) } else { row.due };
            if *follows && base == NO_STAMP && !carried.is_from_the_middle {
                return Err(follows_none());
            }
            row.ready = base.wrapping_add(*ready.next().ok_or_else(unequal)?);
        } else if *follows {
            return Err(follows_none());
        }
        row.sent = NO_STAMP;
        if *is_sent != 0 {
            row.sent = ready_else_due(row).wrapping_add(*sent.next().ok_or_else(unequal)?);
        }
        carried.pass(row);
    }
    Ok(())
}

fn follows_none() -> ParquetError {
    ParquetError::General("a row is said to follow another, and there is none".to_owned())
}

/// The column of outcomes.
enum OutcomeReader {
    /// Outcomes by the number that rows have for them.
    Numbered {
        numbers: ColumnReader<Int32Type>,
        outcomes: Vec<Outcome>,
    },
    Worded(ColumnReader<ByteArrayType>),
}

impl OutcomeReader {
    fn open(words: WordReader) -> Result<Self, ParquetError> {
        Ok(match words {
            WordReader::Numbered { numbers, words } => {
                let outcomes = words.iter().map(|word| outcome(word)).collect::<Result<_, _>>()?;
                Self::Numbered { numbers, outcomes }
            }
            WordReader::Plain(words) => Self::Worded(words),
        })
    }

    fn read(&mut self, rows: &mut [Row], count: usize) -> Result<(), ParquetError> {
        match self {
            Self::Numbered { numbers, outcomes } => {
                for (row, number) in rows.iter_mut().zip(numbers.required(count)?) {
                    let outcome = usize::try_from(*number).ok().and_then(|at| outcomes.get(at));
                    row.outcome = *outcome.ok_or_else(unequal)?;
                }
            }
            Self::Worded(words) => {
                for (row, word) in rows.iter_mut().zip(words.required(count)?) {
                    row.outcome = outcome(word.data())?;
                }
            }
        }
        Ok(())
    }
}

fn outcome(word: &[u8]) -> Result<Outcome, ParquetError> {
    Ok(match word {
        b"committed" => Outcome::Committed,
        // The class follows in its own column; a rejection without one stays the server's.
        b"rejected" => Outcome::Rejected(Class::Server),
        b"unknown" => Outcome::Unknown,
        b"shed" => Outcome::Shed,
        other => return Err(foreign_word("outcome", other)),
    })
}

fn put_classes(
    rows: &mut [Row],
    (words, levels): (&[ByteArray], &[i16]),
) -> Result<(), ParquetError> {
    if words.is_empty() {
        return Ok(());
    }
    let mut words = words.iter();
    for (row, _) in rows.iter_mut().zip(levels).filter(|(_, level)| **level != 0) {
        let word = words.next().ok_or_else(unequal)?.data();
        let class = std::str::from_utf8(word).ok().and_then(Class::from_word);
        row.outcome = Outcome::Rejected(class.ok_or_else(|| foreign_word("class", word))?);
    }
    Ok(())
}

fn unequal() -> ParquetError {
    ParquetError::General("a column has fewer values than it says".to_owned())
}

fn foreign_word(column: &str, word: &[u8]) -> ParquetError {
    let word = String::from_utf8_lossy(&word[..word.len().min(40)]).into_owned();
    ParquetError::General(format!("`{word}` in column {column} is no word of this program"))
}
