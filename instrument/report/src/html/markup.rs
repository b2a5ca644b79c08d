//! Markup as a type: a tree of elements, texts and drawings. It becomes characters in one place, the writer below,
//! which escapes every text and every attribute, and explains each word of the glossary where the page first uses it.
//!
//! It must never let anything through that it was not told to be markup: names, error texts and experiments come from
//! outside, and a report is opened in a browser by people who trust it.

use std::collections::BTreeSet;

use super::terms::Terms;
use crate::paint::{clean, visible};
use crate::svg::{Inline, escape_visible};

/// The class of a quotation.
pub(super) const QUOTED: &str = "quoted";

/// Elements whose content stays as it is: code, and what can be clicked, in which nothing else may be focused.
pub(super) const LEFT_ALONE: &[&str] =
    &["pre", "code", "a", "button", "summary", "select", "h1", "dfn"];

/// Elements that end a line of the file.
const BLOCKS: &[&str] = &[
    "article",
    "caption",
    "dd",
    "details",
    "div",
    "dl",
    "dt",
    "figcaption",
    "figure",
    "h1",
    "h2",
    "h3",
    "li",
    "ol",
    "p",
    "pre",
    "section",
    "table",
    "tbody",
    "thead",
    "tr",
    "ul",
];

/// A piece of a page.
#[derive(Clone, Debug, Default)]
pub(crate) struct Markup {
    nodes: Vec<Node>,
}

#[derive(Clone, Debug)]
enum Node {
    /// Without control characters; its blanks and line ends count.
    Text(String),
    Element(Element),
    Drawing(Inline),
}

/// An element with its attributes and what is in it.
#[derive(Clone, Debug)]
pub(super) struct Element {
    name: &'static str,
    attributes: Attributes,
    content: Markup,
}

