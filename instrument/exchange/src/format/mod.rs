//! The formats, each declared once: its word, how a file gives it away, what it holds, and how it is read and written.
//!
//! One more of rows or percentiles as a text is a file here and its lines in the list.

mod csv;
mod hgrm;
mod hlog;
mod ndjson;
mod vegeta_csv;
mod vegeta_ndjson;

use std::io::BufRead;
use std::path::Path;

use model::Row;

use crate::cells::Column;
use crate::error::ExchangeError;
use crate::names::Names;
use crate::percentiles::{Percentiles, percentiles_csv, percentiles_json, percentiles_ndjson};
use crate::vegeta_result::VegetaRecord;

pub use hgrm::read_hgrm;
pub use hlog::read_hlog;
pub(crate) use ndjson::short;

/// The content of a format, which decides the conversions that are possible.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holds {
    /// One entry a transaction.
    Rows,
    /// Counts of transactions by how long they took.
    Distribution,
    /// A report's figures.
    Report,
    /// Events of services' stages.
    Stages,
}

/// The facts of a format.
pub(crate) struct Declared {
    /// The word, as `--from` and `--to` take it.
    pub(crate) word: &'static str,
    /// The content of a file of it when it is read.
    pub(crate) holds: Holds,
    /// The contents that can be written as it.
    pub(crate) made_of: &'static [Holds],
    /// Endings of names of outputs that mean it.
    pub(crate) endings: &'static [&'static str],
    /// Whether these endings decide of inputs, too.
    pub(crate) is_known_by_name: bool,
    /// Whether a file is of it by its first line that is not blank.
    pub(crate) begins: fn(&str) -> bool,
    /// Reads and writes a text of it.
    pub(crate) text: TextForm,
    /// Writes distributions as it, all in one text.
    pub(crate) of_percentiles: Option<fn(&[Percentiles]) -> String>,
}

/// The functions that read and write a text.
pub(crate) enum TextForm {
    /// Not here.
    Elsewhere,
    /// Rows with named columns.
    Rows { read: ReadRows, begin: Begin, put: PutRow },
    /// Results of vegeta.
    Results { read: ReadResults, put: PutResult },
    /// Percentiles of one or more distributions.
    Percentiles { read: ReadPercentiles },
}

