//! The command line as people and other programs meet it: mistakes with their exact words, and everything that
//! needs no run. The broken cases stand in `command_line/broken.md`, written to be read; `ASSAY_TEST_BLESS=1`
//! rewrites the expected texts from what the binary says now, to be reviewed by eye before they are kept.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fmt::Write as _;
use std::io::Read as _;
use std::path::Path;
use std::time::Duration;

use crate::harness::{self, Place, Running, beside_others, finish};
use serde_json::Value;

/// One broken input.
#[derive(Default)]
struct Case {
    title: String,
    /// Everything up to the expected text, as it stands in the file.
    given: String,
    /// The words after `assay`.
    arguments: Vec<String>,
    /// Files beside it, by name; `-` is standard input.
    files: Vec<(String, String)>,
    variables: Vec<(String, String)>,
    code: i32,
    stderr: String,
}

/// Claim: every broken command line, experiment file and target file says exactly the words beside it on
/// standard error, nothing on standard output, and ends with the code beside it; there are at least 40.
#[test]
fn every_mistake_has_its_words() {
    let _machine = beside_others();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/command_line/broken.md");
    let text = std::fs::read_to_string(&path).unwrap();
    let (head, cases) = cases(&text);
    let (mut blessed, mut wrong) = (head, Vec::new());
    for case in &cases {
        let (code, stdout, stderr) = run(case);
        if code != case.code || stderr != case.stderr || !stdout.is_empty() {
            wrong.push(format!(
                "{}: code {code}, expected {}\n{stderr}\n--- expected\n{}\n--- stdout\n{stdout}",
                case.title, case.code, case.stderr
            ));
        }
        write!(blessed, "{}- code: {code}\n\n```text\n{stderr}\n```\n\n", case.given).unwrap();
    }
    if std::env::var_os("ASSAY_TEST_BLESS").is_some() {
        std::fs::write(&path, blessed.trim_end().to_owned() + "\n").unwrap();
    }
    assert!(wrong.is_empty(), "{} of {}:\n\n{}", wrong.len(), cases.len(), wrong.join("\n\n"));
    assert!(cases.len() >= 40, "only {} cases", cases.len());
}

fn run(case: &Case) -> (i32, String, String) {
    let place = Place::new();
    for (name, text) in case.files.iter().filter(|(name, _)| name != "-") {
        place.write(name, text);
    }
    let arguments: Vec<&str> = case.arguments.iter().map(String::as_str).collect();
    let mut command = place.command(&arguments);
    command.envs(case.variables.iter().cloned());
    if let Some((_, input)) = case.files.iter().find(|(name, _)| name == "-") {
        let path = place.write("standard-input", input);
        command.stdin(std::fs::File::open(path).unwrap());
    }
    let said = finish(&mut command);
    assert!(
        place.runs().iter().all(|run| said.stderr.contains(&*run.to_string_lossy())),
        "{}: a mistake left a run folder that it does not name",
        case.title
    );
    let here = place.path().display().to_string();
    let mut stderr = said.stderr.trim_end_matches('\n').replace(&here, "…");
    // A run folder's name begins with the time.
    for run in place.runs() {
        let name = run.file_name().unwrap().to_string_lossy().into_owned();
        let (utc, rest) = name.split_once('_').expect("the time, then the name");
        assert!(utc.len() == 16 && utc.ends_with('Z'), "{name}");
        stderr = stderr.replace(&name, &format!("UTC_{rest}"));
    }
    (said.code, said.stdout, stderr)
}

/// The text before the first case, and the cases.
fn cases(text: &str) -> (String, Vec<Case>) {
    let start = text.find("\n## ").expect("there is a case") + 1;
    let (head, rest) = text.split_at(start);
    let mut cases = Vec::new();
    for part in rest.trim_start_matches("## ").split("\n## ") {
        cases.push(read_case(part));
    }
    (head.to_owned(), cases)
}

