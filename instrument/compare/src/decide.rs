//! From the numbers of both sides to the answer for each, and for all together.

use model::comparison::{
    COMPARISON_SCHEMA, Change, ComparedCurves, ComparedNumber, ComparedSide, ComparedUnit,
    Comparison, Difference,
};
use model::plan::SearchKey;
use stats::combined::Estimate;
use stats::ratio::{Measured as Known, Ratio, less, ratio, together};
use stats::sections::independent;
use stats::special::t_quantile;

use crate::numbers::{self, Measured, Value};
use crate::sides::{Side, Sides, Tried};

/// The margin if none is asked for: ratios within 5 % make no difference.
pub const MARGIN: f64 = 0.05;
/// The margin of the share that failed: a tenth of a percentage point.
pub const FAILED_MARGIN: f64 = 0.001;
/// All intervals together hold in so many of one.
const CONFIDENCE: f64 = 0.95;
/// Curves of one side of one setting that a page can tell apart.
const CURVES_MAX: usize = 12;

/// Compares the sides; `differences` are those of their plans, hosts and builds.
#[must_use]
pub fn compare(
    name: &str,
    sides: &Sides<'_>,
    margin: f64,
    differences: Vec<Difference>,
) -> Comparison {
    let pairs = pairs(sides);
    let confidence = 1.0 - (1.0 - CONFIDENCE) / looked_at(&pairs).max(1.0);
    let is_paired = sides.is_paired;
    let test = Test { margin, confidence, is_paired };
    let mut numbers: Vec<ComparedNumber> = pairs.iter().map(|pair| test.of(pair)).collect();
    numbers.sort_by(|one, other| weight(other).total_cmp(&weight(one)));
    let change = overall(&numbers);
    Comparison {
        schema: COMPARISON_SCHEMA.to_owned(),
        name: name.to_owned(),
        baseline: side(&sides.baseline),
        candidate: side(&sides.candidate),
        margin,
        confidence,
        is_paired,
        change,
        words: words(change, &numbers, &sides.baseline.label),
        unknown: unknown(sides, &pairs),
        differences,
        curves: curves(sides),
        numbers,
    }
}

fn side(of: &Side<'_>) -> ComparedSide {
    ComparedSide {
        label: of.label.clone(),
        started: of.started.clone(),
        trials: of.trials.len() as u64,
    }
}

/// One number of one setting, on both sides: a value a trial, or a run where a side has several.
struct Pair {
    setting: String,
    name: String,
    unit: ComparedUnit,
    baseline: Vec<Value>,
    candidate: Vec<Value>,
}

impl Pair {
    /// Parts of the error of its ratio, trial after trial; `None` where not all have them.
    fn parts(&self) -> Option<Vec<f64>> {
        let mut all = Vec::new();
        for (one, other) in self.baseline.iter().zip(&self.candidate) {
            let (one, other) = (known(one)?.parts, known(other)?.parts);
            if one.is_empty() || one.len() != other.len() {
                return None;
            }
            all.extend(less(&other, &one));
        }
        Some(all)
    }

    /// Whether there is anything to tell of it: what never failed on either side is not looked at.
    fn is_told(&self) -> bool {
        let failed = |it: &Value| !matches!(it, Value::Share { part: 0, .. });
        self.baseline.iter().chain(&self.candidate).any(failed)
    }
}

/// The numbers that both sides have, setting by setting.
fn pairs(sides: &Sides<'_>) -> Vec<Pair> {
    let (baseline, candidate) = (&sides.baseline, &sides.candidate);
    let mut all = Vec::new();
    if !baseline.searched.is_empty() && !candidate.searched.is_empty() {
        let all_found = |side: &Side<'_>| side.searched.iter().map(|it| found(*it)).collect();
        let (name, unit) = searched_number(baseline.find);
        all.push(Pair {
            setting: String::new(),
            name: name.to_owned(),
            unit,
            baseline: all_found(baseline),
            candidate: all_found(candidate),
        });
    }
    for setting in settings(baseline) {
        let (of_baseline, of_candidate) = (values(baseline, &setting), values(candidate, &setting));
        for (name, unit, baseline) in of_baseline {
            let Some((.., candidate)) = of_candidate.iter().find(|it| it.0 == name).cloned() else {
                continue;
            };
            all.push(Pair { setting: setting.clone(), name, unit, baseline, candidate });
        }
    }
    all.retain(Pair::is_told);
    all
}

