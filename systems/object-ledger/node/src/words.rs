//! Reading the command line: `--name value`, `--name=value`, `--name` alone, and words without a name.

use std::net::SocketAddr;
use std::time::Duration;

use process::shell::listen_address;

/// Goes through words.
pub(crate) struct Words<'a> {
    rest: std::slice::Iter<'a, String>,
    inline: Option<String>,
    name: String,
}

impl<'a> Words<'a> {
    pub(crate) fn new(words: &'a [String]) -> Self {
        Self { rest: words.iter(), inline: None, name: String::new() }
    }

    /// The next name, or word without one.
    pub(crate) fn next_word(&mut self) -> Option<String> {
        let word = self.rest.next()?;
        let (name, inline) = match word.split_once('=') {
            Some((name, value)) if name.starts_with("--") => (name, Some(value.to_owned())),
            _ => (word.as_str(), None),
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

    /// A time as `150ms`, `2s` or `500us`.
    pub(crate) fn duration(&mut self) -> Result<Duration, String> {
        let value = self.text()?;
        let name = &self.name;
        duration(&value).ok_or_else(|| {
            format!("{name} takes a time as 150ms, 2s or 500us, and `{value}` is none")
        })
    }

    pub(crate) fn address(&mut self) -> Result<SocketAddr, String> {
        listen_address(&self.text()?)
    }

    pub(crate) fn unknown(&self) -> String {
        format!("there is no option `{}`; see --help", self.name)
    }
}

/// A whole number with its unit.
fn duration(text: &str) -> Option<Duration> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let number: u64 = number.parse().ok()?;
    Some(match unit {
        "us" => Duration::from_micros(number),
        "ms" => Duration::from_millis(number),
        "s" => Duration::from_secs(number),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Claim: names with values in both forms, words alone and times are read; a missing value and a wrong time say so.
    #[test]
    fn forms() {
        let given = ["--a", "1", "--b=2ms", "word", "--c"].map(str::to_owned);
        let mut words = Words::new(&given);
        assert_eq!((words.next_word().as_deref(), words.number()), (Some("--a"), Ok(1)));
        assert_eq!(words.next_word().as_deref(), Some("--b"));
        assert_eq!(words.duration(), Ok(Duration::from_millis(2)));
        assert_eq!(words.next_word().as_deref(), Some("word"));
        assert_eq!(words.next_word().as_deref(), Some("--c"));
        assert!(words.text().unwrap_err().contains("--c needs a value"));
        assert_eq!(duration("3"), None);
        assert_eq!(duration("ms"), None);
        assert_eq!(duration("500us"), Some(Duration::from_micros(500)));
    }
}
