//! The whole of it: parse, lay over each other, expand the matrix, read each setting, gather every mistake.

use std::path::Path;

use model::Seed;
use model::options::{Options, Problems, Span, Value};
use model::plan::{Axis, PLAN_SCHEMA, Plan, SettingPlan};

use crate::effective::{COMMAND_LINE, ENVIRONMENT, Gathered};
use crate::input::{Input, Resolved, SOURCES_MAX, Source, TRIALS_MAX};
use crate::matrix::{Combination, Matrix};
use crate::promise::{self, Declared, Known, Labels};
use crate::rejected::{Rejected, reject};
use crate::table::{Reading, Table};
use crate::{against, keys, layer, matrix, order, parse, search, setting, trace, until};

/// The most trials in all.
const TRIALS_TOTAL_MAX: u64 = 100_000;
/// The most that all settings together may hold, in bytes of the file's values: each setting keeps its own.
const PLAN_BYTES_MAX: usize = 64 << 20;
/// The longest name of an experiment: it is part of a folder's name.
const NAME_CHARS_MAX: usize = 64;

/// Keys of the design that nothing carries out yet, and what they are.
const UNBUILT: [(&str, &str); 2] =
    [("metrics", "scraping the nodes' metrics"), ("events", "the nodes' event files")];

/// See [`crate::resolve`].
pub(crate) fn resolve(input: &Input<'_>) -> Result<Resolved, Rejected> {
    let mut reading = Reading {
        sources: vec![input.file.clone()],
        problems: Problems::default(),
        effects: Vec::new(),
        outside: input.outside,
        traces: std::collections::BTreeMap::new(),
        remarks: Vec::new(),
    };
    let Some(merged) = layers(input, &mut reading) else {
        return Err(reject(&reading.sources, reading.problems));
    };
    let plan = read(&merged, input, &mut reading);
    match plan {
        Some((plan, gathered)) if reading.problems.is_empty() => {
            let effective = gathered.show(&reading.sources);
            let Reading { sources, remarks, .. } = reading;
            Ok(Resolved { plan, effective, sources, remarks })
        }
        _ => {
            debug_assert!(!reading.problems.is_empty(), "a plan is missing for a reason");
            Err(reject(&reading.sources, reading.problems))
        }
    }
}

/// All layers over each other, lowest first; `None` if the file itself cannot be read.
fn layers(input: &Input<'_>, reading: &mut Reading<'_>) -> Option<Options> {
    if input.env.len() + input.sets.len() + input.flags.len() > SOURCES_MAX {
        let message = format!("more than {SOURCES_MAX} variables, --set and flags together");
        reading.problems.add(Span::default(), message, None);
        return None;
    }
    let mut merged = Options::empty();
    if let Some(user) = &input.user
        && let Some(mut tree) =
            parse::document(&user.text, add(user.clone(), reading), &mut reading.problems)
    {
        if let Some((span, _)) = take(&mut tree, "profile") {
            let message = "profiles belong in the experiment file";
            reading.problems.add(span, message, None);
        }
        layer::lay(&mut merged, tree);
    }
    let file = parse::document(&input.file.text, 0, &mut reading.problems);
    let chosen = file.map(|mut tree| {
        let profiles = take(&mut tree, "profile");
        layer::lay(&mut merged, tree);
        profile(input.profile.as_deref(), profiles, reading)
    });
    if let Some(Some(overlay)) = &chosen {
        layer::lay(&mut merged, overlay.clone());
    }
    variables(input, &mut merged, reading);
    for set in &input.sets {
        let source = Source { name: COMMAND_LINE.into(), text: format!("--set {set}") };
        let index = add(source.clone(), reading);
        let offset = "--set ".len();
        let tree = layer::path_and_value(&source, index, offset, &mut reading.problems);
        if let Some(tree) = tree {
            layer::lay(&mut merged, tree);
            let path = set.split('=').next().unwrap_or_default().trim();
            replace_axes(path, &source.text, &mut merged, reading);
        }
    }
    for (path, value) in &input.flags {
        flag(path, value, &mut merged, reading);
        let word = path.rsplit('.').next().unwrap_or_default();
        replace_axes(path, &format!("--{word} {value}"), &mut merged, reading);
    }
    chosen.map(|_| merged)
}

