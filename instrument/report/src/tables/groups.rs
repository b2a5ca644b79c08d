//! Failures by class, and transactions by kind and by the system's own code.
//!
//! It must never hide a group that failed behind one that did not: groups are shown worst first.

use model::quantity::{show_count, show_ns};
use model::result::{Counts, ErrorResult, GroupResult, TrialResult};

use super::{Shown, marked, pointer_part};
use crate::figures::{failed, failures, latency, ratio, share};
use crate::grid::{Cell, Grid, Source};
use crate::paint::{Paint, clean};

/// The places of the counts that make up [`failed`].
pub(crate) fn failed_parts(counts: &str) -> Vec<String> {
    ["rejected", "unknown", "shed"].map(|key| format!("{counts}/{key}")).to_vec()
}

/// The same in every stream of a trial.
pub(crate) fn failed_parts_of_all(row: &Shown<'_>) -> Vec<String> {
    let background = row.trial.background.is_some().then_some("background");
    let streams = std::iter::once("counts").chain(background);
    streams.flat_map(|key| failed_parts(&row.at(key))).collect()
}

/// Failures by class of a stream of load: a column for each class that occurs in any trial; no rows if none does.
/// `key` is where the trial keeps these counts.
pub(crate) fn failure_classes(
    shown: &[Shown<'_>],
    key: &str,
    counts_of: impl Fn(&TrialResult) -> Option<&Counts>,
) -> Grid {
    let rows: Vec<(&Shown<'_>, &Counts)> =
        shown.iter().filter_map(|row| Some((row, counts_of(row.trial)?))).collect();
    let mut classes: Vec<String> = Vec::new();
    for (class, _) in rows.iter().flat_map(|(_, counts)| failures(counts)) {
        if !classes.contains(&class) {
            classes.push(class);
        }
    }
    if classes.is_empty() {
        return Grid::new();
    }
    let mut grid =
        Grid::new().pin("setting").number(1, "due").number(1, "sent").number(1, "committed");
    for class in &classes {
        grid = grid.number(1, &clean(class));
    }
    grid = grid.number(1, "failed");
    for (row, counts) in rows {
        let of_row = failures(counts);
        let at = row.at(key);
        let mut cells = vec![
            Cell::new(row.label.as_str()),
            Cell::new(show_count(counts.due)).at(format!("{at}/due")),
            Cell::new(show_count(counts.sent)).at(format!("{at}/sent")),
            Cell::new(show_count(counts.committed)).at(format!("{at}/committed")),
        ];
        for class in &classes {
            let count = of_row.iter().find(|(known, _)| known == class).map_or(0, |(_, n)| *n);
            let paint = if count == 0 { Paint::Dim } else { Paint::Plain };
            let cell = Cell::painted(show_count(count), paint);
            cells.push(match class_pointer(counts, class, &at) {
                Some(pointer) => cell.at(pointer),
                None => cell,
            });
        }
        let source = Source::Share(failed_parts(&at), format!("{at}/due"));
        cells.push(Cell::new(share(failed(counts), counts.due)).of(source));
        grid.row(cells);
    }
    marked(grid, shown)
}

/// Where the count of a class stands; nowhere if the class did not occur, or is what no class accounts for.
pub(crate) fn class_pointer(counts: &Counts, class: &str, at: &str) -> Option<String> {
    match class {
        "unknown" | "shed" => Some(format!("{at}/{class}")),
        _ if counts.rejected_by_class.contains_key(class) => {
            Some(format!("{at}/rejected_by_class/{}", pointer_part(class)))
        }
        _ => None,
    }
}

/// The most groups that are shown unless everything is.
pub(crate) const GROUPS_MAX: usize = 8;

/// The groups that a trial keeps under a key: by kind, by code.
pub(crate) fn groups_of<'a>(trial: &'a TrialResult, key: &str) -> &'a [GroupResult] {
    if key == "kinds" { &trial.kinds } else { &trial.codes }
}

