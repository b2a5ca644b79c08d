//! A channel of the load: transactions out, many a line; observations in, many a line. It believes no line that names a
//! transaction which is not outstanding here: a program that says such a thing is not understood any more.

use std::collections::HashMap;
use std::io::Write as _;
use std::sync::Arc;

use base64::display::Base64Display;
use base64::engine::general_purpose::STANDARD;
use model::{Outcome, TxId};
use sut::{Abandon, Marks, ProtocolError, Received, Session, Transaction};

use crate::line::{self, LINE_BYTES_MAX, Observation, Observed, Vocabulary};
use crate::steps::Steps;

/// A line of transactions is closed when it is this long, so that the longest transaction still fits.
const LINE_BYTES_ENOUGH: usize = LINE_BYTES_MAX / 4;

/// So many transactions that were given up may wait for a late answer; a program that owes more is not waited for.
const ABANDONED_MAX: usize = 65_536;

/// The protocol on one channel.
pub struct LineSession {
    words: Arc<Vocabulary>,
    steps: Arc<Steps>,
    in_flight_max: u32,
    /// What is owed an end.
    outstanding: HashMap<TxId, Way>,
    abandoned: usize,
    /// Bytes of the line that is open; 0: none is.
    line_bytes: usize,
}

/// How far a transaction is.
#[derive(Clone, Copy, Default)]
struct Way {
    /// The lowest stage that it can still reach.
    next_stage: usize,
    is_abandoned: bool,
}

impl LineSession {
    /// One that speaks in these words, and has at most `in_flight_max` outstanding.
    pub(crate) fn new(words: Arc<Vocabulary>, steps: Arc<Steps>, in_flight_max: u32) -> Self {
        let outstanding = HashMap::new();
        Self { words, steps, in_flight_max, outstanding, abandoned: 0, line_bytes: 0 }
    }

    /// One without a program: for measurements and tests. Its inner steps are nobody's.
    #[must_use]
    pub fn alone(words: Arc<Vocabulary>, in_flight_max: u32) -> Self {
        Self::new(words, Arc::default(), in_flight_max)
    }

    /// Takes one observation.
    fn observe(&mut self, said: &Observation<'_>, marks: &mut Marks) -> Result<(), String> {
        let id = said.id;
        let Some(way) = self.outstanding.get_mut(&id) else {
            return Err(format!(
                "an answer for transaction {id}, which is not outstanding here (never submitted, or ended before)"
            ));
        };
        for step in &said.steps {
            self.steps.keep(id, step, &self.words.steps)?;
        }
        if let Some(seen) = &said.seen {
            marks.observed(id, seen.as_bytes());
        }
        let is_over = match (said.reached.as_deref(), said.ended.as_deref()) {
            (Some(_), Some(_)) => {
                return Err(format!("both `reached` and `ended` of transaction {id}"));
            }
            (Some(stage), None) => {
                let index = self.words.stages.iter().position(|name| name == stage);
                let Some(index) = index else {
                    return Err(format!("a stage `{}` that there is not", sut::cut(stage)));
                };
                if index < way.next_stage {
                    return Err(format!(
                        "stage `{stage}` of transaction {id}, which is past it already"
                    ));
                }
                way.next_stage = index + 1;
                let stage = u8::try_from(index).expect("at most STAGES_MAX");
                marks.reached(id, stage, said.code, 0);
                way.next_stage == self.words.stages.len()
            }
            (None, Some(word)) => {
                let Some(outcome) = line::outcome(word) else {
                    return Err(format!("an outcome `{}` that there is not", sut::cut(word)));
                };
                match outcome {
                    Outcome::Committed => {
                        let last = self.words.stages.len() - 1;
                        marks.reached(
                            id,
                            u8::try_from(last).expect("at most STAGES_MAX"),
                            said.code,
                            0,
                        );
                    }
                    other => marks.ended(id, other, said.code, 0, &said.text),
                }
                true
            }
            (None, None) if said.seen.is_none() && said.steps.is_empty() => {
                return Err(format!("nothing at all of transaction {id}"));
            }
            (None, None) => false,
        };
        if is_over && self.outstanding.remove(&id).is_some_and(|way| way.is_abandoned) {
            self.abandoned -= 1;
        }
        Ok(())
    }

    fn close_line(&mut self, out: &mut Vec<u8>) {
        if self.line_bytes > 0 {
            out.extend_from_slice(b"]}\n");
            self.line_bytes = 0;
        }
    }
}

impl Session for LineSession {
    fn submit(&mut self, tx: &Transaction<'_>, out: &mut Vec<u8>) -> u32 {
        if self.line_bytes > LINE_BYTES_ENOUGH {
            self.close_line(out);
        }
        let before = out.len();
        let start: &[u8] = if self.line_bytes == 0 { b"{\"do\":\"submit\",\"tx\":[" } else { b"," };
        out.extend_from_slice(start);
        let written = write!(out, "{{\"id\":{}", tx.id).and_then(|()| {
            if self.words.kinds.len() > 1 {
                out.extend_from_slice(b",\"kind\":");
                let kind = usize::try_from(tx.kind).expect("a kind is an index");
                serde_json::to_writer(&mut *out, &self.words.kinds[kind])?;
            }
            if tx.client > 0 {
                write!(out, ",\"client\":{}", tx.client)?;
            }
            if tx.attempt > 1 {
                write!(out, ",\"attempt\":{}", tx.attempt)?;
            }
            if let Some(keys) = self.words.keys {
                write!(out, ",\"key\":{}", keys.of(tx.id))?;
            }
            match std::str::from_utf8(tx.payload) {
                Ok("") => {}
                Ok(text) => {
                    out.extend_from_slice(b",\"payload\":");
                    serde_json::to_writer(&mut *out, text)?;
                }
                Err(_) => {
                    write!(
                        out,
                        ",\"payload_base64\":\"{}\"",
                        Base64Display::new(tx.payload, &STANDARD)
                    )?;
                }
            }
            Ok(())
        });
        written.expect("memory can be written");
        out.push(b'}');
        self.line_bytes += out.len() - before;
        self.outstanding.insert(tx.id, Way::default());
        u32::try_from(tx.payload.len()).expect("bounded by the options")
    }

    fn gathered(&mut self, out: &mut Vec<u8>) {
        self.close_line(out);
    }

    fn receive(&mut self, bytes: &[u8], _out: &mut Vec<u8>, marks: &mut Marks) -> Received {
        let mut used = 0;
        while let Some((text, length)) = line::first(&bytes[used..]).map_err(ProtocolError)? {
            let said: Observed<'_> = line::read(text).map_err(ProtocolError)?;
            for one in &said.observed {
                self.observe(one, marks).map_err(|why| ProtocolError(format!("it said {why}")))?;
            }
            used += length;
        }
        Ok(used)
    }

    /// Its answer still names it if it comes.
    fn abandon(&mut self, tx: TxId) -> Abandon {
        if let Some(way) = self.outstanding.get_mut(&tx).filter(|way| !way.is_abandoned) {
            way.is_abandoned = true;
            self.abandoned += 1;
        }
        if self.abandoned > ABANDONED_MAX { Abandon::Close } else { Abandon::Keep }
    }

    fn in_flight_max(&self) -> u32 {
        self.in_flight_max
    }

    fn reset(&mut self) {
        self.outstanding.clear();
        self.abandoned = 0;
        self.line_bytes = 0;
    }
}