/// An axis of the matrix would overrule what the command line sets: that becomes its only value, and it is said. The axis
/// stays, because tables and thresholds may name it.
fn replace_axes(path: &str, said: &str, merged: &mut Options, reading: &mut Reading<'_>) {
    let Some(value) = merged.get(path).cloned() else { return };
    let Value::Table(tables) = &mut merged.value else { return };
    let Some((_, Options { value: Value::Table(axes), .. })) = tables.get_mut("matrix") else {
        return;
    };
    for (name, (_, axis)) in axes {
        let own = if name.contains('.') { name.clone() } else { format!("load.{name}") };
        let is_meant = match axis.get("set").map(|set| &set.value) {
            Some(Value::String(set)) => set == path,
            _ => own == path,
        };
        let values = match &mut axis.value {
            _ if !is_meant => continue,
            Value::Table(table) => {
                table.remove("labels");
                table.get_mut("values").map(|(_, values)| &mut values.value)
            }
            values => Some(values),
        };
        if let Some(Value::Array(values)) = values {
            let count = values.len();
            *values = vec![value.clone()];
            reading.remarks.push(format!(
                "{said} replaces the {count} values of the axis `{name}` of the matrix"
            ));
        }
    }
}

fn add(source: Source, reading: &mut Reading<'_>) -> u16 {
    reading.sources.push(source);
    u16::try_from(reading.sources.len() - 1).expect("bounded by SOURCES_MAX")
}

fn take(tree: &mut Options, key: &str) -> Option<(Span, Options)> {
    match &mut tree.value {
        Value::Table(table) => table.remove(key),
        _ => None,
    }
}

/// The chosen `[profile.NAME]`, if there is one.
fn profile(
    chosen: Option<&str>,
    profiles: Option<(Span, Options)>,
    reading: &mut Reading<'_>,
) -> Option<Options> {
    let mut known = Vec::new();
    if let Some((_, profiles)) = &profiles {
        for (name, _, overlay) in crate::table::entries_as_written(profiles, "profile", reading) {
            if !matches!(overlay.value, Value::Table(_)) {
                let message =
                    format!("`profile.{name}` must be a table, but is {}", overlay.type_word());
                reading.problems.add(overlay.span, message, None);
            }
            known.push((name, overlay));
        }
    }
    let chosen = chosen?;
    if let Some((_, overlay)) = known.iter().find(|(name, _)| *name == chosen) {
        return matches!(overlay.value, Value::Table(_)).then(|| (*overlay).clone());
    }
    let source = Source { name: COMMAND_LINE.into(), text: format!("--profile {chosen}") };
    let start = "--profile ".len();
    let span = Span { start, end: source.text.len(), source: add(source, reading) };
    let names: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
    let help = match names.as_slice() {
        [] => "it has no profiles".to_owned(),
        names => format!("it has: {}", names.join(", ")),
    };
    let message = format!("the experiment has no profile `{chosen}`");
    reading.problems.add(span, message, Some(help));
    None
}

