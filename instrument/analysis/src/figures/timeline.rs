//! The whole trial in columns of time, warm-up and drain included: what the page draws of it, while rows stream by.
//!
//! Its size depends on the length of the trial, never on the number of rows. It must not decide anything: audits
//! and thresholds rest on the measured window, this on everything.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use model::picture::{SLOWEST_MAX, SlowTransaction, density_bucket};
use model::result::{TIMELINE_COLUMNS_MAX, Timeline, TimelineColumn, TrialResult};
use model::{NO_STAMP, Outcome, Row, STAGES_MAX, Stamp, TxId};
use stats::SparseHistogram;
use stats::carry::Carry;

use crate::figures::block::Values;
use crate::figures::grid::Cells;
use crate::figures::known::Known;
use crate::figures::latency::BEYOND_MIN;
use crate::figures::part::Part;
use crate::figures::told;

/// Lengths of a column that people can read off an axis, ns; the shortest that needs few enough columns is taken.
const WIDTHS_NS: [i64; 14] = {
    const S: i64 = 1_000_000_000;
    const H: i64 = 3_600 * S;
    [
        S / 5,
        S / 2,
        S,
        2 * S,
        5 * S,
        10 * S,
        15 * S,
        30 * S,
        60 * S,
        120 * S,
        300 * S,
        900 * S,
        H,
        6 * H,
    ]
};

/// The most columns that are made: narrower ones are drawn as zigzags that say less.
const COLUMNS_MAX: i64 = 120;

/// One column while rows come in.
#[derive(Clone, Debug, Default)]
struct Cell {
    due: u64,
    sent: u64,
    ended: u64,
    /// By [`Outcome`], in the order of its words; a handful.
    outcomes: Vec<(Outcome, u64)>,
    reached: [u64; STAGES_MAX],
    response: SparseHistogram,
    own_lag: SparseHistogram,
    /// The slowest so far, in no order.
    slowest: Vec<Row>,
    /// The place of the fastest of `slowest`, once there are as many as are kept.
    bar: (i64, Reverse<TxId>),
}

/// All columns.
#[derive(Clone, Debug)]
pub(crate) struct TimelineTally {
    width: i64,
    /// Of the last column.
    last: i64,
    stream: u8,
    final_stage: usize,
    cells: Vec<Cell>,
    places: Places,
    /// Lags and response times of one block.
    values: [Values; 2],
}

/// Columns by stamp, one for each kind of it.
#[derive(Clone, Debug)]
struct Places {
    /// The last column.
    last: usize,
    due: Cells,
    sent: Cells,
    marks: [Cells; STAGES_MAX],
    end: Cells,
}

impl Places {
    fn new(width: i64, columns: usize) -> Self {
        let cells = Cells::new(0, width);
        let last = columns.saturating_sub(1);
        Self { last, due: cells, sent: cells, marks: [cells; STAGES_MAX], end: cells }
    }
}

/// The column of a stamp; what lies outside belongs to the first or last.
#[inline]
fn column(cells: &mut Cells, last: usize, stamp: Stamp) -> usize {
    cells.index(stamp).unwrap_or(0).min(last)
}

/// Counts stamps by column. Neighbours mostly fall into the same one, which is then written once for all of them.
#[inline]
fn runs(
    cells: &mut Cells,
    last: usize,
    stamps: impl Iterator<Item = Stamp>,
    mut add: impl FnMut(usize, u64),
) {
    let (mut now, mut count) = (0, 0);
    for stamp in stamps.filter(|stamp| *stamp != NO_STAMP) {
        let next = column(cells, last, stamp);
        if next != now {
            add(now, count);
            (now, count) = (next, 0);
        }
        count += 1;
    }
    add(now, count);
}

impl Part for TimelineTally {
    fn of_trial(trial: &Known<'_>) -> Self {
        Self::new(trial.last, trial.stream, trial.final_stage)
    }

    fn block(&mut self, rows: &[&Row]) {
        self.rows(rows);
    }

    fn carry(&mut self, it: &mut Carry<'_>) {
        self.cells.iter_mut().for_each(|cell| cell.carry(it));
    }

