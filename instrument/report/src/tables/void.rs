//! Which numbers of a table an audit voids, and their mark. Each number says where it stands in the result document, and
//! from its place follows what it is made of: no table has to know.
//!
//! It must never leave out a family of numbers that a table shows.

use model::result::{Distribution, Family, TrialResult, Voided};

use super::Shown;
use crate::grid::{Cell, Grid, Source};
use crate::paint::Paint;

/// Stands before a number that does not hold.
const MARK: char = '!';

/// The meaning of the mark; `None` where no number can have it.
pub(crate) fn void_legend(shown: &[Shown<'_>]) -> Option<&'static str> {
    let mut audits = shown.iter().flat_map(|row| &row.trial.audits);
    let is_any = audits.any(|audit| !audit.voids.is_empty());
    is_any.then_some("! is not valid: an audit voids it, and says which way it may be wrong")
}

/// The table with a mark before each number that does not hold.
pub(crate) fn marked(mut grid: Grid, shown: &[Shown<'_>]) -> Grid {
    if void_legend(shown).is_some() {
        for cell in grid.rows.iter_mut().flatten() {
            mark(cell, shown);
        }
    }
    grid
}

/// The same for one number.
pub(crate) fn marked_cell(mut cell: Cell, shown: &Shown<'_>) -> Cell {
    mark(&mut cell, std::slice::from_ref(shown));
    cell
}

fn mark(cell: &mut Cell, shown: &[Shown<'_>]) {
    let has_digits = cell.text.contains(|c: char| c.is_ascii_digit());
    if !has_digits || cell.text.starts_with(MARK) {
        return;
    }
    let is_void = |pointer: &String| {
        let of_row = |row: &&Shown<'_>| pointer.strip_prefix(&row.pointer)?.strip_prefix('/');
        shown.iter().find_map(|row| Some((row, of_row(&row)?))).is_some_and(|(row, place)| {
            let voids = row.trial.audits.iter().flat_map(|audit| &audit.voids);
            Made::of(place, row.trial).is_some_and(|made| made.is_among(voids))
        })
    };
    let found = match &cell.source {
        // The ends of an interval stand beside their value.
        None | Some(Source::Between(..)) => false,
        Some(Source::At(at) | Source::PerSecond(at, _)) => is_void(at),
        Some(Source::Sum(parts)) => parts.iter().any(is_void),
        Some(Source::Share(parts, whole)) => parts.iter().chain([whole]).any(is_void),
    };
    if found {
        cell.text.insert(0, MARK);
        cell.paint = Paint::Caution;
    }
}

/// The family of a number.
struct Made {
    family: Family,
    /// Which quantile of a distribution it is; `None` for what all samples make.
    quantile: Option<f64>,
}

impl Made {
    /// By its place in the trial; `None` for what no audit voids.
    fn of(place: &str, trial: &TrialResult) -> Option<Self> {
        let parts: Vec<&str> = place.split('/').collect();
        let whole = |family| Some(Self { family, quantile: None });
        match parts.as_slice() {
            [.., "count" | "beyond"] => None,
            ["rates", "planned_per_s"] => None,
            ["rates", "offered_per_s"] => whole(Family::Offered),
            ["rates", "sent_per_s"] => whole(Family::Sent),
            ["rates", ..] | ["throughput_windows", ..] => whole(Family::Committed),
            ["counts" | "background", rest @ ..] => whole(of_counts(rest)),
            ["kinds" | "codes", _, "counts", rest @ ..] => whole(of_counts(rest)),
            ["kinds" | "codes", _, key] => of_key(Family::Response, key),
            ["errors", ..] => whole(Family::Failures),
            ["latency", stage, rest @ ..] => {
                let of = trial.latency.get(stage.parse::<usize>().ok()?)?;
                let (family, distribution) = match rest.first().copied() {
                    Some("service") => (Family::Service, Some(&of.service)),
                    Some("answered_service") => (Family::Service, of.answered_service.as_ref()),
                    Some("answered") => (Family::Response, of.answered.as_ref()),
                    _ => (Family::Response, Some(&of.response)),
                };
                of_distribution(family, distribution, rest)
            }
            ["send_lag", rest @ ..] => {
                of_distribution(Family::SendLag, Some(&trial.send_lag), rest)
            }
            ["own_lag", rest @ ..] => of_distribution(Family::SendLag, Some(&trial.own_lag), rest),
            ["attempts" | "batches", ..] => whole(Family::Sent),
            ["vegeta", key, ..] => match *key {
                "requests" | "rate" | "attack_ns" => whole(Family::Sent),
                "throughput" | "success" | "status_codes" => whole(Family::Committed),
                "bytes_in" | "bytes_out" => whole(Family::Bytes),
                _ => of_key(Family::Service, key),
            },
            ["streams", _, key] => of_key(Family::Response, key),
            ["calls", ..] => whole(Family::Response),
            ["fates", ..] => whole(Family::Fates),
            ["stated", ..] => whole(Family::Stated),
            ["node_stages", ..] => whole(Family::NodeStages),
            ["resources" | "resources_last" | "processor", ..] => whole(Family::Series),
            _ => None,
        }
    }

    fn is_among<'a>(&self, mut voids: impl Iterator<Item = &'a Voided>) -> bool {
        voids.any(|it| {
            let reaches = match (it.from, self.quantile) {
                (None, _) => true,
                (Some(from), Some(q)) => q >= from,
                (Some(_), None) => false,
            };
            it.family == self.family && reaches
        })
    }
}

fn of_counts(rest: &[&str]) -> Family {
    match rest.first().copied() {
        Some("due") => Family::Offered,
        Some("sent") => Family::Sent,
        Some("committed") => Family::Committed,
        _ => Family::Failures,
    }
}

/// A number of a distribution: one of its quantiles by its place, or one with a key of its own.
fn of_distribution(family: Family, of: Option<&Distribution>, rest: &[&str]) -> Option<Made> {
    let is_quantile = |it: &&[&str]| it[0] == "quantiles";
    if let Some([_, index]) = rest.windows(2).find(is_quantile) {
        let quantile = of?.quantiles.get(index.parse::<usize>().ok()?)?.q;
        return Some(Made { family, quantile: Some(quantile) });
    }
    of_key(family, rest.last()?)
}

/// The quantile that a key names.
fn of_key(family: Family, key: &str) -> Option<Made> {
    let quantile = match key {
        "min_ns" => Some(0.0),
        "p50_ns" => Some(0.5),
        "p90_ns" => Some(0.9),
        "p95_ns" => Some(0.95),
        "p99_ns" => Some(0.99),
        "p999_ns" => Some(0.999),
        "max_ns" | "due_max_ns" => Some(1.0),
        _ => None,
    };
    Some(Made { family, quantile })
}
