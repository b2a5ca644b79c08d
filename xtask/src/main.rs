//! The project's own chores: `cargo xtask test`, `tidy`, `docs`, `new-system NAME`, `soak NAME`, `fuzz`, `theory`, `bench load`.
//!
//! It drives cargo and the built binary from outside; it must never hold logic that the product needs.

mod bench;
mod dist;
mod docs;
mod figures;
mod fuzz;
mod image;
mod interleavings;
mod methods;
mod miri;
mod mutants;
mod new_system;
mod simulated;
mod suite;
mod supply;
mod theory;
mod tidy;
mod web;

use bench::published::Size;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

const USAGE: &str = "\
cargo xtask COMMAND

  test                 format, tidy, lints, tests, the book, the page, and those of the other parts that the commit draws;
                       a test program that passed before and has not changed is not run again
  test --all           everything: every part that takes turns, and nothing left out because it passed before
  test --system NAME   one system: the tests of its crates, its end-to-end tests, its parts that take turns
  test --timing        the tests that judge real time, three times; reports and fails nothing
  program NAME         format, lints and tests of programs/NAME, a workspace of its own
  newcomer             a copy of the checkout gets a new system, whose tests must pass
  soak NAME [--seconds N] a system's long parts, each for as long as it declares
  sim NAME SEED [--seeds N] a system in virtual time, from a seed, or from N of them; prints what happened how often
  sim NAME --night     the same with 10,000 new seeds
  mutants [--seeds N] [WORD] the simulations against code that is wrong, in a copy: which seed of N (2000) finds each of the list's
                       mutants (of those whose name or file has the word); fails where none does; --night: 20,000 new seeds, and those
                       with which the right code fails are kept
  tidy [--write]       the arrow table of ARCHITECTURE.md against the manifests, and the rules of STYLE.md that a program can check (--write keeps lower counts of prose)
  docs [--write]       the book: its generated pages (--write makes them anew), its build, every link
  pictures             the two pictures at the top of README.md, made from a run of the demo
  figures [--toy]      the figures of a published API study, made anew, against a server that behaves as that API did
  new-system NAME [--node] a new system's folder and its line in the list of systems; with a node of ours beside its adapter
  web [--check]        the report's page: builds web/dist (or compares it), and tests a real report in a browser
  fuzz [--seconds N]   each fuzz target for N seconds (60)
  fuzz --budget N      N seconds for all targets together, those that the commit draws
  theory [--toy]       real trials on the echo system against queueing theory, ten seeds a queue; then --simulated
  theory --simulated   how often intervals hold, audits condemn the innocent and find the guilty, in virtual time
  theory search        methods that find the highest rate against a ledger that stalls, 200 seeds each; keeps docs/how-to/highest-rate.md
  theory compare       how often a comparison calls equal systems different, and how often it finds a tenth more work; keeps results/compare.md
  bench load [--toy | --rates | --steady | --shapes | --watched] the engine beside the load generators that are installed; writes results/bench-load.md, or its part on rates, on what a steady rate costs, on HTTP/2 and flows, or on a load that is watched
  bench honest [--toy] an honest server beside a compilation, sixty times: how often it is found so; writes the part of results/bench-load.md
  bench testnet [--toy] the published load tool beside Assay on four real validators; writes results/bench-testnet.md
  bench durability [--cost [SYSTEM] | --beside [SYSTEM] | EXPERIMENT [--trials N]] [--toy] what systems that people run lose of what they acknowledged, by setting and fault, or what keeping it costs, or their own load tools beside Assay; writes results/bench-durability*.md
  bench kv [--toy]     three replicas of etcd and of kv in turn, with TLS and durable logs; writes results/bench-kv.md
  bench published [--toy | --seconds N] [EXPERIMENT] the published tables of a key-value database, made anew with kv; writes results/kv.md
  bench gateway [--toy] the Ethereum gateway with everything on and off, beside nginx; writes results/bench-gateway.md
  dist [--pack]        a release: assay as one static file, a package for Debian, an image, completions, the manual page, a list of what
                       is in it, checksums; builds everything once more (--pack: not again), and tries it
  supply               licences, sources and duplicates of every lock file, by cargo-deny; the packages of our crates
  interleavings        the sampler's ring in every order of its two threads, by loom
  miri                 the buffers that the kernel fills, each access looked at by Miri
  image                the Ethereum gateway as its container has it: static, with gRPC; its size, and its tests
  bench report [--toy] a report of ten million rows beside DuckDB on the same file; writes results/bench-report.md; with --billion
                       of a billion, which takes an hour and 20 GB, to results/bench-report-billion.md
  bench page [--toy]   the page of runs of 10 and 100 million rows: size, writing, drawing; writes results/bench-page.md
