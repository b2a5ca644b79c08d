//! Where rows come from. They pass in batches, so memory does not follow their number.

use std::io::BufRead;
use std::path::Path;

use model::{Row, STAGES_MAX};
use record::{RunFolder, TransactionsFile, TrialFolder};

use crate::error::ExchangeError;
use crate::format::{Format, TextForm};
use crate::names::Names;

/// Rows that are passed at a time: some 400 kB.
const BATCH_ROWS: usize = 4096;
/// Trials that a refusal names.
const TRIALS_NAMED_MAX: usize = 20;

/// What was noticed on the way: sentences for people, each about something that the output does not say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Notes {
    /// Rows that were read.
    pub rows: u64,
    /// The sentences.
    pub lines: Vec<String>,
}

impl Notes {
    /// Says which rows were not measured, for formats that have no place for that.
    pub(crate) fn say_window(&mut self, names: &Names, outside: u64) {
        if let Some((start, end)) = names.window.filter(|_| outside > 0) {
            self.lines.push(format!(
                "{outside} of {} transactions were due outside the measured window, which the output does not say: \
                 it is due_ns from {start} until before {end}",
                self.rows
            ));
        }
    }
}

/// Rows to be read once.
pub struct RowsInput<'a>(Kind<'a>);

enum Kind<'a> {
    Trial(Box<TrialFolder>),
    Parquet(Box<TransactionsFile>, Option<Box<Names>>),
    Text(Format, String, Box<dyn BufRead + 'a>, Option<i64>),
}

/// What takes batches.
pub(crate) type Take<'a> = &'a mut dyn FnMut(&Names, &[Row]) -> Result<(), ExchangeError>;

impl<'a> RowsInput<'a> {
    /// The only trial of a run folder, or the trial whose folder `path` is.
    ///
    /// # Errors
    /// When there is no run, or it has several trials.
    pub fn run(path: &Path) -> Result<Self, ExchangeError> {
        let trial = trial(path)?;
        Ok(Self(Kind::Trial(Box::new(trial))))
    }

    /// A transactions.parquet. Where its trial.json lies beside it, that says what was measured.
    ///
    /// # Errors
    /// When it cannot be read or was not written by this program.
    pub fn parquet(path: &Path) -> Result<Self, ExchangeError> {
        let file = TransactionsFile::open(path)?;
        let beside = path.canonicalize().ok().and_then(|path| Some(trial(path.parent()?)));
        let facts = beside.and_then(Result::ok).and_then(|trial| trial.facts().ok());
        let names = facts.map(|facts| Box::new(Names::of_facts(&facts)));
        Ok(Self(Kind::Parquet(Box::new(file), names)))
    }

    /// A text in one of the formats of rows. `first_unix_ns` is the earliest time in it, as
    /// [`RowsInput::earliest_unix_ns`] found it; without it vegeta's results count from the second of the first.
    #[must_use]
    pub fn text(
        format: Format,
        name: &str,
        input: Box<dyn BufRead + 'a>,
        first_unix_ns: Option<i64>,
    ) -> Self {
        Self(Kind::Text(format, name.to_owned(), input, first_unix_ns))
    }

    /// The earliest sending in vegeta's results, which stand in the order of their ends; `None` for other
    /// formats, whose times count from the trial's start already.
    ///
    /// # Errors
    /// When a line is not a result.
    pub fn earliest_unix_ns(
        format: Format,
        name: &str,
        input: Box<dyn BufRead + '_>,
    ) -> Result<Option<i64>, ExchangeError> {
        let TextForm::Results { read, .. } = format.declared().text else { return Ok(None) };
        let mut earliest = None;
        read(name, input, &mut |_, result| {
            earliest =
                Some(earliest.map_or(result.sent_unix_ns, |ns: i64| ns.min(result.sent_unix_ns)));
            Ok(())
        })?;
        Ok(earliest)
    }

    /// Passes every row once.
    pub(crate) fn for_each(self, take: Take<'_>) -> Result<(Names, Notes), ExchangeError> {
        match self.0 {
            Kind::Trial(trial) => of_trial(&trial, take),
            Kind::Parquet(file, names) => of_parquet(&file, names, take),
            Kind::Text(format, name, input, first) => of_text(format, &name, input, first, take),
        }
    }
}

