//! A running trial as it is watched: how its transactions ended, by kind, and how long they took, counted as rows pass on their
//! way to the record. From here come the metrics that are served and the decision to end a trial early. It is no part of a
//! result, and is never on the path of a transaction.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use load::{Control, Live};
use model::facts::EndedEarly;
use model::plan::{AbortPlan, SettingPlan};
use model::quantity::{show_count, show_duration};
use model::{FinalStages, Outcome, Row};

use super::settled::Settled;

/// The end of each bucket of response times, nanoseconds: 1, 2 and 5 of each power of ten, from 100 µs to 100 s.
pub const BOUNDS_NS: [i64; 19] = [
    100_000,
    200_000,
    500_000,
    1_000_000,
    2_000_000,
    5_000_000,
    10_000_000,
    20_000_000,
    50_000_000,
    100_000_000,
    200_000_000,
    500_000_000,
    1_000_000_000,
    2_000_000_000,
    5_000_000_000,
    10_000_000_000,
    20_000_000_000,
    50_000_000_000,
    100_000_000_000,
];

/// Kinds that are told apart; more share one.
pub const KINDS_MAX: usize = 200;
/// Seconds that are kept: more than any of `abort` looks back.
const SECONDS_MAX: usize = 601;
/// Times within a second are counted this finely: eight to a doubling, from a microsecond on.
const FINE: usize = 8 * 36;
const SECOND_NS: i64 = 1_000_000_000;
/// The trial is looked at this often.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// Nothing was committed for this long since the load began, or what is sent is this late: the load is hopeless.
const HOPELESS_AFTER: Duration = Duration::from_secs(10);
const HOPELESS_LAG_NS: i64 = SECOND_NS;
/// Fewer transactions than this say nothing.
const ENDED_MIN: u64 = 20;

/// Transactions that have ended so far.
#[derive(Default)]
pub struct Ended {
    /// By kind and outcome.
    pub outcomes: BTreeMap<(u32, Outcome), u64>,
    /// Response times of what was committed: how many in each bucket, the last those beyond all bounds.
    pub buckets: [u64; BOUNDS_NS.len() + 1],
    pub sum_ns: u128,
    pub committed: u64,
    pub ended: u64,
    seconds: VecDeque<Second>,
    settled: Settled,
}

/// Transactions that ended in one second.
struct Second {
    at: i64,
    ended: u64,
    committed: u64,
    times: Box<[u32; FINE]>,
}

impl Ended {
    /// Counts rows of a trial whose streams end at these stages.
    pub fn rows(&mut self, rows: &[Row], ends: FinalStages) {
        self.settled.rows(rows, ends);
        for row in rows {
            let kind = row.kind.min(u32::try_from(KINDS_MAX).expect("small"));
            *self.outcomes.entry((kind, row.outcome)).or_default() += 1;
            self.ended += 1;
            let second = self.second(row.end.div_euclid(SECOND_NS));
            second.ended += 1;
            let Some(ns) = row.response_ns(ends.of(row.stream)) else { continue };
            if row.outcome != Outcome::Committed {
                continue;
            }
            second.committed += 1;
            second.times[fine(ns)] += 1;
            self.committed += 1;
            self.sum_ns += u128::from(ns.max(0).unsigned_abs());
            self.buckets[BOUNDS_NS.partition_point(|bound| *bound < ns)] += 1;
        }
    }

    /// The entry of a second; what ended so long ago that it has none counts with the oldest.
    fn second(&mut self, at: i64) -> &mut Second {
        let place = match self.seconds.iter().rposition(|second| second.at <= at) {
            Some(place) if self.seconds[place].at == at => place,
            None if self.seconds.len() >= SECONDS_MAX => 0,
            before => {
                let place = before.map_or(0, |place| place + 1);
                let times = Box::new([0; FINE]);
                self.seconds.insert(place, Second { at, ended: 0, committed: 0, times });
                if self.seconds.len() > SECONDS_MAX {
                    self.seconds.pop_front();
                    place.saturating_sub(1)
                } else {
                    place
                }
            }
        };
        &mut self.seconds[place]
    }

