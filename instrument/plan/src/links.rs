//! `[links]` of one setting, read in full: how the network between the nodes is made, and what happens to packets
//! on each of its links.
//!
//! It must never let a key pass that the chosen way cannot carry out.

use model::options::{Options, Value};
use model::plan::{CLIENT, LinkChange, LinkPair, LinkPlan, LinksPlan, Through};
use model::quantity::{show_bandwidth, show_duration, show_percent};

use crate::keys;
use crate::table::{Reading, Table, not_a_list};

/// The most pairs that differ.
const PAIRS_MAX: usize = 10_000;

/// Reads `[links]`; `None` if there is none. Whatever it returns counts only if no problem was added.
pub(crate) fn read(root: &Options, reading: &mut Reading<'_>) -> Option<LinksPlan> {
    let options = root.get("links")?;
    let mut table = Table::open(options, "links", reading);
    let word = keys::fixed("links.through");
    let through = match table.one_of_or("through", &["switch", "forwarders"], word, reading) {
        Some("forwarders") => Through::Forwarders,
        _ => Through::Switch,
    };
    let between = link(&mut table, LinkPlan::default(), through, reading);
    let none = Options { span: table.span(), ..Options::empty() };
    let mut of_client =
        Table::open(table.given("client").unwrap_or(&none), "links.client", reading);
    let client = link(&mut of_client, LinkPlan::default(), through, reading);
    of_client.finish(reading);
    let mut plan = LinksPlan { through, between, client, pairs: Vec::new() };
    if let Some(pairs) = table.given("pair") {
        read_pairs(pairs, &mut plan, reading);
    }
    table.finish(reading);
    Some(plan)
}

fn read_pairs(options: &Options, plan: &mut LinksPlan, reading: &mut Reading<'_>) {
    let Value::Array(items) = &options.value else {
        not_a_list(options, "links.pair", reading);
        return;
    };
    if items.len() > PAIRS_MAX {
        let message = format!("{} pairs; at most {PAIRS_MAX} are taken", items.len());
        reading.problems.add(options.span, message, Some("use names with * at the end".to_owned()));
        return;
    }
    for (index, item) in items.iter().enumerate() {
        let mut table = Table::open(item, &format!("links.pair[{index}]"), reading);
        let ends = ends(&mut table, reading);
        let is_client = ends.is_some_and(|(from, to)| from == CLIENT || to == CLIENT);
        let base = if is_client { plan.client } else { plan.between };
        let link = link(&mut table, base, plan.through, reading);
        table.finish(reading);
        if let Some((from, to)) = ends {
            plan.pairs.push(LinkPair { from: from.to_owned(), to: to.to_owned(), link });
        }
    }
}

/// `from` and `to`.
pub(crate) fn ends<'a>(
    table: &mut Table<'a>,
    reading: &mut Reading<'_>,
) -> Option<(&'a str, &'a str)> {
    let mut end = |key, example| {
        let name = table.string(key, reading);
        let name = table.require(key, name, example, reading)?;
        check_pattern(table, key, name, reading);
        Some(name)
    };
    let (from, to) = (end("from", "from = \"node0\""), end("to", "to = \"node1\""));
    let (from, to) = from.zip(to)?;
    if from == to && !from.ends_with('*') {
        table.reject("to", "a link has two ends, but these are the same", None, reading);
    }
    Some((from, to))
}

/// Adds a mistake if this cannot be a node's name, or the beginning of names with `*` after it.
pub(crate) fn check_pattern(
    table: &Table<'_>,
    key: &str,
    pattern: &str,
    reading: &mut Reading<'_>,
) {
    let name = pattern.strip_suffix('*').unwrap_or(pattern);
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if pattern.is_empty() || !name.chars().all(is_allowed) {
        let message = format!("`{pattern}` cannot be the name of a node");
        let help = "write a name, or the beginning of names and one * at the end";
        table.reject(key, message, Some(help), reading);
    }
}

/// The keys of a link as given.
pub(crate) fn change(table: &mut Table<'_>, reading: &mut Reading<'_>) -> LinkChange {
    LinkChange {
        delay: table.duration("delay", reading),
        jitter: table.duration("jitter", reading),
        loss: table.percent("loss", reading),
        bandwidth: table.bandwidth("bandwidth", reading),
        reorder: table.percent("reorder", reading),
    }
}

/// A link in full: what is not given is as in `base`.
fn link(
    table: &mut Table<'_>,
    base: LinkPlan,
    through: Through,
    reading: &mut Reading<'_>,
) -> LinkPlan {
    let given = change(table, reading);
    for (key, shown) in [
        ("delay", show_duration(base.delay)),
        ("jitter", show_duration(base.jitter)),
        ("loss", show_percent(base.loss)),
        ("bandwidth", show_bandwidth(base.bandwidth)),
        ("reorder", show_percent(base.reorder)),
    ] {
        if table.given(key).is_none() {
            table.note_derived(key, (), shown, reading);
        }
    }
    check_through(table, given, through, reading);
    let link = given.over(base);
    if link.jitter > link.delay {
        let message = format!(
            "a jitter of {} around a delay of {} would deliver before it is sent",
            show_duration(link.jitter),
            show_duration(link.delay)
        );
        table.reject("jitter", message, Some("raise the delay, or lower the jitter"), reading);
    }
    if link.reorder > 0.0 && link.delay.is_zero() {
        let message = "without a delay there is nothing that a packet could overtake";
        table.reject("reorder", message, Some("add a delay, or remove reorder"), reading);
    }
    link
}

/// Adds a mistake for each key that forwarders cannot carry out.
pub(crate) fn check_through(
    table: &Table<'_>,
    given: LinkChange,
    through: Through,
    reading: &mut Reading<'_>,
) {
    if through == Through::Switch {
        return;
    }
    for (key, share, what) in [("loss", given.loss, "lose"), ("reorder", given.reorder, "reorder")]
    {
        if share.is_some_and(|share| share > 0.0) {
            let message = format!("forwarders carry streams: they cannot {what} packets");
            let help = "remove it, or write through = \"switch\" in [links]";
            table.reject(key, message, Some(help), reading);
        }
    }
}
