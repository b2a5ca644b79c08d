//! What the pages under docs/ tell a reader to do is done: every experiment on them is resolved, every command
//! is run, against servers on loopback. Durations are cut to one second, so that the whole stays short; what
//! the commands print is not compared, because figures differ from run to run.
//!
//! How a page says what a block is, in the words after its three backticks:
//!
//! ```text
//! toml experiment               a whole experiment: `assay check` accepts it
//! toml experiment file=my.toml  the same, kept for the page's later commands
//! text file=targets.txt         a file that later commands read
//! console                       lines that begin with `$ ` are commands; they end with 0
//! console code=99               they end with 99
//! … no-run: REASON              it cannot be run here; it is counted, and the reason shown
//! ```
//!
//! In tables, code that begins with `assay ` is a command too.

mod pages;

use std::path::{Path, PathBuf};
use std::sync::Mutex;

use crate::flows::shop::Shop;
use crate::harness::{self, ASSAY, Echo, Place, Said, beside_others, finish, locked, say};
use pages::{Block, Step};

/// More blocks that cannot be run than this would make the promise above hollow.
const NOT_RUN_MAX: usize = 16;

/// Pages looked at at once: their loads are small, and two processors carry several.
const PAGES_AT_ONCE: usize = 4;

/// The result of one page.
#[derive(Debug, Default)]
struct Tally {
    experiments: usize,
    commands: usize,
    not_run: Vec<String>,
    problems: Vec<String>,
}

/// Claim: every experiment on the pages resolves, and every command ends as the page says.
#[test]
fn every_page_does_what_it_says() {
    let _beside = beside_others();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let pages = Mutex::new(pages::all(&root));
    let total = Mutex::new(Tally::default());
    std::thread::scope(|scope| {
        for _ in 0..PAGES_AT_ONCE {
            scope.spawn(|| {
                loop {
                    let Some(page) = locked(&pages).pop() else { return };
                    let tally = follow(&root, &page);
                    let mut total = locked(&total);
                    total.experiments += tally.experiments;
                    total.commands += tally.commands;
                    total.not_run.extend(tally.not_run);
                    total.problems.extend(tally.problems);
                }
            });
        }
    });
    let total = locked(&total);
    say(&format!(
        "docs: {} experiments resolved, {} commands run, {} blocks not run:",
        total.experiments,
        total.commands,
        total.not_run.len()
    ));
    for line in &total.not_run {
        say(&format!("  {line}"));
    }
    assert!(total.problems.is_empty(), "{}", total.problems.join("\n\n"));
    assert!(total.experiments > 0 && total.commands > 0, "no page was found: {total:?}");
    assert!(total.not_run.len() <= NOT_RUN_MAX, "too much is not run: {:#?}", total.not_run);
}

/// Claim: no page shows a pipeline that lets 97 pass: a run that cannot tell has tested nothing.
#[test]
fn no_snippet_lets_97_pass() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    for page in pages::all(&root) {
        let text = std::fs::read_to_string(root.join(&page)).expect("a page");
        let lets_pass = text.lines().any(|line| line.trim_start().starts_with("allow_failure:"));
        assert!(!lets_pass, "{}", page.display());
    }
}

/// Claim: every audit has a page, which names its test and shows the experiment of that test, and the pages'
/// index has a line for it.
#[test]
fn every_audit_has_its_page() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let names = crate::audits::audits();
    assert!(names.len() >= 18, "only {names:?}");
    let read = |name: &str| {
        let path = root.join("docs/audits").join(format!("{name}.md"));
        std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    };
    let index = read("index");
    let of_the_system = include_str!("audits/of_the_system.rs");
    let of_the_instrument = include_str!("audits/of_the_instrument.rs");
    let trials =
        evenly(&format!("{of_the_system}{of_the_instrument}{}", include_str!("audits.rs")));
    for name in names {
        let page = read(&name);
        assert!(page.contains(&format!("`fn {name}`")), "{name}'s page names no test");
        let steps = pages::steps(&page).unwrap_or_else(|problem| panic!("{name}: {problem}"));
        let experiments = steps.iter().filter_map(|(_, step)| match step {
            Step::Block(block) if block.is_experiment => Some(evenly(&block.text)),
            _ => None,
        });
        let experiments: Vec<String> = experiments.collect();
        assert!(!experiments.is_empty(), "{name}'s page shows no experiment");
        for line in experiments.iter().flat_map(|text| text.lines()) {
            assert!(trials.contains(line), "{name}'s page has a line that no trial has: {line}");
        }
        assert!(index.contains(&format!("]({name}.md)")), "the index has no line for {name}");
    }
}

