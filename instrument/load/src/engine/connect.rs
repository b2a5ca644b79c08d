//! Connections: opened in waves before the load, reopened with a growing pause when they are lost, more of them
//! when all are busy. Each of its lives asks the system where to go. A lost connection ends what was outstanding on it,
//! but for what the plan sends again.

use std::time::Duration;

use model::facts::Grown;
use model::{Class, NO_STAMP, Outcome};
use rustix::io::Errno;

use super::setup::link_of;
use super::{Alarm, Engine, Timer};
use crate::connection::{Connection, OBSERVER, Phase};
use crate::driver::{Driver, Key, is_own_shortage};
use crate::pending::NONE;
use crate::place::Place;
use crate::tls::Layer;
use crate::trial::whole_ns;

/// Connections of a worker that are on their way at a time: below the usual listen queue of a server.
const WAVE_MAX: usize = 128;
/// The first pause before a connection is tried again, and the longest.
const RETRY_NS_MIN: i64 = 10_000_000;
const RETRY_NS_MAX: i64 = 500_000_000;
/// Polls of a session that asks for none of its own.
const POLL_NS_MIN: i64 = 10_000;

impl Engine<'_> {
    /// Begins to open connections and closes others, as decided since the last wait.
    pub(super) fn open_and_close<D: Driver>(&mut self, driver: &mut D) {
        for key in self.to_close.drain(..) {
            driver.close(key);
        }
        // Those that wait here are counted as opening, too: a wave is what the others leave of the bound.
        let wave = WAVE_MAX.saturating_sub(self.opening.saturating_sub(self.to_open.len()));
        for _ in 0..wave {
            let Some(connection) = self.to_open.pop_front() else { break };
            let at = &mut self.connections[connection as usize];
            at.phase = Phase::Connecting;
            match at.place.open(driver, connection, at.is_stamped) {
                Ok(key) => at.key = Some(key),
                Err(error) => self.lose(connection, &describe(Some(error)), class_of(error)),
            }
        }
    }

    /// Wants a connection opened.
    pub(super) fn want_open(&mut self, connection: u32) {
        let stream = self.connections[connection as usize].stream;
        if stream != OBSERVER {
            self.streams[usize::from(stream)].opening += 1;
        }
        self.connections[connection as usize].phase = Phase::Connecting;
        self.opening += 1;
        self.to_open.push_back(connection);
    }

    /// One more connection for a stream whose connections are all busy. Says whether there was one.
    pub(super) fn add_connection(&mut self, stream: usize) -> bool {
        let setup = &self.trial.setup;
        let (role, index) = (self.streams[stream].role(), self.streams[stream].next_index);
        let Ok((place, session)) = link_of(setup, role, index) else {
            // The adapter has no more: the bound is what there is.
            self.streams[stream].connections_max = self.streams[stream].connections;
            return false;
        };
        let window = self.window();
        let number = self.streams[stream].index;
        let mut connection = Connection::new(index, number, (role, index), place, session, window);
        connection.is_stamped = connection.place.is_stampable() && self.wants_stamps(number);
        self.connections.push(connection);
        let at = &mut self.streams[stream];
        at.connections += 1;
        at.next_index += u32::try_from(at.stride).expect("at most WORKERS_MAX");
        if stream == 0 {
            self.note_grown();
        }
        self.want_open(u32::try_from(self.connections.len() - 1).expect("connections are u32"));
        true
    }

    /// One more was added in this second.
    fn note_grown(&mut self) {
        let second = u64::try_from(self.now / 1_000_000_000).unwrap_or(0);
        let grown = &mut self.facts.pool.grown;
        match grown.last_mut().filter(|last| last.second == second) {
            Some(last) => last.count += 1,
            // At most one entry a connection.
            None => grown.push(Grown { second, count: 1 }),
        }
    }

    /// The kernel has connected.
    pub(super) fn connected(&mut self, connection: u32, key: Key) {
        let at = &mut self.connections[connection as usize];
        if at.key != Some(key) {
            return;
        }
        self.facts.connects += 1;
        at.phase = Phase::Securing;
        if let Some(tls) = at.place.endpoint().and_then(|endpoint| endpoint.tls.as_ref()) {
            match Layer::new(tls) {
                Ok(layer) => at.tls = Some(layer),
                Err(text) => {
                    self.to_close.push(key);
                    return self.lose(connection, &text, Class::Client);
                }
            }
        }
        self.advance(connection);
    }

    /// Takes an opening connection as far as it goes now: TLS, the session's greeting, open.
    pub(super) fn advance(&mut self, connection: u32) {
        let at = &mut self.connections[connection as usize];
        if at.phase == Phase::Securing && at.tls.as_ref().is_none_or(|tls| !tls.is_handshaking()) {
            if let Some(tls) = &at.tls {
                self.trial.transport.get_or_init(|| tls.describe());
            }
            at.session.open(&mut at.out);
            at.phase = Phase::Greeting;
        }
        let is_ready = at.phase == Phase::Greeting && at.session.is_ready();
        let wants_send = !at.out.is_empty() || at.tls.as_ref().is_some_and(Layer::wants_send);
        if wants_send && !at.is_dirty {
            at.is_dirty = true;
            self.dirty.push(connection);
        }
        if is_ready {
            self.opened(connection);
        }
    }

    fn opened(&mut self, connection: u32) {
        let at = &mut self.connections[connection as usize];
        at.phase = Phase::Open;
        self.opening -= 1;
        at.freed_at = self.now;
        if at.stream != OBSERVER {
            let stream = &mut self.streams[usize::from(at.stream)];
            stream.opening -= 1;
            stream.open += 1;
            stream.failing -= u32::from(std::mem::take(&mut at.has_failed));
            if !at.is_queued_idle {
                at.is_queued_idle = true;
                stream.idle.push_back(connection);
            }
            let index = usize::from(at.stream);
            if let Some(batching) = &mut stream.batching {
                batching.opened(connection, self.now);
                self.move_waiting(index);
            }
        }
        self.poll(connection);
    }

    /// The driver says that a connection is over.
    pub(super) fn ended(&mut self, connection: u32, key: Key, error: Option<Errno>) {
        if self.connections[connection as usize].key != Some(key) {
            return;
        }
        let at = &self.connections[connection as usize];
        // A program that ends by itself is the client's affair, and is said where its transactions end.
        let is_systems = at.place.channel().is_none_or(sut::Channel::is_ended_by_plan);
        if at.phase != Phase::Connecting && is_systems {
            let facts = &mut self.facts.connections;
            *if error.is_none() { &mut facts.closed } else { &mut facts.reset } += 1;
        }
        if error.is_none() {
            let mut marks = std::mem::take(&mut self.marks);
            marks.clear();
            self.receipts.at = NO_STAMP;
            self.connections[connection as usize].session.closed(&mut marks);
            self.apply(connection, &marks);
            self.marks = marks;
        }
        let text = match self.connections[connection as usize].place.channel() {
            Some(_) => "the program closed its channel".to_owned(),
            None => describe(error),
        };
        self.lose(connection, &text, error.map_or(Class::Transport, class_of));
    }

    /// Closes a connection and loses it.
    pub(super) fn drop_connection(&mut self, connection: u32, text: &str) {
        if let Some(key) = self.connections[connection as usize].key {
            self.to_close.push(key);
            self.lose(connection, text, Class::Transport);
        }
    }

    /// A connection is gone, or could not be had. What was outstanding on it ends; it is tried again later.
    pub(super) fn lose(&mut self, connection: u32, text: &str, class: Class) {
        // A failure on the way to a program is the client's, in the program's words, unless a fault of the plan ended the
        // program: then a node is down.
        let channel = self.connections[connection as usize].place.channel();
        let failure = channel.map(|channel| channel.fail(text));
        let is_clients = failure.as_ref().is_some_and(|failure| !failure.is_planned);
        let (text, class) = match &failure {
            Some(failure) if is_clients => (&*failure.words, Class::Client),
            Some(failure) => (&*failure.words, Class::Transport),
            None => (text, class),
        };
        let phase = self.connections[connection as usize].phase;
        // First of all it has no room: what ends here must not look like room for more.
        self.connections[connection as usize].phase = Phase::Down;
        if self.connections[connection as usize].list.count > 0 {
            self.event("connection_lost", None, || text.to_owned());
        }
        let error = self.texts.index(text);
        loop {
            let at = &self.connections[connection as usize];
            let slot = at.list.first();
            if slot == NONE {
                break;
            }
            let stream = usize::from(at.stream);
            if !is_clients && self.may_resend(stream, slot) {
                self.park(stream, slot);
                continue;
            }
            let is_sent = self.streams[stream].pending.is_sent(slot);
            self.facts.connections.lost += u64::from(is_sent && !is_clients);
            let outcome = match is_sent {
                true if is_clients => Outcome::Rejected(Class::Client),
                true => Outcome::Unknown,
                false => Outcome::Rejected(class),
            };
            self.streams[stream].pending.row_mut(slot).error = error;
            self.end(stream, slot, self.now, outcome);
        }
        if phase == Phase::Open {
            self.life_over(connection);
        }
        let at = &mut self.connections[connection as usize];
        at.failures = if at.is_proven { 0 } else { at.failures + 1 };
        at.reset();
        let (life, failures, stream) = (at.life, at.failures, at.stream);
        let doublings = failures.saturating_sub(1).min(16);
        let pause_ns =
            if failures == 0 { 0 } else { (RETRY_NS_MIN << doublings).min(RETRY_NS_MAX) };
        let at = self.now + pause_ns;
        self.timers.push(Timer { at, connection, life, what: Alarm::Reconnect });
        if phase != Phase::Open {
            self.opening -= 1;
            self.facts.connect_failures += 1;
            self.event("connect_failure", None, || text.to_owned());
        }
        self.last_failure =
            Some((self.connections[connection as usize].place.clone(), text.to_owned()));
        if stream != OBSERVER {
            let stream = usize::from(stream);
            let here = &mut self.connections[connection as usize];
            match phase {
                Phase::Open => self.streams[stream].open -= 1,
                _ => {
                    self.streams[stream].opening -= 1;
                    let is_first = !std::mem::replace(&mut here.has_failed, true);
                    self.streams[stream].failing += u32::from(is_first);
                }
            }
            let at = &self.streams[stream];
            let none_else = at.open == 0 && at.opening == 0;
            let is_home = at.backlog.homes().is_some();
            if phase != Phase::Open && (none_else || is_home) {
                self.refuse_waiting(stream, connection, class, text);
            }
            if phase != Phase::Open && none_else {
                self.refuse_batches(stream, class, text);
            }
            if let Some(batching) = &mut self.streams[stream].batching {
                batching.lost(connection);
                self.move_waiting(stream);
            }
        }
    }

    /// The life of a connection on which transactions could go is over.
    fn life_over(&mut self, connection: u32) {
        let at = &mut self.connections[connection as usize];
        if at.stream != OBSERVER {
            self.facts.connections.life_over(at.answers, at.was_open);
        }
        at.was_open = true;
    }

    /// The trial is over, and with it the lives of connections that still stand.
    pub(super) fn lives_over(&mut self) {
        for connection in 0..self.connections.len() {
            if self.connections[connection].phase == Phase::Open {
                self.life_over(u32::try_from(connection).expect("connections are u32"));
            }
        }
    }

    /// Carries out the timers that have run out.
    pub(super) fn run_timers(&mut self) {
        while let Some(timer) = self.timers.peek().copied().filter(|timer| timer.at <= self.now) {
            self.timers.pop();
            let at = &self.connections[timer.connection as usize];
            if at.life != timer.life {
                continue;
            }
            match timer.what {
                Alarm::Poll => self.poll(timer.connection),
                Alarm::Batch => self.batch_alarm(timer.connection),
                Alarm::Reconnect if at.phase == Phase::Down && self.is_wanted(at.stream) => {
                    self.find_way(timer.connection);
                    self.want_open(timer.connection);
                }
                Alarm::Reconnect => {}
            }
        }
    }

    /// Asks the system where a connection goes in its new life.
    fn find_way(&mut self, connection: u32) {
        let setup = &self.trial.setup;
        let at = &mut self.connections[connection as usize];
        let (role, index) = at.role;
        if let Some(endpoint) = setup.system.route(setup.deployment, role, index, at.life) {
            at.place = Place::Address(endpoint);
        }
    }

    /// Whether a connection of this stream is still of use.
    fn is_wanted(&self, stream: u8) -> bool {
        if stream == OBSERVER || self.is_loading || self.is_starting {
            return true;
        }
        let at = &self.streams[usize::from(stream)];
        let goes_on = at.resends.is_some() || at.follow_ups.has_any();
        at.waiting() > 0 || at.follow_ups.len() > 0 || (goes_on && at.pending.count() > 0)
    }

    /// Lets the session ask, if it is one that asks.
    fn poll(&mut self, connection: u32) {
        let every = self.poll_every();
        let at = &mut self.connections[connection as usize];
        let Some(own) = at.session.poll(&mut at.out) else { return };
        if !at.out.is_empty() && !at.is_dirty {
            at.is_dirty = true;
            self.dirty.push(connection);
        }
        let pause = if every.is_zero() { own } else { every };
        let at_stamp = self.now + whole_ns(pause).max(POLL_NS_MIN);
        let life = self.connections[connection as usize].life;
        self.timers.push(Timer { at: at_stamp, connection, life, what: Alarm::Poll });
    }

    fn poll_every(&self) -> Duration {
        match self.trial.setup.plan.load.arrivals {
            model::plan::Arrivals::Closed { poll, .. } => poll,
            model::plan::Arrivals::Open { .. } => Duration::ZERO,
        }
    }

    /// The last failure's place and text, for the message that nothing could be opened.
    pub(super) fn last_failure(&self) -> Option<(Place, String)> {
        self.last_failure.clone()
    }
}

fn class_of(error: Errno) -> Class {
    if is_own_shortage(error) { Class::Client } else { Class::Transport }
}

/// The end of a connection in words that group: no addresses, no numbers.
fn describe(error: Option<Errno>) -> String {
    let words = match error {
        None => "the connection was closed by the system",
        Some(Errno::CONNREFUSED) => "connection refused",
        Some(Errno::CONNRESET | Errno::PIPE) => "the connection was reset by the system",
        Some(Errno::TIMEDOUT) => "the connection timed out in the network",
        Some(Errno::HOSTUNREACH | Errno::NETUNREACH) => "the network has no route to the system",
        Some(Errno::MFILE | Errno::NFILE) => "this client has no file descriptors left",
        Some(Errno::ADDRNOTAVAIL) => "this client has no local ports left",
        Some(other) => return std::io::Error::from(other).to_string(),
    };
    words.to_owned()
}
