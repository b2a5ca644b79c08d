//! `cargo xtask mutants`: the simulators against code that is wrong. Each mutant of the list changes one place of a copy of
//! the checkout; the simulation of its world must find it, and the seed that does is printed. One that no seed finds shows
//! nothing of the code and much of the simulator: it fails the command, unless the list says why no run could tell it apart.
//!
//! Every night the seeds are new (`--night`): the right code runs against 20,000 of them first, and a seed with which it fails
//! is kept in the file of its world, where it always runs from then on.
//!
//! No build in use contains a mutant: there is no switch for them.

mod list;

use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use list::MUTANTS;

/// One change that makes the code wrong.
struct Mutant {
    /// What is wrong, in a few words.
    name: &'static str,
    /// Where, from the root.
    file: &'static str,
    /// What stands there, once.
    from: &'static str,
    /// What stands there instead.
    to: &'static str,
    world: World,
    /// Why no run could tell it from the right code.
    equivalent: Option<&'static str>,
}

/// What looks for a mutant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum World {
    /// `base/consensus/tests/simulation.rs`.
    Consensus,
    /// `base/sim/tests/store.rs`.
    Store,
    /// The simulation of a system: its name, its package and its example.
    System(&'static str, &'static str, &'static str),
}

impl World {
    /// Where seeds are kept that have found something once.
    fn kept_seeds(self) -> String {
        match self {
            Self::Consensus => "base/consensus/tests/simulation/kept_seeds.txt".to_owned(),
            Self::Store => "base/sim/tests/kept_seeds.txt".to_owned(),
            Self::System(name, _, example) => {
                format!("systems/{name}/node/examples/{example}/kept_seeds.txt")
            }
        }
    }
}

/// Which seeds.
#[derive(Clone, Copy, Debug)]
pub struct Seeds {
    /// The first.
    pub first: u64,
    /// How many.
    pub count: u32,
}

impl Seeds {
    /// New ones, which no run has had before.
    pub fn of_a_night() -> Result<Self, String> {
        let mut bytes = [0; 4];
        let mut file = fs::File::open("/dev/urandom");
        let read = file.as_mut().map_err(|error| error.to_string())?.read_exact(&mut bytes);
        read.map_err(|error| format!("reading /dev/urandom: {error}"))?;
        // So far apart that two nights hardly have one in common.
        Ok(Self { first: u64::from(u32::from_le_bytes(bytes)) << 16, count: 20_000 })
    }
}

/// What came of one.
#[derive(Debug, PartialEq, Eq)]
enum Came {
    /// A seed found it; `None`: before the first was drawn.
    Found(Option<u64>),
    NotFound,
    DoesNotCompile(String),
}

/// Runs all mutants whose name or file holds `word`, against so many seeds each.
pub fn run(root: &Path, seeds: Seeds, word: &str) -> Result<(), String> {
    let copy = Copy::make(root)?;
    println!("seeds from {} on, {} of them\n", seeds.first, seeds.count);
    println!("| mutant | where | found by |\n| --- | --- | --- |");
    let asked = MUTANTS.iter().filter(|it| it.name.contains(word) || it.file.contains(word));
    let (mut count, mut missed) = (0, Vec::new());
    let mut are_right: Vec<World> = Vec::new();
    for mutant in asked {
        count += 1;
        // A seed that fails with the right code finds no mutant.
        if !are_right.contains(&mutant.world) {
            if let came @ (Came::Found(_) | Came::DoesNotCompile(_)) =
                copy.look(mutant.world, seeds)?
            {
                let world = mutant.world;
                if let Came::Found(Some(seed)) = came {
                    keep(&root.join(world.kept_seeds()), seed)?;
                }
                return Err(format!("{world:?} does not hold without a mutant: {came:?}"));
            }
            are_right.push(mutant.world);
        }
        let came = copy.with(mutant, || copy.look(mutant.world, seeds))?;
        let said = match (&came, mutant.equivalent) {
            (Came::Found(Some(seed)), None) => format!("seed {seed}"),
            (Came::Found(None), None) => "the first step".to_owned(),
            (Came::NotFound, Some(why)) => format!("nobody could: {why}"),
            (Came::NotFound, None) => {
                missed.push(mutant.name);
                format!("**not in {} seeds**", seeds.count)
            }
            (Came::Found(_), Some(_)) => {
                missed.push(mutant.name);
                "**a seed, though the list says that nobody could**".to_owned()
            }
            (Came::DoesNotCompile(why), _) => {
                return Err(format!("`{}` does not compile:\n{why}", mutant.name));
            }
        };
        println!("| {} | {} | {said} |", mutant.name, mutant.file);
    }
    match missed.as_slice() {
        [] if count == 0 => Err(format!("no mutant is called `{word}`, and no file of one")),
        [] => Ok(()),
        missed => Err(format!(
            "{} of {count} mutants are not as the list says: {}; teach the simulation to find them, or say in the list why \
             nobody could",
            missed.len(),
            missed.join(", ")
        )),
    }
}

/// A copy of the checkout's code, built into its own target folder.
struct Copy {
    root: PathBuf,
}

