//! `--sandbox`: what an experiment of a stranger may not do. An experiment is code: it names programs that are started, files
//! that are read and sent, and variables whose values go into requests. Here each of these is refused, before any of them
//! is touched; what is left loads the target that stands in the file, and starts nodes that are Assay's own.
//!
//! A key that is not known here is taken for a path when it looks like one, so that a new one is refused rather than
//! forgotten.

use std::path::{Component, Path};

use model::options::{Options, Problems, Value};
use model::plan::SystemPlan;
use model::secret;

/// Systems that are whatever program the experiment names.
const PROGRAM_KINDS: [&str; 1] = ["exec"];
/// Keys that name a program, or what one is told to do.
const PROGRAM_KEYS: [&str; 5] =
    ["program", "command", "arguments", "node_arguments", "environment"];
/// Keys that name a file.
const FILE_KEYS: [&str; 5] = ["ca", "body_file", "targets", "manifest", "funder"];
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
        let found = std::fs::symlink_metadata(&path);
        if found.is_ok_and(|found| !found.is_file() && !found.is_dir()) {
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
                // Under `headers` and `expect` names are the server's.
                let key = if SENT_KEYS.contains(&key) { key } else { name };
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
    if FILE_KEYS.contains(&key) {
        check_file(text, folder)?;
        return if key == "targets" { bodies(&folder.join(text), folder) } else { Ok(()) };
    }
    if key == "targets_text" {
        return bodies_of(text, folder);
    }
    if !SENT_KEYS.contains(&key) && leads_out(text) {
        return Err(format!(
            "--sandbox reads only files beside the experiment or below, got `{text}`"
        ));
    }
    Ok(())
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
        std::os::unix::fs::symlink("/etc/shadow", folder.path().join("link"))
            .expect("links can be made");
        let text = |key, text| text_of(key, text, folder.path());
        for (key, value) in [
            ("program", "redis-server"),
            ("command", "sh"),
            ("environment", "HOME"),
            ("body_file", "/etc/shadow"),
            ("body_file", "../x"),
            ("body_file", "link"),
            ("ca", "~/x"),
            ("targets", "out.txt"),
            ("targets", "env.txt"),
            ("targets_text", "POST http://h/\n@../x"),
            ("headers", "Bearer ${TOKEN}"),
            ("url", "env:URL"),
            ("a_key_of_tomorrow", "/etc/shadow"),
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
        ] {
            assert_eq!(text(key, value), Ok(()), "{key} = {value}");
        }
    }
}