/// Takes rows.
pub(crate) type Push<'a> = &'a mut dyn FnMut(&Names, Row) -> Result<(), ExchangeError>;
/// Takes results of vegeta, each with the number of its line.
pub(crate) type Results<'a> = &'a mut dyn FnMut(u64, VegetaRecord<'_>) -> Result<(), ExchangeError>;
/// Columns with their names, as [`PutRow`] takes them.
pub(crate) type Columns = Vec<(String, Column)>;

type ReadRows = fn(&str, Box<dyn BufRead + '_>, &mut Names, Push<'_>) -> Result<(), ExchangeError>;
/// Appends what stands before the rows.
pub(crate) type Begin = fn(&mut Vec<u8>, &Names) -> Columns;
/// Appends a row.
pub(crate) type PutRow = fn(&mut Vec<u8>, &[(String, Column)], &Row, &Names);
type ReadResults = fn(&str, Box<dyn BufRead + '_>, Results<'_>) -> Result<(), ExchangeError>;
/// Appends a result.
pub(crate) type PutResult = fn(&mut Vec<u8>, &VegetaRecord<'_>);
type ReadPercentiles = fn(&str, Box<dyn BufRead + '_>) -> Result<Vec<Percentiles>, ExchangeError>;

/// The defaults.
const PLAIN: Declared = Declared {
    word: "",
    holds: Holds::Rows,
    made_of: &[],
    endings: &[],
    is_known_by_name: false,
    begins: |_| false,
    text: TextForm::Elsewhere,
    of_percentiles: None,
};

macro_rules! formats {
    ($($name:ident = $about:literal, $declared:expr;)*) => {
        /// A format of results.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Format { $(#[doc = $about] $name,)* }

        static FORMATS: &[(Format, &str, Declared)] = &[$((Format::$name, $about, $declared),)*];
    };
}

formats! {
    Run = "A run folder or the folder of a trial",
        Declared { word: "run", made_of: &[Holds::Stages], ..PLAIN };
    Parquet = "Our Parquet file of rows",
        Declared {
            word: "parquet",
            made_of: &[Holds::Rows],
            endings: &["parquet"],
            is_known_by_name: true,
            begins: |line| line.starts_with("PAR1"),
            ..PLAIN
        };
    Csv = "Rows, or percentiles, as comma-separated values with a header",
        csv::FORMAT;
    Ndjson = "Rows, or percentiles, as one JSON object a line",
        ndjson::FORMAT;
    Json = "Percentiles as one JSON document (write only)",
        Declared {
            word: "json",
            holds: Holds::Distribution,
            made_of: &[Holds::Distribution],
            of_percentiles: Some(percentiles_json),
            ..PLAIN
        };
    VegetaCsv = "Vegeta's results as `vegeta encode --to csv` writes them",
        vegeta_csv::FORMAT;
    VegetaNdjson = "Vegeta's results as `vegeta encode --to json` writes them",
        vegeta_ndjson::FORMAT;
    Vegeta = "Vegeta's text report",
        Declared {
            word: "vegeta",
            holds: Holds::Report,
            made_of: &[Holds::Rows, Holds::Report],
            endings: &["txt"],
            begins: |line| line.starts_with("Requests") && line.contains('['),
            ..PLAIN
        };
    VegetaJson = "Vegeta's JSON report",
        Declared {
            word: "vegeta-json",
            holds: Holds::Report,
            made_of: &[Holds::Rows, Holds::Report],
            begins: |line| is_object_with(line, &["latencies"]),
            ..PLAIN
        };
    Hlog = "An HdrHistogram V2 interval log",
        hlog::FORMAT;
    Hgrm = "HdrHistogram's percentile output",
        hgrm::FORMAT;
    EventSampler = "A folder of `event_sampler_NAME.bin`, or one such file: what stages of a published system stamped",
        Declared {
            word: "event-sampler",
            holds: Holds::Stages,
            made_of: &[Holds::Stages],
            ..PLAIN
        };
    Events = "A file of events that a service stamped with our sampler",
        Declared {
            word: "events",
            holds: Holds::Stages,
            begins: |line| line.starts_with("ASSAYEV1"),
            ..PLAIN
        };
}

/// Whether a line is of a JSON object with these keys.
fn is_object_with(line: &str, keys: &[&str]) -> bool {
    line.starts_with('{') && keys.iter().all(|key| line.contains(&format!("\"{key}\"")))
}

impl Format {
    /// All of them.
    pub fn all() -> impl Iterator<Item = Self> {
        FORMATS.iter().map(|(format, ..)| *format)
    }

    pub(crate) fn declared(self) -> &'static Declared {
        &FORMATS[self as usize].2
    }

    /// All words.
    pub fn words() -> impl Iterator<Item = &'static str> {
        Self::all().map(Self::word)
    }

    /// The format called `word`.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Self> {
        Self::all().find(|format| format.word() == word)
    }

    /// Its word.
    #[must_use]
    pub fn word(self) -> &'static str {
        self.declared().word
    }

    /// A description for help.
    #[must_use]
    pub fn about(self) -> &'static str {
        FORMATS[self as usize].1
    }

    /// The content of a file of it when it is read. CSV and NDJSON are read as rows.
    #[must_use]
    pub fn holds(self) -> Holds {
        self.declared().holds
    }

    /// Reads the distributions of a text; `None` where this format's are not read.
    ///
    /// # Errors
    /// When the text is not of this format.
    pub fn read_percentiles(
        self,
        name: &str,
        input: Box<dyn BufRead + '_>,
    ) -> Result<Option<Vec<Percentiles>>, ExchangeError> {
        match self.declared().text {
            TextForm::Percentiles { read } => read(name, input).map(Some),
            _ => Ok(None),
        }
    }

    /// Several distributions as one text; `None` where this format has no place for them.
    #[must_use]
    pub fn of_percentiles(self, all: &[Percentiles]) -> Option<String> {
        self.declared().of_percentiles.map(|form| form(all))
    }

    /// Whether what `self` holds can be written as `to`.
    ///
    /// # Errors
    /// Why not, and what can be had, in words.
    pub fn check_conversion(self, to: Self) -> Result<(), String> {
        let holds = self.holds();
        let is_possible = |to: &Self| {
            to.declared().made_of.contains(&holds) && !(*to == self && holds == Holds::Stages)
        };
        if is_possible(&to) {
            return Ok(());
        }
        let why = match holds {
            Holds::Rows => {
                "a run folder comes from `assay run` only, and `json` is one document of percentiles"
            }
            Holds::Distribution => {
                "it holds how many transactions took how long, not which transaction, when it was due or what it was answered, so rows cannot be made of it"
            }
            Holds::Stages => "it holds what stages passed, and no transactions",
            Holds::Report => {
                "it holds figures of all requests together, and neither rows nor a distribution can be made of them"
            }
        };
        let possible: Vec<&str> = Self::all().filter(is_possible).map(Self::word).collect();
        Err(format!(
            "{} cannot become {}: {why}; what can be had: {}",
            self.word(),
            to.word(),
            possible.join(", ")
        ))
    }

    /// The format that an output's name asks for.
    ///
    /// # Errors
    /// When the name does not say, in words.
    pub fn of_output(path: &Path, from: Self) -> Result<Self, String> {
        let ending = extension(path);
        let of_name = |ending: &str| Self::all().find(|it| it.declared().endings.contains(&ending));
        match ending.as_deref() {
            Some("json") if from.holds() == Holds::Report => Ok(Self::VegetaJson),
            Some("json") if from.holds() != Holds::Rows => Ok(Self::Json),
            Some("json") => Err("`.json` of rows can be one JSON object a line (--to ndjson), \
                 vegeta's results (--to vegeta-ndjson) or vegeta's report (--to vegeta-json); say which"
                .to_owned()),
            Some("bin") if from == Self::Events => Ok(Self::EventSampler),
            None if from == Self::Events && path != Path::new("-") => Ok(Self::Run),
            ending => ending.and_then(of_name).ok_or_else(|| {
                format!(
                    "the name of the output, {}, does not say which format it is to have; give --to with one of: {}",
                    path.display(),
                    Self::words().filter(|word| *word != "run").collect::<Vec<_>>().join(", ")
                )
            }),
        }
    }

    /// The format of an input, by its name and the first of its bytes.
    ///
    /// # Errors
    /// When neither says, in words.
    pub fn of_input(path: &Path, head: &[u8]) -> Result<Self, String> {
        let ending = extension(path).unwrap_or_default();
        if ["bin", "gob"].contains(&ending.as_str()) {
            return Err(format!(
                "{} looks like vegeta's binary results, whose form belongs to Go; \
                 convert them with: vegeta encode --to csv {}",
                path.display(),
                path.display()
            ));
        }
        let is_named = |it: &Declared| it.is_known_by_name && it.endings.contains(&ending.as_str());
        let line = first_line(head);
        let by_name = Self::all().find(|format| is_named(format.declared()));
        let by_line = || Self::all().find(|format| (format.declared().begins)(line.trim()));
        by_name.or_else(by_line).ok_or_else(|| {
            format!(
                "neither the name of {} nor its first line says which format it has; give --from with one of: {}",
                path.display(),
                Self::words().filter(|word| *word != "json").collect::<Vec<_>>().join(", ")
            )
        })
    }
}

