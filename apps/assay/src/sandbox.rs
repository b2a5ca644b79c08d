//! `--sandbox`: what an experiment of a stranger may not do. An experiment is code: it names programs that are started, files
//! that are read and sent, and variables whose values go into requests. Here each of these is refused, before any of them
//! is touched; what is left loads the target that stands in the file, and starts nodes that are Assay's own.
//!
//! A key that is not known here is taken for a file's, so that a new one is refused rather than forgotten. Variables of the
//! environment are refused where they would be read, too ([`secret::forbid_environment`]): a reference may be encoded, or
//! stand in a file.

use std::path::{Component, Path};

use model::options::{Options, Problems, Value};
use model::plan::SystemPlan;
use model::secret;

/// Systems that are whatever program the experiment names.
const PROGRAM_KINDS: [&str; 1] = ["exec"];
/// Keys that name a program, or say what one is told to do; so do the keys below them. A server's settings name programs of
/// their own (`archive_command`), and a ledger's file folders that its stores write to.
const PROGRAM_KEYS: [&str; 10] = [
    "program",
    "bin",
    "command",
    "arguments",
    "node_arguments",
    "environment",
    "settings",
    "options",
    "config",
    "ledger",
];
/// Keys whose texts go to the system as they are: a path in them is the server's.
const SENT_KEYS: [&str; 6] = ["path", "url", "body", "targets_text", "headers", "expect"];
/// The longest target file that is looked through for the files that it names.
const TARGETS_BYTES_MAX: u64 = 64 << 20;

/// Adds what is refused of a system's options; says whether anything was.
pub fn refuse(system: &SystemPlan, folder: &Path, problems: &mut Problems) -> bool {
    let before = problems.list.len();
    if PROGRAM_KINDS.contains(&system.kind.as_str()) {
        let message =
            format!("--sandbox starts no program of an experiment, and `{}` is one", system.kind);
        problems.add(system.deploy.span, message, None);
        return true;
    }
    each(&system.deploy, "", folder, problems);
    each(&system.workload, "", folder, problems);
    problems.list.len() > before
}

/// Whether a file that is named by an experiment may be read: it lies beside it or below, and no link leads to it.
pub fn check_file(name: &str, folder: &Path) -> Result<(), String> {
    if leads_out(name) {
        return Err(format!(
            "--sandbox reads only files beside the experiment or below, got `{name}`"
        ));
    }
    let mut path = folder.to_path_buf();
    for part in Path::new(name).components() {
        path.push(part);
        // Below a part that is not there, there is nothing.
        let Ok(found) = std::fs::symlink_metadata(&path) else { break };
        if !found.is_file() && !found.is_dir() {
            return Err(format!(
                "--sandbox reads only regular files, and `{name}` is a link or a pipe"
            ));
        }
    }
    Ok(())
}