fn read_case(part: &str) -> Case {
    let mut case = Case { code: 2, ..Case::default() };
    case.title = part.lines().next().unwrap_or_default().to_owned();
    let given = part.find("- code: ").unwrap_or(part.len());
    case.given = format!("## {}\n\n", part[..given].trim_end());
    let (mut open, mut block) = (None::<String>, String::new());
    for line in part.lines().skip(1) {
        match (&open, line) {
            (Some(name), "```") => {
                match name.as_str() {
                    "text" => case.stderr = block.trim_end_matches('\n').to_owned(),
                    name => {
                        let name = name.split_whitespace().last().expect("a block has a name");
                        case.files.push((name.to_owned(), block.clone()));
                    }
                }
                open = None;
                block.clear();
            }
            (Some(_), line) => block += &format!("{line}\n"),
            (None, line) => {
                if let Some(name) = line.strip_prefix("```") {
                    open = Some(name.to_owned());
                } else if let Some(words) = line.strip_prefix("- run: `assay ") {
                    case.arguments = split(words.trim_end_matches('`'));
                } else if let Some(set) = line.strip_prefix("- env: `") {
                    let (name, value) = set.trim_end_matches('`').split_once('=').unwrap();
                    case.variables.push((name.to_owned(), value.to_owned()));
                } else if let Some(code) = line.strip_prefix("- code: ") {
                    case.code = code.parse().unwrap();
                }
            }
        }
    }
    case
}

/// Words as a shell splits them, with single quotes.
fn split(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quoted, mut begun) = (Vec::new(), String::new(), false, false);
    for c in line.chars() {
        match c {
            '\'' => (quoted, begun) = (!quoted, true),
            ' ' if !quoted => {
                if begun {
                    words.push(std::mem::take(&mut word));
                }
                begun = false;
            }
            c => {
                word.push(c);
                begun = true;
            }
        }
    }
    if begun {
        words.push(word);
    }
    words
}

/// Claim: `assay` alone says what it is, that nothing is sent anywhere else, and four lines to try.
#[test]
fn alone_it_says_what_it_is() {
    let _machine = beside_others();
    let said = Place::new().assay(&[]);
    said.expect_code(0)
        .expect_stdout("measures what a client of a transaction system really gets")
        .expect_stdout("Nothing is ever sent anywhere but to the targets that you name");
    let tries = said.stdout.lines().filter(|line| line.starts_with("  assay ")).count();
    assert_eq!((tries, said.stderr.as_str()), (4, ""));
}

const COMMANDS: [&str; 10] =
    ["run", "check", "report", "list", "init", "doctor", "serve", "schema", "completions", "man"];

/// Claim: every command has a short and a long help on standard output, ends with 0, and all but `man` and
/// `serve`, whose options are the system's, show an example; `assay help COMMAND` is the same.
#[test]
fn every_command_has_help() {
    let _machine = beside_others();
    let place = Place::new();
    let all = place.assay(&["--help"]);
    all.expect_code(0);
    for command in COMMANDS {
        let listed = all.stdout.lines().any(|line| line.trim_start().starts_with(command));
        assert!(listed, "`assay --help` does not list {command}");
        if command == "serve" {
            let said = place.assay(&["serve", "echo", "--help"]);
            said.expect_code(0).expect_stdout("--listen").expect_stdout("Examples");
            continue;
        }
        for help in ["-h", "--help"] {
            let said = place.assay(&[command, help]);
            said.expect_code(0).expect_stdout("Usage: assay");
            assert_eq!(said.stderr, "", "{command} {help}");
        }
        let long = place.assay(&[command, "--help"]);
        long.expect_stdout("Example").expect_stdout(&format!("  assay {command}"));
        assert_eq!(long.stdout, place.assay(&["help", command]).stdout, "assay help {command}");
    }
}

/// Claim: the version names the commit that the binary was built from.
#[test]
fn the_version_names_the_commit() {
    let _machine = beside_others();
    let said = Place::new().assay(&["--version"]);
    said.expect_code(0);
    let rest = said.stdout.trim_end().strip_prefix("assay ").expect("its name first");
    let (number, commit) = rest.split_once(' ').expect("a number and a commit");
    assert_eq!(number, env!("CARGO_PKG_VERSION"));
    assert!(commit.starts_with('(') && commit.ends_with(')') && commit.len() > 4, "{commit}");
}

