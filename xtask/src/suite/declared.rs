//! What the suite needs and does, as declared: `systems/NAME/suite.toml` for a system, `suite.toml` in the root for the
//! rest. It only reads; a key that is not known is an error.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde::Deserialize;

/// The name of the part that belongs to no system.
pub const WORKSPACE: &str = "workspace";

/// A placeholder in a soak's command: the seconds that it is to take.
pub const SECONDS: &str = "{seconds}";

/// What one file declares.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Suite {
    /// The system; set by where the file is.
    #[serde(skip)]
    pub name: String,
    pub needs: Needs,
    pub tests: Tests,
    /// Its simulation, if it has one.
    pub sim: Option<Sim>,
    /// Parts that take turns: benchmarks and experiments at toy size, so that they cannot rot, and whatever guards what
    /// seldom breaks.
    #[serde(rename = "turn")]
    pub turns: Vec<Part>,
    /// Long parts, which take turns, too, cut to a bound.
    #[serde(rename = "soak")]
    pub soaks: Vec<Part>,
}

/// What has to be there beside a compiler.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Needs {
    /// Programs as `assay doctor --install` calls them, which pins their versions.
    pub doctor: Vec<String>,
    /// The same, of programs that take minutes to build: with `--all` alone. Tests that have none say so.
    pub doctor_all: Vec<String>,
    /// Programs of the distribution, with their packages.
    pub distribution: BTreeMap<String, String>,
    /// Readers in Python, pinned.
    pub python: Vec<String>,
}

/// Tests beside those of the system's own crates.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Tests {
    /// Modules of the end-to-end tests, as filters: `cometbft::`.
    pub end_to_end: Vec<String>,
    /// Packages whose test programs start processes, networks or disks and therefore run one at a time; of the workspace.
    pub alone: Vec<String>,
}

/// A system in virtual time: an example of one of its crates that takes the first seed and `--seeds N`, prints what
/// happened how often, and fails with the seed that repeats what went wrong.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sim {
    /// The example's name, which no other crate's has: all of them are built into one folder.
    pub example: String,
    /// How many seeds the suite runs, from 0 on.
    pub seeds: u32,
    /// What they may take on an idle machine.
    pub seconds: u32,
    /// The program whose workspace has it: `programs/NAME`; without one it is of the workspace.
    #[serde(default)]
    pub program: Option<String>,
}

impl Sim {
    /// The words that build it: of the whole, because with the features of one crate cargo would build much once more.
    pub fn build_words(&self) -> Vec<String> {
        let mut words: Vec<String> =
            ["cargo", "build", "-q", "--release", "--example"].map(str::to_owned).to_vec();
        words.push(self.example.clone());
        match &self.program {
            Some(name) => {
                words.push("--manifest-path".to_owned());
                words.push(format!("programs/{name}/Cargo.toml"));
                words.push("--target-dir=target/programs".to_owned());
            }
            None => words.push("--workspace".to_owned()),
        }
        words
    }

    /// The words that run it, for so many seeds from `first` on.
    pub fn words(&self, first: u64, seeds: u32) -> Vec<String> {
        let target = if self.program.is_some() { "target/programs" } else { "target" };
        let program = format!("{target}/release/examples/{}", self.example);
        vec![program, first.to_string(), "--seeds".to_owned(), seeds.to_string()]
    }
}

/// A command of the suite.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Part {
    pub name: String,
    /// Words, separated by spaces; run in the checkout's root.
    pub command: String,
    /// What it may take on an idle machine.
    pub seconds: u32,
    /// Folders whose change runs it, whoever's turn it is.
    #[serde(default)]
    pub reach: Vec<String>,
}

impl Part {
    /// The command's words, for a run of so many seconds.
    pub fn words(&self, seconds: u32) -> Vec<String> {
        let command = self.command.replace(SECONDS, &seconds.to_string());
        command.split_whitespace().map(str::to_owned).collect()
    }
}

