//! Rows of a trial that goes on, counted by the second in which they ended: what the live view shows of them. Memory is bounded
//! by time, never by rows, and nothing here is a result.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use load::schedule::{DueTimes, Window, is_saturating};
use model::facts::DeclaredFacts;
use model::plan::{Arrivals, SettingPlan};
use model::{FinalStages, Outcome, Row, Stamp};
use report::{LiveLatency, LiveRecord, LiveView};

const SECOND_NS: i64 = 1_000_000_000;
/// Seconds that the histories show.
const HISTORY: i64 = 60;
/// Rows reach the folder this much after they ended, at most: the engine hands them over ten times a second, and four times a
/// second they are looked for.
const ARRIVE_NS: i64 = 400_000_000;
/// Latencies are those of the last so many whole seconds.
const LATENCY_SECONDS: i64 = 5;
/// Times are counted this finely: 32 to a doubling, from 256 ns on, so that the middle of a bucket is 1.1 % off at most.
const FINE: usize = 32;
const FINE_FROM_NS: f64 = 256.0;
const BUCKETS: usize = FINE * 40;
/// Due times that one look steps through, at most: more than fall due between two looks at ten million a second. A look that
/// comes late catches up in the next ones; a row that claims to end days later costs no more.
const DUE_STEPS_MAX: u64 = 1 << 23;
/// The instrument's own lag beyond which the view says so, nanoseconds.
const OWN_LAG_BOUND_NS: i64 = 1_000_000;

/// All that was counted of a trial.
pub struct Counted {
    ends: FinalStages,
    due: Option<Due>,
    seconds: BTreeMap<i64, Second>,
    /// The newest stamp of all rows.
    newest: Option<Stamp>,
    pub ended: u64,
    pub committed: u64,
    /// Those of the main load, which the schedule makes due.
    ended_of_load: u64,
}

/// Rows that ended in one second.
#[derive(Default)]
struct Second {
    ended: u64,
    committed: u64,
    times: Times,
    own_lag: Times,
}

/// Figures of one moment, for the view and for other programs.
#[derive(Clone, Debug, Default)]
pub struct Figures {
    pub ended_per_s: f64,
    pub committed_per_s: f64,
    pub failed_per_s: f64,
    pub offered_per_s: f64,
    /// Due and not ended, where the schedule alone says what is due.
    pub not_ended: Option<u64>,
    pub p50_ns: Option<i64>,
    pub p99_ns: Option<i64>,
    pub p999_ns: Option<i64>,
    pub own_lag_p99_ns: Option<i64>,
}

impl Counted {
    pub fn new(setting: &SettingPlan, declared: &DeclaredFacts) -> Self {
        Self {
            ends: declared.final_stages(),
            due: Due::of(setting, declared),
            seconds: BTreeMap::new(),
            newest: None,
            ended: 0,
            committed: 0,
            ended_of_load: 0,
        }
    }

    /// The newest stamp of all rows: the trial is at least as old.
    pub const fn newest(&self) -> Option<Stamp> {
        self.newest
    }

    pub fn rows(&mut self, rows: &[Row]) {
        for row in rows {
            self.ended += 1;
            self.ended_of_load += u64::from(row.stream == 0);
            self.newest = self.newest.max(Some(row.end));
            let at = row.end.div_euclid(SECOND_NS);
            let is_committed = row.outcome == Outcome::Committed;
            self.committed += u64::from(is_committed);
            // Rows that ended so long ago are in the sums alone.
            let newest = self.seconds.last_key_value().map_or(at, |(newest, _)| at.max(*newest));
            if at < newest - HISTORY {
                continue;
            }
            let second = self.seconds.entry(at).or_default();
            second.ended += 1;
            if let Some(ns) = row.own_lag_ns() {
                second.own_lag.add(ns);
            }
            if is_committed {
                second.committed += 1;
                row.response_ns(self.ends.of(row.stream))
                    .into_iter()
                    .for_each(|ns| second.times.add(ns));
            }
            while self.seconds.first_key_value().is_some_and(|(first, _)| *first < newest - HISTORY)
            {
                self.seconds.pop_first();
            }
        }
    }

