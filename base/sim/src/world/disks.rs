//! What machines keep, and when it is durable.

use process::host::Store;
use process::{Input, Node};

use crate::network::Place;
use crate::world::World;
use crate::world::events::What;

impl<N: Node<M>, M> World<N, M> {
    /// What the last step asked of the disk.
    pub(super) fn store(&mut self, place: Place) {
        let (mut stores, mut records) =
            (std::mem::take(&mut self.stores), std::mem::take(&mut self.records));
        self.outputs(place).take_stores(&mut stores, &mut records);
        let disk = &mut self.processes[place.process].disks[place.machine];
        let mut reads = Vec::new();
        for store in stores.drain(..) {
            match store {
                Store::Append { log, bytes, .. } => disk.append(log, &records[bytes]),
                Store::Trim { log, below } => disk.trim(log, below),
                Store::Replace { cell, content } => disk.replace(cell, content),
                Store::Extend { cell, part } => disk.extend(cell, &part),
                Store::DropParts { cell } => disk.drop_parts(cell),
                Store::Read { cell, offset, bytes_max } => reads.push((cell, offset, bytes_max)),
            }
        }
        for (cell, offset, bytes_max) in reads {
            let after = self.random.within(&self.settings.disks.sync);
            self.later(after, What::Part { place, cell, offset, bytes_max });
        }
        (self.stores, self.records) = (stores, records);
        self.begin_writes(place);
    }

    /// Begins what can be written, and tells a machine once that its disk is full.
    pub(super) fn begin_writes(&mut self, place: Place) {
        let times = &self.settings.disks;
        let process = &mut self.processes[place.process];
        let disk = &mut process.disks[place.machine];
        let range = if disk.is_slow { times.slow.clone() } else { times.sync.clone() };
        let mut begun = std::mem::take(&mut self.begun);
        disk.begin_logs(&mut begun);
        let logs = begun.len();
        disk.begin_cells(&mut begun);
        let is_stuck = disk.is_stuck();
        for (index, what) in begun.iter().enumerate() {
            let takes = self.random.within(&range);
            if let Some(down) = self.processes[place.process].power_in_write.take() {
                let after = std::time::Duration::from_nanos(
                    self.random.below(u64::try_from(takes.as_nanos()).unwrap_or(u64::MAX)),
                );
                self.later(after, What::PowerInWrite { place, down });
            }
            self.later(
                takes,
                if index < logs {
                    What::Logged { place, log: *what }
                } else {
                    What::Replaced { place, cell: *what }
                },
            );
        }
        begun.clear();
        // One after the other, as they are told.
        self.processes[place.process].disks[place.machine].begin_parts(&mut begun);
        let mut takes = std::time::Duration::ZERO;
        for cell in begun.drain(..) {
            takes += self.random.within(&range);
            self.later(takes, What::Extended { place, cell });
        }
        self.begun = begun;
        if is_stuck && self.processes[place.process].machines[place.machine].tell_full() {
            self.coverage.count("a machine learnt that its disk is full");
            self.step(place, "full", 0, Input::Full { log: None });
        }
    }

    pub(super) fn logged(&mut self, place: Place, log: usize) -> Option<usize> {
        if !self.is_alive(place) {
            return None;
        }
        let below = self.processes[place.process].disks[place.machine].end_log(log);
        self.outputs(place).persisted(log, below);
        self.begin_writes(place);
        self.step(place, "persisted", below, Input::Persisted { log, below })
    }

    pub(super) fn replaced(&mut self, place: Place, cell: usize) -> Option<usize> {
        if !self.is_alive(place) {
            return None;
        }
        self.processes[place.process].disks[place.machine].end_cell(cell);
        self.begin_writes(place);
        let detail = u64::try_from(cell).expect("fits");
        self.step(place, "replaced", detail, Input::Replaced { cell })
    }

    pub(super) fn extended(&mut self, place: Place, cell: usize) -> Option<usize> {
        if !self.is_alive(place) {
            return None;
        }
        let detail = u64::try_from(cell).expect("fits");
        self.step(place, "extended", detail, Input::Extended { cell })
    }

    pub(super) fn part(
        &mut self,
        place: Place,
        cell: usize,
        offset: u64,
        bytes_max: usize,
    ) -> Option<usize> {
        if !self.is_alive(place) {
            return None;
        }
        let disk = &self.processes[place.process].disks[place.machine];
        let bytes = disk.part(cell, offset, bytes_max);
        self.step(place, "part", offset, Input::Part { cell, offset, bytes: &bytes })
    }

    /// A disk is well again: what waited is written.
    pub(super) fn disk_well(&mut self, process: usize, was_full: bool) -> Option<usize> {
        let life = self.processes[process].life;
        for machine in 0..self.processes[process].disks.len() {
            let disk = &mut self.processes[process].disks[machine];
            if was_full {
                disk.is_full = false;
            } else {
                disk.is_slow = false;
            }
            if was_full && self.processes[process].is_up {
                self.processes[process].machines[machine].forget_full();
                self.begin_writes(Place { process, machine, life });
            }
        }
        None
    }
}
