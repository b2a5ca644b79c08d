//! `assay list`: the runs on disk, or the words that have a meaning here, each from the one list of its sort.

use std::io::IsTerminal as _;
use std::path::Path;

use model::options::did_you_mean;
use model::result::{Exit, RunResult};
use record::{RecordError, RunFolder};
use report::{ListEntry, WordListed};

use crate::cli::{ColorChoice, ListArguments, ListOf};
use crate::terminal::say;
use crate::{compare, conclude, terminal};

/// Columns of a table of runs that goes into a file or another program.
const PIPED_COLUMNS: usize = 1_000;

/// Prints the runs, newest first, or a list of words.
pub fn list(arguments: &ListArguments, colour: ColorChoice) -> Exit {
    let printed = match &arguments.of {
        _ if arguments.trend.is_some() => trend(arguments, colour),
        None => runs(arguments, colour),
        Some(of) => words(of, arguments.json, colour),
    };
    match printed {
        Ok(()) => Exit::Ok,
        Err(message) => {
            say!("assay list: {message}");
            Exit::CouldNotRun
        }
    }
}

/// The history of an experiment, from the run folders alone.
fn trend(arguments: &ListArguments, colour: ColorChoice) -> Result<(), String> {
    let name = arguments.trend.as_deref().unwrap_or_default();
    let asked = compare::Asked::of(arguments.margin.as_deref(), false)?;
    let found = compare::history(name, &arguments.runs, arguments.last, asked.margin)?;
    if let Some(output) = &arguments.output {
        terminal::write(output, &report::trend_page(&found, &report::Assets::built()))?;
    }
    match (arguments.json, arguments.output.as_deref()) {
        (_, Some(output)) if output == Path::new("-") => Ok(()),
        (true, _) => terminal::print(&report::trend_json(&found)),
        (false, _) => {
            terminal::print(&report::trend_text(&found, terminal::stdout_style(colour, false)))
        }
    }
}

fn runs(arguments: &ListArguments, colour: ColorChoice) -> Result<(), String> {
    let mut paths = conclude::folders(&arguments.runs)?;
    paths.reverse();
    let entries: Vec<ListEntry> = paths.iter().map(|path| entry(path)).collect();
    if arguments.json {
        terminal::print(&json(&entries))
    } else {
        let mut style = terminal::stdout_style(colour, false);
        if !std::io::stdout().is_terminal() {
            // Whoever reads it wants whole names: nothing is cut, and nothing is broken into bands.
            style.width = PIPED_COLUMNS;
        }
        terminal::print(&report::list_table(&entries, style))
    }
}

/// A list of words: how it is called, and what it holds.
pub struct Words {
    /// Its subcommand, and its key in JSON.
    pub called: &'static str,
    /// Its words, parts after their whole.
    pub words: fn() -> Vec<WordListed>,
}

/// Numbers, audits, faults and sections.
pub const WORDS: [Words; 4] = [
    Words { called: "numbers", words: numbers },
    Words { called: "audits", words: audits },
    Words { called: "faults", words: faults },
    Words { called: "sections", words: sections },
];

fn words(of: &ListOf, as_json: bool, colour: ColorChoice) -> Result<(), String> {
    let (called, arguments) = match of {
        ListOf::Numbers(arguments) => ("numbers", arguments),
        ListOf::Audits(arguments) => ("audits", arguments),
        ListOf::Faults(arguments) => ("faults", arguments),
        ListOf::Sections(arguments) => ("sections", arguments),
    };
    let list = WORDS.iter().find(|list| list.called == called).expect("each has its list");
    let all = (list.words)();
    let asked = arguments.name.as_deref().unwrap_or_default();
    let found: Vec<WordListed> = with_parts(&all, asked);
    if found.is_empty() {
        let near = did_you_mean(asked, all.iter().map(|it| it.word.as_str()));
        let near = near.unwrap_or_else(|| format!("`assay list {called}` names all"));
        return Err(format!("none of the {called} has `{asked}` in its name; {near}"));
    }
    if !as_json {
        return terminal::print(&report::word_list(&found, terminal::stdout_style(colour, false)));
    }
    let word = |it: &WordListed| serde_json::json!({ "name": it.word, "sort": it.sort, "meaning": it.meaning });
    let found: Vec<serde_json::Value> = found.iter().map(word).collect();
    let document = serde_json::json!({ "schema": "assay.words/1", called: found });
    terminal::print(&format!("{document:#}\n"))
}

