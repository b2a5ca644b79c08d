//! The formats: their words, how a path or the first bytes of a file give them away, and what they hold.

use std::path::Path;

/// A format of results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// A run folder or the folder of a trial (read only).
    Run,
    /// Our Parquet file of rows.
    Parquet,
    /// Rows, or percentiles, as comma-separated values with a header.
    Csv,
    /// Rows, or percentiles, as one JSON object a line.
    Ndjson,
    /// Percentiles as one JSON document (write only).
    Json,
    /// vegeta's results as `vegeta encode --to csv` writes them.
    VegetaCsv,
    /// vegeta's results as `vegeta encode --to json` writes them.
    VegetaNdjson,
    /// vegeta's text report.
    Vegeta,
    /// vegeta's JSON report.
    VegetaJson,
    /// An HdrHistogram V2 interval log.
    Hlog,
    /// HdrHistogram's percentile output.
    Hgrm,
    /// A folder of `event_sampler_NAME.bin`, or one such file: what stages of a published system stamped.
    EventSampler,
    /// A file of events that a service stamped with our sampler.
    Events,
}

/// What a format holds: what decides which conversions there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holds {
    /// One entry a transaction.
    Rows,
    /// How many transactions took how long.
    Distribution,
    /// A report's figures.
    Report,
    /// What stages of services passed.
    Stages,
}

/// The words, as `--from` and `--to` take them.
const WORDS: [(&str, Format); 13] = [
    ("run", Format::Run),
    ("parquet", Format::Parquet),
    ("csv", Format::Csv),
    ("ndjson", Format::Ndjson),
    ("json", Format::Json),
    ("vegeta-csv", Format::VegetaCsv),
    ("vegeta-ndjson", Format::VegetaNdjson),
    ("vegeta", Format::Vegeta),
    ("vegeta-json", Format::VegetaJson),
    ("hlog", Format::Hlog),
    ("hgrm", Format::Hgrm),
    ("event-sampler", Format::EventSampler),
    ("events", Format::Events),
];

impl Format {
    /// All words.
    pub fn words() -> impl Iterator<Item = &'static str> {
        WORDS.iter().map(|(word, _)| *word)
    }

    /// The format called `word`.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Self> {
        WORDS.iter().find(|(known, _)| *known == word).map(|(_, format)| *format)
    }

    /// Its word.
    #[must_use]
    pub fn word(self) -> &'static str {
        WORDS.iter().find(|(_, format)| *format == self).map_or("", |(word, _)| *word)
    }

    /// What a file of it holds when it is read. CSV and NDJSON are read as rows.
    #[must_use]
    pub const fn holds(self) -> Holds {
        match self {
            Self::Run | Self::Parquet | Self::Csv | Self::Ndjson => Holds::Rows,
            Self::VegetaCsv | Self::VegetaNdjson => Holds::Rows,
            Self::Json | Self::Hlog | Self::Hgrm => Holds::Distribution,
            Self::Vegeta | Self::VegetaJson => Holds::Report,
            Self::EventSampler | Self::Events => Holds::Stages,
        }
    }

    /// Whether what `self` holds can be written as `to`.
    ///
    /// # Errors
    /// Why not, and what can be had, in words.
    pub fn check_conversion(self, to: Self) -> Result<(), String> {
        let can = |formats: &[Self]| {
            let words: Vec<&str> = formats.iter().map(|format| format.word()).collect();
            (formats.contains(&to), words.join(", "))
        };
        let (is_possible, possible, why) = match self.holds() {
            Holds::Rows => {
                let (is, words) = can(&[
                    Self::Parquet,
                    Self::Csv,
                    Self::Ndjson,
                    Self::VegetaCsv,
                    Self::VegetaNdjson,
                    Self::Vegeta,
                    Self::VegetaJson,
                    Self::Hlog,
                    Self::Hgrm,
                ]);
                (
                    is,
                    words,
                    "a run folder comes from `assay run` only, and `json` is one document of percentiles",
                )
            }
            Holds::Distribution => {
                let (is, words) = can(&[Self::Hgrm, Self::Csv, Self::Ndjson, Self::Json]);
                let why = "it holds how many transactions took how long, not which transaction, when it was due or what it was answered, so rows cannot be made of it";
                (is, words, why)
            }
            Holds::Stages => {
                let own: &[Self] = &[Self::Run, Self::EventSampler];
                let (is, words) = can(if self == Self::Events { own } else { &own[..1] });
                (is, words, "it holds what stages passed, and no transactions")
            }
            Holds::Report => {
                let (is, words) = can(&[Self::Vegeta, Self::VegetaJson]);
                (
                    is,
                    words,
                    "it holds figures of all requests together, and neither rows nor a distribution can be made of them",
                )
            }
        };
        if is_possible {
            return Ok(());
        }
        Err(format!(
            "{} cannot become {}: {why}; what can be had: {possible}",
            self.word(),
            to.word()
        ))
    }

    /// The format that an output's name asks for.
    ///
    /// # Errors
    /// When the name does not say, in words.
    pub fn of_output(path: &Path, from: Self) -> Result<Self, String> {
        let of_rows = from.holds() == Holds::Rows;
        match extension(path).as_deref() {
            Some("parquet") => Ok(Self::Parquet),
            Some("csv") => Ok(Self::Csv),
            Some("ndjson" | "jsonl") => Ok(Self::Ndjson),
            Some("json") if from.holds() == Holds::Report => Ok(Self::VegetaJson),
            Some("json") if !of_rows => Ok(Self::Json),
            Some("json") => Err("`.json` of rows can be one JSON object a line (--to ndjson), \
                 vegeta's results (--to vegeta-ndjson) or vegeta's report (--to vegeta-json); say which"
                .to_owned()),
            Some("bin") if from == Self::Events => Ok(Self::EventSampler),
            None if from == Self::Events && path != Path::new("-") => Ok(Self::Run),
            Some("txt") => Ok(Self::Vegeta),
            Some("hlog") => Ok(Self::Hlog),
            Some("hgrm") => Ok(Self::Hgrm),
            _ => Err(format!(
                "the name of the output, {}, does not say which format it is to have; give --to with one of: {}",
                path.display(),
                Self::words().filter(|word| *word != "run").collect::<Vec<_>>().join(", ")
            )),
        }
    }

    /// The format of an input, by its name and the first of its bytes.
    ///
    /// # Errors
    /// When neither says, in words.
    pub fn of_input(path: &Path, head: &[u8]) -> Result<Self, String> {
        let unknown = || {
            format!(
                "neither the name of {} nor its first line says which format it has; give --from with one of: {}",
                path.display(),
                Self::words().filter(|word| *word != "json").collect::<Vec<_>>().join(", ")
            )
        };
        match extension(path).as_deref() {
            Some("parquet") => return Ok(Self::Parquet),
            Some("hlog") => return Ok(Self::Hlog),
            Some("hgrm") => return Ok(Self::Hgrm),
            Some("bin" | "gob") => {
                return Err(format!(
                    "{} looks like vegeta's binary results, whose form belongs to Go; \
                     convert them with: vegeta encode --to csv {}",
                    path.display(),
                    path.display()
                ));
            }
            _ => {}
        }
        of_bytes(head).ok_or_else(unknown)
    }
}

