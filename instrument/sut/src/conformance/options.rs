//! Options as an experiment would write them, and the system that an adapter makes of them.

use std::path::Path;

use model::options::{Options, Problems, Span, Value};

use crate::Request;

/// A text.
#[must_use]
pub fn text(text: &str) -> Value {
    Value::String(text.to_owned())
}

/// A list of texts.
#[must_use]
pub fn texts(list: &[&str]) -> Value {
    let option = |item: &&str| Options { value: text(item), span: Span::default() };
    Value::Array(list.iter().map(option).collect())
}

/// A table of dotted paths.
#[must_use]
pub fn table(entries: &[(&str, Value)]) -> Options {
    let mut table = Options::empty();
    for (path, value) in entries {
        table.set(path, Options { value: value.clone(), span: Span::default() });
    }
    table
}

/// The system that an adapter makes of `[system.deploy]` and `[workload]` of an experiment in this folder.
///
/// # Errors
/// The message of each mistake, with its help in brackets.
///
/// # Panics
/// When it finds mistakes and makes a system all the same, or makes none and says no mistake.
pub fn read_in<S>(
    folder: &Path,
    read: impl FnOnce(&Request<'_>, &mut Problems) -> Option<S>,
    run_mark: u64,
    (deploy, workload): (&Options, &Options),
) -> Result<S, Vec<String>> {
    let request = Request { deploy, workload, folder, run_mark, load: None };
    let mut problems = Problems::default();
    let system = read(&request, &mut problems);
    let in_words = |it: model::options::Problem| match it.help {
        Some(help) => format!("{} ({help})", it.message),
        None => it.message,
    };
    let messages: Vec<String> = problems.list.into_iter().map(in_words).collect();
    match system {
        Some(system) => {
            assert!(messages.is_empty(), "made in spite of {messages:?}");
            Ok(system)
        }
        None => {
            assert!(!messages.is_empty(), "not made, and no reason is given");
            Err(messages)
        }
    }
}

/// The same of the entries of both tables, in a folder that does not exist.
///
/// # Errors
/// As [`read_in`].
///
/// # Panics
/// As [`read_in`].
pub fn read<S>(
    read: impl FnOnce(&Request<'_>, &mut Problems) -> Option<S>,
    run_mark: u64,
    deploy: &[(&str, Value)],
    workload: &[(&str, Value)],
) -> Result<S, Vec<String>> {
    read_in(Path::new("/experiments"), read, run_mark, (&table(deploy), &table(workload)))
}
