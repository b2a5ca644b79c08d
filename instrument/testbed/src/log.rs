//! A node's log: one file that the node itself writes to, so that a chatty node costs the instrument nothing.
//!
//! Standard output and standard error share it, in the order written. It is bounded: past
//! [`LOG_BYTES_MAX`] the newer half is dropped and a line says so; the start, where a node says what it is, stays.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::Path;

/// The most that a node's log may hold. A node writes on between two looks at it (500 ms), so it can be passed
/// by what the node writes in that time.
pub(crate) const LOG_BYTES_MAX: u64 = 64 << 20;

const TAIL_LINES_MAX: usize = 20;
const TAIL_BYTES_MAX: u64 = 4096;

/// Opens the log for appending. Appending matters: two descriptors share the file, and it may be cut.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    OpenOptions::new().append(true).create(true).open(path)
}

/// Cuts a log that has passed `bytes_max` to half of that. Gives whether it did.
pub(crate) fn bound(path: &Path, bytes_max: u64) -> io::Result<bool> {
    let bytes = std::fs::metadata(path)?.len();
    if bytes <= bytes_max {
        return Ok(false);
    }
    let mut file = OpenOptions::new().append(true).open(path)?;
    file.set_len(bytes_max / 2)?;
    writeln!(
        file,
        "\n[testbed: this log had {bytes} bytes; what stood after the first {} was dropped]",
        bytes_max / 2
    )?;
    Ok(true)
}

/// The last lines, for an error message.
pub(crate) fn tail(path: &Path, from: u64) -> String {
    let read = || -> io::Result<Vec<u8>> {
        let mut file = File::open(path)?;
        let end = file.seek(SeekFrom::End(0))?;
        file.seek(SeekFrom::Start(end.saturating_sub(TAIL_BYTES_MAX).max(from)))?;
        let mut bytes = Vec::new();
        file.take(TAIL_BYTES_MAX).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    let bytes = read().unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    lines[lines.len().saturating_sub(TAIL_LINES_MAX)..].join("\n")
}

/// Looks for the first whole line whose first word is a given one, in what is appended while it looks.
pub(crate) struct LineSearch {
    file: File,
    unread: Vec<u8>,
}

/// A line longer than this is not one that a node announces itself with.
const LINE_BYTES_MAX: usize = 64 << 10;

impl LineSearch {
    pub(crate) fn new(path: &Path, from: u64) -> io::Result<Self> {
        let mut file = File::open(path)?;
        file.seek(SeekFrom::Start(from))?;
        Ok(Self { file, unread: Vec::new() })
    }

    /// What follows the word in that line, if the line has been written by now.
    pub(crate) fn find(&mut self, word: &str) -> io::Result<Option<String>> {
        let mut chunk = [0_u8; 8192];
        loop {
            while let Some(end) = self.unread.iter().position(|&byte| byte == b'\n') {
                let line: Vec<u8> = self.unread.drain(..=end).collect();
                let line = String::from_utf8_lossy(&line[..end]).into_owned();
                let rest = line.trim_end().strip_prefix(word);
                if let Some(rest) = rest.filter(|r| r.is_empty() || r.starts_with(' ')) {
                    return Ok(Some(rest.trim_start().to_owned()));
                }
            }
            if self.unread.len() > LINE_BYTES_MAX {
                self.unread.clear();
            }
            let count = self.file.read(&mut chunk)?;
            if count == 0 {
                return Ok(None);
            }
            self.unread.extend_from_slice(&chunk[..count]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Claim: a log past its bound keeps its start, says what was dropped, and can be appended to.
    #[test]
    fn a_log_is_bounded() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("n.log");
        let mut file = open(&path).unwrap();
        file.write_all(b"first line\n").unwrap();
        assert!(!bound(&path, 64).unwrap());
        file.write_all(&[b'x'; 100]).unwrap();
        assert!(bound(&path, 64).unwrap());
        file.write_all(b"last line\n").unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.starts_with("first line\n") && text.ends_with("last line\n"), "{text}");
        assert!(text.contains("111 bytes") && !text.contains('\0'), "{text}");
    }

    /// Claim: a line is found only once it is whole, and only after the given place.
    #[test]
    fn a_line_is_found_when_it_is_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("n.log");
        let mut file = open(&path).unwrap();
        file.write_all(b"ready old=1\nreadying\nrea").unwrap();
        let mut search = LineSearch::new(&path, 12).unwrap();
        assert_eq!(search.find("ready").unwrap(), None);
        file.write_all(b"dy addr=127.0.0.1:1").unwrap();
        assert_eq!(search.find("ready").unwrap(), None);
        file.write_all(b" pid=2\r\nmore").unwrap();
        assert_eq!(search.find("ready").unwrap().as_deref(), Some("addr=127.0.0.1:1 pid=2"));
        assert_eq!(tail(&path, 12), "readying\nready addr=127.0.0.1:1 pid=2\nmore");
    }
}
