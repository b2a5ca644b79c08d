//! The facts of a trial as a stranger may have changed them: analysed with the rows of an honest trial, and made into every
//! form of the report.
#![no_main]

use std::sync::LazyLock;

static RUN: LazyLock<exact::HonestRun> = LazyLock::new(|| {
    let place = std::env::temp_dir().join(format!("assay-fuzz-{}", std::process::id()));
    exact::HonestRun::make(&place).expect("the temporary folder can be written")
});

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    RUN.report_with(bytes);
});
