//! `[matrix]`, `[[include]]` and `[[exclude]]` → the combinations to measure, each with what it sets. It
//! knows paths and labels, not what the values mean: every combination is read in full afterwards.

use std::collections::BTreeSet;

use model::options::{Options, Span, Value, did_you_mean};
use model::result::Verdict;

use crate::input::SETTINGS_MAX;
use crate::secret::Variables;
use crate::table::{Reading, Table, entries_as_written, not_a_list};
use crate::{keys, secret};

/// Tables that a matrix may reach into. The others hold for the whole experiment.
const REACHABLE: [&str; 9] =
    ["load", "probe", "measure", "ledger", "system", "workload", "links", "disk", "fault"];
/// Labels are part of folder names.
const LABEL_CHARS_MAX: usize = 100;

/// One axis as written.
pub(crate) struct Axis {
    pub name: String,
    path: String,
    place: Span,
    values: Vec<(String, Options)>,
}

/// One combination.
#[derive(Clone, Default)]
pub(crate) struct Combination {
    /// Label by axis; those of `[[include]] set` stand under their dotted path.
    pub labels: Vec<(String, String)>,
    /// `rate=50/s,set=all`, or `default`.
    pub key: String,
    /// Its assignments: path, where that was written, value.
    pub assignments: Vec<(String, Span, Options)>,
    /// The verdict that its `[[include]]` declares.
    pub expect: Option<Verdict>,
    /// Where its `[[include]]` stands.
    place: Option<Span>,
}

/// The quantity to measure.
pub(crate) struct Matrix {
    /// Names of axes in the order written; then the dotted paths that `[[include]] set` names.
    pub axes: Vec<String>,
    /// The combinations in order: the product without what is excluded, then what is included.
    pub combinations: Vec<Combination>,
}

/// Reads the matrix of an experiment; `None` if it is wrong.
pub(crate) fn read(root: &Options, reading: &mut Reading<'_>) -> Option<Matrix> {
    let before = reading.problems.list.len();
    // One for all, so that two secrets never have one label, nor one secret two.
    let mut variables = Variables::default();
    let mut axes = Vec::new();
    if let Some(options) = root.get("matrix") {
        for (name, span, value) in entries_as_written(options, "matrix", reading) {
            axes.extend(axis(name, span, value, &mut variables, reading));
        }
        repeated_paths(&axes, reading);
    }
    check_lists(root, reading);
    let excludes = list(root, "exclude");
    let excludes: Vec<_> =
        excludes.iter().map(|options| exclude(options, &axes, &mut variables, reading)).collect();
    if reading.problems.list.len() > before {
        return None;
    }
    let mut combinations = product(&axes, root, reading)?;
    for (exclude, options) in excludes.iter().zip(list(root, "exclude")) {
        let count = combinations.len();
        combinations.retain(|combination| !matches(exclude, combination));
        if combinations.len() == count {
            reading.problems.add(options.span, "this exclude matches no setting", None);
        }
    }
    let mut extra = Vec::new();
    for (index, options) in list(root, "include").iter().enumerate() {
        let into = (&mut extra, &mut combinations);
        include(options, index, &axes, into, &mut variables, reading);
    }
    name_all(&mut combinations, &axes, &extra, root, &mut variables, reading);
    if combinations.is_empty() && reading.problems.list.len() == before {
        let span = root.get("matrix").map_or(root.span, |matrix| matrix.span);
        reading.problems.add(span, "every setting is excluded; nothing is left to measure", None);
    }
    let names = axes.into_iter().map(|axis| axis.name).chain(extra).collect();
    (reading.problems.list.len() == before).then_some(Matrix { axes: names, combinations })
}

/// A list of tables; empty if it is absent or wrong ([`check_lists`] says so).
fn list<'a>(root: &'a Options, key: &str) -> &'a [Options] {
    match root.get(key).map(|options| &options.value) {
        Some(Value::Array(items)) => items,
        _ => &[],
    }
}

fn check_lists(root: &Options, reading: &mut Reading<'_>) {
    for key in ["include", "exclude"] {
        if let Some(options) = root.get(key)
            && !matches!(options.value, Value::Array(_))
        {
            not_a_list(options, key, reading);
        }
    }
}

