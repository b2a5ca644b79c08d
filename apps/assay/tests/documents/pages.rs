//! The steps of a page, read from its Markdown: blocks, and commands in blocks and tables. It runs nothing.

use std::path::{Path, PathBuf};

/// One thing to do, in the order of the page.
#[derive(Debug, PartialEq)]
pub enum Step {
    /// A file, or an experiment.
    Block(Block),
    /// A command and the code that it ends with.
    Command { text: String, code: i32 },
    /// A block that says why it cannot be run.
    NotRun(String),
}

/// A file of the page.
#[derive(Debug, PartialEq)]
pub struct Block {
    /// The name that it is kept under.
    pub file: Option<String>,
    /// Whether it is a whole experiment.
    pub is_experiment: bool,
    pub text: String,
}

/// All pages under a folder.
pub fn all(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).expect("there are documents").flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(all(&path));
        } else if path.extension().is_some_and(|extension| extension == "md") {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// The steps of a page, with their lines.
pub fn steps(text: &str) -> Result<Vec<(usize, Step)>, String> {
    let mut steps = Vec::new();
    let mut lines = text.lines().enumerate();
    while let Some((index, line)) = lines.next() {
        if line.starts_with('|') {
            let commands =
                line.split('`').skip(1).step_by(2).filter(|code| code.starts_with("assay "));
            let command = |code: &str| Step::Command { text: code.replace("\\|", "|"), code: 0 };
            steps.extend(commands.map(|code| (index + 1, command(code))));
        }
        let Some(info) = line.strip_prefix("```") else { continue };
        let body: Vec<&str> =
            lines.by_ref().map(|(_, line)| line).take_while(|line| *line != "```").collect();
        let found =
            block(info, &body).map_err(|problem| format!("line {}: {problem}", index + 1))?;
        steps.extend(found.into_iter().map(|step| (index + 1, step)));
    }
    Ok(steps)
}

fn block(info: &str, body: &[&str]) -> Result<Vec<Step>, String> {
    if let Some((_, reason)) = info.split_once("no-run:") {
        let reason = reason.trim();
        if reason.is_empty() {
            return Err("`no-run:` without a reason".to_owned());
        }
        return Ok(vec![Step::NotRun(reason.to_owned())]);
    }
    let mut words = info.split_whitespace();
    let language = words.next().unwrap_or_default();
    let (mut file, mut is_experiment, mut code) = (None, false, 0);
    for word in words {
        match word.split_once('=') {
            Some(("file", name)) => file = Some(name.to_owned()),
            Some(("code", number)) => {
                code = number.parse().map_err(|_| format!("`{word}` is no exit code"))?;
            }
            None if word == "experiment" => is_experiment = true,
            _ => return Err(format!("`{word}` means nothing to the test of the documents")),
        }
    }
    if language == "console" {
        let commands = commands(body);
        if commands.is_empty() {
            return Err("a console block without a line that begins with `$ `".to_owned());
        }
        return Ok(commands.into_iter().map(|text| Step::Command { text, code }).collect());
    }
    if language == "toml" && !is_experiment && file.is_none() {
        return Err("TOML that is neither an experiment nor says `no-run: reason`".to_owned());
    }
    if !is_experiment && file.is_none() {
        return Ok(Vec::new());
    }
    let text = body.iter().map(|line| format!("{line}\n")).collect();
    Ok(vec![Step::Block(Block { file, is_experiment, text })])
}

/// Lines that begin with `$ `, with the lines that a backslash joins to them.
fn commands(body: &[&str]) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut is_open = false;
    for line in body {
        if let Some(command) = line.strip_prefix("$ ") {
            found.push(command.to_owned());
        } else if is_open && let Some(last) = found.last_mut() {
            last.push_str(line.trim_start());
        } else {
            continue;
        }
        is_open = line.ends_with('\\');
        if let Some(last) = found.last_mut().filter(|_| is_open) {
            last.pop();
        }
    }
    found
}

/// A command as the test runs it: the built binary for cargo's, one second for any length that is written, and
/// for files that give none; no calibration, which tells about the machine and takes longer than the run.
pub fn shortened(command: &str, gives_its_length: impl Fn(&str) -> bool) -> String {
    let command = command.replace("cargo run --release -- ", "assay ");
    let words: Vec<&str> = command.split(' ').collect();
    let Some(run) = words.windows(2).position(|pair| pair == ["assay", "run"]) else {
        return command;
    };
    let is_length = |index: usize| ["--duration", "-d"].contains(&words[index]);
    let word = |index: usize| if index > 0 && is_length(index - 1) { "1s" } else { words[index] };
    let mut written: Vec<String> = (0..words.len()).map(|index| word(index).to_owned()).collect();
    let has_length = (0..words.len()).any(is_length);
    let file = words[run + 2..].iter().find(|word| word.ends_with(".toml"));
    let needs_length = !has_length && !file.is_some_and(|file| gives_its_length(file));
    let length = if needs_length { " --duration 1s" } else { "" };
    written[run + 1] = format!("run --no-calibration{length}");
    written.join(" ")
}

/// Claim: each form of block is read as the head of the test says, and a form that it does not say is refused.
#[test]
fn forms_of_blocks() {
    let page = "\
```toml experiment file=a.toml
x = 1
```
| there | `assay list` | `other` |
```console code=99
$ assay run a.toml \\
    --rate 5/s
output
```
```console no-run: it takes a minute
$ assay run demo
```
```json
{}
```
";
    let block =
        Block { file: Some("a.toml".to_owned()), is_experiment: true, text: "x = 1\n".to_owned() };
    let command = |text: &str, code| Step::Command { text: text.to_owned(), code };
    assert_eq!(
        steps(page),
        Ok(vec![
            (1, Step::Block(block)),
            (4, command("assay list", 0)),
            (5, command("assay run a.toml --rate 5/s", 99)),
            (10, Step::NotRun("it takes a minute".to_owned())),
        ])
    );
    for refused in ["```toml\nx = 1\n```", "```console\noutput\n```", "```console no-run:\n```"] {
        assert!(steps(refused).is_err(), "{refused}");
    }
}

/// Claim: lengths become one second, wherever they stand; a file that gives its own keeps it.
#[test]
fn commands_are_shortened() {
    let short = |command| shortened(command, |file| file == "steps.toml");
    let run = "assay run --no-calibration";
    assert_eq!(short("assay run http://h/ -d 30s"), format!("{run} http://h/ -d 1s"));
    assert_eq!(short("assay run a.toml"), format!("{run} --duration 1s a.toml"));
    assert_eq!(short("assay run steps.toml"), format!("{run} steps.toml"));
    assert_eq!(short("assay convert $(ls -d x)"), "assay convert $(ls -d x)");
    assert_eq!(short("cargo run --release -- list"), "assay list");
}
