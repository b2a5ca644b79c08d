//! A trial that is being recorded, read by another process than the one that writes it: each look gives what is new since the
//! last. Files are opened to be read only, and no byte is read twice. The end of a write that is under way is not there yet.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;

use clock::WallTime;
use model::Row;
use model::facts::TrialFacts;
use model::fault::FaultEvent;

use crate::disk;
use crate::error::RecordError;
use crate::frames::{FRAME_HEADER_BYTES, HEADER_BYTES, checksum};
use crate::line_log;
use crate::row_log;
use crate::trial::{FACTS, FAULTS, ROW_LOG, TrialFolder};

/// Bytes that are read at once.
const PIECE_BYTES: usize = 64 << 10;
/// The most bytes of one file that a look reads: some 700,000 rows. The rest is for the next look.
const LOOK_BYTES_MAX: usize = 8 << 20;
/// The longest line of an event of a fault.
const LINE_BYTES_MAX: usize = 1 << 20;
/// The most parts of a load.
const PARTS_MAX: u32 = 255;

/// A trial while it is recorded.
#[derive(Debug)]
pub struct TrialFollower {
    folder: TrialFolder,
    own: RowTail,
    /// Logs of parts that agents carry out, by part. Where there are any, their rows come into the trial's own log at the end.
    parts: BTreeMap<u32, RowTail>,
    has_rows: bool,
    faults: Tail,
    /// Lines of faults so far, the first of which is the head.
    fault_lines: usize,
    /// The marks of the facts that were read last: length, time of change and number of the file.
    facts: Option<(u64, i64, i64, u64)>,
}

impl TrialFolder {
    /// Follows the trial from its beginning.
    #[must_use]
    pub fn follow(&self) -> TrialFollower {
        TrialFollower {
            folder: self.clone(),
            own: RowTail::of(self.file(ROW_LOG)),
            parts: BTreeMap::new(),
            has_rows: false,
            faults: Tail::of(self.file(FAULTS)),
            fault_lines: 0,
            facts: None,
        }
    }
}

impl TrialFollower {
    /// Gives the rows that are new. Says whether there may be more already.
    ///
    /// # Errors
    /// When a log cannot be read, or holds what no writer leaves.
    pub fn rows(&mut self, take: &mut dyn FnMut(&[Row])) -> Result<bool, RecordError> {
        if !self.has_rows {
            self.find_parts()?;
        }
        let has_rows = &mut self.has_rows;
        let mut give = |rows: &[Row]| {
            *has_rows = true;
            take(rows);
        };
        if self.parts.is_empty() {
            return self.own.look(&mut give);
        }
        let mut more = false;
        for part in self.parts.values_mut() {
            more |= part.look(&mut give)?;
        }
        Ok(more)
    }

    /// When rows were written last, as far as they were read; none: there is no log yet.
    #[must_use]
    pub fn last_write(&self) -> Option<WallTime> {
        let tails = self.parts.values().chain([&self.own]).map(|it| &it.tail);
        let written = |tail: &Tail| {
            let found = tail.file.as_ref()?.metadata().ok()?;
            Some(found.mtime().saturating_mul(1_000_000_000).saturating_add(found.mtime_nsec()))
        };
        tails.filter_map(written).max().map(WallTime::from_unix_ns)
    }

    /// Logs of parts, all of which are there before the first of their rows.
    fn find_parts(&mut self) -> Result<(), RecordError> {
        let path = self.folder.path();
        let entries = match fs::read_dir(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            entries => entries.map_err(|error| RecordError::reading(path, error))?,
        };
        for entry in entries.flatten() {
            let name = entry.file_name();
            let Some(part) = name.to_str().and_then(part_of) else { continue };
            self.parts.entry(part).or_insert_with(|| RowTail::of(entry.path()));
        }
        Ok(())
    }

