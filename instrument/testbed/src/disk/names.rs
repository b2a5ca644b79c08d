//! Changes of names that are not durable yet, in the order made.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};

/// The most that wait: then all are written, as a journal is when it is full.
const CHANGES_MAX: usize = 1_000_000;

/// One change: created, linked, removed, renamed. All of its steps become durable, or none.
#[derive(Debug)]
pub(super) struct Change {
    pub(super) steps: Vec<Step>,
}

/// One name in one folder, and what it means from now on.
#[derive(Debug)]
pub(super) struct Step {
    pub(super) folder: u64,
    pub(super) name: OsString,
    /// `None`: there is no such name any more.
    pub(super) to: Option<u64>,
}

impl Step {
    pub(super) fn add(folder: u64, name: &OsStr, inode: u64) -> Self {
        Self { folder, name: name.to_owned(), to: Some(inode) }
    }

    pub(super) fn remove(folder: u64, name: &OsStr) -> Self {
        Self { folder, name: name.to_owned(), to: None }
    }
}

/// What waits.
#[derive(Debug, Default)]
pub(super) struct Journal {
    waiting: Vec<Change>,
}

impl Journal {
    pub(super) fn push(&mut self, change: Change) {
        self.waiting.push(change);
    }

    pub(super) const fn is_full(&self) -> bool {
        self.waiting.len() >= CHANGES_MAX
    }

    pub(super) fn take(&mut self) -> Vec<Change> {
        std::mem::take(&mut self.waiting)
    }

    /// Takes the changes of one folder's names, with those before them that they rest on: a name that was moved here
    /// from another folder was created there first.
    pub(super) fn take_for(&mut self, folder: u64) -> Vec<Change> {
        let mut folders = BTreeSet::from([folder]);
        let is_meant: Vec<bool> = self
            .waiting
            .iter()
            .rev()
            .map(|change| {
                let is_meant = change.steps.iter().any(|step| folders.contains(&step.folder));
                if is_meant {
                    folders.extend(change.steps.iter().map(|step| step.folder));
                }
                is_meant
            })
            .collect();
        let mut marks = is_meant.into_iter().rev();
        self.waiting.extract_if(.., |_| marks.next().expect("one mark a change")).collect()
    }
}
