//! The environment that a program of a trial gets: what programs need to be found, to speak a language and to find their
//! libraries, what is named for the program itself, and nothing else. A token in the user's shell is none of a node's
//! business.

use std::ffi::OsString;
use std::path::Path;

use model::secret::is_secret_name;

/// Variables that any program may need.
const NAMES: [&str; 19] = [
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "LANGUAGE",
    "TZ",
    "TMPDIR",
    "LD_LIBRARY_PATH",
    "PYTHONPATH",
    "PYTHONHOME",
    "VIRTUAL_ENV",
    "JAVA_HOME",
    "NODE_PATH",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "ASSAY_CACHE",
    "GODEBUG",
];

/// Beginnings of such: of the locale, of folders, of Rust's and Go's runtimes, and of this project's tests.
const BEGINNINGS: [&str; 6] = ["LC_", "XDG_", "RUST_", "GOMAX", "GOGC", "ASSAY_TEST_"];

/// The part of this process's environment that `program` gets. Its own settings are those that begin with its name: for
/// `object-ledger`, `OBJECT_LEDGER_…`.
pub(crate) fn of(program: &Path) -> Vec<(OsString, OsString)> {
    let own = own_beginning(program);
    std::env::vars_os()
        .filter(|(name, _)| name.to_str().is_some_and(|it| is_needed(it, &own)))
        .collect()
}

fn is_needed(name: &str, own: &str) -> bool {
    if !own.is_empty() && name.starts_with(own) {
        return true;
    }
    let is_listed = NAMES.contains(&name) || BEGINNINGS.iter().any(|it| name.starts_with(it));
    is_listed && !is_secret_name(name)
}

/// `object-ledger` → `OBJECT_LEDGER_`. Empty for this program itself: its settings may hold secrets of the load.
fn own_beginning(program: &Path) -> String {
    let name = program.file_stem().and_then(|it| it.to_str()).unwrap_or_default();
    let is_this = std::env::current_exe().is_ok_and(|own| own == program);
    if name.len() < 3 || name == "assay" || is_this {
        return String::new();
    }
    let upper = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' };
    name.chars().map(upper).chain(['_']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Claim: a token of the user's reaches no node, whatever it is called, unless it is named for that node's program.
    #[test]
    fn what_is_needed() {
        let own = own_beginning(Path::new("/x/object-ledger"));
        assert_eq!(own, "OBJECT_LEDGER_");
        for name in ["PATH", "LC_ALL", "RUST_BACKTRACE", "OBJECT_LEDGER_A_SECRET"] {
            assert!(is_needed(name, &own), "{name}");
        }
        for name in
            ["MYTOKEN", "AWS_SECRET_ACCESS_KEY", "SSH_AUTH_SOCK", "RUST_TOKEN", "ASSAY_LOAD_RATE"]
        {
            assert!(!is_needed(name, &own), "{name}");
        }
        assert!(!is_needed("OBJECT_LEDGER_A_SECRET", &own_beginning(Path::new("assay"))));
    }
}
