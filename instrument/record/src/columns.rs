//! Columns of a Parquet file, written and read a row group at a time with the `parquet` crate's low-level
//! interface. It knows types and encodings, not what any column means.
//!
//! Reading distrusts the file: nothing is compressed, a row group is read only if it lies inside the file and
//! is smaller than a bound, columns must be those expected, and a panic of the `parquet` crate over bytes that
//! it did not foresee becomes an error ([`guarded`]). Files are checked against their checksum before they
//! come here, so that only a forged file gets that far.

use std::fs::File;
use std::io::Write;
use std::os::unix::fs::FileExt as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;

use bytes::{Buf as _, Bytes};
use parquet::basic::{Compression, Encoding, LogicalType, Repetition, Type as Physical};
use parquet::column::reader::ColumnReaderImpl;
use parquet::data_type::{
    BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int32Type, Int64Type,
};
use parquet::errors::ParquetError;
use parquet::file::metadata::{KeyValue, ParquetMetaData, ParquetMetaDataReader};
use parquet::file::properties::{WriterProperties, WriterVersion};
use parquet::file::reader::{ChunkReader, Length};
use parquet::file::serialized_reader::SerializedPageReader;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::{ColumnPath, Type};

use crate::error::RecordError;
use crate::numbered_words;

/// The largest row group that is read: 131,072 rows of transactions at 150 bytes a row are 20 MB.
const ROW_GROUP_BYTES_MAX: u64 = 256 << 20;
/// The largest footer: 100,000 row groups of 20 columns are some 150 MB; a run of 10 million rows has 77.
const FOOTER_BYTES_MAX: u64 = 256 << 20;
/// Distinct values of a column in a row group beyond which a dictionary no longer pays.
const DICTIONARY_BYTES_MAX: usize = 64 << 10;

/// The content of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// 64-bit numbers that change little from row to row.
    Signed64,
    /// The same, unsigned.
    Unsigned64,
    /// Unsigned numbers of that many bits, of which there are few different ones.
    Unsigned(i8),
    /// Fractions.
    Double,
    /// True or false.
    Boolean,
    /// Words, of which there are few different ones.
    Text,
    /// Bytes of any kind.
    Bytes,
}

/// A column's name and shape.
#[derive(Clone, Debug)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// Its content.
    pub kind: Kind,
    /// Whether a row may have no value in it.
    pub optional: bool,
}

impl Column {
    /// A column that has a value in every row.
    pub fn required(name: &str, kind: Kind) -> Self {
        Self { name: name.to_owned(), kind, optional: false }
    }

    /// A column that may be null.
    pub fn optional(name: &str, kind: Kind) -> Self {
        Self { name: name.to_owned(), kind, optional: true }
    }

    const fn physical(&self) -> Physical {
        match self.kind {
            Kind::Signed64 | Kind::Unsigned64 => Physical::INT64,
            Kind::Unsigned(_) => Physical::INT32,
            Kind::Double => Physical::DOUBLE,
            Kind::Boolean => Physical::BOOLEAN,
            Kind::Text | Kind::Bytes => Physical::BYTE_ARRAY,
        }
    }

    fn logical(&self) -> Option<LogicalType> {
        match self.kind {
            Kind::Unsigned64 => Some(LogicalType::integer(64, false)),
            Kind::Unsigned(bits) => Some(LogicalType::integer(bits, false)),
            Kind::Text => Some(LogicalType::String),
            Kind::Signed64 | Kind::Double | Kind::Boolean | Kind::Bytes => None,
        }
    }

    fn schema(&self) -> Result<Type, ParquetError> {
        let repetition = if self.optional { Repetition::OPTIONAL } else { Repetition::REQUIRED };
        Type::primitive_type_builder(&self.name, self.physical())
            .with_repetition(repetition)
            .with_logical_type(self.logical())
            .build()
    }
}

/// Writes row groups, each column by column in the order of the schema.
pub struct ColumnsWriter<W: Write + Send> {
    file: SerializedFileWriter<W>,
}

