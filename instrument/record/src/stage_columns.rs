//! stages.parquet: what was done in each second at each stage of each node.
//!
//! `second` signed 64 after the trial's start, `stage` and `node` text, `count` unsigned 64 (transactions), `sum_ns`
//! unsigned 64 (of the lengths that nodes gave), `histogram` bytes (those lengths, in nanoseconds, HdrHistogram's V2
//! encoding with three digits: one sample an event, however many transactions it was of). A second, stage and node may
//! stand in several rows, which add up, as histograms do; quantiles are of the sum and are never averaged.

use std::io::Write;
use std::path::Path;

use bytes::Bytes;
use model::node_events::NodeStage;
use parquet::data_type::{ByteArray, ByteArrayType, Int64Type};
use parquet::errors::ParquetError;

use crate::columns::{Column, ColumnsReader, ColumnsWriter, Kind, Source, guarded};
use crate::error::RecordError;
use crate::histogram_v2;
use crate::slots::Counts;
use crate::tables::text;

/// Rows in a row group: histograms of some kB each, and a reader takes a group at a time.
const GROUP_ROWS_MAX: usize = 4096;
/// Rows read at a time.
const READ_ROWS_MAX: usize = 512;
/// The longest name that is read.
const NAME_BYTES_MAX: usize = 4096;

/// The open part of a second.
#[derive(Debug)]
pub struct Cell {
    /// Second after the trial's start.
    pub second: i64,
    /// The stage.
    pub stage: u32,
    /// The node.
    pub node: u32,
    /// Transactions.
    pub count: u64,
    /// Sum of the lengths.
    pub sum_ns: u64,
    /// The lengths.
    pub lengths: Counts,
}

/// A row of stages.parquet: what a node did at a stage in a second, or a part of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StageSecond<'a> {
    /// Second after the trial's start; negative before it.
    pub second: i64,
    /// The stage.
    pub stage: &'a str,
    /// The node.
    pub node: &'a str,
    /// Transactions.
    pub count: u64,
    /// Sum of the lengths that the node gave, nanoseconds.
    pub sum_ns: u64,
    /// How many lengths there are.
    pub samples: u64,
    /// The lengths: the highest value of a slot of three digits, and how many are in it; ascending.
    pub lengths: &'a [(i64, u64)],
}

fn columns() -> [Column; 6] {
    [
        Column::required("second", Kind::Signed64),
        Column::required("stage", Kind::Text),
        Column::required("node", Kind::Text),
        Column::required("count", Kind::Unsigned64),
        Column::required("sum_ns", Kind::Unsigned64),
        Column::required("histogram", Kind::Bytes),
    ]
}

/// Writes the file, in bounded memory.
pub struct StageColumns<W: Write + Send> {
    file: ColumnsWriter<W>,
    slots: Vec<(usize, u64)>,
}

impl<W: Write + Send> StageColumns<W> {
    /// Starts the file.
    pub fn start(out: W) -> Result<Self, ParquetError> {
        let notes = [("assay.schema", "assay.stages/1".to_owned())];
        let file = ColumnsWriter::start(out, "stages", &columns(), &notes)?;
        Ok(Self { file, slots: Vec::new() })
    }

    /// Adds rows.
    pub fn write(
        &mut self,
        cells: &[Cell],
        stages: &[NodeStage],
        nodes: &[String],
    ) -> Result<(), ParquetError> {
        let stages: Vec<_> = stages.iter().map(|stage| text(&stage.name)).collect();
        let nodes: Vec<_> = nodes.iter().map(|node| text(node)).collect();
        for cells in cells.chunks(GROUP_ROWS_MAX) {
            // All histograms of a group lie in one piece of memory.
            let (mut encoded, mut ends) = (Vec::new(), Vec::with_capacity(cells.len()));
            for cell in cells {
                self.slots.clear();
                self.slots.extend(cell.lengths.slots().map(|(slot, n)| (slot, u64::from(n))));
                histogram_v2::write(&mut self.slots, &mut encoded);
                ends.push(encoded.len());
            }
            let encoded = Bytes::from(encoded);
            let starts = std::iter::once(0).chain(ends.iter().copied());
            let histograms = starts.zip(&ends).map(|(start, end)| encoded.slice(start..*end));
            let mut group = self.file.group()?;
            group.signed_64(cells.iter().map(|cell| cell.second))?;
            group.text(cells.iter().map(|cell| stages[cell.stage as usize].clone()))?;
            group.text(cells.iter().map(|cell| nodes[cell.node as usize].clone()))?;
            group.signed_64(cells.iter().map(|cell| cell.count.cast_signed()))?;
            group.signed_64(cells.iter().map(|cell| cell.sum_ns.cast_signed()))?;
            group.text(histograms.map(ByteArray::from))?;
            group.finish()?;
        }
        Ok(())
    }

    /// Writes the footer and gives the output. To be called once.
    pub fn finish(&mut self) -> Result<&mut W, ParquetError> {
        self.file.finish()
    }
}

/// Reads the file row by row and gives the number of rows.
pub fn read(
    path: &Path,
    source: Source,
    mut f: impl FnMut(&StageSecond<'_>),
) -> Result<u64, RecordError> {
    let file = guarded(path, || {
        let file = ColumnsReader::open(source)?;
        file.check(&columns())?;
        Ok(file)
    })?;
    let mut total = 0;
    let mut lengths = Vec::new();
    for index in 0..file.group_count() {
        let (mut group, mut seconds, mut names, mut counts, mut histograms) =
            guarded(path, || {
                let mut group = file.group(index)?;
                let seconds = group.column::<Int64Type>()?;
                let names = (group.column::<ByteArrayType>()?, group.column::<ByteArrayType>()?);
                let counts = (group.column::<Int64Type>()?, group.column::<Int64Type>()?);
                let histograms = group.column::<ByteArrayType>()?;
                Ok((group, seconds, names, counts, histograms))
            })?;
        loop {
            let count = group.take_rows(READ_ROWS_MAX);
            if count == 0 {
                break;
            }
            let (seconds, stages, nodes, counts, sums, histograms) = guarded(path, || {
                Ok((
                    seconds.required(count)?,
                    names.0.required(count)?,
                    names.1.required(count)?,
                    counts.0.required(count)?,
                    counts.1.required(count)?,
                    histograms.required(count)?,
                ))
            })?;
            for row in 0..count {
                let samples = histogram_v2::read(histograms[row].data(), &mut lengths)
                    .map_err(|why| RecordError::damaged(path, why))?;
                // Outside the guard: a panic of the caller's is the caller's.
                f(&StageSecond {
                    second: seconds[row],
                    stage: name(path, &stages[row])?,
                    node: name(path, &nodes[row])?,
                    count: counts[row].cast_unsigned(),
                    sum_ns: sums[row].cast_unsigned(),
                    samples,
                    lengths: &lengths,
                });
            }
            total += count as u64;
        }
    }
    Ok(total)
}

fn name<'a>(path: &Path, bytes: &'a ByteArray) -> Result<&'a str, RecordError> {
    let bytes = bytes.data();
    let name = std::str::from_utf8(bytes).ok().filter(|name| name.len() <= NAME_BYTES_MAX);
    name.ok_or_else(|| RecordError::damaged(path, "a name in it is no text, or too long"))
}
