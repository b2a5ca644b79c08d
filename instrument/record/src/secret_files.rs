//! Secrets in files that others write into a run folder: logs and data of nodes. They are looked for, and overwritten
//! where they stand, so that lengths and places stay. It must never be called while a process still writes there.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _};
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use model::secret::{self, Secrets};

/// Bytes of a file that are looked through at a time.
const CHUNK_BYTES: usize = 1 << 20;
/// The longest file that is looked at as a key: a few certificates beside it included.
const KEY_BYTES_MAX: u64 = 64 << 10;
/// How deep folders are looked through.
const DEPTH_MAX: usize = 32;

/// Overwrites the secrets that are known with `*` in every file under a folder. Links are not followed. Gives how many
/// files had any.
///
/// # Errors
/// The first file that could not be looked through; the others are all the same.
pub fn mask_secrets(folder: &Path) -> io::Result<u64> {
    if !secret::is_any() {
        return Ok(0);
    }
    secret::with_known(|secrets| {
        let (mut count, mut first_error) = (0, None);
        each_file(folder, &mut |path| match mask_file(path, secrets) {
            Ok(had_any) => count += u64::from(had_any),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => first_error = first_error.take().or(Some(error)),
        });
        first_error.map_or(Ok(count), Err)
    })
}

fn mask_file(path: &Path, secrets: &Secrets) -> io::Result<bool> {
    let mut out: Option<File> = None;
    find_secrets(&File::open(path)?, secrets, |range| {
        let file = match &out {
            Some(file) => file,
            None => out.insert(OpenOptions::new().write(true).open(path)?),
        };
        let length = usize::try_from(range.end - range.start).expect("as long as what is held");
        file.write_all_at(&vec![b'*'; length], range.start)
    })?;
    Ok(out.is_some())
}

/// Removes every file under a folder that holds a private key: in PEM, or in the JSON of a CometBFT node. Keys that a trial
/// made are of no use after it, and a folder that is given away must not carry one. Gives how many there were.
///
/// # Errors
/// The first file that could not be looked at or removed; the others are all the same.
pub fn remove_private_keys(folder: &Path) -> io::Result<u64> {
    let (mut count, mut first_error) = (0, None);
    each_file(folder, &mut |path| match holds_private_key(path) {
        Ok(false) => {}
        Ok(true) => match fs::remove_file(path) {
            Ok(()) => count += 1,
            Err(error) => first_error = first_error.take().or(Some(error)),
        },
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => first_error = first_error.take().or(Some(error)),
    });
    first_error.map_or(Ok(count), Err)
}

/// Whether a file is one of a key: a short one that says so.
fn holds_private_key(path: &Path) -> io::Result<bool> {
    let file = File::open(path)?;
    if file.metadata()?.len() > KEY_BYTES_MAX {
        return Ok(false);
    }
    let mut bytes = Vec::new();
    file.take(KEY_BYTES_MAX).read_to_end(&mut bytes)?;
    let has = |words: &[u8]| bytes.windows(words.len()).any(|part| part == words);
    Ok((has(b"-----BEGIN ") && has(b"PRIVATE KEY-----")) || has(b"\"priv_key\""))
}

/// Passes each place of a secret in a file, in bounded memory however long it is. One near the edge of what is held at
/// a time may be passed twice.
///
/// # Errors
/// When the file cannot be read, or what `f` gives.
pub fn find_secrets(
    file: &File,
    secrets: &Secrets,
    mut f: impl FnMut(Range<u64>) -> io::Result<()>,
) -> io::Result<()> {
    let overlap = secrets.form_bytes_max();
    let mut buffer = vec![0; CHUNK_BYTES + overlap];
    let (mut at, mut kept) = (0_u64, 0_usize);
    loop {
        let count = match file.read_at(&mut buffer[kept..], at + kept as u64) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            read => read?,
        };
        if count == 0 {
            return Ok(());
        }
        let length = kept + count;
        for range in secrets.find(&buffer[..length]) {
            f(at + range.start as u64..at + range.end as u64)?;
        }
        // What may be the beginning of one is looked at again with what follows it.
        kept = length.min(overlap.saturating_sub(1));
        buffer.copy_within(length - kept..length, 0);
        at += (length - kept) as u64;
    }
}

/// Passes every file under a folder. Links are not followed, and what cannot be read is left out.
pub fn each_file(folder: &Path, f: &mut dyn FnMut(&Path)) {
    walk(folder, DEPTH_MAX, f);
}

fn walk(folder: &Path, depth: usize, f: &mut dyn FnMut(&Path)) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        match entry.file_type() {
            Ok(kind) if kind.is_dir() && depth > 0 => walk(&entry.path(), depth - 1, f),
            Ok(kind) if kind.is_file() => f(&entry.path()),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::io::Write as _;

    use super::*;

    /// Claim: what stands across the pieces in which a file is read is found.
    #[test]
    fn across_pieces() {
        let mut secrets = Secrets::default();
        secrets.add("hunter2-hunter2");
        let mut file = tempfile::tempfile().unwrap();
        let mut bytes = vec![b'.'; 3 * CHUNK_BYTES];
        let places = [0, CHUNK_BYTES - 7, 2 * CHUNK_BYTES + 40, 3 * CHUNK_BYTES - 15];
        for at in places {
            bytes[at..at + 15].copy_from_slice(b"hunter2-hunter2");
        }
        file.write_all(&bytes).unwrap();
        let mut found = BTreeSet::new();
        let find = find_secrets(&file, &secrets, |range| {
            assert_eq!(range.end - range.start, 15);
            found.insert(range.start);
            Ok(())
        });
        find.unwrap();
        assert_eq!(found, places.iter().map(|at| *at as u64).collect());
    }

    /// Claim: files of keys go, whatever they are called; certificates, logs that speak of keys and long files stay.
    #[test]
    fn private_keys_go() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir_all(at("tls")).unwrap();
        let pem = "-----BEGIN PRIVATE KEY-----\nMC4CAQAw\n-----END PRIVATE KEY-----\n";
        fs::write(at("tls/node.key"), pem).unwrap();
        fs::write(at("x"), r#"{"address": "A", "priv_key": {"value": "eA=="}}"#).unwrap();
        fs::write(at("node.pem"), "-----BEGIN CERTIFICATE-----\nMC4CAQAw\n").unwrap();
        fs::write(at("kv0.log"), "reading a PRIVATE KEY----- of nobody").unwrap();
        assert_eq!(remove_private_keys(folder.path()).unwrap(), 2);
        assert!(!at("tls/node.key").exists() && !at("x").exists());
        assert!(at("node.pem").exists() && at("kv0.log").exists());
    }

    /// Claim: a file loses its secrets and keeps its length, and one without any is not touched.
    #[test]
    fn masked_in_place() {
        let folder = tempfile::tempdir().unwrap();
        let (log, other) = (folder.path().join("a/b/n.log"), folder.path().join("other"));
        fs::create_dir_all(log.parent().unwrap()).unwrap();
        fs::write(&log, "before mask-me-9f3a after").unwrap();
        fs::write(&other, "nothing").unwrap();
        secret::taint("mask-me-9f3a");
        assert_eq!(mask_secrets(folder.path()).unwrap(), 1);
        assert_eq!(fs::read_to_string(&log).unwrap(), "before ************ after");
        assert_eq!(fs::read_to_string(&other).unwrap(), "nothing");
    }
}
