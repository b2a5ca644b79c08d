//! The columns of a row as CSV and NDJSON have them, and the way from a cell to a row and back.
//!
//! `tx, due_ns, ready_ns, sent_ns, <stage>_ns …, end_ns, outcome, class, code, error, kind, connection, worker,
//! stream, client, attempts, bytes_out, bytes_in, receive_lag_ns, started_unix_ns`. Times are nanoseconds after the trial's
//! start, which is `started_unix_ns` in wall time; `receive_lag_ns` is a length. A time that is absent is an empty cell or
//! null.

use std::io::Write as _;

use model::options::did_you_mean;
use model::{Class, NO_STAMP, Outcome, Row, STAGES_MAX};

use crate::names::Names;

/// A column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Column {
    Tx,
    Due,
    Ready,
    Sent,
    Stage(usize),
    End,
    Outcome,
    Class,
    Code,
    Error,
    Kind,
    Connection,
    Worker,
    Stream,
    Client,
    Attempts,
    BytesOut,
    BytesIn,
    ReceiveLag,
    Started,
}

/// Columns that are no stage.
const FIXED: [(&str, Column); 19] = [
    ("tx", Column::Tx),
    ("due_ns", Column::Due),
    ("ready_ns", Column::Ready),
    ("sent_ns", Column::Sent),
    ("end_ns", Column::End),
    ("outcome", Column::Outcome),
    ("class", Column::Class),
    ("code", Column::Code),
    ("error", Column::Error),
    ("kind", Column::Kind),
    ("connection", Column::Connection),
    ("worker", Column::Worker),
    ("stream", Column::Stream),
    ("client", Column::Client),
    ("attempts", Column::Attempts),
    ("bytes_out", Column::BytesOut),
    ("bytes_in", Column::BytesIn),
    ("receive_lag_ns", Column::ReceiveLag),
    ("started_unix_ns", Column::Started),
];
/// Where the stages stand among them.
const BEFORE_STAGES: usize = 4;
/// Without these a row says nothing.
const NEEDED: [Column; 3] = [Column::Due, Column::End, Column::Outcome];

/// All columns of rows with these stages, in order, with their names.
pub(crate) fn columns(stages: &[String]) -> Vec<(String, Column)> {
    let fixed = |(name, column): &(&str, Column)| ((*name).to_owned(), *column);
    let mut all: Vec<_> = FIXED[..BEFORE_STAGES].iter().map(fixed).collect();
    for (index, stage) in stages.iter().take(STAGES_MAX).enumerate() {
        let name = format!("{stage}_ns");
        let is_taken = |(known, _): &(String, Column)| *known == name;
        let clashes = all.iter().any(is_taken) || FIXED.iter().any(|(known, _)| *known == name);
        let name = if clashes { format!("stage{index}_{name}") } else { name };
        all.push((name, Column::Stage(index)));
    }
    all.extend(FIXED[BEFORE_STAGES..].iter().map(fixed));
    all
}

/// The columns that a file names; its stages go to `names`.
pub(crate) fn layout<'a>(
    written: impl Iterator<Item = &'a str>,
    names: &mut Names,
) -> Result<Vec<(String, Column)>, String> {
    let mut found: Vec<(String, Column)> = Vec::new();
    let mut stages = Vec::new();
    for name in written {
        if found.iter().any(|(before, _)| before == name) {
            return Err(format!("the column `{name}` stands there twice"));
        }
        let fixed = FIXED.iter().find(|(known, _)| *known == name).map(|(_, column)| *column);
        let column = match (fixed, name.strip_suffix("_ns")) {
            (Some(column), _) => column,
            (None, Some(stage)) if !stage.is_empty() && stages.len() < STAGES_MAX => {
                stages.push(stage.to_owned());
                Column::Stage(stages.len() - 1)
            }
            (None, Some(_)) => {
                return Err(format!(
                    "`{name}` is one stage too many; a row has room for {STAGES_MAX}"
                ));
            }
            (None, None) => {
                let help = did_you_mean(name, FIXED.iter().map(|(known, _)| *known));
                let help = help.unwrap_or_else(|| "leave it out".to_owned());
                return Err(format!("`{}` is no column of a row; {help}", name.escape_debug()));
            }
        };
        found.push((name.to_owned(), column));
    }
    for needed in NEEDED {
        if !found.iter().any(|(_, column)| *column == needed) {
            let name =
                FIXED.iter().find(|(_, column)| *column == needed).map_or("", |(name, _)| *name);
            return Err(format!(
                "the column `{name}` is missing; rows need due_ns, end_ns and outcome, and a column `<stage>_ns` for each stage"
            ));
        }
    }
    names.set_stages(stages);
    Ok(found)
}

