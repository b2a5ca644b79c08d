//! What passed before on this target folder, and with which inputs: what neither its program nor its inputs have changed
//! since is not run again.
//!
//! Only what passed is kept. A stamp of other inputs, or a file that cannot be read, means that everything is run.

use std::collections::BTreeMap;
use std::collections::hash_map::DefaultHasher;
use std::hash::Hasher as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A digest of several byte strings, each with its length. It guards against forgetting, not against an adversary.
pub fn digest<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> u64 {
    let mut hasher = DefaultHasher::new();
    for part in parts {
        hasher.write_usize(part.len());
        hasher.write(part);
    }
    hasher.finish()
}

/// Stamps by name.
pub struct Stamps {
    file: PathBuf,
    passed: BTreeMap<String, u64>,
    /// With `--all` nothing is skipped; what passes is still kept.
    are_ignored: bool,
}

impl Stamps {
    /// Those of this checkout's target folder.
    pub fn of(root: &Path, are_ignored: bool) -> Self {
        let file = root.join("target/suite-passed");
        let text = std::fs::read_to_string(&file).unwrap_or_default();
        let stamp = |line: &str| {
            let (key, name) = line.split_once(' ')?;
            Some((name.to_owned(), u64::from_str_radix(key, 16).ok()?))
        };
        Self { file, passed: text.lines().filter_map(stamp).collect(), are_ignored }
    }

    /// Whether it passed with these inputs.
    pub fn holds(&self, name: &str, key: u64) -> bool {
        !self.are_ignored && self.passed.get(name) == Some(&key)
    }

    /// Whether it ever passed here.
    pub fn knows(&self, name: &str) -> bool {
        self.passed.contains_key(name)
    }

    /// Keeps that it passed.
    pub fn passed(&mut self, name: &str, key: u64) {
        self.passed.insert(name.to_owned(), key);
        let line = |(name, key): (&String, &u64)| format!("{key:016x} {name}\n");
        let lines: String = self.passed.iter().map(line).collect();
        // Where it cannot be kept the next run runs more.
        let _ = std::fs::write(&self.file, lines);
    }
}

/// The files of a checkout, as they stand, by path, each with the digest of its content.
pub struct Sources(BTreeMap<String, u64>);

impl Sources {
    /// What git knows of, and what is new and not ignored.
    pub fn read(root: &Path) -> Result<Self, String> {
        let mut files = BTreeMap::new();
        for name in files_of(root)? {
            if let Ok(content) = std::fs::read(root.join(&name)) {
                files.insert(name, digest([content.as_slice()]));
            }
        }
        Ok(Self(files))
    }

    /// The digest of the files that are wanted.
    pub fn key(&self, is_wanted: impl Fn(&str) -> bool) -> u64 {
        let wanted = self.0.iter().filter(|(path, _)| is_wanted(path));
        let lines: Vec<String> =
            wanted.map(|(path, digest)| format!("{digest:016x} {path}")).collect();
        digest(lines.iter().map(String::as_bytes))
    }

    /// The digest of everything below these folders.
    pub fn key_below(&self, folders: &[String]) -> u64 {
        self.key(|path| folders.iter().any(|folder| Path::new(path).starts_with(folder)))
    }
}

/// Paths of what git knows of in a checkout, and of what is new and not ignored.
pub fn files_of(root: &Path) -> Result<Vec<String>, String> {
    let listed = Command::new("git")
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .current_dir(root)
        .output()
        .map_err(|error| format!("running git: {error}"))?;
    let text = String::from_utf8_lossy(&listed.stdout);
    Ok(text.split('\0').filter(|name| !name.is_empty()).map(str::to_owned).collect())
}

/// Files that the newest commit, or what is not committed yet, changed.
pub fn changed(root: &Path) -> Vec<String> {
    let said =
        Command::new("git").args(["diff", "--name-only", "HEAD~1"]).current_dir(root).output();
    let text = said.map(|said| String::from_utf8_lossy(&said.stdout).into_owned());
    text.unwrap_or_default().lines().map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Claim: what passed holds for the same inputs only, is known to the next run, and is ignored where all is to be run.
    #[test]
    fn stamps_hold_for_their_inputs() {
        let folder = std::env::temp_dir().join(format!("assay-stamps-{}", std::process::id()));
        std::fs::create_dir_all(folder.join("target")).unwrap();
        Stamps::of(&folder, true).passed("base/wire: wire", 7);
        let stamps = Stamps::of(&folder, false);
        assert!(stamps.holds("base/wire: wire", 7) && stamps.knows("base/wire: wire"));
        assert!(!stamps.holds("base/wire: wire", 8) && !stamps.holds("other", 7));
        assert!(!Stamps::of(&folder, true).holds("base/wire: wire", 7));
        std::fs::write(folder.join("target/suite-passed"), [0xff, 0xfe]).unwrap();
        assert!(!Stamps::of(&folder, false).knows("base/wire: wire"));
        std::fs::remove_dir_all(folder).unwrap();
    }

    /// Claim: a key changes with a wanted file's content and its path, and with no other file.
    #[test]
    fn keys_follow_what_is_wanted() {
        let sources = |files: &[(&str, u64)]| {
            Sources(files.iter().map(|(path, digest)| ((*path).to_owned(), *digest)).collect())
        };
        let key = |files: &[(&str, u64)]| sources(files).key_below(&["a".to_owned()]);
        let before = key(&[("a/x", 1), ("b", 2)]);
        assert_eq!(before, key(&[("a/x", 1), ("b", 3), ("ab", 4)]));
        assert_ne!(before, key(&[("a/x", 2), ("b", 2)]));
        assert_ne!(before, key(&[("a/y", 1), ("b", 2)]));
    }
}