    /// The figures at `now`, a stamp of the trial.
    pub fn figures(&mut self, now: Stamp) -> Figures {
        let last = last_second(now);
        let of = self.seconds.get(&last);
        let (ended, committed) = of.map_or((0, 0), |second| (second.ended, second.committed));
        let (mut times, mut own_lag) = (Times::default(), Times::default());
        for (_, second) in self.seconds.range(last - LATENCY_SECONDS + 1..=last) {
            times.merge(&second.times);
            own_lag.merge(&second.own_lag);
        }
        let offered = self.due.as_mut().and_then(|due| Some((due.until(now)?, due.per_s)));
        Figures {
            ended_per_s: to_f64(ended),
            committed_per_s: to_f64(committed),
            failed_per_s: to_f64(ended - committed),
            offered_per_s: offered.map_or_else(|| to_f64(ended), |(_, per_s)| per_s),
            not_ended: offered.map(|(due, _)| due.saturating_sub(self.ended_of_load)),
            p50_ns: times.quantile(0.5),
            p99_ns: times.quantile(0.99),
            p999_ns: times.quantile(0.999),
            own_lag_p99_ns: own_lag.quantile(0.99),
        }
    }

    /// Adds what was counted to a view of the trial.
    pub fn show(&self, now: Stamp, figures: &Figures, view: LiveView) -> LiveView {
        let last = last_second(now);
        let history = (last - HISTORY + 1).max(0)..=last;
        let second = |at: i64| self.seconds.get(&at);
        let failed = self.ended - self.committed;
        let share = if self.ended == 0 { 0.0 } else { to_f64(failed) / to_f64(self.ended) };
        LiveView {
            offered_per_s: figures.offered_per_s,
            // Of what is sent and not ended the record says nothing.
            sent_per_s: figures.offered_per_s,
            committed_per_s: figures.committed_per_s,
            record: Some(LiveRecord {
                ended_per_s: figures.ended_per_s,
                failed_per_s: figures.failed_per_s,
                not_ended: figures.not_ended,
            }),
            failed,
            failed_share: share,
            own_lag_p99_ns: figures.own_lag_p99_ns,
            own_lag_is_ok: figures.own_lag_p99_ns.is_none_or(|ns| ns <= OWN_LAG_BOUND_NS),
            committed_history: history
                .clone()
                .map(|at| second(at).map_or(0.0, |it| to_f64(it.committed)))
                .collect(),
            p99_history_ns: history.map(|at| second(at)?.times.quantile(0.99)).collect(),
            latency: LiveLatency {
                of: format!("response time, last {LATENCY_SECONDS} s"),
                count: self.ended,
                inf: failed,
                quantiles: [
                    ("p50", figures.p50_ns),
                    ("p99", figures.p99_ns),
                    ("p99.9", figures.p999_ns),
                ]
                .map(|(name, ns)| (name.to_owned(), ns))
                .into(),
            },
            ..view
        }
    }
}

/// The last second of which all rows have arrived.
const fn last_second(now: Stamp) -> i64 {
    (now - ARRIVE_NS).div_euclid(SECOND_NS) - 1
}

/// Counts of times, by their logarithm. Few of the buckets are used.
#[derive(Default)]
struct Times(BTreeMap<u16, u32>);

impl Times {
    fn add(&mut self, ns: i64) {
        let count = self.0.entry(bucket(ns)).or_default();
        *count = count.saturating_add(1);
    }

    fn merge(&mut self, other: &Self) {
        for (bucket, more) in &other.0 {
            let count = self.0.entry(*bucket).or_default();
            *count = count.saturating_add(*more);
        }
    }

    fn quantile(&self, q: f64) -> Option<i64> {
        let all: u64 = self.0.values().map(|count| u64::from(*count)).sum();
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a rank")]
        let rank = ((q * to_f64(all)).ceil() as u64).max(1);
        let mut below = 0;
        let reaches = |(_, count): &(&u16, &u32)| {
            below += u64::from(**count);
            below >= rank
        };
        self.0.iter().find(reaches).map(|(bucket, _)| middle_ns(*bucket))
    }
}

