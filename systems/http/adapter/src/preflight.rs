//! One pass over the targets before the load: each is asked for once, and those that cannot succeed are named
//! with the answer. Bounded in count and in time; says what it left out.

use std::net::SocketAddr;
use std::time::Duration;

use clock::Clock;
use model::facts::PreflightFinding;
use model::{Class, Outcome};
use sut::SutError;
use sut::ask::Questioner;
use wire::http1::Asked;

use crate::requests::Prepared;
use crate::rules::Answered;
use crate::system::HttpSystem;

/// The most targets that are tried; of more, as many evenly spread over the file.
pub(crate) const TRIED_MAX: usize = 500;

/// The longest that the whole pass may take.
const PASS_TIME_MAX: Duration = Duration::from_secs(30);

/// The longest wait for one answer.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(10);

/// Connections lost one after another before the pass is given up: one target may break its connection,
/// all of them mean that the server is gone.
const LOST_MAX: u32 = 10;

/// What the pass needs.
pub(crate) struct Pass<'a> {
    pub(crate) system: &'a HttpSystem,
    pub(crate) address: SocketAddr,
    pub(crate) clock: Clock,
}

impl Pass<'_> {
    /// Asks for every distinct target once, on one connection while the server keeps it.
    ///
    /// # Errors
    /// When the server cannot be reached at all.
    pub(crate) fn run(&self) -> Result<Vec<PreflightFinding>, SutError> {
        let deadline = self.clock.now().plus(PASS_TIME_MAX);
        let all = &self.system.requests.prepared;
        let tried_max = all.len().min(TRIED_MAX);
        let mut findings = Vec::with_capacity(tried_max + 1);
        let mut questioner = self.system.questioner(self.address, self.clock);
        let mut lost = 0;
        for tried in 0..tried_max {
            let left = deadline.saturating_since(self.clock.now());
            if left.is_zero() || lost >= LOST_MAX {
                break;
            }
            let prepared = &all[tried * all.len() / tried_max];
            let wait = left.min(ANSWER_TIME_MAX);
            let (finding, is_lost) = self.try_one(prepared, &mut questioner, wait)?;
            findings.push(finding);
            lost = if is_lost { lost + 1 } else { 0 };
        }
        let tried = findings.len();
        if tried < all.len() {
            findings.push(left_out(tried, all.len(), tried_max));
        }
        Ok(findings)
    }

    /// Gives the finding, and whether the connection was lost without an answer.
    fn try_one(
        &self,
        prepared: &Prepared,
        questioner: &mut Questioner,
        wait: Duration,
    ) -> Result<(PreflightFinding, bool), SutError> {
        questioner.connect(wait).map_err(|error| {
            let why = self.system.explain(&error);
            SutError::Deploy(format!("preflight: connecting to {}: {why}", self.address))
        })?;
        let kind = prepared.name.to_string();
        let answer = match questioner.ask(&prepared.bytes, prepared.asked, wait) {
            Ok(answer) => answer,
            Err(error) => {
                let detail = self.system.explain(&error);
                return Ok((PreflightFinding { kind, ok: false, detail }, true));
            }
        };
        let answered = Answered {
            response: answer.response,
            reason: answer.reason,
            body: answer.body,
            has_body: prepared.asked != Asked::Head,
        };
        let mut text = String::new();
        let outcome = self.system.rules.judge(&answered, &mut text);
        let (ok, detail) = judged(outcome, &answered, &text, answer.location);
        Ok((PreflightFinding { kind, ok, detail }, false))
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
    PreflightFinding {
        kind: "(not all targets)".to_owned(),
        ok: true,
        detail: format!("{tried} of {all} targets were tried, {why}"),
    }
}
