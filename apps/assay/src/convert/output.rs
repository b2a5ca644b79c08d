//! Where `assay convert` writes: standard output, a file that gets its name when it is complete, or a device or a
//! pipe with a name, which is written to and never replaced.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use super::Failure;

/// Where the result goes.
pub(super) struct Output {
    pub(super) file: BufWriter<Box<dyn Write>>,
    /// Its name in messages.
    name: String,
    /// A file in the making: where it is written, and the name that it gets.
    whole: Option<(PathBuf, PathBuf)>,
    is_finished: bool,
}

impl Output {
    pub(super) fn create(path: &Path) -> Result<Self, Failure> {
        if path == Path::new("-") {
            return Ok(Self::new("standard output".to_owned(), Box::new(io::stdout()), None));
        }
        let name = path.display().to_string();
        let failed = |error: io::Error| unwritable(&name, &error);
        match fs::metadata(path) {
            Ok(there) if there.is_dir() => {
                Err(Failure::CouldNot(format!("writing {name}: it is a folder; name a file in it")))
            }
            // A file put in the place of /dev/null would be everybody's.
            Ok(there) if !there.is_file() => {
                let file = OpenOptions::new().write(true).open(path).map_err(failed)?;
                Ok(Self::new(name, Box::new(file), None))
            }
            there => {
                // What a link leads to is written, and the link stays.
                let path =
                    if there.is_ok() { path.canonicalize().map_err(failed)? } else { path.into() };
                let partial = partial(&path);
                let file = File::create(&partial).map_err(failed)?;
                Ok(Self::new(name, Box::new(file), Some((partial, path))))
            }
        }
    }

    fn new(name: String, file: Box<dyn Write>, whole: Option<(PathBuf, PathBuf)>) -> Self {
        let file = BufWriter::with_capacity(256 << 10, file);
        Self { file, name, whole, is_finished: false }
    }

    /// Where there is room beside the output.
    pub(super) fn folder(&self) -> PathBuf {
        match &self.whole {
            None => std::env::temp_dir(),
            Some((_, path)) => path
                .parent()
                .filter(|folder| *folder != Path::new(""))
                .map_or_else(|| PathBuf::from("."), Path::to_owned),
        }
    }

    pub(super) fn text(&mut self, text: &str) -> Result<(), Failure> {
        self.file.write_all(text.as_bytes()).map_err(|error| unwritable(&self.name, &error))
    }

    pub(super) fn finish(mut self) -> Result<(), Failure> {
        self.file.flush().map_err(|error| unwritable(&self.name, &error))?;
        if let Some((partial, path)) = &self.whole {
            fs::rename(partial, path).map_err(|error| unwritable(&self.name, &error))?;
        }
        self.is_finished = true;
        Ok(())
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        if let Some((partial, _)) = self.whole.as_ref().filter(|_| !self.is_finished) {
            // Half a file would be taken for a whole one.
            let _ = fs::remove_file(partial);
        }
    }
}

/// A name of this process alone: a file of the user's and another conversion's are left in peace.
fn partial(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{}.partial", std::process::id()));
    PathBuf::from(name)
}

fn unwritable(name: &str, error: &io::Error) -> Failure {
    if error.kind() == io::ErrorKind::BrokenPipe {
        return Failure::Closed;
    }
    Failure::CouldNot(format!("writing {name}: {error}; is there space, and may you write there?"))
}
