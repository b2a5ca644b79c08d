//! How text is dressed for a terminal: colour, width, marks, and the cleaning of text that others wrote.
//!
//! It must never make colour carry a meaning alone: whatever is painted also has a mark or a word. It must
//! never pass a control character on: error texts come from the system under test, and a server must not be
//! able to drive the terminal of whoever measures it.

use model::result::{AuditOutcome, Verdict};
pub(crate) use model::visible;

/// How a text is to be dressed. The caller decides about `NO_COLOR`, terminals and widths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    /// Whether to paint with ANSI escapes.
    pub colour: bool,
    /// Columns of the terminal; 80 where there is none. Less than [`WIDTH_MIN`] is treated as that.
    pub width: usize,
    /// Whether only ASCII may be used.
    pub ascii: bool,
    /// Whether everything is shown, the audits that are satisfied included.
    pub verbose: bool,
}

impl Default for Style {
    fn default() -> Self {
        Self { colour: false, width: 80, ascii: false, verbose: false }
    }
}

/// The narrowest layout: below it tables would be one letter a line.
pub const WIDTH_MIN: usize = 40;

impl Style {
    /// The columns to lay out for.
    #[must_use]
    pub(crate) fn columns(self) -> usize {
        self.width.max(WIDTH_MIN)
    }

    /// `text` in `paint`, if there is colour.
    #[must_use]
    pub(crate) fn paint(self, paint: Paint, text: &str) -> String {
        match paint.code() {
            Some(code) if self.colour && !text.is_empty() => format!("\x1b[{code}m{text}\x1b[0m"),
            _ => text.to_owned(),
        }
    }

    /// The last step of every rendering: no trailing blanks, and ASCII if that was asked for.
    ///
    /// Every glyph has a replacement of the same width, so that tables stay aligned.
    #[must_use]
    pub(crate) fn finish(self, text: &str) -> String {
        let mut done = String::with_capacity(text.len());
        for line in text.lines() {
            done.push_str(line.trim_end());
            done.push('\n');
        }
        if !self.ascii {
            return done;
        }
        done.chars().map(to_ascii).collect()
    }
}

/// The role of a piece of text, as far as colour can add to its words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Paint {
    /// As it is.
    #[default]
    Plain,
    /// A heading.
    Bold,
    /// Secondary, or resting on too few samples (then it is marked `~` as well).
    Dim,
    /// Holds.
    Good,
    /// Broken.
    Bad,
    /// Not to be relied upon.
    Caution,
}

impl Paint {
    const fn code(self) -> Option<&'static str> {
        match self {
            Self::Plain => None,
            Self::Bold => Some("1"),
            Self::Dim => Some("2"),
            Self::Good => Some("32"),
            Self::Bad => Some("31"),
            Self::Caution => Some("33"),
        }
    }
}

/// Mark and paint of a verdict.
pub(crate) const fn verdict_mark(verdict: Verdict) -> (&'static str, Paint) {
    match verdict {
        Verdict::Pass => ("✓", Paint::Good),
        Verdict::Fail => ("✗", Paint::Bad),
        Verdict::Undecided => ("?", Paint::Caution),
        Verdict::Invalid => ("!", Paint::Caution),
    }
}

/// Mark and paint of an audit's outcome.
pub(crate) const fn outcome_mark(outcome: AuditOutcome) -> (&'static str, Paint) {
    match outcome {
        AuditOutcome::Ok => ("✓", Paint::Good),
        AuditOutcome::Skipped => ("–", Paint::Dim),
        AuditOutcome::Warn => ("!", Paint::Caution),
        AuditOutcome::Failed => ("✗", Paint::Bad),
    }
}

/// `text` on one line and without anything that could drive a terminal: see [`visible`]; runs of white space become
/// one blank.
#[must_use]
pub(crate) fn clean(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    visible(&words.join(" "))
}

/// How many terminal columns `text` takes: wide East Asian characters and emoji two, combining marks none.
///
/// The ranges are the large blocks of Unicode's `EastAsianWidth.txt`; a name of a setting needs no more.
#[must_use]
pub(crate) fn columns_of(text: &str) -> usize {
    text.chars().map(width_of).sum()
}