/// What stands in a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cell<'a> {
    Absent,
    Number(i128),
    Text(&'a str),
}

/// A row while its cells come in.
pub(crate) struct Reading {
    row: Row,
    outcome: Option<Outcome>,
    class: Option<Class>,
    started_unix_ns: Option<i64>,
    attempts: Option<u8>,
}

impl Reading {
    /// A row that says nothing yet; `index` is its number unless it has one.
    pub(crate) fn start(index: u64) -> Self {
        let row = Row { tx: index, ..Row::EMPTY };
        Self { row, outcome: None, class: None, started_unix_ns: None, attempts: None }
    }

    /// Takes a cell.
    pub(crate) fn set(
        &mut self,
        column: Column,
        cell: Cell<'_>,
        names: &mut Names,
    ) -> Result<(), String> {
        let row = &mut self.row;
        match column {
            Column::Tx => row.tx = number(cell)?.unwrap_or(row.tx),
            Column::Due => row.due = number(cell)?.unwrap_or(NO_STAMP),
            Column::Ready => row.ready = number(cell)?.unwrap_or(NO_STAMP),
            Column::Sent => row.sent = number(cell)?.unwrap_or(NO_STAMP),
            Column::Stage(index) => row.marks[index] = number(cell)?.unwrap_or(NO_STAMP),
            Column::End => row.end = number(cell)?.unwrap_or(NO_STAMP),
            Column::Outcome => self.outcome = Some(outcome(cell)?),
            Column::Class => self.class = class(cell)?,
            Column::Code => row.code = number(cell)?.unwrap_or(0),
            Column::Error => {
                row.error = match text(cell)? {
                    "" => 0,
                    text => {
                        u16::try_from(names.errors.number(text)).expect("bounded by ERRORS_MAX")
                    }
                };
            }
            Column::Kind => row.kind = names.kinds.number(text(cell)?),
            Column::Connection => row.connection = number(cell)?.unwrap_or(0),
            Column::Worker => row.worker = number(cell)?.unwrap_or(0),
            Column::Stream => row.stream = number(cell)?.unwrap_or(0),
            Column::Client => row.client = number(cell)?.unwrap_or(0),
            Column::Attempts => self.attempts = number(cell)?,
            Column::BytesOut => row.bytes_out = number(cell)?.unwrap_or(0),
            Column::BytesIn => row.bytes_in = number(cell)?.unwrap_or(0),
            Column::ReceiveLag => row.receive_lag = number(cell)?.unwrap_or(NO_STAMP),
            Column::Started => self.started_unix_ns = number(cell)?,
        }
        Ok(())
    }

    /// The row. The first one says when the trial started; one that says otherwise is of another trial.
    pub(crate) fn finish(mut self, is_first: bool, names: &mut Names) -> Result<Row, String> {
        if let Some(started) = self.started_unix_ns {
            if is_first {
                names.started_unix_ns = started;
            } else if started != names.started_unix_ns {
                return Err(
                    "started_unix_ns is not that of the first row; rows of two trials do not \
                     share a line of time, so convert them one by one"
                        .to_owned(),
                );
            }
        }
        // Files of other tools do not say it; what was sent was sent once.
        self.row.attempts = self.attempts.unwrap_or_else(|| u8::from(self.row.sent != NO_STAMP));
        self.row.outcome = match (self.outcome, self.class) {
            (Some(Outcome::Rejected(_)), Some(class)) => Outcome::Rejected(class),
            (Some(outcome), None) => outcome,
            (Some(_), Some(_)) => return Err("only what was rejected has a class".to_owned()),
            (None, _) => return Err("the outcome is missing".to_owned()),
        };
        Ok(self.row)
    }
}