fn bucket(ns: i64) -> u16 {
    #[expect(clippy::cast_precision_loss, reason = "a logarithm")]
    let place = ((ns.max(1) as f64 / FINE_FROM_NS).log2() * to_f64(FINE as u64)).max(0.0);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "bounded")]
    let place = (place as usize).min(BUCKETS - 1);
    u16::try_from(place).expect("there are fewer buckets")
}

fn middle_ns(bucket: u16) -> i64 {
    let ns = FINE_FROM_NS * ((f64::from(bucket) + 0.5) / to_f64(FINE as u64)).exp2();
    #[expect(clippy::cast_possible_truncation, reason = "a time of hours at most")]
    let ns = ns as i64;
    ns
}

/// Transactions that the schedule makes due, where answers have no say in it.
struct Due {
    times: DueTimes,
    next: Option<Stamp>,
    count: u64,
    /// Of the last second.
    per_s: f64,
    /// Counts at the last looks: stamps and counts, a second of them.
    looks: VecDeque<(Stamp, u64)>,
}

impl Due {
    fn of(setting: &SettingPlan, declared: &DeclaredFacts) -> Option<Self> {
        let load = &setting.load;
        let Arrivals::Open { schedule } = &load.arrivals else { return None };
        // A flow's further steps are due when answers have come.
        if is_saturating(schedule) || declared.kinds.iter().any(|kind| kind.step.is_some()) {
            return None;
        }
        let events_max = if load.transactions_max == 0 { u64::MAX } else { load.transactions_max };
        let window = Window { warmup: load.warmup, duration: load.duration, events_max };
        let mut times = DueTimes::new(schedule, window, declared.seed, 0, 1);
        let next = times.next().map(|(_, due)| due);
        Some(Self { times, next, count: 0, per_s: 0.0, looks: VecDeque::new() })
    }

    /// The count due at `now`; `None`: there are more than one look counts.
    fn until(&mut self, now: Stamp) -> Option<u64> {
        let most = self.count.saturating_add(DUE_STEPS_MAX);
        while self.next.is_some_and(|due| due <= now) {
            if self.count == most {
                return None;
            }
            self.count += 1;
            self.next = self.times.next().map(|(_, due)| due);
        }
        while self.looks.len() > 1 && self.looks[1].0 <= now - SECOND_NS {
            self.looks.pop_front();
        }
        let (then, before) = self.looks.front().copied().unwrap_or((0, 0));
        if now > then {
            let ns = u64::try_from(now - then).expect("later");
            self.per_s = to_f64(self.count - before) / Duration::from_nanos(ns).as_secs_f64();
        }
        self.looks.push_back((now, self.count));
        Some(self.count)
    }
}