    /// Transactions that ended in the last so many seconds before `now`, and in the rest of the second in which these began.
    fn since(&self, now_ns: i64, length: Duration) -> Window {
        let from = now_ns - i64::try_from(length.as_nanos()).unwrap_or(i64::MAX);
        let mut window = Window { ended: 0, committed: 0, times: [0; FINE] };
        for second in self.seconds.iter().filter(|second| (second.at + 1) * SECOND_NS > from) {
            window.ended += second.ended;
            window.committed += second.committed;
            for (sum, count) in window.times.iter_mut().zip(second.times.iter()) {
                *sum += u64::from(*count);
            }
        }
        window
    }
}

struct Window {
    ended: u64,
    committed: u64,
    times: [u64; FINE],
}

impl Window {
    /// The quantile of all that ended, in nanoseconds; what was not committed took for ever.
    fn quantile(&self, q: f64) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "a rank")]
        let rank = (q * self.ended as f64).ceil().max(1.0);
        let mut count = 0.0;
        for (place, here) in self.times.iter().enumerate() {
            #[expect(clippy::cast_precision_loss, reason = "a count")]
            let here = *here as f64;
            count += here;
            if count >= rank {
                return middle_ns(place);
            }
        }
        f64::INFINITY
    }

    fn success(&self) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "a share")]
        let share = self.committed as f64 / self.ended.max(1) as f64;
        share
    }
}

fn fine(ns: i64) -> usize {
    #[expect(clippy::cast_precision_loss, reason = "a logarithm")]
    let place = ((ns.max(1) as f64 / 1e3).log2() * 8.0).max(0.0);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "bounded")]
    let place = place as usize;
    place.min(FINE - 1)
}

fn middle_ns(place: usize) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "a small number")]
    let exponent = (place as f64 + 0.5) / 8.0;
    exponent.exp2() * 1e3
}

/// The trial that is running, as others may look at it.
#[derive(Clone)]
pub struct Watched {
    pub ended: Arc<Mutex<Ended>>,
    pub live: Arc<Live>,
}

impl Watched {
    pub fn new(live: Arc<Live>) -> Self {
        Self { ended: Arc::default(), live }
    }

    /// Says by what the trial can be settled before its end.
    pub fn settle(&self, by: Settled) {
        self.ended.lock().unwrap_or_else(PoisonError::into_inner).settled = by;
    }

    /// Counts rows on their way to the record.
    pub fn rows(&self, rows: &[Row], ends: FinalStages) {
        self.ended.lock().unwrap_or_else(PoisonError::into_inner).rows(rows, ends);
    }
}

/// Looks at a trial, and ends it where the plan says so.
pub struct Watchman {
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<Option<EndedEarly>>>,
}

impl Watchman {
    /// Begins to look. `thresholds` are those of the setting that may end it, each with its length of time.
    pub fn start(
        watched: Watched,
        control: Arc<Control>,
        setting: &SettingPlan,
        thresholds: Vec<AbortPlan>,
    ) -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let warmup_ns = i64::try_from(setting.load.warmup.as_nanos()).unwrap_or(i64::MAX);
        let ends_hopeless = setting.load.hopeless == model::plan::Hopeless::End;
        let is_over = Arc::clone(&over);
        let thread = std::thread::Builder::new().name("watch".to_owned()).spawn(move || {
            let mut late_since = None;
            while !is_over.load(Ordering::Relaxed) {
                std::thread::sleep(LOOK_EVERY);
                let now = watched.live.snapshot();
                let now_ns = i64::try_from(now.elapsed.as_nanos()).unwrap_or(i64::MAX);
                let lag = now.own_lag_p99_ns.unwrap_or(0);
                match (lag >= HOPELESS_LAG_NS, late_since) {
                    (true, None) => late_since = Some(now_ns),
                    (false, _) => late_since = None,
                    _ => {}
                }
                let ended = watched.ended.lock().unwrap_or_else(PoisonError::into_inner);
                let broken = thresholds.iter().find_map(|it| broken(it, &ended, now_ns, warmup_ns));
                let hopeless = || hopeless(&ended, now_ns, late_since.map(|since| (since, lag)));
                let settled = || ended.settled.why(now_ns);
                let why =
                    broken.or_else(settled).or_else(|| ends_hopeless.then(hopeless).flatten());
                drop(ended);
                if let Some(why) = why {
                    control.stop();
                    return Some(why);
                }
            }
            None
        });
        Self { over, thread: thread.ok() }
    }

    /// The load is over: why it was ended, if it was from here.
    pub fn finish(mut self) -> Option<EndedEarly> {
        self.over.store(true, Ordering::Relaxed);
        self.thread.take().and_then(|thread| thread.join().ok().flatten())
    }
}