/// The number that a search over a key finds.
pub(crate) const fn searched_number(find: SearchKey) -> (&'static str, ComparedUnit) {
    match find {
        SearchKey::Rate => ("highest rate", ComparedUnit::PerSecond),
        SearchKey::Clients => ("most clients", ComparedUnit::Count),
        SearchKey::Connections => ("most connections", ComparedUnit::Count),
    }
}

/// How many independent numbers are looked at: those of one setting that err together count as fewer than they are.
fn looked_at(pairs: &[Pair]) -> f64 {
    let mut settings: Vec<&str> = pairs.iter().map(|it| it.setting.as_str()).collect();
    settings.dedup();
    let of_setting = |setting: &&str| {
        let all = pairs.iter().filter(|it| it.setting == **setting);
        let parts: Vec<Option<Vec<f64>>> = all.map(Pair::parts).collect();
        let length = parts.iter().flatten().map(Vec::len).max().unwrap_or(0);
        let (together, alone): (Vec<_>, Vec<_>) =
            parts.into_iter().partition(|it| it.as_ref().is_some_and(|it| it.len() == length));
        independent(&together.into_iter().flatten().collect::<Vec<_>>()) + float(alone.len())
    };
    settings.iter().map(of_setting).sum()
}

/// The value that a search found lies between the confirmed and the refuted one.
fn found((confirmed, refuted): (f64, Option<f64>)) -> Value {
    let value = refuted.map_or(confirmed, |refuted| (confirmed * refuted).sqrt());
    let estimate = Estimate { value, low: Some(confirmed), high: refuted };
    Value::Known(Known { estimate, parts: Vec::new() })
}

/// The settings of a side, in order, each once.
fn settings(of: &Side<'_>) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for tried in &of.trials {
        if !all.contains(&tried.setting) {
            all.push(tried.setting.clone());
        }
    }
    all
}

type Named = (String, ComparedUnit, Vec<Value>);

/// The values of each number that every trial of a setting has: of several runs one a run.
fn values(of: &Side<'_>, setting: &str) -> Vec<Named> {
    let tried: Vec<&Tried<'_>> = of.trials.iter().filter(|it| it.setting == setting).collect();
    let measured: Vec<(usize, Vec<Measured>)> =
        tried.iter().map(|it| (it.run, numbers::of(it.trial))).collect();
    let Some((_, first)) = measured.first() else { return Vec::new() };
    let mut all = Vec::new();
    for number in first {
        let each = measured.iter().filter_map(|(run, of)| {
            Some((*run, of.iter().find(|it| it.name == number.name)?.value.clone()))
        });
        let each: Vec<(usize, Value)> = each.collect();
        if each.len() == measured.len() {
            all.push((number.name.clone(), number.unit, by_run(each, of.started.len())));
        }
    }
    all
}

/// One value a run, where there are several runs: trials of one run are more alike than runs.
fn by_run(all: Vec<(usize, Value)>, runs: usize) -> Vec<Value> {
    if runs < 2 {
        return all.into_iter().map(|(_, value)| value).collect();
    }
    let of = |run: usize| {
        let values: Vec<&Value> = all.iter().filter(|it| it.0 == run).map(|it| &it.1).collect();
        let known: Vec<Known> = values.iter().filter_map(|it| known(it)).collect();
        let shares: Vec<(u64, u64)> = values.iter().filter_map(|it| share(it)).collect();
        match values.first() {
            None => None,
            Some(_) if known.len() == values.len() => together(&known).map(Value::Known),
            Some(_) if shares.len() == values.len() => Some(Value::Share {
                part: shares.iter().map(|it| it.0).sum(),
                whole: shares.iter().map(|it| it.1).sum(),
            }),
            Some(first) => values
                .iter()
                .find(|it| known_or_share(it).is_none())
                .or(Some(first))
                .map(|it| (**it).clone()),
        }
    };
    (0..runs).filter_map(of).collect()
}

fn known(of: &Value) -> Option<Known> {
    match of {
        Value::Known(known) => Some(known.clone()),
        _ => None,
    }
}

const fn share(of: &Value) -> Option<(u64, u64)> {
    match of {
        Value::Share { part, whole } => Some((*part, *whole)),
        _ => None,
    }
}

const fn known_or_share(of: &Value) -> Option<()> {
    match of {
        Value::Known(_) | Value::Share { .. } => Some(()),
        Value::Infinite { .. } | Value::Void(_) => None,
    }
}

/// The conditions that all numbers are tested under.
struct Test {
    margin: f64,
    confidence: f64,
    is_paired: bool,
}

/// The effect of a number with its interval, and the answer.
struct Answer {
    effect: Option<f64>,
    low: Option<f64>,
    high: Option<f64>,
    change: Change,
    words: String,
}