/// Names and values of attributes, the values as they are meant.
pub(super) type Attributes = Vec<(&'static str, String)>;

/// An element without content.
pub(super) const fn el(name: &'static str) -> Element {
    Element { name, attributes: Vec::new(), content: Markup { nodes: Vec::new() } }
}

impl Element {
    /// With an attribute.
    pub(super) fn attr(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.attributes.push((name, value.into()));
        self
    }

    /// With several.
    pub(super) fn attrs(mut self, all: Attributes) -> Self {
        self.attributes.extend(all);
        self
    }

    /// With a class; none if it is empty.
    pub(super) fn class(self, class: &str) -> Self {
        if class.is_empty() { self } else { self.attr("class", class) }
    }

    /// With text on one line after the present content.
    pub(super) fn text(self, of: &str) -> Self {
        self.add(text(of))
    }

    /// With words of our own, whose blanks count.
    pub(super) fn said(self, of: &'static str) -> Self {
        self.add(said(of))
    }

    /// With markup after the present content.
    pub(super) fn add(mut self, of: impl Into<Markup>) -> Self {
        self.content.push(of);
        self
    }

    /// The same with another name: a cell that becomes the head of its row.
    pub(super) fn named(self, name: &'static str) -> Self {
        Self { name, ..self }
    }
}

impl Markup {
    pub(super) const fn new() -> Self {
        Self { nodes: Vec::new() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    pub(super) fn push(&mut self, of: impl Into<Self>) {
        self.nodes.extend(of.into().nodes);
    }

    /// The same and this after it.
    pub(super) fn and(mut self, of: impl Into<Self>) -> Self {
        self.push(of);
        self
    }
}

impl From<Element> for Markup {
    fn from(of: Element) -> Self {
        Self { nodes: vec![Node::Element(of)] }
    }
}

impl From<Inline> for Markup {
    fn from(of: Inline) -> Self {
        Self { nodes: vec![Node::Drawing(of)] }
    }
}

impl From<Option<Element>> for Markup {
    fn from(of: Option<Element>) -> Self {
        of.map_or_else(Self::new, Self::from)
    }
}

impl<M: Into<Markup>> FromIterator<M> for Markup {
    fn from_iter<I: IntoIterator<Item = M>>(all: I) -> Self {
        let mut markup = Self::new();
        all.into_iter().for_each(|of| markup.push(of));
        markup
    }
}

/// Text on one line.
pub(super) fn text(of: &str) -> Markup {
    plain(clean(of))
}

/// Words of our own, whose blanks count.
pub(super) fn said(of: &'static str) -> Markup {
    plain(of.to_owned())
}

fn plain(of: String) -> Markup {
    Markup { nodes: if of.is_empty() { Vec::new() } else { vec![Node::Text(of)] } }
}

/// Text whose lines matter, for `<pre>`: a tab and a line end stay, every other control character is shown.
pub(super) fn lines(of: &str) -> Markup {
    let each = of.lines().map(|line| {
        let parts: Vec<String> = line.split('\t').map(visible).collect();
        parts.join("\t")
    });
    plain(each.collect::<Vec<_>>().join("\n"))
}

/// Text in which what stands between backticks is code: reasons quote thresholds so.
pub(super) fn coded(of: &str) -> Markup {
    let all = clean(of);
    if !all.matches('`').count().is_multiple_of(2) {
        return plain(all);
    }
    let parts = all.split('`').enumerate();
    parts
        .map(|(index, part)| match index % 2 {
            0 => plain(part.to_owned()),
            _ => el("code").add(plain(part.to_owned())).into(),
        })
        .collect()
}

/// A paragraph of our own words or of others'; none if there are none.
pub(super) fn paragraph(class: &str, of: &str) -> Option<Element> {
    (!of.is_empty()).then(|| el("p").class(class).text(of))
}

/// A list; none if it has no items.
pub(super) fn list(class: &str, items: Vec<Markup>) -> Option<Element> {
    let each = || items.iter().cloned().map(|item| el("li").add(item));
    (!items.is_empty()).then(|| el("ul").class(class).add(each().collect::<Markup>()))
}

/// A disclosure; none if it would be empty. It opens for print (see web/PAGE.md).
pub(super) fn details(class: &str, summary: &str, content: Markup) -> Option<Element> {
    let head = el("summary").text(summary);
    (!content.is_empty()).then(|| el("details").class(class).add(head).add(content))
}

/// Pairs of a word and what it is; those that are empty are left out.
pub(super) fn pairs(class: &str, of: Vec<(&'static str, Markup)>) -> Option<Element> {
    let each = of.into_iter().filter(|(_, content)| !content.is_empty());
    let each: Markup = each
        .map(|(word, content)| el("div").add(el("dt").text(word)).add(el("dd").add(content)))
        .collect();
    (!each.is_empty()).then(|| el("dl").class(class).add(each))
}

/// Writes markup as characters. One writer a document, so that a word is explained where the document first uses it.
pub(super) struct Writer<'a> {
    terms: &'a Terms,
    seen: BTreeSet<&'a str>,
    html: String,
}

impl<'a> Writer<'a> {
    pub(super) const fn new(terms: &'a Terms) -> Self {
        Self { terms, seen: BTreeSet::new(), html: String::new() }
    }

    /// The markup after the written part.
    pub(super) fn write(&mut self, of: &Markup) {
        self.nodes(of, true);
    }

    /// All that was written.
    pub(super) fn finish(self) -> String {
        self.html
    }

    fn nodes(&mut self, of: &Markup, is_marked: bool) {
        for node in &of.nodes {
            match node {
                Node::Text(text) => self.text(text, is_marked),
                Node::Element(element) => self.element(element, is_marked),
                Node::Drawing(drawing) => self.html.push_str(drawing.as_str()),
            }
        }
    }

    fn element(&mut self, of: &Element, is_marked: bool) {
        self.html.push('<');
        self.html.push_str(of.name);
        for (name, value) in &of.attributes {
            self.attribute(name, &clean(value));
        }
        self.html.push('>');
        if of.name == "br" {
            return;
        }
        // What the eye does not see needs no explanation there: the word's next use has it.
        let is_unseen = of.attributes.iter().any(|(name, value)| *name == "class" && value == "sr");
        // A word that others wrote does not mean what this glossary says.
        let is_quoted =
            of.attributes.iter().any(|(name, value)| *name == "class" && value == QUOTED);
        let is_left_alone = is_unseen || is_quoted || LEFT_ALONE.contains(&of.name);
        self.nodes(&of.content, is_marked && !is_left_alone);
        self.html.push_str("</");
        self.html.push_str(of.name);
        self.html.push('>');
        if BLOCKS.contains(&of.name) {
            self.html.push('\n');
        }
    }

    fn attribute(&mut self, name: &str, value: &str) {
        self.html.push(' ');
        self.html.push_str(name);
        self.html.push_str("=\"");
        self.html.push_str(&escape_visible(value));
        self.html.push('"');
    }

    fn text(&mut self, of: &str, is_marked: bool) {
        if !is_marked {
            self.html.push_str(&escape_visible(of));
            return;
        }
        let mut rest = of;
        while let Some((before, word, after, term)) = self.terms.next(rest, &self.seen) {
            self.seen.insert(&term.form);
            self.html.push_str(&escape_visible(before));
            self.html.push_str("<span class=\"term\" tabindex=\"0\"");
            self.attribute("aria-describedby", &term.id);
            self.attribute("data-def", &term.meaning);
            self.html.push('>');
            self.html.push_str(&escape_visible(word));
            self.html.push_str("</span>");
            rest = after;
        }
        self.html.push_str(&escape_visible(rest));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::html::glossary::entries;

    fn written(of: impl Into<Markup>) -> String {
        let terms = Terms::of(&entries(std::iter::empty()));
        let mut writer = Writer::new(&terms);
        writer.write(&of.into());
        writer.finish()
    }

    /// Claim: nothing that means something to a browser survives, in an element or in an attribute, and lines stay.
    #[test]
    fn hostile_text_means_nothing() {
        let hostile = "</script><script>alert('1')</script>\" onload=\"x\u{202e}\u{0}\n\tb";
        let safe = written(el("code").attr("title", hostile).text(hostile));
        let inner = safe.strip_prefix("<code title=\"").and_then(|it| it.strip_suffix("</code>"));
        let (value, content) = inner.and_then(|it| it.split_once("\">")).expect("one element");
        let all = written(el("code").add(lines(hostile)));
        let kept = all.strip_prefix("<code>").and_then(|it| it.strip_suffix("</code>"));
        let kept = kept.expect("one element");
        for safe in [value, content, kept] {
            assert!(!safe.contains(['<', '>', '"', '\'', '\u{202e}', '\u{0}']), "{safe}");
        }
        assert!(!value.contains('\n') && !content.contains('\n'));
        assert!(kept.ends_with("\n\tb"));
        assert_eq!(written(coded("`<b>` is it")), "<code>&lt;b&gt;</code> is it");
        assert_eq!(written(coded("`<b>")), "`&lt;b&gt;");
    }

    /// Claim: a word is explained at its first use in the document, in its plural too; the longest form wins; code, links
    /// and what only ears get are left alone.
    #[test]
    fn first_uses_are_marked() {
        let first = el("p").text("Goodput, goodput; thresholds of response times");
        let marked = written(el("code").text("goodput").named("code"));
        assert!(!marked.contains("term"), "{marked}");
        let marked = written([first.clone(), first].into_iter().collect::<Markup>());
        assert_eq!(marked.matches("class=\"term\"").count(), 3, "{marked}");
        assert!(marked.contains(">Goodput</span>, goodput; "), "{marked}");
        assert!(marked.contains(">thresholds</span>"), "{marked}");
        assert!(marked.contains(">response times</span>"), "{marked}");
        let bare =
            written(el("td").text("tedious überfated").add(el("span").class("sr").text("goodput")));
        assert!(!bare.contains("term"), "{bare}");
    }
}