fn each(options: &Options, key: &str, folder: &Path, problems: &mut Problems) {
    match &options.value {
        Value::Table(table) => {
            for (name, (_, value)) in table {
                // Under `headers` and `expect` names are the server's, under `settings` a program's.
                let is_kept = SENT_KEYS.contains(&key) || PROGRAM_KEYS.contains(&key);
                let key = if is_kept { key } else { name };
                each(value, key, folder, problems);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| each(item, key, folder, problems)),
        Value::String(text) => {
            if let Err(message) = text_of(key, text, folder) {
                problems.add(options.span, message, None);
            }
        }
        _ => {}
    }
}

fn text_of(key: &str, text: &str, folder: &Path) -> Result<(), String> {
    if let Some(name) = secret::references(text).first() {
        return Err(format!("--sandbox reads no environment, and this asks for `{name}`"));
    }
    if PROGRAM_KEYS.contains(&key) {
        return Err(format!(
            "--sandbox starts no program of an experiment, and `{key}` names or directs one"
        ));
    }
    match key {
        "targets_text" => bodies_of(text, folder),
        // The compiler opens all that such a file imports, whatever it is.
        "proto" | "import" => Err(format!(
            "--sandbox reads no .proto file, which may import any, and `{key}` names one; leave it out where the server reflects"
        )),
        _ if SENT_KEYS.contains(&key) => Ok(()),
        "targets" => check_file(text, folder).and_then(|()| bodies(&folder.join(text), folder)),
        _ => check_file(text, folder),
    }
}

/// Files of bodies that a target file names.
fn bodies(path: &Path, folder: &Path) -> Result<(), String> {
    let length = std::fs::metadata(path).map_or(0, |found| found.len());
    if length > TARGETS_BYTES_MAX {
        return Err(format!("the targets are larger than {TARGETS_BYTES_MAX} bytes"));
    }
    // One that cannot be read is told by its reader.
    let Ok(bytes) = std::fs::read(path) else { return Ok(()) };
    bodies_of(&String::from_utf8_lossy(&bytes), path.parent().unwrap_or(folder))
}

fn bodies_of(text: &str, folder: &Path) -> Result<(), String> {
    if let Some(name) = secret::references(text).first() {
        return Err(format!("--sandbox reads no environment, and the targets ask for `{name}`"));
    }
    let files = text.lines().filter_map(|line| line.trim().strip_prefix('@'));
    files.map(str::trim).try_for_each(|name| check_file(name, folder))
}

/// Whether a text is a path out of the experiment's folder.
fn leads_out(text: &str) -> bool {
    let leads = |part: Component<'_>| !matches!(part, Component::Normal(_) | Component::CurDir);
    text.starts_with('~') || Path::new(text).components().any(leads)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Claim: programs, files elsewhere, links and variables are refused, each by name; what is sent, and files beside the
    /// experiment, are not.
    #[test]
    fn what_is_refused() {
        let folder = tempfile::tempdir().expect("the temporary folder can be written");
        let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text);
        write("own.txt", "GET http://127.0.0.1/\n").expect("it can be written");
        write("out.txt", "POST http://127.0.0.1/\n@/etc/shadow\n").expect("it can be written");
        write("env.txt", "GET http://127.0.0.1/${AWS_KEY}\n").expect("it can be written");
        for (to, name) in [("/etc/shadow", "link"), ("/etc", "folder")] {
            std::os::unix::fs::symlink(to, folder.path().join(name)).expect("links can be made");
        }
        let text = |key, text| text_of(key, text, folder.path());
        for (key, value) in [
            ("program", "redis-server"),
            ("command", "sh"),
            ("environment", "HOME"),
            ("body_file", "/etc/shadow"),
            ("body_file", "../x"),
            ("body_file", "link"),
            ("ca", "~/x"),
            ("message_file", "link"),
            ("data", "link"),
            ("proto", "link"),
            ("import", "folder/x.proto"),
            ("bin", "bin"),
            ("ledger", "ledger.toml"),
            ("options", "--listen=x"),
            ("targets", "out.txt"),
            ("targets", "env.txt"),
            ("targets_text", "POST http://h/\n@../x"),
            ("headers", "Bearer ${TOKEN}"),
            ("url", "env:URL"),
            ("a_key_of_tomorrow", "/etc/shadow"),
            ("a_key_of_tomorrow", "link"),
        ] {
            assert!(text(key, value).is_err(), "{key} = {value}");
        }
        for (key, value) in [
            ("path", "/etc/shadow"),
            ("url", "http://127.0.0.1/../x"),
            ("headers", "/"),
            ("targets", "own.txt"),
            ("body_file", "own.txt"),
            ("identity", "random"),
            ("message_file", "own.txt"),
            ("a_key_of_tomorrow", "no/such/file"),
        ] {
            assert_eq!(text(key, value), Ok(()), "{key} = {value}");
        }
    }

    /// Claim: texts below `settings` and `config` are a program's, at any depth and of any name; names below `headers` are the
    /// server's, whatever they are; numbers name no program.
    #[test]
    fn tables_of_programs() {
        let refused = |path: &str, value: Value| {
            let mut options = Options::empty();
            options.set(path, Options { value, span: model::options::Span::default() });
            let mut problems = Problems::default();
            each(&options, "", Path::new("."), &mut problems);
            !problems.is_empty()
        };
        let text = || Value::String("touch x".to_owned());
        for path in ["settings.archive_command", "config.base.proxy_app", "settings.body.path"] {
            assert!(refused(path, text()), "{path}");
        }
        assert!(!refused("headers.options", text()));
        assert!(!refused("settings.max_connections", Value::Integer(100)));
    }
}