/// `name = [values]` or `name = { set = "dotted.path", values = […], labels = […] }`.
fn axis(
    name: &str,
    span: Span,
    options: &Options,
    variables: &mut Variables,
    reading: &mut Reading<'_>,
) -> Option<Axis> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    if name.is_empty() || !name.chars().all(plain) || name == "expect" {
        let message = format!("`{name}` cannot be the name of an axis");
        let help = "use letters, digits, `_`, `-`, `.`; `expect` has a meaning of its own";
        reading.problems.add(span, message, Some(help.to_owned()));
        return None;
    }
    let (path, place, values, labels) = match &options.value {
        Value::Array(values) => (own_path(name, span, reading)?, span, values.as_slice(), None),
        Value::Table(table) if !["set", "values"].iter().any(|key| table.contains_key(*key)) => {
            let message = format!("the axis `{name}` has neither `set` nor `values`");
            let help = "a path as an axis stands in quotes: \"load.rate\" = [\"10/s\", \"20/s\"]";
            reading.problems.add(span, message, Some(help.to_owned()));
            return None;
        }
        _ => {
            let mut table = Table::open(options, &format!("matrix.{name}"), reading);
            let path = table.strings("set", reading).and_then(|paths| match paths.as_slice() {
                [path] => Some((*path).to_owned()),
                _ => {
                    let message = format!("`matrix.{name}.set` must be one path");
                    table.reject("set", message, None, reading);
                    None
                }
            });
            let path = table.require("set", path, "set = \"load.rate\"", reading);
            let place = table.given("set").map_or(span, |set| set.span);
            let values = table.array("values", reading);
            let values = table.require("values", values, "values = [\"10/s\", \"20/s\"]", reading);
            let labels = table.strings("labels", reading);
            let is_table = matches!(options.value, Value::Table(_));
            table.finish(reading);
            if !is_table {
                return None;
            }
            (path?, place, values?, labels)
        }
    };
    check_path(&path, place, reading)?;
    let values = labelled((name, &path), options.span, values, labels, variables, reading)?;
    Some(Axis { name: name.to_owned(), path, place, values })
}

/// The path that an axis without `set` means: its name if it has a dot, or that key of `[load]`.
fn own_path(name: &str, span: Span, reading: &mut Reading<'_>) -> Option<String> {
    if name.contains('.') {
        return Some(name.to_owned());
    }
    let path = format!("load.{name}");
    if keys::KEYS.iter().any(|key| key.path == path) {
        return Some(path);
    }
    let message = format!("the axis `{name}` does not say what it sets");
    let help = format!("write {name} = {{ set = \"dotted.path\", values = […] }}");
    reading.problems.add(span, message, Some(help));
    None
}

/// Whether a matrix may set `path`. What the path means is found out when the setting is read.
fn check_path(path: &str, place: Span, reading: &mut Reading<'_>) -> Option<()> {
    let mut parts = path.split('.');
    let table = parts.next().unwrap_or_default();
    let is_whole = path.len() == table.len();
    let (message, help) = if !REACHABLE.contains(&table) {
        let message = format!("a matrix cannot set `{path}`");
        let near = did_you_mean(table, REACHABLE.into_iter());
        let known = "it can set what is under load, probe, measure, ledger, system, workload or links, or the list fault";
        (message, near.unwrap_or_else(|| known.to_owned()))
    } else if path == "measure.percentiles" {
        let help = "percentiles hold for the whole experiment".to_owned();
        (format!("a matrix cannot set `{path}`"), help)
    } else if table == "fault" && !is_whole {
        ("faults are set as a list".to_owned(), "write set = \"fault\"".to_owned())
    } else if path.split('.').any(str::is_empty)
        || (is_whole && !matches!(table, "workload" | "fault"))
    {
        (format!("`{path}` is not the path of one key"), "write it as load.rate".to_owned())
    } else {
        return Some(());
    };
    reading.problems.add(place, message, Some(help));
    None
}

/// The label of a value of `path`, which stands in names of folders: a secret is called by its variable.
fn label_of(path: &str, value: &Options, variables: &mut Variables) -> String {
    match &value.value {
        Value::Array(items) => {
            let inner: Vec<_> = items.iter().map(|it| label_of(path, it, variables)).collect();
            format!("[{}]", inner.join(","))
        }
        Value::Table(table) => {
            let inner = table.iter().map(|(key, (_, value))| {
                format!("{key}={}", label_of(&format!("{path}.{key}"), value, variables))
            });
            format!("{{{}}}", inner.collect::<Vec<_>>().join(","))
        }
        _ => secret::label(path, value, variables).unwrap_or_else(|| value.label()),
    }
}