impl<W: Write + Send> ColumnsWriter<W> {
    /// Starts a file with the given columns; `notes` are its key-value metadata.
    pub fn start(
        out: W,
        name: &str,
        columns: &[Column],
        notes: &[(&str, String)],
    ) -> Result<Self, ParquetError> {
        let fields = columns.iter().map(|c| c.schema().map(Arc::new)).collect::<Result<_, _>>()?;
        let schema = Type::group_type_builder(name).with_fields(fields).build()?;
        let notes = notes.iter().map(|(k, v)| KeyValue::new((*k).to_owned(), v.clone())).collect();
        // Nothing is compressed: what these encodings leave is noise (figures in `crate::transactions`).
        let mut properties = WriterProperties::builder()
            .set_writer_version(WriterVersion::PARQUET_2_0)
            .set_compression(Compression::UNCOMPRESSED)
            .set_created_by(format!("assay {}", env!("CARGO_PKG_VERSION")))
            .set_max_row_group_row_count(None)
            .set_dictionary_page_size_limit(DICTIONARY_BYTES_MAX)
            .set_key_value_metadata(Some(notes));
        for column in columns {
            let path = ColumnPath::new(vec![column.name.clone()]);
            match column.kind {
                Kind::Signed64 | Kind::Unsigned64 => {
                    properties = properties
                        .set_column_dictionary_enabled(path.clone(), false)
                        .set_column_encoding(path, Encoding::DELTA_BINARY_PACKED);
                }
                Kind::Unsigned(_) => {
                    properties =
                        properties.set_column_encoding(path, Encoding::DELTA_BINARY_PACKED);
                }
                Kind::Double | Kind::Boolean | Kind::Text | Kind::Bytes => {}
            }
        }
        let file = SerializedFileWriter::new(out, Arc::new(schema), Arc::new(properties.build()))?;
        Ok(Self { file })
    }

    /// Starts a row group.
    pub fn group(&mut self) -> Result<GroupWriter<'_, W>, ParquetError> {
        Ok(GroupWriter { group: self.file.next_row_group()? })
    }

    /// Writes the footer and gives the output, to which everything has been written. To be called once.
    /// (The crate's `into_inner` would hide a full disk in a text.)
    pub fn finish(&mut self) -> Result<&mut W, ParquetError> {
        self.file.finish()?;
        Ok(self.file.inner_mut())
    }
}

/// Writes one row group.
pub struct GroupWriter<'a, W: Write + Send> {
    group: SerializedRowGroupWriter<'a, W>,
}

impl<W: Write + Send> GroupWriter<'_, W> {
    /// The next column, of 64-bit integers.
    pub fn signed_64(&mut self, values: impl Iterator<Item = i64>) -> Result<(), ParquetError> {
        self.column::<Int64Type>(&values.collect::<Vec<_>>(), None)
    }

    /// The next column, of 64-bit integers that may be missing.
    pub fn optional_64(
        &mut self,
        values: impl Iterator<Item = Option<i64>>,
    ) -> Result<(), ParquetError> {
        let mut present = Vec::new();
        let levels: Vec<i16> = values
            .map(|value| {
                present.extend(value);
                i16::from(value.is_some())
            })
            .collect();
        self.column::<Int64Type>(&present, Some(&levels))
    }

    /// The next column, of unsigned integers of at most 32 bits.
    pub fn unsigned(&mut self, values: impl Iterator<Item = u32>) -> Result<(), ParquetError> {
        self.column::<Int32Type>(&values.map(u32::cast_signed).collect::<Vec<_>>(), None)
    }

    /// The next column, of fractions.
    pub fn double(&mut self, values: impl Iterator<Item = f64>) -> Result<(), ParquetError> {
        self.column::<DoubleType>(&values.collect::<Vec<_>>(), None)
    }

    /// The next column, of truths.
    pub fn boolean(&mut self, values: impl Iterator<Item = bool>) -> Result<(), ParquetError> {
        self.column::<BoolType>(&values.collect::<Vec<_>>(), None)
    }

    /// The next column, of words or bytes.
    pub fn text(&mut self, values: impl Iterator<Item = ByteArray>) -> Result<(), ParquetError> {
        self.column::<ByteArrayType>(&values.collect::<Vec<_>>(), None)
    }

    /// The next column, of words that may be missing.
    pub fn optional_text(
        &mut self,
        values: impl Iterator<Item = Option<ByteArray>>,
    ) -> Result<(), ParquetError> {
        let mut present = Vec::new();
        let mut levels = Vec::new();
        for value in values {
            levels.push(i16::from(value.is_some()));
            present.extend(value);
        }
        self.column::<ByteArrayType>(&present, Some(&levels))
    }

    /// Ends the row group.
    pub fn finish(self) -> Result<(), ParquetError> {
        self.group.close().map(|_| ())
    }

    fn column<T: DataType>(
        &mut self,
        values: &[T::T],
        levels: Option<&[i16]>,
    ) -> Result<(), ParquetError> {
        let mut column = self
            .group
            .next_column()?
            .ok_or_else(|| ParquetError::General("more columns than the schema has".to_owned()))?;
        column.typed::<T>().write_batch(values, levels, None)?;
        column.close()
    }
}

