//! Everything that the engine's own kernel may do to its calls, in one list: rows stay whole and right under each.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use clock::Instant;
use model::Outcome;
use rustix::io::Errno;

use super::toy::{constant, count, plan};
use super::virtual_time::{system, try_load_of};
use crate::scripted::{Agenda, Call, Happening, Peer, Server, Trouble};

const MS: i64 = 1_000_000;

/// Answers are there after so long.
const DELAY: Duration = Duration::from_millis(3);

/// When what a short write left goes.
const AFTER: Duration = Duration::from_millis(2);

/// The list: a trouble, and how often, of the calls that it fits.
const TROUBLES: [(Trouble, u64); 8] = [
    (Trouble::NoSocket(Errno::NOBUFS), 2),
    (Trouble::NoSocket(Errno::MFILE), 2),
    (Trouble::ShortWrite { taken: 0, after: AFTER }, 3),
    (Trouble::ShortWrite { taken: 4, after: AFTER }, 3),
    (Trouble::ShortWrite { taken: 8, after: AFTER }, 1),
    (Trouble::Reset, 7),
    (Trouble::Interrupted, 2),
    (Trouble::FullRing, 1),
];

/// A server after whose kernel's own troubles answers come as ever.
struct Troubled {
    trouble: Trouble,
    every: u64,
    calls: u64,
    met: Arc<AtomicU64>,
    /// Bytes of requests that are not whole yet, by connection.
    unread: Vec<Vec<u8>>,
}

impl Server for Troubled {
    fn trouble(&mut self, _now: Instant, call: Call) -> Option<Trouble> {
        let fits = match self.trouble {
            Trouble::NoSocket(_) => call == Call::Connect,
            Trouble::ShortWrite { .. } | Trouble::Reset => matches!(call, Call::Send(_)),
            Trouble::Interrupted | Trouble::FullRing => call == Call::Wait,
        };
        self.calls += u64::from(fits);
        let meets = fits && self.calls.is_multiple_of(self.every);
        self.met.fetch_add(u64::from(meets), Ordering::Relaxed);
        meets.then_some(self.trouble)
    }

    fn step(&mut self, now: Instant, what: Happening<'_>, agenda: &mut Agenda) {
        let Happening::Bytes(peer, bytes) = what else { return };
        self.unread.resize_with(self.unread.len().max(peer.index() + 1), Vec::new);
        self.unread[peer.index()].extend_from_slice(bytes);
        while let Some(request) = self.request(peer) {
            let mut answer = [0; 9];
            answer[..8].copy_from_slice(&request[..8]);
            agenda.send(peer, now.plus(DELAY), &answer);
        }
    }
}

impl Troubled {
    /// The next whole request of a connection.
    fn request(&mut self, peer: Peer) -> Option<[u8; 9]> {
        let unread = &mut self.unread[peer.index()];
        let request = unread.first_chunk().copied()?;
        unread.drain(..9);
        Some(request)
    }
}

/// Claim: whatever the kernel does, each transaction that is due has one row, sent when it was due as far as a connection was
/// free, and its time holds what the trouble took: a short write its wait, an interrupted wait and a full queue nothing. A
/// reset ends the one that was sent as unknown, and no other.
#[test]
fn rows_stay_right() {
    for (trouble, every) in TROUBLES {
        let met = Arc::<AtomicU64>::default();
        let server =
            Troubled { trouble, every, calls: 0, met: Arc::clone(&met), unread: Vec::new() };
        let mut plan = plan(constant(1_000));
        (plan.load.connections, plan.load.connections_max) = (20, 20);
        let (facts, kept) = try_load_of(&plan, &system(), server).expect("the load begins");
        let met = met.load(Ordering::Relaxed);
        assert!(met >= 10, "{trouble:?}: met {met} times");
        let mut ids: Vec<u64> = kept.rows.iter().map(|row| row.tx).collect();
        ids.sort_unstable();
        assert_eq!(ids, (0..300).collect::<Vec<_>>(), "{trouble:?}");
        let resets = if trouble == Trouble::Reset { met as usize } else { 0 };
        assert_eq!(count(&kept.rows, Outcome::Unknown), resets, "{trouble:?}");
        assert_eq!(count(&kept.rows, Outcome::Committed), 300 - resets, "{trouble:?}");
        let worker = &facts.workers[0];
        assert_eq!(worker.connections.lost, resets as u64, "{trouble:?}");
        let sockets = if matches!(trouble, Trouble::NoSocket(_)) { met } else { 0 };
        assert_eq!(worker.connect_failures, sockets, "{trouble:?}");
        let mut late = 0;
        for row in &kept.rows {
            assert_eq!((row.due, row.sent), (row.due, row.due), "{trouble:?}");
            let took = row.end - row.sent;
            late += u64::from(took == 5 * MS);
            let is_right = match row.outcome {
                Outcome::Unknown => took == 0,
                _ => took == 3 * MS || took == 5 * MS,
            };
            assert!(is_right, "{trouble:?}: {row:?}");
        }
        let cut = if matches!(trouble, Trouble::ShortWrite { .. }) { met } else { 0 };
        assert_eq!(late, cut, "{trouble:?}");
    }
}