/// The trial that a path names.
fn trial(path: &Path) -> Result<TrialFolder, ExchangeError> {
    let named = |why: String| ExchangeError::Input { name: path.display().to_string(), why };
    let at = path
        .canonicalize()
        .map_err(|source| ExchangeError::Read { name: path.display().to_string(), source })?;
    // settings/<key>/trial-<n> lies three levels below its run.
    let run = [Some(at.as_path()), at.ancestors().nth(3)]
        .into_iter()
        .flatten()
        .find(|folder| folder.join("plan.toml").is_file())
        .ok_or_else(|| {
            named(
                "it is neither a run folder (with a plan.toml) nor the folder of a trial in one; name one of the folders in it"
                    .to_owned(),
            )
        })?;
    let mut trials = RunFolder::open(run)?.trials()?;
    if run != at {
        trials.retain(|trial| trial.path() == at);
        return trials
            .pop()
            .ok_or_else(|| named("its run's plan does not have this trial".to_owned()));
    }
    match (trials.len(), trials.pop()) {
        (1, Some(only)) => Ok(only),
        (0, _) => Err(named("the run has no trial".to_owned())),
        (count, last) => {
            let last = last.map(|trial| trial.relative_path().to_owned());
            let first: Vec<_> =
                trials.iter().map(TrialFolder::relative_path).map(str::to_owned).collect();
            let all: Vec<String> = first.into_iter().chain(last).take(TRIALS_NAMED_MAX).collect();
            Err(named(format!(
                "the run has {count} trials, and a file holds the rows of one; name it: {}",
                all.iter().map(|name| format!("\n  {}", run_path(path, name))).collect::<String>()
            )))
        }
    }
}

fn run_path(run: &Path, trial: &str) -> String {
    run.join(trial).display().to_string()
}

fn of_trial(trial: &TrialFolder, take: Take<'_>) -> Result<(Names, Notes), ExchangeError> {
    let mut names = Names::of_facts(&trial.facts()?);
    if names.stages.is_empty() {
        names.set_stages(numbered(STAGES_MAX));
    }
    let mut outcome = Ok(());
    let read = trial.for_each_batch(|rows| {
        if outcome.is_ok() {
            outcome = take(&names, rows);
        }
    });
    outcome?;
    let read = read?;
    let mut notes = Notes { rows: read.rows, lines: Vec::new() };
    if read.dropped_bytes > 0 {
        notes.lines.push(format!(
            "the record was cut off: its last {} bytes hold no whole rows and were left out",
            read.dropped_bytes
        ));
    }
    Ok((names, notes))
}

fn of_parquet(
    file: &TransactionsFile,
    beside: Option<Box<Names>>,
    take: Take<'_>,
) -> Result<(Names, Notes), ExchangeError> {
    let mut names = Names::empty();
    names.started_unix_ns = file.started_unix_ns();
    names.set_stages(file.stages().to_vec());
    if let Some(beside) = beside {
        (names.final_stages, names.window) = (beside.final_stages, beside.window);
    }
    names.kinds = crate::names::Table::of(file.kinds());
    names.errors = crate::names::Table::of(file.errors());
    let mut outcome = Ok(());
    let read = file.for_each_batch(|rows| {
        if outcome.is_ok() {
            outcome = take(&names, rows);
        }
    });
    outcome?;
    Ok((names, Notes { rows: read?, lines: Vec::new() }))
}

fn of_text(
    format: Format,
    name: &str,
    input: Box<dyn BufRead + '_>,
    first_unix_ns: Option<i64>,
    take: Take<'_>,
) -> Result<(Names, Notes), ExchangeError> {
    let mut names = Names::empty();
    let mut notes = Notes::default();
    let mut batch: Vec<Row> = Vec::with_capacity(BATCH_ROWS);
    let mut push = |names: &Names, row: Row| {
        batch.push(row);
        notes.rows += 1;
        if batch.len() < BATCH_ROWS {
            return Ok(());
        }
        let taken = take(names, &batch);
        batch.clear();
        taken
    };
    match format.declared().text {
        TextForm::Rows { read, .. } => read(name, input, &mut names, &mut push)?,
        TextForm::Results { read, .. } => {
            names.set_stages(vec!["committed".to_owned()]);
            let (mut is_first, mut cut_bytes) = (true, 0_u64);
            read(name, input, &mut |line, result| {
                if is_first {
                    let within = result.sent_unix_ns.rem_euclid(1_000_000_000);
                    let second = result.sent_unix_ns.saturating_sub(within);
                    names.started_unix_ns = first_unix_ns.unwrap_or(second);
                    is_first = false;
                }
                cut_bytes += u64::from(result.bytes_out.max(result.bytes_in) > u32::MAX.into());
                let row =
                    result.row(&mut names).map_err(|why| crate::lines::wrong(name, line, why))?;
                push(&names, row)
            })?;
            notes.lines.push(
                "vegeta records no due time: due was set to when a request was sent, so the waiting before it is not in these rows"
                    .to_owned(),
            );
            notes
                .lines
                .push("bodies, headers and the names of attacks are not kept in rows".to_owned());
            if cut_bytes > 0 {
                notes.lines.push(format!(
                    "{cut_bytes} bodies were larger than a row can say and are given as {} bytes",
                    u32::MAX
                ));
            }
        }
        TextForm::Percentiles { .. } | TextForm::Elsewhere => {
            return Err(ExchangeError::Refused(format!("{} is no text of rows", format.word())));
        }
    }
    notes.lines.extend(names.losses());
    if !batch.is_empty() {
        take(&names, &batch)?;
    }
    Ok((names, notes))
}

fn numbered(count: usize) -> Vec<String> {
    (0..count).map(|index| format!("stage{index}")).collect()
}
