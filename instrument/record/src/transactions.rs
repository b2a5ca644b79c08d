//! transactions.parquet: one row a transaction, for DuckDB, pandas and whoever comes after.
//!
//! | column | type | meaning |
//! | --- | --- | --- |
//! | `tx` | unsigned 64 | the transaction |
//! | `due_ns` | signed 64 | when it should have been sent, nanoseconds after the trial's start |
//! | `follows` | boolean | `ready` counts from the end of the row before, see below; else from due |
//! | `ready_after_ns` | signed 64, null | when a connection was free for it; null: never |
//! | `sent_after_ready_ns` | signed 64, null | the instrument's own part of the send lag (after due, if never ready); null: shed, never sent |
//! | `<stage>_after_due_ns` | signed 64, null | the response time of each stage; null: not reached |
//! | `end_after_last_ns` | signed 64 | when the outcome was known, after the last stage that it reached, else after due; zero for a transaction that its last mark ended |
//! | `outcome` | text | committed, rejected, unknown, shed |
//! | `class` | text, null | why it was rejected |
//! | `code` | unsigned 16 | the system's own code; 0: no answer |
//! | `error` | unsigned 16 | index into the list in the metadata `assay.errors`; 0: none |
//! | `kind` | unsigned 32 | index into the list in `assay.kinds` |
//! | `connection`, `worker`, `stream` | unsigned 32, 8, 8 | who carried it; stream 0 is the load, 1 the probe |
//! | `client` | unsigned 32 | whose it is; 0 where there are no clients |
//! | `attempts` | unsigned 8 | how many times it was sent; 0: never |
//! | `bytes_out`, `bytes_in` | unsigned 32 | payload bytes |
//! | `receive_lag_ns` | signed 64, null | how long what ended it lay in the kernel before it was read; no part of the response time; null: the kernel did not stamp it. Not in `assay.transactions/3`, which is read as if it were null |
//!
//! Stamps other than `due_ns` are stored as times after another and not as points in time: the noise of a
//! stamp costs its bits in every column that holds it. Response times are what people ask for, so they are
//! columns. The metadata `assay.sql` is a query that gives the points in time back.
//!
//! A transaction that waited for its connection got it when the one before it ended there. `follows` says so: its
//! `ready` counts from the `end` of the last row before it in the file that has the same worker and connection
//! and was sent. The writer sets it where the two stamps are equal and differ from due, as far as [`Carried`]
//! remembers, so that a backlog costs no column another stamp.
//!
//! A file consists of row groups of [`GROUP_ROWS_MAX`] rows in the order of their ends, as the row log has
//! them; inside a group rows are sorted by due time and then by `tx`, so that the steps of `tx` and `due_ns`
//! are small. Due times are therefore nearly sorted in the file as a whole, and no reader may rely on more.
//!
//! Bytes a row for 2 million rows of 50,000 HTTP requests a second over 64 connections
//! (`cargo run --release -p record --example seal_ten_million` with `ROWS=2000000` and each `SHAPE`, 2026-11-21):
//! constant arrivals 5.2, Poisson arrivals 7.3, Poisson arrivals of which 41 % waited for a connection
//! 7.4. With all stamps stored after due the last is 8.6; points in time took 7.5 and 12.2 for the first two. Of
//! the 7.4, due times take 2.1, the response time 2.6, the lateness 1.7 and the connection 0.8, which is noise;
//! everything else takes 0.2. The receive lag, which came later, adds some two bytes to each. lz4_raw took the first two to 5.0 and 7.2, which does not pay for a decoder that a
//! forged file could make allocate.

use std::io::Write;
use std::path::Path;

use model::facts::{KindFacts, TrialFacts};
use model::{Class, NO_STAMP, Outcome, Row, STAGES_MAX};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, Int32Type, Int64Type};
use parquet::errors::ParquetError;

use crate::carried::Carried;
use crate::columns::{
    Column, ColumnReader, ColumnsReader, ColumnsWriter, GroupReader, Kind, Source, WordReader,
    guarded, word,
};
use crate::error::RecordError;
use crate::row_code::BEFORE_FIRST;

/// Rows in a row group: 14 MB while it is written, under 1 MB on disk.
pub const GROUP_ROWS_MAX: usize = 128 << 10;
/// Rows that a reader holds at a time: 425 kB, so that columns meet rows in the processor's cache.
pub const READ_ROWS_MAX: usize = 4096;

const SCHEMA: &str = "assay.transactions/4";
/// The one before, which had no receive lag.
const SCHEMA_WITHOUT_LAG: &str = "assay.transactions/3";
const AFTER_DUE: &str = "_after_due_ns";
/// Columns before and after those of the stages.
const FIRST: usize = 5;
const LAST: usize = 13;

