//! How many rows lie beyond the limits of thresholds: counted while the rows stream through, by slot of time, as they were
//! measured and less the instrument's own lag of each.
//!
//! It must never estimate: what is compared with a limit is every row that was due. How far chance reaches is said by
//! [`stats::exceedance`].

use model::plan::{Level, ThresholdPlan};
use model::quantity::{show_count, show_ns};
use model::result::{Answer, Counted};
use model::{NO_STAMP, Outcome, Row};
use stats::carry::Carry;
use stats::exceedance::{Counts, Decision, Ruling, decide, needed_for, rule};
use stats::{Histogram, Tail};

use crate::figures::float::to_f64;
use crate::figures::known::Known;
use crate::figures::latency::{Latencies, is_answer};
use crate::figures::part::Part;
use crate::figures::received::Received;
use crate::judge::expression::{Comparison, Operator, parse};
use crate::names::metric_names::{Name, Of, OfStage, Word, parse as parse_name};

/// How sure a threshold that asks for nothing is told to be.
const CONFIDENCE: f64 = 0.95;

/// The limits of a trial's thresholds.
#[derive(Clone, Debug, Default)]
pub(crate) struct Beyond {
    limits: Vec<Limit>,
    /// The length of the window in seconds.
    window_s: f64,
}

/// A comparison that is decided by counting.
#[derive(Clone, Debug)]
struct Limit {
    /// As written.
    text: String,
    what: What,
    /// The share that may lie beyond it.
    allowed_share: f64,
    slots: Vec<Slot>,
    /// Of those that are beyond without the lag of sending, the share that is without that of receiving, too.
    left: f64,
    /// Those that reached the stage: where none did, all times of all due are infinite.
    reached: u64,
    /// The distribution below the limit.
    tail: Option<Tail>,
}

/// The rows that a limit counts as beyond it.
#[derive(Clone, Copy, Debug, PartialEq)]
enum What {
    /// Transactions that were not committed.
    Failures,
    /// Times longer than this, or exactly this where that is beyond, too.
    Times { of: Of, stage: usize, limit_ns: f64, or_equal: bool },
}

/// The transactions that were due in a slot of time.
#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    all: u64,
    beyond: u64,
    less_own: u64,
    /// Never answered or never sent.
    missing: u64,
    /// Refused, and counted by the time to that answer.
    refused: u64,
    /// Failed, and of no time.
    certain: u64,
}

impl Part for Beyond {
    fn of_trial(trial: &Known<'_>) -> Self {
        Self::new(trial)
    }

    fn measured(&mut self, slot: usize, rows: &[&Row]) {
        self.rows(slot, rows);
    }

    fn carry(&mut self, it: &mut Carry<'_>) {
        for limit in &mut self.limits {
            it.sum(&mut limit.reached);
            for slot in &mut limit.slots {
                let Slot { all, beyond, less_own, missing, refused, certain } = slot;
                let counts = [all, beyond, less_own, missing, refused, certain];
                counts.into_iter().for_each(|count| it.sum(count));
            }
        }
    }
}

impl Beyond {
    fn new(trial: &Known<'_>) -> Self {
        let (stages, grid) = (&trial.facts.declared.stages, &trial.grid);
        let mut limits: Vec<Limit> = Vec::new();
        for comparison in trial.thresholds.iter().flat_map(|it| parse(&it.expr).unwrap_or_default())
        {
            let known = limits.iter().any(|it| it.text == comparison.text);
            if let Some((what, allowed_share)) = countable(&comparison, stages, trial.final_stage)
                && !known
            {
                let slots = vec![Slot::default(); grid.slots];
                limits.push(Limit {
                    text: comparison.text,
                    what,
                    allowed_share,
                    slots,
                    left: 1.0,
                    reached: 0,
                    tail: None,
                });
            }
        }
        Self { limits, window_s: grid.seconds() }
    }

    /// Takes up what the latencies say of those below each limit, when all rows are counted.
    pub fn below(&mut self, latencies: &Latencies) {
        for limit in &mut self.limits {
            if let What::Times { of, stage, .. } = limit.what {
                let times = match of {
                    Of::Service => latencies.service(stage),
                    _ => latencies.response(stage),
                };
                limit.tail = times.and_then(Tail::of);
            }
        }
    }