impl Answer {
    fn untold(words: String) -> Self {
        Self { effect: None, low: None, high: None, change: Change::Inconclusive, words }
    }
}

impl Test {
    fn of(&self, pair: &Pair) -> ComparedNumber {
        let answer = self.answer(pair);
        ComparedNumber {
            setting: pair.setting.clone(),
            name: pair.name.clone(),
            unit: pair.unit,
            baseline: middle(&pair.baseline),
            candidate: middle(&pair.candidate),
            effect: answer.effect,
            low: answer.low,
            high: answer.high,
            change: answer.change,
            words: answer.words,
        }
    }

    fn answer(&self, pair: &Pair) -> Answer {
        let all = || pair.baseline.iter().chain(&pair.candidate);
        if let Some(Value::Void(audit)) = all().find(|it| matches!(it, Value::Void(_))) {
            let words = format!("{} does not hold: audit {audit}", pair.name);
            return Answer::untold(words);
        }
        if pair.unit == ComparedUnit::FailedShare {
            return self.of_shares(pair);
        }
        if all().any(|it| matches!(it, Value::Infinite { .. })) {
            return of_infinite(pair);
        }
        let estimates = |of: &[Value]| of.iter().filter_map(known).collect::<Vec<_>>();
        let (first, second) = (estimates(&pair.baseline), estimates(&pair.candidate));
        let Some(found) = ratio(&first, &second, self.is_paired, self.confidence) else {
            return Answer::untold(format!("{} is zero: it has no ratio", pair.name));
        };
        let change = self.decide(pair.unit, &found);
        let words = in_words(&pair.name, pair.unit, &found, change, self.margin);
        Answer { effect: Some(found.value), low: found.low, high: found.high, change, words }
    }

    /// The answer of an interval of a ratio.
    fn decide(&self, unit: ComparedUnit, of: &Ratio) -> Change {
        let most = 1.0 + self.margin;
        let is_within =
            of.low.is_some_and(|low| low >= 1.0 / most) && of.high.is_some_and(|high| high <= most);
        if is_within {
            return Change::Equivalent;
        }
        // Of one trial of each side nothing says how much two trials of the same system differ.
        let beyond = if of.knows_between { 1.0 } else { most };
        let is_more = of.low.is_some_and(|low| low > beyond);
        let is_less = of.high.is_some_and(|high| high < 1.0 / beyond);
        let is_worse = if unit.is_more_better() { is_less } else { is_more };
        match (is_more || is_less, is_worse) {
            (false, _) => Change::Inconclusive,
            (true, true) => Change::Worse,
            (true, false) => Change::Better,
        }
    }

    /// The difference of two shares: the wider of what counts of independent failures allow and what trials differ by.
    fn of_shares(&self, pair: &Pair) -> Answer {
        let side = |of: &[Value]| of.iter().filter_map(share).collect::<Vec<_>>();
        let (first, second) = (side(&pair.baseline), side(&pair.candidate));
        let (from, to) = (pooled(&first), pooled(&second));
        let upper = f64::midpoint(1.0, self.confidence);
        // With half a failure added, so that none of a few is not taken for never (Agresti and Coull 1998).
        let counted = t_quantile(upper, 1e6) * (counted(&first) + counted(&second)).sqrt();
        let spread = spread(&first, &second, upper);
        let half = spread.map_or(counted, |spread| spread.max(counted));
        let effect = to - from;
        let (low, high) = (effect - half, effect + half);
        let beyond = if spread.is_some() { 0.0 } else { FAILED_MARGIN };
        let change = match () {
            () if low >= -FAILED_MARGIN && high <= FAILED_MARGIN => Change::Equivalent,
            () if low > beyond => Change::Worse,
            () if high < -beyond => Change::Better,
            () => Change::Inconclusive,
        };
        let points = |share: f64| format!("{:.2}", share * 100.0);
        let words = match change {
            Change::Equivalent => "as many failed, within 0.1 percentage points".to_owned(),
            _ => format!(
                "failed: {} percentage points {}, {} to {}",
                points(effect.abs()),
                if effect < 0.0 { "less" } else { "more" },
                points(low),
                points(high)
            ),
        };
        Answer { effect: Some(effect), low: Some(low), high: Some(high), change, words }
    }
}

