//! `assay init`: an experiment file to start from: a template, or what a target file, a recording or a
//! description says. It never overwrites a file and never writes down a secret.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write as _};
use std::path::{Component, Path, PathBuf};

use clock::Clock;
use http_adapter::{IMPORT_BYTES_MAX, ImportOptions, Imported};
use model::result::Exit;

use crate::cli::{InitArguments, Template};
use crate::terminal;
use crate::terminal::say;

/// The files that are written into the folder of `-o`.
const EXPERIMENT: &str = "experiment.toml";
const TARGETS: &str = "targets.json";
/// Notes that are printed; a description can have one for each of thousands of operations.
const NOTES_MAX: usize = 60;

/// Every template, as it is printed.
const fn template(template: Template) -> &'static str {
    match template {
        Template::Http => include_str!("../templates/http.toml"),
        Template::Echo => include_str!("../templates/echo.toml"),
        Template::Stages => include_str!("../templates/stages.toml"),
        Template::Ledger => include_str!("../templates/ledger.toml"),
        Template::Flow => include_str!("../templates/flow.toml"),
    }
}

/// Prints or writes an experiment file.
pub fn init(arguments: &InitArguments) -> Exit {
    let done = match &arguments.from {
        Some(from) => imported(from, arguments),
        None => put(template(arguments.template), arguments.output.as_deref()),
    };
    match done {
        Ok(()) => Exit::Ok,
        Err(message) => {
            say!("assay init: {message}");
            Exit::CouldNotRun
        }
    }
}

/// An experiment alone: to standard output, or into a folder.
fn put(experiment: &str, folder: Option<&Path>) -> Result<(), String> {
    match folder {
        None => terminal::print(experiment),
        Some(folder) => write_all(folder, &[(EXPERIMENT, experiment)]),
    }
}

fn imported(from: &Path, arguments: &InitArguments) -> Result<(), String> {
    let url = from.to_str().filter(|text| is_url(text));
    let (bytes, origin) = match url {
        Some(url) => {
            let (bytes, origin) = http_adapter::fetch(url, Clock::start())?;
            (bytes, Some(origin))
        }
        None => (read(from)?, None),
    };
    let options = ImportOptions {
        host: arguments.host.as_deref(),
        all_methods: arguments.all_methods,
        is_flow: arguments.flow,
    };
    let shown =
        if is_standard(from) { "standard input".to_owned() } else { from.display().to_string() };
    let mut found = http_adapter::import(&shown, &bytes, &options)?;
    if found.url.is_none() && origin.is_some() {
        found.url = origin;
        found.notes.retain(|note| !note.ends_with("put yours into system.deploy.url"));
    }
    for note in found.notes.iter().take(NOTES_MAX) {
        say!("assay init: {}", shown_note(note));
    }
    if found.notes.len() > NOTES_MAX {
        say!("assay init: and {} notes more", found.notes.len() - NOTES_MAX);
    }
    let name = name_of(from);
    if found.steps.is_some() {
        return put(&experiment(&found, &name, None), arguments.output.as_deref());
    }
    let uses_file_itself = found.targets.is_none();
    if uses_file_itself && url.is_some() {
        return Err(format!("{shown} is a list of targets; save it to a file and give its path"));
    }
    if uses_file_itself && is_standard(from) {
        return Err("targets on standard input would have to be copied, secrets and all; save them to a file \
             and give its path, or run them at once: assay run - --rate 10/s --duration 30s"
            .to_owned());
    }
    match (&arguments.output, uses_file_itself) {
        (None, true) => put(&experiment(&found, &name, Some(&text_of(from)?)), None),
        (Some(folder), true) => {
            make(folder)?;
            let path = relative(folder, from)?;
            put(&experiment(&found, &name, Some(&path)), Some(folder))
        }
        (None, false) => {
            let text = experiment(&found, &name, None);
            if text.len() > plan::SOURCE_BYTES_MAX {
                return Err(format!(
                    "{shown} makes {} bytes of targets, too many to stand in an experiment file; write two files: \
                     assay init --from {} -o FOLDER",
                    text.len(),
                    from.display()
                ));
            }
            put(&text, None)
        }
        (Some(folder), false) => {
            let text = experiment(&found, &name, Some(TARGETS));
            let targets = found.targets.as_deref().unwrap_or_default();
            write_all(folder, &[(EXPERIMENT, &text), (TARGETS, targets)])
        }
    }
}

