//! From the node to the kernel. No byte is moved because the kernel took only some before it.

use std::io::IoSlice;

use rustix::io::Errno;
use rustix::net::{SendAncillaryBuffer, SendFlags};

use super::super::connections::{Origin, Slot, Stage};
use super::super::tls::Layer;
use super::super::waiting;
use super::{Due, Turns};
use crate::Connection;

impl<M> Turns<'_, M> {
    /// The kernel takes bytes again.
    pub(super) fn writable(&mut self, connection: Connection) {
        let Some(slot) = self.table.get(connection) else { return };
        if !std::mem::take(&mut slot.is_blocked) {
            return;
        }
        self.write(connection);
        if let Some(slot) = self.table.get(connection)
            && slot.is_paused
            && !slot.is_blocked
        {
            slot.is_paused = false;
            self.rearm(connection);
        }
    }

    /// What the last step wants on the connection that it was about, if it wants nothing else there.
    pub(super) fn carry_out_on(&mut self, connection: Connection) {
        if self.out.touched() == [connection] {
            self.out.take_touched(&mut self.carried_out);
            self.carried_out.clear();
            self.write(connection);
        }
    }

    /// Writes what waits on a connection, as far as the kernel takes it, and closes it behind that if asked.
    pub(super) fn write(&mut self, connection: Connection) {
        let connections = self.table.len();
        let slot = self.table.get(connection);
        let Some(slot) = slot.filter(|slot| slot.stage != Stage::Dialling) else { return };
        // A node that does not know of a connection yet has nothing to send on it, and its handshake has.
        let mut nothing = Vec::new();
        let (bytes, closes) = self.out.pending(connection).unwrap_or((&mut nothing, false));
        let bounds = &self.shell.bounds;
        let behind_before = slot.behind();
        slot.owes_drained |= slot.unsent.len() + bytes.len() > bounds.unsent_bytes_pause;
        if send(slot, bytes, closes).is_err() {
            self.lost(connection);
            return;
        }
        let behind = slot.behind();
        let waiting = behind + bytes.len();
        if waiting == 0 {
            let kept_bytes = waiting::kept_bytes(connections);
            slot.give_back(kept_bytes);
            waiting::give_back(bytes, kept_bytes);
        }
        let mut are_too_many = false;
        if let Origin::Listener(listener) = slot.origin {
            let of_all = &mut self.unsent_bytes[listener];
            *of_all = *of_all - slot.counted + waiting;
            are_too_many = waiting > slot.counted && *of_all > bounds.unsent_bytes_of_all_max;
            slot.counted = waiting;
        }
        if behind != behind_before {
            self.out.set_behind(connection, behind);
        }
        if waiting == 0 {
            if std::mem::take(&mut slot.owes_drained) {
                self.due.push_back(Due::Drained(connection));
            }
            if closes {
                self.forget(connection);
            }
        } else if waiting > bounds.unsent_bytes_max
            || are_too_many && waiting > bounds.unsent_bytes_pause
        {
            self.counters.unsent_full += 1;
            self.lost(connection);
        } else if waiting > bounds.unsent_bytes_pause
            && !slot.is_paused
            && matches!(slot.origin, Origin::Listener(_))
        {
            // What a peer that the node has dialled has to say is an answer: it is read whatever waits for it.
            self.counters.paused += 1;
            slot.is_paused = true;
        }
    }
}

fn send(slot: &mut Slot, bytes: &mut Vec<u8>, closes: bool) -> Result<(), Errno> {
    let Some(mut tls) = slot.tls.take() else { return send_plain(slot, bytes) };
    let sent = send_encrypted(slot, &mut tls, bytes, closes);
    slot.tls = Some(tls);
    sent
}

/// Sends what is encrypted, and encrypts more when the kernel has taken that: what waits for a slow peer waits
/// before it is encrypted.
fn send_encrypted(
    slot: &mut Slot,
    tls: &mut Layer,
    bytes: &mut Vec<u8>,
    closes: bool,
) -> Result<(), Errno> {
    let mut is_finished = false;
    while !slot.is_blocked {
        if tls.fill() {
            match rustix::net::send(&slot.socket, tls.wire.rest(), SendFlags::NOSIGNAL) {
                Ok(count) => tls.wire.advance(count),
                Err(Errno::AGAIN) => slot.is_blocked = true,
                Err(Errno::INTR) => {}
                Err(error) => return Err(error),
            }
        } else if slot.unsent.is_empty() && bytes.is_empty() {
            if !closes || is_finished {
                break;
            }
            is_finished = true;
            tls.finish();
        } else {
            if slot.unsent.is_empty() {
                slot.unsent.take(bytes, 0);
            }
            let count = tls.encrypt(slot.unsent.rest());
            slot.unsent.advance(count);
        }
    }
    Ok(())
}

/// Sends what was taken before, and `bytes` behind it. What the kernel takes only a part of is taken over as it
/// is, with the place where it goes on.
fn send_plain(slot: &mut Slot, bytes: &mut Vec<u8>) -> Result<(), Errno> {
    while !slot.is_blocked {
        let before = slot.unsent.rest();
        if before.is_empty() && bytes.is_empty() {
            break;
        }
        let sent = match (before.is_empty(), bytes.is_empty()) {
            (true, _) => rustix::net::send(&slot.socket, bytes, SendFlags::NOSIGNAL),
            (_, true) => rustix::net::send(&slot.socket, before, SendFlags::NOSIGNAL),
            _ => {
                let parts = [IoSlice::new(before), IoSlice::new(bytes)];
                let mut nothing = SendAncillaryBuffer::default();
                rustix::net::sendmsg(&slot.socket, &parts, &mut nothing, SendFlags::NOSIGNAL)
            }
        };
        match sent {
            Ok(count) => {
                let of_before = count.min(before.len());
                slot.unsent.advance(of_before);
                let of_bytes = count - of_before;
                if of_bytes == bytes.len() {
                    bytes.clear();
                } else if of_bytes > 0 {
                    slot.unsent.take(bytes, of_bytes);
                }
            }
            Err(Errno::AGAIN) => slot.is_blocked = true,
            Err(Errno::INTR) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
