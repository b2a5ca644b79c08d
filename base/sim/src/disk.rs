//! A disk: what is durable, what is being written, and what waits for that. One write at a time, and all that
//! waits goes into the next one, as in the real shell.

use std::ops::RangeInclusive;
use std::time::Duration;

use process::store::format::{self, Header};
use process::{Stored, StoredLog};

use crate::random::Random;

/// What a disk writes whole or not at all.
const SECTOR_BYTES: usize = 512;

/// How long a write with its sync takes.
#[derive(Clone, Debug)]
pub struct DiskTimes {
    /// Of a disk that is well.
    pub sync: RangeInclusive<Duration>,
    /// Of a disk that is slow.
    pub slow: RangeInclusive<Duration>,
}

impl Default for DiskTimes {
    /// Some 0.1 to 0.3 ms, as a local disk; 5 to 50 ms when slow.
    fn default() -> Self {
        Self {
            sync: Duration::from_micros(100)..=Duration::from_micros(300),
            slow: Duration::from_millis(5)..=Duration::from_millis(50),
        }
    }
}

/// Records with their numbers.
#[derive(Debug, Default)]
struct Batch {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Batch {
    fn push(&mut self, record: &[u8]) {
        self.bytes.extend_from_slice(record);
        self.ends.push(self.bytes.len());
    }

    fn len(&self) -> usize {
        self.ends.len()
    }

    fn records(&self) -> impl Iterator<Item = &[u8]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, end)| &self.bytes[start..*end])
    }

    fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }

    /// How many of its records a reader finds after a loss of power in the middle of writing them, the first of which has
    /// the number `first`: all sectors up to some byte are there, or any of them, as disks write in any order.
    fn torn(&self, first: u64, random: &mut Random) -> usize {
        let header = Header { sequence: 1, first, stamp: 1, next_stamp: 2 };
        let mut image = Vec::new();
        format::write_header(&header, &mut image);
        let behind_header = image.len();
        for (number, record) in (first..).zip(self.records()) {
            format::write_record(header.stamp, number, first, record, &mut image);
        }
        if random.once_in(2) {
            image.truncate(behind_header + random.place(image.len() - behind_header + 1));
        } else {
            for sector in image[behind_header..].chunks_mut(SECTOR_BYTES) {
                if random.once_in(4) {
                    sector.fill(0);
                }
            }
        }
        let found = format::scan(&image, &header);
        found.expect("nothing of it was durable, so nothing durable is missing").records.len()
    }
}

#[derive(Debug, Default)]
struct Log {
    durable: Durable,
    writing: Batch,
    waiting: Batch,
    is_writing: bool,
}

/// Durable records from the first that was not trimmed.
#[derive(Clone, Debug, Default)]
struct Durable {
    first: u64,
    records: std::collections::VecDeque<Vec<u8>>,
}

impl Durable {
    fn next(&self) -> u64 {
        self.first + u64::try_from(self.records.len()).expect("fits")
    }

    fn trim(&mut self, below: u64) {
        while self.first < below && self.records.pop_front().is_some() {
            self.first += 1;
        }
    }
}

#[derive(Debug, Default)]
struct Cell {
    durable: Option<Vec<u8>>,
    writing: Option<Vec<u8>>,
    waiting: Option<Vec<u8>>,
    /// Parts of what it is to hold next.
    parts: Vec<u8>,
    /// How many of them are not being written yet.
    parts_waiting: usize,
}

/// How the process that used the disk has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Loss {
    /// Killed: what had been given to the kernel is written in the end; what waited in the process is gone.
    Killed,
    /// Without power: what was not synced is there in part or not at all.
    Power,
}

/// What a crash found.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Crash {
    /// A write was under way.
    pub(crate) in_write: bool,
    /// Of it some records are there and the next one is torn.
    pub(crate) is_torn: bool,
    /// Records that are gone.
    pub(crate) records_lost: u64,
}

/// The disk of one machine.
#[derive(Debug)]
pub(crate) struct Disk {
    logs: Vec<Log>,
    cells: Vec<Cell>,
    pub(crate) is_full: bool,
    pub(crate) is_slow: bool,
}

impl Disk {
    pub(crate) fn new(logs: usize, cells: usize) -> Self {
        Self {
            logs: std::iter::repeat_with(Log::default).take(logs).collect(),
            cells: std::iter::repeat_with(Cell::default).take(cells).collect(),
            is_full: false,
            is_slow: false,
        }
    }

    pub(crate) fn append(&mut self, log: usize, record: &[u8]) {
        self.logs[log].waiting.push(record);
    }

    pub(crate) fn trim(&mut self, log: usize, below: u64) {
        self.logs[log].durable.trim(below);
    }

    pub(crate) fn replace(&mut self, cell: usize, content: Vec<u8>) {
        let cell = &mut self.cells[cell];
        let mut whole = std::mem::take(&mut cell.parts);
        whole.extend_from_slice(&content);
        cell.waiting = Some(whole);
    }

    pub(crate) fn extend(&mut self, cell: usize, part: &[u8]) {
        self.cells[cell].parts.extend_from_slice(part);
        self.cells[cell].parts_waiting += 1;
    }