    /// Gives the events of faults that are new, in the order written.
    ///
    /// # Errors
    /// When the file cannot be read, is damaged or is of another version.
    pub fn faults(&mut self) -> Result<Vec<FaultEvent>, RecordError> {
        let mut events = Vec::new();
        while self.faults.read()? > 0 {
            while let Some(end) = self.faults.waiting.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.faults.waiting.drain(..=end).collect();
                let line = String::from_utf8_lossy(&line[..end]);
                self.fault_lines += 1;
                match self.fault_lines {
                    1 => line_log::head::<FaultEvent>(&self.faults.path, &line)?,
                    number => events.push(line_log::event(&self.faults.path, number, &line)?),
                }
            }
            if self.faults.waiting.len() > LINE_BYTES_MAX {
                let why = format!("a line of it is longer than {LINE_BYTES_MAX} bytes");
                return Err(RecordError::damaged(&self.faults.path, why));
            }
        }
        Ok(events)
    }

    /// Whether there were facts at the last look.
    #[must_use]
    pub const fn has_facts(&self) -> bool {
        self.facts.is_some()
    }

    /// Whether the trial's folder is there: one that is run anew goes first.
    #[must_use]
    pub fn is_there(&self) -> bool {
        self.folder.path().is_dir()
    }

    /// Gives the trial's facts if they are others than at the last look.
    ///
    /// # Errors
    /// Those of [`TrialFolder::facts`], but for a file that is not there yet.
    pub fn facts(&mut self) -> Result<Option<TrialFacts>, RecordError> {
        let path = self.folder.file(FACTS);
        let found = match fs::symlink_metadata(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                self.facts = None;
                return Ok(None);
            }
            found => found.map_err(|error| RecordError::reading(&path, error))?,
        };
        let now = (found.len(), found.mtime(), found.mtime_nsec(), found.ino());
        if self.facts == Some(now) {
            return Ok(None);
        }
        let facts = self.folder.facts()?;
        self.facts = Some(now);
        Ok(Some(facts))
    }
}

/// `rows-7.log` → 7.
fn part_of(name: &str) -> Option<u32> {
    let part = name.strip_prefix("rows-")?.strip_suffix(".log")?.parse().ok()?;
    (part < PARTS_MAX && name == format!("rows-{part}.log")).then_some(part)
}

/// A file that grows.
#[derive(Debug)]
struct Tail {
    path: PathBuf,
    file: Option<File>,
    /// Bytes that were read and are not a whole thing yet.
    waiting: Vec<u8>,
}

impl Tail {
    const fn of(path: PathBuf) -> Self {
        Self { path, file: None, waiting: Vec::new() }
    }

    /// Reads the next bytes, and says how many. A file that is not there yet has none.
    fn read(&mut self) -> Result<usize, RecordError> {
        let file = match &mut self.file {
            Some(file) => file,
            none => match disk::open(&self.path) {
                Err(RecordError::Missing { .. }) => return Ok(0),
                file => none.insert(file?),
            },
        };
        let before = self.waiting.len();
        self.waiting.resize(before + PIECE_BYTES, 0);
        let read = loop {
            match file.read(&mut self.waiting[before..]) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                read => break read,
            }
        };
        self.waiting.truncate(before + *read.as_ref().unwrap_or(&0));
        read.map_err(|error| RecordError::reading(&self.path, error))
    }
}

/// A row log that grows.
#[derive(Debug)]
struct RowTail {
    tail: Tail,
    /// Whether its rows have a receive lag; not known before its header was read.
    has_lag: Option<bool>,
    rows: Vec<Row>,
}

impl RowTail {
    const fn of(path: PathBuf) -> Self {
        Self { tail: Tail::of(path), has_lag: None, rows: Vec::new() }
    }

    fn look(&mut self, take: &mut dyn FnMut(&[Row])) -> Result<bool, RecordError> {
        let mut left = LOOK_BYTES_MAX;
        while left > 0 {
            let read = self.tail.read()?;
            if read == 0 {
                return Ok(false);
            }
            left = left.saturating_sub(read);
            self.frames(take)?;
        }
        Ok(true)
    }