    fn add_to(&mut self, trial: &Known<'_>, result: &mut TrialResult) {
        result.timeline = self.timeline(trial.facts.declared.stages.len());
    }
}

impl TimelineTally {
    /// From the trial's start to `end`; latencies are of `stream`, to `final_stage`.
    pub fn new(end: Stamp, stream: u8, final_stage: usize) -> Self {
        let length = end.clamp(0, i64::MAX / 4);
        let width = width_of(length);
        // The rest after the last whole column belongs to it: alone, a few transactions would be a rate.
        let columns = length.div_euclid(width).max(i64::from(length > 0));
        let columns = columns.min(i64::try_from(TIMELINE_COLUMNS_MAX).expect("a small number"));
        let last = length - width * (columns - 1).max(0);
        let columns = usize::try_from(columns).expect("a small number");
        Self {
            width,
            last,
            stream,
            final_stage,
            cells: vec![Cell::default(); columns],
            places: Places::new(width, columns),
            values: Default::default(),
        }
    }

    /// Adds plausible rows of one block, of any stream and any phase.
    pub fn rows(&mut self, rows: &[&Row]) {
        if self.cells.is_empty() {
            return;
        }
        self.passed(rows);
        let (last, mut due) = (self.places.last, self.places.due);
        let mut column_of = |row: &Row| column(&mut due, last, row.due);
        for run in rows.chunk_by(|a, b| column_of(a) == column_of(b)) {
            self.of_column(run);
        }
    }

    /// Adds rows that were due in one column.
    fn of_column(&mut self, rows: &[&Row]) {
        let cell = &mut self.cells[column(&mut self.places.due, self.places.last, rows[0].due)];
        cell.due += rows.len() as u64;
        let [lags, responses] = self.values.each_mut().map(Values::clear);
        for row in rows {
            let lag = row.own_lag_ns();
            lags.push_if(lag.is_some(), lag.unwrap_or(0));
            if row.stream == self.stream {
                let response = row.response_ns(self.final_stage);
                responses.push_if(response.is_some(), response.unwrap_or(0));
                cell.consider(row);
            }
        }
        cell.own_lag.record_all(lags.all());
        cell.response.record_all(responses.all());
    }

    /// Counts when they were sent, reached their stages and ended.
    fn passed(&mut self, rows: &[&Row]) {
        let (cells, places) = (&mut self.cells, &mut self.places);
        let last = places.last;
        runs(&mut places.sent, last, rows.iter().map(|row| row.sent), |column, count| {
            cells[column].sent += count;
        });
        for (stage, place) in places.marks.iter_mut().enumerate() {
            runs(place, last, rows.iter().map(|row| row.marks[stage]), |column, count| {
                cells[column].reached[stage] += count;
            });
        }
        let (mut now, mut count) = ((0, Outcome::Committed), 0);
        for row in rows {
            let next = (column(&mut places.end, last, row.end), row.outcome);
            if next != now {
                cells[now.0].ended(now.1, count);
                (now, count) = (next, 0);
            }
            count += 1;
        }
        cells[now.0].ended(now.1, count);
    }

    /// The columns, for the result.
    pub fn timeline(&self, stages: usize) -> Timeline {
        let mut outstanding = 0_i64;
        let columns = self.cells.iter().map(|cell| {
            let whole = |count: u64| i64::try_from(count).expect("rows of one trial");
            outstanding += whole(cell.due) - whole(cell.ended);
            let committed = |(outcome, _): &&(Outcome, u64)| *outcome == Outcome::Committed;
            let mut failed = BTreeMap::new();
            for (outcome, count) in cell.outcomes.iter().filter(|one| !committed(one)) {
                failed.insert(outcome.word().to_owned(), *count);
            }
            TimelineColumn {
                offered: cell.due,
                sent: cell.sent,
                committed: cell.outcomes.iter().filter(committed).map(|(_, count)| count).sum(),
                failed,
                reached: cell.reached[..stages.min(STAGES_MAX)].to_vec(),
                outstanding,
                p50_ns: well_founded(&cell.response, 0.5),
                p99_ns: well_founded(&cell.response, 0.99),
                p999_ns: well_founded(&cell.response, 0.999),
                max_ns: cell.response.moments().max(),
                own_lag_p99_ns: cell.own_lag.quantile(0.99),
            }
        });
        let columns = columns.collect();
        Timeline { start_ns: 0, width_ns: self.width, last_ns: self.last, columns }
    }