fn variables(input: &Input<'_>, merged: &mut Options, reading: &mut Reading<'_>) {
    let mut variables: Vec<&(String, String)> = input.env.iter().collect();
    variables.sort();
    for (name, value) in variables {
        if !name.starts_with("ASSAY_")
            || keys::VARIABLES_OTHER.iter().any(|other| name.starts_with(other))
        {
            continue;
        }
        let source = Source { name: ENVIRONMENT.into(), text: format!("{name}={value}") };
        let index = add(source, reading);
        let span = Span { source: index, start: 0, end: name.len() };
        match keys::variable_path(name) {
            Ok(path) => {
                let offset = name.len() + 1;
                let value = parse::loose_value(value, index, offset, &mut reading.problems);
                layer::assign(merged, &layer::keys_at(&path, span), value);
            }
            Err(help) => {
                let message = format!("the variable `{name}` names no key of an experiment");
                let help = help.or_else(|| Some("unset it, or see `assay check --explain`".into()));
                reading.problems.add(span, message, help);
            }
        }
    }
}

fn flag(path: &str, value: &str, merged: &mut Options, reading: &mut Reading<'_>) {
    let word = path.rsplit('.').next().unwrap_or_default();
    let text = format!("--{word} {value}");
    let offset = word.len() + 3;
    let index = add(Source { name: COMMAND_LINE.into(), text }, reading);
    if path != "threshold" {
        let name = Span { source: index, start: 0, end: offset - 1 };
        let value = parse::loose_value(value, index, offset, &mut reading.problems);
        layer::assign(merged, &layer::keys_at(path, name), value);
        return;
    }
    let span = Span { source: index, start: offset, end: offset + value.len() };
    let expr = Options { value: Value::String(value.to_owned()), span };
    let threshold = layer::nest(&layer::keys_at("expr", span), expr);
    let mut list = match merged.get("threshold").map(|list| &list.value) {
        Some(Value::Array(items)) => items.clone(),
        _ => Vec::new(),
    };
    list.push(threshold);
    merged.set("threshold", Options { value: Value::Array(list), span });
}

/// The top of the file.
struct Head {
    name: String,
    question: String,
    notes: String,
    seed: Seed,
    trials: u32,
    shuffled: bool,
}

fn head(root: &Options, file: &str, reading: &mut Reading<'_>) -> Head {
    let mut table = Table::open(root, "", reading);
    let name = match table.string("name", reading) {
        Some(name) => {
            check_name(&table, name, reading);
            name.to_owned()
        }
        None => {
            let name = name_of_file(file);
            table.note_derived("name", name.clone(), name.clone(), reading)
        }
    };
    let question = table.string("question", reading).unwrap_or_default().to_owned();
    let notes = table.string("notes", reading).unwrap_or_default().to_owned();
    let most = u64::try_from(i64::MAX).expect("not negative");
    let seed = table.integer_or("seed", 0, most, keys::fixed_integer("seed"), reading);
    let trials_max = u32::try_from(TRIALS_MAX).expect("a small constant");
    let by_turns = root.get("against").map(|_| against::TRIALS);
    let default = by_turns.unwrap_or_else(|| keys::fixed_count("trials"));
    let trials = table.count_or("trials", 1, trials_max, default, reading);
    let rule = if trials > 1 { "shuffled" } else { "as-written" };
    let order = table.one_of_or("order", &["shuffled", "as-written"], rule, reading);
    for (key, what) in UNBUILT {
        table.refuse_unbuilt(key, what, reading);
    }
    for key in ELSEWHERE {
        let _ = table.given(key);
    }
    table.finish(reading);
    Head { name, question, notes, seed: Seed(seed), trials, shuffled: order == Some("shuffled") }
}

/// Top-level keys that are read by others.
const ELSEWHERE: [&str; 17] = [
    "system",
    "against",
    "workload",
    "load",
    "probe",
    "measure",
    "search",
    "ledger",
    "matrix",
    "include",
    "exclude",
    "threshold",
    "links",
    "disk",
    "fault",
    "expect",
    "report",
];

fn is_name_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.')
}

fn check_name(table: &Table<'_>, name: &str, reading: &mut Reading<'_>) {
    let fits = !name.is_empty()
        && !name.starts_with(['.', '-'])
        && name.len() <= NAME_CHARS_MAX
        && name.chars().all(is_name_char);
    if !fits {
        let message = format!("`{name}` cannot be a name: it is part of a folder's name");
        let help = format!("use up to {NAME_CHARS_MAX} letters, digits, `-`, `_`, `.`");
        table.reject("name", message, Some(&help), reading);
    }
}

