//! A user on his way: his request as bytes, and after its answer what follows. It sends nothing, waits for nothing and reads
//! no clock: when the next step is due is said, and kept by the engine.

use std::borrow::Cow;
use std::io::Write as _;
use std::sync::Arc;

use model::options::Span;
use model::{Class, Outcome, TxId};
use sut::{Marks, Next};
use wire::http1::{Asked, Response};
use wire::http2::{write_header, write_place};

use crate::expect::Answered;
use crate::flow::cookies::Place;
use crate::flow::template::Moment;
use crate::flow::user::User;
use crate::flow::{Flows, Step, coding, redirect};
use crate::rules::{COMMITTED, Rules, cut, status_line};

/// A user, and buffers that are kept from one to the next.
#[derive(Debug)]
pub(crate) struct Walk {
    plan: Arc<Flows>,
    user: User,
    /// Where the experiment asks for the value that the last answer did not have.
    missing: Option<Span>,
    /// The target that was asked for last.
    target: Vec<u8>,
    scratch: Vec<u8>,
    transaction: TxId,
    now_ns: i64,
}

/// A request that was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Asking {
    pub(crate) asked: Asked,
    pub(crate) expects: Option<u16>,
    pub(crate) body_bytes: u32,
}

/// Why a step has failed although its answer was good.
#[derive(Debug)]
struct Failed {
    outcome: Outcome,
    why: String,
}

impl Walk {
    pub(crate) fn new(plan: Arc<Flows>) -> Self {
        let (user, target, scratch) = (User::default(), Vec::new(), Vec::new());
        Self { plan, user, missing: None, target, scratch, transaction: 0, now_ns: 0 }
    }

    /// Takes up the user whose state the payload is; `target` is then what he asks for. Says whether he asks by GET, because he
    /// was redirected. `now_ns` is Unix time.
    ///
    /// # Panics
    /// If the payload is no state of a user of this plan.
    fn take_up(&mut self, payload: &[u8], transaction: TxId, now_ns: i64) -> bool {
        let Self { plan, user, target, .. } = self;
        user.read(payload, plan.sizes).expect("a payload of this workload is a user's state");
        (self.transaction, self.now_ns) = (transaction, now_ns);
        let step = &plan.steps[user.step as usize];
        target.clear();
        let is_hop = !user.hop.is_empty();
        if is_hop {
            target.extend_from_slice(&user.hop);
        } else {
            let moment = moment(plan, user, step, transaction, now_ns);
            step.target.fill(user, &moment, target);
        }
        is_hop && user.hop_is_get
    }

    /// Takes up the user whose state the payload is, and appends his request in HTTP/1.1. `now_ns` is Unix time.
    ///
    /// # Panics
    /// If the payload is no state of a user of this plan.
    pub(crate) fn request(
        &mut self,
        payload: &[u8],
        transaction: TxId,
        now_ns: i64,
        out: &mut Vec<u8>,
    ) -> Asking {
        let is_get = self.take_up(payload, transaction, now_ns);
        let Self { plan, user, target, scratch, .. } = self;
        let step = &plan.steps[user.step as usize];
        let moment = moment(plan, user, step, transaction, now_ns);
        let method = step.method_of(is_get);
        for part in [method.as_bytes(), b" ", target, b" HTTP/1.1\r\n"] {
            out.extend_from_slice(part);
        }
        step.headers.fill(user, &moment, scratch, out);
        if plan.has_cookies && !step.has_own_cookie {
            user.jar.write_header(&place(plan, target, now_ns), out);
        }
        let body = step.body.as_ref().filter(|_| !is_get);
        if body.is_some() {
            step.body_headers.fill(user, &moment, scratch, out);
        }
        scratch.clear();
        if let Some(body) = body {
            body.fill(user, &moment, scratch);
        }
        if !scratch.is_empty() || matches!(method, "POST" | "PUT" | "PATCH") {
            write!(out, "Content-Length: {}\r\n", scratch.len()).expect("a Vec takes any bytes");
        }
        out.extend_from_slice(b"\r\n");
        out.extend_from_slice(scratch);
        Asking::of(step, scratch.len())
    }

