//! Tests of installing, against clients that are scripts of ours. The real ones run when asked for by name.

use std::os::unix::fs::PermissionsExt as _;

use super::*;

/// A shelf whose PATH holds only the given scripts.
fn shelf(folder: &Path, scripts: &[(&str, &str)]) -> Shelf {
    let bin = folder.join("bin");
    std::fs::create_dir_all(&bin).unwrap();
    for (name, text) in scripts {
        let path = bin.join(name);
        std::fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    let cache = Some(folder.join("cache"));
    Shelf { cache, beside: None, here: None, path: vec![bin], is_root: false }
}

/// The cache folder of a shelf of a test.
fn cache(shelf: &Shelf) -> &Path {
    shelf.cache.as_deref().unwrap()
}

/// A client that puts a program into GOBIN which says `says`, and that knows it to be of k6's module.
fn client_that_installs(program: &str, says: &str) -> String {
    let of = modules_of("go.k6.io/k6 v1.8.1 ");
    format!(
        "[ $1 = version ] && exec printf '{of}'; echo fetching $2; printf '#!/bin/sh\\necho {says}\\n' > $GOBIN/{program}; chmod +x $GOBIN/{program}"
    )
}

/// The answer of `go version -m` for a program of one module of the list.
fn modules_of(start: &str) -> String {
    let line = go_modules::SUMS.lines().find(|line| line.starts_with(start)).unwrap();
    format!("program: go1.26\\n\\tdep\\t{}\\n", line.replace(' ', "\\t"))
}

/// Claim: the list is alphabetical, has each name once, and every entry can be asked what it is.
#[test]
fn the_list_is_in_order() {
    assert!(ENTRIES.windows(2).all(|pair| pair[0].name < pair[1].name));
    assert!(ENTRIES.iter().all(|e| !e.says.is_empty() && !e.asked.is_empty()));
    assert!(ENTRIES.iter().all(|e| e.how.version() != "latest"));
}

/// Claim: a program is had with the pinned version, kept, found again, and not fetched a second time; the
/// commands are shown.
#[test]
fn a_program_is_had_and_kept() {
    let folder = tempfile::tempdir().unwrap();
    let shelf = shelf(folder.path(), &[("go", &client_that_installs("k6", "k6 v1.8.1"))]);
    assert_eq!(shelf.find("k6"), None);
    let mut said = Vec::new();
    let path = shelf.install("k6", None, &mut |line| said.push(line.to_owned())).unwrap();
    assert_eq!(path, folder.path().join("cache/k6/1.8.1/k6"));
    assert_eq!(shelf.find("k6"), Some(path.clone()));
    assert!(said[0].starts_with("$ GOBIN=") && said[0].ends_with("go install go.k6.io/k6@v1.8.1"));
    assert_eq!(said[1], "fetching go.k6.io/k6@v1.8.1");
    let mut again = Vec::new();
    shelf.install("k6", None, &mut |line| again.push(line.to_owned())).unwrap();
    assert_eq!(again, [format!("k6 is there: {}", path.display())]);
    let status = shelf.list().into_iter().find(|status| status.name == "k6").unwrap();
    assert!(status.is_pinned && status.path == Some(path));
}

/// Claim: a Go program that cannot be installed by its path is built from a module of ours, which asks for the pinned
/// version; what an attempt left that was broken off is not in the way, and nothing but the program is left.
#[test]
fn a_go_program_is_built_from_a_module_of_ours() {
    let folder = tempfile::tempdir().unwrap();
    // `go -C M mod init build`, `go -C M get P@V`, `go -C M build -o FILE P`.
    let go = r#"[ $1 = version ] && exec printf 'MODULES'
case $3 in
mod) test ! -e "$2/go.mod" && echo "module $5" > "$2/go.mod";;
get) echo "require $4" >> "$2/go.mod";;
build) cat "$2/go.mod"; printf '#!/bin/sh\necho etcd Version: 3.7.3\n' > "$5"; chmod +x "$5";;
esac"#;
    let go = go.replace("MODULES", &modules_of("go.etcd.io/etcd/server/v3 v3.7.3 "));
    let shelf = shelf(folder.path(), &[("go", &go)]);
    let build = cache(&shelf).join("build/etcd");
    std::fs::create_dir_all(&build).unwrap();
    std::fs::write(build.join("go.mod"), "module half").unwrap();
    let mut said = Vec::new();
    let path = shelf.install("etcd", None, &mut |line| said.push(line.to_owned())).unwrap();
    assert_eq!(path, cache(&shelf).join("etcd/3.7.3/etcd"));
    assert!(said.iter().any(|line| line == "module build"), "{said:?}");
    assert!(said.iter().any(|line| line == "require go.etcd.io/etcd/server/v3@v3.7.3"), "{said:?}");
    assert!(!build.exists() && shelf.find("etcd") == Some(path));
}