/// The file's stem, in characters that a name may have.
fn name_of_file(file: &str) -> String {
    let stem = Path::new(file).file_stem().map(|stem| stem.to_string_lossy().into_owned());
    let name: String = stem
        .unwrap_or_default()
        .chars()
        .map(|c| if is_name_char(c) { c } else { '-' })
        .take(NAME_CHARS_MAX)
        .collect();
    let name = name.trim_matches(['-', '.']);
    if name.is_empty() { "experiment".to_owned() } else { name.to_owned() }
}

/// Reads the merged tree; whatever it returns counts only if there are no problems.
fn read(root: &Options, input: &Input<'_>, reading: &mut Reading<'_>) -> Option<(Plan, Gathered)> {
    let head = head(root, &input.file.name, reading);
    let mut gathered = Gathered::default();
    let matrix = matrix::read(root, reading);
    let percentiles = promise::percentiles(root, reading);
    gathered.add(std::mem::take(&mut reading.effects));
    let matrix = matrix.and_then(|matrix| against::expand(root, matrix, reading));
    let matrix = matrix.filter(|matrix| is_bearable(root, matrix, &head, reading));
    let settings = match &matrix {
        Some(matrix) => settings(root, matrix, &head, &mut gathered, reading),
        None => {
            // Without its matrix the file can still be read once, for the mistakes in the rest of it.
            let _ = setting::read(root, reading);
            None
        }
    };
    let labels = matrix.as_ref().map(labels_of_settings).unwrap_or_default();
    let axes = matrix.as_ref().map(axes).unwrap_or_default();
    let is_asked = ["threshold", "report"].into_iter().any(|key| root.get(key).is_some());
    let declared = declared(settings.as_deref().filter(|_| is_asked), reading);
    let known =
        matrix.is_some().then_some(Known { axes: &axes, settings: &labels, declared: &declared });
    let thresholds = promise::thresholds(root, known, reading);
    let expectations = promise::expectations(root, known, reading);
    let tables = promise::tables(root, known, reading);
    let search = search::read(root, settings.as_deref().unwrap_or_default(), &thresholds, reading);
    gathered.add(std::mem::take(&mut reading.effects));
    let mut settings = settings?;
    for (at, verdict) in expectations {
        for setting in settings.iter_mut().filter(|setting| promise::is_at(&at, &setting.values)) {
            setting.expect = Some(verdict);
        }
    }
    let order = match root.get("against") {
        Some(_) => order::by_turns(settings.len() / 2, head.trials, head.shuffled, head.seed),
        None => order::order(settings.len(), head.trials, head.shuffled, head.seed),
    };
    let plan = Plan {
        schema: PLAN_SCHEMA.to_owned(),
        name: head.name,
        question: head.question,
        notes: head.notes,
        seed: head.seed,
        shuffled: head.shuffled,
        percentiles,
        profile: input.profile.clone().unwrap_or_default(),
        axes,
        settings,
        order,
        thresholds,
        tables,
        search,
    };
    Some((plan, gathered))
}