#[expect(clippy::cast_precision_loss, reason = "counts below 2^53")]
const fn to_f64(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use model::facts::{KindFacts, StepFacts};
    use model::plan::LoadPlan;
    use model::quantity::Rate;
    use model::{Class, NO_STAMP};

    use super::*;

    const MS: i64 = 1_000_000;

    /// 100/s for ten seconds.
    fn counted(declared: &DeclaredFacts) -> Counted {
        counted_of(100, 10, declared)
    }

    fn counted_of(per_s: u64, seconds: u64, declared: &DeclaredFacts) -> Counted {
        let arrivals = Arrivals::constant(Rate::per_second(per_s));
        let load = LoadPlan::plain(arrivals, 4, Duration::from_secs(seconds));
        Counted::new(&SettingPlan::plain("echo", load), declared)
    }

    fn row(due_ms: i64, ms: i64, outcome: Outcome) -> Row {
        let (due, end) = (due_ms * MS, (due_ms + ms) * MS);
        let mut row = Row { due, ready: due, sent: due + 50_000, end, outcome, ..Row::EMPTY };
        row.marks[0] = if outcome == Outcome::Committed { end } else { NO_STAMP };
        row
    }

    /// Claim: rates are those of the last whole second that has arrived, latencies of the last five, what is due and has not
    /// ended is counted by the schedule, and the sums are of all rows.
    #[test]
    fn figures_of_the_last_seconds() {
        let mut counted = counted(&DeclaredFacts::default());
        let refused = Outcome::Rejected(Class::Server);
        let of = |n: i64| row(n * 10, 2, if n % 10 == 3 { refused } else { Outcome::Committed });
        let rows: Vec<Row> = (0..350).map(of).collect();
        rows.chunks(7).for_each(|rows| counted.rows(rows));
        assert_eq!(
            (counted.ended, counted.committed, counted.newest()),
            (350, 315, Some(3_492 * MS))
        );
        let now = counted.figures(3_600 * MS);
        assert_eq!((now.ended_per_s, now.committed_per_s, now.failed_per_s), (100.0, 90.0, 10.0));
        assert_eq!(now.not_ended, Some(11), "361 were due");
        for ns in [now.p50_ns, now.p99_ns, now.p999_ns] {
            assert!((ns.expect("some were committed") - 2 * MS).abs() < 2 * MS / 50, "{ns:?}");
        }
        let lag = now.own_lag_p99_ns.expect("some were sent");
        assert!((lag - 50_000).abs() < 1_000, "{lag}");
        // A system that stands still: what falls due is seen, and nothing else.
        let later = counted.figures(9_600 * MS);
        assert_eq!((later.ended_per_s, later.p99_ns, later.not_ended), (0.0, None, Some(611)));
        assert!((later.offered_per_s - 100.0).abs() < 1.0, "{}", later.offered_per_s);
        let view = counted.show(9_600 * MS, &later, LiveView::default());
        assert_eq!(view.committed_history, [90.0, 90.0, 90.0, 45.0, 0.0, 0.0, 0.0, 0.0, 0.0]);
    }

    /// Claim: what a trial keeps is bounded by time, whatever its length; rows of long ago count in the sums.
    #[test]
    fn bounded_by_time() {
        let mut counted = counted(&DeclaredFacts::default());
        let rows: Vec<Row> = (0..1_000).map(|n| row(n * 1_000, 1, Outcome::Committed)).collect();
        counted.rows(&rows);
        counted.rows(&rows[..1]);
        assert_eq!(counted.ended, 1_001);
        assert_eq!(counted.seconds.len(), usize::try_from(HISTORY + 1).expect("small"));
    }

    /// Claim: a look counts a bounded number of due times, says nothing of what it has not counted, and catches up later.
    #[test]
    fn looks_have_an_end() {
        const DAY_S: u64 = 86_400;
        let mut far = counted_of(1_000_000_000, DAY_S, &DeclaredFacts::default());
        let day_later = i64::try_from(DAY_S).expect("small") * SECOND_NS;
        for look in 1..=3 {
            assert_eq!(far.figures(day_later).not_ended, None);
            assert_eq!(far.due.as_ref().map(|due| due.count), Some(look * DUE_STEPS_MAX));
        }
        let mut late = counted_of(DUE_STEPS_MAX * 3 / 2, 10, &DeclaredFacts::default());
        let now = [late.figures(SECOND_NS - 1), late.figures(SECOND_NS - 1)];
        assert_eq!(now.map(|it| it.not_ended), [None, Some(DUE_STEPS_MAX * 3 / 2)]);
    }

    /// Claim: where answers decide what falls due, nothing is said of what has not ended.
    #[test]
    fn what_is_due_by_answers() {
        let step = StepFacts { flow: "f".into(), is_first: true, is_last: false };
        let kinds = vec![KindFacts::of_flow("first", step)];
        let mut of_flow = counted(&DeclaredFacts { kinds, ..DeclaredFacts::default() });
        assert_eq!(of_flow.figures(5_000 * MS).not_ended, None);
        assert_eq!(counted(&DeclaredFacts::default()).figures(5_000 * MS).not_ended, Some(501));
    }
}
