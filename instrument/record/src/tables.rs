//! metrics.parquet, events.parquet and ledger.parquet: what a trial has beside its rows.
//!
//! | file | columns |
//! | --- | --- |
//! | metrics.parquet | `at_ns` signed 64, `source` text, `name` text, `value` double |
//! | events.parquet | `at_ns` signed 64, `name` text, `tx` unsigned 64 or null, `detail` text |
//! | ledger.parquet | `position` unsigned 64, `tx` unsigned 64, `ours` boolean, `refused` boolean, `waiting` boolean, `block` unsigned 64, `submitted_unix_ns` and `recorded_unix_ns` signed 64 or null, `content` bytes or null |

use std::io::Write;
use std::path::Path;

use clock::WallTime;
use model::facts::{Event, LedgerEntry, MetricSample};
use model::secret;
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::errors::ParquetError;

use crate::columns::{
    Column, ColumnReader, ColumnsReader, ColumnsWriter, GroupReader, Kind, Source, guarded,
};
use crate::error::RecordError;

/// Rows in a row group of these files.
pub const GROUP_ROWS_MAX: usize = 64 << 10;
/// Bytes of contents at which a row group of the ledger ends before it has that many: what a reader holds.
const GROUP_CONTENT_BYTES: usize = 8 << 20;
/// Rows read at a time.
pub const READ_ROWS_MAX: usize = 8192;
/// The most metric samples, and the most events, that are read into memory: 20 series a second for two days.
const LIST_ROWS_MAX: u64 = 4_000_000;
/// The most text of all of them together: a few bytes of a dictionary can claim any number of repetitions.
const LIST_TEXT_BYTES_MAX: usize = 256 << 20;
/// The longest text in them that is kept; longer ones are cut when they are written.
const TEXT_BYTES_MAX: usize = 4096;

fn metric_columns() -> [Column; 4] {
    [
        Column::required("at_ns", Kind::Signed64),
        Column::required("source", Kind::Text),
        Column::required("name", Kind::Text),
        Column::required("value", Kind::Double),
    ]
}

fn event_columns() -> [Column; 4] {
    [
        Column::required("at_ns", Kind::Signed64),
        Column::required("name", Kind::Text),
        Column::optional("tx", Kind::Unsigned64),
        Column::required("detail", Kind::Text),
    ]
}

fn ledger_columns() -> [Column; 9] {
    [
        Column::required("position", Kind::Unsigned64),
        Column::required("tx", Kind::Unsigned64),
        Column::required("ours", Kind::Boolean),
        Column::required("refused", Kind::Boolean),
        Column::required("waiting", Kind::Boolean),
        Column::required("block", Kind::Unsigned64),
        Column::optional("submitted_unix_ns", Kind::Signed64),
        Column::optional("recorded_unix_ns", Kind::Signed64),
        Column::optional("content", Kind::Bytes),
    ]
}

/// A text as a column takes it: without secrets, cut at a character's edge where it is too long.
pub fn text(text: &str) -> ByteArray {
    let text = &*secret::scrub(text);
    let mut end = text.len().min(TEXT_BYTES_MAX);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    ByteArray::from(text.as_bytes()[..end].to_vec())
}

/// Takes texts out of columns, up to a bound in all.
pub struct Texts {
    bytes_left: usize,
}

impl Texts {
    /// None taken yet.
    pub const fn new() -> Self {
        Self { bytes_left: LIST_TEXT_BYTES_MAX }
    }

    /// The text in a cell.
    pub fn take(&mut self, bytes: &ByteArray) -> Result<String, ParquetError> {
        let bytes = bytes.data();
        let text = String::from_utf8_lossy(&bytes[..bytes.len().min(TEXT_BYTES_MAX)]).into_owned();
        self.bytes_left = self.bytes_left.checked_sub(text.len()).ok_or_else(|| {
            ParquetError::General(format!("it has more than {LIST_TEXT_BYTES_MAX} bytes of text"))
        })?;
        Ok(text)
    }
}

/// Writes metrics.parquet.
pub fn write_metrics(out: impl Write + Send, samples: &[MetricSample]) -> Result<(), ParquetError> {
    let notes = [("assay.schema", "assay.metrics/1".to_owned())];
    let mut file = ColumnsWriter::start(out, "metrics", &metric_columns(), &notes)?;
    for samples in samples.chunks(GROUP_ROWS_MAX) {
        let mut group = file.group()?;
        group.signed_64(samples.iter().map(|sample| sample.at))?;
        group.text(samples.iter().map(|sample| text(&sample.source)))?;
        group.text(samples.iter().map(|sample| text(&sample.name)))?;
        group.double(samples.iter().map(|sample| sample.value))?;
        group.finish()?;
    }
    file.finish().map(|_| ())
}