/// Values with their labels.
fn labelled(
    (name, path): (&str, &str),
    span: Span,
    values: &[Options],
    labels: Option<Vec<&str>>,
    variables: &mut Variables,
    reading: &mut Reading<'_>,
) -> Option<Vec<(String, Options)>> {
    if values.is_empty() {
        reading.problems.add(span, format!("the axis `{name}` has no values"), None);
        return None;
    }
    if labels.as_ref().is_some_and(|labels| labels.len() != values.len()) {
        let message = format!("the axis `{name}` has not as many labels as values");
        reading.problems.add(span, message, None);
        return None;
    }
    let mut seen = BTreeSet::new();
    let mut labelled = Vec::with_capacity(values.len());
    for (index, value) in values.iter().enumerate() {
        let label = match &labels {
            Some(labels) => labels[index].to_owned(),
            None => label_of(path, value, variables),
        };
        if !check_label(name, &label, value.span, reading) {
            return None;
        }
        if !seen.insert(label.clone()) {
            let message = format!("the axis `{name}` has `{label}` twice");
            reading.problems.add(value.span, message, None);
            return None;
        }
        labelled.push((label, value.clone()));
    }
    Some(labelled)
}

fn check_label(name: &str, label: &str, span: Span, reading: &mut Reading<'_>) -> bool {
    let fits = !label.trim().is_empty()
        && label.chars().count() <= LABEL_CHARS_MAX
        && !label.chars().any(|c| c.is_control() || c == ',');
    if !fits {
        let message = format!("a value of the axis `{name}` does not make a label");
        let help = format!(
            "give the axis labels = [\"…\"]: up to {LABEL_CHARS_MAX} characters, without commas"
        );
        reading.problems.add(span, message, Some(help));
    }
    fits
}

fn repeated_paths(axes: &[Axis], reading: &mut Reading<'_>) {
    for (index, axis) in axes.iter().enumerate() {
        if let Some(other) = axes[..index].iter().find(|other| other.path == axis.path) {
            let message = format!("`{}` is set by the axis `{}` already", axis.path, other.name);
            reading.problems.add(axis.place, message, None);
        }
    }
}

/// Every combination of the axes' values, the last axis changing fastest.
fn product(axes: &[Axis], root: &Options, reading: &mut Reading<'_>) -> Option<Vec<Combination>> {
    let count = axes.iter().try_fold(1_usize, |n, axis| n.checked_mul(axis.values.len()));
    if count.is_none_or(|count| count > SETTINGS_MAX) {
        let span = root.get("matrix").map_or(root.span, |matrix| matrix.span);
        too_many(span, count, reading);
        return None;
    }
    let mut all = vec![Combination::default()];
    for axis in axes {
        all = all
            .iter()
            .flat_map(|so_far| axis.values.iter().map(|value| so_far.with(axis, value)))
            .collect();
    }
    Some(all)
}

fn too_many(span: Span, count: Option<usize>, reading: &mut Reading<'_>) {
    let count = count.map_or("too many".to_owned(), |count| count.to_string());
    let message = format!("the matrix makes {count} settings; at most {SETTINGS_MAX} are taken");
    reading.problems.add(span, message, Some("shorten an axis".to_owned()));
}

impl Combination {
    fn with(&self, axis: &Axis, (label, value): &(String, Options)) -> Self {
        let mut next = self.clone();
        next.labels.push((axis.name.clone(), label.clone()));
        next.assignments.push((axis.path.clone(), axis.place, value.clone()));
        next
    }
}

/// Labels by axis that one `[[exclude]]` matches.
type Pattern = Vec<(String, Vec<String>)>;

fn matches(pattern: &Pattern, combination: &Combination) -> bool {
    pattern.iter().all(|(axis, labels)| {
        combination.labels.iter().any(|(name, label)| name == axis && labels.contains(label))
    })
}

