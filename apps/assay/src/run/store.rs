//! `--rows s3://BUCKET/PREFIX`: when a run has ended, its folder, rows included, is copied to an object store, where query
//! engines read it. rclone carries it: it knows the stores, compares checksums and goes on after a broken connection.
//!
//! The folder here stays, whatever becomes of the copy. It must never copy while a load is on.

use std::io::Read as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use model::secret;
use record::RunFolder;
use testbed::install;

use crate::interrupt::Interrupt;
use crate::terminal::say;

/// As `assay doctor` calls it.
const PROGRAM: &str = "rclone";

/// The beginning of a URL, and rclone's words for such a store: credentials are the environment's, and a bucket that is not
/// there is not made.
const STORES: [(&str, &str); 3] = [
    ("s3://", ":s3,env_auth=true,no_check_bucket=true:"),
    ("gs://", ":gcs,env_auth=true,no_check_bucket=true:"),
    ("az://", ":azureblob,env_auth=true,no_check_container=true:"),
];

/// Variables in which credentials of stores stand.
const SECRETS: [&str; 6] = [
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "AZURE_CLIENT_SECRET",
    "AZURE_STORAGE_KEY",
    "RCLONE_S3_SECRET_ACCESS_KEY",
    "RCLONE_AZUREBLOB_KEY",
];

/// How often a copy is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// A folder of a store that is there and can be listed.
pub struct Store {
    program: PathBuf,
    url: String,
    remote: String,
}

/// The URL of `--rows`, as rclone writes the place.
fn remote(url: &str) -> Result<String, String> {
    let place = |&(scheme, words)| Some((url.strip_prefix(scheme)?, words));
    let Some((place, words)) = STORES.iter().find_map(place) else {
        let schemes: Vec<&str> = STORES.iter().map(|(scheme, _)| *scheme).collect();
        return Err(format!("expected a URL that begins with {}", schemes.join(", ")));
    };
    if place.contains('@') {
        return Err("expected no credentials in the URL, where the list of processes shows them; put them into the \
                    variables of the store's own tools, such as AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
            .to_owned());
    }
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./=".contains(c);
    let place = place.trim_end_matches('/');
    if place.is_empty() || place.starts_with('/') || !place.chars().all(is_plain) {
        return Err(
            "expected a bucket and folders of letters, digits, `-`, `_`, `.` and `=`".to_owned()
        );
    }
    Ok(format!("{words}{place}"))
}

/// Whether the URL of `--rows` can be one.
pub fn check(url: &str) -> Result<String, String> {
    remote(url).map(|_| url.to_owned())
}

impl Store {
    /// Looks for rclone, and whether the store lists the folder: before the load, because afterwards is too late to hear of a
    /// missing bucket.
    ///
    /// # Errors
    /// In words that say what to do.
    pub fn open(url: &str, interrupt: &Interrupt) -> Result<Self, String> {
        SECRETS
            .iter()
            .filter_map(|name| std::env::var(name).ok())
            .for_each(|it| secret::taint(&it));
        let program = install::find(PROGRAM).ok_or_else(|| {
            format!("--rows: expected {PROGRAM}, found none; run: assay doctor --install {PROGRAM}")
        })?;
        let remote = remote(url).map_err(|why| format!("--rows {url}: {why}"))?;
        let store = Self { program, url: url.trim_end_matches('/').to_owned(), remote };
        let words = ["lsf", "--max-depth", "1", "--retries", "1", "--low-level-retries", "1"];
        store.rclone(&words, &[&store.remote], interrupt)?;
        Ok(store)
    }

    /// Copies the folder of a run, and says where it is now, or how to copy it again; whether all of it is there.
    pub fn keep_or_say(&self, run: &RunFolder, interrupt: &Interrupt) -> bool {
        let name = run.path().file_name().unwrap_or_default().to_string_lossy().into_owned();
        let (from, to) = (run.path().display().to_string(), format!("{}/{name}", self.remote));
        match self.rclone(&["copy", "--checksum"], &[&from, &to], interrupt) {
            Ok(()) => say!("assay: the run folder is also at {}/{name}", self.url),
            Err(why) => {
                say!(
                    "assay: {why}\nassay: {from} is whole; copy it with: {PROGRAM} copy --checksum {from} '{to}'"
                );
                return false;
            }
        }
        true
    }

    fn rclone(&self, words: &[&str], places: &[&str], interrupt: &Interrupt) -> Result<(), String> {
        let failed = |why: String| format!("--rows {}: {why}", self.url);
        let mut command = Command::new(&self.program);
        command
            .args(words)
            .args(["--log-level", "ERROR", "--contimeout", "10s", "--"])
            .args(places);
        // Settings of whoever uses this machine are not the run's.
        command.env("RCLONE_CONFIG", "").stdin(Stdio::null()).stdout(Stdio::null());
        testbed::end_with_thread(command.stderr(Stdio::piped()));
        let mut child = command.spawn().map_err(|error| failed(format!("{PROGRAM}: {error}")))?;
        let mut stderr = child.stderr.take();
        let reader = std::thread::spawn(move || {
            let mut said = String::new();
            let _ = stderr.as_mut().map(|it| it.read_to_string(&mut said));
            said
        });
        let status = loop {
            match child.try_wait() {
                Ok(Some(status)) => break status,
                Ok(None) if !interrupt.is_set() => std::thread::sleep(LOOK_EVERY),
                Ok(None) => {
                    let _ = child.kill();
                    let _ = child.wait();
                    return Err(failed("interrupted".to_owned()));
                }
                Err(error) => return Err(failed(error.to_string())),
            }
        };
        let said = reader.join().unwrap_or_default();
        if status.success() {
            return Ok(());
        }
        let last = said.lines().rfind(|line| !line.is_empty()).unwrap_or("it said nothing");
        Err(failed(format!("{PROGRAM} {status}: {last}")))
    }
}

#[cfg(test)]
mod tests {
    use super::remote;

    /// Claim: the place in a store is the URL's; other schemes, credentials, and what rclone would read as an option of its
    /// own are refused.
    #[test]
    fn places() {
        let s3 = ":s3,env_auth=true,no_check_bucket=true:bucket/a/b=1";
        assert_eq!(remote("s3://bucket/a/b=1/").as_deref(), Ok(s3));
        assert!(remote("az://box").is_ok_and(|it| it.ends_with(":box")));
        for url in
            ["bucket", "http://x/y", "s3://", "s3:///x", "s3://b,c=d:x", "s3://b/'x'", "s3://b/a b"]
        {
            assert!(remote(url).is_err(), "{url}");
        }
        assert!(remote("s3://id:key@bucket").is_err_and(|why| why.contains("AWS_ACCESS_KEY_ID")));
    }
}