/// Reads metrics.parquet.
pub fn read_metrics(path: &Path, source: Source) -> Result<Vec<MetricSample>, RecordError> {
    guarded(path, || {
        let file = open_list(source, &metric_columns())?;
        let (mut samples, mut texts) = (Vec::new(), Texts::new());
        for index in 0..file.group_count() {
            let mut group = file.group(index)?;
            let mut at = group.column::<Int64Type>()?;
            let mut sources = group.column::<ByteArrayType>()?;
            let mut names = group.column::<ByteArrayType>()?;
            let mut values = group.column::<DoubleType>()?;
            loop {
                let count = group.take_rows(READ_ROWS_MAX);
                if count == 0 {
                    break;
                }
                let (at, values) = (at.required(count)?, values.required(count)?);
                let (sources, names) = (sources.required(count)?, names.required(count)?);
                for row in 0..count {
                    samples.push(MetricSample {
                        at: at[row],
                        source: texts.take(&sources[row])?,
                        name: texts.take(&names[row])?,
                        value: values[row],
                    });
                }
            }
        }
        Ok(samples)
    })
}

/// Writes events.parquet.
pub fn write_events(out: impl Write + Send, events: &[Event]) -> Result<(), ParquetError> {
    let notes = [("assay.schema", "assay.events/1".to_owned())];
    let mut file = ColumnsWriter::start(out, "events", &event_columns(), &notes)?;
    for events in events.chunks(GROUP_ROWS_MAX) {
        let mut group = file.group()?;
        group.signed_64(events.iter().map(|event| event.at))?;
        group.text(events.iter().map(|event| text(&event.name)))?;
        group.optional_64(events.iter().map(|event| event.tx.map(u64::cast_signed)))?;
        group.text(events.iter().map(|event| text(&event.detail)))?;
        group.finish()?;
    }
    file.finish().map(|_| ())
}

/// Reads events.parquet.
pub fn read_events(path: &Path, source: Source) -> Result<Vec<Event>, RecordError> {
    guarded(path, || {
        let file = open_list(source, &event_columns())?;
        let (mut events, mut texts) = (Vec::new(), Texts::new());
        for index in 0..file.group_count() {
            let mut group = file.group(index)?;
            let mut at = group.column::<Int64Type>()?;
            let mut names = group.column::<ByteArrayType>()?;
            let mut tx = group.column::<Int64Type>()?;
            let mut details = group.column::<ByteArrayType>()?;
            loop {
                let count = group.take_rows(READ_ROWS_MAX);
                if count == 0 {
                    break;
                }
                let (at, (tx, levels)) = (at.required(count)?, tx.optional(count)?);
                let (names, details) = (names.required(count)?, details.required(count)?);
                let mut present = tx.iter();
                for row in 0..count {
                    let tx = if levels[row] == 0 { None } else { present.next() };
                    events.push(Event {
                        at: at[row],
                        name: texts.take(&names[row])?,
                        tx: tx.map(|tx| tx.cast_unsigned()),
                        detail: texts.take(&details[row])?,
                    });
                }
            }
        }
        Ok(events)
    })
}

/// Opens a file whose rows are read into memory, all of them.
fn open_list(source: Source, columns: &[Column]) -> Result<ColumnsReader, ParquetError> {
    let file = ColumnsReader::open(source)?;
    file.check(columns)?;
    if file.row_count() > LIST_ROWS_MAX {
        let why = format!("it has more than {LIST_ROWS_MAX} rows");
        return Err(ParquetError::General(why));
    }
    Ok(file)
}

/// Writes ledger.parquet, an entry at a time, in bounded memory.
pub struct LedgerColumns<W: Write + Send> {
    file: ColumnsWriter<W>,
    group: Vec<LedgerEntry>,
    contents: Vec<Option<ByteArray>>,
    content_bytes: usize,
}

impl<W: Write + Send> LedgerColumns<W> {
    /// Starts the file.
    pub fn start(out: W) -> Result<Self, ParquetError> {
        let notes = [("assay.schema", "assay.ledger/3".to_owned())];
        let file = ColumnsWriter::start(out, "ledger", &ledger_columns(), &notes)?;
        let group = Vec::with_capacity(GROUP_ROWS_MAX);
        Ok(Self { file, group, contents: Vec::new(), content_bytes: 0 })
    }

    /// Adds an entry, and what it holds if that is wanted.
    pub fn push(&mut self, entry: LedgerEntry, content: Option<&[u8]>) -> Result<(), ParquetError> {
        self.group.push(entry);
        self.content_bytes += content.map_or(0, <[u8]>::len);
        self.contents.push(content.map(|bytes| ByteArray::from(secret::mask(bytes).into_owned())));
        let is_full =
            self.group.len() == GROUP_ROWS_MAX || self.content_bytes >= GROUP_CONTENT_BYTES;
        if is_full { self.write_group() } else { Ok(()) }
    }

    /// Writes what is left and the footer, and gives the output. To be called once.
    pub fn finish(&mut self) -> Result<&mut W, ParquetError> {
        if !self.group.is_empty() {
            self.write_group()?;
        }
        self.file.finish()
    }