/// Whether a threshold has been broken over its whole length of time, and how.
fn broken(plan: &AbortPlan, ended: &Ended, now_ns: i64, warmup_ns: i64) -> Option<EndedEarly> {
    let length_ns = i64::try_from(plan.after.as_nanos()).unwrap_or(i64::MAX);
    if now_ns < warmup_ns.saturating_add(length_ns) {
        return None;
    }
    let window = ended.since(now_ns, plan.after);
    if window.ended < ENDED_MIN {
        return None;
    }
    let (got, said) = match plan.quantile {
        None => {
            let success = window.success();
            (success, format!("{:.1} %", success * 100.0))
        }
        Some(q) => {
            let ns = window.quantile(q);
            let said =
                if ns.is_finite() { format!("{:.1} ms", ns / 1e6) } else { "∞".to_owned() };
            (ns, said)
        }
    };
    if plan.holds(got) {
        return None;
    }
    let why = format!(
        "`{}` was broken for {}: {said} of {} transactions",
        plan.expr,
        show_duration(plan.after),
        show_count(window.ended)
    );
    Some(EndedEarly { why, is_machine: false })
}

/// Whether a load cannot come to anything: nothing of it was ever committed, or it cannot be sent.
fn hopeless(ended: &Ended, now_ns: i64, late: Option<(i64, i64)>) -> Option<EndedEarly> {
    let after_ns = i64::try_from(HOPELESS_AFTER.as_nanos()).expect("seconds");
    let after = show_duration(HOPELESS_AFTER);
    if now_ns >= after_ns && ended.committed == 0 && ended.ended >= ENDED_MIN {
        let why =
            format!("none of {} transactions was committed in {after}", show_count(ended.ended));
        return Some(EndedEarly { why, is_machine: false });
    }
    let (since, lag) = late?;
    if now_ns - since < after_ns {
        return None;
    }
    let why = format!(
        "this machine cannot send at this rate: for {after} what it sent was {:.1} s late of itself (p99)",
        lag as f64 / 1e9
    );
    Some(EndedEarly { why, is_machine: true })
}

#[cfg(test)]
mod tests {
    use model::{Class, NO_STAMP};

    use super::*;

    const MS: i64 = 1_000_000;

    fn row(end_ms: i64, ms: i64, outcome: Outcome) -> Row {
        let end = end_ms * MS;
        let mut row = Row { due: end - ms * MS, sent: end - ms * MS, end, outcome, ..Row::EMPTY };
        row.marks[0] = if outcome == Outcome::Committed { end } else { NO_STAMP };
        row
    }

    fn ended(rows: &[Row]) -> Ended {
        let mut ended = Ended::default();
        rows.chunks(7).for_each(|rows| ended.rows(rows, FinalStages::all(0)));
        ended
    }

    fn seconds(n: u64) -> Duration {
        Duration::from_secs(n)
    }

