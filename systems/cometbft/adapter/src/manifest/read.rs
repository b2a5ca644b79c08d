//! A manifest in the published form (`[node.NAME]` tables with `mode`, `seeds`, `persistent_peers`, …) → what is
//! to be started. The form is that of CometBFT's own end-to-end tests, `test/e2e/pkg/manifest.go`. What it can ask
//! for and a node with the built-in application cannot do is noted by name; what nobody knows is an error.

use std::collections::BTreeMap;

use model::options::{Options, Problems, Section, Value, did_you_mean};

use super::{Manifest, Mode, NodePlan};
use crate::config_file::Setting;

/// The longest manifest that is read, in bytes: the published one of 200 nodes has 12 kB.
pub(crate) const BYTES_MAX: u64 = 1 << 20;

/// Keys of the form that are not honoured, why, and the value (besides nothing: 0, false, `""`, `"0s"`) that asks
/// for no more than there is.
const OF_THE_TOP: [(&str, &str, &str); 21] = [
    ("ipv6", "addresses are of IPv4", ""),
    ("initial_state", "the built-in application begins empty", ""),
    ("validator_update", "the built-in application changes no validators", ""),
    ("key_type", "this version's testnet command makes ed25519 keys", "ed25519"),
    ("evidence", "no evidence is made up", ""),
    ("abci_protocol", "the application is the built-in one", "builtin"),
    ("prepare_proposal_delay", "the built-in application does not wait", ""),
    ("process_proposal_delay", "the built-in application does not wait", ""),
    ("check_tx_delay", "the built-in application does not wait", ""),
    ("vote_extension_delay", "the built-in application does not wait", ""),
    ("finalize_block_delay", "the built-in application does not wait", ""),
    ("vote_extension_size", "the built-in application's extensions are empty", ""),
    ("vote_extensions_update_height", "extensions are set by the genesis", "-1"),
    ("pbts_enable_height", "this version takes a block's time from its votes", ""),
    ("pbts_update_height", "this version takes a block's time from its votes", ""),
    ("upgrade_version", "every node stays what it is", ""),
    ("load_tx_size_bytes", "[workload] says it", ""),
    ("load_tx_batch_size", "[load] says it", ""),
    ("load_tx_connections", "[load] says it", ""),
    ("load_max_txs", "[load] says it", ""),
    ("peer_gossip_intraloop_sleep_duration", "this version does not have it", ""),
];

/// Those of tests of the program itself, which no load sees.
const OF_TESTS: [&str; 2] = ["abci_tests_enabled", "constant_flip"];

/// The same for a node's table.
const OF_A_NODE: [(&str, &str, &str); 12] = [
    ("version", "every node runs the same program", ""),
    ("database", "this program is built with goleveldb", "goleveldb"),
    ("privval_protocol", "keys are files", "file"),
    ("block_sync_version", "this version has v0", "v0"),
    ("state_sync", "the built-in application makes no snapshots", ""),
    ("persist_interval", "the built-in application has its own", "1"),
    ("snapshot_interval", "the built-in application makes no snapshots", ""),
    ("retain_blocks", "the built-in application keeps every block", ""),
    ("enable_companion_pruning", "the built-in application keeps every block", ""),
    ("perturb", "[[fault]] says what happens to nodes", ""),
    ("send_no_load", "system.deploy.submit_to says it", ""),
    ("clock_skew", "nodes have the clock of the host", ""),
];

/// Settings of the nodes' own file that the form has as keys.
const AS_SETTINGS: [&str; 2] = [
    "experimental_max_gossip_connections_to_persistent_peers",
    "experimental_max_gossip_connections_to_non_persistent_peers",
];

/// The largest height and weight: numbers of 63 bits, with room.
const NUMBER_MAX: u64 = 1 << 53;