/// Claim: what comes in another version is refused, and not found afterwards.
#[test]
fn another_version_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let shelf = shelf(folder.path(), &[("go", &client_that_installs("k6", "k6 v1.7.0"))]);
    let error = shelf.install("k6", None, &mut |_| {}).unwrap_err().to_string();
    assert_eq!(
        error,
        "k6 came, but is not what was asked for: `k6 version` was to say `v1.8.1` and said:\nk6 v1.7.0\n"
    );
    assert_eq!(shelf.find("k6"), None);
}

/// Claim: a program with a module of another sum is refused before it is run, and removed.
#[test]
fn another_sum_is_refused_before_it_is_run() {
    let folder = tempfile::tempdir().unwrap();
    let ran = folder.path().join("ran");
    let client = client_that_installs("k6", &format!("k6 v1.8.1; touch {}", ran.display()));
    let shelf = shelf(folder.path(), &[("go", &client.replace("h1:", "h1:other"))]);
    let error = shelf.install("k6", None, &mut |_| {}).unwrap_err().to_string();
    assert!(error.contains("go.k6.io/k6 v1.8.1: expected the sum h1:"), "{error}");
    assert!(!ran.exists() && !folder.path().join("cache/k6/1.8.1/k6").exists());
}

/// Claim: a client that is refused, missing or without rights gives a message that names the program and what
/// was run; what cannot be had says so.
#[test]
fn a_refusal_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let shelf =
        shelf(folder.path(), &[("go", "echo 'no such module' >&2; exit 1"), ("apt-get", "exit 0")]);
    let error = |name: &str| shelf.install(name, None, &mut |_| {}).unwrap_err().to_string();
    let hey = error("hey");
    assert!(hey.starts_with("hey could not be had: `GOBIN="), "{hey}");
    assert!(hey.contains("hey@v0.1.5` failed; its last lines:\nno such module"), "{hey}");
    assert_eq!(
        error("oha"),
        "oha cannot be had: it comes by `cargo`, which is not on this machine; install cargo first"
    );
    assert_eq!(
        error("wrk"),
        "wrk cannot be had by this user: it is a package of the distribution; run as root: \
         apt-get install --yes --no-install-recommends wrk"
    );
    assert!(error("vegeta").starts_with("vegeta cannot be had: no registry that we use has it"));
    assert!(error("wrl").starts_with("`wrl` is not in the list of programs; there are: ab, anvil"));
}

/// Claim: a program in PATH is found if there is no pinned one, but never one that merely has the file's name.
#[test]
fn programs_in_path_are_found() {
    let folder = tempfile::tempdir().unwrap();
    let shelf = shelf(folder.path(), &[("wrk", ""), ("load", ""), ("python", "")]);
    assert_eq!(shelf.find("wrk"), Some(folder.path().join("bin/wrk")));
    assert_eq!(shelf.find("cometbft-load"), None);
    assert_eq!(shelf.find("python"), None);
    let status = shelf.list().into_iter().find(|status| status.name == "wrk").unwrap();
    assert!(!status.is_pinned && status.path.is_some());
}

/// A checkout with one node, and a cargo that builds whatever it is asked for into the target folder.
fn checkout(folder: &Path) -> PathBuf {
    let checkout = folder.join("checkout");
    for path in ["apps/assay", "systems/kv/node/src", "systems/light/adapter"] {
        std::fs::create_dir_all(checkout.join(path)).unwrap();
    }
    for path in ["Cargo.toml", "systems/kv/node/Cargo.toml", "systems/kv/node/src/main.rs"] {
        std::fs::write(checkout.join(path), "").unwrap();
    }
    // One that is a workspace of its own.
    std::fs::create_dir_all(checkout.join("programs/gate/src")).unwrap();
    std::fs::write(checkout.join("programs/gate/Cargo.toml"), "").unwrap();
    checkout
}

