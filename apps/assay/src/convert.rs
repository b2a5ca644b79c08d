//! `assay convert`: results from one format into another. It computes nothing: crate `exchange` reads and
//! writes, crate `report` prints vegeta's reports.

use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Read as _, Write};
use std::path::{Path, PathBuf};

use exchange::{ExchangeError, Format, Holds, Notes, Percentiles, RowsInput};
use model::result::{Exit, VegetaResult};

use crate::cli::ConvertArguments;

/// How much of an input is looked at to tell its format.
const HEAD_BYTES: usize = 64 << 10;
/// The longest report that is read.
const REPORT_BYTES_MAX: u64 = 16 << 20;

/// Why nothing was converted.
enum Failure {
    Usage(String),
    CouldNot(String),
    /// The reader of the output has had enough.
    Closed,
}

impl From<ExchangeError> for Failure {
    fn from(error: ExchangeError) -> Self {
        match error {
            ExchangeError::Closed => Self::Closed,
            ExchangeError::Refused(why) => Self::Usage(why),
            other => Self::CouldNot(other.to_string()),
        }
    }
}

/// Converts.
pub fn convert(arguments: &ConvertArguments) -> Exit {
    match converted(arguments) {
        Ok(notes) => {
            for line in notes.lines {
                eprintln!("assay convert: {line}");
            }
            Exit::Ok
        }
        Err(Failure::Closed) => Exit::Ok,
        Err(Failure::Usage(why)) => {
            eprintln!("assay convert: {why}");
            Exit::Usage
        }
        Err(Failure::CouldNot(why)) => {
            eprintln!("assay convert: {why}");
            Exit::CouldNotRun
        }
    }
}

fn converted(arguments: &ConvertArguments) -> Result<Notes, Failure> {
    let from = arguments.from.as_deref().map(format).transpose()?;
    let to = arguments.to.as_deref().map(format).transpose()?;
    let (input, from) = Input::open(&arguments.input, from)?;
    let to = match to {
        Some(to) => to,
        None => Format::of_output(&arguments.output, from).map_err(Failure::Usage)?,
    };
    from.check_conversion(to).map_err(Failure::Usage)?;
    let mut out = Output::create(&arguments.output)?;
    let notes = match from.holds() {
        Holds::Rows => rows(input, from, to, &mut out)?,
        Holds::Distribution => {
            let all = input.distributions(from)?;
            let text = distribution_text(all, to, arguments.tag.as_deref())?;
            out.text(&text)?;
            Notes::default()
        }
        Holds::Report => {
            let text = report_text(&input.report(from)?, to);
            out.text(&text)?;
            Notes::default()
        }
    };
    out.finish()?;
    Ok(notes)
}

fn format(word: &str) -> Result<Format, Failure> {
    Format::from_word(word).ok_or_else(|| {
        let known: Vec<&str> = Format::words().collect();
        let help = model::options::did_you_mean(word, Format::words());
        let help = help.unwrap_or_else(|| format!("formats are {}", known.join(", ")));
        Failure::Usage(format!("`{}` is not a format; {help}", word.escape_debug()))
    })
}

fn rows(input: Input, from: Format, to: Format, out: &mut Output) -> Result<Notes, Failure> {
    let staging = out.folder();
    let input = input.rows(from)?;
    Ok(match to {
        Format::Parquet | Format::Hlog => exchange::stage_rows(input, to, &staging, &mut out.file)?,
        Format::Hgrm | Format::Vegeta | Format::VegetaJson => {
            let (summary, notes) = exchange::summarise(input)?;
            out.text(&match to {
                Format::Hgrm => exchange::hgrm_text(&summary.percentiles),
                other => report_text(&summary.vegeta, other),
            })?;
            notes
        }
        _ => exchange::write_rows(input, to, &mut out.file)?,
    })
}

fn report_text(result: &VegetaResult, to: Format) -> String {
    if to == Format::VegetaJson {
        report::vegeta_json_text(result)
    } else {
        report::vegeta_text(result)
    }
}

fn distribution_text(
    mut all: Vec<Percentiles>,
    to: Format,
    tag: Option<&str>,
) -> Result<String, Failure> {
    let names: Vec<String> = all.iter().map(|one| one.tag.clone()).collect();
    let shown = names.join(", ");
    if let Some(tag) = tag {
        all.retain(|one| one.tag == tag);
        if all.is_empty() {
            return Err(Failure::Usage(format!(
                "there is no tag `{tag}` in it; there are: {shown}"
            )));
        }
    }
    Ok(match to {
        Format::Csv => exchange::percentiles_csv(&all),
        Format::Ndjson => exchange::percentiles_ndjson(&all),
        Format::Json => exchange::percentiles_json(&all),
        _ => {
            let one = if all.len() == 1 {
                0
            } else {
                names.iter().position(|name| name == "committed").unwrap_or(all.len())
            };
            let one = all.get(one).ok_or_else(|| {
                Failure::Usage(format!("a .hgrm holds one distribution and the log has several; give --tag with one of: {shown}"))
            })?;
            exchange::hgrm_text(one)
        }
    })
}

/// What is read.
struct Input {
    name: String,
    /// `None`: standard input.
    path: Option<PathBuf>,
    stdin: Option<BufReader<io::Stdin>>,
}

