//! Whose turn it is: what was run least recently comes first. Kept in the cache folder, which survives where a checkout
//! does not; on a fresh machine all are equal and the alphabet decides.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// When each of a kind of things was run last, by name: seconds after the Unix epoch.
pub struct Turns {
    file: PathBuf,
    last: BTreeMap<String, u64>,
}

impl Turns {
    /// Of one kind: `fuzz`, `soak`.
    pub fn of(kind: &str) -> Self {
        Self::in_folder(&kept(), kind)
    }

    fn in_folder(folder: &Path, kind: &str) -> Self {
        let file = folder.join(format!("{kind}-turns"));
        let text = std::fs::read_to_string(&file).unwrap_or_default();
        let line = |line: &str| {
            let (seconds, name) = line.split_once(' ')?;
            Some((name.to_owned(), seconds.parse().ok()?))
        };
        Self { file, last: text.lines().filter_map(line).collect() }
    }

    /// Names, those that were run least recently first.
    pub fn in_order<'a>(&self, names: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
        let mut names: Vec<&str> = names.into_iter().collect();
        names.sort_by_key(|name| (self.last.get(*name).copied().unwrap_or(0), *name));
        names
    }

    /// Has had its turn just now.
    pub fn had(&mut self, name: &str) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |since| since.as_secs());
        self.last.insert(name.to_owned(), now);
        let lines: String =
            self.last.iter().map(|(name, seconds)| format!("{seconds} {name}\n")).collect();
        // Where it cannot be kept the alphabet decides again.
        if let Some(folder) = self.file.parent() {
            let _ = std::fs::create_dir_all(folder);
        }
        let _ = std::fs::write(&self.file, lines);
    }
}

/// What the suite keeps from one run to the next, checkouts apart.
pub fn kept() -> PathBuf {
    cache().join("suite")
}

/// Where `assay doctor --install` puts programs, by the same rule.
fn cache() -> PathBuf {
    let folder = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    match (folder("ASSAY_CACHE"), folder("XDG_CACHE_HOME")) {
        (Some(own), _) => PathBuf::from(own),
        (None, Some(caches)) => PathBuf::from(caches).join("assay"),
        (None, None) => {
            PathBuf::from(folder("HOME").unwrap_or_else(|| "/tmp".into())).join(".cache/assay")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Claim: what has had its turn goes behind what has not, and that is known to the next run; a file that cannot be read
    /// means that nobody had one.
    #[test]
    fn least_recently_first() {
        let folder = std::env::temp_dir().join(format!("assay-turns-{}", std::process::id()));
        let mut turns = Turns::in_folder(&folder, "toy");
        assert_eq!(turns.in_order(["b", "a", "c"]), ["a", "b", "c"]);
        turns.had("a");
        let turns = Turns::in_folder(&folder, "toy");
        assert_eq!(turns.in_order(["b", "a", "c"]), ["b", "c", "a"]);
        std::fs::write(folder.join("toy-turns"), [0xff, 0xfe]).unwrap();
        assert_eq!(Turns::in_folder(&folder, "toy").in_order(["b", "a"]), ["a", "b"]);
        std::fs::remove_dir_all(folder).unwrap();
    }
}