    /// The same in HTTP/2: the header block and the body, which come in place of what the buffers held.
    ///
    /// # Panics
    /// If the payload is no state of a user of this plan.
    pub(crate) fn request_http2(
        &mut self,
        payload: &[u8],
        transaction: TxId,
        now_ns: i64,
        (block, body): (&mut Vec<u8>, &mut Vec<u8>),
    ) -> Asking {
        let is_get = self.take_up(payload, transaction, now_ns);
        let Self { plan, user, target, scratch, .. } = self;
        let step = &plan.steps[user.step as usize];
        let moment = moment(plan, user, step, transaction, now_ns);
        block.clear();
        body.clear();
        write_place(block, step.method_of(is_get), target);
        step.headers.fill(user, &moment, scratch, block);
        if plan.has_cookies && !step.has_own_cookie {
            scratch.clear();
            if user.jar.write_value(&place(plan, target, now_ns), scratch) {
                write_header(block, "cookie", scratch);
            }
        }
        if let Some(template) = step.body.as_ref().filter(|_| !is_get) {
            step.body_headers.fill(user, &moment, scratch, block);
            template.fill(user, &moment, body);
        }
        Asking::of(step, body.len())
    }

    /// Ends the transaction of the user's step, and says what he does next.
    pub(crate) fn end(
        &mut self,
        tx: TxId,
        rules: &Rules,
        answered: &Answered<'_>,
        location: &str,
        (text, marks): (&mut String, &mut Marks),
    ) {
        let (mut outcome, next) = self.conclude(rules, answered, location, text);
        if let Some(next) = next
            && !marks.follows(tx, next, |payload| self.write_state(payload))
        {
            outcome = Outcome::Rejected(Class::Client);
            text.clear();
            text.push_str("the values of a user are longer than a MiB together");
        }
        let Response { status, body_bytes, .. } = answered.response;
        let bytes_in = u32::try_from(body_bytes).unwrap_or(u32::MAX);
        match outcome {
            Outcome::Committed => marks.reached(tx, COMMITTED, status, bytes_in),
            outcome => marks.ended(tx, outcome, status, bytes_in, text),
        }
    }

    /// The outcome of an answer, and its follow-up; an error is written to `text`.
    pub(crate) fn conclude(
        &mut self,
        rules: &Rules,
        answered: &Answered<'_>,
        location: &str,
        text: &mut String,
    ) -> (Outcome, Option<Next>) {
        self.keep_cookies(answered.head);
        let concluded = if self.is_redirected(answered.response, location) {
            self.redirected(answered.response.status, location).map(Some)
        } else {
            let (body, body_bytes) = match self.plan.has_compression {
                true => coding::plain(answered, rules.limits().body_kept_max),
                false => (Cow::Borrowed(answered.body), answered.response.body_bytes),
            };
            let response = Response { body_bytes, ..answered.response };
            let answered = Answered { response, body: &body, ..*answered };
            match rules.judge(&answered, text) {
                Outcome::Committed => self.answered(&answered),
                outcome => return (outcome, None),
            }
        };
        match concluded {
            Ok(next) => (Outcome::Committed, next),
            Err(Failed { outcome, why }) => {
                text.clear();
                status_line(answered, text);
                text.push_str(": ");
                text.push_str(&why);
                cut(text);
                (outcome, None)
            }
        }
    }

    /// Keeps the cookies of an answer, whatever it says.
    fn keep_cookies(&mut self, head: &[u8]) {
        if !self.plan.has_cookies {
            return;
        }
        let place = place(&self.plan, &self.target, self.now_ns);
        for line in head.split(|byte| *byte == b'\n').skip(1) {
            let Some(colon) = line.iter().position(|byte| *byte == b':') else { continue };
            if line[..colon].eq_ignore_ascii_case(b"set-cookie") {
                self.user.jar.set(&place, line[colon + 1..].trim_ascii());
            }
        }
    }

    /// Whether the answer is a redirect that is to be followed.
    fn is_redirected(&self, response: Response, location: &str) -> bool {
        let step = &self.plan.steps[self.user.step as usize];
        step.redirects_max > 0
            && redirect::STATUSES.contains(&response.status)
            && !location.is_empty()
    }

