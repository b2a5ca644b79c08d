//! Calls as the experiment has them, and ready to send: what is the same each time is written once, before the load.

use std::time::Duration;

use http_adapter::borrowed::{Expectation, Filler, Text, USER_AGENT};
use prost_reflect::{DescriptorPool, MessageDescriptor};
use wire::http2::request_block;

use crate::described;
use crate::messages;
use crate::status::Outcomes;

/// The stages of the ladder.
pub(crate) const FIRST_MESSAGE: u8 = 0;
pub(crate) const COMMITTED: u8 = 1;

/// A call as the experiment has it.
#[derive(Clone, Debug)]
pub(crate) struct Wish {
    /// The name of its kind.
    pub(crate) name: String,
    pub(crate) service: String,
    pub(crate) method: String,
    /// The request in JSON.
    pub(crate) message: Text,
    pub(crate) deadline: Option<Duration>,
    pub(crate) metadata: Vec<(String, String)>,
    pub(crate) weight: u64,
    pub(crate) expects: Expects,
}

/// Expectations of an answer.
#[derive(Clone, Debug, Default)]
pub(crate) struct Expects {
    /// Codes that count as committed; empty: as the table says.
    pub(crate) statuses: Vec<u16>,
    pub(crate) messages: Option<u64>,
    pub(crate) answer: Expectation,
}

/// A call, ready to send.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) name: String,
    /// The header block.
    pub(crate) block: Vec<u8>,
    /// The request with its prefix, where it is always the same.
    pub(crate) body: Option<Vec<u8>>,
    pub(crate) message: Text,
    pub(crate) input: MessageDescriptor,
    pub(crate) output: MessageDescriptor,
    pub(crate) is_stream: bool,
    pub(crate) weight: u64,
    pub(crate) expects: Expects,
}

/// All calls of a workload.
#[derive(Clone, Debug)]
pub(crate) struct Calls {
    pub(crate) list: Vec<Call>,
    pub(crate) outcomes: Outcomes,
    /// The longest message of an answer.
    pub(crate) message_bytes_max: usize,
}

impl Call {
    /// Finds the method and makes what can be made; `server` is the scheme of HTTP and the authority.
    ///
    /// # Errors
    /// In one sentence.
    pub(crate) fn new(
        wish: &Wish,
        pool: &DescriptorPool,
        server: (&str, &str),
    ) -> Result<Self, String> {
        let method = described::method(pool, &wish.service, &wish.method)?;
        let input = method.input();
        let mut call = Self {
            name: wish.name.clone(),
            block: block(wish, server),
            body: None,
            message: wish.message.clone(),
            input,
            output: method.output(),
            is_stream: method.is_server_streaming(),
            weight: wish.weight,
            expects: wish.expects.clone(),
        };
        let mut body = Vec::new();
        // Every line of the data, so that a value that does not fit is known before anything is sent.
        for tx in 0..u64::from(call.message.lines()) {
            body.clear();
            call.write(&mut Filler::new(1), tx, 1, &mut body).map_err(|why| {
                let line = tx + 1;
                if call.message.lines() > 1 {
                    format!("line {line} of the data: {why}")
                } else {
                    why
                }
            })?;
        }
        if call.message.is_constant() {
            call.body = Some(body);
        }
        Ok(call)
    }

    /// Appends the request with its prefix.
    ///
    /// # Errors
    /// When what was filled in makes it no such message.
    pub(crate) fn write(
        &self,
        filler: &mut Filler,
        tx: u64,
        client: u32,
        out: &mut Vec<u8>,
    ) -> Result<(), String> {
        let mut json = Vec::new();
        filler.fill(&self.message, tx, client, 0, &mut json);
        let message = described::encode(&self.input, &json)?;
        messages::write(out, &message);
        Ok(())
    }
}

fn block(wish: &Wish, (scheme, authority): (&str, &str)) -> Vec<u8> {
    let timeout = wish.deadline.map(timeout);
    let mut headers: Vec<(&str, &[u8])> = vec![
        ("te", b"trailers"),
        ("content-type", b"application/grpc"),
        ("user-agent", USER_AGENT.as_bytes()),
    ];
    if let Some(timeout) = &timeout {
        headers.push(("grpc-timeout", timeout.as_bytes()));
    }
    headers.extend(wish.metadata.iter().map(|(name, value)| (name.as_str(), value.as_bytes())));
    let target = format!("/{}/{}", wish.service, wish.method);
    request_block("POST", scheme, authority, &target, &headers)
}

/// A deadline in at most eight digits and a unit, as exactly as that takes.
fn timeout(deadline: Duration) -> String {
    let nanos = deadline.as_nanos();
    let units =
        [(1, 'n'), (1_000, 'u'), (1_000_000, 'm'), (1_000_000_000, 'S'), (60_000_000_000, 'M')];
    for (unit, letter) in units {
        if nanos / unit < 100_000_000 {
            return format!("{}{letter}", nanos.div_ceil(unit));
        }
    }
    "99999999H".to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Claim: a deadline is written in eight digits at most, and never shorter than it is.
    #[test]
    fn deadlines() {
        for (nanos, expected) in [
            (1, "1n"),
            (500_000_000, "500000u"),
            (20_000_000_000, "20000000u"),
            (100_000_000_000, "100000m"),
            (7_200_000_000_000, "7200000m"),
        ] {
            assert_eq!(timeout(Duration::from_nanos(nanos)), expected);
        }
    }
}