/// A word as the writer takes it; clones share their bytes.
pub fn word(text: &'static str) -> ByteArray {
    ByteArray::from(Bytes::from_static(text.as_bytes()))
}

/// A Parquet file opened for reading.
pub struct ColumnsReader {
    source: Source,
    metadata: ParquetMetaData,
}

/// Where the bytes of a Parquet file are.
pub enum Source {
    /// In a file.
    File(File),
    /// In memory.
    Memory(Bytes),
}

impl Source {
    fn length(&self) -> Result<u64, ParquetError> {
        match self {
            Self::File(file) => Ok(file.metadata()?.len()),
            Self::Memory(bytes) => Ok(bytes.len() as u64),
        }
    }

    /// `count` bytes from `start`, which lie inside the file.
    fn read(&self, start: u64, count: usize) -> Result<Bytes, ParquetError> {
        match self {
            Self::File(file) => {
                let mut buffer = vec![0; count];
                file.read_exact_at(&mut buffer, start)?;
                Ok(buffer.into())
            }
            Self::Memory(bytes) => {
                let start = usize::try_from(start).map_err(|_| outside())?;
                let end = start.checked_add(count).filter(|end| *end <= bytes.len());
                Ok(bytes.slice(start..end.ok_or_else(outside)?))
            }
        }
    }
}

fn outside() -> ParquetError {
    ParquetError::General("it points outside itself".to_owned())
}

/// A part of a file, held in memory, that answers to offsets in the file.
struct Window {
    start: u64,
    bytes: Bytes,
}

impl Length for Window {
    fn len(&self) -> u64 {
        self.start + self.bytes.len() as u64
    }
}

impl Window {
    fn from(&self, start: u64) -> Result<Bytes, ParquetError> {
        let offset = start
            .checked_sub(self.start)
            .and_then(|offset| usize::try_from(offset).ok())
            .filter(|offset| *offset <= self.bytes.len())
            .ok_or_else(outside)?;
        Ok(self.bytes.slice(offset..))
    }
}

impl ChunkReader for Window {
    type T = bytes::buf::Reader<Bytes>;

    fn get_read(&self, start: u64) -> Result<Self::T, ParquetError> {
        Ok(self.from(start)?.reader())
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes, ParquetError> {
        let rest = self.from(start)?;
        if length > rest.len() {
            return Err(outside());
        }
        Ok(rest.slice(..length))
    }
}

impl ColumnsReader {
    /// Reads the footer.
    pub fn open(source: Source) -> Result<Self, ParquetError> {
        let length = source.length()?;
        let tail = source.read(length.checked_sub(8).ok_or_else(outside)?, 8)?;
        let footer_bytes = u64::from(u32::from_le_bytes(tail[..4].try_into().expect("four bytes")));
        if tail[4..] != *b"PAR1" || footer_bytes > FOOTER_BYTES_MAX.min(length - 8) {
            return Err(ParquetError::General("it does not end as a Parquet file".to_owned()));
        }
        let count = usize::try_from(footer_bytes).map_err(|_| outside())?;
        let footer = source.read(length - 8 - footer_bytes, count)?;
        let metadata = ParquetMetaDataReader::decode_metadata(&footer)?;
        Ok(Self { source, metadata })
    }

    /// Names of the columns, in order.
    pub fn names(&self) -> Vec<String> {
        let schema = self.metadata.file_metadata().schema_descr();
        schema.columns().iter().map(|column| column.name().to_owned()).collect()
    }