/// Those that have `asked` in their name, each with its parts.
fn with_parts(all: &[WordListed], asked: &str) -> Vec<WordListed> {
    let mut is_whole_in = false;
    let mut found = Vec::new();
    for entry in all {
        let is_named = entry.word.contains(asked);
        if !entry.is_part {
            is_whole_in = is_named;
        }
        if is_named || (entry.is_part && is_whole_in) {
            found.push(entry.clone());
        }
    }
    found
}

fn numbers() -> Vec<WordListed> {
    let word = |it: analysis::NumberListed| WordListed {
        word: it.name,
        sort: it.unit.to_owned(),
        meaning: it.meaning,
        is_part: false,
    };
    analysis::numbers().into_iter().map(word).collect()
}

fn audits() -> Vec<WordListed> {
    let mut all = Vec::new();
    for audit in analysis::audits_listed() {
        let (word, meaning) = (audit.name.to_owned(), audit.question.to_owned());
        all.push(WordListed { word, meaning, ..WordListed::default() });
        all.extend(audit.figures.into_iter().map(|(word, unit)| WordListed {
            word,
            meaning: unit.to_owned(),
            is_part: true,
            ..WordListed::default()
        }));
    }
    all
}

fn faults() -> Vec<WordListed> {
    let kinds = testbed::fault_kinds().iter();
    let word = |kind: &model::fault::FaultKind| WordListed {
        word: kind.word.to_owned(),
        meaning: kind.meaning.to_owned(),
        ..WordListed::default()
    };
    kinds.map(word).collect()
}

fn sections() -> Vec<WordListed> {
    let word = |section: &report::PageSection| WordListed {
        word: section.key.to_owned(),
        sort: section.heading.to_owned(),
        meaning: section.question.to_owned(),
        is_part: false,
    };
    report::PAGE_SECTIONS.iter().map(word).collect()
}

fn entry(path: &Path) -> ListEntry {
    let folder = path.display().to_string();
    let run = match RunFolder::open(path) {
        Ok(run) => run,
        Err(error) => {
            return ListEntry { folder, state: error.to_string(), ..ListEntry::default() };
        }
    };
    match run.result() {
        Ok(result) => of_result(folder, &result, run.baseline_names()),
        Err(error) => {
            let what = match error {
                RecordError::OtherVersion { .. } => "a result of another version",
                _ => "no result",
            };
            let state = format!("{what}; assay report makes one");
            ListEntry { folder, state, ..ListEntry::default() }
        }
    }
}

fn of_result(folder: String, result: &RunResult, marks: Vec<String>) -> ListEntry {
    ListEntry {
        folder,
        started: result.started.clone(),
        name: result.name.clone(),
        verdict: Some(result.verdict),
        state: String::new(),
        settings: result.settings.len(),
        headline: report::list_headline(result),
        marks,
    }
}

fn json(entries: &[ListEntry]) -> String {
    let list: Vec<serde_json::Value> = entries
        .iter()
        .map(|entry| {
            serde_json::json!({
                "folder": entry.folder,
                "started": entry.started,
                "name": entry.name,
                "verdict": entry.verdict.map(model::result::Verdict::word),
                "state": entry.state,
                "settings": entry.settings,
                "baseline_names": entry.marks,
            })
        })
        .collect();
    let document = serde_json::json!({ "schema": "assay.list/1", "runs": list });
    format!("{document:#}\n")
}