    /// The follow-up of a redirect.
    ///
    /// # Errors
    /// When there were too many, or it leads elsewhere.
    fn redirected(&mut self, status: u16, location: &str) -> Result<Next, Failed> {
        let Self { plan, user, target, .. } = self;
        let step = &plan.steps[user.step as usize];
        let failed = |why| Failed { outcome: Outcome::Rejected(Class::Server), why };
        if user.hops >= step.redirects_max {
            return Err(failed(format!("redirected more than {} times", step.redirects_max)));
        }
        redirect::resolve(location, &plan.origin, target, &mut user.hop).map_err(failed)?;
        user.hop_is_get |= redirect::becomes_get(status, &step.method);
        user.hops += 1;
        Ok(Next { kind: step.kind_redirected, after: std::time::Duration::ZERO })
    }

    /// Takes from a good answer what its step takes, and says what follows; nothing: the flow has come to its end.
    ///
    /// # Errors
    /// When a value is not there.
    fn answered(&mut self, answered: &Answered<'_>) -> Result<Option<Next>, Failed> {
        let Self { plan, user, missing, .. } = self;
        let step = &plan.steps[user.step as usize];
        for take in &step.takes {
            let User { values, jar, .. } = &mut *user;
            take.take(answered, jar, &mut values[take.value]).map_err(|not_found| {
                *missing = Some(take.span);
                Failed {
                    outcome: not_found.outcome,
                    why: format!(
                        "no value for `{}` at {}: {}",
                        plan.names[take.value], take.written, not_found.why
                    ),
                }
            })?;
        }
        user.hops = 0;
        user.hop.clear();
        user.hop_is_get = false;
        Ok(self.advance())
    }

    /// Where the experiment asks for the value that the last answer did not have.
    pub(crate) const fn missing(&self) -> Option<Span> {
        self.missing
    }

    /// The user's state, for the payload of what follows.
    pub(crate) fn write_state(&self, out: &mut Vec<u8>) {
        self.user.write(out);
    }

    fn advance(&mut self) -> Option<Next> {
        let (transaction, now_ns) = (self.transaction, self.now_ns);
        let Self { plan, user, scratch, .. } = self;
        let at = user.step as usize;
        let step = &plan.steps[at];
        let after = step.think.next(&mut user.random);
        let mut next = at + 1;
        if let Some(back) = &step.back {
            let moment = moment(plan, user, step, transaction, now_ns);
            let goes_on = user.loops[back.counter] < back.times
                && back.condition.as_ref().is_none_or(|it| it.holds(user, &moment, scratch));
            match goes_on {
                true => {
                    user.loops[back.counter] += 1;
                    next = back.to;
                }
                false => user.loops[back.counter] = 0,
            }
        }
        let is_again = next <= at;
        let end = plan.flows[user.flow as usize].end;
        while next < end {
            let step = &plan.steps[next];
            let moment = moment(plan, user, step, transaction, now_ns);
            if step.when.as_ref().is_none_or(|it| it.holds(user, &moment, scratch)) {
                user.step = u32::try_from(next).expect("bounded by STEPS_MAX");
                let kind = if is_again { step.kind_again } else { step.kind };
                return Some(Next { kind, after });
            }
            next += 1;
        }
        None
    }
}

impl Asking {
    fn of(step: &Step, body_bytes: usize) -> Self {
        let body_bytes = u32::try_from(body_bytes).unwrap_or(u32::MAX);
        Self { asked: step.asked(), expects: step.expects, body_bytes }
    }
}

/// Where cookies are looked for.
fn place<'a>(plan: &'a Flows, target: &'a [u8], now_ns: i64) -> Place<'a> {
    Place { host: &plan.origin.host, is_tls: plan.origin.is_tls, target, now_ns }
}

fn moment<'a>(
    plan: &'a Flows,
    user: &User,
    step: &Step,
    transaction: TxId,
    now_ns: i64,
) -> Moment<'a> {
    let round = step.round_of.map_or(0, |counter| user.loops[counter]);
    Moment { data: plan.data.as_ref(), transaction, unix_ms: now_ns / 1_000_000, round }
}
