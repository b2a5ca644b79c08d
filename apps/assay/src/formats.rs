//! Forms of a report that are made of all runs at once, or of many files: CSV, JUnit XML, SVG figures.
//!
//! It writes nothing outside the folder that it is given, and removes nothing there.

use std::path::{Path, PathBuf};

use model::picture::RunPicture;
use model::result::RunResult;

use crate::cli::{Format, ReportArguments};
use crate::terminal::say;

/// How a run is read.
pub type ReadRun<'a> = &'a dyn Fn(&Path) -> Result<(RunResult, RunPicture), String>;

/// The mistake in the arguments, if there is one; told before a run is read.
pub fn usage(arguments: &ReportArguments) -> Option<String> {
    if arguments.output != Path::new("-") {
        return None;
    }
    let what = match arguments.format {
        _ if arguments.part.is_some() => {
            "--part writes a file for --merge: name it, such as -o part-1"
        }
        Format::Svg => {
            "--format svg writes a file for each figure: name a folder for them, such as -o figures"
        }
        _ => return None,
    };
    Some(what.to_owned())
}

/// All runs as one text, for forms that cannot be put one after the other.
///
/// # Errors
/// When a run cannot be read, for people.
pub fn joined(
    paths: &[PathBuf],
    form: fn(&[RunResult]) -> String,
    read: ReadRun<'_>,
) -> Result<(Vec<RunResult>, String), String> {
    let results = paths.iter().map(|path| Ok(read(path)?.0));
    let results = results.collect::<Result<Vec<_>, String>>()?;
    let text = form(&results);
    Ok((results, text))
}

/// Writes a file for each figure into `folder`, which is made; each of several runs into a folder of its own there.
///
/// # Errors
/// When a run cannot be read or a file not be written, for people.
pub fn figures(
    paths: &[PathBuf],
    folder: &Path,
    read: ReadRun<'_>,
) -> Result<Vec<RunResult>, String> {
    let mut results = Vec::with_capacity(paths.len());
    for (index, path) in paths.iter().enumerate() {
        let (result, picture) = read(path)?;
        let into = if paths.len() == 1 {
            folder.to_path_buf()
        } else {
            let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
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
