//! `cargo xtask test`: what guards the main path, in the order that finds a mistake soonest, and then as many of the other
//! parts as there is time for, drawn by the commit. What passed before and cannot have changed is not run again. Whatever is
//! left out is named, with the reason, never silently; `--all` leaves out nothing.
//!
//! What is installed and what is run beside the crates' own tests is declared by each system (`systems/NAME/suite.toml`)
//! and, for what belongs to none, in `suite.toml`.

pub mod declared;
mod end_to_end;
pub mod newcomer;
pub mod prepare;
pub mod program;
pub mod sim;
pub mod soak;
mod stamps;
mod tally;
mod test_programs;
pub mod timing;
pub mod turns;

use std::path::{Path, PathBuf};

use declared::{Suite, WORKSPACE};
pub use prepare::program;
use stamps::{Sources, Stamps};
use tally::{Beside, Tally, beside, uptime_s};
use test_programs::{Program, Setting};

/// Seconds that the parts that take turns share in one run.
const TURNS_SECONDS: u32 = 90;

/// The name of the end-to-end tests' program.
const END_TO_END: &str = "end_to_end";

/// Runs the suite; with `is_all`, every part that takes turns, and nothing is left out because it passed before.
pub fn run(root: &Path, is_all: bool) -> Result<(), String> {
    let suites = declared::read(root)?;
    let sources = Sources::read(root)?;
    let mut stamps = Stamps::of(root, is_all);
    let began_s = uptime_s();
    let mut tally = Tally::default();
    // Downloads wait for a network, compilers for processors: both at once.
    let preparing = std::thread::spawn({
        let (root, suites) = (root.to_owned(), suites.clone());
        move || prepare::prepare(&root, &suites, true)
    });
    tally.step(root, "format", &["cargo", "fmt", "--all", "--check"]);
    let before = uptime_s();
    tally.done("tidy", crate::tidy::run(root, false), uptime_s() - before);
    // The binary first: it installs what the end-to-end tests start, beside the rest of the build.
    tally.step(root, "build", &["cargo", "build", "--release", "--workspace"]);
    let installing = std::thread::spawn({
        let (root, suites) = (root.to_owned(), suites.clone());
        move || prepare::systems(&root, &suites, is_all)
    });
    let programs = test_programs::built(&mut tally, root);
    // After the build, with which it shares build scripts and procedural macros: of the rest it needs metadata only. Tests
    // wait most of the time, so lints are beside them.
    let clippy =
        ["cargo", "clippy", "--release", "--workspace", "--all-targets", "--", "-D", "warnings"];
    let lints = beside(root, "lints", &clippy);
    let prepared = preparing.join().map_err(|_| "preparing panicked".to_owned())?;
    tally.skipped.extend(prepared.skipped);
    tally.skipped.extend(installing.join().map_err(|_| "installing panicked".to_owned())?);
    let alone = alone(&suites);
    let setting = setting(root, alone, prepared.python.as_deref());
    let (end_to_end, units): (Vec<&Program>, Vec<&Program>) =
        programs.iter().partition(|program| program.name == END_TO_END);
    test_programs::run(&mut tally, &setting, &units, &mut stamps, &sources);
    tally.join(lints);
    // A browser waits for runs, as the end-to-end tests do.
    let page = page(&mut tally, root);
    for program in end_to_end {
        end_to_end::run(&mut tally, &setting, &suites, program, &mut stamps, &sources);
    }
    tally.step(root, "docs", &["cargo", "xtask", "docs"]);
    if let Some(page) = page {
        tally.join(page);
    }
    in_turn(&mut tally, root, &suites, is_all, &mut stamps, &sources);
    tally.conclude(began_s)
}

/// Runs what is of one system: the tests of its crates, its end-to-end tests, and each of its parts that take turns.
pub fn run_system(root: &Path, system: &str) -> Result<(), String> {
    let suites = declared::read(root)?;
    let suite = named(&suites, system)?;
    let sources = Sources::read(root)?;
    let began_s = uptime_s();
    let mut tally = Tally::default();
    // Of the whole workspace: built for some of its crates alone, what they share would have other features.
    tally.step(root, "build", &["cargo", "build", "--release", "--workspace"]);
    let programs = test_programs::built(&mut tally, root);
    let prepared = prepare::prepare(root, std::slice::from_ref(suite), false);
    tally.skipped.extend(prepared.skipped);
    tally.skipped.extend(prepare::systems(root, std::slice::from_ref(suite), true));
    let setting = setting(root, alone(&suites), prepared.python.as_deref());
    let folder = root.join("systems").join(system);
    let own: Vec<&Program> =
        programs.iter().filter(|program| program.folder.starts_with(&folder)).collect();
    let mut stamps = Stamps::of(root, true);
    test_programs::run(&mut tally, &setting, &own, &mut stamps, &sources);
    for program in programs.iter().filter(|program| program.name == END_TO_END) {
        end_to_end::of(&mut tally, &setting, suite, program);
    }
    for turn in turns_of(suite) {
        tally.bounded(root, &turn.name, &turn.words, turn.seconds);
    }
    tally.conclude(began_s)
}