fn extension(path: &Path) -> Option<String> {
    Some(path.extension()?.to_str()?.to_ascii_lowercase())
}

/// The first line that is not blank.
fn first_line(head: &[u8]) -> std::borrow::Cow<'_, str> {
    let head = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head);
    let mut lines = head.split(|byte| *byte == b'\n');
    String::from_utf8_lossy(lines.find(|line| !line.trim_ascii().is_empty()).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Claim: every word names its format and back.
    #[test]
    fn words_round_trip() {
        for word in Format::words() {
            assert_eq!(Format::from_word(word).map(Format::word), Some(word));
        }
        assert_ne!(Format::words().count(), 0);
    }

    /// Claim: an input's format comes from its name where that is plain, from its first line where it is not.
    #[test]
    fn inputs_are_told_apart() {
        for (name, head, format) in [
            ("x.parquet", "", Some(Format::Parquet)),
            ("x.csv", "tx,due_ns,end_ns,outcome\n", Some(Format::Csv)),
            ("x.csv", "1595,200,5,0,2,\"a, b\",,n,0,GET,http://h/,\n", Some(Format::VegetaCsv)),
            ("x.csv", "1595,200,5,0,2,,,n,0\n", Some(Format::VegetaCsv)),
            ("x.csv", "1,2,3,4,5,6,7,8\n", None),
            ("x.csv", "1,a,3,4,5,6,7,8,9\n", None),
            ("-", "{\"tx\":1,\"due_ns\":3}\n", Some(Format::Ndjson)),
            (
                "r.json",
                "{\"attack\":\"\",\"seq\":0,\"timestamp\":\"\",\"latency\":1}",
                Some(Format::VegetaNdjson),
            ),
            ("r.json", "{\"latencies\":{}}", Some(Format::VegetaJson)),
            ("r.txt", "Requests      [total, rate, throughput]  1, 2, 3", Some(Format::Vegeta)),
            ("x", "#[Histogram log format version 1.3]\n", Some(Format::Hlog)),
            ("x", "       Value     Percentile TotalCount 1/(1-Percentile)\n", Some(Format::Hgrm)),
            ("x.csv", "a,b\n1,2\n", None),
            ("x.bin", "", None),
            ("x", "", None),
        ] {
            assert_eq!(
                Format::of_input(Path::new(name), head.as_bytes()).ok(),
                format,
                "{name} {head}"
            );
        }
    }
}