fn exclude(
    options: &Options,
    axes: &[Axis],
    variables: &mut Variables,
    reading: &mut Reading<'_>,
) -> Pattern {
    let mut pattern = Pattern::new();
    for (name, span, value) in entries_as_written(options, "exclude", reading) {
        let Some(axis) = axis_called(name, span, axes, reading) else { continue };
        let mut labels = Vec::new();
        for value in one_or_many(value) {
            match axis.called(value, variables) {
                Ok((label, _)) => labels.push(label.clone()),
                Err(label) => {
                    unknown_label(&axis.name, &label, value.span, &axis.labels(), reading);
                }
            }
        }
        pattern.push((axis.name.clone(), labels));
    }
    pattern
}

/// Adds the mistake of naming a label that an axis does not have.
pub(crate) fn unknown_label(
    axis: &str,
    label: &str,
    span: Span,
    known: &[&str],
    reading: &mut Reading<'_>,
) {
    let shown: Vec<&str> = known.iter().copied().take(20).collect();
    let message = format!("the axis `{axis}` has no value `{label}`");
    reading.problems.add(span, message, Some(format!("it has: {}", shown.join(", "))));
}

/// Adds the mistake of naming an axis that the matrix does not have.
pub(crate) fn unknown_axis(name: &str, span: Span, axes: &[&str], reading: &mut Reading<'_>) {
    let message = format!("`{name}` is not an axis of the matrix");
    let help = did_you_mean(name, axes.iter().copied()).or_else(|| {
        Some(match axes {
            [] => "there is no matrix".to_owned(),
            axes => format!("its axes: {}", axes.join(", ")),
        })
    });
    reading.problems.add(span, message, help);
}

impl Axis {
    fn labels(&self) -> Vec<&str> {
        self.values.iter().map(|(label, _)| label.as_str()).collect()
    }

    /// The value that is meant by one of its labels, or by itself; else the label that it would have.
    fn called(
        &self,
        value: &Options,
        variables: &mut Variables,
    ) -> Result<&(String, Options), String> {
        let find = |label: &str| self.values.iter().find(|(known, _)| known == label);
        if let Some(known) = find(&value.label()) {
            return Ok(known);
        }
        let label = label_of(&self.path, value, variables);
        find(&label).ok_or(label)
    }
}

fn axis_called<'a>(
    name: &str,
    span: Span,
    axes: &'a [Axis],
    reading: &mut Reading<'_>,
) -> Option<&'a Axis> {
    let found = axes.iter().find(|axis| axis.name == name);
    if found.is_none() {
        let names: Vec<&str> = axes.iter().map(|axis| axis.name.as_str()).collect();
        unknown_axis(name, span, &names, reading);
    }
    found
}

fn one_or_many(options: &Options) -> &[Options] {
    match &options.value {
        Value::Array(items) => items,
        _ => std::slice::from_ref(options),
    }
}

/// One `[[include]]`: a value, or several, of every axis; `set = { "dotted.path" = value }` beside them.
fn include(
    options: &Options,
    index: usize,
    axes: &[Axis],
    (extra, combinations): (&mut Vec<String>, &mut Vec<Combination>),
    variables: &mut Variables,
    reading: &mut Reading<'_>,
) {
    let before = reading.problems.list.len();
    let mut given: Vec<(&Axis, &[Options])> = Vec::new();
    let mut settings = None;
    let mut expect = None;
    for (name, span, value) in entries_as_written(options, &format!("include[{index}]"), reading) {
        if name == "set" && matches!(value.value, Value::Table(_)) {
            settings = Some(value);
        } else if name == "expect" {
            expect = verdict(value, reading);
        } else if let Some(axis) = axis_called(name, span, axes, reading) {
            given.push((axis, one_or_many(value)));
        }
    }
    let mut made =
        vec![Combination { expect, place: Some(options.span), ..Combination::default() }];
    for axis in axes {
        let Some((_, values)) = given.iter().find(|(known, _)| known.name == axis.name) else {
            let message = format!("this include gives no value of the axis `{}`", axis.name);
            let help = format!("add {} = … with one value or a list", axis.name);
            reading.problems.add(options.span, message, Some(help));
            continue;
        };
        let values = included_values(axis, values, variables, reading);
        if made.len().saturating_mul(values.len()) > SETTINGS_MAX {
            too_many(options.span, None, reading);
            return;
        }
        made = made
            .iter()
            .flat_map(|so_far| values.iter().map(|value| so_far.with(axis, value)))
            .collect();
    }
    let own = settings.map(|table| include_set(table, axes, variables, reading));
    let own = own.unwrap_or_default();
    for (path, span, value) in own {
        if !extra.contains(&path) {
            extra.push(path.clone());
        }
        let label = label_of(&path, &value, variables);
        for combination in &mut made {
            combination.labels.push((path.clone(), label.clone()));
            combination.assignments.push((path.clone(), span, value.clone()));
        }
    }
    if reading.problems.list.len() > before {
        return;
    }
    combinations.extend(made);
    if combinations.len() > SETTINGS_MAX {
        too_many(options.span, Some(combinations.len()), reading);
        combinations.truncate(SETTINGS_MAX);
    }
}

