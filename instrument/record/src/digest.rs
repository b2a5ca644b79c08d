//! seal.sha256: a SHA-256 digest of every file of a finished run, in the form that `sha256sum -c` reads, so that a copy can
//! be held against what was measured, and one signature over it vouches for all.
//!
//! The reports are not among them: they are made anew of the others at any time.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read as _;
use std::path::Path;

use ring::digest::{Context, SHA256};

use crate::disk;
use crate::error::RecordError;
use crate::folder::RunFolder;

/// The name of the file.
pub const DIGESTS: &str = "seal.sha256";
/// The name of its signature, in minisign's format.
pub const SIGNATURE: &str = "seal.sha256.minisig";
/// Names at the top of a run folder that are not sealed.
const LEFT_OUT: [&str; 9] = [
    DIGESTS,
    SIGNATURE,
    // The socket of a run that was killed.
    "control",
    "report.html",
    "report.md",
    "comparison.html",
    "comparison.md",
    "comparison.json",
    "baseline-names.txt",
];
/// How deep folders are looked through.
const DEPTH_MAX: usize = 32;
/// The most files of a run.
const FILES_MAX: usize = 100_000;

type Digests = BTreeMap<String, String>;

/// How a run folder's files stand to its seal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FilesSeal {
    /// There is none: the run was cut short, or made by a version that had none.
    Absent,
    /// All files are as they were.
    Holds {
        /// How many.
        files: usize,
    },
    /// Not all are.
    Broken {
        /// Each that is not, and how: `plan.toml: changed`.
        why: Vec<String>,
    },
}

impl RunFolder {
    /// Writes seal.sha256 over all files. To be called when nothing of the run is written any more.
    ///
    /// # Errors
    /// When a file cannot be read, or has a name that no list of digests can hold.
    pub fn seal_files(&self) -> Result<usize, RecordError> {
        let (found, odd) = self.digests()?;
        if let Some(name) = odd.into_iter().next() {
            return Err(RecordError::Name { name });
        }
        let lines: String =
            found.iter().map(|(name, digest)| format!("{digest}  {name}\n")).collect();
        self.write_text(DIGESTS, &lines)?;
        Ok(found.len())
    }

    /// Compares all files with seal.sha256.
    ///
    /// # Errors
    /// When a file cannot be read, or seal.sha256 is none.
    pub fn check_seal(&self) -> Result<FilesSeal, RecordError> {
        let text = match self.text(DIGESTS) {
            Err(RecordError::Missing { .. }) => return Ok(FilesSeal::Absent),
            text => text?,
        };
        let sealed = parse(&text).ok_or_else(|| {
            RecordError::damaged(&self.path().join(DIGESTS), "it is no list of SHA-256 digests")
        })?;
        let (found, odd) = self.digests()?;
        let mut why: Vec<String> =
            odd.into_iter().map(|name| format!("{name}: no regular file")).collect();
        for (name, digest) in &sealed {
            match found.get(name) {
                Some(same) if same == digest => {}
                Some(_) => why.push(format!("{name}: changed")),
                None => why.push(format!("{name}: missing")),
            }
        }
        let added = found.keys().filter(|name| !sealed.contains_key(*name));
        why.extend(added.map(|name| format!("{name}: added")));
        if why.is_empty() {
            return Ok(FilesSeal::Holds { files: sealed.len() });
        }
        Ok(FilesSeal::Broken { why })
    }

    /// The digest of each file by its path, and what is no file or has no name for a list.
    fn digests(&self) -> Result<(Digests, Vec<String>), RecordError> {
        let (mut found, mut odd) = (BTreeMap::new(), Vec::new());
        walk(self.path(), "", DEPTH_MAX, &mut |name, is_file| {
            if name.contains('\\') || name.chars().any(char::is_control) || !is_file {
                odd.push(name);
                return Ok(());
            }
            let digest = digest(&self.path().join(&name))?;
            found.insert(name, digest);
            if found.len() > FILES_MAX {
                let why = format!("it holds more than {FILES_MAX} files");
                return Err(RecordError::damaged(self.path(), why));
            }
            Ok(())
        })?;
        Ok((found, odd))
    }
}

/// Passes everything but folders under a folder, by its path, and whether it is a regular file with a name in UTF-8.
fn walk(
    folder: &Path,
    before: &str,
    depth: usize,
    f: &mut dyn FnMut(String, bool) -> Result<(), RecordError>,
) -> Result<(), RecordError> {
    let entries = fs::read_dir(folder).map_err(|error| RecordError::reading(folder, error))?;
    for entry in entries {
        let entry = entry.map_err(|error| RecordError::reading(folder, error))?;
        let kind = entry.file_type().map_err(|error| RecordError::reading(folder, error))?;
        let own = entry.file_name();
        let name = format!("{before}{}", own.to_string_lossy());
        if kind.is_dir() && depth > 0 {
            walk(&entry.path(), &format!("{name}/"), depth - 1, f)?;
        } else if !LEFT_OUT.contains(&name.as_str()) {
            f(name, kind.is_file() && own.to_str().is_some())?;
        }
    }
    Ok(())
}

fn digest(path: &Path) -> Result<String, RecordError> {
    let mut file = disk::open(path)?;
    let mut hasher = Context::new(&SHA256);
    let mut buffer = vec![0; 256 << 10];
    loop {
        match file.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => hasher.update(&buffer[..count]),
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(RecordError::reading(path, error)),
        }
    }
    Ok(hasher.finish().as_ref().iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Lines of a digest, two blanks and a path.
fn parse(text: &str) -> Option<Digests> {
    let mut all = BTreeMap::new();
    for line in text.lines() {
        let (digest, name) = line.split_once("  ")?;
        let is_digest = digest.len() == 64 && digest.bytes().all(|byte| byte.is_ascii_hexdigit());
        if !is_digest || name.is_empty() || all.len() >= FILES_MAX {
            return None;
        }
        all.insert(name.to_owned(), digest.to_ascii_lowercase());
    }
    (!all.is_empty()).then_some(all)
}
