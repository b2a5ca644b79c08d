//! The keys of an experiment file with their defaults and meanings: the one table that the reader takes its
//! defaults from, that the schema of the file and the reference page are made of, and that names of environment
//! variables are looked up in. A key that is not here does not exist, but for those of each kind of fault, which the
//! testbed's list declares.

mod list;

use std::time::Duration;

pub use list::KEYS;
use model::options::did_you_mean;
use model::quantity::parse_duration;

/// The value of a key that is not written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fallback {
    /// It must be written.
    Required,
    /// There is none of it then.
    Nothing,
    /// This value, as it would be written.
    Fixed(&'static str),
    /// A value that depends on others; the rule in words.
    Rule(&'static str),
}

/// One key.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    /// Its dotted path; `[]` stands after a list of tables.
    pub path: &'static str,
    /// Its default.
    pub fallback: Fallback,
    /// Its allowed values.
    pub form: Form,
    /// Its meaning, in one sentence without a final stop.
    pub meaning: &'static str,
}

/// The allowed values of a key: for the schema that is made of the table of keys.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Form {
    /// Any text.
    Text,
    /// A text, or a list of them.
    Texts,
    /// One of these words.
    Word(&'static [&'static str]),
    /// true or false.
    Flag,
    /// A whole number from the first to the second.
    Integer(u64, u64),
    /// A whole number from the first to the second, or this word.
    IntegerOr(u64, u64, &'static str),
    /// A number from the first to the second.
    Number(f64, f64),
    /// A length of time.
    Duration,
    /// Events and a time, or `max`.
    Rate,
    /// A percentage.
    Share,
    /// Bytes or bits a second, or `max`.
    Bandwidth,
    /// Bytes.
    Size,
    /// A node's name, or the beginning of names and `*`.
    Node,
    /// A list of these.
    Nodes,
    /// Which settings: label by axis.
    Settings,
    /// `pass`, `fail` or `invalid`.
    Verdict,
    /// A table whose keys are an adapter's.
    Table,
    /// A form that no other key has; the schema spells it out.
    Own,
}

/// Names of variables, or beginnings of names, that are not about experiments.
pub const VARIABLES_OTHER: &[&str] = &[
    "ASSAY_TEST_",
    "ASSAY_BENCH_",
    "ASSAY_CACHE",
    "ASSAY_CONFIG",
    "ASSAY_DRIVER",
    "ASSAY_URING",
    "ASSAY_RUNS",
    "ASSAY_VERSION",
];

/// Tables whose keys belong to an adapter: their first part is fixed, the rest of a name is the key.
const OPEN_ENDED: [&str; 2] = ["system.deploy", "workload"];

/// The path that a variable sets. `ASSAY_LOAD_BACKLOG_MAX` is the key of [`KEYS`] that reads so when its
/// dots are underscores, `load.backlog_max`; under `system.deploy` and `workload`, whose keys only an adapter
/// knows, the rest of the name is one key (`ASSAY_WORKLOAD_VALUE_SIZE` is `workload.value_size`). Two
/// underscores are always a dot (`ASSAY_SYSTEM_DEPLOY__WATCH__QUEUE` is `system.deploy.watch.queue`).
///
/// # Errors
/// The nearest variable that exists, in words, or nothing.
pub fn variable_path(name: &str) -> Result<String, Option<String>> {
    let lower = name.strip_prefix("ASSAY_").unwrap_or(name).to_ascii_lowercase();
    let flat = lower.replace("__", "_");
    for key in KEYS.iter().filter(|key| !key.path.contains("[]")) {
        if key.path.replace('.', "_") == flat {
            return Ok(key.path.to_owned());
        }
    }
    for table in OPEN_ENDED {
        let prefix = format!("{}_", table.replace('.', "_"));
        if flat.starts_with(&prefix) {
            // The table's own part may be written with one underscore or two a dot.
            let own = lower.len() - lower_rest(&lower, &prefix).len();
            let rest = lower[own..].trim_start_matches('_');
            if !rest.is_empty() {
                return Ok(format!("{table}.{}", rest.replace("__", ".")));
            }
        }
    }
    let known: Vec<String> = KEYS
        .iter()
        .filter(|key| !key.path.contains("[]"))
        .map(|key| format!("ASSAY_{}", key.path.replace('.', "_").to_ascii_uppercase()))
        .collect();
    Err(did_you_mean(name, known.iter().map(String::as_str)))
}

/// The rest of `lower` after `prefix`, where underscores of the prefix may be doubled.
fn lower_rest<'a>(lower: &'a str, prefix: &str) -> &'a str {
    let mut rest = lower;
    for part in prefix.split_terminator('_') {
        rest = rest.strip_prefix(part).unwrap_or(rest);
        rest = rest.strip_prefix("__").or_else(|| rest.strip_prefix('_')).unwrap_or(rest);
    }
    rest
}

/// The fixed default of a key.
///
/// # Panics
/// If the key has none: a mistake in this crate, which its tests would show.
pub(crate) fn fixed(path: &str) -> &'static str {
    match KEYS.iter().find(|key| key.path == path).map(|key| key.fallback) {
        Some(Fallback::Fixed(text)) => text,
        _ => unreachable!("`{path}` has no fixed default in KEYS"),
    }
}

pub(crate) fn fixed_duration(path: &str) -> Duration {
    parse_duration(fixed(path)).expect("defaults are written correctly; a test reads them all")
}

pub(crate) fn fixed_integer(path: &str) -> u64 {
    fixed(path).parse().expect("defaults are written correctly; a test reads them all")
}

pub(crate) fn fixed_count(path: &str) -> u32 {
    fixed(path).parse().expect("defaults are written correctly; a test reads them all")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Claim: no two keys share a variable's name, so a name means one path.
    #[test]
    fn variable_names_are_unique() {
        let mut names = std::collections::BTreeSet::new();
        for key in KEYS.iter().filter(|key| !key.path.contains("[]")) {
            assert!(names.insert(key.path.replace('.', "_")), "{}", key.path);
        }
    }

    /// Claim: underscores in a variable's name are told apart from dots, in known and in open-ended tables.
    #[test]
    fn variables_map_to_paths() {
        for (name, path) in [
            ("ASSAY_LOAD_RATE", "load.rate"),
            ("ASSAY_LOAD_RATE_PER", "load.rate_per"),
            ("ASSAY_LOAD_BACKLOG_MAX", "load.backlog_max"),
            ("ASSAY_LOAD__BACKLOG_MAX", "load.backlog_max"),
            ("ASSAY_LOAD_BURST_EVERY", "load.burst.every"),
            ("ASSAY_SEED", "seed"),
            ("ASSAY_SYSTEM_KIND", "system.kind"),
            ("ASSAY_WORKLOAD_VALUE_SIZE", "workload.value_size"),
            ("ASSAY_SYSTEM_DEPLOY_RETRY_MAX", "system.deploy.retry_max"),
            ("ASSAY_SYSTEM__DEPLOY__RETRY_MAX", "system.deploy.retry_max"),
            ("ASSAY_SYSTEM_DEPLOY_WATCH__QUEUE_TO_CACHE", "system.deploy.watch.queue_to_cache"),
        ] {
            assert_eq!(variable_path(name).as_deref(), Ok(path), "{name}");
        }
        let near = variable_path("ASSAY_LOAD_RAET");
        assert_eq!(near, Err(Some("did you mean `ASSAY_LOAD_RATE`?".to_owned())));
        assert!(variable_path("ASSAY_WORKLOAD_").is_err());
    }
}
