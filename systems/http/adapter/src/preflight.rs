//! One pass over the targets before the load: each is asked for, and those that cannot succeed are named with the
//! answer. What may pass (a lost connection, a failure of the server's) is tried a few times. Bounded in count and in time;
//! says what it left out.

mod flows;

use std::cell::OnceCell;
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use clock::Clock;
use model::facts::PreflightFinding;
use model::{Class, Outcome, TxId};
use sut::SutError;
use sut::ask::Questioner;
use sut::content::digits;
use wire::http1::Asked;

use crate::expect::Answered;
use crate::requests::{ID_PLACE, Prepared};
use crate::server::HttpSystem;
use crate::session::Echo;
use crate::tls::{Trust, tls};

/// The most targets that are tried; of more, as many evenly spread over the file.
pub(crate) const TRIED_MAX: usize = 500;

/// The longest that the whole pass may take.
const PASS_TIME_MAX: Duration = Duration::from_secs(30);

/// The longest wait for one answer, where the load does not wait for less.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(10);

/// Connections lost one after another before the pass is given up: one target may break its connection,
/// all of them mean that the server is gone.
const LOST_MAX: u32 = 10;

/// Times that a target is asked for whose failure may pass, and the pause before the second; it doubles.
const TRIES_MAX: u32 = 3;
const PAUSE: Duration = Duration::from_millis(100);

/// How long bytes behind the last answer are waited for.
const STRAY_WAIT: Duration = Duration::from_millis(20);

/// What servers answer that are asked in plain HTTP on a port for TLS.
const PLAIN_TO_TLS: u16 = 400;

/// The id of its requests, where requests carry one: no transaction of the load has it.
const ITS_ID: TxId = TxId::MAX;

/// Statuses that lead elsewhere, and what a reader should know of them.
pub(crate) const REDIRECTS: [u16; 5] = [301, 302, 303, 307, 308];
pub(crate) const NOT_FOLLOWED: &str = "a redirect is not followed, and counts as committed";

/// What the pass needs.
pub(crate) struct Pass<'a> {
    pub(crate) system: &'a HttpSystem,
    pub(crate) address: SocketAddr,
    pub(crate) clock: Clock,
    pub(crate) stop: &'a Arc<AtomicBool>,
    /// Whether a handshake was accepted where plain HTTP is refused; tried once.
    pub(crate) speaks_tls: OnceCell<bool>,
}

/// What one try came to.
struct Tried {
    ok: bool,
    detail: String,
    remark: String,
    /// Whether the next try may come to something else.
    may_pass: bool,
    /// Whether the connection was lost without an answer.
    is_lost: bool,
}

