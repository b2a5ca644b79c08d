//! traces.parquet: the spans of sampled transactions, by transaction and then by time. `tx` unsigned 64, `stage` and
//! `node` text, `from_ns` and `to_ns` signed 64, nanoseconds after the trial's start.

use std::io::Write;
use std::path::Path;

use model::node_events::{NodeStage, Span};
use model::{Stamp, TxId};
use parquet::data_type::{ByteArrayType, Int64Type};
use parquet::errors::ParquetError;

use crate::columns::{Column, ColumnsReader, ColumnsWriter, Kind, Source, guarded};
use crate::error::RecordError;
use crate::tables::{GROUP_ROWS_MAX, READ_ROWS_MAX, Texts, text};

/// The most spans that are kept, and read: 10 MB of memory, a few hundred times what a reader looks at.
pub const SPANS_MAX: usize = 1 << 18;

/// A span with the indices of its stage and node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeptSpan {
    /// The transaction.
    pub tx: TxId,
    /// The stage.
    pub stage: u32,
    /// The node.
    pub node: u32,
    /// When the stage began.
    pub from: Stamp,
    /// When it was done.
    pub to: Stamp,
}

fn columns() -> [Column; 5] {
    [
        Column::required("tx", Kind::Unsigned64),
        Column::required("stage", Kind::Text),
        Column::required("node", Kind::Text),
        Column::required("from_ns", Kind::Signed64),
        Column::required("to_ns", Kind::Signed64),
    ]
}

/// Writes the file.
pub fn write(
    out: impl Write + Send,
    spans: &[KeptSpan],
    stages: &[NodeStage],
    nodes: &[String],
) -> Result<(), ParquetError> {
    let notes = [("assay.schema", "assay.traces/1".to_owned())];
    let mut file = ColumnsWriter::start(out, "traces", &columns(), &notes)?;
    let stages: Vec<_> = stages.iter().map(|stage| text(&stage.name)).collect();
    let nodes: Vec<_> = nodes.iter().map(|node| text(node)).collect();
    for spans in spans.chunks(GROUP_ROWS_MAX) {
        let mut group = file.group()?;
        group.signed_64(spans.iter().map(|span| span.tx.cast_signed()))?;
        group.text(spans.iter().map(|span| stages[span.stage as usize].clone()))?;
        group.text(spans.iter().map(|span| nodes[span.node as usize].clone()))?;
        group.signed_64(spans.iter().map(|span| span.from))?;
        group.signed_64(spans.iter().map(|span| span.to))?;
        group.finish()?;
    }
    file.finish().map(|_| ())
}

/// Reads the file.
pub fn read(path: &Path, source: Source, stages: &[NodeStage]) -> Result<Vec<Span>, RecordError> {
    guarded(path, || {
        let file = ColumnsReader::open(source)?;
        file.check(&columns())?;
        if file.row_count() > SPANS_MAX as u64 {
            return Err(ParquetError::General(format!("it has more than {SPANS_MAX} spans")));
        }
        let (mut spans, mut texts) = (Vec::new(), Texts::new());
        for index in 0..file.group_count() {
            let mut group = file.group(index)?;
            let mut tx = group.column::<Int64Type>()?;
            let mut stage = group.column::<ByteArrayType>()?;
            let mut node = group.column::<ByteArrayType>()?;
            let mut from = group.column::<Int64Type>()?;
            let mut to = group.column::<Int64Type>()?;
            loop {
                let count = group.take_rows(READ_ROWS_MAX);
                if count == 0 {
                    break;
                }
                let (tx, from, to) =
                    (tx.required(count)?, from.required(count)?, to.required(count)?);
                let (stage, node) = (stage.required(count)?, node.required(count)?);
                for row in 0..count {
                    let name = texts.take(&stage[row])?;
                    let place = stages.iter().position(|stage| stage.name == name);
                    let place = place.and_then(|place| u32::try_from(place).ok());
                    spans.push(Span {
                        tx: tx[row].cast_unsigned(),
                        stage: place.ok_or_else(|| undeclared(&name))?,
                        node: texts.take(&node[row])?,
                        from: from[row],
                        to: to[row],
                    });
                }
            }
        }
        Ok(spans)
    })
}

fn undeclared(name: &str) -> ParquetError {
    let shown: String = name.chars().take(60).collect();
    ParquetError::General(format!("it has the stage `{shown}`, which trial.json does not declare"))
}