/// Claim: there are completions for five shells and a manual page, and they name the commands.
#[test]
fn completions_and_manual() {
    let _machine = beside_others();
    let place = Place::new();
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let said = place.assay(&["completions", shell]);
        said.expect_code(0);
        for command in COMMANDS {
            assert!(said.stdout.contains(command), "{shell}: {command}");
        }
    }
    let manual = place.assay(&["man"]);
    manual.expect_code(0).expect_stdout(".TH assay");
    assert!(COMMANDS.iter().all(|command| manual.stdout.contains(command)));
}

/// Claim: the numbers that a threshold may name, audits with their figures, kinds of faults and sections of the page are
/// listed, in JSON too, and completed where they may be written; what is not among them is told what is near it.
#[test]
fn words_are_listed_and_completed() {
    let _machine = beside_others();
    let place = Place::new();
    let list = |words: &[&str]| place.assay(&[&["list"], words].concat());
    for (of, known) in [
        ("numbers", &["p99", "goodput", "connections.reset", "audit.backlog_drift.slope"][..]),
        ("audits", &["backlog_drift", "audit.backlog_drift.slope", "repeatability"]),
        ("faults", &["pause", "partition", "power"]),
        ("sections", &["verdict", "promises", "notes"]),
    ] {
        let said = list(&[of]);
        said.expect_code(0);
        let found: Vec<&str> =
            said.stdout.lines().filter_map(|line| line.split_whitespace().next()).collect();
        assert!(known.iter().all(|it| found.contains(it)), "{of}: {}", said.stdout);
        let document = list(&[of, "--json"]).expect_code(0).json();
        let names: Vec<&Value> =
            document[of].as_array().expect("a list").iter().map(|it| &it["name"]).collect();
        assert!(known.iter().all(|it| names.contains(&&Value::from(*it))), "{of}: {document}");
        // fish completes options only.
        for shell in ["bash", "zsh"] {
            let script = place.assay(&["completions", shell]).stdout;
            assert!(script.contains(known[0]), "{shell}: {}", known[0]);
        }
    }
    list(&["numbers", "backlog_drift"]).expect_code(0).expect_stdout("audit.backlog_drift.slope");
    let said = list(&["audits", "backlog_drif."]);
    said.expect_code(1).expect_stderr("did you mean `backlog_drift`?");
    let bash = place.assay(&["completions", "bash"]).stdout;
    let hinted = |option: &str| {
        bash.lines()
            .skip_while(|line| line.trim() != option)
            .nth(1)
            .is_some_and(|line| line.contains(" p99 ") && line.contains(" audit.send_lag.p99 "))
    };
    assert!(hinted("--threshold)"), "numbers behind --threshold");
}

/// Claim: both schemas are JSON Schemas of objects whose properties are named.
#[test]
fn schemas_are_json() {
    let _machine = beside_others();
    let place = Place::new();
    for of in ["result", "experiment"] {
        let said = place.assay(&["schema", of]);
        let schema = said.expect_code(0).json();
        assert!(schema["$schema"].as_str().is_some_and(|text| text.contains("json-schema.org")));
        assert_eq!(schema["type"], "object", "{of}");
        assert!(schema["properties"].as_object().is_some_and(|all| all.len() > 5), "{of}");
    }
}

/// Claim: what `assay init` prints is an experiment file that `assay check` accepts, without anything sent.
#[test]
fn templates_pass_the_check() {
    let _machine = beside_others();
    for template in ["http", "echo"] {
        let place = Place::new();
        let said = place.assay(&["init", "--template", template]);
        said.expect_code(0);
        place.write("my.toml", &said.stdout);
        let checked = place.assay(&["check", "my.toml", "--explain"]);
        checked.expect_code(0).expect_stdout("Nothing was sent").expect_stdout("load.rate");
        assert_eq!(place.runs().len(), 0);
    }
    let default = Place::new().assay(&["init"]).stdout;
    assert!(default.contains("kind = \"http\""), "{default}");
}