    /// An entry of the key-value metadata.
    pub fn note(&self, key: &str) -> Option<String> {
        let notes = self.metadata.file_metadata().key_value_metadata()?;
        notes.iter().find(|note| note.key == key)?.value.clone()
    }

    /// Whether these are the columns, in this order.
    pub fn check(&self, expected: &[Column]) -> Result<(), ParquetError> {
        let found = self.metadata.file_metadata().schema_descr().columns();
        let agrees = found.len() == expected.len()
            && found.iter().zip(expected).all(|(found, expected)| {
                found.path().parts() == [expected.name.as_str()]
                    && found.physical_type() == expected.physical()
                    && found.max_rep_level() == 0
                    && found.max_def_level() == i16::from(expected.optional)
            });
        if agrees {
            return Ok(());
        }
        let expected: Vec<_> = expected.iter().map(|column| column.name.as_str()).collect();
        let why = format!("its columns are {:?} and should be {expected:?}", self.names());
        Err(ParquetError::General(why))
    }

    /// Rows that the footer claims.
    pub fn row_count(&self) -> u64 {
        let groups = self.metadata.row_groups().iter();
        groups.fold(0, |sum, group| sum.saturating_add(group.num_rows().max(0).cast_unsigned()))
    }

    /// How many row groups there are.
    pub fn group_count(&self) -> usize {
        self.metadata.num_row_groups()
    }

    /// Reads one row group into memory, still encoded.
    pub fn group(&self, index: usize) -> Result<GroupReader, ParquetError> {
        let group = self.metadata.row_group(index);
        let (mut start, mut end) = (u64::MAX, 0_u64);
        for column in group.columns() {
            if column.compression() != Compression::UNCOMPRESSED {
                return Err(ParquetError::General(
                    "it is compressed, and should not be".to_owned(),
                ));
            }
            // The crate's own `byte_range` panics over a negative offset.
            let first = column.dictionary_page_offset().unwrap_or(column.data_page_offset());
            let first = u64::try_from(first).map_err(|_| outside())?;
            let size = u64::try_from(column.compressed_size()).map_err(|_| outside())?;
            start = start.min(first);
            end = end.max(first.checked_add(size).ok_or_else(outside)?);
        }
        let length = self.source.length()?;
        let count = end.checked_sub(start).ok_or_else(outside)?;
        if end > length || count > ROW_GROUP_BYTES_MAX {
            return Err(outside());
        }
        let count = usize::try_from(count).map_err(|_| outside())?;
        let bytes = self.source.read(start, count)?;
        let rows = usize::try_from(group.num_rows()).map_err(|_| outside())?;
        Ok(GroupReader {
            metadata: group.clone(),
            window: Arc::new(Window { start, bytes }),
            rows_left: rows,
            next_column: 0,
        })
    }
}

/// One row group: columns are taken from it in the order of the schema, then read in batches.
pub struct GroupReader {
    metadata: parquet::file::metadata::RowGroupMetaData,
    window: Arc<Window>,
    rows_left: usize,
    next_column: usize,
}

impl GroupReader {
    /// The next column.
    pub fn column<T: DataType>(&mut self) -> Result<ColumnReader<T>, ParquetError> {
        let index = self.next_column;
        self.next_column += 1;
        let chunk = self.metadata.columns().get(index).ok_or_else(outside)?;
        let pages = SerializedPageReader::new(self.window.clone(), chunk, self.rows_left, None)?;
        let reader = ColumnReaderImpl::new(chunk.column_descr_ptr(), Box::new(pages));
        Ok(ColumnReader { reader, values: Vec::new(), levels: Vec::new() })
    }

    /// The next column, of words that every row has, of which there are few different ones.
    pub fn words(&mut self) -> Result<WordReader, ParquetError> {
        let chunk = self.metadata.columns().get(self.next_column).ok_or_else(outside)?;
        if !numbered_words::has_numbers(chunk) {
            return self.column().map(WordReader::Plain);
        }
        self.next_column += 1;
        let pages = SerializedPageReader::new(self.window.clone(), chunk, self.rows_left, None)?;
        let (reader, words) = numbered_words::numbered(pages, chunk)?;
        let numbers = ColumnReader { reader, values: Vec::new(), levels: Vec::new() };
        Ok(WordReader::Numbered { numbers, words })
    }

