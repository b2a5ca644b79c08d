//! Inputs of `assay convert`: a file, the folder of a run, standard input, or another pipe with a name.
//!
//! A pipe has its bytes once: its beginning is looked at to tell its format, and must never be lost by that.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::path::{Path, PathBuf};

use exchange::{Format, Percentiles, RowsInput};
use model::result::VegetaResult;

use super::Failure;

/// How much of an input is looked at to tell its format.
const HEAD_BYTES: usize = 64 << 10;
/// The longest report that is read.
const REPORT_BYTES_MAX: u64 = 16 << 20;

/// An input.
pub(super) struct Input {
    name: String,
    source: Source,
}

enum Source {
    /// A file or a folder, which can be read more than once.
    Path(PathBuf),
    /// A pipe.
    Stream(Box<dyn BufRead>),
}

impl Input {
    /// Finds out what the input is.
    pub(super) fn open(path: &Path, from: Option<Format>) -> Result<(Self, Format), Failure> {
        if path == Path::new("-") {
            return of_stream("standard input".to_owned(), path, Box::new(io::stdin()), from);
        }
        let name = path.display().to_string();
        let kind = fs::metadata(path).map_err(|error| unreadable(&name, &error))?.file_type();
        if !kind.is_dir() && !kind.is_file() {
            let pipe = file(path, &name)?;
            return of_stream(name, path, Box::new(pipe), from);
        }
        let input = Self { name, source: Source::Path(path.to_owned()) };
        if kind.is_dir() {
            return Ok((input, from.unwrap_or(Format::Run)));
        }
        let mut head = Vec::new();
        file(path, &input.name)?
            .take(HEAD_BYTES as u64)
            .read_to_end(&mut head)
            .map_err(|error| unreadable(&input.name, &error))?;
        let from = match from {
            Some(from) => from,
            None => Format::of_input(path, &head).map_err(Failure::Usage)?,
        };
        Ok((input, from))
    }

    /// The bytes from the beginning.
    fn bytes(self) -> Result<Box<dyn BufRead>, Failure> {
        match self.source {
            Source::Path(path) => buffered(&path, &self.name),
            Source::Stream(stream) => Ok(stream),
        }
    }

    pub(super) fn rows(self, from: Format) -> Result<RowsInput<'static>, Failure> {
        let name = self.name.clone();
        let first = match &self.source {
            Source::Path(path) => match from {
                Format::Run => return Ok(RowsInput::run(path)?),
                Format::Parquet => return Ok(RowsInput::parquet(path)?),
                // vegeta's results stand in the order of their ends; the earliest sending is looked for first.
                _ => RowsInput::earliest_unix_ns(from, &name, buffered(path, &name)?)?,
            },
            Source::Stream(_) => None,
        };
        Ok(RowsInput::text(from, &name, self.bytes()?, first))
    }

    pub(super) fn distributions(self, from: Format) -> Result<Vec<Percentiles>, Failure> {
        let name = self.name.clone();
        from.read_percentiles(&name, self.bytes()?)?.ok_or_else(|| {
            Failure::Usage("a JSON document of percentiles is written and not read; start from the .hlog or .hgrm".to_owned())
        })
    }

    pub(super) fn report(self, from: Format) -> Result<VegetaResult, Failure> {
        let name = self.name.clone();
        let mut text = Vec::new();
        self.bytes()?
            .take(REPORT_BYTES_MAX)
            .read_to_end(&mut text)
            .map_err(|error| unreadable(&name, &error))?;
        let text = String::from_utf8_lossy(&text);
        if from == Format::VegetaJson {
            return Ok(exchange::read_vegeta_json(&name, &text)?);
        }
        report::parse_vegeta_text(&text)
            .map_err(|error| Failure::CouldNot(format!("{name}: {error}")))
    }
}

/// A pipe: its first line is read to tell its format, and put back.
fn of_stream(
    name: String,
    path: &Path,
    mut pipe: Box<dyn Read>,
    from: Option<Format>,
) -> Result<(Input, Format), Failure> {
    let head = first_line(&mut pipe).map_err(|error| unreadable(&name, &error))?;
    let from = match from {
        Some(from) => from,
        None => {
            let path = if path == Path::new("-") { Path::new(&name) } else { path };
            Format::of_input(path, &head).map_err(Failure::Usage)?
        }
    };
    if matches!(from, Format::Run | Format::Parquet) {
        let why = "is read from its end, which a pipe does not have; give the path of the file";
        return Err(Failure::Usage(format!("{} {why}", from.word())));
    }
    let whole = Cursor::new(head).chain(BufReader::with_capacity(HEAD_BYTES, pipe));
    Ok((Input { name, source: Source::Stream(Box::new(whole)) }, from))
}

/// What a pipe holds up to the end of its first line that is not blank; a pipe gives as little at a time as its
/// writer wrote.
fn first_line(pipe: &mut dyn Read) -> io::Result<Vec<u8>> {
    let mut head = vec![0; HEAD_BYTES];
    let mut length = 0;
    while length < HEAD_BYTES {
        let count = match pipe.read(&mut head[length..]) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            read => read?,
        };
        length += count;
        if count == 0 || head[..length].trim_ascii_start().contains(&b'\n') {
            break;
        }
    }
    head.truncate(length);
    Ok(head)
}

fn buffered(path: &Path, name: &str) -> Result<Box<dyn BufRead>, Failure> {
    Ok(Box::new(BufReader::with_capacity(HEAD_BYTES, file(path, name)?)))
}

fn file(path: &Path, name: &str) -> Result<File, Failure> {
    File::open(path).map_err(|error| unreadable(name, &error))
}

fn unreadable(name: &str, error: &io::Error) -> Failure {
    Failure::CouldNot(format!("reading {name}: {error}; check the path and that you may read it"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives one byte at a time, as a slow pipe may.
    struct Slow(&'static [u8]);

    impl Read for Slow {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let (Some((first, rest)), Some(place)) = (self.0.split_first(), buffer.first_mut())
            else {
                return Ok(0);
            };
            (*place, self.0) = (*first, rest);
            Ok(1)
        }
    }

    /// Claim: however little a pipe gives at a time, its format is told by its whole first line, and nothing of it
    /// is lost.
    #[test]
    fn a_slow_pipe() {
        let text = b"\n1595,200,5,0,2,,,n,0,GET,http://h/,\n1596,200,5,0,2,,,n,1,GET,http://h/,\n";
        let opened = of_stream("x".to_owned(), Path::new("-"), Box::new(Slow(text)), None);
        let Ok((input, format)) = opened else { panic!("the format was not told") };
        assert_eq!(format, Format::VegetaCsv);
        let mut all = Vec::new();
        let Ok(mut bytes) = input.bytes() else { panic!("a pipe has its bytes") };
        bytes.read_to_end(&mut all).expect("memory can be read");
        assert_eq!(all, text);
    }
}
