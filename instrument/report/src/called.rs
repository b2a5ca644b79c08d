//! Short names of settings: by the axes in which they differ, in the order in which the experiment has
//! them. A value that says nothing without its axis keeps it: `push=true`.

use std::collections::{BTreeMap, BTreeSet};

use model::result::SettingResult;

/// The axes that settings have, in the order of the experiment; what that does not name follows, by name.
pub(crate) fn axes<'a>(
    order: &'a [String],
    values: impl Iterator<Item = &'a BTreeMap<String, String>>,
) -> Vec<&'a str> {
    let mut left: BTreeSet<&str> = values.flat_map(BTreeMap::keys).map(String::as_str).collect();
    let mut axes: Vec<&str> =
        order.iter().map(String::as_str).filter(|axis| left.remove(axis)).collect();
    axes.extend(left);
    axes
}

/// Those of [`axes`] in which the settings differ.
pub(crate) fn differing<'a>(order: &'a [String], settings: &[&'a SettingResult]) -> Vec<&'a str> {
    let mut axes = axes(order, settings.iter().map(|setting| &setting.values));
    axes.retain(|axis| {
        let mut values = settings.iter().map(|setting| setting.values.get(*axis));
        let first = values.next();
        values.any(|value| Some(value) != first)
    });
    axes
}

/// `axis=label` of each axis, in the order of the experiment.
pub(crate) fn pairs(order: &[String], values: &BTreeMap<String, String>) -> Vec<String> {
    let axes = axes(order, std::iter::once(values));
    axes.into_iter().map(|axis| format!("{axis}={}", values[axis])).collect()
}

/// The label alone, or with its axis where it would say nothing: a switch.
pub(crate) fn alone(axis: &str, label: &str) -> String {
    if is_switch(label) { format!("{axis}={label}") } else { label.to_owned() }
}

/// Whether a label only says whether, and its axis what.
pub(crate) fn is_switch(label: &str) -> bool {
    ["true", "false", "on", "off"].contains(&label)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(axis, label)| ((*axis).to_owned(), (*label).to_owned())).collect()
    }

    /// Claim: axes stand in the order of the experiment, not in that of the alphabet; what the experiment does not name
    /// is not lost, and what no setting has is not made up.
    #[test]
    fn the_order_of_the_experiment() {
        let order = ["push", "hedge", "absent"].map(str::to_owned);
        let of = values(&[("hedge", "false"), ("push", "true"), ("added", "1")]);
        assert_eq!(axes(&order, [&of].into_iter()), ["push", "hedge", "added"]);
        assert_eq!(pairs(&order, &of), ["push=true", "hedge=false", "added=1"]);
        assert_eq!(pairs(&[], &of), ["added=1", "hedge=false", "push=true"]);
    }

    /// Claim: a switch is called by its axis, a word by itself.
    #[test]
    fn switches() {
        let called = [("push", "true"), ("push", "off"), ("rate", "20/s"), ("set", "trueish")];
        assert_eq!(
            called.map(|(axis, label)| alone(axis, label)),
            ["push=true", "push=off", "20/s", "trueish"]
        );
    }
}
