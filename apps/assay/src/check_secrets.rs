//! `assay report --check-secrets`: looks through every byte of run folders for secrets, before a folder is given away.
//!
//! What is looked for: the values of variables that the experiment refers to and that are set here, those of variables
//! with a secret-looking name, each in the forms that [`model::secret`] knows, and credentials that are known by
//! themselves. It must never print one.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use model::secret::{self, Secrets};
use model::visible;
use record::RunFolder;

/// The longest file that is looked through as text, for credentials that are known by themselves.
const TEXT_BYTES_MAX: u64 = 64 << 20;
/// The shortest value of a variable that only its name makes a secret, in bytes.
const VALUE_BYTES_MIN: usize = 8;

/// Variables of a shell that are called like passwords and hold folders.
const FOLDERS: [&str; 2] = ["PWD", "OLDPWD"];

/// Looks through the folders and says what was found, in words; whether nothing was.
///
/// # Errors
/// When a folder is none, or a file cannot be read, for people.
pub fn check(paths: &[PathBuf]) -> Result<(bool, String), String> {
    let mut text = String::new();
    let mut is_clean = true;
    for path in paths {
        let run = RunFolder::open(path).map_err(|error| error.to_string())?;
        let (values, unset) = values(&run.experiment().map_err(|error| error.to_string())?);
        let mut found: BTreeMap<(String, String), usize> = BTreeMap::new();
        let (mut files, mut first_error) = (0, None);
        record::each_file(path, &mut |file| {
            files += 1;
            let name = visible(&file.strip_prefix(path).unwrap_or(file).display().to_string());
            if let Err(error) = look(file, &name, &values, &mut found) {
                first_error.get_or_insert(format!("{}: {error}", file.display()));
            }
        });
        if let Some(error) = first_error {
            return Err(error);
        }
        is_clean &= found.is_empty();
        for ((file, what), count) in &found {
            text.push_str(&format!("✗ {}/{file}: {what}, {count} times\n", path.display()));
        }
        let mark = if found.is_empty() { "✓ no secret" } else { "✗ secrets" };
        let named = if values.is_empty() {
            "credentials by their form".to_owned()
        } else {
            let names: Vec<&str> = values.iter().map(|(name, _)| name.as_str()).collect();
            format!("credentials by their form, and the values of {}", names.join(", "))
        };
        text.push_str(&format!(
            "{mark} in {} ({files} files); looked for {named}\n",
            path.display()
        ));
        if !unset.is_empty() {
            text.push_str(&format!(
                "  not looked for, because not set here: {}\n",
                unset.join(", ")
            ));
        }
    }
    text.push_str(&format!("a value is found {}\n", secret::FORMS));
    Ok((is_clean, text))
}

/// The values to look for, by the name of their variable, and the variables that the experiment names and that are not set.
fn values(experiment: &str) -> (Vec<(String, Secrets)>, Vec<String>) {
    let named = secret::references(experiment);
    let mut values = BTreeMap::new();
    for (name, value) in std::env::vars_os() {
        let (name, value) = (name.to_string_lossy(), value.to_string_lossy());
        let is_meant = named.iter().any(|it| *it == *name);
        let is_secret = secret::is_secret_name(&name) && !FOLDERS.contains(&&*name);
        if is_meant || (is_secret && value.len() >= VALUE_BYTES_MIN) {
            let mut secrets = Secrets::default();
            secrets.add(&value);
            values.insert(name.into_owned(), secrets);
        }
    }
    let unset = named.into_iter().filter(|name| !values.contains_key(name)).collect();
    (values.into_iter().collect(), unset)
}

fn look(
    path: &Path,
    name: &str,
    values: &[(String, Secrets)],
    found: &mut BTreeMap<(String, String), usize>,
) -> std::io::Result<()> {
    let mut note = |what: String| *found.entry((name.to_owned(), what)).or_insert(0) += 1;
    let file = File::open(path)?;
    for (variable, secrets) in values {
        record::find_secrets(&file, secrets, |_| {
            note(format!("the value of {variable}"));
            Ok(())
        })?;
    }
    let mut bytes = Vec::new();
    file.take(TEXT_BYTES_MAX).read_to_end(&mut bytes)?;
    for (_, what) in secret::credentials(&String::from_utf8_lossy(&bytes)) {
        note(what.to_owned());
    }
    Ok(())
}