    /// How many rows the next batch has: `most`, or what is left.
    pub fn take_rows(&mut self, most: usize) -> usize {
        let count = self.rows_left.min(most);
        self.rows_left -= count;
        count
    }
}

/// A column of words that every row has.
pub enum WordReader {
    /// The words once, and for each row which of them it has.
    Numbered {
        /// The index of each row's word.
        numbers: ColumnReader<Int32Type>,
        /// The words.
        words: Vec<Bytes>,
    },
    /// Each row's word.
    Plain(ColumnReader<ByteArrayType>),
}

/// One column of a row group, read in batches.
pub struct ColumnReader<T: DataType> {
    reader: ColumnReaderImpl<T>,
    values: Vec<T::T>,
    levels: Vec<i16>,
}

impl<T: DataType> ColumnReader<T> {
    /// The next `count` values of a column that has one in every row.
    pub fn required(&mut self, count: usize) -> Result<&[T::T], ParquetError> {
        self.values.clear();
        let (rows, values, _) = self.reader.read_records(count, None, None, &mut self.values)?;
        if rows != count || values != count || self.values.len() != count {
            return Err(short());
        }
        Ok(&self.values)
    }

    /// The next `count` rows of a column that may be null: the values that are there, and for each row
    /// whether it has one (1) or not (0).
    pub fn optional(&mut self, count: usize) -> Result<(&[T::T], &[i16]), ParquetError> {
        self.values.clear();
        self.levels.clear();
        let levels = Some(&mut self.levels);
        let (rows, values, _) = self.reader.read_records(count, levels, None, &mut self.values)?;
        // Wrapping, so that several are counted at a time; there are far fewer than 2^32.
        let present = |sum: u32, level: &i16| sum.wrapping_add(u32::from(*level != 0));
        let present = self.levels.iter().fold(0, present) as usize;
        if rows != count
            || self.levels.len() != count
            || present != values
            || self.values.len() != values
        {
            return Err(short());
        }
        Ok((&self.values, &self.levels))
    }
}

fn short() -> ParquetError {
    ParquetError::General("a column is shorter than its row group".to_owned())
}

/// Runs code of the `parquet` crate over bytes that may be anything: its errors and, as a last resort, its
/// panics become the message of an error about `path`. What `f` was working on must not be used again after an
/// error; callers drop it.
pub fn guarded<T>(
    path: &Path,
    f: impl FnOnce() -> Result<T, ParquetError>,
) -> Result<T, RecordError> {
    match catch_unwind(AssertUnwindSafe(f)) {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(error)) => {
            Err(RecordError::damaged(path, format!("it cannot be read as Parquet: {error}")))
        }
        Err(_) => Err(RecordError::damaged(path, "its Parquet pages make no sense")),
    }
}

/// An error of writing Parquet as one of writing `path`; a full disk is found inside it.
pub fn writing(path: &Path, error: ParquetError) -> RecordError {
    let io = match error {
        ParquetError::External(inner) => match inner.downcast::<std::io::Error>() {
            Ok(io) => *io,
            Err(other) => std::io::Error::other(other.to_string()),
        },
        other => std::io::Error::other(other.to_string()),
    };
    RecordError::writing(path, io)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Claim: what the `parquet` crate panics over becomes an error that names the file and says what to do.
    #[test]
    fn a_panic_becomes_an_error() {
        let broken =
            || -> Result<(), ParquetError> { panic!("as the crate does over forged pages") };
        let error = guarded(Path::new("x.parquet"), broken).unwrap_err().to_string();
        assert!(error.contains("x.parquet") && error.contains("restore it"), "{error}");
    }

    /// Claim: a full disk is still called one after it has gone through the `parquet` crate.
    #[test]
    fn a_full_disk_stays_one() {
        let full = std::io::Error::from(std::io::ErrorKind::StorageFull);
        let error = writing(Path::new("x.parquet"), ParquetError::from(full));
        assert!(matches!(error, RecordError::Full { .. }), "{error}");
    }
}
