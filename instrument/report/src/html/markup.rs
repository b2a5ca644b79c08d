//! Text as markup: escaping, and the few elements that every section is made of.
//!
//! It must never let anything through that it was not told to be markup: names, error texts and experiments come from
//! outside, and a report is opened in a browser by people who trust it.

use crate::paint::visible;
use crate::svg::{escape, escape_visible};

/// Text on one line, harmless in an element and in an attribute.
#[must_use]
pub(super) fn text(of: &str) -> String {
    escape(of)
}

/// Text whose lines matter, for `<pre>`: a tab and a line end stay, every other control character is shown.
#[must_use]
pub(super) fn lines(of: &str) -> String {
    let each = of.lines().map(|line| {
        let parts: Vec<String> =
            line.split('\t').map(|part| escape_visible(&visible(part))).collect();
        parts.join("\t")
    });
    each.collect::<Vec<_>>().join("\n")
}

/// Text in which what stands between backticks is code: reasons quote thresholds so.
#[must_use]
pub(super) fn coded(of: &str) -> String {
    let safe = text(of);
    if !safe.matches('`').count().is_multiple_of(2) {
        return safe;
    }
    let parts = safe.split('`').enumerate();
    parts
        .map(|(index, part)| match index % 2 {
            0 => part.to_owned(),
            _ => format!("<code>{part}</code>"),
        })
        .collect()
}

/// A paragraph of our own words or of others': both are escaped.
#[must_use]
pub(super) fn paragraph(class: &str, of: &str) -> String {
    if of.is_empty() {
        return String::new();
    }
    let class = if class.is_empty() { String::new() } else { format!(" class=\"{class}\"") };
    format!("<p{class}>{}</p>\n", text(of))
}

/// A list of sentences, already markup.
#[must_use]
pub(super) fn list(class: &str, items: &[String]) -> String {
    if items.is_empty() {
        return String::new();
    }
    let items: String = items.iter().map(|item| format!("<li>{item}</li>\n")).collect();
    format!("<ul class=\"{class}\">\n{items}</ul>\n")
}

/// A disclosure; its content is markup. It opens for print (see web/PAGE.md).
#[must_use]
pub(super) fn details(class: &str, summary: &str, content: &str) -> String {
    if content.is_empty() {
        return String::new();
    }
    format!(
        "<details class=\"{class}\"><summary>{}</summary>\n{content}</details>\n",
        text(summary)
    )
}

/// Pairs of a word and markup.
#[must_use]
pub(super) fn pairs(class: &str, of: &[(String, String)]) -> String {
    let each = of.iter().filter(|(_, content)| !content.is_empty());
    let each: String = each
        .map(|(word, content)| format!("<div><dt>{}</dt><dd>{content}</dd></div>\n", text(word)))
        .collect();
    if each.is_empty() { each } else { format!("<dl class=\"{class}\">\n{each}</dl>\n") }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Claim: nothing that means something to a browser survives, in an element or in an attribute, and lines stay.
    #[test]
    fn hostile_text_means_nothing() {
        let hostile = "</script><script>alert('1')</script>\" onload=\"x\u{202e}\u{0}\n\tb";
        for safe in [text(hostile), lines(hostile)] {
            assert!(!safe.contains(['<', '>', '"', '\'', '\u{202e}', '\u{0}']), "{safe}");
        }
        let quoted = format!("`{hostile}` holds");
        assert_eq!(coded(&quoted), format!("<code>{}</code> holds", text(hostile)));
        assert_eq!(coded("`<b>"), "`&lt;b&gt;");
        assert!(lines(hostile).ends_with("\n\tb"));
        assert!(!text(hostile).contains('\n'));
    }
}
