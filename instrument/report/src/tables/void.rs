//! Which numbers of a table an audit voids, and their mark. Each number says where it stands in the result document, and
//! from its place follows what it is made of: no table has to know.
//!
//! It must never leave out a family of numbers that a table shows.

use model::Class;
use model::result::Family;

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

/// An audit voids the numbers of a family.
pub(crate) fn is_family_void(row: &Shown<'_>, family: Family) -> bool {
    let mut voids = row.trial.audits.iter().flat_map(|audit| &audit.voids);
    voids.any(|it| it.family == family)
}

fn mark(cell: &mut Cell, shown: &[Shown<'_>]) {
    let has_digits = cell.text.contains(|c: char| c.is_ascii_digit());
    if !has_digits || cell.text.starts_with(MARK) {
        return;
    }
    let is_void = |pointer: &String| {
        let of_row = |row: &&Shown<'_>| pointer.strip_prefix(&row.pointer)?.strip_prefix('/');
        let found = shown.iter().find_map(|row| Some((row, of_row(&row)?)));
        found.is_some_and(|(row, place)| {
            families_of(place).into_iter().any(|family| is_family_void(row, family))
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

/// The families that a number is made of, by its place in the trial; none for what no audit voids.
fn families_of(place: &str) -> Vec<Family> {
    match family_of(place) {
        // Of all classes together.
        Some(Family::Failures) if !place.contains("/rejected_by_class/") => {
            vec![Family::Failures, Family::Timeouts]
        }
        family => family.into_iter().collect(),
    }
}

/// The family of a number that is of one; failures of whatever class are of the first of theirs.
fn family_of(place: &str) -> Option<Family> {
    let parts: Vec<&str> = place.split('/').collect();
    Some(match parts.as_slice() {
        [.., "count" | "beyond"] | ["rates", "planned_per_s"] => return None,
        ["rates", "offered_per_s"] => Family::Offered,
        ["rates", "sent_per_s"] => Family::Sent,
        ["rates", ..] | ["throughput_windows", ..] => Family::Committed,
        ["counts" | "background", rest @ ..] | ["kinds" | "codes", _, "counts", rest @ ..] => {
            of_counts(rest)
        }
        ["steps", "steps", _, "counts", rest @ ..] => of_counts(rest),
        ["steps", "steps", _, "offered_per_s"] => Family::Offered,
        ["steps", "steps", _, "goodput_per_s"] => Family::Committed,
        ["steps", "steps", _, "outstanding"] => Family::Outstanding,
        ["steps" | "flows", _, _, "p50_ns" | "p99_ns" | "max_ns"] => Family::Response,
        ["flows", "flows", _, key] => match *key {
            "begun" => Family::Offered,
            "completed" | "completed_per_s" => Family::Committed,
            "unknown" | "shed" => Family::Timeouts,
            _ => Family::Failures,
        },
        ["errors", ..] => Family::Failures,
        ["latency", _, "service" | "answered_service", ..] => Family::Service,
        ["latency" | "streams" | "kinds" | "codes", _, _, ..] | ["calls", ..] => Family::Response,
        ["send_lag" | "own_lag", ..] => Family::SendLag,
        ["attempts" | "batches", ..] => Family::Sent,
        ["vegeta", key, ..] => match *key {
            "requests" | "rate" | "attack_ns" => Family::Sent,
            "throughput" | "success" | "status_codes" => Family::Committed,
            "bytes_in" | "bytes_out" => Family::Bytes,
            _ => Family::Service,
        },
        ["fates", ..] => Family::Fates,
        ["stated", ..] => Family::Stated,
        ["node_stages", ..] => Family::NodeStages,
        ["resources" | "resources_last" | "processor", ..] => Family::Series,
        _ => return None,
    })
}

fn of_counts(rest: &[&str]) -> Family {
    match rest.first().copied() {
        Some("due") => Family::Offered,
        Some("sent") => Family::Sent,
        Some("committed") => Family::Committed,
        Some("unknown" | "shed") => Family::Timeouts,
        Some("rejected_by_class")
            if rest.get(1).and_then(|it| Class::from_word(it)).is_some_and(Class::is_of_time) =>
        {
            Family::Timeouts
        }
        _ => Family::Failures,
    }
}
