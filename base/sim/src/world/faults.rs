//! What goes wrong.

use std::time::Duration;

use process::Node;

use crate::disk::{Disk, Loss};
use crate::network::Place;
use crate::weather::Fault;
use crate::world::World;
use crate::world::events::What;

impl<N: Node<M>, M> World<N, M> {
    pub(super) fn plan_fault(&mut self) {
        let Some(weather) = &self.weather else { return };
        let after = self.random.within(&weather.every);
        if self.now.plus(after) < weather.until {
            self.later(after, What::Draw);
        }
    }

    pub(super) fn draw(&mut self) -> Option<usize> {
        let fault = self.weather.as_ref()?.draw(&mut self.random)?;
        self.plan_fault();
        self.fault(&fault)
    }

    /// Makes a fault happen now.
    pub fn happens(&mut self, fault: &Fault) {
        self.fault(fault);
    }

    pub(super) fn fault(&mut self, fault: &Fault) -> Option<usize> {
        match *fault {
            Fault::Kill { process, down } => self.crash(process, Loss::Killed, down),
            Fault::Power { process, down } => self.crash(process, Loss::Power, down),
            Fault::PowerInWrite { process, down } => {
                self.processes[process].power_in_write = Some(down);
            }
            Fault::LostDisk { process, down } => {
                self.crash(process, Loss::Killed, down);
                self.processes[process].disks.iter_mut().for_each(Disk::lose);
                self.coverage.count("disks lost");
            }
            Fault::CopiedDisk { process, of, down } => {
                self.crash(process, Loss::Killed, down);
                let copies: Vec<Disk> = self.processes[of].disks.iter().map(Disk::copy).collect();
                self.processes[process].disks = copies;
                self.coverage.count("disks copied");
            }
            Fault::Pause { process, pause } => {
                let until = self.now.plus(pause);
                let paused = &mut self.processes[process].paused_until;
                *paused = (*paused).max(until);
                self.coverage.count("processes paused");
            }
            Fault::Block { from, to, lasts } => {
                self.block(from, to, lasts);
                self.coverage.count("ways blocked");
            }
            Fault::Isolate { process, lasts } => {
                for other in (0..self.processes.len()).filter(|other| *other != process) {
                    self.block(process, other, lasts);
                    self.block(other, process, lasts);
                }
                self.coverage.count("processes isolated");
            }
            Fault::Cut => self.cut(),
            Fault::SlowDisk { process, lasts } => self.disk(process, lasts, false),
            Fault::FullDisk { process, lasts } => self.disk(process, lasts, true),
        }
        None
    }

    fn disk(&mut self, process: usize, lasts: Duration, is_full: bool) {
        for disk in &mut self.processes[process].disks {
            disk.is_full |= is_full;
            disk.is_slow |= !is_full;
        }
        self.coverage.count(if is_full { "disks full" } else { "disks slow" });
        self.later(lasts, What::DiskWell { process, was_full: is_full });
    }

    /// Resets one connection.
    fn cut(&mut self) {
        let wires = self.wires.all();
        if wires.is_empty() {
            return;
        }
        let id = wires[self.random.place(wires.len())];
        for side in 0..2 {
            self.later(Duration::from_micros(1), What::Ended { wire: id, side });
        }
        self.coverage.count("connections cut");
    }

    pub(super) fn power_in_write(&mut self, place: Place, down: Duration) -> Option<usize> {
        let is_writing = self.processes[place.process].disks[place.machine].is_writing();
        if self.is_alive(place) && is_writing {
            self.crash(place.process, Loss::Power, down);
        }
        None
    }

    /// Ends a process as it stands, and plans its start.
    fn crash(&mut self, index: usize, loss: Loss, down: Duration) {
        let process = &mut self.processes[index];
        if !process.is_up {
            return;
        }
        process.is_up = false;
        process.paused_until = self.now;
        process.power_in_write = None;
        let waiting: usize = process.machines.iter().map(|machine| machine.inbox.len()).sum();
        process.machines.clear();
        let life = process.life;
        process.life += 1;
        for disk in &mut process.disks {
            let crash = disk.crash(loss, &mut self.random);
            if crash.in_write {
                self.coverage.count("crashes between write and sync");
            }
            if crash.is_torn {
                self.coverage.count("torn tails");
            }
            self.coverage.add("records lost in crashes", crash.records_lost);
        }
        if waiting > 0 {
            self.coverage.count("crashes with messages between machines");
        }
        self.coverage.count(if loss == Loss::Killed { "kills" } else { "losses of power" });
        for id in self.wires.all() {
            for side in 0..2 {
                let Some(wire) = self.wires.get(id) else { continue };
                let place = wire.ends[side].place;
                if place.process != index || place.life != life || wire.ends[side].is_gone {
                    continue;
                }
                if loss == Loss::Killed {
                    self.hang_up(id, side);
                } else {
                    wire.ends[side].is_gone = true;
                    wire.ends[side].connection = None;
                    self.wires.free_if_gone(id);
                }
            }
        }
        let next = self.processes[index].life;
        self.later(down, What::Start { process: index, life: next });
    }
}