/// Claim: `assay check` prints where each value came from, with flags before --set before variables before
/// the file before what is built in.
#[test]
fn check_explains_where_values_come_from() {
    let _machine = beside_others();
    let place = Place::new();
    place.write(
        "my.toml",
        "[system]\nkind = \"echo\"\n[load]\nrate = \"10/s\"\nduration = \"5s\"\n",
    );
    let mut command = place.command(&[
        "check",
        "my.toml",
        "--explain",
        "--rate",
        "40/s",
        "--set",
        "load.rate=30/s",
        "--set",
        "load.timeout=3s",
    ]);
    command.env("ASSAY_LOAD_TIMEOUT", "2s").env("ASSAY_LOAD_CONNECTIONS", "7");
    let said = finish(&mut command);
    said.expect_code(0);
    for (path, value, origin) in [
        ("load.rate", "40/s", "--rate 40/s"),
        ("load.timeout", "3s", "--set load.timeout=3s"),
        ("load.connections", "7", "ASSAY_LOAD_CONNECTIONS"),
        ("load.duration", "5s", "my.toml:5"),
        ("load.threads", "1", "default"),
    ] {
        let line = said.stdout.lines().find(|line| line.split_whitespace().next() == Some(path));
        let line = line.unwrap_or_else(|| panic!("no line of {path} in\n{}", said.stdout));
        assert!(line.contains(value) && line.contains(origin), "{line}: {value} from {origin}");
    }
}

/// Claim: a reader that has had enough is no error: no word, and no death by a signal or a panic.
#[test]
fn a_closed_pipe_is_quiet() {
    let _machine = beside_others();
    let place = Place::new();
    for arguments in [&["schema", "result"][..], &["man"], &["completions", "bash"], &["--help"]] {
        let mut command = place.command(arguments);
        let mut child = command.spawn().unwrap();
        // Closed before the first byte is written.
        drop(child.stdout.take());
        let mut stderr = String::new();
        child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
        let status = child.wait().unwrap();
        assert_eq!((status.code(), stderr.as_str()), (Some(0), ""), "{arguments:?}");
    }
    let shell = format!("{} schema result | head -c 1", harness::ASSAY);
    let said = finish(
        std::process::Command::new("sh")
            .args(["-c", &shell])
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::piped()),
    );
    assert_eq!((said.code, said.stdout.as_str(), said.stderr.as_str()), (0, "{", ""));
}

const ESCAPE: char = '\u{1b}';

/// Claim: in a pipe there is no escape code, unless --color always asks for it.
#[test]
fn colour_only_where_it_is_wanted() {
    let _machine = beside_others();
    let place = Place::new();
    place.write("my.toml", "[system]\nkind = \"echo\"\n[load]\nrate = 5\n");
    let broken = place.assay(&["check", "my.toml"]);
    assert!(!broken.stderr.contains(ESCAPE), "{}", broken.stderr);
    let coloured = place.assay(&["check", "my.toml", "--color", "always"]);
    assert!(coloured.stderr.contains(ESCAPE), "{}", coloured.stderr);
    for arguments in [&["--help"][..], &["run", "--nonsense"], &["schema", "result"]] {
        let said = place.assay(arguments);
        assert!(!said.stdout.contains(ESCAPE) && !said.stderr.contains(ESCAPE), "{arguments:?}");
    }
}

