//! One entry for fuzzing: bytes as each format of results. It must come back for every input, having taken
//! memory in proportion to it, and what it accepts must survive being written and read again.

use crate::error::ExchangeError;
use crate::format::Format;
use crate::rows_in::RowsInput;
use crate::{read_hgrm, read_hlog, write_rows};

/// Reads `bytes` as a file of results. The first byte chooses the format.
///
/// # Panics
/// When a reader breaks its promises; that is what fuzzing looks for.
pub fn fuzz_results(bytes: &[u8]) {
    let Some((first, rest)) = bytes.split_first() else { return };
    let format = match first % 6 {
        0 => Format::Csv,
        1 => Format::Ndjson,
        2 => Format::VegetaCsv,
        3 => Format::VegetaNdjson,
        4 => return drop(read_hlog("(bytes)", Box::new(rest))),
        _ => return drop(read_hgrm("(bytes)", Box::new(rest))),
    };
    let _ = Format::of_input(std::path::Path::new("(bytes)"), rest);
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
