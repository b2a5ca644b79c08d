//! `assay convert`: results from one format into another. It computes nothing: crate `exchange` reads and
//! writes, `analysis` counts what vegeta would, crate `report` prints it.

mod events;
mod input;
mod output;

use analysis::Vegeta;
use exchange::{ExchangeError, Format, Holds, Notes, Percentiles};
use model::Row;
use model::result::{Exit, VegetaResult};

use crate::cli::ConvertArguments;
use crate::terminal::say;
use input::Input;
use output::Output;

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
                say!("assay convert: {line}");
            }
            Exit::Ok
        }
        Err(Failure::Closed) => Exit::Ok,
        Err(Failure::Usage(why)) => {
            say!("assay convert: {why}");
            Exit::Usage
        }
        Err(Failure::CouldNot(why)) => {
            say!("assay convert: {why}");
            Exit::CouldNotRun
        }
    }
}

fn converted(arguments: &ConvertArguments) -> Result<Notes, Failure> {
    let (from, to) = (arguments.from, arguments.to);
    if from == Some(Format::EventSampler) {
        if to.is_some_and(|to| to != Format::Run) {
            let why = from.expect("it is").check_conversion(to.expect("it is"));
            why.map_err(Failure::Usage)?;
        }
        let lines = events::import(&arguments.input, &arguments.output)?;
        return Ok(Notes { lines, ..Notes::default() });
    }
    let (input, from) = Input::open(&arguments.input, from)?;
    let to = match to {
        Some(to) => to,
        None => Format::of_output(&arguments.output, from).map_err(Failure::Usage)?,
    };
    from.check_conversion(to).map_err(Failure::Usage)?;
    if arguments.tag.is_some() && from.holds() != Holds::Distribution {
        let why = "only an interval log has tags; leave --tag out";
        return Err(Failure::Usage(format!("{} holds none: {why}", from.word())));
    }
    if from == Format::Events {
        let make = if to == Format::Run { events::import_own } else { events::export };
        let lines = make(&arguments.input, &arguments.output)?;
        return Ok(Notes { lines, ..Notes::default() });
    }
    let mut out = Output::create(&arguments.output)?;
    let notes = match from.holds() {
        Holds::Rows => rows(input, from, to, &mut out)?,
        Holds::Distribution => {
            let all = input.distributions(from)?;
            let text = distribution_text(all, to, arguments.tag.as_deref())?;
            out.text(&text)?;
            Notes::default()
        }
        Holds::Stages => unreachable!("these went their own way"),
        Holds::Report => {
            let text = report_text(&input.report(from)?, to);
            out.text(&text)?;
            Notes::default()
        }
    };
    out.finish()?;
    Ok(notes)
}

fn rows(input: Input, from: Format, to: Format, out: &mut Output) -> Result<Notes, Failure> {
    let staging = out.folder();
    let input = input.rows(from)?;
    Ok(match to {
        Format::Parquet | Format::Hlog => exchange::stage_rows(input, to, &staging, &mut out.file)?,
        Format::Hgrm | Format::Vegeta | Format::VegetaJson => {
            let mut streams = [Vegeta::default(), Vegeta::default()];
            let mut each = |row: &Row| streams[usize::from(row.stream.min(1))].row(row);
            let (summary, notes) = exchange::summarise(input, &mut each)?;
            out.text(&match to {
                Format::Hgrm => exchange::hgrm_text(&summary.percentiles),
                other => {
                    let stream = &streams[usize::from(summary.stream)];
                    report_text(&stream.result(&summary.errors), other)
                }
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
    if let Some(text) = to.of_percentiles(&all) {
        return Ok(text);
    }
    let one = match all.len() {
        1 => Some(&all[0]),
        _ => all.iter().find(|one| one.tag == "committed"),
    };
    let one = one.ok_or_else(|| {
        Failure::Usage(format!("a .hgrm holds one distribution and the log has several; give --tag with one of: {shown}"))
    })?;
    Ok(exchange::hgrm_text(one))
}