    /// Takes whole frames from what waits.
    fn frames(&mut self, take: &mut dyn FnMut(&[Row])) -> Result<(), RecordError> {
        let Tail { path, waiting, .. } = &mut self.tail;
        let mut at = 0;
        let has_lag = match self.has_lag {
            Some(has_lag) => has_lag,
            None => {
                let Some(header) = waiting.first_chunk::<HEADER_BYTES>() else { return Ok(()) };
                let version = row_log::FORMAT.version_of(header).map_err(|it| it.about(path))?;
                at = HEADER_BYTES;
                *self.has_lag.insert(version >= row_log::VERSION_WITH_LAG)
            }
        };
        while let Some(header) = waiting[at..].first_chunk::<FRAME_HEADER_BYTES>() {
            let damaged =
                || RecordError::damaged(path, "a frame of it holds what no writer leaves");
            let (length, count) = row_log::FORMAT.sizes(header).ok_or_else(damaged)?;
            let Some(payload) = waiting[at + FRAME_HEADER_BYTES..].get(..length) else { break };
            let is_whole = checksum(&header[..8], payload).to_le_bytes() == header[8..];
            if !is_whole || !row_log::decode(payload, count, &mut self.rows, has_lag) {
                return Err(damaged());
            }
            take(&self.rows);
            at += FRAME_HEADER_BYTES + length;
        }
        waiting.drain(..at);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::fs::OpenOptions;
    use std::io::Write as _;

    use model::fault::{FaultDetail, FaultPhase};

    use super::*;
    use crate::RunFolder;

    fn place() -> (tempfile::TempDir, TrialFolder) {
        let folder = tempfile::tempdir().expect("a folder");
        let run = RunFolder::create(folder.path(), "followed", WallTime::default()).expect("a run");
        let trial = run.trial("default", 0).expect("a trial");
        (folder, trial)
    }

    fn rows(from: u64, count: u64) -> Vec<Row> {
        let row = |tx: u64| {
            let due = i64::try_from(tx).expect("small") * 1_000;
            Row { tx, due, ready: due, sent: due + 7, end: due + 500, ..Row::EMPTY }
        };
        (from..from + count).map(row).collect()
    }

    fn seen(follower: &mut TrialFollower) -> Vec<Row> {
        let mut all = Vec::new();
        while follower.rows(&mut |rows| all.extend_from_slice(rows)).expect("they can be read") {}
        all
    }

    /// Claim: each look gives the rows that were flushed since the last, once, in their order, from before there is a log to
    /// after it was removed; a frame of which a part is written is not there yet, at whatever byte it is torn.
    #[test]
    fn a_log_that_grows() {
        let (_folder, trial) = place();
        let mut follower = trial.follow();
        assert_eq!(seen(&mut follower), []);
        assert_eq!(follower.last_write(), None);
        let mut log = trial.row_log().expect("a log");
        assert_eq!(seen(&mut follower), []);
        for from in [0, 20_000, 20_001] {
            let some = rows(from, if from == 0 { 20_000 } else { 1 });
            log.append(&some).expect("it is kept");
            log.flush().expect("it is kept");
            assert_eq!(seen(&mut follower), some);
            assert_eq!(seen(&mut follower), []);
        }
        let ago = WallTime::now().unix_ns() - follower.last_write().expect("rows").unix_ns();
        assert!((-1_000_000_000..600_000_000_000).contains(&ago), "{ago} ns");
        log.append(&rows(30_000, 5)).expect("it is kept");
        log.close().expect("it is kept");
        std::fs::remove_file(trial.row_log_path()).expect("sealed");
        assert_eq!(seen(&mut follower), rows(30_000, 5));
    }

    /// Claim: see [`a_log_that_grows`], byte for byte; and an end that stays torn, as that of a run that died, is never a row.
    #[test]
    fn a_torn_end() {
        let (_folder, trial) = place();
        let mut log = trial.row_log().expect("a log");
        for from in [0, 3] {
            log.append(&rows(from, 3)).expect("it is kept");
            log.flush().expect("it is kept");
        }
        drop(log);
        let path = trial.row_log_path();
        let whole = std::fs::read(&path).expect("a log");
        std::fs::write(&path, []).expect("a log");
        let mut file = OpenOptions::new().append(true).open(&path).expect("a log");
        let mut follower = trial.follow();
        let mut all = Vec::new();
        for byte in &whole[..whole.len() - 1] {
            file.write_all(&[*byte]).expect("a byte more");
            all.extend(seen(&mut follower));
        }
        assert_eq!(all, rows(0, 3), "the last frame lacks a byte");
        file.write_all(&whole[whole.len() - 1..]).expect("a byte more");
        assert_eq!(seen(&mut follower), rows(3, 3));
    }

    /// Claim: bytes that no writer leaves are an error that names the file, and no rows.
    #[test]
    fn damage_is_told() {
        for at in [3, 20, 40] {
            let (_folder, trial) = place();
            let mut log = trial.row_log().expect("a log");
            log.append(&rows(0, 9)).expect("it is kept");
            log.close().expect("it is kept");
            let mut bytes = std::fs::read(trial.row_log_path()).expect("a log");
            bytes[at] ^= 0x11;
            std::fs::write(trial.row_log_path(), bytes).expect("damage");
            let said = trial.follow().rows(&mut |_| panic!("no row")).expect_err("damage");
            assert!(said.to_string().contains("rows.log"), "{said}");
        }
    }

    /// Claim: of a load that agents carry out the rows of all parts are given as they arrive, and not once more when they come
    /// into the trial's own log.
    #[test]
    fn several_part_logs() {
        let (_folder, trial) = place();
        let mut follower = trial.follow();
        let mut own = trial.row_log().expect("a log");
        assert_eq!(seen(&mut follower), []);
        let mut parts = [0, 1].map(|part| trial.part_log(part).expect("a log of a part"));
        assert_eq!(seen(&mut follower), []);
        let arrives = |from: u64| {
            let (_elsewhere, agent) = place();
            let mut log = agent.row_log().expect("a log");
            log.append(&rows(from, 4)).expect("it is kept");
            log.close().expect("it is kept");
            std::fs::read(agent.row_log_path()).expect("a log")
        };
        parts[1].append(&arrives(100)).expect("it is kept");
        assert_eq!(seen(&mut follower), rows(100, 4));
        parts[0].append(&arrives(0)).expect("it is kept");
        assert_eq!(seen(&mut follower), rows(0, 4));
        own.append(&rows(0, 4)).expect("it is kept");
        own.append(&rows(100, 4)).expect("it is kept");
        own.close().expect("it is kept");
        trial.remove_parts(2).expect("they were merged");
        assert_eq!(seen(&mut follower), []);
        assert_eq!(seen(&mut trial.follow()).len(), 8, "who comes later reads the trial's own log");
    }

    /// Claim: events of faults are given once, a line that is half written not before its end.
    #[test]
    fn faults_as_they_happen() {
        let (_folder, trial) = place();
        let mut follower = trial.follow();
        assert_eq!(follower.faults().expect("no file is no fault"), []);
        let event = |fault| FaultEvent {
            fault,
            cycle: 0,
            phase: FaultPhase::Start,
            kind: "pause".into(),
            node: "a".into(),
            planned_ns: 1,
            at_ns: 2,
            detail: FaultDetail::Nothing,
        };
        let mut log = trial.fault_log().expect("a log");
        for fault in 0..3 {
            log.append(&event(fault));
            assert_eq!(follower.faults().expect("events"), [event(fault)]);
        }
        assert_eq!(follower.faults().expect("events"), []);
        let path = trial.path().join("faults.ndjson");
        let mut file = OpenOptions::new().append(true).open(path).expect("a log");
        file.write_all(b"{\"fault\":9").expect("a part");
        assert_eq!(follower.faults().expect("events"), []);
        file.write_all(b"}\n").expect("the rest");
        let said = follower.faults().expect_err("no event").to_string();
        assert!(said.contains("faults.ndjson"), "{said}");
    }

    /// Claim: facts are given when they are there and when they change, and not otherwise.
    #[test]
    fn facts_that_change() {
        let (_folder, trial) = place();
        let mut follower = trial.follow();
        assert!(follower.facts().expect("none yet").is_none());
        let mut facts = TrialFacts::default();
        for complete in [false, true] {
            facts.complete = complete;
            trial.write_facts(&facts).expect("they are kept");
            let read = follower.facts().expect("they can be read").expect("they are new");
            assert_eq!(read.complete, complete);
            assert!(follower.facts().expect("they can be read").is_none() && follower.has_facts());
        }
        std::fs::remove_dir_all(trial.path()).expect("it is run anew");
        assert!(follower.facts().expect("none").is_none() && !follower.has_facts());
        assert!(!follower.is_there());
    }
}
