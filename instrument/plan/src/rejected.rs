//! Every mistake at once, each with its file, line, column, a caret under it, and what to do. Exact and
//! stable: tests compare the text byte by byte.

use std::fmt;

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};
use model::options::{Problem, Problems, Span};

use crate::input::Source;

/// Mistakes that are shown; beyond them only the count.
const SHOWN_MAX: usize = 50;

/// Mistakes of an experiment.
#[derive(Clone, Debug)]
pub struct Rejected {
    sources: Vec<Source>,
    problems: Vec<Problem>,
}

/// Makes a rejection of problems that someone else found in options that came from here (an adapter in its
/// own part of the file). `sources` are those of [`crate::Resolved`].
#[must_use]
pub fn reject(sources: &[Source], problems: Problems) -> Rejected {
    let mut list: Vec<Problem> = Vec::with_capacity(problems.list.len());
    let mut seen = std::collections::BTreeSet::new();
    for problem in problems.list {
        let place = (problem.span.source, problem.span.start, problem.span.end);
        if seen.insert((place, problem.message.clone())) {
            list.push(problem);
        }
    }
    list.sort_by_key(|problem| (problem.span.source, problem.span.start));
    Rejected { sources: sources.to_vec(), problems: list }
}

/// `FILE:LINE` of a place in one of the texts of [`crate::Resolved`]; none where it is in none of them.
#[must_use]
pub fn file_and_line(sources: &[Source], span: Span) -> Option<String> {
    let source = sources.get(usize::from(span.source)).filter(|_| span.end > 0)?;
    Some(format!("{}:{}", source.name, line_number(&source.text, span.start)))
}

impl Rejected {
    /// The mistakes, by source and place.
    #[must_use]
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }

    /// The text for people, with or without colour. Ends with a line that counts the mistakes.
    #[must_use]
    pub fn render(&self, colour: bool) -> String {
        let renderer = if colour { Renderer::styled() } else { Renderer::plain() };
        let mut text = String::new();
        for problem in self.problems.iter().take(SHOWN_MAX) {
            text.push_str(&self.one(problem, &renderer));
            text.push_str("\n\n");
        }
        let count = self.problems.len();
        if count > SHOWN_MAX {
            text.push_str(&format!("… and {} more\n\n", count - SHOWN_MAX));
        }
        let plural = if count == 1 { "mistake" } else { "mistakes" };
        text.push_str(&format!("{count} {plural}; nothing was sent"));
        text
    }

    fn one(&self, problem: &Problem, renderer: &Renderer) -> String {
        let title = Level::ERROR.primary_title(problem.message.as_str());
        let help = problem.help.as_deref().map(|help| Level::HELP.message(help));
        let Some(source) = self.sources.get(usize::from(problem.span.source)) else {
            return renderer.render(&[Group::with_title(title).elements(help)]);
        };
        let line = Line::around(&source.text, problem.span.start, problem.span.end);
        let snippet = Snippet::source(line.text)
            .line_start(line.number)
            .path(source.name.as_str())
            .annotation(AnnotationKind::Primary.span(line.start..line.end));
        renderer.render(&[title.element(snippet).elements(help)])
    }
}

impl fmt::Display for Rejected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.render(false))
    }
}

impl std::error::Error for Rejected {}

/// The line that a span begins in, and the span within it. Showing one line keeps messages short where the
/// span is a table of many lines, and rendering cheap where the text is long.
struct Line<'a> {
    text: &'a str,
    number: usize,
    start: usize,
    end: usize,
}

impl<'a> Line<'a> {
    fn around(text: &'a str, start: usize, end: usize) -> Self {
        let start = floor_char(text, start);
        let line_start = text[..start].rfind('\n').map_or(0, |at| at + 1);
        let line_end = text[start..].find('\n').map_or(text.len(), |at| start + at);
        let line = text[line_start..line_end].trim_end_matches('\r');
        let start = (start - line_start).min(line.len());
        let end = floor_char(text, end).saturating_sub(line_start).clamp(start, line.len());
        let number = text[..line_start].matches('\n').count() + 1;
        Self { text: line, number, start, end: end.max(start) }
    }
}

/// The nearest boundary of a character at or before `at`.
fn floor_char(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

/// The line number, from 1, of the byte `at`.
pub(crate) fn line_number(text: &str, at: usize) -> usize {
    text.as_bytes().iter().take(at).filter(|byte| **byte == b'\n').count() + 1
}
