//! The words that the parts of this crate and its callers share: sources, input, mistakes, the resolved plan, and bounds.

use std::path::Path;
use std::rc::Rc;

use model::fault::FaultKind;
use model::names::DeclaredNames;
use model::options::Problems;
use model::plan::{LoadPlan, Plan, SettingPlan, SystemPlan};

/// The most settings that a matrix may make.
pub const SETTINGS_MAX: usize = 10_000;
/// The most trials of a setting.
pub const TRIALS_MAX: u64 = 1_000;
/// The most transactions that a trial may be planned with: a thousand times what a long trial on one machine
/// makes, and few enough that no counter is near its end.
pub const TRANSACTIONS_MAX: u64 = 10_000_000_000;
/// The largest source text that is read, in bytes.
pub const SOURCE_BYTES_MAX: usize = 1 << 20;
/// The most sources beside the file (`--set`, variables and flags together).
pub const SOURCES_MAX: usize = 1_000;

/// A text that values come from, with the name that messages call it by.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Source {
    /// A path as the user wrote it, or `--set`, `environment`, `command line`.
    pub name: String,
    /// All of it.
    pub text: String,
}

/// Everything that a plan is made from, lowest layer first: built-in defaults (see [`crate::keys::KEYS`]),
/// `user`, `file`, the chosen `profile` of the file, `env`, `sets`, `flags`.
#[derive(Default)]
pub struct Input<'a> {
    /// The experiment file.
    pub file: Source,
    /// Which `[profile.NAME]` of it is laid over it.
    pub profile: Option<String>,
    /// The user's own configuration file, below the experiment file.
    pub user: Option<Source>,
    /// Variables whose names begin with `ASSAY_`: name and value. How a name maps to a path is told at
    /// [`crate::keys::variable_path`]; names of [`crate::keys::VARIABLES_OTHER`] are passed over.
    pub env: Vec<(String, String)>,
    /// `--set` arguments: `load.rate=80/s`.
    pub sets: Vec<String>,
    /// Other flags: the path that each stands for and the value as typed. The path `threshold` adds a
    /// threshold with the value as its expression; any other path is set.
    pub flags: Vec<(String, String)>,
    /// The questions that the plan has to ask others.
    pub outside: Outside<'a>,
}

/// Checks an expression or a name; what a system declares is `None` where that is not known.
pub type CheckNames<'a> = dyn Fn(&str, Option<&DeclaredNames>) -> Result<(), Mistake> + 'a;

/// Facts that `plan` cannot know by itself, supplied by the caller.
#[derive(Clone, Copy)]
pub struct Outside<'a> {
    /// The kinds of system that exist; empty = not checked.
    pub kinds: &'a [&'a str],
    /// The kinds of fault that can be injected, as the testbed declares them.
    pub faults: &'a [FaultKind],
    /// Reads a file named in the experiment (a trace), relative to the experiment's folder. The error is for
    /// people and does not repeat the path.
    pub read_file: &'a dyn Fn(&Path) -> Result<String, String>,
    /// The declarations of a setting's system; `None` if it cannot be built, which is told elsewhere.
    pub names: &'a dyn Fn(&SettingPlan) -> Option<Rc<DeclaredNames>>,
    /// Lets the system's adapter read its own part of the file (`deploy`, `workload`) and report every mistake in it,
    /// whatever is wrong elsewhere; the load is absent where it cannot be read itself.
    pub check_system: &'a dyn Fn(&SystemPlan, Option<&LoadPlan>, &mut Problems),
    /// Checks that a stage is one of those declared.
    pub check_stage: &'a dyn Fn(&str, &DeclaredNames) -> Result<(), Mistake>,
    /// Checks the grammar and the names of a threshold's expression, against what is declared if that is known.
    pub check_threshold: &'a CheckNames<'a>,
    /// Checks the name of a metric in a report table, in the same way; the error is for people.
    pub check_metric: &'a CheckNames<'a>,
}

impl Default for Outside<'_> {
    /// Knows no systems and no faults, reads no files, finds every expression good.
    fn default() -> Self {
        Self {
            kinds: &[],
            faults: &[],
            read_file: &|_| Err("no files can be read here".to_owned()),
            names: &|_| None,
            check_system: &|_, _, _| {},
            check_stage: &|_, _| Ok(()),
            check_threshold: &|_, _| Ok(()),
            check_metric: &|_, _| Ok(()),
        }
    }
}

/// The mistake in an expression, and its place.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mistake {
    /// First byte in the expression.
    pub start: usize,
    /// One past the last byte; the same as `start` = all of it.
    pub end: usize,
    /// One sentence without a final stop.
    pub message: String,
    /// The remedy.
    pub help: Option<String>,
}

impl Mistake {
    /// A mistake in `expr` from a sentence: what it quotes in backticks is pointed at, if that is in the
    /// expression, and what follows a semicolon is the help.
    #[must_use]
    pub fn from_sentence(expr: &str, sentence: &str) -> Self {
        let quoted = sentence.split('`').nth(1).filter(|quoted| !quoted.is_empty());
        let start = quoted.and_then(|quoted| expr.find(quoted));
        let length = quoted.map_or(0, str::len);
        let (message, help) = match sentence.split_once("; ") {
            Some((message, help)) => (message.to_owned(), Some(help.to_owned())),
            None => (sentence.to_owned(), None),
        };
        let (start, end) = start.map_or((0, 0), |start| (start, start + length));
        Self { start, end, message, help }
    }
}

/// A plan and where its values came from.
#[derive(Clone, Debug)]
pub struct Resolved {
    /// The plan.
    pub plan: Plan,
    /// Every effective value with its origin, in the order of the file's sections.
    pub effective: Vec<Effective>,
    /// The texts that spans in the plan's `deploy` and `workload` point into; give them to [`crate::reject`].
    pub sources: Vec<Source>,
    /// Changes by the command line that it does not show by itself, in words.
    pub remarks: Vec<String>,
}

/// One effective value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Effective {
    /// Dotted path in the experiment file.
    pub path: String,
    /// As it could be written there; several values of a matrix are separated by commas.
    pub value: String,
    /// `default`, `my.toml:12`, `ASSAY_LOAD_RATE`, `--set` or the flag.
    pub origin: String,
}
