//! Questions about the metrics that nodes serve, without asking them: whether each is declared, and the same by all.

use std::collections::BTreeSet;

use model::series::declare;

use super::{Breach, Breaches};
use crate::Scrape;

/// Tests what an adapter declares of the metrics that its nodes serve (`Deployment::scrape`).
///
/// # Errors
/// With every rule that was broken.
pub fn series_conformance(scrape: &[Scrape]) -> Result<(), Breaches> {
    let mut all = Vec::new();
    let mut breaches = Vec::new();
    let mut breach = |words: String| breaches.push(Breach { scenario: "the series", words });
    for node in scrape {
        let mut names = BTreeSet::new();
        for series in &node.series {
            if let Err(why) = declare(&mut all, [&series.series]) {
                breach(format!("{}: {why}", node.source));
            }
            if !names.insert(&series.series.name) {
                breach(format!(
                    "{}: two metrics are kept as `{}`",
                    node.source, series.series.name
                ));
            }
            if series.metric.trim().is_empty() {
                breach(format!("{}: `{}` is of no metric", node.source, series.series.name));
            }
        }
    }
    Breaches::unless_empty(breaches)
}