/// `cargo build --release --manifest-path M --package P --bin P --target-dir T`.
const CARGO: &str = r#"echo building $8 of $6 from $4
mkdir -p "${10}/release"; printf '#!/bin/sh\necho usage\n' > "${10}/release/$8"; chmod +x "${10}/release/$8""#;

/// Claim: a node that is a program of its own is built from the checkout that is told, kept in the cache, found there,
/// and a later one takes its place.
#[test]
fn a_node_is_built_from_the_checkout() {
    let folder = tempfile::tempdir().unwrap();
    let (shelf, checkout) = (shelf(folder.path(), &[("cargo", CARGO)]), checkout(folder.path()));
    std::fs::create_dir_all(cache(&shelf)).unwrap();
    assert_eq!(shelf.find_ours("kv-node"), None);
    let mut said = Vec::new();
    for _ in 0..2 {
        let path = shelf.install("kv-node", Some(&checkout), &mut |l| said.push(l.to_owned()));
        assert_eq!(path.unwrap(), cache(&shelf).join("kv-node/checkout/kv-node"));
    }
    assert!(said[0].contains("cargo build --release --manifest-path"), "{said:?}");
    assert!(said[1].starts_with("building kv-node of kv-node from "), "{said:?}");
    assert_eq!(said.iter().filter(|line| line.starts_with("building")).count(), 2);
    assert_eq!(shelf.find_ours("kv-node"), Some(cache(&shelf).join("kv-node/checkout/kv-node")));
    let path = shelf.install("gate", Some(&checkout), &mut |l| said.push(l.to_owned())).unwrap();
    assert_eq!(
        (&path, shelf.find_ours("gate")),
        (&cache(&shelf).join("gate/checkout/gate"), Some(path.clone()))
    );
    assert!(
        said.iter().any(|line| {
            line.starts_with("building gate of gate-node from ")
                && line.ends_with("/programs/gate/Cargo.toml")
        }),
        "{said:?}"
    );
}

/// Claim: beside a program that was built in the checkout, the node is built beside it; and one beside this program
/// comes before one in PATH, and that before one in the cache.
#[test]
fn a_node_beside_the_program_comes_first() {
    let folder = tempfile::tempdir().unwrap();
    let checkout = checkout(folder.path());
    let beside = checkout.join("target/release");
    std::fs::create_dir_all(beside.join("deps")).unwrap();
    let mut shelf = shelf(folder.path(), &[("cargo", CARGO), ("kv-node", "")]);
    std::fs::create_dir_all(cache(&shelf)).unwrap();
    shelf.install("kv-node", Some(&checkout), &mut |_| {}).unwrap();
    assert_eq!(shelf.find_ours("kv-node"), Some(folder.path().join("bin/kv-node")));
    shelf.beside = Some(beside.clone());
    for name in ["kv-node", "gate"] {
        let path = shelf.install(name, None, &mut |_| {}).unwrap();
        assert_eq!((&path, shelf.find_ours(name)), (&beside.join(name), Some(path.clone())));
    }
    let apart = checkout.join("target/programs/release/gate");
    assert!(apart.is_file(), "a heavy program is built in a target folder of its own");
}

/// Claim: without a checkout, with one that has no such node, and with a build that fails, the message says what to do.
#[test]
fn a_node_that_cannot_be_built_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let checkout = checkout(folder.path());
    let shelf = shelf(folder.path(), &[("cargo", "echo 'no such crate' >&2; exit 101")]);
    std::fs::create_dir_all(cache(&shelf)).unwrap();
    let error = |name: &str, told: Option<&Path>| {
        shelf.install(name, told, &mut |_| {}).unwrap_err().to_string()
    };
    assert_eq!(
        error("kv-node", None),
        "kv-node is built from the checkout of Assay, and neither this program nor the working folder is in one; say where \
         there is one: assay doctor --install kv-node --checkout FOLDER, or build it there (cargo build --release -p \
         kv-node) and have it in PATH"
    );
    let no_node = error("light-node", Some(&checkout));
    assert!(no_node.contains("`light-node` is not in the list of programs"), "{no_node}");
    assert!(no_node.ends_with(&format!("in {}: gate, kv-node", checkout.display())), "{no_node}");
    for name in ["gate-node", "kv"] {
        let other = error(name, Some(&checkout));
        assert!(other.contains(&format!("`{name}` is not in the list of programs")), "{other}");
    }
    let nowhere = error("gate", None);
    assert!(nowhere.ends_with("and with a checkout of Assay its nodes"), "{nowhere}");
    let failed = error("kv-node", Some(&checkout));
    assert!(failed.contains("failed; its last lines:\nno such crate"), "{failed}");
    let missing = crate::program::find_on(&shelf, "kv-node").unwrap_err().to_string();
    assert!(missing.ends_with("; run: assay doctor --install kv-node"), "{missing}");
}