impl Input {
    /// Finds out what the input is.
    fn open(path: &Path, from: Option<Format>) -> Result<(Self, Format), Failure> {
        if path == Path::new("-") {
            let mut stdin = BufReader::with_capacity(HEAD_BYTES, io::stdin());
            let head = stdin
                .fill_buf()
                .map_err(|error| Failure::CouldNot(format!("reading standard input: {error}")))?;
            let from = match from {
                Some(from) => from,
                None => {
                    Format::of_input(Path::new("standard input"), head).map_err(Failure::Usage)?
                }
            };
            if matches!(from, Format::Run | Format::Parquet) {
                let why =
                    "is read from its end, which a pipe does not have; give the path of the file";
                return Err(Failure::Usage(format!("{} {why}", from.word())));
            }
            let input = Self { name: "standard input".to_owned(), path: None, stdin: Some(stdin) };
            return Ok((input, from));
        }
        let input =
            Self { name: path.display().to_string(), path: Some(path.to_owned()), stdin: None };
        if path.is_dir() {
            return Ok((input, from.unwrap_or(Format::Run)));
        }
        let mut head = Vec::new();
        let file = input.file(path)?;
        file.take(HEAD_BYTES as u64)
            .read_to_end(&mut head)
            .map_err(|error| input.unreadable(&error))?;
        let from = match from {
            Some(from) => from,
            None => Format::of_input(path, &head).map_err(Failure::Usage)?,
        };
        Ok((input, from))
    }

    fn unreadable(&self, error: &io::Error) -> Failure {
        Failure::CouldNot(format!(
            "reading {}: {error}; check the path and that you may read it",
            self.name
        ))
    }

    fn file(&self, path: &Path) -> Result<File, Failure> {
        File::open(path).map_err(|error| self.unreadable(&error))
    }

    /// The bytes from the beginning. Standard input has them once.
    fn bytes(&mut self) -> Result<Box<dyn BufRead>, Failure> {
        match (&self.path, self.stdin.take()) {
            (Some(path), _) => Ok(Box::new(BufReader::with_capacity(HEAD_BYTES, self.file(path)?))),
            (None, Some(stdin)) => Ok(Box::new(stdin)),
            (None, None) => Ok(Box::new(io::empty())),
        }
    }

    fn rows(mut self, from: Format) -> Result<RowsInput<'static>, Failure> {
        if let Some(path) = &self.path {
            match from {
                Format::Run => return Ok(RowsInput::run(path)?),
                Format::Parquet => return Ok(RowsInput::parquet(path)?),
                _ => {}
            }
        }
        let first = match self.path {
            // vegeta's results stand in the order of their ends; the earliest sending is looked for first.
            Some(_) => RowsInput::earliest_unix_ns(from, &self.name.clone(), self.bytes()?)?,
            None => None,
        };
        let bytes = self.bytes()?;
        Ok(RowsInput::text(from, &self.name, bytes, first))
    }

    fn distributions(mut self, from: Format) -> Result<Vec<Percentiles>, Failure> {
        let bytes = self.bytes()?;
        match from {
            Format::Hlog => Ok(exchange::read_hlog(&self.name, bytes)?),
            Format::Hgrm => Ok(vec![exchange::read_hgrm(&self.name, bytes)?]),
            _ => Err(Failure::Usage("a JSON document of percentiles is written and not read; start from the .hlog or .hgrm".to_owned())),
        }
    }

    fn report(mut self, from: Format) -> Result<VegetaResult, Failure> {
        let mut text = Vec::new();
        self.bytes()?
            .take(REPORT_BYTES_MAX)
            .read_to_end(&mut text)
            .map_err(|error| self.unreadable(&error))?;
        let text = String::from_utf8_lossy(&text);
        if from == Format::VegetaJson {
            return Ok(exchange::read_vegeta_json(&self.name, &text)?);
        }
        report::parse_vegeta_text(&text)
            .map_err(|error| Failure::CouldNot(format!("{}: {error}", self.name)))
    }
}

/// Where the result goes: standard output, or a file that gets its name when it is complete.
struct Output {
    path: Option<PathBuf>,
    file: BufWriter<Box<dyn Write>>,
    is_finished: bool,
}

impl Output {
    fn create(path: &Path) -> Result<Self, Failure> {
        if path == Path::new("-") {
            let file: Box<dyn Write> = Box::new(io::stdout());
            return Ok(Self { path: None, file: BufWriter::new(file), is_finished: false });
        }
        let file = File::create(partial(path)).map_err(|error| unwritable(path, &error))?;
        let file: Box<dyn Write> = Box::new(file);
        Ok(Self {
            path: Some(path.to_owned()),
            file: BufWriter::with_capacity(256 << 10, file),
            is_finished: false,
        })
    }

    /// Where there is room beside the output.
    fn folder(&self) -> PathBuf {
        match &self.path {
            None => std::env::temp_dir(),
            Some(path) => path
                .parent()
                .filter(|folder| *folder != Path::new(""))
                .map_or_else(|| PathBuf::from("."), Path::to_owned),
        }
    }

    fn text(&mut self, text: &str) -> Result<(), Failure> {
        self.file.write_all(text.as_bytes()).map_err(|error| self.failed(&error))
    }

    fn failed(&self, error: &io::Error) -> Failure {
        match &self.path {
            _ if error.kind() == io::ErrorKind::BrokenPipe => Failure::Closed,
            Some(path) => unwritable(path, error),
            None => Failure::CouldNot(format!("writing to standard output: {error}")),
        }
    }

    fn finish(mut self) -> Result<(), Failure> {
        self.file.flush().map_err(|error| self.failed(&error))?;
        if let Some(path) = &self.path {
            std::fs::rename(partial(path), path).map_err(|error| unwritable(path, &error))?;
        }
        self.is_finished = true;
        Ok(())
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        if let Some(path) = self.path.as_deref().filter(|_| !self.is_finished) {
            // Half a file would be taken for a whole one.
            let _ = std::fs::remove_file(partial(path));
        }
    }
}

fn partial(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".partial");
    PathBuf::from(name)
}

fn unwritable(path: &Path, error: &io::Error) -> Failure {
    Failure::CouldNot(format!(
        "writing {}: {error}; is there space, and may you write there?",
        path.display()
    ))
}
