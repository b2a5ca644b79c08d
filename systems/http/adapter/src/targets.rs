//! Target files: vegeta's `http` and `json` formats and plain lists of URLs, read whole, every mistake found
//! with its line. Pure: text in, targets out; files that targets name are read by whoever builds requests.

mod http_format;
mod json_format;
mod list_format;

use wire::http1::{is_field_value, is_token};

use crate::url::{self, Place};

/// The longest target file. It is read whole, because every target is prepared before the load begins.
pub(crate) const FILE_BYTES_MAX: u64 = 64 << 20;

/// The most mistakes of one file that are listed; more are counted.
pub(crate) const MISTAKES_MAX: usize = 20;

/// What a target sends behind its head.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Body {
    None,
    Bytes(Vec<u8>),
    /// The content of a file, by its path as written.
    File(String),
}

/// One line of a target file, or several.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    /// Where it begins, from 1.
    pub(crate) line: usize,
    pub(crate) method: String,
    pub(crate) place: Place,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Body,
}

/// A mistake in a target file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mistake {
    /// From 1.
    pub(crate) line: usize,
    /// What is wrong and what to write instead.
    pub(crate) message: String,
}

impl Mistake {
    fn new(line: usize, message: impl Into<String>) -> Self {
        Self { line, message: message.into() }
    }
}

/// How a target file is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    Http,
    Json,
    List,
}

impl Format {
    /// The format called `word`; `None` for `auto`.
    pub(crate) fn from_word(word: &str) -> Option<Self> {
        match word {
            "http" => Some(Self::Http),
            "json" => Some(Self::Json),
            "list" => Some(Self::List),
            _ => None,
        }
    }

    /// The format of the first line that says something.
    pub(crate) fn of(text: &str) -> Self {
        let first = text.lines().map(str::trim).find(|line| is_significant(line)).unwrap_or("");
        if first.starts_with('{') {
            Self::Json
        } else if first.starts_with('/') || first.contains("://") && !first.contains(' ') {
            Self::List
        } else {
            Self::Http
        }
    }
}

/// All targets in `text`, or all mistakes in it.
pub(crate) fn parse(text: &str, format: Format) -> Result<Vec<Target>, Vec<Mistake>> {
    let (targets, mut mistakes) = match format {
        Format::Http => http_format::parse(text),
        Format::Json => each_line(text, json_format::parse),
        Format::List => each_line(text, list_format::parse),
    };
    if targets.is_empty() && mistakes.is_empty() {
        mistakes.push(Mistake::new(
            1,
            "there is no target in it; a target is a line such as: GET http://127.0.0.1:8080/",
        ));
    }
    if mistakes.is_empty() { Ok(targets) } else { Err(mistakes) }
}

/// The text of a target file, without the mark that some editors put at its beginning.
pub(crate) fn text(bytes: &[u8]) -> Result<&str, Mistake> {
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let line = bytes[..error.valid_up_to()].iter().filter(|byte| **byte == b'\n').count() + 1;
        Mistake::new(line, "the file is not UTF-8 text; a binary body goes into a file of its own")
    })?;
    Ok(text.strip_prefix('\u{feff}').unwrap_or(text))
}

type Found = (Vec<Target>, Vec<Mistake>);

/// For formats with one target a line.
fn each_line(text: &str, parse: impl Fn(usize, &str) -> Result<Target, Mistake>) -> Found {
    let (mut targets, mut mistakes) = (Vec::new(), Vec::new());
    for (line, text) in numbered(text).filter(|(_, text)| is_significant(text)) {
        match parse(line, text) {
            Ok(target) => targets.push(target),
            Err(mistake) => mistakes.push(mistake),
        }
    }
    (targets, mistakes)
}

/// Lines from 1, without the space around them.
fn numbered(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.lines().enumerate().map(|(index, line)| (index + 1, line.trim()))
}

/// Neither empty nor a comment.
fn is_significant(line: &str) -> bool {
    !line.is_empty() && !line.starts_with('#')
}

fn method(line: usize, text: &str) -> Result<String, Mistake> {
    crate::targets::check_method(text).map_err(|message| Mistake::new(line, message))?;
    Ok(text.to_owned())
}

fn place(line: usize, text: &str) -> Result<Place, Mistake> {
    url::parse(text).map_err(|message| Mistake::new(line, message))
}

fn header(line: usize, name: &str, value: &str) -> Result<(String, String), Mistake> {
    check_header(name, value).map_err(|message| Mistake::new(line, message))?;
    Ok((name.to_owned(), value.to_owned()))
}

/// Whether a request can have this method.
pub(crate) fn check_method(text: &str) -> Result<(), String> {
    let upper = text.to_ascii_uppercase();
    if !is_token(text) {
        Err(format!("`{}` is not a method", text.escape_debug()))
    } else if text != upper {
        Err(format!("methods are upper case; did you mean `{upper}`?"))
    } else if text == "CONNECT" {
        Err("CONNECT opens a tunnel and is not a request that can be measured".to_owned())
    } else {
        Ok(())
    }
}

/// Whether a request can have this header.
pub(crate) fn check_header(name: &str, value: &str) -> Result<(), String> {
    if !is_token(name) {
        return Err(format!("`{}` is not a header name", name.escape_debug()));
    }
    if !is_field_value(value.as_bytes()) {
        return Err(format!("the value of header `{name}` holds a control character"));
    }
    if ["content-length", "transfer-encoding"].iter().any(|own| name.eq_ignore_ascii_case(own)) {
        return Err(format!("header `{name}` is written by Assay from the body; leave it out"));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