/// Reads a manifest; all mistakes at once, in words.
pub(crate) fn read(text: &str, nodes_max: usize) -> Result<Manifest, Vec<String>> {
    let options: Options = toml::from_str(text).map_err(|error| vec![error.to_string()])?;
    let mut problems = Problems::default();
    let manifest = top(&options, &mut problems);
    if problems.is_empty() {
        check(&manifest, nodes_max, &mut problems);
    }
    if problems.is_empty() {
        return Ok(finished(manifest));
    }
    let words = problems.list.into_iter().map(|problem| match problem.help {
        Some(help) => format!("{}; {help}", problem.message),
        None => problem.message,
    });
    Err(words.collect())
}

fn top(options: &Options, problems: &mut Problems) -> Manifest {
    let mut top = Section::open(options, "", problems);
    let mut notes = Vec::new();
    for (key, why, same) in OF_THE_TOP {
        if top.raw(key).is_some_and(|value| asks(value, same)) {
            notes.push(format!("`{key}` is not honoured: {why}"));
        }
    }
    for key in OF_TESTS {
        top.raw(key);
    }
    let zone = top.string("default_zone", problems).unwrap_or_default();
    let nodes = match top.section("node", problems) {
        Some(section) => nodes(section, zone, &mut notes, problems),
        None => Vec::new(),
    };
    let mut manifest = Manifest::of_nodes(nodes);
    let mut number = |key, min, top: &mut Section<'_>| top.integer(key, min, NUMBER_MAX, problems);
    manifest.initial_height = number("initial_height", 0, &mut top).unwrap_or(1).max(1);
    manifest.vote_extensions_enable_height =
        number("vote_extensions_enable_height", 0, &mut top).unwrap_or(0);
    manifest.block_max_bytes = number("block_max_bytes", 0, &mut top).filter(|bytes| *bytes > 0);
    for key in AS_SETTINGS {
        let value = number(key, 0, &mut top);
        manifest
            .settings
            .extend(value.map(|count| Setting::raw("mempool", key, &count.to_string())));
    }
    manifest.disables_pex = top.boolean("disable_pex", problems).unwrap_or(false);
    manifest.prometheus = top.boolean("prometheus", problems);
    if let Some(powers) = top.section("validators", problems) {
        weigh(&mut manifest, powers, problems);
    }
    top.finish(problems);
    manifest.notes = notes;
    manifest
}

/// `[node.NAME]`, validators first, by name.
fn nodes(
    section: Section<'_>,
    default_zone: &str,
    notes: &mut Vec<String>,
    problems: &mut Problems,
) -> Vec<NodePlan> {
    let mut nodes = Vec::new();
    let mut asked_by: BTreeMap<&str, (&str, Vec<&str>)> = BTreeMap::new();
    for (name, span, options) in section.entries() {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
        if name.is_empty() || !name.chars().all(is_plain) {
            let message =
                format!("`{name}` cannot be the name of a node; use letters, digits, `-` and `_`");
            problems.add(span, message, None);
        }
        let mut table = Section::open(options, &format!("node.{name}"), problems);
        let mode = match table.one_of("mode", &Mode::WORDS, problems) {
            Some("full") => Mode::Full,
            Some("seed") => Mode::Seed,
            _ => Mode::Validator,
        };
        let mut node = NodePlan::new(name.to_owned(), mode);
        let names = |key, table: &mut Section<'_>, problems: &mut Problems| {
            let names = table.strings(key, problems).unwrap_or_default();
            names.into_iter().map(str::to_owned).collect()
        };
        node.seeds = names("seeds", &mut table, problems);
        node.persistent_peers = names("persistent_peers", &mut table, problems);
        node.zone = table.string("zone", problems).unwrap_or(default_zone).to_owned();
        node.start_at = table.integer("start_at", 0, NUMBER_MAX, problems).unwrap_or(0);
        for (key, why, same) in OF_A_NODE {
            if table.raw(key).is_some_and(|value| asks(value, same)) {
                asked_by.entry(key).or_insert((why, Vec::new())).1.push(name);
            }
        }
        table.raw("key_type").filter(|value| asks(value, "ed25519")).inspect(|_| {
            asked_by.entry("key_type").or_insert(("keys are ed25519", Vec::new())).1.push(name);
        });
        table.finish(problems);
        nodes.push(node);
    }
    let of_nodes = asked_by.iter().map(|(key, (why, names))| {
        format!("`{key}` of {} is not honoured: {why}", names.join(", "))
    });
    notes.extend(of_nodes);
    nodes.sort_by(|a, b| place(a).cmp(&place(b)));
    nodes
}