";

fn main() -> ExitCode {
    if let Err(error) = forget_cargo() {
        eprintln!("xtask: starting anew: {error}");
        return ExitCode::FAILURE;
    }
    let root = workspace_root();
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let result = match words.as_slice() {
        ["test"] => suite::run(&root, false),
        ["test", "--all"] => suite::run(&root, true),
        ["test", "--timing"] => suite::timing::run(&root),
        ["test", "--system", system] => suite::run_system(&root, system),
        ["program", name] => suite::program::run(&root, name),
        ["newcomer"] => suite::newcomer::run(&root),
        ["soak", system] => suite::soak::run(&root, system, None),
        ["soak", system, "--seconds", seconds] => {
            number(seconds).and_then(|seconds| suite::soak::run(&root, system, Some(seconds)))
        }
        ["sim", system, "--night"] => suite::sim::night(&root, system),
        ["sim", system, seed] => {
            number(seed).and_then(|seed| suite::sim::run(&root, system, u64::from(seed), 1))
        }
        ["sim", system, seed, "--seeds", seeds] => number(seed)
            .and_then(|seed| suite::sim::run(&root, system, u64::from(seed), number(seeds)?)),
        ["mutants", rest @ ..] => mutants(&root, rest),
        ["tidy"] => tidy::run(&root, false),
        ["tidy", "--write"] => tidy::run(&root, true),
        ["docs"] => docs::run(&root, false),
        ["docs", "--write"] => docs::run(&root, true),
        ["pictures"] => docs::pictures::run(&root),
        ["figures"] => figures::run(&root, false),
        ["figures", "--toy"] => figures::run(&root, true),
        ["web"] => web::run(&root, false),
        ["web", "--check"] => web::run(&root, true),
        ["new-system", name] => new_system::run(&root, name, false).map(|_| ()),
        ["new-system", name, "--node"] | ["new-system", "--node", name] => {
            new_system::run(&root, name, true).map(|_| ())
        }
        ["theory"] => theory::run(&root, false).and_then(|()| simulated::run(&root)),
        ["theory", "--simulated"] => simulated::run(&root),
        ["theory", "search"] => methods::run(&root, &methods::SEARCH),
        ["theory", "compare"] => methods::run(&root, &methods::COMPARE),
        ["theory", "--toy"] => theory::run(&root, true),
        ["bench", "load"] => bench::run(&root, false),
        ["bench", "load", "--toy"] => bench::run(&root, true),
        ["bench", "load", part] => bench::run_part(&root, part),
        ["bench", "honest"] => bench::honest::run(&root, false),
        ["bench", "honest", "--toy"] => bench::honest::run(&root, true),
        ["bench", "durability"] => bench::durability::run(&root, false, None, None),
        ["bench", "durability", "--toy"] => bench::durability::run(&root, true, None, None),
        ["bench", "durability", "--cost"] => bench::durability::cost::run(&root, false, None),
        ["bench", "durability", "--cost", "--toy"] => {
            bench::durability::cost::run(&root, true, None)
        }
        ["bench", "durability", "--cost", system] => {
            bench::durability::cost::run(&root, false, Some(system))
        }
        ["bench", "durability", "--beside"] => bench::durability::beside::run(&root, false, None),
        ["bench", "durability", "--beside", "--toy"] => {
            bench::durability::beside::run(&root, true, None)
        }
        ["bench", "durability", "--beside", system, "--toy"] => {
            bench::durability::beside::run(&root, true, Some(system))
        }
        ["bench", "durability", "--beside", system] => {
            bench::durability::beside::run(&root, false, Some(system))
        }
        ["bench", "durability", name, "--toy"] => {
            bench::durability::run(&root, true, Some(name), None)
        }
        ["bench", "durability", name, "--trials", trials] => {
            bench::durability::run(&root, false, Some(name), Some(trials))
        }
        ["bench", "durability", name] => bench::durability::run(&root, false, Some(name), None),
        ["bench", "kv"] => bench::kv::run(&root, false),
        ["bench", "kv", "--toy"] => bench::kv::run(&root, true),
        ["bench", "published", rest @ ..] => published(&root, rest),
        ["bench", "gateway"] => bench::gateway::run(&root, false),
        ["bench", "gateway", "--toy"] => bench::gateway::run(&root, true),
        ["image"] => image::run(&root),
        ["dist"] => dist::run(&root, false),
        ["dist", "--pack"] => dist::run(&root, true),
        ["supply"] => supply::run(&root),
        ["interleavings"] => interleavings::run(&root),
        ["miri"] => miri::run(&root),
        ["bench", "page"] => bench::page::run(&root, false),
        ["bench", "page", "--toy"] => bench::page::run(&root, true),
        ["bench", "report"] => bench::report::run(&root, bench::report::TEN_MILLION),
        ["bench", "report", "--toy"] => bench::report::run(&root, bench::report::TOY),
        ["bench", "report", "--billion"] => bench::report::run(&root, bench::report::BILLION),
        ["bench", "testnet"] => bench::testnet::run(&root, false),
        ["bench", "testnet", "--toy"] => bench::testnet::run(&root, true),
        ["fuzz"] => fuzz::run(&root, 60),
        ["fuzz", "--seconds", seconds] => {
            number(seconds).and_then(|seconds| fuzz::run(&root, seconds))
        }
        ["fuzz", "--budget", seconds] => {
            number(seconds).and_then(|seconds| fuzz::run_within(&root, seconds))
        }
        _ => {
            eprint!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("xtask: {message}");
            ExitCode::FAILURE
        }
    }
}