    pub(crate) fn drop_parts(&mut self, cell: usize) {
        self.cells[cell].parts.clear();
    }

    /// At most so many bytes of what a cell holds.
    pub(crate) fn part(&self, cell: usize, offset: u64, bytes_max: usize) -> Vec<u8> {
        let held = self.cells[cell].durable.as_deref().unwrap_or_default();
        let start = usize::try_from(offset).unwrap_or(usize::MAX).min(held.len());
        held[start..held.len().min(start + bytes_max)].to_vec()
    }

    /// Cells with parts whose writing can begin, each as often as it has parts.
    pub(crate) fn begin_parts(&mut self, begun: &mut Vec<usize>) {
        if self.is_full {
            return;
        }
        for (index, cell) in self.cells.iter_mut().enumerate() {
            begun.extend(std::iter::repeat_n(index, std::mem::take(&mut cell.parts_waiting)));
        }
    }

    /// Logs whose next write can begin; they are writing from now on.
    pub(crate) fn begin_logs(&mut self, begun: &mut Vec<usize>) {
        if self.is_full {
            return;
        }
        for (index, log) in self.logs.iter_mut().enumerate() {
            if !log.is_writing && log.waiting.len() > 0 {
                log.is_writing = true;
                std::mem::swap(&mut log.waiting, &mut log.writing);
                begun.push(index);
            }
        }
    }

    /// Cells whose next write can begin; they are writing from now on.
    pub(crate) fn begin_cells(&mut self, begun: &mut Vec<usize>) {
        if self.is_full {
            return;
        }
        for (index, cell) in self.cells.iter_mut().enumerate() {
            if cell.writing.is_none() && cell.waiting.is_some() {
                cell.writing = cell.waiting.take();
                begun.push(index);
            }
        }
    }

    /// Whether something waits that a full disk does not take.
    pub(crate) fn is_stuck(&self) -> bool {
        let logs = self.logs.iter().any(|log| !log.is_writing && log.waiting.len() > 0);
        let waits = |cell: &Cell| {
            cell.parts_waiting > 0 || cell.writing.is_none() && cell.waiting.is_some()
        };
        let cells = self.cells.iter().any(waits);
        self.is_full && (logs || cells)
    }

    pub(crate) fn is_writing(&self) -> bool {
        self.logs.iter().any(|log| log.is_writing) || self.cells.iter().any(|c| c.writing.is_some())
    }

    /// A log's write has come to its end: gives the first number that is not durable.
    pub(crate) fn end_log(&mut self, log: usize) -> u64 {
        let log = &mut self.logs[log];
        log.durable.records.extend(log.writing.records().map(<[u8]>::to_vec));
        log.writing.clear();
        log.is_writing = false;
        log.durable.next()
    }

    /// A cell's write has come to its end.
    pub(crate) fn end_cell(&mut self, cell: usize) {
        let cell = &mut self.cells[cell];
        cell.durable = cell.writing.take();
    }

    /// The process has ended: what was under way is written, torn or lost.
    pub(crate) fn crash(&mut self, loss: Loss, random: &mut Random) -> Crash {
        let mut crash = Crash { in_write: self.is_writing(), ..Crash::default() };
        for log in &mut self.logs {
            let kept = match loss {
                Loss::Killed if log.is_writing => log.writing.len(),
                Loss::Power if log.is_writing => log.writing.torn(log.durable.next(), random),
                _ => 0,
            };
            let lost = log.writing.len() - kept + log.waiting.len();
            crash.records_lost += u64::try_from(lost).expect("fits");
            crash.is_torn |= loss == Loss::Power && log.is_writing && kept < log.writing.len();
            log.durable.records.extend(log.writing.records().take(kept).map(<[u8]>::to_vec));
            log.writing.clear();
            log.waiting.clear();
            log.is_writing = false;
        }
        for cell in &mut self.cells {
            let is_there = loss == Loss::Killed || random.once_in(2);
            if let Some(content) = cell.writing.take().filter(|_| is_there) {
                cell.durable = Some(content);
            }
            cell.waiting = None;
            cell.parts.clear();
            cell.parts_waiting = 0;
        }
        crash
    }

    /// Another disk, which holds what this one holds durably.
    pub(crate) fn copy(&self) -> Self {
        let log = |log: &Log| Log { durable: log.durable.clone(), ..Log::default() };
        let cell = |cell: &Cell| Cell { durable: cell.durable.clone(), ..Cell::default() };
        Self {
            logs: self.logs.iter().map(log).collect(),
            cells: self.cells.iter().map(cell).collect(),
            is_full: false,
            is_slow: false,
        }
    }

    /// Another disk takes its place, an empty one.
    pub(crate) fn lose(&mut self) {
        *self = Self {
            is_slow: self.is_slow,
            is_full: self.is_full,
            ..Self::new(self.logs.len(), self.cells.len())
        };
    }

    /// What a start finds.
    pub(crate) fn stored(&self) -> Stored {
        let logs = self.logs.iter().map(|log| {
            let mut stored = StoredLog::new(log.durable.first);
            for record in &log.durable.records {
                stored.push(record);
            }
            stored
        });
        Stored {
            logs: logs.collect(),
            cells: self.cells.iter().map(|cell| cell.durable.clone()).collect(),
        }
    }
}
