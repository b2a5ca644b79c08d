//! What clients have submitted: first it waits to become a part of an entry, then for the entry to be decided.

use std::collections::VecDeque;

use process::Connection;
use replicated::Value;

/// What may wait to be proposed; more is refused as busy.
const WAITING_BYTES_MAX: usize = 64 << 20;

/// An entry of the log ends with the group that reaches this.
pub(crate) const ENTRY_BYTES: usize = 1 << 20;

/// Who waits for a group.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked {
    pub(super) connection: Connection,
    pub(super) number: u64,
}

/// An entry as it is being put together.
#[derive(Debug, Default)]
struct Open {
    /// Groups, each behind its length.
    bytes: Vec<u8>,
    asked: Vec<Asked>,
}

/// Submissions of all connections, in the order in which they came.
#[derive(Debug, Default)]
pub(super) struct Submissions {
    /// What waits, as the entries that it will be; all but the last have their length.
    waiting: VecDeque<Open>,
    waiting_bytes: usize,
    /// Entries that were proposed and not decided, with who waits for each group.
    proposed: VecDeque<(u64, Vec<Asked>)>,
    next_id: u64,
    spare: Vec<Vec<Asked>>,
}

impl Submissions {
    /// Adds a group; `false`: too much waits.
    pub(super) fn push(&mut self, asked: Asked, group: &[u8]) -> bool {
        if self.waiting_bytes + group.len() > WAITING_BYTES_MAX {
            return false;
        }
        let length = u32::try_from(group.len()).expect("a request is shorter");
        if self.waiting.back().is_none_or(|open| open.bytes.len() >= ENTRY_BYTES) {
            let asked = self.spare.pop().unwrap_or_default();
            self.waiting.push_back(Open { bytes: Value::buffer(4 + group.len()), asked });
        }
        let open = self.waiting.back_mut().expect("there is one now");
        make_room(&mut open.bytes, 4 + group.len());
        open.bytes.extend_from_slice(&length.to_le_bytes());
        open.bytes.extend_from_slice(group);
        open.asked.push(asked);
        self.waiting_bytes += 4 + group.len();
        true
    }

    /// How long the next entry would be; none where nothing waits.
    pub(super) fn next_bytes(&self) -> Option<usize> {
        self.waiting.front().map(|open| open.bytes.len())
    }

    /// Makes an entry of what waits: `make` is given its id and its bytes.
    pub(super) fn propose(&mut self, make: impl FnOnce(u64, Value)) {
        let Some(Open { bytes, asked }) = self.waiting.pop_front() else { return };
        self.waiting_bytes -= bytes.len();
        self.next_id += 1;
        self.proposed.push_back((self.next_id, asked));
        // What was put together has room for more, and the log keeps its entries for long.
        make(self.next_id, Value::from(&bytes[..]));
        Value::give_back(bytes);
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
        self.waiting_bytes = 0;
        self.waiting.drain(..).flat_map(|open| open.asked)
    }

    /// Those whose entries were proposed and whose fate is not known any more.
    pub(super) fn give_up_proposed(&mut self) -> impl Iterator<Item = Asked> + '_ {
        self.proposed.drain(..).flat_map(|(_, asked)| asked)
    }
}

/// Room for `more` bytes, in memory of values that were: twice as much each time, as a vector would.
fn make_room(bytes: &mut Vec<u8>, more: usize) {
    if bytes.capacity() - bytes.len() < more {
        let mut larger = Value::buffer((bytes.len() + more).max(2 * bytes.len()));
        larger.extend_from_slice(bytes);
        Value::give_back(std::mem::replace(bytes, larger));
    }
}