const fn width_of(c: char) -> usize {
    match c {
        '\u{300}'..='\u{36f}' | '\u{fe00}'..='\u{fe0f}' => 0,
        '\u{1100}'..='\u{115f}'
        | '\u{2e80}'..='\u{a4cf}'
        | '\u{ac00}'..='\u{d7a3}'
        | '\u{f900}'..='\u{faff}'
        | '\u{fe30}'..='\u{fe6f}'
        | '\u{ff00}'..='\u{ff60}'
        | '\u{1f300}'..='\u{1faff}'
        | '\u{20000}'..='\u{3fffd}' => 2,
        _ => 1,
    }
}

/// `text` cut to `columns`, with an ellipsis if anything was cut.
#[must_use]
pub(crate) fn clip(text: &str, columns: usize) -> String {
    if columns_of(text) <= columns {
        return text.to_owned();
    }
    let mut kept = String::new();
    let mut used = 0;
    for c in text.chars() {
        if used + width_of(c) + 1 > columns {
            break;
        }
        used += width_of(c);
        kept.push(c);
    }
    if columns > 0 {
        kept.push('…');
    }
    kept
}

/// `text` broken at blanks into lines of at most `columns`; a word longer than that is broken where it must be.
#[must_use]
pub(crate) fn wrap(text: &str, columns: usize) -> Vec<String> {
    let columns = columns.max(8);
    let mut lines = Vec::new();
    let mut line = String::new();
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        let gap = usize::from(!line.is_empty());
        if columns_of(&line) + gap + columns_of(word) <= columns {
            if gap == 1 {
                line.push(' ');
            }
            line.push_str(word);
            continue;
        }
        if !line.is_empty() {
            lines.push(std::mem::take(&mut line));
        }
        for c in word.chars() {
            if columns_of(&line) + width_of(c) > columns {
                lines.push(std::mem::take(&mut line));
            }
            line.push(c);
        }
    }
    if !line.is_empty() || lines.is_empty() {
        lines.push(line);
    }
    lines
}

/// One ASCII character for each glyph that this crate prints; `?` for what others wrote.
const fn to_ascii(c: char) -> char {
    match c {
        '✓' => '+',
        '✗' | '×' => 'x',
        '●' => '*',
        '◐' => '=',
        '○' => 'o',
        '–' | '−' | '—' | '·' => '-',
        'µ' | 'μ' => 'u',
        '→' => '>',
        '÷' => '/',
        '…' => '.',
        '“' | '”' => '"',
        '┤' => '|',
        '█' => '#',
        '░' | '▁' => '.',
        '▂' => ':',
        '▃' => '-',
        '▄' => '=',
        '▅' => '+',
        '▆' => '*',
        '▇' => '#',
        c if c.is_ascii() => c,
        _ => '?',
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Claim: no byte that drives a terminal, and no character that reorders a line, survives cleaning.
    #[test]
    fn hostile_text_is_shown_not_obeyed() {
        let cleaned = clean("bad\x1b[2J\u{202e}gnp.exe\r\nnext\t tab\u{7}");
        assert_eq!(cleaned, "bad\\u{1b}[2J\\u{202e}gnp.exe next tab\\u{7}");
        assert!(cleaned.chars().all(|c| !c.is_control() && !model::is_invisible(c)));
    }

    /// Claim: clipping and wrapping never exceed the columns that they were given, wide characters included.
    #[test]
    fn widths_are_kept() {
        let text = "a wörd 漢字漢字漢字 and averyveryverylongwordwithoutanyblank in it";
        for columns in 8..60 {
            assert!(columns_of(&clip(text, columns)) <= columns, "{columns}");
            for line in wrap(text, columns) {
                assert!(columns_of(&line) <= columns, "{columns}: {line}");
            }
        }
        assert_eq!(wrap(text, 200), [text]);
    }

    /// Claim: the ASCII form has the same width as the other and holds nothing but ASCII.
    #[test]
    fn ascii_keeps_widths() {
        let style = Style { ascii: true, ..Style::default() };
        let text = "✓ a · b – c µs … ● ◐ ○ █░▁▂▃▄▅▆▇┤ ÷ → ü";
        let ascii = style.finish(text);
        assert!(ascii.is_ascii());
        assert_eq!(ascii.trim_end().len(), columns_of(text));
    }
}
