//! Where every effective value came from: the notes that reading left, gathered over all settings.

use std::collections::BTreeMap;

use model::options::Span;

use crate::input::{Effective, Source};
use crate::keys::{KEYS, Key};
use crate::rejected::line_number;
use crate::table::Effect;

/// Different values of one path that are printed before the rest is only counted.
const VALUES_SHOWN_MAX: usize = 6;
/// Different values of one path that are kept apart.
const VALUES_MAX: usize = 1_000;

/// Sources of these names hold one value each, and are called by their text.
pub(crate) const ENVIRONMENT: &str = "environment";
/// See [`ENVIRONMENT`].
pub(crate) const COMMAND_LINE: &str = "command line";

/// Notes by path, in the order in which the paths were first read.
#[derive(Default)]
pub(crate) struct Gathered {
    index: BTreeMap<String, usize>,
    list: Vec<Noted>,
}

struct Noted {
    path: String,
    values: Vec<(String, Option<Span>)>,
}

impl Gathered {
    /// Adds the notes of one reading.
    pub fn add(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            let at = *self.index.entry(effect.path.clone()).or_insert_with(|| {
                self.list.push(Noted { path: effect.path, values: Vec::new() });
                self.list.len() - 1
            });
            let values = &mut self.list[at].values;
            let new = !values.iter().any(|(known, _)| *known == effect.value);
            if new && values.len() < VALUES_MAX {
                values.push((effect.value, effect.span));
            }
        }
    }

    /// The values with their origins in words.
    pub fn show(self, sources: &[Source]) -> Vec<Effective> {
        let mut list = self.list;
        list.sort_by_key(|noted| place(&noted.path));
        list.into_iter().map(|noted| show_one(noted, sources)).collect()
    }
}

/// The place of a path in [`KEYS`]: of itself, or of the table or list that it belongs to; of a key that only a kind of
/// fault knows, after those that all have.
fn place(path: &str) -> usize {
    let plain: String =
        path.split('[').map(|part| part.split_once(']').map_or(part, |(_, rest)| rest)).collect();
    let is_of = |key: &Key| {
        let known = key.path.replace("[]", "");
        plain == known || plain.strip_prefix(&known).is_some_and(|rest| rest.starts_with('.'))
    };
    let top = |path: &str| path.split(['.', '[']).next().map(str::to_owned);
    let is_beside = |key: &Key| top(key.path) == top(&plain);
    let found = KEYS.iter().position(is_of).or_else(|| KEYS.iter().rposition(is_beside));
    found.unwrap_or(KEYS.len())
}

fn show_one(noted: Noted, sources: &[Source]) -> Effective {
    let count = noted.values.len();
    let shown: Vec<&str> =
        noted.values.iter().take(VALUES_SHOWN_MAX).map(|(value, _)| value.as_str()).collect();
    let mut value = shown.join(", ");
    if count > VALUES_SHOWN_MAX {
        value = format!("{value}, … ({count} values)");
    }
    let mut origins: Vec<String> = Vec::new();
    for (_, span) in &noted.values {
        let origin = origin(*span, sources);
        if !origins.contains(&origin) {
            origins.push(origin);
        }
    }
    origins.truncate(VALUES_SHOWN_MAX);
    Effective { path: noted.path, value, origin: origins.join(", ") }
}

fn origin(span: Option<Span>, sources: &[Source]) -> String {
    let Some(span) = span else { return "default".to_owned() };
    let Some(source) = sources.get(usize::from(span.source)) else { return "default".to_owned() };
    match source.name.as_str() {
        ENVIRONMENT => source.text.split('=').next().unwrap_or_default().to_owned(),
        COMMAND_LINE => source.text.clone(),
        name => format!("{name}:{}", line_number(&source.text, span.start)),
    }
}
