//! One trial that is followed to its end: its rows counted for the live view and, where a page is served, analysed as they come.

use std::collections::VecDeque;
use std::time::Duration;

use analysis::{Checks, RunInput, SettingInput, TrialAnalysis, TrialInput};
use clock::{Instant, WallTime};
use model::Stamp;
use model::facts::{DeclaredFacts, Environment, TrialFacts};
use model::fault::FaultEvent;
use model::picture::{RunPicture, TrialPicture};
use model::plan::{Plan, SettingPlan};
use model::quantity::show_duration;
use model::result::TrialResult;
use record::{RecordError, TrialFolder, TrialFollower};
use report::LiveView;
use serde_json::json;

use super::Watching;
use super::counted::{Counted, Figures};

/// Between two plain lines, unless something changes.
const LINE_EVERY: Duration = Duration::from_secs(10);
/// Between two messages to those who look at the page.
const TELL_EVERY: Duration = Duration::from_secs(1);
/// Between two pages, at least, and how many times as long as the last one took to make.
const PAGE_EVERY: Duration = Duration::from_secs(2);
const PAGE_REST: u32 = 20;
/// Faults that the view names.
const FAULTS_SHOWN: usize = 3;
/// Columns of the text for those who look at the page.
const PAGE_COLUMNS: usize = 110;
/// Events of faults that the page knows of; a trial has a few.
const FAULTS_MAX: usize = 10_000;

/// A trial that was followed, as the page shows it.
pub struct Followed {
    setting: usize,
    result: TrialResult,
    picture: TrialPicture,
}

/// The view of a trial over time.
struct Course<'a> {
    plan: &'a Plan,
    setting: &'a SettingPlan,
    position: usize,
    after: Duration,
    /// The present stamp as far as it is known: the newest one that was seen, and when.
    seen: Option<(Stamp, Instant)>,
    line_at: Option<Instant>,
    told_at: Option<Instant>,
    page_at: Option<Instant>,
    phase: String,
    faults: VecDeque<String>,
}