fn number<T: TryFrom<i128>>(cell: Cell<'_>) -> Result<Option<T>, String> {
    let number = match cell {
        Cell::Absent | Cell::Text("") => return Ok(None),
        Cell::Number(number) => number,
        Cell::Text(text) => {
            text.parse().map_err(|_| format!("`{}` is not a whole number", shown(text)))?
        }
    };
    T::try_from(number).map(Some).map_err(|_| format!("{number} is out of range"))
}

fn text(cell: Cell<'_>) -> Result<&str, String> {
    match cell {
        Cell::Absent => Ok(""),
        Cell::Text(text) => Ok(text),
        Cell::Number(number) => Err(format!("{number} should be a text")),
    }
}

fn outcome(cell: Cell<'_>) -> Result<Outcome, String> {
    match text(cell)? {
        "committed" => Ok(Outcome::Committed),
        // Its class follows in its own column; a rejection without one stays the server's, as in Parquet.
        "rejected" => Ok(Outcome::Rejected(Class::Server)),
        "unknown" => Ok(Outcome::Unknown),
        "shed" => Ok(Outcome::Shed),
        other => Err(format!(
            "`{}` is no outcome; outcomes are committed, rejected, unknown and shed",
            shown(other)
        )),
    }
}

fn class(cell: Cell<'_>) -> Result<Option<Class>, String> {
    match text(cell)? {
        "" => Ok(None),
        word => Class::from_word(word).map(Some).ok_or_else(|| {
            let known = Class::ALL.map(Class::word).join(", ");
            format!("`{}` is no class; classes are {known}", shown(word))
        }),
    }
}

/// At most forty characters of what a file holds, none of which a terminal would obey.
pub(crate) fn shown(text: &str) -> String {
    text.chars().take(40).flat_map(char::escape_debug).collect()
}

/// What a row has in a column.
pub(crate) fn cell<'a>(row: &Row, column: Column, names: &'a Names) -> Cell<'a> {
    let stamp =
        |stamp: i64| if stamp == NO_STAMP { Cell::Absent } else { Cell::Number(stamp.into()) };
    match column {
        Column::Tx => Cell::Number(row.tx.into()),
        Column::Due => stamp(row.due),
        Column::Ready => stamp(row.ready),
        Column::Sent => stamp(row.sent),
        Column::Stage(index) => stamp(row.marks[index]),
        Column::End => stamp(row.end),
        Column::Outcome => Cell::Text(match row.outcome {
            Outcome::Committed => "committed",
            Outcome::Rejected(_) => "rejected",
            Outcome::Unknown => "unknown",
            Outcome::Shed => "shed",
        }),
        Column::Class => match row.outcome {
            Outcome::Rejected(class) => Cell::Text(class.word()),
            _ => Cell::Absent,
        },
        Column::Code => Cell::Number(row.code.into()),
        Column::Error if row.error == 0 => Cell::Absent,
        Column::Error => Cell::Text(names.error(row.error)),
        Column::Kind => Cell::Text(names.kind(row.kind)),
        Column::Connection => Cell::Number(row.connection.into()),
        Column::Worker => Cell::Number(row.worker.into()),
        Column::Stream => Cell::Number(row.stream.into()),
        Column::Client => Cell::Number(row.client.into()),
        Column::Attempts => Cell::Number(row.attempts.into()),
        Column::BytesOut => Cell::Number(row.bytes_out.into()),
        Column::BytesIn => Cell::Number(row.bytes_in.into()),
        Column::ReceiveLag => stamp(row.receive_lag),
        Column::Started => Cell::Number(names.started_unix_ns.into()),
    }
}

/// Appends a number. Those of a row fit 64 bits, which are written several times faster than 128.
pub(crate) fn put_number(out: &mut Vec<u8>, number: i128) {
    let written = match i64::try_from(number) {
        Ok(number) => write!(out, "{number}"),
        Err(_) => write!(out, "{number}"),
    };
    written.expect("memory takes everything");
}
