//! `cargo xtask docs`: generated pages are current, the book builds, and every link in it and in the other
//! Markdown files leads somewhere. It needs no network once mdbook is there. The commands and experiments on
//! the pages are run by apps/assay/tests/documents.rs; nothing here starts a load.

mod audits;
mod lengths;
mod links;
mod mdbook;
pub mod pictures;
mod reference;
mod schema;

use std::path::Path;
use std::process::{Command, Stdio};

/// Checks everything; with `write`, generated pages are written instead of compared.
pub fn run(root: &Path, write: bool) -> Result<(), String> {
    let mut findings = reference::run(root, write)?;
    findings.extend(links::sources(root)?);
    findings.extend(links::unlisted(root)?);
    findings.extend(lengths::check(root)?);
    match mdbook::program(root) {
        Ok(program) => {
            build(root, &program)?;
            findings.extend(links::book(&root.join(BOOK))?);
        }
        Err(reason) => println!("SKIPPED building the book and looking at its anchors: {reason}"),
    }
    for finding in &findings {
        eprintln!("docs: {finding}");
    }
    if findings.is_empty() {
        println!("docs: generated pages are current and every link leads somewhere");
        return Ok(());
    }
    Err(format!("{} findings", findings.len()))
}

/// Why the book cannot be built here, if so: for the suite, which names what it skips.
pub fn missing(root: &Path) -> Option<String> {
    mdbook::program(root).err()
}

/// Where docs/book.toml says that the book is built.
const BOOK: &str = "target/book";

fn build(root: &Path, program: &Path) -> Result<(), String> {
    let status = Command::new(program)
        .args(["build", "docs"])
        .current_dir(root)
        .stdin(Stdio::null())
        .status()
        .map_err(|error| format!("starting {}: {error}", program.display()))?;
    if status.success() { Ok(()) } else { Err(format!("mdbook could not build docs ({status})")) }
}