/// Text with its lines trimmed, single spaces, and what Rust escapes in strings as it is; addresses, which a
/// trial learns when it runs, left open.
fn evenly(text: &str) -> String {
    let text = text.replace("\\n", "\n").replace("\\\"", "\"");
    let text = text.replace("{{", "{").replace("}}", "}").replace("127.0.0.1:4000", "{}");
    let line = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

/// Does what one page says, from its top to its end, in a folder of its own.
fn follow(root: &Path, page: &Path) -> Tally {
    let mut tally = Tally::default();
    let name = page.strip_prefix(root).unwrap_or(page).display().to_string();
    let text = std::fs::read_to_string(page).unwrap_or_else(|error| panic!("{name}: {error}"));
    let steps = match pages::steps(&text) {
        Ok(steps) => steps,
        Err(problem) => {
            tally.problems.push(format!("docs/{name}: {problem}"));
            return tally;
        }
    };
    let mut desk: Option<Desk> = None;
    for (line, step) in steps {
        let place = format!("docs/{name}:{line}");
        let problem = match step {
            Step::NotRun(reason) => {
                tally.not_run.push(format!("{place}: {reason}"));
                continue;
            }
            Step::Block(block) => desk.get_or_insert_with(Desk::new).lay_out(&block, &mut tally),
            Step::Command { text, code } => {
                tally.commands += 1;
                desk.get_or_insert_with(Desk::new).run(&text, code).err()
            }
        };
        tally.problems.extend(problem.map(|problem| format!("{place}: {problem}")));
    }
    tally
}

/// A page's folder, with a server beside it and `assay` on its path.
struct Desk {
    place: Place,
    server: Echo,
    shop: Shop,
    programs: PathBuf,
}

impl Desk {
    fn new() -> Self {
        let place = Place::new();
        let programs = place.path().join("programs");
        std::fs::create_dir(&programs).expect("the temporary folder can be written");
        std::os::unix::fs::symlink(ASSAY, programs.join("assay")).expect("a link can be made");
        let server = Echo::start(&["--service=2ms", "--servers=64"]);
        Self { place, server, shop: Shop::start(), programs }
    }

    /// Keeps the file that a block is, and resolves the experiment that it is.
    fn lay_out(&self, block: &Block, tally: &mut Tally) -> Option<String> {
        let text = self.with_addresses(&block.text);
        let file = block.file.as_deref().unwrap_or("experiment.toml");
        self.place.write(file, text);
        if !block.is_experiment {
            return None;
        }
        tally.experiments += 1;
        let said = self.place.assay(&["check", file]);
        (said.code != 0).then(|| format!("assay check ends with {}:\n{}", said.code, said.stderr))
    }

    fn run(&self, text: &str, code: i32) -> Result<(), String> {
        let line = self.with_addresses(&pages::shortened(text, |file| self.has_steps(file)));
        let said = self.shell(&line);
        self.addresses_in_files();
        if said.code == code || self.only_the_machine_is_to_blame(said.code) {
            return Ok(());
        }
        Err(format!(
            "`{text}`, run as `{line}`, ends with {}, not {code}:\n{}\n{}",
            said.code, said.stdout, said.stderr
        ))
    }

    fn shell(&self, line: &str) -> Said {
        // The binary's own name, which the harness adds, is the shell's first argument and is not used.
        let mut shell = self.place.started_by(&["sh", "-c", line, "sh"], &[]);
        let path = std::env::var("PATH").unwrap_or_default();
        shell.env("PATH", format!("{}:{path}", self.programs.display()));
        finish(&mut shell)
    }

    /// The addresses that pages write, replaced by those of this page's server.
    fn with_addresses(&self, text: &str) -> String {
        text.replace("127.0.0.1:8080", &self.server.http)
            .replace("localhost:8080", &self.server.http)
            .replace("127.0.0.1:8090", &self.shop.address.to_string())
            .replace("127.0.0.1:4000", &self.server.frames)
    }

    /// Files that commands have written get this page's addresses too.
    fn addresses_in_files(&self) {
        for file in std::fs::read_dir(self.place.path()).into_iter().flatten().flatten() {
            let path = file.path();
            if path.extension().is_some_and(|extension| extension == "toml")
                && let Ok(text) = std::fs::read_to_string(&path)
            {
                std::fs::write(&path, self.with_addresses(&text)).expect("it is ours");
            }
        }
    }

    /// Whether an experiment file gives its own length.
    fn has_steps(&self, file: &str) -> bool {
        let text = std::fs::read_to_string(self.place.path().join(file)).unwrap_or_default();
        text.contains("steps") || text.contains("trace")
    }

    /// Whether the newest run is invalid for what else this machine did, and for nothing more. A load that is cut to a
    /// second has a first fifth of ten transactions, which the other pages' programs starting beside it make slower.
    fn only_the_machine_is_to_blame(&self, code: i32) -> bool {
        code == 97
            && !self.place.runs().is_empty()
            && harness::only_the_machine_is_to_blame(code, &self.place.report().1)
    }
}