    fn write_group(&mut self) -> Result<(), ParquetError> {
        let mut group = self.file.group()?;
        group.signed_64(self.group.iter().map(|entry| entry.position.cast_signed()))?;
        group.signed_64(self.group.iter().map(|entry| entry.tx.cast_signed()))?;
        group.boolean(self.group.iter().map(|entry| entry.ours))?;
        group.boolean(self.group.iter().map(|entry| entry.is_refused))?;
        group.boolean(self.group.iter().map(|entry| entry.is_waiting))?;
        group.signed_64(self.group.iter().map(|entry| entry.block.cast_signed()))?;
        let ns = |time: Option<WallTime>| time.map(WallTime::unix_ns);
        group.optional_64(self.group.iter().map(|entry| ns(entry.submitted)))?;
        group.optional_64(self.group.iter().map(|entry| ns(entry.recorded)))?;
        group.optional_text(self.contents.drain(..))?;
        group.finish()?;
        self.group.clear();
        self.content_bytes = 0;
        Ok(())
    }
}

/// A column of times, of which some are absent.
struct OptionalTimes<'a> {
    present: std::slice::Iter<'a, i64>,
    levels: &'a [i16],
}

impl<'a> OptionalTimes<'a> {
    fn of((values, levels): (&'a [i64], &'a [i16])) -> Self {
        Self { present: values.iter(), levels }
    }

    /// The time in `row`; rows are to be taken one after another.
    fn take(&mut self, row: usize) -> Option<WallTime> {
        if self.levels[row] == 0 {
            return None;
        }
        self.present.next().map(|ns| WallTime::from_unix_ns(*ns))
    }
}

/// Reads ledger.parquet in batches, in the ledger's order: each entry with what it holds, which is empty where none
/// was kept.
pub fn read_ledger(
    path: &Path,
    source: Source,
    mut f: impl FnMut(&LedgerEntry, &[u8]),
) -> Result<u64, RecordError> {
    let file = guarded(path, || {
        let file = ColumnsReader::open(source)?;
        file.check(&ledger_columns())?;
        Ok(file)
    })?;
    let mut total = 0;
    let (mut entries, mut contents) = (Vec::new(), Vec::new());
    for index in 0..file.group_count() {
        let mut group = guarded(path, || LedgerGroup::open(file.group(index)?))?;
        while guarded(path, || group.next_batch(&mut entries, &mut contents))? {
            // Outside the guard: a panic of the caller's is the caller's.
            for (entry, content) in entries.iter().zip(&contents) {
                f(entry, content.as_ref().map_or(&[][..], ByteArray::data));
            }
            total += entries.len() as u64;
        }
    }
    Ok(total)
}

/// One row group of ledger.parquet.
struct LedgerGroup {
    group: GroupReader,
    position: ColumnReader<Int64Type>,
    tx: ColumnReader<Int64Type>,
    ours: ColumnReader<BoolType>,
    refused: ColumnReader<BoolType>,
    waiting: ColumnReader<BoolType>,
    block: ColumnReader<Int64Type>,
    submitted: ColumnReader<Int64Type>,
    recorded: ColumnReader<Int64Type>,
    content: ColumnReader<ByteArrayType>,
}

impl LedgerGroup {
    fn open(mut group: GroupReader) -> Result<Self, ParquetError> {
        Ok(Self {
            position: group.column()?,
            tx: group.column()?,
            ours: group.column()?,
            refused: group.column()?,
            waiting: group.column()?,
            block: group.column()?,
            submitted: group.column()?,
            recorded: group.column()?,
            content: group.column()?,
            group,
        })
    }

    /// The next entries in place of those of before; false at the end of the group.
    fn next_batch(
        &mut self,
        entries: &mut Vec<LedgerEntry>,
        contents: &mut Vec<Option<ByteArray>>,
    ) -> Result<bool, ParquetError> {
        entries.clear();
        contents.clear();
        let count = self.group.take_rows(READ_ROWS_MAX);
        if count == 0 {
            return Ok(false);
        }
        let (position, tx) = (self.position.required(count)?, self.tx.required(count)?);
        let (ours, refused) = (self.ours.required(count)?, self.refused.required(count)?);
        let waiting = self.waiting.required(count)?;
        let block = self.block.required(count)?;
        let mut submitted = OptionalTimes::of(self.submitted.optional(count)?);
        let mut recorded = OptionalTimes::of(self.recorded.optional(count)?);
        entries.extend((0..count).map(|row| LedgerEntry {
            position: position[row].cast_unsigned(),
            tx: tx[row].cast_unsigned(),
            ours: ours[row],
            is_refused: refused[row],
            is_waiting: waiting[row],
            block: block[row].cast_unsigned(),
            submitted: submitted.take(row),
            recorded: recorded.take(row),
        }));
        let (bytes, levels) = self.content.optional(count)?;
        let mut present = bytes.iter();
        contents.extend(
            levels.iter().map(|level| if *level == 0 { None } else { present.next().cloned() }),
        );
        Ok(true)
    }
}
