//! `assay seal`: a digest over all files of a run, a signature over the digest, and whether both hold. Signatures are
//! minisign's, so that who gets a run needs no program of ours to check one.

use std::io::Cursor;
use std::path::Path;

use minisign::{PublicKey, SecretKeyBox, SignatureBox};
use model::result::Exit;
use model::visible;
use record::{DIGESTS, FilesSeal, RunFolder, SIGNATURE};

use crate::cli::SealArguments;
use crate::terminal::{self, say};

/// The most files that a message names.
const NAMED_MAX: usize = 10;
/// The variable that holds the password of a secret key.
const PASSWORD: &str = "ASSAY_KEY_PASSWORD";

/// Seals, signs or verifies.
pub fn seal(arguments: &SealArguments) -> Exit {
    let mut exit = Exit::Ok;
    for path in &arguments.runs {
        match one(path, arguments) {
            Ok(text) => {
                if let Err(message) = terminal::print(&text) {
                    say!("assay seal: {message}");
                    return Exit::CouldNotRun;
                }
            }
            Err(message) => {
                say!("assay seal: {}: {message}", path.display());
                exit = Exit::CouldNotRun;
            }
        }
    }
    exit
}

/// A line on whether a run's files are those that were sealed, for whoever reads its report.
pub enum Line {
    /// They are.
    Holds(String),
    /// Nothing says so.
    Absent(String),
    /// They are not, or the seal is none.
    Broken(String),
}

/// How a run's files stand to its seal, in words.
pub fn line(run: &RunFolder) -> Line {
    match run.check_seal() {
        Ok(FilesSeal::Holds { files }) => {
            let is_signed = run.path().join(SIGNATURE).exists();
            let signed = if is_signed { "; signed: see assay seal --verify KEY" } else { "" };
            Line::Holds(format!("all {files} files are as they were sealed{signed}"))
        }
        Ok(FilesSeal::Absent) => Line::Absent(
            "the run has no seal over its files: nothing says whether they were changed".to_owned(),
        ),
        Ok(FilesSeal::Broken { why }) => {
            Line::Broken(format!("the run IS NOT AS IT WAS SEALED: {}", named(&why)))
        }
        Err(error) => Line::Broken(format!("the seal of the run cannot be read: {error}")),
    }
}

fn one(path: &Path, arguments: &SealArguments) -> Result<String, String> {
    let run = RunFolder::open(path).map_err(|error| error.to_string())?;
    let mut said = String::new();
    if arguments.verify.is_none() && state(&run)? == FilesSeal::Absent {
        let files = run.seal_files().map_err(|error| error.to_string())?;
        said = format!("{}: sealed, {files} files\n", path.display());
    }
    let files = match state(&run)? {
        FilesSeal::Holds { files } => files,
        FilesSeal::Absent => {
            return Err(format!("it has no {DIGESTS}, so that there is nothing to verify"));
        }
        FilesSeal::Broken { why } => {
            return Err(format!(
                "it is not as it was sealed: {}; restore it from a copy, or remove {DIGESTS} to seal what is there",
                named(&why)
            ));
        }
    };
    if let Some(key) = &arguments.sign {
        let signature = signature(&run, key)?;
        run.write_text(SIGNATURE, &signature).map_err(|error| error.to_string())?;
        said.push_str(&format!("{}: signed, {SIGNATURE}\n", path.display()));
    }
    if let Some(key) = &arguments.verify {
        let comment = verified(&run, key)?;
        said.push_str(&format!(
            "{}: {files} files as they were sealed, signed by this key ({})\n",
            path.display(),
            visible(&comment)
        ));
    }
    if said.is_empty() {
        said = format!("{}: {files} files as they were sealed\n", path.display());
    }
    Ok(said)
}

fn state(run: &RunFolder) -> Result<FilesSeal, String> {
    run.check_seal().map_err(|error| error.to_string())
}

/// The signature over the list of digests by a secret key in a file.
fn signature(run: &RunFolder, key: &Path) -> Result<String, String> {
    let at = |error: &dyn std::fmt::Display| format!("the secret key {}: {error}", key.display());
    let text = std::fs::read_to_string(key).map_err(|error| at(&error))?;
    let read = || SecretKeyBox::from_string(&text).map_err(|error| at(&error));
    // A key without a password says so by not being encrypted; any other asks on the terminal where no variable tells it.
    let secret = match read()?.into_unencrypted_secret_key() {
        Ok(secret) => secret,
        Err(_) => {
            read()?.into_secret_key(std::env::var(PASSWORD).ok()).map_err(|error| at(&error))?
        }
    };
    let digests = run.text(DIGESTS).map_err(|error| error.to_string())?;
    let name = run.path().file_name().unwrap_or_default().to_string_lossy();
    let comment = format!("run:{name}\tfile:{DIGESTS}\thashed");
    let signed = minisign::sign(
        None,
        &secret,
        Cursor::new(digests),
        Some(&comment),
        Some("signed by assay seal"),
    );
    Ok(signed.map_err(|error| at(&error))?.into_string())
}

/// The comment of a run's signature, which is part of what was signed, if the key made it.
fn verified(run: &RunFolder, key: &str) -> Result<String, String> {
    let file = Path::new(key);
    let public =
        if file.exists() { PublicKey::from_file(file) } else { PublicKey::from_base64(key) };
    let public = public.map_err(|error| {
        format!(
            "expected a file of a public key or the key itself, got `{}`: {error}",
            visible(key)
        )
    })?;
    let text = run.text(SIGNATURE).map_err(|error| format!("it is not signed: {error}"))?;
    let signature =
        SignatureBox::from_string(&text).map_err(|error| format!("{SIGNATURE}: {error}"))?;
    let digests = run.text(DIGESTS).map_err(|error| error.to_string())?;
    minisign::verify(&public, &signature, Cursor::new(digests), true, false, false)
        .map_err(|error| format!("its signature is not by this key: {error}"))?;
    signature.trusted_comment().map_err(|error| format!("{SIGNATURE}: {error}"))
}

fn named(why: &[String]) -> String {
    let mut text: Vec<String> = why.iter().take(NAMED_MAX).map(|one| visible(one)).collect();
    if why.len() > NAMED_MAX {
        text.push(format!("and {} more", why.len() - NAMED_MAX));
    }
    text.join(", ")
}