    /// Takes up what is known of how late answers were read, when all rows are counted. Where the kernel stamped an answer it
    /// is in no time. Of the others that are beyond a limit, the same share is taken as within it without that as of the
    /// stamped ones, had they had no stamp.
    pub fn received(&mut self, received: &Received) {
        if received.unstamped == 0 {
            return;
        }
        for limit in &mut self.limits {
            let beyond = |times: &Histogram| -> u64 {
                let late = times.buckets().filter(|(ns, _)| limit.what.is_beyond(*ns));
                late.map(|(_, count)| count).sum()
            };
            let (with, without) = (beyond(&received.as_read), beyond(&received.response));
            let all = limit.slots.iter().map(|slot| slot.less_own.saturating_sub(slot.missing));
            let all = all.sum::<u64>();
            if with > 0 && all > 0 {
                let stamped = to_f64(without.min(all)) / to_f64(all);
                let stays = (to_f64(without) / to_f64(with)).min(1.0);
                limit.left = stamped + (1.0 - stamped) * stays;
            }
        }
    }

    /// Adds rows of the measured stream that were due in one slot.
    pub fn rows(&mut self, slot: usize, rows: &[&Row]) {
        for limit in &mut self.limits {
            if let Some(slot) = limit.slots.get_mut(slot) {
                rows.iter().for_each(|row| limit.reached += u64::from(slot.row(limit.what, row)));
            }
        }
    }

    /// The answer of the counts to a comparison; `None` where it is not decided by counting, or nothing was counted.
    pub fn answer(
        &self,
        comparison: &Comparison,
        threshold: &ThresholdPlan,
    ) -> Option<(Answer, Counted)> {
        let limit = self.limits.iter().find(|it| it.text == comparison.text)?;
        limit.answer(threshold, self.window_s)
    }

    /// The same where only those count as beyond that failed whoever was late; `None`, too, where times decide.
    pub fn certain(
        &self,
        comparison: &Comparison,
        threshold: &ThresholdPlan,
    ) -> Option<(Answer, Counted)> {
        let limit = self.limits.iter().find(|it| it.text == comparison.text)?;
        limit.certain()?.answer(threshold, self.window_s)
    }
}

/// The rows that a comparison counts, and the share of it that may be beyond.
fn countable(
    comparison: &Comparison,
    stages: &[String],
    final_stage: usize,
) -> Option<(What, f64)> {
    let (name, operator, bound) = comparison.with_constant()?;
    let place = |stage: &Option<String>| match stage {
        Some(stage) => stages.iter().position(|it| it == stage),
        None => Some(final_stage),
    };
    let (of, word, stage) = match parse_name(name)? {
        Name::Plain(entry) if entry.name == "success" => {
            let is_promise = match operator {
                Operator::AtLeast => true,
                Operator::Equal => bound >= 1.0,
                _ => false,
            };
            return is_promise.then(|| (What::Failures, rounded(1.0 - bound).max(0.0)));
        }
        Name::Distribution { of: Of::SendLag | Of::OwnLag, .. } => return None,
        Name::Distribution { of, word, stage } => (of, word, place(&stage)?),
        Name::Stage { stage, number: OfStage::Latency(word) } => {
            (Of::Due, word, place(&Some(stage))?)
        }
        _ => return None,
    };
    let allowed_share = match word {
        Word::Percentile(q) => rounded(1.0 - q),
        Word::Moment("max") => 0.0,
        Word::Moment(_) => return None,
    };
    let or_equal = match operator {
        Operator::Less => true,
        Operator::AtMost => false,
        _ => return None,
    };
    Some((What::Times { of, stage, limit_ns: bound, or_equal }, allowed_share))
}

impl What {
    #[inline]
    fn is_beyond(self, ns: i64) -> bool {
        match self {
            Self::Failures => false,
            Self::Times { limit_ns, or_equal: true, .. } => to_f64(ns) >= limit_ns,
            Self::Times { limit_ns, or_equal: false, .. } => to_f64(ns) > limit_ns,
        }
    }
}

/// A share as people wrote it: 1 − 0.9 is 0.09999999999999998.
fn rounded(share: f64) -> f64 {
    (share * 1e12).round() / 1e12
}

impl Slot {
    /// Adds a row; whether it reached the stage.
    #[inline]
    fn row(&mut self, what: What, row: &Row) -> bool {
        let has_failed = row.outcome != Outcome::Committed;
        self.certain += u64::from(has_failed && !row.outcome.is_of_time());
        let What::Times { of, stage, .. } = what else {
            let has_failed = u64::from(has_failed);
            self.all += 1;
            self.beyond += has_failed;
            self.less_own += has_failed;
            self.missing += u64::from(!is_answer(row.outcome));
            return true;
        };
        let has_reached = row.marks[stage] != NO_STAMP;
        let is_refused =
            !has_reached && row.outcome != Outcome::Committed && is_answer(row.outcome);
        let end = match (has_reached, is_refused) {
            (true, _) => Some(row.marks[stage]),
            (false, true) if of != Of::Committed => Some(row.end),
            _ => None,
        };
        if end.is_none() && matches!(of, Of::Committed | Of::Answered) {
            return has_reached;
        }
        let since = if of == Of::Service { row.sent } else { row.due };
        let time = end.filter(|_| since != NO_STAMP).map(|end| end - since);
        // Service times begin when the instrument has sent: what it sent late is not in them.
        let own = if of == Of::Service { 0 } else { row.instrument_lag_ns() };
        self.all += 1;
        self.beyond += u64::from(time.is_none_or(|ns| what.is_beyond(ns)));
        self.less_own += u64::from(time.is_none_or(|ns| what.is_beyond(ns - own)));
        self.missing += u64::from(time.is_none());
        self.refused += u64::from(is_refused);
        has_reached
    }
}