impl Copy {
    fn make(root: &Path) -> Result<Self, String> {
        let at = root.join("target/mutants/checkout");
        let listed = Command::new("git")
            .args([
                "ls-files",
                "--",
                "*.rs",
                "*.toml",
                "*kept_seeds.txt",
                "Cargo.lock",
                "*.md",
                "*.c",
                "*.h",
            ])
            .current_dir(root)
            .output();
        let listed = listed.map_err(|error| format!("listing files with git: {error}"))?;
        for file in String::from_utf8_lossy(&listed.stdout).lines() {
            let (from, to) = (root.join(file), at.join(file));
            let content = fs::read(&from).unwrap_or_default();
            // A file that is as it was keeps its time, so that nothing is built for it.
            if fs::read(&to).is_ok_and(|there| there == content) {
                continue;
            }
            let folder = to.parent().expect("a file lies in a folder");
            let written = fs::create_dir_all(folder).and_then(|()| fs::write(&to, content));
            written.map_err(|error| format!("writing {}: {error}", to.display()))?;
        }
        Ok(Self { root: at })
    }

    /// Does something while the mutant is in place.
    fn with<T>(
        &self,
        mutant: &Mutant,
        act: impl FnOnce() -> Result<T, String>,
    ) -> Result<T, String> {
        let path = self.root.join(mutant.file);
        let right = fs::read_to_string(&path)
            .map_err(|error| format!("reading {}: {error}", path.display()))?;
        let wrong = mutated(mutant, &right)?;
        let write = |text: &str| {
            fs::write(&path, text).map_err(|error| format!("writing {}: {error}", path.display()))
        };
        write(&wrong)?;
        let came = act();
        write(&right)?;
        came
    }

    fn look(&self, world: World, seeds: Seeds) -> Result<Came, String> {
        let (build, words) = match world {
            World::Consensus => {
                let words = "test --release --quiet -p consensus --test simulation agreement_holds";
                (format!("{words} --no-run"), words.to_owned())
            }
            World::Store => {
                let words = "test --release --quiet -p sim --test store";
                (format!("{words} --no-run"), words.to_owned())
            }
            World::System(_, package, example) => {
                let words = format!("--release --quiet -p {package} --example {example}");
                (
                    format!("build {words}"),
                    format!("run {words} -- {} --seeds {}", seeds.first, seeds.count),
                )
            }
        };
        let built = self.cargo(&build, seeds)?;
        if !built.status.success() {
            return Ok(Came::DoesNotCompile(String::from_utf8_lossy(&built.stderr).into_owned()));
        }
        let ran = self.cargo(&words, seeds)?;
        Ok(match ran.status.success() {
            true => Came::NotFound,
            false => Came::Found(seed(&String::from_utf8_lossy(&ran.stdout))),
        })
    }

    fn cargo(&self, words: &str, seeds: Seeds) -> Result<Output, String> {
        let output = Command::new("cargo")
            .args(words.split(' '))
            .env("CARGO_TARGET_DIR", self.root.with_file_name("target"))
            .env("CONSENSUS_FIRST", seeds.first.to_string())
            .env("CONSENSUS_SEEDS", seeds.count.to_string())
            .env("STORE_FIRST", seeds.first.to_string())
            .env("STORE_SEEDS", seeds.count.to_string())
            .current_dir(&self.root)
            .output();
        output.map_err(|error| format!("starting cargo: {error}"))
    }
}

/// Writes a seed down that has found something, once.
fn keep(path: &Path, seed: u64) -> Result<(), String> {
    let known = fs::read_to_string(path).unwrap_or_default();
    let line = seed.to_string();
    if known.lines().any(|it| it == line) {
        return Ok(());
    }
    println!("seed {seed} is kept in {}", path.display());
    fs::write(path, format!("{known}{line}\n"))
        .map_err(|error| format!("keeping seed {seed} in {}: {error}", path.display()))
}

/// The text with the mutant in it.
fn mutated(mutant: &Mutant, right: &str) -> Result<String, String> {
    match right.matches(mutant.from).count() {
        1 => Ok(right.replacen(mutant.from, mutant.to, 1)),
        count => Err(format!(
            "`{}`: its text stands {count} times in {}, and must stand there once; correct the list",
            mutant.name, mutant.file
        )),
    }
}

/// The seed that a simulation names as it ends: the line `seed=17`.
fn seed(said: &str) -> Option<u64> {
    said.lines().find_map(|line| line.strip_prefix("seed=")?.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Claim: every mutant of the list changes exactly one place of the code as it is, no two have one name, and there are
    /// as many as were promised: those of an outside check, and twenty more.
    #[test]
    fn the_list_is_of_this_code() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let mut names = Vec::new();
        for mutant in MUTANTS {
            let text = fs::read_to_string(root.join(mutant.file)).expect(mutant.file);
            let wrong = mutated(mutant, &text).expect(mutant.name);
            assert_ne!(wrong, text, "{}", mutant.name);
            assert!(!names.contains(&mutant.name), "{}", mutant.name);
            names.push(mutant.name);
        }
        assert!(names.len() >= 38, "{}", names.len());
    }

    /// Claim: a seed that has found something is kept once, after those that were kept before; every world has its file.
    #[test]
    fn seeds_are_kept() {
        let path = std::env::temp_dir().join(format!("kept-seeds-{}", std::process::id()));
        fs::write(&path, "# said\n7\n").unwrap();
        [9, 7, 9].iter().for_each(|seed| keep(&path, *seed).unwrap());
        assert_eq!(fs::read_to_string(&path).unwrap(), "# said\n7\n9\n");
        fs::remove_file(&path).unwrap();
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        MUTANTS.iter().for_each(|it| assert!(root.join(it.world.kept_seeds()).exists()));
    }

    /// Claim: the seed is read from its own line.
    #[test]
    fn the_line_of_a_seed() {
        assert_eq!(seed("running 1 test\nseed=17\nfailed"), Some(17));
        assert_eq!(seed("a replica says seed=17"), None);
    }
}
