//! One entry for fuzzing: bytes as each file of a run folder, through the same code that reads the file. It
//! must come back for every input, having taken memory in proportion to it.

use std::path::Path;

use bytes::Bytes;
use model::facts::{Environment, TrialFacts};
use model::result::RunResult;

use crate::columns::Source;
use crate::name::{NAME_BYTES_MAX, folder_name};
use crate::observation_log::ObservationLogReader;
use crate::row_log::RowLogReader;
use crate::seal::parse_seal;
use crate::transactions::TransactionsReader;
use crate::{folder, histogram_v2, observations, stage_columns, tables, traces};

/// Rows after which a forged Parquet file has shown enough: a few bytes can claim billions of equal rows.
const ROWS_MAX: u64 = 1 << 20;

/// Reads `bytes` as each file of a run folder. The first byte chooses the format, so that a corpus can hold
/// all of them.
///
/// Parquet files are read here without the checksum that guards them in a folder, because no fuzzer would get
/// past it. The `parquet` crate may panic over them; the panic is caught, as it is in a folder. A fuzzing
/// harness that aborts on every panic, caught or not, therefore calls [`fuzz_run_folder`], which leaves them out.
pub fn fuzz_run_folder_and_parquet(bytes: &[u8]) {
    let Some((format, rest)) = bytes.split_first() else { return };
    match format % 16 {
        8 => {
            let source = Source::Memory(Bytes::copy_from_slice(rest));
            let Ok(mut reader) = TransactionsReader::open(unnamed(), source) else { return };
            let mut rows = 0;
            while let Ok(Some(batch)) = reader.next_batch() {
                rows += batch.len() as u64;
                if rows > ROWS_MAX {
                    break;
                }
            }
        }
        9 => drop(tables::read_metrics(unnamed(), Source::Memory(Bytes::copy_from_slice(rest)))),
        10 => drop(tables::read_events(unnamed(), Source::Memory(Bytes::copy_from_slice(rest)))),
        11 => {
            let source = Source::Memory(Bytes::copy_from_slice(rest));
            drop(tables::read_ledger(unnamed(), source, |_, _| ()));
        }
        13 => {
            let source = Source::Memory(Bytes::copy_from_slice(rest));
            drop(observations::read(unnamed(), source, |_| ()));
        }
        14 => {
            let source = Source::Memory(Bytes::copy_from_slice(rest));
            drop(stage_columns::read(unnamed(), source, |_| ()));
        }
        15 => drop(traces::read(unnamed(), Source::Memory(Bytes::copy_from_slice(rest)), &[])),
        _ => fuzz_run_folder(bytes),
    }
}

/// Reads `bytes` as each file of a run folder but the Parquet files. The first byte chooses the format.
///
/// # Panics
/// When a reader breaks its promises; that is what fuzzing looks for.
pub fn fuzz_run_folder(bytes: &[u8]) {
    let Some((format, rest)) = bytes.split_first() else { return };
    let text = std::str::from_utf8(rest).unwrap_or_default();
    match format % 16 {
        0 | 1 => fuzz_row_log(rest),
        2 => drop(folder::parse_plan(text)),
        3 => drop(serde_json::from_str::<TrialFacts>(text)),
        4 => drop(serde_json::from_str::<Environment>(text)),
        5 => drop(serde_json::from_str::<RunResult>(text)),
        6 => drop(parse_seal(text)),
        7 => drop(histogram_v2::read(rest, &mut Vec::new())),
        12 => fuzz_observation_log(rest),
        _ => {
            let name = folder_name(text);
            assert!(!name.is_empty() && name.len() <= NAME_BYTES_MAX && !name.starts_with('.'));
            assert!(!name.contains(['/', '\0']), "{name:?} leaves its folder");
        }
    }
}

/// A row log gives rows up to some point and drops the rest: every byte is in one or the other.
fn fuzz_row_log(bytes: &[u8]) {
    let Ok(mut log) = RowLogReader::open(bytes) else { return };
    let mut rows = 0;
    while let Some(frame) = log.next_frame().expect("memory does not fail") {
        rows += frame.len() as u64;
    }
    assert_eq!(log.row_count(), rows);
    assert!(log.dropped_bytes() <= bytes.len() as u64);
    assert!(rows * 4 + log.dropped_bytes() <= bytes.len() as u64, "rows out of nothing");
}

/// The same of an observation log.
fn fuzz_observation_log(bytes: &[u8]) {
    let Ok(mut log) = ObservationLogReader::open(bytes) else { return };
    let mut held = 0;
    while let Some(frame) = log.next_frame().expect("memory does not fail") {
        held += frame.byte_count() as u64 + 20 * frame.len() as u64;
    }
    assert!(held + log.dropped_bytes() <= bytes.len() as u64, "observations out of nothing");
}

/// The path is for messages only.
fn unnamed() -> &'static Path {
    Path::new("(bytes)")
}

#[cfg(test)]
mod tests {
    use model::facts::TRIAL_SCHEMA;
    use model::plan::PLAN_SCHEMA;

    use super::*;

    /// Claim: the seeds of the fuzz target are files that this version reads, so that fuzzing starts from them.
    #[test]
    fn seeds_are_of_this_version() {
        let seed = |name: &str| {
            let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/seeds/run_folder");
            let text = std::fs::read_to_string(Path::new(folder).join(name)).expect("a seed");
            // The first byte chooses the format.
            text[1..].to_owned()
        };
        let facts: TrialFacts = serde_json::from_str(&seed("trial")).expect("facts of a trial");
        assert_eq!(facts.schema, TRIAL_SCHEMA);
        assert!(facts.complete && facts.load.workers[0].sent > 0);
        let plan = folder::parse_plan(&seed("plan")).expect("a plan");
        assert_eq!((plan.schema.as_str(), plan.settings.len()), (PLAN_SCHEMA, 1));
        serde_json::from_str::<Environment>(&seed("environment")).expect("an environment");
        assert!(parse_seal(&seed("seal")).is_ok());
    }
}
