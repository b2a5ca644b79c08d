//! Connections that are encrypted: how they come to stand, and what their bytes say.

use super::super::connections::{Origin, Stage};
use super::super::tls::{self, Layer};
use super::Turns;
use crate::Connection;

impl<M> Turns<'_, M> {
    /// Begins to make sure of a peer, and it of us.
    pub(super) fn begin_handshake(&mut self, connection: Connection) {
        let Some(slot) = self.table.get(connection) else { return };
        let layer = match slot.origin {
            Origin::Listener(listener) => {
                self.shell.listeners[listener].tls.as_ref().map(Layer::accepting)
            }
            Origin::Peer(peer) => self.shell.peers[peer].tls.as_ref().map(Layer::dialling),
        };
        match layer {
            Some(Ok(layer)) => slot.tls = Some(Box::new(layer)),
            Some(Err(error)) => {
                *self.tls_failures.entry(tls::reason(&error)).or_default() += 1;
                self.lost(connection);
                return;
            }
            None => return,
        }
        if matches!(slot.origin, Origin::Peer(_)) {
            // Whoever dials speaks first.
            self.write(connection);
        }
    }

    /// An accepted connection has something to say: its handshake begins, if not too many are under way.
    pub(super) fn is_heard(&mut self, connection: Connection) -> bool {
        let max = self.shell.bounds.handshakes_max;
        let Some(slot) = self.table.get(connection) else { return false };
        if slot.stage != Stage::Handshaking || slot.tls.is_some() {
            return true;
        }
        if self.handshakes >= max {
            if !std::mem::replace(&mut slot.waits_for_handshake, true) {
                self.unheard.push_back(connection);
                self.give_time(connection);
                if self.unheard.len() > self.shell.bounds.connections_max {
                    // Of those that are gone nothing is kept.
                    let Self { unheard, table, .. } = self;
                    unheard.retain(|connection| table.get(*connection).is_some());
                }
            }
            return false;
        }
        slot.waits_for_handshake = false;
        self.begin_handshake(connection);
        let begun = self.table.get(connection).is_some_and(|slot| slot.tls.is_some());
        self.handshakes += usize::from(begun);
        begun
    }

    /// A handshake has ended: the next begins, when the kernel has reported once more what it has said.
    pub(super) fn handshake_ended(&mut self) {
        self.handshakes -= 1;
        while let Some(connection) = self.unheard.pop_front() {
            if let Some(slot) = self.table.get(connection)
                && std::mem::take(&mut slot.waits_for_handshake)
            {
                // It has waited for others: its own time begins now.
                self.give_time(connection);
                self.rearm(connection);
                return;
            }
        }
    }

    /// Takes what was read into the buffer; gives whether there is something for the node.
    pub(super) fn decrypt(&mut self, connection: Connection, count: usize) -> bool {
        let Some(slot) = self.table.get(connection) else { return false };
        let Some(layer) = &mut slot.tls else { return false };
        let before = slot.unread.len();
        let received = layer.receive(&self.buffer[..count], slot.unread.buffer(0));
        let more = slot.unread.len() - before;
        self.unread_bytes += more;
        let is_done = slot.stage == Stage::Handshaking && !layer.is_handshaking();
        // What the protocol itself has to say: the handshake's next part, or why it failed.
        self.write(connection);
        if let Err(error) = received {
            *self.tls_failures.entry(tls::reason(&error)).or_default() += 1;
            self.lost(connection);
            return false;
        }
        if is_done {
            self.stands(connection);
        }
        more > 0 && self.table.get(connection).is_some()
    }

    /// Its handshake is done.
    fn stands(&mut self, connection: Connection) {
        let Some(slot) = self.table.get(connection) else { return };
        let Origin::Listener(listener) = slot.origin else { return self.open(connection) };
        let names = &self.shell.listeners[listener].names;
        let certified = slot.tls.as_ref().and_then(|layer| layer.certified(names));
        if !names.is_empty() && certified.is_none() {
            *self.tls_failures.entry(tls::OF_ANOTHER_NAME).or_default() += 1;
            self.lost(connection);
            return;
        }
        self.open_as(connection, certified);
        self.handshake_ended();
    }
}
