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
        if matches!(slot.origin, Origin::Listener(_)) {
            let at = self.clock.now().plus(self.shell.bounds.handshake_max);
            self.given_up_at.push_back((at, connection));
        }
        self.write(connection);
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
        if matches!(slot.origin, Origin::Listener(_)) {
            self.handshakes -= 1;
            if self.is_accept_stuck {
                self.pause_listeners(false);
            }
        }
        self.open(connection);
    }
}
