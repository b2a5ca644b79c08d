//! One entry for fuzzing: bytes as each format of results. It must come back for every input, having taken
//! memory in proportion to it, and what it accepts must survive being written and read again.

use crate::error::ExchangeError;
use crate::format::{Format, TextForm};
use crate::rows_in::RowsInput;
use crate::write_rows;

/// Reads `bytes` as a file of results. The first byte chooses the format.
///
/// # Panics
/// When a reader breaks its promises; that is what fuzzing looks for.
pub fn fuzz_results(bytes: &[u8]) {
    let Some((first, rest)) = bytes.split_first() else { return };
    let _ = Format::of_input(std::path::Path::new("(bytes)"), rest);
    let texts: Vec<Format> =
        Format::all().filter(|it| !matches!(it.declared().text, TextForm::Elsewhere)).collect();
    let format = texts[usize::from(*first) % texts.len()];
    if let TextForm::Percentiles { read } = format.declared().text {
        return drop(read("(bytes)", Box::new(rest)));
    }
    for out in [Format::Csv, Format::Ndjson] {
        let Ok(once) = written(format, rest, out) else { continue };
        let twice = written(out, &once, out).expect("what we write we read");
        assert_eq!(once, twice, "what was read is not what was written");
    }
    for out in [Format::VegetaCsv, Format::VegetaNdjson] {
        if let Ok(once) = written(format, rest, out) {
            written(out, &once, Format::Csv).expect("what we write for vegeta we read");
        }
    }
}

fn written(from: Format, bytes: &[u8], to: Format) -> Result<Vec<u8>, ExchangeError> {
    let mut out = Vec::new();
    write_rows(RowsInput::text(from, "(bytes)", Box::new(bytes), None), to, &mut out)?;
    Ok(out)
}