/// The columns for a ladder with the given column names of stages, with the receive lag or, as they were, without.
fn columns(stage_columns: &[String], has_lag: bool) -> Vec<Column> {
    let mut columns = vec![
        Column::required("tx", Kind::Unsigned64),
        Column::required("due_ns", Kind::Signed64),
        Column::required("follows", Kind::Boolean),
        Column::optional("ready_after_ns", Kind::Signed64),
        Column::optional("sent_after_ready_ns", Kind::Signed64),
    ];
    columns.extend(stage_columns.iter().map(|name| Column::optional(name, Kind::Signed64)));
    columns.extend([
        Column::required("end_after_last_ns", Kind::Signed64),
        Column::required("outcome", Kind::Text),
        Column::optional("class", Kind::Text),
        Column::required("code", Kind::Unsigned(16)),
        Column::required("error", Kind::Unsigned(16)),
        Column::required("kind", Kind::Unsigned(32)),
        Column::required("connection", Kind::Unsigned(32)),
        Column::required("worker", Kind::Unsigned(8)),
        Column::required("stream", Kind::Unsigned(8)),
        Column::required("client", Kind::Unsigned(32)),
        Column::required("attempts", Kind::Unsigned(8)),
        Column::required("bytes_out", Kind::Unsigned(32)),
        Column::required("bytes_in", Kind::Unsigned(32)),
    ]);
    columns.extend(has_lag.then(|| Column::optional("receive_lag_ns", Kind::Signed64)));
    columns
}

/// `committed` → `committed_after_due_ns`; names that would stand twice get their stage's number.
fn stage_columns(stages: &[String]) -> Vec<String> {
    let taken = |index: usize, name: &str| {
        matches!(name, "ready" | "sent") || stages[..index].iter().any(|before| before == name)
    };
    let column = |(index, name): (usize, &String)| {
        if taken(index, name) {
            format!("stage{index}_{name}{AFTER_DUE}")
        } else {
            format!("{name}{AFTER_DUE}")
        }
    };
    stages.iter().enumerate().map(column).collect()
}

/// The query that gives points in time. It numbers the rows, because `follows` counts in their order.
fn sql(stage_columns: &[String]) -> String {
    let (mut marks, mut last) = (String::new(), String::new());
    for column in stage_columns {
        let name = column.strip_suffix(AFTER_DUE).unwrap_or(column).replace('"', "\"\"");
        let quoted = column.replace('"', "\"\"");
        marks.push_str(&format!(", due_ns + \"{quoted}\" AS \"{name}_ns\""));
        last = format!("\"{quoted}\", {last}");
    }
    format!(
        "WITH ended AS (\
         SELECT *, due_ns + coalesce({last}0) + end_after_last_ns AS end_ns \
         FROM read_parquet('transactions.parquet', file_row_number = true)), \
         carried AS (\
         SELECT *, CASE WHEN follows THEN last_value(\
         CASE WHEN sent_after_ready_ns IS NOT NULL THEN end_ns END IGNORE NULLS) OVER (\
         PARTITION BY worker, connection ORDER BY file_row_number \
         ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) \
         ELSE due_ns END + ready_after_ns AS ready_ns FROM ended) \
         SELECT *, coalesce(ready_ns, due_ns) + sent_after_ready_ns AS sent_ns{marks} FROM carried"
    )
}

/// Writes rows to a Parquet file.
pub struct TransactionsWriter<W: Write + Send> {
    file: ColumnsWriter<W>,
    stage_count: usize,
    group: Vec<Row>,
    carried: Carried,
}

impl<W: Write + Send> TransactionsWriter<W> {
    /// Starts the file. `stages` are the names of the ladder's stages, as many as rows have marks.
    pub fn start(out: W, stages: &[String], facts: &TrialFacts) -> Result<Self, ParquetError> {
        assert!(stages.len() <= STAGES_MAX, "a row has no room for more stages");
        let stage_columns = stage_columns(stages);
        let list = |names: &[String]| serde_json::json!(names).to_string();
        let notes = [
            ("assay.schema", SCHEMA.to_owned()),
            ("assay.started_unix_ns", facts.load.started.unix_ns().to_string()),
            ("assay.stages", list(stages)),
            ("assay.kinds", list(&KindFacts::names(&facts.declared.kinds))),
            ("assay.errors", list(&facts.load.errors)),
            ("assay.sql", sql(&stage_columns)),
        ];
        Ok(Self {
            file: ColumnsWriter::start(
                out,
                "transactions",
                &columns(&stage_columns, true),
                &notes,
            )?,
            stage_count: stages.len(),
            group: Vec::with_capacity(GROUP_ROWS_MAX),
            carried: Carried::new(),
        })
    }

    /// Adds rows.
    pub fn push(&mut self, mut rows: &[Row]) -> Result<(), ParquetError> {
        while !rows.is_empty() {
            let room = GROUP_ROWS_MAX - self.group.len();
            let (now, later) = rows.split_at(room.min(rows.len()));
            self.group.extend_from_slice(now);
            rows = later;
            if self.group.len() == GROUP_ROWS_MAX {
                self.write_group()?;
            }
        }
        Ok(())
    }

    /// Writes what is left and the footer.
    pub fn finish(mut self) -> Result<(), ParquetError> {
        if !self.group.is_empty() {
            self.write_group()?;
        }
        self.file.finish().map(|_| ())
    }

