//! The words of the glossary, to be found in a text.
//!
//! It changes no text: it says where the next word is, and who writes the text marks it.

use std::collections::{BTreeMap, BTreeSet};

use super::glossary::Entry;

/// The words to look for, longest first, by their first letter.
pub(super) struct Terms {
    by_letter: BTreeMap<char, Vec<Form>>,
}

/// One way to write a word.
pub(super) struct Form {
    /// In lower case.
    pub(super) form: String,
    /// The id of its definition.
    pub(super) id: String,
    /// Its meaning.
    pub(super) meaning: String,
}

/// A word in a text: the text before it, it, the text after it, and what it is.
pub(super) type Found<'t, 'a> = (&'t str, &'t str, &'t str, &'a Form);

impl Terms {
    pub(super) fn of(entries: &[Entry]) -> Self {
        let mut by_letter: BTreeMap<char, Vec<Form>> = BTreeMap::new();
        for entry in entries.iter().filter(|entry| entry.is_marked) {
            for form in &entry.forms {
                let form = form.to_lowercase();
                let Some(first) = form.chars().next() else { continue };
                let word = Form { form, id: entry.id(), meaning: entry.meaning.clone() };
                by_letter.entry(first).or_default().push(word);
            }
        }
        for forms in by_letter.values_mut() {
            forms.sort_by_key(|it| (std::cmp::Reverse(it.form.len()), it.form.clone()));
        }
        Self { by_letter }
    }

    /// The first word in the text that was not seen before.
    pub(super) fn next<'t, 'a>(
        &'a self,
        of: &'t str,
        seen: &BTreeSet<&'a str>,
    ) -> Option<Found<'t, 'a>> {
        let mut at = 0;
        let mut before = None;
        while at < of.len() {
            let found = if is_boundary(before) { self.find(&of[at..]) } else { None };
            match found {
                Some((form, length)) if !seen.contains(form.form.as_str()) => {
                    let end = at + length;
                    return Some((&of[..at], &of[at..end], &of[end..], form));
                }
                Some((_, length)) => at += length,
                None => at += of[at..].chars().next().map_or(1, char::len_utf8),
            }
            before = of[..at].chars().next_back();
        }
        None
    }

    /// The longest word that the text starts with, and its length there (a plural may be longer).
    fn find(&self, of: &str) -> Option<(&Form, usize)> {
        let first = of.chars().next()?.to_ascii_lowercase();
        let fits = |form: &&Form| {
            of.get(..form.form.len()).is_some_and(|it| it.eq_ignore_ascii_case(&form.form))
        };
        self.by_letter.get(&first)?.iter().filter(fits).find_map(|form| {
            let length = form.form.len();
            ["", "s", "es"].into_iter().find_map(|plural| {
                let end = length + plural.len();
                let ends = of.get(length..end)? == plural && is_boundary(of[end..].chars().next());
                ends.then_some((form, end))
            })
        })
    }
}

/// Whether no word goes on here.
fn is_boundary(c: Option<char>) -> bool {
    !c.is_some_and(|c| c.is_alphanumeric() || matches!(c, '_' | '&' | '/' | '='))
}