impl Watching<'_> {
    /// Follows a trial until it is complete, or its run ends.
    pub(super) fn trial(&mut self, plan: &Plan, folder: &TrialFolder) -> Result<(), String> {
        let words = |error: RecordError| error.to_string();
        let is_it = |it: &SettingPlan| it.key == folder.setting();
        let setting =
            plan.settings.iter().position(is_it).expect("trials of the plan were asked for");
        let mut course = Course::of(plan, setting, folder.trial());
        let mut follower = folder.follow();
        let Some(facts) = self.declared(&mut course, &mut follower)? else { return Ok(()) };
        let environment = self.run.environment().map_err(words)?;
        let applies = SettingInput::of(plan, course.setting);
        let input = TrialInput {
            path: folder.relative_path().to_owned(),
            setting: course.setting,
            thresholds: &applies.thresholds,
            percentiles: &applies.percentiles,
            facts: &facts,
            metrics: &[],
            environment: &environment,
            dropped_bytes: 0,
        };
        let mut analysis = self.web.map(|_| TrialAnalysis::new(input, Checks::default()));
        let mut counted = Counted::new(course.setting, &facts.declared);
        let mut faults = Vec::new();
        let mut is_complete = facts.complete;
        loop {
            // Before the rows, so that the last look comes after the last of them.
            let goes_on = self.goes_on()?;
            is_complete |= follower.facts().map_err(words)?.is_some_and(|facts| facts.complete);
            let has_more = follower
                .rows(&mut |rows| {
                    counted.rows(rows);
                    if let Some(analysis) = &mut analysis {
                        analysis.rows(rows);
                    }
                })
                .map_err(words)?;
            for event in follower.faults().map_err(words)? {
                self.fault(&mut course, &event);
                if faults.len() < FAULTS_MAX {
                    faults.push(event);
                }
            }
            if has_more {
                continue;
            }
            let is_over = is_complete || !goes_on;
            let at = self.clock.now();
            let since_write = || {
                let written = follower.last_write().map_or(i64::MAX, WallTime::unix_ns);
                self.clock.wall_at(at).unix_ns().saturating_sub(written).max(0)
            };
            let now = course.now(at, counted.newest(), since_write);
            let figures = counted.figures(now.unwrap_or(0));
            let view = course.view(now, &facts.declared, is_complete);
            let view = counted.show(now.unwrap_or(0), &figures, view);
            self.draw(&mut course, &view);
            if let Some(analysis) = &analysis {
                let so_far = || {
                    let (result, picture) = analysis.so_far(&faults);
                    Followed { setting, result, picture }
                };
                self.tell(&mut course, &view, &figures, &counted);
                if is_over {
                    self.before.push(so_far());
                } else {
                    self.page(&mut course, (&facts, &environment), so_far)?;
                }
            }
            if is_over {
                return Ok(());
            }
            self.wait();
        }
    }

    /// The facts that are known before the load; none: the run ended before there were any.
    fn declared(
        &mut self,
        course: &mut Course<'_>,
        follower: &mut TrialFollower,
    ) -> Result<Option<TrialFacts>, String> {
        loop {
            let goes_on = self.goes_on()?;
            if let Some(facts) = follower.facts().map_err(|error| error.to_string())? {
                return Ok(Some(facts));
            }
            let view = course.view_in("deploy");
            self.draw(course, &view);
            if !goes_on || !follower.is_there() {
                return Ok(None);
            }
            self.wait();
        }
    }

    /// Says that a fault began or ended.
    fn fault(&self, course: &mut Course<'_>, event: &FaultEvent) {
        let said = report::live_fault(event);
        if self.is_shown {
            self.display.say(&said);
        }
        course.faults.push_back(said);
        while course.faults.len() > FAULTS_SHOWN {
            course.faults.pop_front();
        }
    }

    fn draw(&mut self, course: &mut Course<'_>, view: &LiveView) {
        let now = self.clock.now();
        let is_due = is_due(&mut course.line_at, now, LINE_EVERY);
        let is_new = std::mem::replace(&mut course.phase, view.phase.clone()) != view.phase;
        if is_new {
            course.line_at = Some(now);
        }
        if self.is_shown {
            self.display.show(view, is_due || is_new);
        }
    }

    /// Tells those who look at the page.
    fn tell(&self, course: &mut Course<'_>, view: &LiveView, now: &Figures, counted: &Counted) {
        let Some(web) = self.web else { return };
        if !is_due(&mut course.told_at, self.clock.now(), TELL_EVERY) {
            return;
        }
        let style = report::Style { width: PAGE_COLUMNS, ..report::Style::default() };
        let figures = json!({
            "page": self.pages,
            "text": report::live_block(view, style),
            "phase": view.phase,
            "elapsed_ns": u64::try_from(view.elapsed.as_nanos()).unwrap_or(u64::MAX),
            "ended": counted.ended,
            "committed": counted.committed,
            "ended_per_s": now.ended_per_s,
            "committed_per_s": now.committed_per_s,
            "failed_per_s": now.failed_per_s,
            "not_ended": now.not_ended,
            "p50_ns": now.p50_ns,
            "p99_ns": now.p99_ns,
            "own_lag_p99_ns": now.own_lag_p99_ns,
        });
        web.tell(&model::secret::scrub(&figures.to_string()));
    }

    /// Makes the page anew, where it has readers and it is time.
    fn page(
        &mut self,
        course: &mut Course<'_>,
        (facts, environment): (&TrialFacts, &Environment),
        so_far: impl FnOnce() -> Followed,
    ) -> Result<(), String> {
        let Some(web) = self.web.filter(|web| web.is_looked_at() || self.pages == 0) else {
            return Ok(());
        };
        let began = self.clock.now();
        if course.page_at.is_some_and(|next| began < next) {
            return Ok(());
        }
        let now = so_far();
        let mut all: Vec<&Followed> = self.before.iter().chain([&now]).collect();
        all.sort_by_key(|it| (it.setting, it.result.trial));
        let words = |error: RecordError| error.to_string();
        let picture = RunPicture {
            experiment: self.run.experiment().map_err(words)?,
            plan: self.run.plan_text().map_err(words)?,
            axes: course.plan.axes.clone(),
            files: Vec::new(),
            trials: all.iter().map(|it| it.picture.clone()).collect(),
        };
        let input = RunInput {
            plan: course.plan,
            environment,
            interrupted: false,
            fidelity: facts.declared.fidelity.clone(),
        };
        let results = all.iter().map(|it| (it.setting, it.result.clone())).collect();
        let result = analysis::summarise_so_far(&input, results);
        let page = report::html(&[(result, picture)], &report::Assets::built());
        web.page(page.map_err(|error| error.to_string())?);
        self.pages += 1;
        let ended = self.clock.now();
        let took = ended.saturating_since(began);
        course.page_at = Some(ended.plus((took * PAGE_REST).max(PAGE_EVERY)));
        Ok(())
    }
}

