//! A column of words of which there are few different ones, read as numbers: the words of a row group stand once in its
//! dictionary, and each row says which of them it has. Whoever reads ten million rows compares four words, and not ten
//! million.
//!
//! The `parquet` crate decodes them: it is handed the pages of the column with another dictionary, of the numbers from 0.

use std::sync::Arc;

use bytes::{Buf as _, Bytes};
use parquet::basic::{Encoding, Type as Physical};
use parquet::column::page::{Page, PageMetadata, PageReader};
use parquet::column::reader::ColumnReaderImpl;
use parquet::data_type::Int32Type;
use parquet::errors::ParquetError;
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::schema::types::{ColumnDescriptor, Type};

/// Pages of a column whose dictionary was taken off, and one of numbers in its place.
struct Renumbered<P> {
    dictionary: Option<Page>,
    rest: P,
}

impl<P: PageReader> Iterator for Renumbered<P> {
    type Item = Result<Page, ParquetError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.get_next_page().transpose()
    }
}

impl<P: PageReader> PageReader for Renumbered<P> {
    fn get_next_page(&mut self) -> Result<Option<Page>, ParquetError> {
        match self.dictionary.take() {
            Some(dictionary) => Ok(Some(dictionary)),
            None => self.rest.get_next_page(),
        }
    }

    fn peek_next_page(&mut self) -> Result<Option<PageMetadata>, ParquetError> {
        match &self.dictionary {
            Some(_) => Ok(Some(PageMetadata { num_rows: None, num_levels: None, is_dict: true })),
            None => self.rest.peek_next_page(),
        }
    }

    fn skip_next_page(&mut self) -> Result<(), ParquetError> {
        match self.dictionary.take() {
            Some(_) => Ok(()),
            None => self.rest.skip_next_page(),
        }
    }
}

/// Whether every row of the column says which word of a dictionary it has, as the footer has it.
pub(crate) fn has_numbers(chunk: &ColumnChunkMetaData) -> bool {
    let descriptor = chunk.column_descr();
    let is_required = descriptor.max_def_level() == 0 && descriptor.max_rep_level() == 0;
    let mask = chunk.page_encoding_stats_mask();
    is_required
        && chunk.dictionary_page_offset().is_some()
        && mask.is_some_and(|mask| mask.is_only(Encoding::RLE_DICTIONARY))
}

/// A reader of the numbers, and the words that they stand for.
pub(crate) fn numbered(
    mut pages: impl PageReader + 'static,
    chunk: &ColumnChunkMetaData,
) -> Result<(ColumnReaderImpl<Int32Type>, Vec<Bytes>), ParquetError> {
    let Some(Page::DictionaryPage { buf, num_values, .. }) = pages.get_next_page()? else {
        return Err(malformed());
    };
    let words = words(buf, num_values)?;
    let numbers: Vec<u8> = (0..num_values).flat_map(u32::to_le_bytes).collect();
    let dictionary = Page::DictionaryPage {
        buf: numbers.into(),
        num_values,
        encoding: Encoding::PLAIN,
        is_sorted: false,
    };
    let pages = Renumbered { dictionary: Some(dictionary), rest: pages };
    let number = Type::primitive_type_builder("number", Physical::INT32).build()?;
    let path = chunk.column_path().clone();
    let descriptor = Arc::new(ColumnDescriptor::new(Arc::new(number), 0, 0, path));
    Ok((ColumnReaderImpl::new(descriptor, Box::new(pages)), words))
}

/// The words of a dictionary: each its length in four bytes, little-endian, and itself (PLAIN of Parquet's Encodings.md).
fn words(mut buffer: Bytes, count: u32) -> Result<Vec<Bytes>, ParquetError> {
    let mut words = Vec::new();
    for _ in 0..count {
        if buffer.len() < 4 {
            return Err(malformed());
        }
        let length = buffer.get_u32_le() as usize;
        if length > buffer.len() {
            return Err(malformed());
        }
        words.push(buffer.split_to(length));
    }
    Ok(words)
}

fn malformed() -> ParquetError {
    ParquetError::General("a column's dictionary makes no sense".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Claim: a dictionary is read word by word; one that is cut off anywhere, or claims more words than it has, is an error.
    #[test]
    fn dictionaries() {
        let bytes = Bytes::from_static(b"\x09\0\0\0committed\x04\0\0\0shed");
        let found = words(bytes.clone(), 2).unwrap();
        assert_eq!(found, [&b"committed"[..], b"shed"]);
        assert!(words(bytes.clone(), 3).is_err());
        assert!((0..bytes.len()).all(|length| words(bytes.slice(..length), 2).is_err()));
    }
}