/// Groups of a trial (`key` is where it keeps them), those with the largest share of failures first, then the slowest; at
/// most `rows_max`. Second: how many were left out.
pub(crate) fn groups(head: &str, row: &Shown<'_>, key: &str, rows_max: usize) -> (Grid, usize) {
    let (all, pointer) = (groups_of(row.trial, key), row.at(key));
    let mut ordered: Vec<(usize, &GroupResult)> = all.iter().enumerate().collect();
    ordered.sort_by(|(_, a), (_, b)| {
        let failed_share = |group: &GroupResult| ratio(failed(&group.counts), group.counts.due);
        failed_share(b).total_cmp(&failed_share(a)).then(b.p99_ns.cmp(&a.p99_ns))
    });
    // Where all failed alike, the class stands beside the quantiles already.
    let mut classes: Vec<String> =
        all.iter().flat_map(|group| failures(&group.counts)).map(|(class, _)| class).collect();
    classes.sort();
    classes.dedup();
    let has_classes = classes.len() > 1;
    let mut grid = Grid::new().pin(head).number(1, "due").number(1, "failed");
    grid = grid.number(1, "p50").number(1, "p99").number(1, "max");
    if has_classes {
        grid = grid.words(2, "failures");
    }
    for (index, group) in ordered.iter().take(rows_max) {
        let mut cells = group_cells(group, &format!("{pointer}/{index}"));
        if has_classes {
            let classes: Vec<String> = failures(&group.counts)
                .into_iter()
                .map(|(class, count)| format!("{} {}", clean(&class), show_count(count)))
                .collect();
            cells.push(Cell::new(classes.join(" · ")));
        }
        grid.row(cells);
    }
    (marked(grid, std::slice::from_ref(row)), ordered.len().saturating_sub(rows_max))
}

fn group_cells(group: &GroupResult, at: &str) -> Vec<Cell> {
    let counts = &group.counts;
    let lost = failed(counts);
    let failed_cell = match lost {
        0 => Cell::painted("0%", Paint::Dim),
        _ => Cell::painted(share(lost, counts.due), Paint::Bad),
    };
    let counts_at = format!("{at}/counts");
    let failed_of = Source::Share(failed_parts(&counts_at), format!("{counts_at}/due"));
    vec![
        Cell::new(clean(&group.name)),
        Cell::new(show_count(counts.due)).at(format!("{counts_at}/due")),
        failed_cell.of(failed_of),
        Cell::new(latency(group.p50_ns)).at(format!("{at}/p50_ns")),
        Cell::new(latency(group.p99_ns)).at(format!("{at}/p99_ns")),
        Cell::new(latency(group.max_ns)).at(format!("{at}/max_ns")),
    ]
}

/// Error texts of all trials, most frequent first: how often and of which class, and a sentence with the text, where
/// and when it came, and a transaction that had it.
pub(crate) fn errors(shown: &[Shown<'_>]) -> Vec<(String, String)> {
    let mut found: Vec<(u64, Vec<(&str, &ErrorResult)>)> = Vec::new();
    for (label, error) in shown
        .iter()
        .flat_map(|row| row.trial.errors.iter().map(|error| (row.label.as_str(), error)))
    {
        let same = |known: &&ErrorResult| known.text == error.text && known.class == error.class;
        match found.iter_mut().find(|(_, of)| same(&of[0].1)) {
            Some((count, of)) => {
                *count += error.count;
                of.push((label, error));
            }
            None => found.push((error.count, vec![(label, error)])),
        }
    }
    found.sort_by_key(|(count, _)| std::cmp::Reverse(*count));
    found
        .into_iter()
        .map(|(count, of)| {
            let error = of[0].1;
            let head = format!("{} × {}", show_count(count), clean(&error.class));
            (head, format!("{}  ({})", clean(&error.text), place(&of, shown.len() > 1)))
        })
        .collect()
}

/// Where and when an error came.
fn place(of: &[(&str, &ErrorResult)], has_several: bool) -> String {
    let (label, first) = of[0];
    let times = if first.count == 1 {
        format!("at {}", show_ns(first.first_ns))
    } else {
        format!("{} to {}", show_ns(first.first_ns), show_ns(first.last_ns))
    };
    let example = format!("{times}, tx {}", first.example_tx);
    match (has_several, of.len()) {
        (false, _) => example,
        (true, 1) => format!("{label}, {example}"),
        (true, trials) => format!("in {trials} trials; {label}, {example}"),
    }
}