/// By role, then by name, with the number at a name's end read as one: `node10` comes behind `node9`.
fn place(node: &NodePlan) -> (Mode, &str, u64, &str) {
    let prefix = node.name.trim_end_matches(|c: char| c.is_ascii_digit());
    let number = node.name[prefix.len()..].parse().unwrap_or(0);
    (node.mode, prefix, number, &node.name)
}

/// `[validators]`: the weights in the genesis; who is not there has none.
fn weigh(manifest: &mut Manifest, powers: Section<'_>, problems: &mut Problems) {
    for node in &mut manifest.nodes {
        node.power = 0;
    }
    for (name, span, options) in powers.entries() {
        let power = match options.value {
            Value::Integer(power) => u64::try_from(power).ok().filter(|power| *power < NUMBER_MAX),
            _ => None,
        };
        let node = manifest.nodes.iter_mut().find(|node| node.name == name);
        match (power, node) {
            (Some(power), Some(node)) if node.mode == Mode::Validator => node.power = power,
            (None, _) => {
                let message = format!("`validators.{name}` must be a whole number, 0 or more");
                problems.add(span, message, None);
            }
            (_, Some(_)) => {
                let message = format!("`validators.{name}`: the mode of `{name}` is not validator");
                problems.add(span, message, None);
            }
            (_, None) => {
                problems.add(span, format!("`validators.{name}`: there is no such node"), None);
            }
        }
    }
}

/// What only the whole can be asked.
fn check(manifest: &Manifest, nodes_max: usize, problems: &mut Problems) {
    let nodes = &manifest.nodes;
    let mut add = |message: String, help| problems.add(Default::default(), message, help);
    if nodes.len() > nodes_max {
        add(format!("it has {} nodes; at most {nodes_max} can be started", nodes.len()), None);
    }
    if nodes.iter().all(|node| node.power == 0 || node.start_at > 0) {
        let message = "no validator votes from the start, so no block would ever be made";
        add(message.to_owned(), None);
    }
    if manifest.disables_pex && manifest.count(Mode::Seed) > 0 {
        let message = "`disable_pex` leaves nothing to do for a node of mode seed";
        add(message.to_owned(), Some("remove it, or the seeds".to_owned()));
    }
    let names = || nodes.iter().map(|node| node.name.as_str());
    for node in nodes {
        for (key, known) in [("seeds", &node.seeds), ("persistent_peers", &node.persistent_peers)] {
            for other in known {
                let path = format!("node.{}.{key}", node.name);
                if *other == node.name {
                    add(format!("`{path}`: a node does not know itself"), None);
                } else if !names().any(|name| name == other) {
                    let help = did_you_mean(other, names());
                    add(format!("`{path}`: there is no node `{other}`"), help);
                }
            }
        }
    }
}

/// With peers for those that name none.
fn finished(mut manifest: Manifest) -> Manifest {
    if manifest.acquaint(None) {
        let note = "nodes that name no peers know four others, not all: a full mesh of so many drowns in gossip";
        manifest.notes.push(note.to_owned());
    }
    manifest
}

/// Whether a value asks for something that is not there already.
fn asks(value: &Options, same: &str) -> bool {
    match &value.value {
        Value::String(text) => {
            let is_none = model::quantity::parse_duration(text).is_ok_and(|time| time.is_zero());
            !text.is_empty() && text != same && !is_none
        }
        Value::Integer(number) => *number != 0 && number.to_string() != same,
        Value::Float(number) => *number != 0.0,
        Value::Boolean(is_on) => *is_on,
        Value::Array(list) => !list.is_empty(),
        Value::Table(table) => !table.is_empty(),
    }
}
