//! `assay watch`: a run that goes on, followed from its folder by another process than the load's. It only reads, at most four
//! times a second, with the least claim to the processors, and ends with the run.

mod counted;
mod trial;
mod web;

use std::collections::BTreeMap;
use std::time::Duration;

use clock::Clock;
use model::plan::Plan;
use model::result::{Exit, RunResult};
use record::{RecordError, RunFolder, TrialFolder, TrialFollower};

use crate::cli::{ColorChoice, WatchArguments};
use crate::live_display::Display;
use crate::terminal::say;
use crate::{conclude, terminal};
use trial::Followed;
use web::Web;

/// Between two looks.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// The least claim to a processor that there is.
const LEAST: i32 = 19;

/// Watches a run until it ends.
pub fn watch(arguments: &WatchArguments, colour: ColorChoice) -> Exit {
    match conclude::guarded(|| carry_out(arguments, colour)) {
        Ok(exit) => exit,
        Err(message) => {
            say!("assay watch: {message}");
            Exit::CouldNotRun
        }
    }
}

fn carry_out(arguments: &WatchArguments, colour: ColorChoice) -> Result<Exit, String> {
    let run = opened(arguments)?;
    // Threads take it from the one that starts them. A host that does not allow it is no reason to look away.
    let _ = rustix::process::setpriority_process(None, LEAST);
    let web = arguments.web.map(Web::serve).transpose()?;
    if let Some(web) = &web {
        say!("assay: the page of {}: {}", run.path().display(), web.url());
    }
    let mut watching = Watching {
        run: &run,
        clock: Clock::start(),
        display: Display::new(arguments.progress, colour),
        is_shown: arguments.progress != crate::cli::ProgressChoice::None,
        web: web.as_ref(),
        pages: 0,
        trials: BTreeMap::new(),
        before: Vec::new(),
    };
    watching.until_it_ends()?;
    let Watching { clock, mut display, .. } = watching;
    display.erase();
    let ended = ended(&run, colour);
    if let Some(web) = web {
        // Whoever looks gets the report as it is now, and has it when this process is gone.
        match final_page(&run) {
            Ok(page) => web.end(page, clock),
            Err(message) => say!("assay watch: {message}"),
        }
    }
    ended
}

/// The run that is meant.
fn opened(arguments: &WatchArguments) -> Result<RunFolder, String> {
    let path = match &arguments.run {
        Some(path) => path.clone(),
        None => conclude::newest(&arguments.runs)?,
    };
    let run = RunFolder::open(&path).map_err(|error| error.to_string())?;
    match run.plan() {
        Ok(_) => Ok(run),
        Err(RecordError::Missing { .. }) => Err(format!(
            "expected a run folder, got {}, which holds no plan.toml; `assay list` shows those that there are",
            path.display()
        )),
        Err(error) => Err(error.to_string()),
    }
}

/// Says how the run ended: the verdict's line and where the report is, or that there is none.
fn ended(run: &RunFolder, colour: ColorChoice) -> Result<Exit, String> {
    let path = run.path().display();
    if !run.path().is_dir() {
        say!("assay: the run ended before anything was recorded");
        return Ok(Exit::CouldNotRun);
    }
    let result: RunResult = match run.result() {
        Ok(result) => result,
        Err(RecordError::Missing { .. }) => {
            say!(
                "assay: the run ended without a result; as far as it was recorded: assay report {path}; to go on with it: \
                 assay run --resume {path}"
            );
            return Ok(Exit::CouldNotRun);
        }
        Err(error) => return Err(error.to_string()),
    };
    let style = terminal::stdout_style(colour, false);
    terminal::print(&report::verdict_line(&result, style))?;
    terminal::print(&format!("run folder   {path}\n"))?;
    if run.path().join(conclude::PAGE).is_file() {
        terminal::print(&format!("report       {path}/{}\n", conclude::PAGE))?;
    }
    Ok(Exit::Ok)
}

/// The page of a run that has ended, as it was written or, where it was not, from what there is.
fn final_page(run: &RunFolder) -> Result<String, String> {
    if let Ok(page) = run.text(conclude::PAGE) {
        return Ok(page);
    }
    let both = conclude::analyse_with_picture(run)?;
    report::html(&[both], &report::Assets::built()).map_err(|error| error.to_string())
}

/// A run that is watched.
struct Watching<'a> {
    run: &'a RunFolder,
    clock: Clock,
    display: Display,
    is_shown: bool,
    web: Option<&'a Web>,
    /// How many pages there were.
    pages: u64,
    /// Trials that were seen, by path: whether they have ended.
    trials: BTreeMap<String, Seen>,
    /// Trials that ended while they were watched, as they were last.
    before: Vec<Followed>,
}

/// A trial, as far as it matters which one goes on.
struct Seen {
    follower: TrialFollower,
    is_complete: bool,
}

impl Watching<'_> {
    fn until_it_ends(&mut self) -> Result<(), String> {
        loop {
            let goes_on = self.goes_on()?;
            if let Some((plan, folder)) = self.next_trial()? {
                self.trial(&plan, &folder)?;
            } else if !goes_on {
                return Ok(());
            } else {
                self.wait();
            }
            if !goes_on {
                return Ok(());
            }
        }
    }

    fn wait(&self) {
        self.clock.sleep_until(self.clock.now().plus(LOOK_EVERY));
    }

    /// Whether a process carries out the run. Where that cannot be told, it does as long as there is no result.
    fn goes_on(&self) -> Result<bool, String> {
        match self.run.is_held() {
            Ok(Some(is_held)) => Ok(is_held),
            Ok(None) => Ok(matches!(self.run.result(), Err(RecordError::Missing { .. }))),
            // A run of which nothing was recorded leaves no folder.
            Err(RecordError::Missing { .. }) => Ok(false),
            Err(error) => Err(error.to_string()),
        }
    }

    /// The trial that goes on, with the plan as it is now: a search adds to it.
    fn next_trial(&mut self) -> Result<Option<(Plan, TrialFolder)>, String> {
        let words = |error: RecordError| error.to_string();
        let plan = match self.run.plan() {
            Err(RecordError::Missing { .. }) => return Ok(None),
            plan => plan.map_err(words)?,
        };
        let mut newest = None;
        for folder in self.run.trials_of(&plan) {
            let seen = self
                .trials
                .entry(folder.relative_path().to_owned())
                .or_insert_with(|| Seen { follower: folder.follow(), is_complete: false });
            match seen.follower.facts().map_err(words)? {
                Some(facts) => seen.is_complete = facts.complete,
                None => seen.is_complete &= seen.follower.has_facts(),
            }
            let changed = std::fs::metadata(folder.path()).and_then(|it| it.modified()).ok();
            if !seen.is_complete && newest.as_ref().is_none_or(|(before, _)| *before <= changed) {
                newest = Some((changed, folder));
            }
        }
        Ok(newest.map(|(_, folder)| (plan, folder)))
    }
}