/// All of them, the workspace's first, then the systems in alphabetical order.
pub fn read(root: &Path) -> Result<Vec<Suite>, String> {
    let mut suites = vec![one(&root.join("suite.toml"), WORKSPACE)?];
    let systems = root.join("systems");
    let entries =
        fs::read_dir(&systems).map_err(|e| format!("reading {}: {e}", systems.display()))?;
    let mut names: Vec<String> = entries
        .flatten()
        .filter(|entry| entry.path().is_dir())
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    for name in names {
        suites.push(one(&systems.join(&name).join("suite.toml"), &name)?);
    }
    Ok(suites)
}

fn one(path: &Path, name: &str) -> Result<Suite, String> {
    let text = fs::read_to_string(path).map_err(|error| {
        format!("reading {}: {error}; every system declares its suite", path.display())
    })?;
    let suite = parse(&text).map_err(|why| format!("{}: {why}", path.display()))?;
    Ok(Suite { name: name.to_owned(), ..suite })
}

fn parse(text: &str) -> Result<Suite, String> {
    let suite: Suite = toml::from_str(text).map_err(|error| error.to_string())?;
    for part in suite.turns.iter().chain(&suite.soaks) {
        if part.seconds == 0 || part.command.split_whitespace().next().is_none() {
            return Err(format!(
                "`{}` needs a command and the seconds that it may take",
                part.name
            ));
        }
    }
    if let Some(sim) = &suite.sim
        && (sim.seeds == 0 || sim.seconds == 0 || sim.example.is_empty())
    {
        return Err("[sim] needs an example, seeds and the seconds that they may take".to_owned());
    }
    if let Some(soak) = suite.soaks.iter().find(|soak| !soak.command.contains(SECONDS)) {
        return Err(format!(
            "soak `{}` cannot be cut to a time: its command must hold {SECONDS}",
            soak.name
        ));
    }
    Ok(suite)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Claim: what is written is read; a key that nobody reads, a part without a command, and a soak that cannot be cut are
    /// mistakes.
    #[test]
    fn declared() {
        let text = "[needs]\ndoctor = [\"a\"]\ndistribution = { nginx = \"nginx-light\" }\n[tests]\nend_to_end = [\"kv::\"]\n\
            [sim]\nexample = \"sim_kv\"\nseeds = 9\nseconds = 4\n\
            [[turn]]\nname = \"t\"\ncommand = \"cargo xtask x --toy\"\nseconds = 3\n\
            [[soak]]\nname = \"s\"\ncommand = \"assay run --for {seconds}s\"\nseconds = 3600\n";
        let suite = parse(text).unwrap();
        assert_eq!(suite.needs.distribution["nginx"], "nginx-light");
        assert_eq!(suite.turns[0].words(0), ["cargo", "xtask", "x", "--toy"]);
        assert_eq!(suite.soaks[0].words(90), ["assay", "run", "--for", "90s"]);
        let sim = suite.sim.unwrap().words(5, 1);
        assert_eq!(sim, ["target/release/examples/sim_kv", "5", "--seeds", "1"]);
        assert_eq!(parse("").unwrap(), Suite::default());
        for wrong in [
            text.replace("doctor", "doktor"),
            text.replace("{seconds}s", "60s"),
            text.replace("seconds = 3\n", "seconds = 0\n"),
            text.replace("seeds = 9\n", "seeds = 0\n"),
            text.replace("cargo xtask x --toy", ""),
        ] {
            assert!(parse(&wrong).is_err(), "{wrong}");
        }
    }

    /// Claim: every system of this checkout declares its suite.
    #[test]
    fn of_this_checkout() {
        let suites = read(&crate::workspace_root()).unwrap();
        let names: Vec<&str> = suites.iter().map(|suite| suite.name.as_str()).collect();
        for name in [WORKSPACE, "cometbft", "echo", "http"] {
            assert!(names.contains(&name), "{names:?}");
        }
    }
}
