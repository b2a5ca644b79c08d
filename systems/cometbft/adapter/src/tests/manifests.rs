//! What a testnet consists of: from numbers, from a manifest in the published form, and back.

use std::path::Path;

use crate::manifest::{Manifest, Mode, NodePlan, read};

fn node<'a>(manifest: &'a Manifest, name: &str) -> &'a NodePlan {
    manifest.nodes.iter().find(|node| node.name == name).unwrap()
}

fn mistakes(text: &str) -> String {
    read(text, 200).unwrap_err().join("\n")
}

/// How many of these nodes are connected to the first of them without leaving them.
fn connected(manifest: &Manifest, names: &[&str]) -> usize {
    let (mut reached, mut todo) = (vec![names[0]], vec![names[0]]);
    while let Some(at) = todo.pop() {
        let is_joined = |other: &str| {
            let knows = |who: &str, whom: &str| {
                node(manifest, who).persistent_peers.iter().any(|name| name == whom)
            };
            knows(at, other) || knows(other, at)
        };
        for other in names.iter().filter(|other| is_joined(other)) {
            if !reached.contains(other) {
                reached.push(other);
                todo.push(other);
            }
        }
    }
    reached.len()
}

/// Claim: in a small network each knows all others and not itself; in a large one each knows four, and every
/// node can be reached from every other.
#[test]
fn who_knows_whom() {
    let small = Manifest::of_counts(3, 1, 0, None);
    assert_eq!(node(&small, "node2").persistent_peers, ["node0", "node1", "full0"]);
    assert!(Manifest::of_counts(1, 0, 0, None).nodes[0].persistent_peers.is_empty());
    let large = Manifest::of_counts(60, 4, 0, None);
    assert!(!large.uses_pex());
    assert!(large.nodes.iter().all(|node| node.persistent_peers.len() == 4));
    let names: Vec<&str> = large.nodes.iter().map(|node| node.name.as_str()).collect();
    assert_eq!(connected(&large, &names), 64);
}

/// Claim: each node knows as many others as is asked for, none twice and not itself; whatever run of neighbours is
/// cut off, it and the rest are connected inside themselves; with as many as there are all know all.
#[test]
fn peers_that_are_asked_for() {
    for peers in 1..16 {
        let manifest = Manifest::of_counts(16, 0, 0, Some(peers));
        let names: Vec<&str> = manifest.nodes.iter().map(|node| node.name.as_str()).collect();
        for node in &manifest.nodes {
            let mut known = node.persistent_peers.clone();
            known.sort();
            known.dedup();
            assert_eq!(known.len(), peers);
            assert!(!known.contains(&node.name));
        }
        for cut in 1..16 {
            let (one, other) = names.split_at(cut);
            assert_eq!(connected(&manifest, one), one.len(), "{peers} peers, cut at {cut}");
            assert_eq!(connected(&manifest, other), other.len(), "{peers} peers, cut at {cut}");
        }
    }
    let three = Manifest::of_counts(16, 0, 0, Some(3));
    assert_eq!(node(&three, "node14").persistent_peers, ["node15", "node0", "node2"]);
    assert_eq!(read(&three.to_toml(), 200).unwrap(), three);
}

/// Claim: with seeds, nodes ask them in turn and know nobody else; seeds know each other; peers are exchanged.
#[test]
fn seeds_are_asked_in_turn() {
    let manifest = Manifest::of_counts(4, 2, 2, None);
    let names: Vec<&str> = manifest.nodes.iter().map(|node| node.name.as_str()).collect();
    assert_eq!(names, ["node0", "node1", "node2", "node3", "full0", "full1", "seed0", "seed1"]);
    assert!(manifest.uses_pex());
    for (name, asked) in [("node0", "seed0"), ("node3", "seed1"), ("full0", "seed0")] {
        assert_eq!(node(&manifest, name).seeds, [asked]);
        assert!(node(&manifest, name).persistent_peers.is_empty());
    }
    assert_eq!(node(&manifest, "seed1").persistent_peers, ["seed0"]);
    assert_eq!(node(&manifest, "seed1").mode, Mode::Seed);
    assert_eq!(manifest.followers().count(), 6);
    let powers: Vec<u64> = manifest.nodes.iter().map(|node| node.power).collect();
    assert_eq!(powers, [100, 100, 100, 100, 0, 0, 0, 0]);
}