/// Every combination, read in full.
fn settings(
    root: &Options,
    matrix: &Matrix,
    head: &Head,
    gathered: &mut Gathered,
    reading: &mut Reading<'_>,
) -> Option<Vec<SettingPlan>> {
    let mut settings = Vec::with_capacity(matrix.combinations.len());
    let mut due_times = 0_usize;
    let mut complete = true;
    for combination in &matrix.combinations {
        let tree = set(root, combination);
        let read = setting::read(&tree, reading);
        gathered.add(std::mem::take(&mut reading.effects));
        let Some(read) = read else {
            complete = false;
            if reading.problems.list.len() > PROBLEMS_MAX {
                break;
            }
            continue;
        };
        due_times += due_times_of(&read);
        if due_times > 10 * trace::LINES_MAX {
            let message = format!(
                "the traces of all settings together have more than {} due times",
                10 * trace::LINES_MAX
            );
            reading.problems.add(root.span, message, Some("shorten the matrix".to_owned()));
            return None;
        }
        let setting = SettingPlan {
            key: combination.key.clone(),
            values: combination.labels.iter().cloned().collect(),
            trials: head.trials,
            expect: combination.expect,
            system: read.system,
            load: read.load,
            probe: read.probe,
            measure: read.measure,
            faults: read.faults,
            links: read.links,
            disks: read.disks,
        };
        until::check(&tree, &setting, reading);
        settings.push(setting);
    }
    complete.then_some(settings)
}

/// The declarations of each setting's system, in their order; nothing where a setting could not be read.
fn declared(settings: Option<&[SettingPlan]>, reading: &Reading<'_>) -> Vec<Declared> {
    let of = |setting: &SettingPlan| (reading.outside.names)(setting);
    settings.unwrap_or_default().iter().map(of).collect()
}

/// Problems after which no further setting is read: most are repetitions of one another.
const PROBLEMS_MAX: usize = 10_000;

fn due_times_of(setting: &setting::Setting) -> usize {
    use model::plan::{Arrivals, Schedule};
    match &setting.load.arrivals {
        Arrivals::Open { schedule: Schedule::Trace { due_ns } } => due_ns.len(),
        _ => 0,
    }
}

/// The file's tree with what a combination sets.
fn set(root: &Options, combination: &Combination) -> Options {
    let mut tree = root.clone();
    for (path, place, value) in &combination.assignments {
        layer::assign(&mut tree, &layer::keys_at(path, *place), value.clone());
    }
    tree
}

/// Whether the plan stays within its bounds.
fn is_bearable(root: &Options, matrix: &Matrix, head: &Head, reading: &mut Reading<'_>) -> bool {
    let settings = matrix.combinations.len();
    let span = root.get("matrix").map_or(root.span, |matrix| matrix.span);
    let trials = u64::try_from(settings).expect("a length fits 64 bits") * u64::from(head.trials);
    if trials > TRIALS_TOTAL_MAX {
        let message = format!(
            "{settings} settings of {} trials are {trials} trials; at most {TRIALS_TOTAL_MAX}",
            head.trials
        );
        reading.problems.add(span, message, Some("lower trials or shorten an axis".to_owned()));
        return false;
    }
    if weight(root).saturating_mul(settings) > PLAN_BYTES_MAX {
        let message = format!("{settings} settings of a file this long make too large a plan");
        let help = "shorten an axis, or move long texts into files".to_owned();
        reading.problems.add(span, message, Some(help));
        return false;
    }
    true
}

/// Roughly how many bytes a tree holds.
fn weight(options: &Options) -> usize {
    16 + match &options.value {
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(weight).sum(),
        Value::Table(table) => {
            table.iter().map(|(key, (_, value))| key.len() + weight(value)).sum()
        }
        _ => 0,
    }
}

fn labels_of_settings(matrix: &Matrix) -> Vec<Labels> {
    matrix.combinations.iter().map(|one| one.labels.iter().cloned().collect()).collect()
}

/// The axes with their labels in the order in which settings have them.
fn axes(matrix: &Matrix) -> Vec<Axis> {
    let axis = |name: &String| {
        let mut axis = Axis { name: name.clone(), labels: Vec::new() };
        let mut seen = std::collections::BTreeSet::new();
        for combination in &matrix.combinations {
            for (_, label) in combination.labels.iter().filter(|(axis, _)| axis == name) {
                if seen.insert(label) {
                    axis.labels.push(label.clone());
                }
            }
        }
        axis
    };
    matrix.axes.iter().map(axis).collect()
}