/// Of a number that is infinite on one side in every trial, and certainly, that side is slower; else nothing can be told.
fn of_infinite(pair: &Pair) -> Answer {
    let is_certain =
        |of: &[Value]| of.iter().all(|it| matches!(it, Value::Infinite { is_certain: true }));
    let is_finite = |of: &[Value]| of.iter().all(|it| matches!(it, Value::Known(_)));
    let (baseline, candidate) = (&pair.baseline, &pair.candidate);
    let (change, words) = match () {
        () if is_certain(candidate) && is_finite(baseline) => {
            (Change::Worse, format!("{} is infinite now: too many are never answered", pair.name))
        }
        () if is_certain(baseline) && is_finite(candidate) => {
            (Change::Better, format!("{} was infinite and is not any more", pair.name))
        }
        () => {
            let words = "is infinite in some trials: too many are never answered";
            (Change::Inconclusive, format!("{} {words}", pair.name))
        }
    };
    Answer { change, ..Answer::untold(words) }
}

fn pooled(of: &[(u64, u64)]) -> f64 {
    let part: u64 = of.iter().map(|it| it.0).sum();
    let whole: u64 = of.iter().map(|it| it.1).sum();
    count(part) / count(whole.max(1))
}

/// The variance of a share of independent failures.
fn counted(of: &[(u64, u64)]) -> f64 {
    let part: u64 = of.iter().map(|it| it.0).sum();
    let whole = count(of.iter().map(|it| it.1).sum::<u64>()) + 1.0;
    let share = (count(part) + 0.5) / whole;
    share * (1.0 - share) / whole
}

/// Half of the interval that trials' own shares give, with the pooled variance of both sides.
fn spread(first: &[(u64, u64)], second: &[(u64, u64)], upper: f64) -> Option<f64> {
    let freedom = first.len() + second.len();
    let freedom = float(freedom.checked_sub(2).filter(|it| *it > 0)?);
    let squares = |of: &[(u64, u64)]| {
        let shares: Vec<f64> = of.iter().map(|it| count(it.0) / count(it.1.max(1))).collect();
        let mean = shares.iter().sum::<f64>() / float(shares.len().max(1));
        shares.iter().map(|share| (share - mean).powi(2)).sum::<f64>()
    };
    let variance = (squares(first) + squares(second)) / freedom;
    let per = 1.0 / float(first.len().max(1)) + 1.0 / float(second.len().max(1));
    Some(t_quantile(upper, freedom) * (variance * per).sqrt())
}

/// The middle one of a side's values, as it was measured; `None` if that is infinite or void.
fn middle(of: &[Value]) -> Option<f64> {
    let value = |it: &Value| match it {
        Value::Known(known) => known.estimate.value,
        Value::Share { part, whole } => count(*part) / count((*whole).max(1)),
        Value::Infinite { .. } | Value::Void(_) => f64::INFINITY,
    };
    let mut all: Vec<f64> = of.iter().map(value).collect();
    all.sort_by(f64::total_cmp);
    all.get(all.len().saturating_sub(1) / 2).copied().filter(|it| it.is_finite())
}

/// The ratio in words: `p99 1.23 times slower, 1.11 to 1.36`.
fn in_words(name: &str, unit: ComparedUnit, of: &Ratio, change: Change, margin: f64) -> String {
    let is_rate = unit.is_more_better();
    let end = |it: Option<f64>| it.map_or("open".to_owned(), |it| format!("{it:.2}"));
    match change {
        Change::Equivalent => {
            let percent = (margin * 1000.0).round() / 10.0;
            format!(
                "{name} the same within {percent}%: ratio {:.3}, {} to {}",
                of.value,
                end3(of.low),
                end3(of.high)
            )
        }
        Change::Inconclusive => {
            format!(
                "{name} cannot be told: ratio {:.2}, {} to {}",
                of.value,
                end(of.low),
                end(of.high)
            )
        }
        Change::Better | Change::Worse => {
            let word = match (is_rate, name, of.value >= 1.0) {
                (true, _, true) => "higher",
                (true, _, false) => "lower",
                (false, "processor time", true) => "more",
                (false, "processor time", false) => "less",
                (false, _, true) => "slower",
                (false, _, false) => "faster",
            };
            let turned = of.value < 1.0;
            let inverse = |it: Option<f64>| it.map(|it| 1.0 / it);
            let (value, low, high) = match turned {
                true => (1.0 / of.value, inverse(of.high), inverse(of.low)),
                false => (of.value, of.low, of.high),
            };
            format!("{name} {value:.2} times {word}, {} to {}", end(low), end(high))
        }
    }
}

fn end3(of: Option<f64>) -> String {
    of.map_or("open".to_owned(), |it| format!("{it:.3}"))
}

