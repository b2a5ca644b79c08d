//! What the ledger says of every transaction, with ids to look up.
//!
//! It must never soften a fate: a transaction that was acknowledged and is not there is lost.

use super::Run;
use super::markup::{list, paragraph, text};
use super::tables::of_grid;
use crate::tables;
use model::quantity::show_count;

pub(super) fn fates(run: &Run<'_>) -> String {
    let grid = tables::fates_of_several(&run.shown);
    let table =
        of_grid(&run.document, "fates", "What the ledger holds, read after the drain", &grid);
    if table.is_empty() {
        return table;
    }
    let mut examples = Vec::new();
    for row in &run.shown {
        let Some(fates) = &row.trial.fates else { continue };
        for line in tables::fate_lines(fates).into_iter().filter(|it| !it.examples.is_empty()) {
            let (mark, class) = if line.is_broken { ("✗", "bad") } else { ("·", "dim") };
            examples.push(format!(
                "<span class=\"{class}\">{mark}</span> {}: {} <strong>{}</strong> ({}): {}",
                text(&row.label),
                show_count(line.count),
                line.word,
                text(line.meaning),
                text(&line.examples)
            ));
        }
    }
    let how =
        "Read by another way than the load took. Up to 100 ids of each fate stand in summary.json.";
    format!("<h3>Fates</h3>\n{table}{}{}", list("examples", &examples), paragraph("legend", how))
}