    /// Claim: a window holds what ended in it and nothing else, and its quantile is that of all that ended, to within a
    /// ninth; the oldest seconds go when there are too many.
    #[test]
    fn windows() {
        let refused = Outcome::Rejected(Class::Server);
        let rows: Vec<Row> = (0..100)
            .map(|n| row(n * 100, n + 1, if n % 10 == 0 { refused } else { Outcome::Committed }))
            .collect();
        let all = ended(&rows);
        assert_eq!((all.ended, all.committed), (100, 90));
        assert_eq!(all.buckets.iter().sum::<u64>(), 90);
        let last = all.since(10_000 * MS, seconds(5));
        assert_eq!((last.ended, last.committed), (50, 45));
        assert!((last.success() - 0.9).abs() < 1e-9);
        let median = last.quantile(0.5) / 1e6;
        assert!((70.0..90.0).contains(&median), "{median}: 51 to 100 ms, a tenth of them for ever");
        assert_eq!(last.quantile(0.95), f64::INFINITY);
        let many: Vec<Row> = (0..700).map(|n| row(n * 1_000, 1, Outcome::Committed)).collect();
        let all = ended(&many);
        assert_eq!(all.seconds.len(), SECONDS_MAX);
        assert_eq!(all.since(700_000 * MS, seconds(1_000)).ended, 601);
    }

    /// Claim: a threshold ends a trial once it has been broken for its whole time after the warm-up, over enough transactions;
    /// one that holds, or is broken for less, does not.
    #[test]
    fn broken_thresholds() {
        let plan = |expr: &str| AbortPlan::parse(expr, seconds(5)).unwrap();
        let good: Vec<Row> = (0..200).map(|n| row(n * 50, 5, Outcome::Committed)).collect();
        let bad: Vec<Row> = (0..200)
            .map(|n| row(n * 50, 5, if n < 100 { Outcome::Committed } else { Outcome::Unknown }))
            .collect();
        let at = |rows: &[Row], expr: &str, warmup_s: i64| {
            broken(&plan(expr), &ended(rows), 10_000 * MS, warmup_s * 1_000 * MS).map(|it| it.why)
        };
        assert_eq!(at(&good, "success >= 99%", 0), None);
        assert_eq!(at(&good, "p99 < 100ms", 0), None);
        let said = "`success >= 99%` was broken for 5s: 0.0 % of 100 transactions";
        assert_eq!(at(&bad, "success >= 99%", 0).as_deref(), Some(said));
        assert_eq!(at(&bad, "success >= 99%", 6), None, "not yet five seconds of the window");
        assert!(at(&bad, "p50 < 1s", 0).unwrap().contains('∞'));
        assert!(at(&good, "p50 < 1ms", 0).unwrap().contains(" ms of 100 transactions"));
        assert_eq!(at(&bad[..15], "success >= 99%", 0), None, "too few to say");
    }

    /// Claim: a load of which nothing was ever committed is hopeless after ten seconds, and so is one that the machine sends a
    /// second late for ten seconds; one that had a success is not.
    #[test]
    fn hopeless_loads() {
        let failed: Vec<Row> =
            (0..100).map(|n| row(n * 100, 5, Outcome::Rejected(Class::Server))).collect();
        assert!(hopeless(&ended(&failed), 9_000 * MS, None).is_none());
        let why = hopeless(&ended(&failed), 10_000 * MS, None).unwrap();
        assert_eq!(
            (why.why.as_str(), why.is_machine),
            ("none of 100 transactions was committed in 10s", false)
        );
        let mut one = failed.clone();
        one.push(row(50, 5, Outcome::Committed));
        assert!(hopeless(&ended(&one), 60_000 * MS, None).is_none());
        assert!(hopeless(&ended(&one), 60_000 * MS, Some((51_000 * MS, 3_000 * MS))).is_none());
        let why = hopeless(&ended(&one), 60_000 * MS, Some((50_000 * MS, 3_000 * MS))).unwrap();
        assert!(why.is_machine && why.why.contains("3.0 s late"), "{}", why.why);
    }
}
