//! Golden pages: what users see, at 80 and 120 columns, kept as files that a person has read.
//!
//! They are written anew only with `ASSAY_TEST_BLESS=1`, as all that tests keep in files; read the difference before it is
//! committed.

use std::path::Path;

use model::picture::RunPicture;
use model::result::Exit;
use report::{Detail, Style};

use crate::{made_runs, sample_parts};

/// Compares `text` with tests/golden/`name`, or writes it there if that was asked for.
pub fn check(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    if std::env::var_os("ASSAY_TEST_BLESS").is_some() {
        std::fs::write(&path, text).expect("tests/golden can be written");
        return;
    }
    let golden = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        golden == text,
        "{name} is not what it was; see the difference with ASSAY_TEST_BLESS=1 and git diff.\n\
         expected:\n{golden}\nfound:\n{text}"
    );
}

/// Claim: pages are the golden ones: three runs whole, at both widths of the terminal, the others once each, for the
/// tables that only they have.
#[test]
fn terminal_pages() {
    for (name, run) in made_runs::whole() {
        for width in [80, 120] {
            let style = Style { width, ..Style::default() };
            check(&format!("{name}.{width}.txt"), &report::terminal(&run, style));
        }
    }
    for (name, run) in made_runs::others() {
        let style = Style { width: 100, ..Style::default() };
        check(&format!("{name}.txt"), &report::terminal(&run, style));
    }
    let verbose = Style { width: 100, verbose: true, ..Style::default() };
    let matrix = made_runs::matrix();
    check("matrix.verbose.txt", &report::terminal(&matrix, verbose));
    let ascii = Style { ascii: true, ..Style::default() };
    check("matrix.ascii.txt", &report::terminal(&matrix, ascii));
    let colour = Style { colour: true, ..Style::default() };
    check("failed.colour.txt", &report::terminal(&made_runs::failed(), colour));
}

/// Claim: where the names of axes do not fit, settings are called by their values in the order of the experiment, and a
/// switch keeps its axis; charts call them in the same order.
#[test]
fn settings_of_two_switches() {
    let keys = ["false,hedged=false", "false,hedged=true", "true,hedged=false", "true,hedged=true"];
    let of = |key: &&str| {
        let key = format!("push={key}");
        sample_parts::setting(&key, vec![sample_parts::trial(&key)])
    };
    let settings = keys.iter().map(of).collect();
    let run = sample_parts::run("switches", Exit::Ok, "all thresholds are met", settings);
    let text = report::terminal(&run, Style { width: 80, ..Style::default() });
    assert!(text.contains("push=true · hedged=false"), "{text}");
    assert!(!text.contains("hedged=false · push=true") && !text.contains(" · false"), "{text}");
    let figures = report::svg_figures(&run, &RunPicture::default(), Detail::Full);
    let called = |label: &str| figures.iter().any(|figure| figure.svg().contains(label));
    assert!(called("push=true hedged=false") && !called("hedged=false push"));
}
