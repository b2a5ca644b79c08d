//! Settings of the system that decide what it keeps: the value in force, and the promise of its documentation for it.
//!
//! It must never shorten a quotation, nor say of two settings of the experiment what is true of one.

use model::facts::DurabilitySetting;
use model::result::SettingResult;

use super::Shown;
use crate::called;
use crate::grid::{Cell, Grid, Line};
use crate::paint::{Paint, clean};

/// Something that the systems of some settings of the experiment have in common.
struct Common<'a, T> {
    of: T,
    /// The settings, each once.
    settings: Vec<&'a SettingResult>,
}

/// Each different one of `all`, in the order in which they come, with the settings that have it.
fn each_once<'a, T: PartialEq>(
    all: impl Iterator<Item = (&'a SettingResult, T)>,
) -> Vec<Common<'a, T>> {
    let mut found: Vec<Common<'a, T>> = Vec::new();
    for (setting, of) in all {
        match found.iter_mut().find(|it| it.of == of) {
            Some(it) if it.settings.iter().any(|other| other.key == setting.key) => {}
            Some(it) => it.settings.push(setting),
            None => found.push(Common { of, settings: vec![setting] }),
        }
    }
    found
}

/// The durability settings, those of one name after each other.
fn settings_of<'a>(shown: &'a [Shown<'a>]) -> Vec<Common<'a, &'a DurabilitySetting>> {
    let of =
        |row: &'a Shown<'a>| row.trial.durability.settings.iter().map(move |it| (row.setting, it));
    let mut all = each_once(shown.iter().flat_map(of));
    let names: Vec<&str> = all.iter().map(|it| it.of.name.as_str()).collect();
    all.sort_by_key(|it| names.iter().position(|name| *name == it.of.name));
    all
}

/// The experiment's settings whose systems declare some.
fn declaring<'a>(shown: &'a [Shown<'a>]) -> Vec<&'a SettingResult> {
    let has = |row: &&Shown<'_>| !row.trial.durability.is_empty();
    let all = each_once(shown.iter().filter(has).map(|row| (row.setting, ())));
    all.into_iter().flat_map(|it| it.settings).collect()
}

/// A row for each setting and each value of it that was in force; no rows where no system declares any.
pub(crate) fn durability(shown: &[Shown<'_>]) -> Grid {
    let (all, asked) = (settings_of(shown), declaring(shown));
    let differs = all.iter().any(|it| it.settings.len() < asked.len());
    let mut grid = Grid::new().pin("setting").words(0, "value");
    if differs {
        grid = grid.prose(0, "in force in");
    }
    grid = grid.prose(1, "promise of the documentation");
    for it in all {
        let promise = match &it.of.promise {
            None => Cell::painted("none quoted", Paint::Dim),
            Some(promise) => Cell::new(format!(
                "“{}” ({}, {})",
                clean(&promise.words),
                clean(&promise.document),
                clean(&promise.section)
            )),
        };
        let value = Cell::new(in_words(it.of));
        let place = differs.then(|| Cell::new(place(&it.settings, &asked, shown)));
        let row = [Cell::new(clean(&it.of.name)), value].into_iter().chain(place);
        grid.row(row.chain([promise]).collect());
    }
    grid
}

/// The value with what it is by default.
fn in_words(of: &DurabilitySetting) -> String {
    let quoted = |text: &str| if text.is_empty() { "\"\"".to_owned() } else { clean(text) };
    let default = quoted(&of.default);
    match &of.value {
        None => format!("not known (default: {default})"),
        Some(value) if *value == of.default => format!("{default} (default)"),
        Some(value) => format!("{} (default: {default})", quoted(value)),
    }
}

/// Some of the experiment's settings in words: by the values of the one axis that tells them from the others, if there is
/// one, or each by its key.
fn place(some: &[&SettingResult], all: &[&SettingResult], shown: &[Shown<'_>]) -> String {
    if some.len() == all.len() {
        return "all settings".to_owned();
    }
    let axes = shown.first().map_or(&[][..], |row| row.axes);
    for axis in called::differing(axes, all) {
        let mut values: Vec<&String> = Vec::new();
        for value in some.iter().filter_map(|it| it.values.get(axis)) {
            if !values.contains(&value) {
                values.push(value);
            }
        }
        let has_one =
            |it: &&&SettingResult| it.values.get(axis).is_some_and(|it| values.contains(&it));
        if all.iter().filter(has_one).count() == some.len() {
            let values: Vec<&str> = values.into_iter().map(String::as_str).collect();
            return clean(&format!("{axis}={}", values.join(", ")));
        }
    }
    clean(&some.iter().map(|it| it.key.as_str()).collect::<Vec<_>>().join("; "))
}

/// The systems' versions, to be compared with those that are quoted.
pub(crate) fn durability_lines(shown: &[Shown<'_>]) -> Vec<Line> {
    let versions = shown.iter().map(|row| (row.setting, row.trial.durability.version.as_str()));
    let versions = each_once(versions.filter(|(_, version)| !version.is_empty()));
    let all = declaring(shown);
    let said: Vec<String> = versions
        .iter()
        .map(|it| match versions.len() {
            1 => clean(it.of),
            _ => format!("{} in {}", clean(it.of), place(&it.settings, &all, shown)),
        })
        .collect();
    let version = match said.is_empty() {
        true => "the system does not say its version".to_owned(),
        false => format!("version of the system: {}", said.join("; ")),
    };
    vec![Line::said(format!(
        "In force when the load began; {version}. Quoted word by word, from the version that stands beside it."
    ))]
}

/// Names and values alone, in one sentence; none where no system declares any.
pub(crate) fn durability_brief(shown: &[Shown<'_>]) -> Option<String> {
    let all = settings_of(shown);
    let mut names: Vec<&str> = all.iter().map(|it| it.of.name.as_str()).collect();
    names.dedup();
    let (mut set, mut by_default): (Vec<String>, Vec<String>) = (Vec::new(), Vec::new());
    for name in names {
        let of: Vec<&DurabilitySetting> =
            all.iter().map(|it| it.of).filter(|it| it.name == name).collect();
        let is_default = of.iter().all(|it| it.value.as_ref() == Some(&it.default));
        let value = |it: &&DurabilitySetting| match it.value.as_deref() {
            None => "not known".to_owned(),
            Some("") => "\"\"".to_owned(),
            Some(value) => clean(value),
        };
        let values = of.iter().map(value).collect::<Vec<_>>().join(" or ");
        let list = if is_default { &mut by_default } else { &mut set };
        list.push(format!("{} = {values}", clean(name)));
    }
    let parts = [("", set), ("by default ", by_default)];
    let parts = parts.into_iter().filter(|(_, list)| !list.is_empty());
    let said: Vec<String> =
        parts.map(|(head, list)| format!("{head}{}", list.join(", "))).collect();
    (!said.is_empty()).then(|| format!("Durability: {}", said.join("; ")))
}