impl Limit {
    /// The counts of what failed whoever was late. A time is made of it only where nothing else came, and it is for ever.
    fn certain(&self) -> Option<Self> {
        let is_all = self.reached == 0 && self.slots.iter().all(|slot| slot.certain == slot.all);
        let slot = |it: &Slot| Slot { beyond: it.certain, less_own: it.certain, missing: 0, ..*it };
        let slots = self.slots.iter().map(slot).collect();
        let text = self.text.clone();
        let is_known = self.what == What::Failures || is_all;
        is_known.then_some(Self { text, slots, tail: None, left: 1.0, ..*self })
    }

    fn answer(&self, threshold: &ThresholdPlan, window_s: f64) -> Option<(Answer, Counted)> {
        let sum = |of: fn(&Slot) -> u64| self.slots.iter().map(of).sum::<u64>();
        let all = sum(|slot| slot.all);
        if all == 0 {
            return None;
        }
        // A system that refuses everything at once is not fast.
        let is_of_all = matches!(self.what, What::Times { of: Of::Due | Of::Service, .. });
        let is_infinite = is_of_all && self.reached == 0;
        let below = match self.what {
            What::Times { limit_ns, .. } => self.tail.as_ref().map(|tail| (tail, limit_ns)),
            What::Failures => None,
        };
        let sure = threshold.confidence.unwrap_or(CONFIDENCE);
        let decided = |of: &dyn Fn(&Slot) -> u64| {
            let beyond = |slot: &Slot| if is_infinite { slot.all } else { of(slot) };
            let counts = |slot: &Slot| Counts { beyond: beyond(slot), all: slot.all };
            let counts: Vec<Counts> = self.slots.iter().map(counts).collect();
            let beyond = counts.iter().map(|it| it.beyond).sum::<u64>();
            (beyond, self.decided(decide(&counts, self.allowed_share, below, sure)))
        };
        let (beyond, as_measured) = decided(&|slot| slot.beyond);
        let (beyond_less_own, less_own) = decided(&|slot| {
            slot.missing + self.left_of(slot.less_own.saturating_sub(slot.missing))
        });
        let confidence = threshold.confidence.filter(|_| self.allowed_share > 0.0);
        let answer = match rule(&as_measured, &less_own, confidence) {
            // What only marks a setting goes by the counts alone: that is where saturation begins, as far as anybody knows.
            _ if threshold.level == Level::Saturated && as_measured.is_beyond => Answer::Failed,
            _ if threshold.level == Level::Saturated => Answer::Met,
            Ruling::Met => Answer::Met,
            Ruling::Failed => Answer::Failed,
            Ruling::Undecided => Answer::Undecided,
            Ruling::Invalid => Answer::Invalid,
        };
        let windows = as_measured.windows_to_decide.zip(less_own.windows_to_decide);
        let windows = windows.map(|(a, b)| a.max(b));
        let counted = Counted {
            comparison: self.text.clone(),
            limit_ns: match self.what {
                What::Failures => None,
                What::Times { limit_ns, .. } => Some(limit_ns),
            },
            all,
            beyond,
            beyond_less_own,
            refused: sum(|slot| slot.refused),
            allowed_share: self.allowed_share,
            chance: as_measured.chance.max(less_own.chance),
            silent_s: self
                .silent_slots()
                .map(|slots| window_s * to_f64(slots) / to_f64(self.slots.len())),
            seconds_to_decide: windows.map(|windows| windows * window_s),
            needed: windows.map(|windows| to_u64((windows * to_f64(all) - 1e-6).ceil())),
        };
        Some((answer, counted))
    }

    fn left_of(&self, count: u64) -> u64 {
        if self.left < 1.0 { to_u64((to_f64(count) * self.left).round()) } else { count }
    }