/// The order of the table: told to differ, by how much; then not told; then the same.
fn weight(of: &ComparedNumber) -> f64 {
    let size = match of.unit {
        ComparedUnit::FailedShare => of.effect.map_or(1e3, |it| it.abs() * 10.0),
        _ => of.effect.map_or(1e3, |it| it.ln().abs()),
    };
    let class = match of.change {
        Change::Worse | Change::Better => 1e9,
        Change::Inconclusive => 1e5,
        Change::Equivalent => 0.0,
    };
    class + size.min(1e4)
}

/// Worse if any number is; inconclusive if most are; else better if any is.
fn overall(numbers: &[ComparedNumber]) -> Change {
    let count = |change: Change| numbers.iter().filter(|it| it.change == change).count();
    match () {
        () if count(Change::Worse) > 0 => Change::Worse,
        () if 2 * count(Change::Inconclusive) > numbers.len() || numbers.is_empty() => {
            Change::Inconclusive
        }
        () if count(Change::Better) > 0 => Change::Better,
        () => Change::Equivalent,
    }
}

fn words(change: Change, numbers: &[ComparedNumber], baseline: &str) -> String {
    let count = |change: Change| numbers.iter().filter(|it| it.change == change).count();
    let all = numbers.len();
    let untold = match count(Change::Inconclusive) {
        0 => String::new(),
        untold => format!("; {untold} of {all} cannot be told"),
    };
    let first = |change: Change| {
        let found = numbers.iter().find(|it| it.change == change);
        found.map_or_else(String::new, |it| {
            let at =
                if it.setting.is_empty() { String::new() } else { format!(" at {}", it.setting) };
            format!("{}{at}", it.words)
        })
    };
    match change {
        Change::Worse => {
            let (worse, better) = (count(Change::Worse), count(Change::Better));
            let better = if better == 0 { String::new() } else { format!(", {better} better") };
            format!(
                "worse than {baseline}: {}; {worse} of {all} numbers worse{better}{untold}",
                first(Change::Worse)
            )
        }
        Change::Better => format!(
            "better than {baseline}: {}; {} of {all} numbers better, none worse{untold}",
            first(Change::Better),
            count(Change::Better)
        ),
        Change::Equivalent => format!(
            "the same as {baseline} in {} of {all} numbers{untold}",
            count(Change::Equivalent)
        ),
        Change::Inconclusive if all == 0 => "the runs have no number in common".to_owned(),
        Change::Inconclusive => {
            format!(
                "no number is told to be worse than {baseline}, and {} of {all} cannot be told: run more or longer trials",
                count(Change::Inconclusive)
            )
        }
    }
}

/// The limits of these runs.
fn unknown(sides: &Sides<'_>, pairs: &[Pair]) -> String {
    let runs = [&sides.baseline, &sides.candidate].map(|side| side.started.len());
    let values =
        |of: fn(&Pair) -> &Vec<Value>| pairs.iter().map(|it| of(it).len()).max().unwrap_or(0);
    let most = values(|it| &it.baseline).max(values(|it| &it.candidate));
    if sides.is_paired || runs.iter().any(|runs| *runs > 1) {
        return String::new();
    }
    match most {
        0 | 1 => "One trial of each: how much two trials of the same system differ here is not known, so a number is \
                  called better or worse only beyond the margin. Run both by turns (--against), or name several runs \
                  as the baseline (assay mark)."
            .to_owned(),
        _ => "One run of each: its trials show how much trials of one run differ, not how much one hour of this host \
              differs from another. Run both by turns (--against), or name several runs as the baseline (assay mark)."
            .to_owned(),
    }
}

fn curves(sides: &Sides<'_>) -> Vec<ComparedCurves> {
    let of = |side: &Side<'_>, setting: &str| {
        let trials = side.trials.iter().filter(|it| it.setting == setting).map(|it| it.trial);
        let curve = |trial: &model::result::TrialResult| {
            let latency = trial.latency.iter().find(|it| it.stage == trial.final_stage)?;
            Some(latency.response.curve.clone()).filter(|curve| !curve.is_empty())
        };
        trials.filter_map(curve).take(CURVES_MAX).collect::<Vec<_>>()
    };
    let both = |setting: String| ComparedCurves {
        baseline: of(&sides.baseline, &setting),
        candidate: of(&sides.candidate, &setting),
        setting,
    };
    let all = settings(&sides.baseline).into_iter().map(both);
    all.filter(|it| !it.baseline.is_empty() && !it.candidate.is_empty()).collect()
}

#[expect(clippy::cast_precision_loss, reason = "a few trials")]
fn float(count: usize) -> f64 {
    count as f64
}

#[expect(clippy::cast_precision_loss, reason = "counts of transactions")]
fn count(of: u64) -> f64 {
    of as f64
}
