//! Marks the words of the glossary where a section first uses them, so that hovering or focusing one explains it.
//!
//! It reads markup of this crate only, changes no text, and touches nothing inside charts, code, links and buttons.

use std::collections::{BTreeMap, BTreeSet};

use super::glossary::Entry;
use super::markup::text;

/// Elements whose content stays as it is: charts and code, and what can be clicked, in which nothing else may be focused.
pub(super) const LEFT_ALONE: &[&str] =
    &["svg", "pre", "code", "a", "button", "summary", "select", "script", "style", "h1", "dfn"];

/// The words to look for, longest first, by their first letter.
pub(super) struct Terms {
    by_letter: BTreeMap<u8, Vec<Form>>,
}

struct Form {
    /// In lower case.
    form: String,
    id: String,
    meaning: String,
}

impl Terms {
    pub(super) fn of(entries: &[Entry]) -> Self {
        let mut by_letter: BTreeMap<u8, Vec<Form>> = BTreeMap::new();
        for entry in entries.iter().filter(|entry| entry.is_marked) {
            for form in &entry.forms {
                // As markup has it: an apostrophe is escaped there.
                let form = text(&form.to_lowercase());
                let first = form.as_bytes()[0];
                let word = Form { form, id: entry.id(), meaning: text(&entry.meaning) };
                by_letter.entry(first).or_default().push(word);
            }
        }
        for forms in by_letter.values_mut() {
            forms.sort_by_key(|it| (std::cmp::Reverse(it.form.len()), it.form.clone()));
        }
        Self { by_letter }
    }

    /// The same markup with the first occurrence of each word marked.
    pub(super) fn mark(&self, section: &str) -> String {
        let mut done = String::with_capacity(section.len() + section.len() / 4);
        let mut seen: BTreeSet<&str> = BTreeSet::new();
        let mut rest = section;
        while let Some(at) = rest.find('<') {
            self.mark_text(&rest[..at], &mut seen, &mut done);
            let length = element_length(&rest[at..]);
            done.push_str(&rest[at..at + length]);
            rest = &rest[at + length..];
        }
        self.mark_text(rest, &mut seen, &mut done);
        done
    }

    fn mark_text<'a>(&'a self, of: &str, seen: &mut BTreeSet<&'a str>, done: &mut String) {
        let mut from = 0;
        let mut at = 0;
        while at < of.len() {
            let starts = is_boundary(of[..at].chars().next_back());
            let found = if starts { self.find(&of[at..]) } else { None };
            match found {
                Some((form, length)) if !seen.contains(form.form.as_str()) => {
                    seen.insert(&form.form);
                    let word = &of[at..at + length];
                    done.push_str(&of[from..at]);
                    done.push_str(&format!(
                        "<span class=\"term\" tabindex=\"0\" aria-describedby=\"{}\" data-def=\"{}\">{word}</span>",
                        form.id, form.meaning
                    ));
                    at += length;
                    from = at;
                }
                Some((_, length)) => at += length,
                None => at += of[at..].chars().next().map_or(1, char::len_utf8),
            }
        }
        done.push_str(&of[from..]);
    }

    /// The longest word that the text starts with, and its length there (a plural may be longer).
    fn find(&self, of: &str) -> Option<(&Form, usize)> {
        let first = of.as_bytes().first()?.to_ascii_lowercase();
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

/// The length of the tag at the start, or of the whole element if its content is left alone.
fn element_length(markup: &str) -> usize {
    let tag = markup.find('>').map_or(markup.len(), |end| end + 1);
    let name = markup[1..].split(|c: char| !c.is_ascii_alphanumeric()).next().unwrap_or("");
    if !LEFT_ALONE.contains(&name) {
        return tag;
    }
    let close = format!("</{name}>");
    markup.find(&close).map_or(tag, |at| at + close.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::html::glossary::entries;

    /// Claim: a word is marked once a section, in its plural too, the longest form wins, and code is left alone.
    #[test]
    fn first_occurrences_are_marked() {
        let terms = Terms::of(&entries(std::iter::empty()));
        let marked =
            terms.mark("<p>Goodput, goodput; thresholds of response times</p><code>goodput</code>");
        assert_eq!(marked.matches("class=\"term\"").count(), 3, "{marked}");
        assert!(marked.contains(">Goodput</span>, goodput; "), "{marked}");
        assert!(marked.contains(">thresholds</span>"), "{marked}");
        assert!(marked.contains(">response times</span>"), "{marked}");
        assert!(marked.ends_with("<code>goodput</code>"), "{marked}");
        let bare = terms.mark("<td>tedious überfated</td><svg><text>goodput</text></svg>");
        assert!(!bare.contains("term"), "{bare}");
    }
}
