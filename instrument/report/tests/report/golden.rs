//! Golden pages: what users see, at 80 and 120 columns, kept as files that a person has read.
//!
//! They are written anew only with `ASSAY_GOLDEN=write`; read the difference before it is committed.

use std::path::Path;

use report::Style;

use crate::sample_runs;

/// Compares `text` with tests/golden/`name`, or writes it there if that was asked for.
pub fn check(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    if std::env::var("ASSAY_GOLDEN").is_ok_and(|value| value == "write") {
        std::fs::write(&path, text).expect("tests/golden can be written");
        return;
    }
    let golden = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        golden == text,
        "{name} is not what it was; see the difference with ASSAY_GOLDEN=write and git diff.\n\
         expected:\n{golden}\nfound:\n{text}"
    );
}

/// Claim: the pages of all sample runs are the golden ones.
#[test]
fn terminal_pages() {
    for (name, run) in sample_runs::all() {
        for width in [80, 120] {
            let style = Style { width, ..Style::default() };
            check(&format!("{name}.{width}.txt"), &report::terminal(&run, style));
        }
    }
    let verbose = Style { width: 100, verbose: true, ..Style::default() };
    check("matrix.verbose.txt", &report::terminal(&sample_runs::matrix(), verbose));
    let ascii = Style { ascii: true, ..Style::default() };
    check("matrix.ascii.txt", &report::terminal(&sample_runs::matrix(), ascii));
    let colour = Style { colour: true, ..Style::default() };
    check("failed.colour.txt", &report::terminal(&sample_runs::failed(), colour));
}
