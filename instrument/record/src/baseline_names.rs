//! Names that users give to runs: `assay mark FOLDER NAME`. Several runs may bear one name: then they are one baseline,
//! which shows how runs of the same system differ.
//!
//! A name is no part of the measurement: no report is made of it, and no checksum covers it.

use crate::error::RecordError;
use crate::folder::RunFolder;

const FILE: &str = "baseline-names.txt";
/// The most names of one run.
const NAMES_MAX: usize = 64;
/// The longest name.
const CHARS_MAX: usize = 64;

impl RunFolder {
    /// The run's baseline names, in the order in which they were given; a file that cannot be read holds none.
    #[must_use]
    pub fn baseline_names(&self) -> Vec<String> {
        let text = self.text(FILE).unwrap_or_default();
        let names = text.lines().filter(|line| is_name(line)).take(NAMES_MAX);
        names.map(str::to_owned).collect()
    }

    /// Gives the run a name, or takes it away.
    ///
    /// # Errors
    /// When it is no name, the run has too many, or the file cannot be written.
    pub fn set_baseline_name(&self, name: &str, is_borne: bool) -> Result<(), RecordError> {
        if !is_name(name) {
            return Err(RecordError::Name { name: name.to_owned() });
        }
        let mut names = self.baseline_names();
        names.retain(|known| known != name);
        if is_borne {
            if names.len() >= NAMES_MAX {
                let full = std::io::Error::other(format!("it has {NAMES_MAX} names already"));
                return Err(RecordError::writing(&self.path().join(FILE), full));
            }
            names.push(name.to_owned());
        }
        let text: String = names.iter().map(|name| format!("{name}\n")).collect();
        self.write_text(FILE, &text)
    }
}

/// A name is a word: letters, digits, `-`, `_`, `.` and `+`, beginning with a letter or a digit.
fn is_name(text: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '+');
    text.chars().next().is_some_and(|c| c.is_ascii_alphanumeric())
        && text.len() <= CHARS_MAX
        && text.chars().all(fits)
}

#[cfg(test)]
mod tests {
    use clock::WallTime;

    use super::*;

    /// Claim: names are kept in their order, each once, until they are taken away; what is no word is refused, and a
    /// damaged file holds no name that is none.
    #[test]
    fn names_of_a_run() {
        let place = tempfile::tempdir().unwrap();
        let now = WallTime::from_unix_ns(1_767_225_600_000_000_000);
        let run = RunFolder::create(place.path(), "a", now).unwrap();
        assert_eq!(run.baseline_names(), Vec::<String>::new());
        for name in ["v1.2", "main", "v1.2"] {
            run.set_baseline_name(name, true).unwrap();
        }
        assert_eq!(run.baseline_names(), ["main", "v1.2"]);
        run.set_baseline_name("main", false).unwrap();
        assert_eq!(run.baseline_names(), ["v1.2"]);
        for wrong in ["", "../x", "a b", "-x", "x\n", &"x".repeat(65)] {
            assert!(run.set_baseline_name(wrong, true).is_err(), "{wrong:?}");
        }
        std::fs::write(run.path().join("baseline-names.txt"), "ok\n../../etc\n\u{0}\nfine\n")
            .unwrap();
        assert_eq!(run.baseline_names(), ["ok", "fine"]);
    }
}