    fn write_group(&mut self) -> Result<(), ParquetError> {
        // Stable, so that the same log always makes the same file.
        self.group.sort_by_key(|row| (row.due, row.tx));
        let (follows, ready): (Vec<_>, Vec<_>) =
            self.group.iter().map(|row| ready(row, &mut self.carried)).unzip();
        let rows = &self.group;
        let after_due =
            |row: &Row, stamp: i64| (stamp != NO_STAMP).then(|| stamp.wrapping_sub(row.due));
        let mut group = self.file.group()?;
        group.signed_64(rows.iter().map(|row| row.tx.cast_signed()))?;
        group.signed_64(rows.iter().map(|row| row.due))?;
        group.boolean(follows.into_iter())?;
        group.optional_64(ready.into_iter())?;
        group.optional_64(rows.iter().map(sent_after_ready))?;
        for stage in 0..self.stage_count {
            group.optional_64(rows.iter().map(|row| after_due(row, row.marks[stage])))?;
        }
        group.signed_64(rows.iter().map(|row| row.end.wrapping_sub(last_stamp(row))))?;
        let words = Words::new();
        group.text(rows.iter().map(|row| words.outcome(row.outcome)))?;
        group.optional_text(rows.iter().map(|row| words.class(row.outcome)))?;
        group.unsigned(rows.iter().map(|row| u32::from(row.code)))?;
        group.unsigned(rows.iter().map(|row| u32::from(row.error)))?;
        group.unsigned(rows.iter().map(|row| row.kind))?;
        group.unsigned(rows.iter().map(|row| row.connection))?;
        group.unsigned(rows.iter().map(|row| u32::from(row.worker)))?;
        group.unsigned(rows.iter().map(|row| u32::from(row.stream)))?;
        group.unsigned(rows.iter().map(|row| row.client))?;
        group.unsigned(rows.iter().map(|row| u32::from(row.attempts)))?;
        group.unsigned(rows.iter().map(|row| row.bytes_out))?;
        group.unsigned(rows.iter().map(|row| row.bytes_in))?;
        group.optional_64(rows.iter().map(Row::receive_lag_ns))?;
        group.finish()?;
        self.group.clear();
        Ok(())
    }
}

/// Whether the `ready` of the next row in the file follows a row before it, and how long after.
fn ready(row: &Row, carried: &mut Carried) -> (bool, Option<i64>) {
    let before = carried.end_before(row);
    carried.pass(row);
    if row.ready == NO_STAMP {
        (false, None)
    } else if row.ready == before && before != row.due {
        (true, Some(0))
    } else {
        (false, Some(row.ready.wrapping_sub(row.due)))
    }
}

fn sent_after_ready(row: &Row) -> Option<i64> {
    (row.sent != NO_STAMP).then(|| row.sent.wrapping_sub(ready_else_due(row)))
}

/// The stamp that `sent_after_ready_ns` counts from.
const fn ready_else_due(row: &Row) -> i64 {
    if row.ready == NO_STAMP { row.due } else { row.ready }
}

/// The stamp that `end_after_last_ns` counts from. It must not hang on `ready`, which hangs on other rows' ends.
fn last_stamp(row: &Row) -> i64 {
    let reached = row.marks.iter().rev().find(|mark| **mark != NO_STAMP);
    reached.copied().unwrap_or(row.due)
}

/// The words of the outcome columns, made once a row group.
struct Words {
    committed: ByteArray,
    rejected: ByteArray,
    unknown: ByteArray,
    shed: ByteArray,
    classes: [ByteArray; Class::ALL.len()],
}

impl Words {
    fn new() -> Self {
        Self {
            committed: word("committed"),
            rejected: word("rejected"),
            unknown: word("unknown"),
            shed: word("shed"),
            classes: Class::ALL.map(|class| word(class.word())),
        }
    }

    fn outcome(&self, outcome: Outcome) -> ByteArray {
        match outcome {
            Outcome::Committed => &self.committed,
            Outcome::Rejected(_) => &self.rejected,
            Outcome::Unknown => &self.unknown,
            Outcome::Shed => &self.shed,
        }
        .clone()
    }

    fn class(&self, outcome: Outcome) -> Option<ByteArray> {
        match outcome {
            Outcome::Rejected(class) => Some(self.classes[class as usize - 1].clone()),
            Outcome::Committed | Outcome::Unknown | Outcome::Shed => None,
        }
    }
}

/// Reads rows back, a batch at a time.
pub struct TransactionsReader<'a> {
    path: &'a Path,
    file: ColumnsReader,
    stage_count: usize,
    has_lag: bool,
    next_group: usize,
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
        let next_group = 0;
        Ok(Self { path, file, stage_count, has_lag, next_group, group: None, carried, rows })
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
            if self.next_group == self.file.group_count() {
                return Ok(false);
            }
            let group = self.file.group(self.next_group)?;
            self.group = Some(Group::open(group, self.stage_count, self.has_lag)?);
            self.next_group += 1;
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
            if *follows && base == NO_STAMP {
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