/// Values that an include gives an axis: a label that the axis has stands for its value.
fn included_values(
    axis: &Axis,
    values: &[Options],
    variables: &mut Variables,
    reading: &mut Reading<'_>,
) -> Vec<(String, Options)> {
    let mut included = Vec::new();
    for value in values {
        match axis.called(value, variables) {
            Ok(known) => included.push(known.clone()),
            Err(label) if check_label(&axis.name, &label, value.span, reading) => {
                included.push((label, value.clone()));
            }
            Err(_) => {}
        }
    }
    included
}

fn include_set(
    table: &Options,
    axes: &[Axis],
    variables: &mut Variables,
    reading: &mut Reading<'_>,
) -> Vec<(String, Span, Options)> {
    let mut own = Vec::new();
    for (path, span, value) in entries_as_written(table, "include.set", reading) {
        if check_path(path, span, reading).is_none()
            || !check_label(path, &label_of(path, value, variables), value.span, reading)
        {
            continue;
        }
        if let Some(axis) = axes.iter().find(|axis| axis.path == path) {
            let message = format!("`{path}` is set by the axis `{}` already", axis.name);
            reading.problems.add(span, message, None);
            continue;
        }
        own.push((path.to_owned(), span, value.clone()));
    }
    own
}

/// A verdict's word.
pub(crate) fn verdict(options: &Options, reading: &mut Reading<'_>) -> Option<Verdict> {
    if let Value::String(word) = &options.value
        && let Some(verdict) = Verdict::ALL.into_iter().find(|verdict| verdict.word() == word)
    {
        return Some(verdict);
    }
    let message = format!(
        "`{}` is not a verdict; it is one of pass, undecided, invalid, fail",
        options.label()
    );
    reading.problems.add(options.span, message, None);
    None
}

/// Gives every combination its key and every one a label for what only some of them set.
fn name_all(
    combinations: &mut [Combination],
    axes: &[Axis],
    extra: &[String],
    root: &Options,
    variables: &mut Variables,
    reading: &mut Reading<'_>,
) {
    let shorts: Vec<String> = extra.iter().map(|path| short_name(path, axes, extra)).collect();
    let mut seen = BTreeSet::new();
    for combination in combinations {
        let parts: Vec<String> = combination
            .labels
            .iter()
            .map(|(name, label)| {
                let short = extra.iter().position(|path| path == name).map(|at| &shorts[at]);
                format!("{}={label}", short.unwrap_or(name))
            })
            .collect();
        combination.key = if parts.is_empty() { "default".to_owned() } else { parts.join(",") };
        for path in extra {
            if !combination.labels.iter().any(|(name, _)| name == path) {
                let own = root.get(path).map(|value| label_of(path, value, variables));
                let label = own.unwrap_or_else(|| "default".to_owned());
                combination.labels.push((path.clone(), label));
            }
        }
        if !seen.insert(combination.key.clone()) {
            let span = combination.place.unwrap_or(root.span);
            let message = format!("the setting `{}` is there twice", combination.key);
            reading.problems.add(span, message, Some("remove it from this include".to_owned()));
        }
    }
}

/// The last part of a path where nothing else is called so, else the whole path.
fn short_name(path: &str, axes: &[Axis], extra: &[String]) -> String {
    let last = |path: &str| path.rsplit('.').next().unwrap_or_default().to_owned();
    let short = last(path);
    let taken = axes.iter().any(|axis| axis.name == short)
        || extra.iter().any(|other| other != path && last(other) == short);
    if taken { path.to_owned() } else { short }
}
