//! Nodes that are programs of their own: where they are. Those that are light are part of `assay` (`assay serve NAME`);
//! one that drags in an async runtime or a database is not, so that nobody who measures another system builds it.
//!
//! It finds and never builds: `assay doctor --install NAME` does that, where the user asks for it.

use std::path::PathBuf;

use crate::TestbedError;
use crate::install::Shelf;

/// Where the program `name` is: beside this one, in PATH, or in the cache folder, in this order.
///
/// # Errors
/// When it is nowhere; the message says what to run.
pub fn find(name: &str) -> Result<PathBuf, TestbedError> {
    find_on(&Shelf::of_environment(), name)
}

pub(crate) fn find_on(shelf: &Shelf, name: &str) -> Result<PathBuf, TestbedError> {
    shelf.find_ours(name).ok_or_else(|| {
        let beside = shelf.beside.as_ref().map(|folder| folder.display().to_string());
        TestbedError::NoProgram {
            name: name.to_owned(),
            looked: format!(
                "beside this program{}, in PATH, and in {}",
                beside.map(|folder| format!(" in {folder}")).unwrap_or_default(),
                shelf.folder_of_ours(name).map_or_else(
                    || "no cache folder (set ASSAY_CACHE)".to_owned(),
                    |folder| folder.display().to_string()
                )
            ),
        }
    })
}
