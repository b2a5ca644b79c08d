//! Programs that we measure or compare with: how each is had, where it is, and getting it.
//!
//! Every version is pinned in the list ([`ENTRIES`]), every program comes through the ordinary client of where it is
//! published (`go install`, `cargo install`, `npm install`, `pip install` into an environment of its own, the
//! distribution's package manager), and all but the distribution's land in a cache folder of ours:
//! `$ASSAY_CACHE`, else `$XDG_CACHE_HOME/assay`, else `~/.cache/assay`, as `<name>/<version>/`. Deleting that
//! folder undoes everything. Who has none of them has no such folder: one that others can write to would have their
//! programs run.
//!
//! Nothing is ever installed unless [`install`] is called, and it says each command before it runs it. What
//! cannot be had is said by name; it is never replaced by something else.

mod carry_out;
mod checkout;
mod go_modules;
mod table;

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

pub use table::{ENTRIES, Entry, How};

/// Why a program could not be had.
#[derive(Debug, thiserror::Error)]
pub enum InstallError {
    /// Not one of ours.
    #[error("`{name}` is not in the list of programs; there are: {known}")]
    Unknown {
        /// The name.
        name: String,
        /// Those that there are.
        known: String,
    },
    /// It is published, but not in a way that we can use.
    #[error("{name} cannot be had: {reason}")]
    Nowhere {
        /// The program.
        name: String,
        /// Why, and what to do instead.
        reason: String,
    },
    /// What would get it is missing.
    #[error(
        "{name} cannot be had: it comes by `{client}`, which is not on this machine; install {client} first"
    )]
    NoClient {
        /// The program.
        name: String,
        /// What is missing.
        client: String,
    },
    /// It is the distribution's, and that takes more rights.
    #[error(
        "{name} cannot be had by this user: it is a package of the distribution; run as root: {command}"
    )]
    NeedsRoot {
        /// The program.
        name: String,
        /// What to run.
        command: String,
    },
    /// It is a node of ours, and there is nothing to build it from.
    #[error(
        "{name} is built from the checkout of Assay, and {looked}; say where there is one: assay doctor --install {name} --checkout FOLDER, or build it there (cargo build --release -p {package}) and have it in PATH"
    )]
    NoCheckout {
        /// The program.
        name: String,
        /// What it is built from.
        package: String,
        /// Where one was looked for, in words.
        looked: String,
    },
    /// No place to put it.
    #[error("{name} cannot be kept in {}: {source}; set ASSAY_CACHE to a folder that can be written", folder.display())]
    Cache {
        /// The program.
        name: String,
        /// The folder.
        folder: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The client was refused, or failed.
    #[error("{name} could not be had: `{command}` {how}; its last lines:\n{log}")]
    Refused {
        /// The program.
        name: String,
        /// What was run.
        command: String,
        /// How it ended, in words.
        how: String,
        /// Its last lines.
        log: String,
    },
    /// What came is not what was asked for.
    #[error(
        "{name} came, but is not what was asked for: `{command}` was to say `{wanted}` and said:\n{said}"
    )]
    NotIt {
        /// The program.
        name: String,
        /// What was run.
        command: String,
        /// What it should have said.
        wanted: String,
        /// What it said.
        said: String,
    },
}

/// One line of `assay doctor`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstallStatus {
    /// What it is called here.
    pub name: &'static str,
    /// What it is for.
    pub purpose: &'static str,
    /// The pinned version, in words.
    pub version: String,
    /// How it is had: a command, or why not.
    pub how: String,
    /// Where it is, if it is there.
    pub path: Option<PathBuf>,
    /// Whether it is the pinned one from the cache folder (then its version is known) or one found in PATH.
    pub is_pinned: bool,
}

/// All programs of the list, and which are there. Runs none of them.
#[must_use]
pub fn list() -> Vec<InstallStatus> {
    Shelf::of_environment().list()
}

/// Where a program is: the pinned one in the cache folder if there, else one in PATH.
#[must_use]
pub fn find(name: &str) -> Option<PathBuf> {
    Shelf::of_environment().find(name)
}

/// Gets a program, unless the pinned one is there already. A node of this project's own that is a program by itself
/// (`NAME-node`, or `NAME` where its manifest says so) is built from the checkout in `checkout`, or else from the one that this program or the working folder
/// is in. `log` is told every command before it runs and every line that it prints.
///
/// # Errors
/// In words that name what could not be had, and what to do.
pub fn install(
    name: &str,
    checkout: Option<&Path>,
    log: &mut dyn FnMut(&str),
) -> Result<PathBuf, InstallError> {
    Shelf::of_environment().install(name, checkout, log)
}

/// The folder that programs are kept in; an empty path where the environment names none.
#[must_use]
pub fn cache_folder() -> PathBuf {
    Shelf::of_environment().cache.unwrap_or_default()
}

/// Where programs are looked for and put. A value, so that tests can have their own.
#[derive(Clone, Debug)]
pub(crate) struct Shelf {
    /// Absent: the environment names no folder of this user's own.
    cache: Option<PathBuf>,
    /// Where this program is.
    pub(crate) beside: Option<PathBuf>,
    /// Where it was started.
    here: Option<PathBuf>,
    /// Folders of PATH, and those that only root has in its PATH.
    path: Vec<PathBuf>,
    is_root: bool,
}

/// Marks a folder whose program was verified. A folder without it is an attempt that was broken off.
const VERIFIED: &str = "verified";

impl Shelf {
    pub(crate) fn of_environment() -> Self {
        Self::of(|name| std::env::var_os(name))
    }