    /// By column: (bucket, count), ascending.
    pub fn density(&self) -> Vec<Vec<(u8, u32)>> {
        self.cells
            .iter()
            .map(|cell| {
                let mut cells: Vec<(u8, u32)> = Vec::new();
                for (value, count) in cell.response.buckets() {
                    let bucket = density_bucket(value);
                    match cells.last_mut() {
                        Some(last) if last.0 == bucket => last.1 = last.1.saturating_add(count),
                        _ => cells.push((bucket, count)),
                    }
                }
                cells
            })
            .collect()
    }

    /// The slowest of each column, by column, then slowest first.
    pub fn slowest(&self) -> Vec<SlowTransaction> {
        let mut all = Vec::new();
        for (column, cell) in self.cells.iter().enumerate() {
            let mut rows = cell.slowest.clone();
            rows.sort_by_key(|row| Reverse(slowness(row)));
            all.extend(rows.into_iter().map(|row| SlowTransaction { column, row }));
        }
        all
    }
}

impl Cell {
    fn carry(&mut self, it: &mut Carry<'_>) {
        it.sum(&mut self.due);
        it.sum(&mut self.sent);
        for at in 0..it.length(self.outcomes.len(), usize::from(u8::MAX)) {
            let (outcome, count) = self.outcomes.get(at).copied().unwrap_or((Outcome::Shed, 0));
            let (outcome, count) = (told::outcome(it, outcome), it.told(count));
            it.adding(|| self.ended(outcome, count));
        }
        it.sums(&mut self.reached);
        self.response.carry(it);
        self.own_lag.carry(it);
        for at in 0..it.length(self.slowest.len(), SLOWEST_MAX) {
            let row = told::row(it, self.slowest.get(at).unwrap_or(&Row::EMPTY));
            it.adding(|| self.consider(&row));
        }
    }

    fn ended(&mut self, outcome: Outcome, count: u64) {
        if count == 0 {
            return;
        }
        self.ended = self.ended.saturating_add(count);
        match self.outcomes.iter_mut().find(|(known, _)| *known == outcome) {
            Some((_, all)) => *all = all.saturating_add(count),
            None => self.outcomes.push((outcome, count)),
        }
    }

    /// Keeps the row if it is among the slowest, whatever order they come in.
    #[inline]
    fn consider(&mut self, row: &Row) {
        if self.slowest.len() == SLOWEST_MAX && slowness(row) <= self.bar {
            return;
        }
        self.keep(row);
    }

    fn keep(&mut self, row: &Row) {
        if self.slowest.len() < SLOWEST_MAX {
            self.slowest.push(*row);
        } else {
            let fastest = self.slowest.iter_mut().min_by_key(|kept| slowness(kept));
            *fastest.expect("as many as are kept") = *row;
        }
        self.bar = self.slowest.iter().map(slowness).min().expect("one was just kept");
    }
}

/// From when it was due to when its outcome was known; of equals the first is the slower.
#[inline]
fn slowness(row: &Row) -> (i64, Reverse<TxId>) {
    (row.end - row.due, Reverse(row.tx))
}

fn width_of(length: i64) -> i64 {
    let fits = |width: &&i64| length <= **width * COLUMNS_MAX;
    // Beyond the list (30 days): as wide as it takes.
    WIDTHS_NS.iter().find(fits).copied().unwrap_or(length / COLUMNS_MAX + 1)
}