fn named<'a>(suites: &'a [Suite], name: &str) -> Result<&'a Suite, String> {
    suites.iter().find(|suite| suite.name == name).ok_or_else(|| {
        let names: Vec<&str> = suites.iter().map(|suite| suite.name.as_str()).collect();
        format!("there is no suite `{name}`; there are: {}", names.join(", "))
    })
}

/// Packages whose test programs run one at a time.
fn alone(suites: &[Suite]) -> &[String] {
    let workspace = suites.iter().find(|suite| suite.name == WORKSPACE);
    workspace.map_or(&[], |suite| &suite.tests.alone)
}

/// As many tests at a time in a program as there are processors, and one more: those that start trials wait most of the time.
fn setting<'a>(root: &'a Path, alone: &'a [String], python: Option<&'a Path>) -> Setting<'a> {
    let python = python.map(|python| ("ASSAY_TEST_PYTHON", python));
    Setting { root, alone, env: python.into_iter().collect() }
}

/// A part that takes turns.
struct Turn {
    name: String,
    words: Vec<String>,
    /// What it may take on an idle machine.
    seconds: u32,
    /// Folders whose change runs it, whoever's turn it is.
    reach: Vec<String>,
}

/// The parts of a system, or of the workspace, that take turns.
fn turns_of(suite: &Suite) -> Vec<Turn> {
    let turn = |part: &declared::Part| Turn {
        name: part.name.clone(),
        words: part.words(part.seconds),
        seconds: part.seconds,
        reach: part.reach.clone(),
    };
    let mut turns: Vec<Turn> = suite.turns.iter().map(turn).collect();
    turns.extend(suite.sim.as_ref().map(|sim| sim::turn(&suite.name, sim)));
    turns.extend(suite.soaks.iter().map(|soak| soak::turn(&suite.name, soak)));
    turns
}

/// Runs the parts that a change reaches, those that this commit draws, or all.
fn in_turn(
    tally: &mut Tally,
    root: &Path,
    suites: &[Suite],
    is_all: bool,
    stamps: &mut Stamps,
    sources: &Sources,
) {
    let (there, missing): (Vec<&Suite>, Vec<&Suite>) =
        suites.iter().partition(|suite| prepare::is_built(root, &suite.name));
    tally.not_drawn.extend(missing.into_iter().flat_map(turns_of).map(|turn| turn.name));
    let turns: Vec<Turn> = there.into_iter().flat_map(turns_of).collect();
    let changed = stamps::changed(root);
    let is_reached = |turn: &Turn, stamps: &Stamps| {
        let key = sources.key_below(&turn.reach);
        let is_below =
            |path: &String| turn.reach.iter().any(|folder| Path::new(path).starts_with(folder));
        !turn.reach.is_empty()
            && if stamps.knows(&turn.name) {
                !stamps.holds(&turn.name, key)
            } else {
                changed.iter().any(is_below)
            }
    };
    let parts: Vec<(&str, u32)> =
        turns.iter().map(|turn| (turn.name.as_str(), turn.seconds)).collect();
    let drawn = turns::drawn(&turns::commit(root), &parts, TURNS_SECONDS);
    for turn in &turns {
        if !(is_all || drawn.contains(&turn.name.as_str()) || is_reached(turn, stamps)) {
            tally.not_drawn.push(turn.name.clone());
        } else if tally.bounded(root, &turn.name, &turn.words, turn.seconds) {
            stamps.passed(&turn.name, sources.key_below(&turn.reach));
        }
    }
}

/// The report's page, beside what follows: what is checked in is what the sources build, and a real report holds in a browser.
fn page(tally: &mut Tally, root: &Path) -> Option<Beside> {
    if let Some(reason) = crate::web::missing() {
        tally.skipped.push(format!("building the page and looking at it: {reason}"));
        return None;
    }
    if !crate::web::has_browser() {
        tally.skipped.push("the page in a browser: there is no chromium".to_owned());
    }
    Some(beside(root, "page", &["cargo", "xtask", "web", "--check"]))
}

/// What the suite keeps from one run to the next, checkouts apart.
pub fn kept() -> PathBuf {
    cache().join("suite")
}

/// Where `assay doctor --install` puts programs, by the same rule.
pub fn cache() -> PathBuf {
    let folder = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    match (folder("ASSAY_CACHE"), folder("XDG_CACHE_HOME")) {
        (Some(own), _) => PathBuf::from(own),
        (None, Some(caches)) => PathBuf::from(caches).join("assay"),
        (None, None) => {
            PathBuf::from(folder("HOME").unwrap_or_else(|| "/tmp".into())).join(".cache/assay")
        }
    }
}
