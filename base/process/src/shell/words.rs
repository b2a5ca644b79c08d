//! Reading what stands behind a program's name: `--name value`, `--name=value`, `--name` alone, and words without a name.

use std::net::SocketAddr;
use std::str::FromStr;
use std::time::Duration;

use super::listen_address;

/// Goes through words. Errors are for people: they name the option, and what it takes.
#[derive(Debug)]
pub struct Words<'a> {
    rest: std::slice::Iter<'a, String>,
    inline: Option<String>,
    name: String,
}

impl<'a> Words<'a> {
    /// Before the first of these words.
    #[must_use]
    pub fn new(words: &'a [String]) -> Self {
        Self { rest: words.iter(), inline: None, name: String::new() }
    }

    /// The next name, or word without one; `None` behind the last.
    pub fn next_word(&mut self) -> Option<String> {
        let word = self.rest.next()?;
        let (name, inline) = match word.split_once('=') {
            Some((name, value)) if name.starts_with("--") => (name, Some(value.to_owned())),
            _ => (word.as_str(), None),
        };
        self.inline = inline;
        name.clone_into(&mut self.name);
        Some(self.name.clone())
    }

    /// The word that was read last, as it was given.
    #[must_use]
    pub fn word(&self) -> String {
        match &self.inline {
            Some(value) => format!("{}={value}", self.name),
            None => self.name.clone(),
        }
    }

    /// The value of the name that was read last.
    ///
    /// # Errors
    /// When there is none.
    pub fn text(&mut self) -> Result<String, String> {
        let value = self.inline.take().or_else(|| self.rest.next().cloned());
        value.ok_or_else(|| format!("{} needs a value; see --help", self.name))
    }

    /// It as a number.
    ///
    /// # Errors
    /// When it is none, or one that does not fit.
    pub fn number<N: FromStr>(&mut self) -> Result<N, String> {
        let value = self.text()?;
        let name = &self.name;
        value
            .parse()
            .map_err(|_| format!("{name}: expected a whole number in range, got `{value}`"))
    }

    /// It as a whole number of milliseconds.
    ///
    /// # Errors
    /// As [`Words::number`].
    pub fn milliseconds(&mut self) -> Result<Duration, String> {
        self.number().map(Duration::from_millis)
    }

    /// It as a time with its unit: `150ms`, `2s` or `500us`.
    ///
    /// # Errors
    /// When it is none.
    pub fn duration(&mut self) -> Result<Duration, String> {
        let value = self.text()?;
        let name = &self.name;
        duration(&value).ok_or_else(|| {
            format!("{name}: expected a time such as 150ms, 2s or 500us, got `{value}`")
        })
    }

    /// It as an address to listen at, or to dial.
    ///
    /// # Errors
    /// As [`listen_address`].
    pub fn address(&mut self) -> Result<SocketAddr, String> {
        listen_address(&self.text()?).map_err(|why| format!("{}: {why}", self.name))
    }

    /// It as a number and an address: `1=127.0.0.1:4001`.
    ///
    /// # Errors
    /// When it is something else.
    pub fn numbered_address(&mut self) -> Result<(u8, SocketAddr), String> {
        let text = self.text()?;
        let parts = text.split_once('=').and_then(|(number, address)| {
            Some((number.parse().ok()?, listen_address(address).ok()?))
        });
        let name = &self.name;
        parts.ok_or_else(|| {
            format!("{name}: expected NUMBER=ADDRESS such as 1=127.0.0.1:4001, got `{text}`")
        })
    }

    /// It as one of some words.
    ///
    /// # Errors
    /// When it is none of them, with the list.
    pub fn one_of<T: Copy>(&mut self, list: &[(&str, T)]) -> Result<T, String> {
        let value = self.text()?;
        let found = list.iter().find(|(word, _)| *word == value).map(|(_, it)| *it);
        found.ok_or_else(|| {
            let words: Vec<&str> = list.iter().map(|(word, _)| *word).collect();
            format!("{}: expected one of {}, got `{value}`", self.name, words.join(", "))
        })
    }

    /// What is said of a name that there is not.
    #[must_use]
    pub fn unknown(&self) -> String {
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

    /// Claim: names with values in both forms, words alone and times are read; what is missing or wrong is said, with the name
    /// of the option.
    #[test]
    fn forms() {
        let given = ["--a", "1", "--b=2ms", "word=1", "--c", "1=127.0.0.1:4001", "--d=x", "--e"];
        let given = given.map(str::to_owned);
        let mut words = Words::new(&given);
        assert_eq!((words.next_word().as_deref(), words.number()), (Some("--a"), Ok(1)));
        assert_eq!(words.next_word().as_deref(), Some("--b"));
        assert_eq!(words.duration(), Ok(Duration::from_millis(2)));
        assert_eq!(words.next_word().as_deref(), Some("word=1"));
        assert_eq!(words.next_word().as_deref(), Some("--c"));
        let address = "127.0.0.1:4001".parse().expect("an address");
        assert_eq!(words.numbered_address(), Ok((1, address)));
        assert_eq!(words.next_word().as_deref(), Some("--d"));
        let error = words.one_of(&[("y", 1), ("z", 2)]).unwrap_err();
        assert_eq!(error, "--d: expected one of y, z, got `x`");
        assert_eq!(words.next_word().as_deref(), Some("--e"));
        assert!(words.text().unwrap_err().contains("--e needs a value"));
        assert_eq!(words.next_word(), None);
        assert_eq!(duration("3"), None);
        assert_eq!(duration("ms"), None);
        assert_eq!(duration("500us"), Some(Duration::from_micros(500)));
    }
}
