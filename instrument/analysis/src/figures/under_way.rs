//! How many transactions were under way at a moment, to the millisecond: what a fault met that ended a node then.
//!
//! Two counts for each unit of time, so that the memory is bounded whatever the rate: a millisecond each for trials of up to
//! an hour, more for longer ones.

use model::result::FaultResult;
use model::{NO_STAMP, Row, Stamp};
use stats::carry::Carry;

use crate::figures::known::Known;
use crate::figures::part::Part;
use crate::figures::silence::is_unit;

/// The finest unit, nanoseconds.
const UNIT_NS: Stamp = 1_000_000;
/// Units at most: 32 MiB of counts.
const UNITS_MAX: usize = 1 << 22;

/// When transactions were sent and when they ended, to the unit; kept where faults are planned.
#[derive(Clone)]
pub(crate) struct UnderWay {
    unit_ns: Stamp,
    units: Vec<Unit>,
}

#[derive(Clone, Copy, Default)]
struct Unit {
    sent: u32,
    ended: u32,
}

impl Default for UnderWay {
    fn default() -> Self {
        Self { unit_ns: UNIT_NS, units: Vec::new() }
    }
}

impl Part for Option<UnderWay> {
    fn of_trial(trial: &Known<'_>) -> Self {
        (!trial.setting.faults.is_empty()).then(UnderWay::default)
    }

    fn block(&mut self, rows: &[&Row]) {
        if let Some(under_way) = self {
            rows.iter().for_each(|row| under_way.row(row));
        }
    }

    fn carry(&mut self, it: &mut Carry<'_>) {
        let Some(mine) = self else { return };
        let mut other = if it.is_adding() { UnderWay::default() } else { mine.clone() };
        other.unit_ns = it.told(other.unit_ns);
        let mut counts: Vec<u32> =
            other.units.iter().flat_map(|unit| [unit.sent, unit.ended]).collect();
        it.growing(&mut counts, UNITS_MAX * 2);
        if !is_unit(other.unit_ns, UNIT_NS) {
            it.is_foreign();
        }
        it.adding(|| {
            for (at, counts) in (0..).zip(counts.chunks_exact(2)) {
                if *counts != [0, 0] {
                    let unit = mine.unit_of(at * other.unit_ns, other.unit_ns);
                    unit.sent = unit.sent.saturating_add(counts[0]);
                    unit.ended = unit.ended.saturating_add(counts[1]);
                }
            }
        });
    }
}

impl UnderWay {
    pub(crate) fn row(&mut self, row: &Row) {
        if row.sent == NO_STAMP {
            return;
        }
        self.unit(row.sent).sent += 1;
        if row.end != NO_STAMP {
            self.unit(row.end).ended += 1;
        }
    }

    fn unit(&mut self, at: Stamp) -> &mut Unit {
        self.unit_of(at, UNIT_NS)
    }

    /// The unit of a stamp that is known to `ns`.
    fn unit_of(&mut self, at: Stamp, ns: Stamp) -> &mut Unit {
        while self.place(at) >= UNITS_MAX || self.unit_ns < ns {
            let sum = |pair: &[Unit]| Unit {
                sent: pair.iter().map(|unit| unit.sent).sum(),
                ended: pair.iter().map(|unit| unit.ended).sum(),
            };
            self.units = self.units.chunks(2).map(sum).collect();
            self.unit_ns *= 2;
        }
        let place = self.place(at);
        if place >= self.units.len() {
            self.units.resize(place + 1, Unit::default());
        }
        &mut self.units[place]
    }

    fn place(&self, at: Stamp) -> usize {
        usize::try_from(at.max(0) / self.unit_ns).unwrap_or(usize::MAX)
    }

    /// Says of each fault that took place how many were under way when the unit began in which it did.
    pub(crate) fn at_beginnings(&self, faults: &mut [FaultResult]) {
        let (mut place, mut sent, mut ended) = (0, 0_u64, 0_u64);
        let mut by_time: Vec<&mut FaultResult> =
            faults.iter_mut().filter(|fault| fault.happened).collect();
        by_time.sort_by_key(|fault| fault.from_ns);
        for fault in by_time {
            let at = self.place(fault.from_ns);
            while place < at {
                let unit = self.units.get(place).copied().unwrap_or_default();
                (sent, ended) = (sent + u64::from(unit.sent), ended + u64::from(unit.ended));
                place += 1;
                if place >= self.units.len() {
                    place = at;
                }
            }
            fault.in_flight = Some(sent.saturating_sub(ended));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Stamp = 1_000_000;

    fn row(sent: Stamp, end: Stamp) -> Row {
        Row { sent, end, ..Row::EMPTY }
    }

    /// Claim: those count that were sent before a fault's millisecond and had not ended before it; what never ended counts from
    /// then on, what was never sent does not; also behind the last row, and in coarser units.
    #[test]
    fn what_a_fault_met() {
        let rows = [
            row(0, 10 * MS),
            row(2 * MS, 20 * MS),
            row(5 * MS, NO_STAMP),
            row(NO_STAMP, 8 * MS),
            row(30 * MS, 31 * MS),
        ];
        let mut under_way = UnderWay::default();
        rows.iter().for_each(|row| under_way.row(row));
        let fault = |from_ns| FaultResult { from_ns, happened: true, ..FaultResult::default() };
        let times = [25 * MS, 0, 10 * MS + 5, 11 * MS, 30 * MS, 1_000_000 * MS];
        let mut faults = times.map(fault);
        under_way.at_beginnings(&mut faults);
        let met: Vec<_> = faults.iter().map(|fault| fault.in_flight).collect();
        assert_eq!(met, [1, 0, 3, 2, 1, 1].map(Some));
        let mut failed = [FaultResult { happened: false, ..fault(0) }];
        under_way.at_beginnings(&mut failed);
        assert_eq!(failed[0].in_flight, None);
        // A week.
        under_way.row(&row(7 * 86_400_000 * MS, NO_STAMP));
        assert!(under_way.units.len() <= UNITS_MAX);
        let mut late = [fault(86_400_000 * MS)];
        under_way.at_beginnings(&mut late);
        assert_eq!(late[0].in_flight, Some(1));
    }
}
