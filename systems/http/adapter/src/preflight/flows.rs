//! The pass over flows: one user goes through each before the load, without thinking. A step that fails is named; those after
//! it are not tried.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use clock::Instant;
use model::Outcome;
use model::facts::PreflightFinding;
use sut::ask::Questioner;
use sut::{Next, SutError};
use wire::http1::Asked;

use super::{ANSWER_TIME_MAX, ITS_ID, Pass, judged, mark_stray};
use crate::expect::Answered;
use crate::flow::Flows;
use crate::flow::source::begin;
use crate::flow::user::{Random, User};
use crate::flow::walk::Walk;

/// Requests of one user: a loop is not tried to its end.
const REQUESTS_MAX: usize = 100;

impl Pass<'_> {
    /// Lets a user go through each flow. Each kind has a finding: of the first request that was made of it, or the first that
    /// failed.
    ///
    /// # Errors
    /// When the server cannot be reached at all.
    pub(super) fn walk(
        &self,
        flows: &Arc<Flows>,
        questioner: &mut Questioner,
        deadline: Instant,
        findings: &mut Vec<PreflightFinding>,
    ) -> Result<(), SutError> {
        let first_kind = self.system.requests.kinds.len();
        let kinds = flows.kinds();
        for (at, flow) in flows.flows.iter().enumerate() {
            let (mut user, mut scratch) = (User::default(), Vec::new());
            begin(flows, &mut user, at, (0, 0), Random(ITS_ID), &mut scratch, ITS_ID);
            let mut walk = Walk::new(Arc::clone(flows));
            let mut payload = Vec::new();
            user.write(&mut payload);
            let mut kind = flows.steps[flow.first].kind;
            for nth in 0..REQUESTS_MAX {
                let left = deadline.saturating_since(self.clock.now());
                if left.is_zero() || self.stop.load(Ordering::Relaxed) {
                    findings.push(not_ended(&flow.name, nth));
                    break;
                }
                let name = &kinds[kind as usize - first_kind].name;
                let wait = left.min(ANSWER_TIME_MAX).min(self.system.patience);
                let (finding, next) = self.step(&mut walk, &payload, name, questioner, wait)?;
                mark_stray(findings.last_mut(), questioner.stray_bytes());
                let known = findings.iter_mut().find(|it| it.kind == finding.kind);
                match known {
                    None => findings.push(finding),
                    Some(known) if known.ok && !finding.ok => *known = finding,
                    Some(_) => {}
                }
                let Some(next) = next else { break };
                kind = next.kind;
                payload.clear();
                walk.write_state(&mut payload);
                if nth + 1 == REQUESTS_MAX {
                    findings.push(not_ended(&flow.name, REQUESTS_MAX));
                }
            }
        }
        Ok(())
    }

    fn step(
        &self,
        walk: &mut Walk,
        payload: &[u8],
        name: &str,
        questioner: &mut Questioner,
        wait: std::time::Duration,
    ) -> Result<(PreflightFinding, Option<Next>), SutError> {
        questioner.connect(wait).map_err(|error| {
            let why = self.system.explain(&error);
            SutError::Deploy(format!("preflight: connecting to {}: {why}", self.address))
        })?;
        let mut request = Vec::new();
        let now_ns = self.clock.wall_now_at(self.clock.now()).unix_ns();
        let asking = walk.request(payload, ITS_ID, now_ns, &mut request);
        let asked_at = self.clock.now();
        let answer = match questioner.ask(&request, asking.asked, wait) {
            Ok(answer) => answer,
            Err(error) => {
                let detail = self.system.explain(&error);
                return Ok((PreflightFinding::new(name.to_owned(), false, detail), None));
            }
        };
        let answered = Answered {
            response: answer.response,
            reason: answer.reason,
            body: answer.body,
            has_body: asking.asked != Asked::Head,
            head: answer.head,
            expects: asking.expects,
        };
        let mut text = String::new();
        let (outcome, next) =
            walk.conclude(&self.system.rules, &answered, answer.location, &mut text);
        let (mut ok, mut detail) = judged(outcome, &answered, &text, "");
        if !ok && answer.response.status == super::PLAIN_TO_TLS && self.speaks_tls() {
            detail.push_str("; the server speaks TLS on this port: is it https://?");
        }
        ok |= outcome == Outcome::Committed;
        let took_ns = self.clock.now().saturating_since(asked_at).as_nanos();
        let found = PreflightFinding::new(name.to_owned(), ok, detail);
        let took_ns = i64::try_from(took_ns).ok();
        Ok((PreflightFinding { took_ns, span: walk.missing(), ..found }, next))
    }
}

fn not_ended(flow: &str, requests: usize) -> PreflightFinding {
    let said = format!("flow {flow}: left after {requests} requests, before its end");
    PreflightFinding { is_note: true, ..PreflightFinding::new("(not all of a flow)", true, said) }
}
