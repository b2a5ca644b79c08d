//! Forms of a report that are made of all runs at once, or of many files: CSV, JUnit XML, SVG figures.
//!
//! It writes nothing outside the folder that it is given, and removes nothing there.

use std::path::{Path, PathBuf};

use model::result::RunResult;
use record::RunFolder;

use crate::cli::{Format, ReportArguments};
use crate::conclude;
use crate::terminal::say;

/// The mistake in the arguments, if there is one; told before a run is read.
pub fn usage(arguments: &ReportArguments) -> Option<String> {
    let is_stdout = arguments.output == Path::new("-");
    (arguments.format == Format::Svg && is_stdout).then(|| {
        "--format svg writes a file for each figure: name a folder for them, such as -o figures"
            .to_owned()
    })
}

/// All runs as one text, for forms that cannot be put one after the other.
///
/// # Errors
/// When a run cannot be read, for people.
pub fn joined(
    paths: &[PathBuf],
    form: fn(&[RunResult]) -> String,
) -> Result<(Vec<RunResult>, String), String> {
    let results = paths.iter().map(|path| conclude::read(path));
    let results = results.collect::<Result<Vec<_>, _>>()?;
    let text = form(&results);
    Ok((results, text))
}

/// Writes a file for each figure into `folder`, which is made; each of several runs into a folder of its own there.
///
/// # Errors
/// When a run cannot be read or a file not be written, for people.
pub fn figures(paths: &[PathBuf], folder: &Path) -> Result<Vec<RunResult>, String> {
    let mut results = Vec::with_capacity(paths.len());
    for (index, path) in paths.iter().enumerate() {
        let run = RunFolder::open(path).map_err(|error| error.to_string())?;
        let (result, picture) = conclude::analyse_with_picture(&run)?;
        let into = if paths.len() == 1 {
            folder.to_path_buf()
        } else {
            let name = run.path().file_name().map(|name| name.to_string_lossy().into_owned());
            folder.join(format!("{index}-{}", name.unwrap_or_default()))
        };
        std::fs::create_dir_all(&into)
            .map_err(|error| format!("making the folder {}: {error}", into.display()))?;
        for figure in report::svg_figures(&result, &picture, report::Detail::Full) {
            let file = into.join(format!("{}.svg", figure.name));
            std::fs::write(&file, figure.svg())
                .map_err(|error| format!("writing {}: {error}", file.display()))?;
            say!("{}  {}", file.display(), figure.title);
        }
        results.push(result);
    }
    Ok(results)
}
