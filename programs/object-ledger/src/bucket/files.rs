//! Objects as files: `DATA/BUCKET/KEY`, what is being written in `DATA/.new`.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use clock::WallTime;

use super::listing::{Asked, Listed, xml};
use crate::data::{Domain, hash, hex};

/// What is being written lies here; no name begins with a dot.
const NEW: &str = ".new";

/// Whether a part of a name may be part of a path.
pub(super) fn is_name(part: &str) -> bool {
    let is_plain = |c: u8| c.is_ascii_alphanumeric() || b"-_=.".contains(&c);
    !part.is_empty() && !part.starts_with('.') && part.bytes().all(is_plain)
}

/// An entity tag: it changes when the bytes do.
pub(super) fn e_tag(bytes: &[u8]) -> String {
    format!("\"{}\"", hex(&hash(Domain::Whole, &[bytes])[..16]))
}

/// An object.
pub(super) struct Kept {
    pub(super) bytes: Vec<u8>,
    /// When it was written, as HTTP says it.
    pub(super) modified: String,
}

/// What became of a write.
pub(super) enum Put {
    Done,
    IsThere,
}

/// The folder.
pub(super) struct Files {
    data: PathBuf,
    written: AtomicU64,
}

impl Files {
    /// What a crash left half written is removed.
    pub(super) fn open(data: &Path) -> io::Result<Self> {
        let new = data.join(NEW);
        match fs::remove_dir_all(&new) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            _ => fs::create_dir_all(&new)?,
        }
        Ok(Self { data: data.to_owned(), written: AtomicU64::new(0) })
    }

    /// Writes an object: whole, durable, then in place.
    pub(super) fn put(&self, name: &str, bytes: &[u8], is_new: bool) -> io::Result<Put> {
        let path = self.data.join(name);
        let beside = self.data.join(NEW).join(self.written.fetch_add(1, Relaxed).to_string());
        let mut file = File::create_new(&beside)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        let folder = path.parent().expect("a name has a folder");
        self.make_folder(folder)?;
        if is_new {
            // A link fails where there is one already, a renaming does not.
            let linked = fs::hard_link(&beside, &path);
            fs::remove_file(&beside)?;
            match linked {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => return Ok(Put::IsThere),
                linked => linked?,
            }
        } else {
            fs::rename(&beside, &path)?;
        }
        File::open(folder)?.sync_all()?;
        Ok(Put::Done)
    }

    /// Loses an object.
    pub(super) fn forget(&self, name: &str) -> io::Result<()> {
        match fs::remove_file(self.data.join(name)) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    /// Makes a folder that is durable, with those above it.
    fn make_folder(&self, folder: &Path) -> io::Result<()> {
        if folder.is_dir() {
            return Ok(());
        }
        let above = folder.parent().expect("it is below the data");
        self.make_folder(above)?;
        match fs::create_dir(folder) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            made => made?,
        }
        File::open(above)?.sync_all()
    }

    /// Reads an object.
    pub(super) fn get(&self, name: &str) -> io::Result<Option<Kept>> {
        let path = self.data.join(name);
        match fs::read(&path) {
            Ok(bytes) => {
                let seconds = fs::metadata(&path)?.mtime();
                Ok(Some(Kept { bytes, modified: http_date(seconds) }))
            }
            Err(error)
                if matches!(
                    error.kind(),
                    ErrorKind::NotFound | ErrorKind::IsADirectory | ErrorKind::NotADirectory
                ) =>
            {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// What a bucket has, in the order of names.
    pub(super) fn list(&self, bucket: &str, asked: &Asked) -> io::Result<String> {
        let root = self.data.join(bucket);
        // Only the folder that the prefix is in is walked.
        let folder = asked.prefix.rsplit_once('/').map_or("", |(folder, _)| folder);
        let mut names = Vec::new();
        walk(&root.join(folder), &root, &mut names)?;
        names.retain(|name| name.starts_with(&asked.prefix) && *name > asked.after);
        names.sort_unstable();
        let is_more = names.len() > asked.count_max;
        names.truncate(asked.count_max);
        let listed = names.into_iter().map(|name| {
            let about = fs::metadata(root.join(&name))?;
            let modified = WallTime::from_unix_ns(about.mtime() * 1_000_000_000).rfc3339();
            Ok(Listed { name, bytes: about.len(), modified })
        });
        Ok(xml(bucket, &listed.collect::<io::Result<Vec<Listed>>>()?, is_more))
    }
}

fn walk(folder: &Path, root: &Path, names: &mut Vec<String>) -> io::Result<()> {
    let entries = match fs::read_dir(folder) {
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return Ok(());
        }
        entries => entries?,
    };
    for entry in entries {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            walk(&entry.path(), root, names)?;
        } else if let Ok(name) = entry.path().strip_prefix(root) {
            names.push(name.to_string_lossy().into_owned());
        }
    }
    Ok(())
}