/// Claim: what is written is read again as what was started, whichever way it came.
#[test]
fn a_written_manifest_is_read_again() {
    let text = r#"
        initial_height = 1000
        vote_extensions_enable_height = 1007
        block_max_bytes = 4194304
        prometheus = true
        default_zone = "Far \"Away\""
        experimental_max_gossip_connections_to_persistent_peers = 3
        [validators]
        a = 70
        b = 30
        [node.a]
        seeds = ["s"]
        zone = "Oregon"
        [node.b]
        persistent_peers = ["a", "f"]
        [node.late]
        seeds = ["s"]
        start_at = 1010
        [node.f]
        mode = "full"
        seeds = ["s"]
        [node.s]
        mode = "seed"
    "#;
    let manifest = read(text, 200).unwrap();
    assert_eq!((node(&manifest, "a").power, node(&manifest, "late").power), (70, 0));
    assert_eq!(node(&manifest, "late").start_at, 1010);
    assert_eq!(node(&manifest, "f").zone, "Far \"Away\"");
    assert_eq!(manifest.zones(), "Far \"Away\": b late f s; Oregon: a");
    // The published form: who names nobody knows all others.
    assert_eq!(node(&manifest, "s").persistent_peers, ["a", "b", "late", "f"]);
    for manifest in
        [manifest, Manifest::of_counts(20, 3, 0, None), Manifest::of_counts(4, 2, 2, None)]
    {
        assert_eq!(read(&manifest.to_toml(), 200).unwrap(), manifest, "{}", manifest.to_toml());
    }
}

/// Claim: what a manifest asks for and cannot have is noted by its name and only where it asks for something.
#[test]
fn what_is_not_honoured_is_noted() {
    let text = r#"
        pbts_enable_height = 1
        vote_extension_size = 8192
        abci_protocol = "builtin"
        key_type = "ed25519"
        check_tx_delay = "0ms"
        evidence = 0
        ipv6 = false
        [validator_update.0]
        a = 10
        [node.a]
        privval_protocol = "file"
        perturb = ["kill"]
        persist_interval = 1
        [node.b]
        perturb = ["pause"]
        database = "rocksdb"
    "#;
    let manifest = read(text, 200).unwrap();
    let keys: Vec<&str> =
        manifest.notes.iter().map(|note| note.split('`').nth(1).unwrap()).collect();
    let expected =
        ["validator_update", "vote_extension_size", "pbts_enable_height", "database", "perturb"];
    assert_eq!(keys, expected);
    assert!(manifest.notes[4].starts_with("`perturb` of a, b is not honoured: "));
}

/// Claim: what nobody knows and what cannot be is an error that names it, all at once.
#[test]
fn impossible_manifests_are_refused() {
    for (text, words) in [
        ("[node.a]\nmode = \"light\"", "`node.a.mode` cannot be `light`"),
        (
            "[node.a]\nmod = \"full\"",
            "`node.a.mod` is not a key that Assay knows; did you mean `mode`",
        ),
        ("initial_hight = 3\n[node.a]", "`initial_hight` is not a key"),
        ("[node.a]\nseeds = [\"sead\"]\n[node.seed]\nmode = \"seed\"", "did you mean `seed`"),
        ("[node.a]\npersistent_peers = [\"a\"]", "a node does not know itself"),
        ("[node.a]\nmode = \"full\"", "no validator votes"),
        ("[node.a]\nstart_at = 5", "no validator votes"),
        ("", "no validator votes"),
        ("[validators]\nb = 1\n[node.a]", "there is no such node"),
        ("[validators]\na = -1\n[node.a]", "must be a whole number"),
        ("[validators]\nf = 1\n[node.a]\n[node.f]\nmode = \"full\"", "is not validator"),
        ("disable_pex = true\n[node.a]\nseeds = [\"s\"]\n[node.s]\nmode = \"seed\"", "disable_pex"),
        ("[node.\"a/b\"]", "cannot be the name of a node"),
        ("[node.a", "TOML parse error"),
    ] {
        assert!(mistakes(text).contains(words), "{text}: {}", mistakes(text));
    }
    assert_eq!(read("[node.a]\nzone = 1\nmode = \"x\"", 200).unwrap_err().len(), 2);
    let many: String = (0..4).map(|n| format!("[node.n{n}]\n")).collect();
    assert!(read(&many, 3).unwrap_err()[0].contains("it has 4 nodes; at most 3"));
}

/// Claim: the manifests of the published testnets have their published shapes, and are startable but for what
/// version 0.38 lacks.
#[test]
fn published_shapes() {
    let folder =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../experiments/cometbft/manifests");
    for (file, shape) in [("200-node.toml", (175, 20, 5)), ("rotating.toml", (10, 25, 3))] {
        let text = std::fs::read_to_string(folder.join(file)).unwrap();
        let manifest = read(&text, 200).unwrap();
        let counts = [Mode::Validator, Mode::Full, Mode::Seed].map(|mode| manifest.count(mode));
        assert_eq!((counts[0], counts[1], counts[2]), shape, "{file}");
        assert!(manifest.uses_pex());
        assert_eq!(manifest.notes.len(), 1, "{:?}", manifest.notes);
        assert_eq!(manifest.zones().is_empty(), file == "rotating.toml");
    }
}
