//! Marks that arrived on one worker and belong to another: an observer connection sees the transactions of all.
//! The stamp travels with the mark, so that the way costs no accuracy.

use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};

use super::receive::Found;

/// Marks under way to one worker.
const INBOX_MAX: usize = 1 << 14;
/// Marks that wait for a full inbox: a worker that is behind by this many has stopped, and the trial with it.
const OUTBOX_MAX: usize = 1 << 21;

/// One worker's end of the ways to the others.
pub(crate) struct Routes {
    to: Vec<SyncSender<Found>>,
    inbox: Receiver<Found>,
    outbox: VecDeque<(u32, Found)>,
    /// The outbox was full: marks were lost, and the trial does not hold.
    pub has_lost: bool,
}

impl Routes {
    /// The ends for `workers` workers.
    pub(crate) fn between(workers: u32) -> Vec<Self> {
        let (to, inboxes): (Vec<_>, Vec<_>) = (0..workers).map(|_| sync_channel(INBOX_MAX)).unzip();
        let ends = inboxes.into_iter();
        ends.map(|inbox| Self { to: to.clone(), inbox, outbox: VecDeque::new(), has_lost: false })
            .collect()
    }

    pub(super) fn send(&mut self, owner: u32, found: Found) {
        self.outbox.push_back((owner, found));
        self.push_on();
        if self.outbox.len() > OUTBOX_MAX {
            self.has_lost = true;
            self.outbox.clear();
        }
    }

    /// Sends what waited for room.
    pub(super) fn push_on(&mut self) {
        while let Some((owner, found)) = self.outbox.pop_front() {
            match self.to[owner as usize].try_send(found) {
                Ok(()) => {}
                Err(TrySendError::Full(found)) => {
                    self.outbox.push_front((owner, found));
                    break;
                }
                // That worker has ended with everything that it owned.
                Err(TrySendError::Disconnected(_)) => {}
            }
        }
    }

    pub(super) fn take(&mut self) -> Option<Found> {
        self.inbox.try_recv().ok()
    }

    pub(super) fn is_idle(&self) -> bool {
        self.outbox.is_empty()
    }
}
