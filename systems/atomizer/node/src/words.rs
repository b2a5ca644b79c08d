//! Reading what stands behind `assay serve atomizer`.

use std::net::SocketAddr;
use std::time::Duration;

use process::shell::{Until, listen_address};

/// Goes through words: `--name value`, `--name=value`, or `--name` alone.
pub(crate) struct Words<'a> {
    rest: std::slice::Iter<'a, String>,
    inline: Option<String>,
    name: String,
}

impl<'a> Words<'a> {
    pub(crate) fn new(words: &'a [String]) -> Self {
        Self { rest: words.iter(), inline: None, name: String::new() }
    }

    /// The next name.
    pub(crate) fn next_name(&mut self) -> Option<String> {
        let word = self.rest.next()?;
        let (name, inline) = match word.split_once('=') {
            Some((name, value)) => (name, Some(value.to_owned())),
            None => (word.as_str(), None),
        };
        self.inline = inline;
        name.clone_into(&mut self.name);
        Some(self.name.clone())
    }

    /// Its value.
    pub(crate) fn text(&mut self) -> Result<String, String> {
        let value = self.inline.take().or_else(|| self.rest.next().cloned());
        value.ok_or_else(|| format!("{} needs a value; see --help", self.name))
    }

    pub(crate) fn number<N: std::str::FromStr>(&mut self) -> Result<N, String> {
        let value = self.text()?;
        let name = &self.name;
        value.parse().map_err(|_| format!("{name} takes a number, and `{value}` is none that fits"))
    }

    pub(crate) fn milliseconds(&mut self) -> Result<Duration, String> {
        self.number().map(Duration::from_millis)
    }

    pub(crate) fn address(&mut self) -> Result<SocketAddr, String> {
        listen_address(&self.text()?)
    }

    /// A number and an address, as in `1=127.0.0.1:4001`.
    pub(crate) fn numbered_address(&mut self) -> Result<(u8, SocketAddr), String> {
        let text = self.text()?;
        let parts = text.split_once('=').and_then(|(number, address)| {
            Some((number.parse().ok()?, listen_address(address).ok()?))
        });
        let name = &self.name;
        parts.ok_or_else(|| {
            format!("{name} takes NUMBER=ADDRESS, as in 1=127.0.0.1:4001, and `{text}` is not that")
        })
    }

    /// One of some words.
    pub(crate) fn one_of<T: Copy>(&mut self, list: &[(&str, T)]) -> Result<T, String> {
        let value = self.text()?;
        let found = list.iter().find(|(word, _)| *word == value).map(|(_, it)| *it);
        found.ok_or_else(|| {
            let words: Vec<&str> = list.iter().map(|(word, _)| *word).collect();
            format!(
                "{} takes one of {}, and `{value}` is none of them",
                self.name,
                words.join(", ")
            )
        })
    }

    pub(crate) fn unknown(&self) -> String {
        format!("there is no option `{}`; see --help", self.name)
    }
}

/// What ends a node: a signal, and where asked the end of standard input.
pub(crate) fn until(parent_pipe: bool) -> Result<Vec<Until>, String> {
    let mut until = vec![Until::signals().map_err(|error| error.to_string())?];
    if parent_pipe {
        until.push(Until::parent_pipe().map_err(|error| error.to_string())?);
    }
    Ok(until)
}