impl<'a> Course<'a> {
    fn of(plan: &'a Plan, setting: usize, trial: u32) -> Self {
        let length = |of: &SettingPlan| of.load.warmup + of.load.duration;
        let place = plan.order.iter().position(|it| *it == (setting, trial));
        let later = plan.order.iter().skip(place.map_or(usize::MAX, |place| place + 1));
        Self {
            plan,
            setting: &plan.settings[setting],
            position: place.map_or(1, |place| place + 1),
            after: later.map(|(setting, _)| length(&plan.settings[*setting])).sum(),
            seen: None,
            line_at: None,
            told_at: None,
            page_at: None,
            phase: String::new(),
            faults: VecDeque::new(),
        }
    }

    /// The present stamp, by the newest row that was seen and the time since; of the first rows that are read, which may have
    /// been there for long, by the time since they were written. `None`: no row has come yet.
    fn now(
        &mut self,
        at: Instant,
        newest: Option<Stamp>,
        since_write: impl FnOnce() -> i64,
    ) -> Option<Stamp> {
        let newest = match self.seen {
            Some(_) => newest,
            None => newest.map(|stamp| stamp.saturating_add(since_write())),
        };
        let since = |(stamp, then): (Stamp, Instant)| stamp + at.ns_since(then);
        let known = self.seen.map(since);
        if let Some(newest) = newest
            && known.is_none_or(|known| newest > known)
        {
            self.seen = Some((newest, at));
        }
        known.max(newest)
    }

    fn view(&self, now: Option<Stamp>, declared: &DeclaredFacts, is_complete: bool) -> LiveView {
        let phase = match now {
            _ if is_complete => "done",
            None => "connect",
            Some(now) if now < declared.measure_start => "warm-up",
            Some(now) if now < declared.measure_end => "measure",
            Some(_) => "drain",
        };
        let drain = format!("drain (at most {})", show_duration(self.setting.load.drain_max));
        let view = self.view_in(if phase == "drain" { &drain } else { phase });
        let elapsed = Duration::from_nanos(now.and_then(|ns| u64::try_from(ns).ok()).unwrap_or(0));
        LiveView { elapsed, eta: Some(view.total.saturating_sub(elapsed) + self.after), ..view }
    }

    fn view_in(&self, phase: &str) -> LiveView {
        LiveView {
            name: self.plan.name.clone(),
            position: self.position,
            trials: self.plan.order.len().max(self.position),
            key: self.setting.key.clone(),
            phase: phase.to_owned(),
            total: self.setting.load.warmup + self.setting.load.duration,
            own_lag_is_ok: true,
            faults: self.faults.iter().cloned().collect(),
            ..LiveView::default()
        }
    }
}

/// Whether something is due at `now` that is done every so often, and if it is, that it is done.
fn is_due(last: &mut Option<Instant>, now: Instant, every: Duration) -> bool {
    let is_due = last.is_none_or(|last| now >= last.plus(every));
    if is_due {
        *last = Some(now);
    }
    is_due
}
