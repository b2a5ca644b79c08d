//! Parquet files of a run folder whose checksums were made to fit: changed and then sealed again. The reader's
//! panics are caught where they happen, so that only one that escapes ends the target.
#![no_main]

libfuzzer_sys::fuzz_target!(
    init: std::panic::set_hook(Box::new(|_| {})),
    |bytes: &[u8]| record::fuzz_run_folder_and_parquet(bytes)
);