/// `Sun, 22 Nov 2026 22:00:00 GMT` (RFC 9110, section 5.6.7).
fn http_date(unix_seconds: i64) -> String {
    const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let compact = WallTime::from_unix_ns(unix_seconds * 1_000_000_000).compact();
    let number = |at: std::ops::Range<usize>| compact[at].parse::<usize>().unwrap_or(1);
    let weekday = usize::try_from(unix_seconds.div_euclid(86_400).rem_euclid(7)).unwrap_or(0);
    let month = MONTHS[(number(4..6) - 1) % 12];
    format!(
        "{}, {} {month} {} {}:{}:{} GMT",
        DAYS[weekday],
        &compact[6..8],
        &compact[..4],
        &compact[9..11],
        &compact[11..13],
        &compact[13..15]
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Claim: times are those of `date -u -R`, leap days included.
    #[test]
    fn dates() {
        assert_eq!(http_date(0), "Thu, 01 Jan 1970 00:00:00 GMT");
        assert_eq!(http_date(951_782_400), "Tue, 29 Feb 2000 00:00:00 GMT");
        assert_eq!(http_date(1_795_243_832), "Sat, 21 Nov 2026 06:50:32 GMT");
    }

    /// Claim: no name leads out of the folder, nor to what is being written.
    #[test]
    fn names() {
        assert!(["a", "00ff", "a-b_c=d.e"].iter().all(|it| is_name(it)));
        assert!(["", ".", "..", ".new", "a/b", "a%2f", "ä", "a b"].iter().all(|it| !is_name(it)));
    }

    /// Claim: an object is there whole, is replaced, is not replaced where that was asked, and half-written ones are gone
    /// after a start; lists are in order, behind a name, and say when there is more.
    #[test]
    fn kept_and_listed() {
        let folder = tempfile::tempdir().unwrap();
        let files = Files::open(folder.path()).unwrap();
        let put = |name: &str, is_new| files.put(name, name.as_bytes(), is_new).unwrap();
        for number in [3, 1, 2] {
            assert!(matches!(put(&format!("b/sequence/{number}"), false), Put::Done));
        }
        assert!(matches!(put("b/sequence/1", true), Put::IsThere));
        assert!(matches!(put("b/sequence/1", false), Put::Done));
        assert!(matches!(put("b/other/1", true), Put::Done));
        assert_eq!(files.get("b/sequence/1").unwrap().unwrap().bytes, b"b/sequence/1");
        for none in ["b/sequence/4", "b/sequence", "b/sequence/1/x"] {
            assert!(files.get(none).unwrap().is_none(), "{none}");
        }
        let list = |after: &str, count_max| {
            let (prefix, after) = ("sequence/".to_owned(), after.to_owned());
            files.list("b", &Asked { prefix, after, count_max }).unwrap()
        };
        let all = list("", 10);
        let places: Vec<_> =
            (1..4).map(|it| all.find(&format!("sequence/{it}<")).unwrap()).collect();
        assert!(places.is_sorted() && !all.contains("other") && all.contains("<IsTruncated>false"));
        let some = list("sequence/1", 1);
        assert!(some.contains("sequence/2<") && !some.contains("sequence/3<"), "{some}");
        assert!(
            some.contains("<NextContinuationToken>sequence/2</NextContinuationToken>"),
            "{some}"
        );
        std::fs::write(folder.path().join(".new/77"), "half").unwrap();
        Files::open(folder.path()).unwrap();
        assert!(!folder.path().join(".new/77").exists());
    }
}
