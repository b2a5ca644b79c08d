//! Looking after nodes, on folders like those of a node; nothing runs.

use std::fs;
use std::path::Path;

use clock::Clock;
use sut::NodeCare as _;

use crate::care::{Care, Tended};
use crate::manifest::Mode;

const VOTED: &str = "{\"height\": \"7\", \"round\": 0, \"step\": 3}";

/// A home with what a node that has run has stored.
fn home(folder: &Path, name: &str) -> std::path::PathBuf {
    let home = folder.join(name);
    for path in ["data/blockstore.db", "data/cs.wal", "config"] {
        fs::create_dir_all(home.join(path)).unwrap();
    }
    for (path, text) in [
        ("data/blockstore.db/000001.log", "blocks"),
        ("data/cs.wal/wal", "messages"),
        ("data/priv_validator_state.json", VOTED),
        ("data/write-file-atomic-0", "half"),
        ("config/addrbook.json", "{}"),
        ("config/node_key.json", "key"),
        ("config/config.toml", "moniker = \"x\""),
    ] {
        fs::write(home.join(path), text).unwrap();
    }
    home
}

fn listed(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap().flatten();
    let mut names: Vec<String> =
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

fn care(folder: &Path, wipes_validators: bool) -> Care {
    // Nothing listens there.
    let clients = "127.0.0.1:1".parse().unwrap();
    let tended = |name: &str, mode| Tended {
        name: name.to_owned(),
        mode,
        home: home(folder, name),
        clients,
    };
    let nodes = vec![
        tended("node0", Mode::Validator),
        tended("full0", Mode::Full),
        tended("seed0", Mode::Seed),
    ];
    Care { clock: Clock::start(), nodes, caught_up_within: 5, wipes_validators }
}

/// Claim: a full node that is wiped keeps its key and its configuration, loses its blocks, its addresses and its
/// votes, and can be wiped again.
#[test]
fn a_full_node_is_wiped() {
    let folder = tempfile::tempdir().unwrap();
    let care = care(folder.path(), false);
    for name in ["full0", "seed0", "full0"] {
        care.wipe(name).unwrap();
        let home = folder.path().join(name);
        assert_eq!(listed(&home.join("data")), ["priv_validator_state.json"]);
        assert_eq!(listed(&home.join("config")), ["config.toml", "node_key.json"]);
        let state = fs::read_to_string(home.join("data/priv_validator_state.json")).unwrap();
        assert!(state.contains("\"height\": \"0\""), "{state}");
    }
}

/// Claim: a validator is not wiped unless the experiment asks for it, and then it remembers how it voted.
#[test]
fn a_validator_keeps_its_votes() {
    let folder = tempfile::tempdir().unwrap();
    let words = care(folder.path(), false).wipe("node0").unwrap_err();
    assert!(
        words.contains("`node0` is a validator") && words.contains("wipe_validators"),
        "{words}"
    );
    let data = folder.path().join("node0/data");
    assert_eq!(listed(&data).len(), 4, "nothing was removed");
    care(folder.path(), true).wipe("node0").unwrap();
    assert_eq!(listed(&data), ["priv_validator_state.json"]);
    assert_eq!(fs::read_to_string(data.join("priv_validator_state.json")).unwrap(), VOTED);
}

/// Claim: what is no node and what cannot be asked or removed is said in words.
#[test]
fn what_cannot_be_done_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let care = care(folder.path(), false);
    assert!(care.wipe("node9").unwrap_err().contains("there is no node `node9`"));
    assert!(care.has_caught_up("full0").unwrap_err().contains("asking 127.0.0.1:1 for `status`"));
    fs::remove_dir_all(folder.path().join("full0/data")).unwrap();
    assert!(care.wipe("full0").unwrap_err().starts_with("removing the data of `full0`: "));
}