    /// That of an environment with these variables.
    fn of(variable: impl Fn(&str) -> Option<OsString>) -> Self {
        let folder = |name: &str| variable(name).filter(|value| !value.is_empty());
        let below = |name: &str, path: &str| folder(name).map(|at| Path::new(&at).join(path));
        let cache = folder("ASSAY_CACHE")
            .map(PathBuf::from)
            .or_else(|| below("XDG_CACHE_HOME", "assay"))
            .or_else(|| below("HOME", ".cache/assay"));
        let mut path: Vec<PathBuf> =
            std::env::split_paths(&folder("PATH").unwrap_or_default()).collect();
        path.extend(["/usr/local/sbin", "/usr/sbin"].map(PathBuf::from));
        path.extend(versioned(Path::new("/usr/lib/postgresql")));
        let beside = std::env::current_exe().ok();
        let beside = beside.and_then(|program| program.parent().map(Path::to_owned));
        let here = std::env::current_dir().ok();
        Self { cache, beside, here, path, is_root: rustix::process::geteuid().is_root() }
    }

    /// A node of ours that is a program of its own.
    pub(crate) fn find_ours(&self, name: &str) -> Option<PathBuf> {
        let own = self.folder_of_ours(name);
        let folders = self.beside.iter().chain(&self.path).chain(&own);
        folders.map(|folder| folder.join(name)).find(|path| is_program(path))
    }

    /// Where one is kept that was built for a program elsewhere.
    pub(crate) fn folder_of_ours(&self, name: &str) -> Option<PathBuf> {
        self.cache.as_ref().map(|cache| cache.join(name).join("checkout"))
    }

    /// The folder that programs are put in.
    ///
    /// # Errors
    /// When there is no such folder.
    fn cache_for(&self, name: &str) -> Result<&Path, InstallError> {
        let none = "neither HOME nor XDG_CACHE_HOME is set";
        self.cache.as_deref().ok_or_else(|| InstallError::Cache {
            name: name.to_owned(),
            folder: PathBuf::from("~/.cache/assay"),
            source: io::Error::new(io::ErrorKind::NotFound, none),
        })
    }

    fn list(&self) -> Vec<InstallStatus> {
        let status = |entry: &Entry| {
            let pinned = self.find_pinned(entry);
            InstallStatus {
                name: entry.name,
                purpose: entry.purpose,
                version: entry.how.version(),
                how: carry_out::in_words(entry),
                is_pinned: pinned.is_some(),
                path: pinned.or_else(|| self.find_in_path(entry)),
            }
        };
        ENTRIES.iter().map(status).collect()
    }

    fn find(&self, name: &str) -> Option<PathBuf> {
        let entry = ENTRIES.iter().find(|entry| entry.name == name)?;
        self.find_pinned(entry).or_else(|| self.find_in_path(entry))
    }

    fn install(
        &self,
        name: &str,
        checkout: Option<&Path>,
        log: &mut dyn FnMut(&str),
    ) -> Result<PathBuf, InstallError> {
        let Some(entry) = ENTRIES.iter().find(|entry| entry.name == name) else {
            if checkout::is_node(name) || checkout::has(self, name, checkout) {
                return checkout::install(self, name, checkout, log);
            }
            let names: Vec<&str> = ENTRIES.iter().map(|entry| entry.name).collect();
            let known = format!("{}, and with a checkout of Assay its nodes", names.join(", "));
            return Err(InstallError::Unknown { name: name.to_owned(), known });
        };
        if let Some(path) = self.find_pinned(entry) {
            log(&format!("{name} is there: {}", path.display()));
            return Ok(path);
        }
        if let (How::System { .. }, Some(path)) = (&entry.how, self.find_in_path(entry)) {
            log(&format!("{name} is there: {}", path.display()));
            return Ok(path);
        }
        carry_out::install(self, entry, log)
    }

    fn find_pinned(&self, entry: &Entry) -> Option<PathBuf> {
        let folder = folder_in(self.cache.as_deref()?, entry);
        let program = folder.join(entry.how.program_path(entry.program)?);
        (folder.join(VERIFIED).exists() && is_program(&program)).then_some(program)
    }

    fn find_in_path(&self, entry: &Entry) -> Option<PathBuf> {
        // An interpreter without our libraries is not what the name stands for, nor is a script without our jars, nor any
        // program called `load`.
        if entry.name == "python"
            || matches!(entry.how, How::Maven { .. })
            || entry.name != entry.program
        {
            return None;
        }
        self.which(entry.program)
    }

    fn which(&self, program: &str) -> Option<PathBuf> {
        self.path.iter().map(|folder| folder.join(program)).find(|path| is_program(path))
    }
}

/// The folder of the pinned version.
fn folder_in(cache: &Path, entry: &Entry) -> PathBuf {
    cache.join(entry.name).join(entry.how.version().replace(' ', "_"))
}

/// Where Debian keeps the programs of each version of PostgreSQL, out of PATH; the newest first.
fn versioned(of: &Path) -> Vec<PathBuf> {
    let folders = std::fs::read_dir(of).into_iter().flatten().flatten();
    let number = |path: &PathBuf| path.file_name()?.to_str()?.parse::<u32>().ok();
    let mut folders: Vec<PathBuf> = folders.map(|folder| folder.path()).collect();
    folders.sort_by_key(|path| std::cmp::Reverse(number(path)));
    folders.into_iter().map(|folder| folder.join("bin")).collect()
}

fn is_program(path: &Path) -> bool {
    path.is_file() && rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok()
}

#[cfg(test)]
mod tests;
