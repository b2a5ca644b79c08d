//! Fates of all transactions by the ledger, with ids to look up.
//!
//! It must never soften a fate: a transaction that was acknowledged and is not there is lost.

use super::Run;
use super::markup::{Markup, el, list, paragraph, said, text};
use super::tables::of_grid;
use crate::tables;
use model::quantity::show_count;

pub(super) fn fates(run: &Run<'_>) -> Markup {
    let grid = tables::fates_of_several(&run.shown);
    let caption = "What the ledger holds, read after the drain";
    let Some(table) = of_grid(&run.document, "fates", caption, &grid) else {
        return Markup::new();
    };
    let mut examples: Vec<Markup> = Vec::new();
    for row in &run.shown {
        let Some(fates) = &row.trial.fates else { continue };
        for line in tables::fate_lines(fates).into_iter().filter(|it| !it.examples.is_empty()) {
            let (mark, class) = if line.is_broken { ("✗", "bad") } else { ("·", "dim") };
            examples.push(
                Markup::from(el("span").class(class).text(mark))
                    .and(said(" "))
                    .and(text(&format!("{}: {}", row.label, show_count(line.count))))
                    .and(said(" "))
                    .and(el("strong").text(line.word))
                    .and(said(" "))
                    .and(text(&format!("({}): {}", line.meaning, line.examples))),
            );
        }
    }
    let how =
        "Read by another way than the load took. Up to 100 ids of each fate stand in summary.json.";
    Markup::from(el("h3").text("Fates"))
        .and(table)
        .and(list("examples", examples))
        .and(paragraph("legend", how))
}