fn experiment(found: &Imported, name: &str, targets: Option<&str>) -> String {
    http_adapter::experiment(found, name, targets)
}

/// Nothing that a terminal would obey: names come from the file.
fn shown_note(note: &str) -> String {
    note.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

fn is_url(text: &str) -> bool {
    text.split_once("://").is_some_and(|(scheme, _)| matches!(scheme, "http" | "https"))
}

fn is_standard(path: &Path) -> bool {
    path == Path::new("-")
}

fn read(from: &Path) -> Result<Vec<u8>, String> {
    let failed = |error: io::Error| {
        format!("reading {}: {error}; check the path and that you may read it", from.display())
    };
    let input: Box<dyn Read> = if is_standard(from) {
        Box::new(io::stdin())
    } else {
        Box::new(File::open(from).map_err(failed)?)
    };
    let mut bytes = Vec::new();
    input.take(IMPORT_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > IMPORT_BYTES_MAX {
        return Err(format!(
            "{} is larger than {} MiB, the most that is read; save the recording without its answers",
            from.display(),
            IMPORT_BYTES_MAX >> 20
        ));
    }
    Ok(bytes)
}

/// The experiment's name: the file's, without what a name cannot hold.
fn name_of(from: &Path) -> String {
    let stem = from.file_stem().and_then(|stem| stem.to_str()).unwrap_or("");
    let name: String = stem
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || c == '-' || c == '_' { c } else { '-' })
        .take(60)
        .collect();
    let name = name.trim_matches('-');
    if name.is_empty() { "imported".to_owned() } else { name.to_owned() }
}

fn text_of(path: &Path) -> Result<String, String> {
    let text = path.to_str().map(str::to_owned);
    text.ok_or_else(|| {
        format!("{} is not UTF-8, so no experiment file can name it; rename it", path.display())
    })
}

/// The way from a folder to a file, so that both can be moved together.
fn relative(folder: &Path, file: &Path) -> Result<String, String> {
    let real = |path: &Path| {
        path.canonicalize().map_err(|error| format!("looking for {}: {error}", path.display()))
    };
    let (folder, file) = (real(folder)?, real(file)?);
    let same = folder.components().zip(file.components()).take_while(|(a, b)| a == b).count();
    let up = folder.components().skip(same).map(|_| Component::ParentDir);
    let path: PathBuf = up.chain(file.components().skip(same)).collect();
    text_of(&path)
}

fn make(folder: &Path) -> Result<(), String> {
    fs::create_dir_all(folder).map_err(|error| {
        format!("making {}: {error}; name a folder in which you may write", folder.display())
    })
}

/// Writes new files into a folder; nothing if one of them is there already.
fn write_all(folder: &Path, files: &[(&str, &str)]) -> Result<(), String> {
    make(folder)?;
    if let Some((name, _)) =
        files.iter().find(|(name, _)| fs::symlink_metadata(folder.join(name)).is_ok())
    {
        return Err(format!(
            "{} is there already and is not overwritten; name another folder or move it away",
            folder.join(name).display()
        ));
    }
    let mut made: Vec<PathBuf> = Vec::new();
    for (name, text) in files {
        let path = folder.join(name);
        // `create_new`: what appeared since the look above is not overwritten either.
        let file = OpenOptions::new().write(true).create_new(true).open(&path);
        let written = file.and_then(|mut file| {
            made.push(path.clone());
            file.write_all(text.as_bytes())
        });
        if let Err(error) = written {
            // Half an experiment would stand in the way of the next attempt.
            made.iter().for_each(|path| drop(fs::remove_file(path)));
            let path = path.display();
            return Err(format!(
                "writing {path}: {error}; is there space, and may you write there?"
            ));
        }
    }
    say!(
        "assay init: wrote {}; next: assay check {}",
        folder.display(),
        folder.join(EXPERIMENT).display()
    );
    Ok(())
}