impl Pass<'_> {
    /// Asks for every distinct target, on one connection while the server keeps it.
    ///
    /// # Errors
    /// When the server cannot be reached at all.
    pub(crate) fn run(&self) -> Result<Vec<PreflightFinding>, SutError> {
        let deadline = self.clock.now().plus(PASS_TIME_MAX);
        let all = &self.system.requests.prepared;
        let tried_max = all.len().min(TRIED_MAX);
        let mut findings: Vec<PreflightFinding> = Vec::with_capacity(tried_max + 1);
        let questioner = self.system.questioner(self.address, self.clock);
        let mut questioner = questioner.stopped_by(self.stop);
        let mut lost = 0;
        for tried in 0..tried_max {
            let left = deadline.saturating_since(self.clock.now());
            if left.is_zero() || lost >= LOST_MAX || self.stop.load(Ordering::Relaxed) {
                break;
            }
            let prepared = &all[tried * all.len() / tried_max];
            let wait = left.min(ANSWER_TIME_MAX).min(self.system.patience);
            // What is there before the question came behind the answer to the last one. That it cannot be had is told below.
            let _ = questioner.connect(wait);
            mark_stray(findings.last_mut(), questioner.stray_bytes());
            let (mut finding, losses) = self.ask_for(prepared, &mut questioner, wait, lost)?;
            lost = losses;
            mark_stray(Some(&mut finding), questioner.stray_bytes());
            findings.push(finding);
        }
        let tried = findings.len();
        if let Some(flows) = &self.system.flows {
            self.walk(flows, &mut questioner, deadline, &mut findings)?;
        }
        self.clock.sleep_until(self.clock.now().plus(STRAY_WAIT));
        // A connection that is not there any more has nothing behind its answer.
        let _ = questioner.connect(STRAY_WAIT);
        mark_stray(findings.last_mut(), questioner.stray_bytes());
        if tried < all.len() {
            findings.push(left_out(tried, all.len(), tried_max));
        }
        Ok(findings)
    }

    /// Asks for a target, a few times where its failure may pass. Gives the finding, and how many connections in a row
    /// are lost now.
    fn ask_for(
        &self,
        prepared: &Prepared,
        questioner: &mut Questioner,
        wait: Duration,
        mut lost: u32,
    ) -> Result<(PreflightFinding, u32), SutError> {
        let mut failures: Vec<String> = Vec::new();
        let mut pause = PAUSE;
        let asked_at = self.clock.now();
        let mut took_ns = None;
        loop {
            let tried = self.try_one(prepared, questioner, wait)?;
            let took =
                || i64::try_from(self.clock.now().saturating_since(asked_at).as_nanos()).ok();
            took_ns = took_ns.or_else(took);
            lost = if tried.is_lost { lost + 1 } else { 0 };
            let kind = prepared.name.to_string();
            let is_last = failures.len() as u32 + 1 >= TRIES_MAX || lost >= LOST_MAX;
            if tried.ok {
                let mut remark = tried.remark;
                if !failures.is_empty() {
                    remark = format!("it failed before it succeeded: {}", failures.join(", "));
                }
                let found = PreflightFinding::new(kind, true, tried.detail);
                return Ok((PreflightFinding { remark, took_ns, ..found }, lost));
            }
            if !tried.may_pass || is_last || self.stop.load(Ordering::Relaxed) {
                let times = failures.len() + 1;
                let same = failures.iter().all(|it| *it == tried.detail);
                let detail = match (times, same) {
                    (1, _) => tried.detail,
                    (_, true) => format!("{}, {times} times of {times}", tried.detail),
                    _ => format!("{}, {}", failures.join(", "), tried.detail),
                };
                let found = PreflightFinding::new(kind, false, detail);
                return Ok((PreflightFinding { took_ns, ..found }, lost));
            }
            failures.push(tried.detail);
            self.clock.sleep_until(self.clock.now().plus(pause));
            pause *= 2;
        }
    }

    fn try_one(
        &self,
        prepared: &Prepared,
        questioner: &mut Questioner,
        wait: Duration,
    ) -> Result<Tried, SutError> {
        questioner.connect(wait).map_err(|error| {
            let why = self.system.explain(&error);
            SutError::Deploy(format!("preflight: connecting to {}: {why}", self.address))
        })?;
        let mut request = prepared.bytes.to_vec();
        if let Some(at) = prepared.id_at {
            request[at..][..ID_PLACE.len()].copy_from_slice(&digits(ITS_ID));
        }
        let answer = match questioner.ask(&request, prepared.asked, wait) {
            Ok(answer) => answer,
            Err(error) => {
                let detail = self.system.explain(&error);
                let remark = String::new();
                return Ok(Tried { ok: false, detail, remark, may_pass: true, is_lost: true });
            }
        };
        let answered = Answered {
            response: answer.response,
            reason: answer.reason,
            body: answer.body,
            has_body: prepared.asked != Asked::Head,
            head: answer.head,
            expects: prepared.expects,
        };
        let mut text = String::new();
        let outcome = self.system.rules.judge(&answered, &mut text);
        let may_pass = outcome == Outcome::Rejected(Class::Server);
        let (mut ok, mut detail) = judged(outcome, &answered, &text, answer.location);
        let correlate =
            self.system.rules.correlate.as_deref().filter(|_| outcome == Outcome::Committed);
        if let Some(name) = correlate {
            let lacks = match Echo::of(answer.watched, ITS_ID) {
                Echo::Same => None,
                Echo::None => Some("does not echo"),
                Echo::Other => Some("carries another request's"),
            };
            if let Some(lacks) = lacks {
                ok = false;
                let _ = write!(
                    detail,
                    ", but the answer {lacks} {name}, by which workload.correlate counts"
                );
            }
        }
        let status = answer.response.status;
        if !ok && status == PLAIN_TO_TLS && self.speaks_tls() {
            detail.push_str("; the server speaks TLS on this port: is it https://?");
        }
        let is_redirect = REDIRECTS.contains(&status)
            && outcome == Outcome::Committed
            && self.system.rules.counts_as_committed_unasked(status);
        let remark = if is_redirect { NOT_FOLLOWED } else { "" };
        Ok(Tried { ok, detail, remark: remark.to_owned(), may_pass, is_lost: false })
    }
}

impl Pass<'_> {
    /// Whether the server shakes hands where it was asked without TLS. Whoever it is: nothing is sent to it.
    fn speaks_tls(&self) -> bool {
        *self.speaks_tls.get_or_init(|| {
            let system = self.system;
            let trust = Trust { is_insecure: true, ..Trust::default() };
            let tls = system.tls.is_none().then(|| tls(&system.origin.host, trust).ok()).flatten();
            tls.is_some_and(|tls| {
                let limits = system.rules.limits();
                let asked = Questioner::new(self.address, Some(tls), limits, self.clock);
                asked.stopped_by(self.stop).connect(ANSWER_TIME_MAX.min(system.patience)).is_ok()
            })
        })
    }
}

/// Bytes that came behind an answer belong to the target that was answered.
fn mark_stray(finding: Option<&mut PreflightFinding>, bytes: usize) {
    if let Some(finding) = finding.filter(|_| bytes > 0) {
        let stray = format!("{bytes} unsolicited bytes came after its answer");
        let known = std::mem::take(&mut finding.remark);
        finding.remark = if known.is_empty() { stray } else { format!("{known}; {stray}") };
    }
}

/// A refusal for lack of room or allowance says nothing about the target.
fn judged(outcome: Outcome, answered: &Answered<'_>, text: &str, location: &str) -> (bool, String) {
    match outcome {
        Outcome::Rejected(class @ (Class::Limited | Class::Overloaded)) => {
            (true, format!("{text} ({class}; this says nothing about the target)"))
        }
        Outcome::Committed if location.is_empty() => (
            true,
            format!("{} {}", answered.response.status, answered.reason).trim_end().to_owned(),
        ),
        Outcome::Committed => (
            true,
            format!(
                "{} {} to {location} (not followed)",
                answered.response.status, answered.reason
            ),
        ),
        _ => (false, text.to_owned()),
    }
}

fn left_out(tried: usize, all: usize, tried_max: usize) -> PreflightFinding {
    let why = if tried == tried_max {
        "evenly spread over the file"
    } else {
        "then the pass ended: it may take 30 s and lose 10 connections in a row"
    };
    let said = format!("{tried} of {all} targets were tried, {why}");
    PreflightFinding { is_note: true, ..PreflightFinding::new("(not all targets)", true, said) }
}
