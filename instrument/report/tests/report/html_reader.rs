//! Reads a page as a browser would, as far as the tests need it: tags with attributes, and the text between them.
//!
//! It must never be kinder than a browser: a tag that it cannot read is a failure.

use std::collections::BTreeMap;

/// A tag, or the text between two.
#[derive(Clone, Debug, PartialEq)]
pub enum Piece {
    /// An opening tag.
    Open(Tag),
    /// A closing tag.
    Close(String),
    /// Text, its entities resolved.
    Text(String),
}

/// An opening tag.
#[derive(Clone, Debug, PartialEq)]
pub struct Tag {
    pub name: String,
    pub attributes: BTreeMap<String, String>,
}

impl Tag {
    pub fn get(&self, name: &str) -> Option<&str> {
        self.attributes.get(name).map(String::as_str)
    }
}

/// An element with the text inside it and the ids of the sections around it.
#[derive(Clone, Debug)]
pub struct Element {
    pub tag: Tag,
    pub text: String,
    /// Names and classes of the elements around it, the outermost first: `section#r0-time`, `figure.chart time`.
    pub inside: Vec<String>,
}

/// Everything of a page, the contents of scripts and styles left out.
pub fn pieces(page: &str) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut rest = page;
    while let Some(at) = rest.find('<') {
        if at > 0 {
            pieces.push(Piece::Text(resolved(&rest[..at])));
        }
        rest = &rest[at..];
        if let Some(after) = rest.strip_prefix("<!DOCTYPE html>") {
            rest = after;
            continue;
        }
        let end = rest.find('>').expect("a tag ends");
        let inner = &rest[1..end];
        rest = &rest[end + 1..];
        if let Some(name) = inner.strip_prefix('/') {
            pieces.push(Piece::Close(name.to_owned()));
            continue;
        }
        let tag = tag(inner.trim_end_matches('/').trim_end());
        let name = tag.name.clone();
        let is_closed = inner.ends_with('/') || ["meta", "link", "br"].contains(&name.as_str());
        pieces.push(Piece::Open(tag));
        if is_closed {
            pieces.push(Piece::Close(name));
        } else if ["script", "style"].contains(&name.as_str()) {
            let close = format!("</{name}>");
            rest = &rest[rest.find(&close).expect("a script ends")..];
        }
    }
    pieces
}

/// Every element with its text.
pub fn elements(page: &str) -> Vec<Element> {
    let mut open: Vec<(usize, String)> = Vec::new();
    let mut all: Vec<Element> = Vec::new();
    for piece in pieces(page) {
        match piece {
            Piece::Open(tag) => {
                let inside = open.iter().map(|(_, name)| name.clone()).collect();
                let (id, class) = (tag.get("id").unwrap_or(""), tag.get("class").unwrap_or(""));
                open.push((all.len(), format!("{}#{id}.{class}", tag.name)));
                all.push(Element { tag, text: String::new(), inside });
            }
            Piece::Close(name) => {
                let (index, _) = open.pop().expect("what closes was open");
                assert_eq!(all[index].tag.name, name, "elements nest: {:?}", all[index]);
            }
            Piece::Text(text) => {
                for (index, _) in &open {
                    all[*index].text.push_str(&text);
                }
            }
        }
    }
    assert!(open.is_empty(), "every element is closed: {open:?}");
    all
}

fn tag(inner: &str) -> Tag {
    let (name, mut rest) = inner.split_once(char::is_whitespace).unwrap_or((inner, ""));
    assert!(name.chars().all(|c| c.is_ascii_alphanumeric()), "the name of a tag: {inner}");
    let mut attributes = BTreeMap::new();
    loop {
        rest = rest.trim_start();
        if rest.is_empty() {
            break;
        }
        let (name, after) =
            rest.split_once("=\"").unwrap_or_else(|| panic!("an attribute: {inner}"));
        assert!(
            name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == ':'),
            "the name of an attribute: {inner}"
        );
        let (value, after) = after.split_once('"').expect("a value ends");
        let known = attributes.insert(name.to_owned(), resolved(value));
        assert!(known.is_none(), "an attribute stands once: {inner}");
        rest = after;
    }
    Tag { name: name.to_owned(), attributes }
}

fn resolved(text: &str) -> String {
    for entity in text.split('&').skip(1) {
        let known = ["amp;", "lt;", "gt;", "quot;", "#39;"];
        assert!(known.iter().any(|it| entity.starts_with(it)), "an entity: &{entity:.20}");
    }
    let text = text.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"");
    text.replace("&#39;", "'").replace("&amp;", "&")
}
