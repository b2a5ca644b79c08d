//! Experiments from what others recorded or described: target files, HAR recordings, OpenAPI descriptions, options of k6.
//!
//! Pure: bytes in, an experiment and its targets out. It sends nothing, follows no reference out of the file,
//! and never copies a secret: what carries one is left out, and the experiment says where it belongs.

mod body;
mod experiment;
mod har;
mod har_flow;
mod k6;
mod openapi;
mod secrets;
mod target_file;
mod target_lines;
mod yaml;

use serde::Deserialize;
use serde::de::IgnoredAny;

/// The largest file that is read: recordings hold every answer.
pub const IMPORT_BYTES_MAX: u64 = 512 << 20;

/// What is asked of an import.
#[derive(Clone, Copy, Debug, Default)]
pub struct ImportOptions<'a> {
    /// The only host to keep, with or without its port; without it the most frequent one.
    pub host: Option<&'a str>,
    /// Operations of an OpenAPI description beyond GET and HEAD.
    pub all_methods: bool,
    /// A recording becomes one user's flow, with what answers said carried on to later requests.
    pub is_flow: bool,
}

/// What was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Imported {
    /// What the file is, such as `HAR 1.2`.
    pub form: String,
    /// The server, if the file names one.
    pub url: Option<String>,
    /// How many targets there are.
    pub target_count: usize,
    /// The targets in vegeta's JSON form; `None` if the file is a target file and can be used as it is.
    pub targets: Option<String>,
    /// Steps of a flow, as they stand in an experiment.
    pub steps: Option<String>,
    /// The load and its thresholds, as they stand in an experiment.
    pub load: Option<String>,
    /// More keys of `[system.deploy]`, a line each.
    pub deploy: String,
    /// What was left out, changed or made up: sentences.
    pub notes: Vec<String>,
    /// Names of headers that carry secrets and were left out.
    pub secret_headers: Vec<String>,
}

/// Reads a file, whichever of the forms it has; `name` is for messages.
///
/// # Errors
/// Why it cannot be read, and what to do, in words.
pub fn import(name: &str, bytes: &[u8], options: &ImportOptions<'_>) -> Result<Imported, String> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let found = match form_of(bytes) {
        Form::Har if options.is_flow => har_flow::import(bytes, options),
        Form::K6 => k6::import(bytes),
        _ if options.is_flow => Err("a flow is made of a recording (HAR), whose answers say what is carried on".to_owned()),
        Form::Har => har::import(bytes, options),
        Form::OpenApiJson => openapi::import_json(bytes, options),
        Form::OpenApiYaml => openapi::import_yaml(bytes, options),
        Form::Swagger => Err("it is a Swagger 2.0 description; convert it to OpenAPI 3 first (editor.swagger.io and \
             swagger2openapi do)"
            .to_owned()),
        Form::Targets => target_file::import(bytes),
    };
    let found = found.map(|mut found| {
        if found.targets.is_none() && found.steps.is_none() && options.host.is_some() {
            found.notes.push("a target file is used as it is: --host changes nothing".to_owned());
        }
        if options.all_methods && !found.form.starts_with("OpenAPI") {
            found.notes.push(
                "--all-methods is for descriptions only; all methods are taken anyway".to_owned(),
            );
        }
        found
    });
    found.map_err(|why| format!("reading {name}: {why}"))
}

/// An experiment on what was imported. `targets_file` is the path of the target file as the experiment is to
/// name it; without it the targets stand in the experiment itself.
#[must_use]
pub fn experiment(imported: &Imported, name: &str, targets_file: Option<&str>) -> String {
    experiment::text(imported, name, targets_file)
}

/// `1 request`, `2 requests`.
fn counted(count: usize, word: &str) -> String {
    format!("{count} {word}{}", if count == 1 { "" } else { "s" })
}

enum Form {
    Har,
    OpenApiJson,
    OpenApiYaml,
    Swagger,
    K6,
    Targets,
}

/// The keys by which a JSON document is known.
#[derive(Deserialize)]
struct Known {
    log: Option<IgnoredAny>,
    openapi: Option<IgnoredAny>,
    swagger: Option<IgnoredAny>,
}

fn form_of(bytes: &[u8]) -> Form {
    if bytes.trim_ascii_start().starts_with(b"{") {
        // One object a line is a target file, and not one document.
        let first = bytes.trim_ascii_start()[1..].trim_ascii_start();
        return match serde_json::from_slice(bytes) {
            Ok(Known { log: Some(_), .. }) => Form::Har,
            Ok(Known { openapi: Some(_), .. }) => Form::OpenApiJson,
            Ok(Known { swagger: Some(_), .. }) => Form::Swagger,
            // Cut off, or YAML in braces.
            _ if first.starts_with(b"\"log\"") => Form::Har,
            _ if first.starts_with(b"\"openapi\"") => Form::OpenApiJson,
            _ if first.starts_with(b"openapi") => Form::OpenApiYaml,
            _ => Form::Targets,
        };
    }
    let says = |key: &str| {
        let starts = |line: &[u8]| {
            let line = line.strip_prefix(b"\"").or(line.strip_prefix(b"'")).unwrap_or(line);
            line.starts_with(key.as_bytes())
                && line[key.len()..].trim_ascii_start().iter().take(2).any(|byte| *byte == b':')
        };
        bytes.split(|byte| *byte == b'\n').any(starts)
    };
    match () {
        () if says("openapi") => Form::OpenApiYaml,
        () if says("swagger") => Form::Swagger,
        () if k6::is_script(bytes) => Form::K6,
        () => Form::Targets,
    }
}

#[cfg(test)]
mod tests;