/// Claim: on a terminal the output is coloured, and not with NO_COLOR, TERM=dumb or --color never.
#[test]
fn colour_on_a_terminal() {
    let _machine = beside_others();
    let Some(script) = harness::program("script") else {
        harness::say("SKIPPED colour_on_a_terminal: script (util-linux) is not installed");
        return;
    };
    let place = Place::new();
    place.write("my.toml", "[system]\nkind = \"echo\"\n[load]\nrate = 5\n");
    let on_terminal = |more: &str, variables: &[(&str, &str)]| {
        let shell = format!("{} check my.toml {more}", harness::ASSAY);
        let mut command = std::process::Command::new(&script);
        command.args(["-q", "-e", "-c", &shell, "/dev/null"]).current_dir(place.path());
        command.env_remove("NO_COLOR").env("TERM", "xterm").envs(variables.iter().copied());
        command.stdin(std::process::Stdio::null());
        command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
        let said = finish(&mut command);
        said.expect_code(2).expect_stdout("load.rate");
        said.stdout.contains(ESCAPE)
    };
    assert!(on_terminal("", &[]));
    assert!(!on_terminal("", &[("NO_COLOR", "1")]));
    assert!(!on_terminal("", &[("TERM", "dumb")]));
    assert!(!on_terminal("--color never", &[]));
    assert!(on_terminal("--color always", &[("NO_COLOR", "1")]));
}

/// Claim: a folder without runs is an empty list, in words and as JSON.
#[test]
fn a_list_of_nothing() {
    let _machine = beside_others();
    let place = Place::new();
    place.assay(&["list"]).expect_code(0);
    let document = place.assay(&["list", "--json"]).expect_code(0).json();
    assert_eq!(document["schema"], "assay.list/1");
    assert_eq!(document["runs"], Value::Array(Vec::new()));
}

/// Claim: the data sheet of this machine is JSON with figures that an instrument can have.
#[test]
fn the_data_sheet() {
    let _machine = beside_others();
    let place = Place::new();
    let running = Running::start(&mut place.command(&["doctor", "--json"]));
    let sheet = running.finish_within(Duration::from_secs(30)).expect_code(0).json();
    assert_eq!(sheet["schema"], "assay.doctor/1");
    assert!(sheet["calibration"]["rate_max"].as_f64().unwrap() > 1_000.0, "{sheet}");
    assert!(sheet["calibration"]["floor_p50_ns"].as_u64().unwrap() > 0, "{sheet}");
    assert!(sheet["environment"]["cpus"].as_u64().unwrap() > 0, "{sheet}");
}

/// Claim: a run through epoll says so on the terminal and in its result; one through io_uring does not.
#[test]
fn the_driver_is_told() {
    let _machine = beside_others();
    let text = "[system]\nkind = \"echo\"\n[load]\nrate = \"200/s\"\nwarmup = \"0s\"\nduration = \"300ms\"\n";
    for driver in ["epoll", "io_uring"] {
        let place = Place::new();
        place.write("x.toml", text);
        let mut command = place.command(&["run", "x.toml", "--no-calibration"]);
        command.env("ASSAY_DRIVER", driver);
        let said = finish(&mut command);
        if said.stderr.contains("setting up the io_uring event loop") {
            harness::say("SKIPPED io_uring: this kernel refuses it");
            continue;
        }
        let is_told = said.stdout.contains("sent through epoll");
        assert_eq!(is_told, driver == "epoll", "{}{}", said.stdout, said.stderr);
        let (_, document) = place.report();
        assert_eq!(harness::trial(&document)["driver"], driver);
    }
}

/// Claim: in a pipe lines are as wide as `COLUMNS` says.
#[test]
fn columns_in_a_pipe() {
    let _machine = beside_others();
    let place = Place::new();
    let text = "[system]\nkind = \"echo\"\n[load]\nrate = \"200/s\"\nwarmup = \"0s\"\nduration = \"300ms\"\n";
    place.write("x.toml", text);
    place.assay(&["run", "x.toml", "--no-calibration"]);
    let widest = |columns: &str| {
        let said = finish(place.command(&["report"]).env("COLUMNS", columns));
        said.stdout.lines().map(|line| line.chars().count()).max().unwrap_or_default()
    };
    let (narrow, wide) = (widest("60"), widest("160"));
    assert!(narrow <= 60 && wide > 60 && wide <= 160, "{narrow} {wide}");
}
