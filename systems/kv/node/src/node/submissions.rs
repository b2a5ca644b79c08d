//! What clients have submitted: first it waits to become a part of an entry, then for the entry to be decided.

use std::collections::VecDeque;

use process::Connection;

/// What may wait to be proposed; more is refused as busy.
const WAITING_BYTES_MAX: usize = 64 << 20;

/// An entry of the log ends with the group that reaches this.
const ENTRY_BYTES: usize = 1 << 20;

/// Who waits for a group.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked {
    pub(super) connection: Connection,
    pub(super) number: u64,
}

/// Submissions of all connections, in the order in which they came.
#[derive(Debug, Default)]
pub(super) struct Submissions {
    /// Groups that wait, each behind its length; those before `start` have left.
    bytes: Vec<u8>,
    start: usize,
    waiting: VecDeque<(Asked, usize)>,
    /// Entries that were proposed and not decided, with who waits for each group.
    proposed: VecDeque<(u64, Vec<Asked>)>,
    next_id: u64,
    spare: Vec<Vec<Asked>>,
}

impl Submissions {
    /// Adds a group; `false`: too much waits.
    pub(super) fn push(&mut self, asked: Asked, group: &[u8]) -> bool {
        if self.bytes.len() - self.start + group.len() > WAITING_BYTES_MAX {
            return false;
        }
        let length = u32::try_from(group.len()).expect("a request is shorter");
        self.bytes.extend_from_slice(&length.to_le_bytes());
        self.bytes.extend_from_slice(group);
        self.waiting.push_back((asked, 4 + group.len()));
        true
    }

    /// How long the next entry would be; none where nothing waits.
    pub(super) fn next_bytes(&self) -> Option<usize> {
        let mut length = 0;
        for (_, bytes) in &self.waiting {
            length += bytes;
            if length >= ENTRY_BYTES {
                break;
            }
        }
        Some(length).filter(|length| *length > 0)
    }

    /// Makes an entry of what waits: `make` is given its id and its bytes.
    pub(super) fn propose(&mut self, make: impl FnOnce(u64, &[u8])) {
        let Some(length) = self.next_bytes() else { return };
        let mut asked = self.spare.pop().unwrap_or_default();
        let mut taken = 0;
        while taken < length {
            let (next, bytes) = self.waiting.pop_front().expect("as many as were counted");
            asked.push(next);
            taken += bytes;
        }
        self.next_id += 1;
        self.proposed.push_back((self.next_id, asked));
        make(self.next_id, &self.bytes[self.start..self.start + length]);
        self.start += length;
        if self.waiting.is_empty() {
            self.bytes.clear();
            self.start = 0;
        } else if self.start > WAITING_BYTES_MAX {
            self.bytes.drain(..self.start);
            self.start = 0;
        }
    }

    /// Who waits for the groups of an entry that was decided or refused.
    pub(super) fn take(&mut self, id: u64) -> Option<Vec<Asked>> {
        let place = self.proposed.iter().position(|(at, _)| *at == id)?;
        self.proposed.remove(place).map(|(_, asked)| asked)
    }

    /// Takes a list back.
    pub(super) fn recycle(&mut self, mut asked: Vec<Asked>) {
        asked.clear();
        if self.spare.len() < 64 {
            self.spare.push(asked);
        }
    }

    /// Those that have not been proposed: nothing of theirs was or will be carried out.
    pub(super) fn give_up_waiting(&mut self) -> impl Iterator<Item = Asked> + '_ {
        self.bytes.clear();
        self.start = 0;
        self.waiting.drain(..).map(|(asked, _)| asked)
    }

    /// Those whose entries were proposed and whose fate is not known any more.
    pub(super) fn give_up_proposed(&mut self) -> impl Iterator<Item = Asked> + '_ {
        self.proposed.drain(..).flat_map(|(_, asked)| asked)
    }
}