/// `[--toy | --seconds N] [EXPERIMENT]`.
fn published(root: &Path, words: &[&str]) -> Result<(), String> {
    let (size, rest) = match words {
        ["--toy", rest @ ..] => (Size::Toy, rest),
        ["--seconds", seconds, rest @ ..] => (Size::Seconds(number(seconds)?), rest),
        rest => (Size::Seconds(120), rest),
    };
    match rest {
        [] => bench::published::run(root, size, None),
        [name] => bench::published::run(root, size, Some(name)),
        _ => Err("bench published takes --toy or --seconds N, then the name of one experiment"
            .to_owned()),
    }
}

/// `[--seeds N | --night] [WORD]`.
fn mutants(root: &Path, words: &[&str]) -> Result<(), String> {
    let of = |count| mutants::Seeds { first: 0, count };
    let (seeds, rest) = match words {
        ["--night", rest @ ..] => (mutants::Seeds::of_a_night()?, rest),
        ["--seeds", seeds, rest @ ..] => (of(number(seeds)?), rest),
        rest => (of(2_000), rest),
    };
    match rest {
        [] => mutants::run(root, seeds, ""),
        [word] => mutants::run(root, seeds, word),
        _ => Err(
            "mutants takes --seeds N or --night, then a word of the names of those that are meant"
                .to_owned(),
        ),
    }
}

fn number(text: &str) -> Result<u32, String> {
    text.parse().map_err(|_| format!("`{text}` is not a whole number"))
}

/// Starts this program anew without what `cargo run` told it of its package. A build script may look at those variables
/// (ring's does), so a build started from here would make everything that depends on it anew, and the next one by hand
/// once more.
fn forget_cargo() -> std::io::Result<()> {
    let told = |name: &str| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_");
    let names: Vec<String> = std::env::vars_os()
        .filter_map(|(name, _)| name.into_string().ok())
        .filter(|name| told(name))
        .collect();
    if names.is_empty() {
        return Ok(());
    }
    let mut anew = Command::new(std::env::current_exe()?);
    anew.args(std::env::args_os().skip(1));
    for name in names {
        anew.env_remove(name);
    }
    // It returns only if it could not start.
    Err(anew.exec())
}

fn workspace_root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("xtask lies in the workspace's folder")
        .to_path_buf()
}
