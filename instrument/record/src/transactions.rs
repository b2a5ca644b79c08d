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

mod reader;

use std::io::Write;

use model::facts::{KindFacts, TrialFacts};
use model::{Class, NO_STAMP, Outcome, Row, STAGES_MAX};
use parquet::data_type::ByteArray;
use parquet::errors::ParquetError;

use crate::carried::Carried;
use crate::columns::{Column, ColumnsWriter, Kind, word};

pub use reader::TransactionsReader;

/// Rows in a row group: 14 MB while it is written, under 1 MB on disk.
pub const GROUP_ROWS_MAX: usize = 128 << 10;

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