/// A quantile of a column; none where fewer than ten samples lie beyond it: it would be the largest by another name.
fn well_founded(of: &SparseHistogram, q: f64) -> Option<i64> {
    of.quantile(q).filter(|_| of.beyond(q) >= BEYOND_MIN)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Trial, row};

    const MS: i64 = 1_000_000;

    /// Claim: a column is as wide as people read off an axis, there are never too many, and the last reaches to the end.
    #[test]
    fn widths() {
        for (ms, width_ms, columns, last_ms) in [
            (50, 200, 1, 50),
            (2_500, 200, 12, 300),
            (10_000, 200, 50, 200),
            (10_001, 200, 50, 201),
            (24_000, 200, 120, 200),
            (25_000, 500, 50, 500),
            (66_000, 1_000, 66, 1_000),
            (480_000, 5_000, 96, 5_000),
            (1_200_000, 10_000, 120, 10_000),
            (1_201_000, 15_000, 80, 16_000),
            (86_400_000, 900_000, 96, 900_000),
        ] {
            let mut tally = TimelineTally::new(ms * MS, 0, 0);
            tally.rows(&[&row(0, (ms - 1) * MS, MS / 2, Outcome::Committed)]);
            let line = tally.timeline(1);
            let found = (line.width_ns / MS, line.columns.len(), line.last_ns / MS);
            assert_eq!(found, (width_ms, columns, last_ms), "{ms} ms");
            assert_eq!(line.end_ns(), ms * MS);
            assert_eq!(line.columns.last().map(|column| column.offered), Some(1), "{ms} ms");
        }
        assert!(TimelineTally::new(i64::MAX, 0, 0).cells.len() <= TIMELINE_COLUMNS_MAX);
        assert_eq!(TimelineTally::new(NO_STAMP, 0, 0).cells.len(), 0);
    }

    /// Claim: a percentile of a column stands there only where ten samples lie beyond it, and the largest always does.
    #[test]
    fn few_samples_have_no_percentile() {
        for (count, [p50, p99, p999]) in [
            (10_u64, [false, false, false]),
            (100, [true, false, false]),
            (2_000, [true, true, false]),
            (20_000, [true, true, true]),
        ] {
            let mut tally = TimelineTally::new(10_000 * MS, 0, 0);
            for tx in 0..count {
                let response = 1_000_000 + i64::try_from(tx * 1_000).expect("small");
                tally.rows(&[&row(tx, 50 * MS, response, Outcome::Committed)]);
            }
            let column = &tally.timeline(1).columns[0];
            let found = [column.p50_ns, column.p99_ns, column.p999_ns].map(|it| it.is_some());
            assert_eq!(found, [p50, p99, p999], "{count}");
            assert!(column.max_ns.is_some(), "{count}");
        }
    }

    /// Claim: over all columns every row is offered once and ends once, and nothing is outstanding after the last.
    #[test]
    fn columns_conserve_rows() {
        let mut trial = Trial::clean();
        trial.rows[77].outcome = Outcome::Unknown;
        trial.rows[77].marks = [NO_STAMP; 4];
        let timeline = trial.result().timeline;
        let sum = |f: &dyn Fn(&TimelineColumn) -> u64| timeline.columns.iter().map(f).sum::<u64>();
        assert_eq!(sum(&|column| column.offered), 10_000);
        assert_eq!(sum(&|column| column.sent), 10_000);
        assert_eq!(sum(&|column| column.committed), 9_999);
        assert_eq!(sum(&|column| column.failed.get("unknown").copied().unwrap_or(0)), 1);
        assert_eq!(timeline.columns.last().map(|column| column.outstanding), Some(0));
    }

    /// Claim: the eight slowest of a column are kept, slowest first, whatever order they come in.
    #[test]
    fn the_slowest_are_kept() {
        let mut tally = TimelineTally::new(10_000 * MS, 0, 0);
        for tx in 0..1_000_u64 {
            let mixed = i64::try_from(tx * 7_919 % 1_000).expect("small");
            tally.rows(&[&row(tx, 50 * MS, (mixed + 1) * 1_000, Outcome::Committed)]);
        }
        let slowest = tally.slowest();
        let lengths: Vec<i64> = slowest.iter().map(|slow| slowness(&slow.row).0 / 1_000).collect();
        assert_eq!(lengths, (993..=1_000).rev().collect::<Vec<_>>());
        let counted: u32 = tally.density()[0].iter().map(|(_, count)| count).sum();
        assert_eq!(counted, 1_000);
    }
}