fn extension(path: &Path) -> Option<String> {
    Some(path.extension()?.to_str()?.to_ascii_lowercase())
}

/// What the first line of a text gives away.
fn of_bytes(head: &[u8]) -> Option<Format> {
    if head.starts_with(b"ASSAYEV1") {
        return Some(Format::Events);
    }
    let head = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head);
    if head.starts_with(b"PAR1") {
        return Some(Format::Parquet);
    }
    let line = head.split(|byte| *byte == b'\n').find(|line| !line.trim_ascii().is_empty())?;
    let line = String::from_utf8_lossy(line);
    let line = line.trim();
    if line.starts_with('{') {
        let has = |key: &str| line.contains(&format!("\"{key}\""));
        return match () {
            () if has("due_ns") => Some(Format::Ndjson),
            () if has("latencies") => Some(Format::VegetaJson),
            () if has("timestamp") && has("latency") => Some(Format::VegetaNdjson),
            () => None,
        };
    }
    if line.starts_with('#') || line.starts_with("\"StartTimestamp\"") {
        let is_log = line.contains("istogram log") || line.starts_with('"');
        return Some(if is_log { Format::Hlog } else { Format::Hgrm });
    }
    if line.starts_with("Requests") && line.contains('[') {
        return Some(Format::Vegeta);
    }
    if line.starts_with("Value") && line.contains("Percentile") {
        return Some(Format::Hgrm);
    }
    if line.split(',').any(|name| name.trim_matches('"') == "due_ns") {
        return Some(Format::Csv);
    }
    is_vegeta_csv(line).then_some(Format::VegetaCsv)
}

/// Time, status, latency, bytes out and in: numbers; then an error text, which may hold commas, and at least three
/// fields (six since version 12.8).
fn is_vegeta_csv(line: &str) -> bool {
    let mut fields = line.split(',');
    let numbers = fields.by_ref().take(5).filter(|text| text.parse::<i64>().is_ok()).count();
    numbers == 5 && fields.count() >= 4
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
        assert_eq!(Format::words().count(), 13);
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