    /// A system that answers nothing any more has failed for good: that is no excursion that chance has put there.
    fn decided(&self, decision: Decision) -> Decision {
        match self.silent_slots() {
            Some(_) if decision.is_beyond => Decision { chance: 0.0, ..decision },
            _ => decision,
        }
    }

    /// How many slots at the end have no answer at all, where what was due in them is more than may be beyond.
    fn silent_slots(&self) -> Option<usize> {
        let all: u64 = self.slots.iter().map(|slot| slot.all).sum();
        let silent = self.slots.iter().rev().take_while(|slot| slot.missing == slot.all);
        let (slots, due) =
            silent.fold((0_usize, 0), |(slots, due), slot| (slots + 1, due + slot.all));
        let is_much = due >= SILENT_MIN && to_f64(due) > self.allowed_share * to_f64(all);
        is_much.then_some(slots)
    }
}

/// So many in a row without an answer up to the end are a system that is dead.
const SILENT_MIN: u64 = 10;

/// The counts in words; empty where the answer is plain.
pub(crate) fn in_words(answer: Answer, counted: &Counted, confidence: Option<f64>) -> String {
    let beyond = match counted.limit_ns {
        Some(ns) => format!("beyond {}", show_ns(to_i64(ns))),
        None => "failed".to_owned(),
    };
    let (count, all) = (show_count(counted.beyond), show_count(counted.all));
    let allowed = show_count(to_u64((counted.allowed_share * to_f64(counted.all)).floor()));
    let counts = format!("{count} of {all} {beyond}, {allowed} allowed");
    let less_own = match counted.beyond_less_own {
        same if same == counted.beyond => String::new(),
        less => format!(", {} without the instrument's own lag", show_count(less)),
    };
    match answer {
        Answer::Failed => {
            let silent = counted.silent_s.map_or_else(String::new, |seconds| {
                format!(
                    "; nothing that was due in the last {} was answered",
                    seconds_in_words(seconds)
                )
            });
            format!("{counts}{silent}")
        }
        Answer::Invalid => format!(
            "{counts}{less_own}: this machine was late, not the system; use an idle machine"
        ),
        Answer::Undecided if counted.is_beyond() => {
            let longer = counted.seconds_to_decide.map_or_else(too_near, |seconds| {
                format!("about {} at this rate would decide", seconds_in_words(seconds))
            });
            format!("{counts}{less_own}: may be chance; {longer}")
        }
        Answer::Met | Answer::Undecided => {
            let sure = confidence.unwrap_or(CONFIDENCE);
            let is_of_refusals = counted.refused.saturating_mul(2) > counted.all;
            if is_of_refusals && answer == Answer::Met {
                let refused = show_count(counted.refused);
                return format!("{refused} of {all} were refused: this is how fast refusals came");
            }
            if counted.allowed_share <= 0.0 || counted.chance < 1.0 - sure {
                return String::new();
            }
            let needed = counted.needed.zip(counted.seconds_to_decide);
            let alone = needed_for(counted.allowed_share, sure);
            let said = match counted.beyond {
                0 if counted.needed.is_some_and(|needed| needed <= alone) => {
                    format!("0 of {all} {beyond}{less_own}")
                }
                0 => format!(
                    "0 of {all} {beyond}{less_own}: may be chance, because slow ones come together"
                ),
                _ => format!("{counts}{less_own}: may be chance"),
            };
            let longer = needed.map_or_else(too_near, |(needed, seconds)| {
                let about = if needed <= alone { needed } else { two_digits(needed) };
                format!(
                    "{} are needed to be {} % sure ({} at this rate)",
                    show_count(about),
                    rounded(sure * 100.0),
                    seconds_in_words(seconds)
                )
            });
            format!("{said}; {longer}")
        }
    }
}

fn too_near() -> String {
    "the share is too near the allowed one for a longer window to tell".to_owned()
}

/// Upwards.
fn two_digits(count: u64) -> u64 {
    let unit = count.checked_ilog10().map_or(1, |digits| 10_u64.pow(digits.saturating_sub(1)));
    count.div_ceil(unit).saturating_mul(unit)
}

/// Two digits, upwards.
fn seconds_in_words(seconds: f64) -> String {
    let unit = if seconds > 0.0 { 10_f64.powf((seconds.log10()).floor() - 1.0) } else { 1.0 };
    show_ns(to_i64((seconds / unit - 1e-9).ceil() * unit * 1e9))
}

#[expect(clippy::cast_possible_truncation, reason = "saturates, for people")]
fn to_i64(value: f64) -> i64 {
    value as i64
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "saturates, for people"
)]
fn to_u64(value: f64) -> u64 {
    value as u64
}

#[cfg(test)]
#[path = "beyond_tests.rs"]
mod tests;
