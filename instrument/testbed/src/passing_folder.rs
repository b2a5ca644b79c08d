//! A folder that goes with this process, however that ends: dropped, it is removed here; after a SIGKILL a shell removes it
//! that holds nothing but a pipe from us, as the guard of nodes does.
//!
//! It must never remove a folder that it has not made.

use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Its writers are being killed in the same moment, so the folder may not be gone at once.
const SCRIPT: &str = r#"trap '' HUP INT QUIT TERM
read -r never
for attempt in 1 2 3 4 5 6 7 8 9 10; do
  rm -rf -- "$1"
  [ -e "$1" ] || exit 0
  sleep 0.2
done
"#;

/// A folder of this process alone.
#[derive(Debug)]
pub struct PassingFolder {
    path: PathBuf,
    keeper: Child,
}

impl PassingFolder {
    /// Makes `path`, for its owner alone; the folder around it is made where it is not there, and stays.
    ///
    /// # Errors
    /// When it is there already or cannot be made, or no shell can be started.
    pub fn make(path: &Path) -> io::Result<Self> {
        let path = std::path::absolute(path)?;
        if let Some(around) = path.parent() {
            std::fs::create_dir_all(around)?;
        }
        std::fs::DirBuilder::new().mode(0o700).create(&path)?;
        let keeper = Command::new("/bin/sh")
            .args(["-c", SCRIPT, "passing-folder"])
            .arg(&path)
            .current_dir("/")
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn();
        match keeper {
            Ok(keeper) => Ok(Self { path, keeper }),
            Err(error) => {
                let _ = std::fs::remove_dir(&path);
                Err(error)
            }
        }
    }

    /// Its place.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for PassingFolder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.path);
        // End of file: it finds nothing left to do, and ends.
        self.keeper.stdin = None;
        let _ = self.keeper.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Claim: the folder is its owner's, goes with all that is in it when it is dropped, and one that is there already is
    /// neither taken nor removed.
    #[test]
    fn it_goes() {
        let around = std::env::temp_dir().join(format!("passing-folder-{}", std::process::id()));
        let path = around.join("a b'c");
        let folder = PassingFolder::make(&path).unwrap();
        std::fs::create_dir(folder.path().join("within")).unwrap();
        std::fs::write(folder.path().join("within/file"), "text").unwrap();
        assert!(PassingFolder::make(&path).is_err());
        assert!(path.join("within/file").exists());
        drop(folder);
        assert!(!path.exists() && around.exists());
        std::fs::remove_dir(&around).unwrap();
    }
}
