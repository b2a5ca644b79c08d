//! One connection of a worker: its session, its bytes and its state. It takes no decision about transactions
//! and touches no socket; the engine moves its bytes to and from the driver.

use model::Stamp;
use sut::{ProtocolError, Role, Session};

use crate::driver::Key;
use crate::pending::OnConnection;
use crate::place::Place;
use crate::tls::Layer;
use sut::Marks;

/// The most bytes of an unfinished answer that are kept; more is not of any protocol that we measure.
const REST_MAX: usize = 64 * 1024 * 1024;
/// The most bytes of a session's own words (pongs) that may wait for a system that makes it say more and takes none.
pub(crate) const REPLIES_MAX: usize = 1 << 20;
/// The stream of connections that only watch.
pub(crate) const OBSERVER: u8 = u8::MAX;

/// Where a connection is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Not there; opened again when its timer says so.
    Down,
    /// The kernel is connecting.
    Connecting,
    /// TLS is being agreed on.
    Securing,
    /// The session greets.
    Greeting,
    /// Transactions can go.
    Open,
}

pub(crate) struct Connection {
    /// Its index in the trial.
    pub index: u32,
    pub stream: u8,
    /// Its purpose, and its index among those of that role.
    pub role: (Role, u32),
    pub phase: Phase,
    pub key: Option<Key>,
    pub place: Place,
    pub session: Box<dyn Session>,
    pub tls: Option<Layer>,
    /// Plain bytes to send.
    pub out: Vec<u8>,
    /// Encrypted bytes to send.
    pub wire: Vec<u8>,
    /// Whether the kernel is asked when what is received on it arrived.
    pub is_stamped: bool,
    /// How many bytes the session wrote while it received, since the system last took all that there was.
    pub replies: usize,
    /// Bytes that the session left unread.
    rest: Vec<u8>,
    pub list: OnConnection,
    /// Transactions that it lost and will send again, where clients stay on their connections.
    pub again: OnConnection,
    /// The most that may be outstanding on it.
    room_max: u32,
    /// Since when it has had room.
    pub freed_at: Stamp,
    pub is_queued_idle: bool,
    pub is_dirty: bool,
    /// Nothing more can be submitted on it in this life.
    pub is_draining: bool,
    /// Whether a transaction on it was answered since it was opened.
    pub is_proven: bool,
    /// How many were.
    pub answers: u64,
    /// Whether it was open in an earlier life.
    pub was_open: bool,
    /// Lives in a row in which none was.
    pub failures: u32,
    /// Whether the last attempt to open it failed, until one does not.
    pub has_failed: bool,
    /// Which life of the connection this is; timers of an earlier one are void.
    pub life: u32,
}

impl Connection {
    pub(crate) fn new(
        index: u32,
        stream: u8,
        role: (Role, u32),
        place: Place,
        session: Box<dyn Session>,
        window: u32,
    ) -> Self {
        let in_flight_max = session.in_flight_max().max(1);
        let room_max = if window == 0 { in_flight_max } else { window.min(in_flight_max) };
        Self {
            index,
            stream,
            role,
            phase: Phase::Down,
            key: None,
            place,
            session,
            tls: None,
            out: Vec::new(),
            wire: Vec::new(),
            is_stamped: false,
            replies: 0,
            rest: Vec::new(),
            list: OnConnection::default(),
            again: OnConnection::default(),
            room_max,
            freed_at: 0,
            is_queued_idle: false,
            is_dirty: false,
            is_draining: false,
            is_proven: false,
            answers: 0,
            was_open: false,
            failures: 0,
            has_failed: false,
            life: 0,
        }
    }

    /// Whether its last transaction left it without room.
    pub(crate) fn is_full(&self) -> bool {
        self.is_draining || self.list.count >= self.room_max
    }

    /// How many more transactions it can carry.
    pub(crate) fn room(&self) -> usize {
        match self.is_draining {
            true => 0,
            false => self.room_max.saturating_sub(self.list.count) as usize,
        }
    }

    /// The most that may be outstanding on it.
    pub(crate) fn room_max(&self) -> usize {
        self.room_max as usize
    }

    /// The same, as it is counted.
    pub(crate) fn carries(&self) -> u32 {
        self.room_max
    }

    /// Whether a transaction can go now.
    pub(crate) fn has_room(&self) -> bool {
        self.phase == Phase::Open && !self.is_full()
    }

    /// Whether its last transaction has ended, and none can follow.
    pub(crate) fn is_drained(&self) -> bool {
        self.is_draining && self.list.count == 0
    }

    /// Whether nothing that it lost waits to be sent on it again.
    pub(crate) fn owes_nothing(&self) -> bool {
        self.again.count == 0
    }

    /// Hands bytes to the session, after what it left unread, and keeps what it leaves now.
    /// What is wrong with them is said in no more words than are kept.
    pub(crate) fn deliver(&mut self, bytes: &[u8], marks: &mut Marks) -> Result<(), ProtocolError> {
        let written = self.out.len();
        let said = self.hand_over(bytes, marks);
        self.replies += self.out.len() - written;
        said.map_err(|error| ProtocolError(sut::cut(&error.0).to_owned()))
    }

    fn hand_over(&mut self, bytes: &[u8], marks: &mut Marks) -> Result<(), ProtocolError> {
        if self.rest.is_empty() {
            let used = self.session.receive(bytes, &mut self.out, marks)?;
            assert!(used <= bytes.len(), "a session uses at most what it was given");
            self.rest.extend_from_slice(&bytes[used..]);
        } else {
            self.rest.extend_from_slice(bytes);
            let used = self.session.receive(&self.rest, &mut self.out, marks)?;
            assert!(used <= self.rest.len(), "a session uses at most what it was given");
            self.rest.drain(..used);
        }
        if self.rest.len() > REST_MAX {
            return Err(ProtocolError(format!("an answer is not complete after {REST_MAX} bytes")));
        }
        Ok(())
    }

    /// Forgets the connection; the session begins anew.
    pub(crate) fn reset(&mut self) {
        self.phase = Phase::Down;
        self.key = None;
        self.tls = None;
        self.out.clear();
        self.wire.clear();
        self.replies = 0;
        self.rest.clear();
        self.is_draining = false;
        self.session.reset();
        self.is_proven = false;
        self.answers = 0;
        self.life = self.life.wrapping_add(1);
    }
}