/// Claim: without HOME there is no folder that programs are kept in: none is found there or put there, and never below a
/// folder that every user of the machine can write to.
#[test]
fn without_a_home_nothing_is_kept() {
    let none = Shelf::of(|_| None);
    assert!(none.cache.is_none() && none.folder_of_ours("kv-node").is_none());
    let is_temporary = |status: InstallStatus| status.path.is_some_and(|at| at.starts_with("/tmp"));
    assert!(!none.list().into_iter().any(is_temporary));
    let folder = tempfile::tempdir().unwrap();
    let client = client_that_installs("k6", "k6 v1.8.1");
    let shelf = Shelf { cache: None, ..shelf(folder.path(), &[("go", &client), ("cargo", CARGO)]) };
    let error = shelf.install("k6", None, &mut |_| {}).unwrap_err().to_string();
    assert_eq!(
        error,
        "k6 cannot be kept in ~/.cache/assay: neither HOME nor XDG_CACHE_HOME is set; set ASSAY_CACHE to a folder that can \
         be written"
    );
    let checkout = checkout(folder.path());
    let error = shelf.install("kv-node", Some(&checkout), &mut |_| {}).unwrap_err().to_string();
    assert!(error.contains("set ASSAY_CACHE"), "{error}");
    let of = |name: &'static str, value: &'static str| {
        Shelf::of(move |asked| (asked == name).then(|| OsString::from(value))).cache
    };
    assert_eq!(of("ASSAY_CACHE", "/a"), Some(PathBuf::from("/a")));
    assert_eq!(of("XDG_CACHE_HOME", "/x"), Some(PathBuf::from("/x/assay")));
    assert_eq!(of("HOME", "/h"), Some(PathBuf::from("/h/.cache/assay")));
    assert_eq!(of("HOME", ""), None);
}

/// Says whether a process runs; one that only waits to be reaped does not.
fn runs(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
}

/// Claim: when this process is killed in the middle of an installation, the client ends with it, and so does what that has
/// started.
#[test]
fn a_client_ends_with_us() {
    const FOLDER: &str = "ASSAY_TEST_ENDS_WITH_US";
    if let Some(folder) = std::env::var_os(FOLDER) {
        let folder = PathBuf::from(folder);
        let (at, said) = (folder.display(), "{ echo $$; echo $!; }");
        let go = format!("sleep 300 & {said} > {at}/new; mv {at}/new {at}/pids; wait");
        let _ = shelf(&folder, &[("go", &go)]).install("k6", None, &mut |_| {});
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let mut installing = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "install::tests::a_client_ends_with_us"])
        .env(FOLDER, folder.path())
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let wait_until = |what: &str, is_so: &dyn Fn() -> bool| {
        for _ in 0..10_000 {
            if is_so() {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(2));
        }
        panic!("waited too long until {what}");
    };
    let pids = folder.path().join("pids");
    wait_until("the client runs", &|| pids.exists());
    let pids = std::fs::read_to_string(pids).unwrap();
    assert!(pids.lines().count() == 2 && pids.lines().all(runs), "{pids}");
    installing.kill().unwrap();
    installing.wait().unwrap();
    wait_until("both have ended", &|| !pids.lines().any(runs));
}

/// Claim: the real clients get what the table pins. Minutes long and needs a network, so it runs only for the
/// names in `ASSAY_TEST_INSTALL` (separated by commas), into the real cache folder.
#[test]
fn real_programs_can_be_had() {
    let Ok(names) = std::env::var("ASSAY_TEST_INSTALL") else { return };
    let mut refused = Vec::new();
    for name in names.split(',') {
        match install(name, None, &mut |line| println!("{line}")) {
            Ok(path) => assert!(path.exists(), "{}", path.display()),
            Err(error) => refused.push(error.to_string()),
        }
    }
    assert!(refused.is_empty(), "{}", refused.join("\n"));
}
