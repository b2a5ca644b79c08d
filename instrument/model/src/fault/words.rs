//! What is said of faults, in words for people: tables of every report and the audit that names a fault print these,
//! so that they cannot differ. Nothing reads them back.

use super::{FaultDetail, RotationOver};
use crate::plan::CutWay;
use crate::quantity::show_ns;
use crate::result::FaultResult;

impl FaultResult {
    /// Its words: of its beginning, of its end, and of its round.
    #[must_use]
    pub fn in_words(&self) -> String {
        let ended = self.ended.as_ref().map(FaultDetail::in_words).unwrap_or_default();
        let said = [self.began.in_words(), ended];
        let mut words = said.into_iter().filter(|it| !it.is_empty()).collect::<Vec<_>>().join("; ");
        if self.cycle > 0 {
            words.push_str(if words.is_empty() { "" } else { ", " });
            words.push_str(&format!("cycle {}", self.cycle));
        }
        words
    }

    /// Why a fault that ended a node's process tested nothing; `None`: it tested something, or is of another kind.
    #[must_use]
    pub fn met_nothing(&self) -> Option<&'static str> {
        match self.began {
            FaultDetail::PowerCut { lost_bytes: 0, kept_bytes: 0, lost_names: 0 } => {
                Some("everything on its disk was synced")
            }
            FaultDetail::PowerCut { .. } | FaultDetail::Killed if self.in_flight == Some(0) => {
                Some("no transaction was in flight")
            }
            _ => None,
        }
    }
}

impl FaultDetail {
    /// A sentence without a final stop; empty if there is nothing to say.
    #[must_use]
    pub fn in_words(&self) -> String {
        match self {
            Self::Nothing | Self::Killed => String::new(),
            Self::Keys { keys } => {
                let words = keys.iter().map(|(key, value)| format!("{key} {value}"));
                words.collect::<Vec<_>>().join(", ")
            }
            Self::Cut { way, client } => cut(*way, *client),
            Self::Link { change } => change.in_words(),
            Self::After { ns, cut_short, goes_on, error } => {
                let mut words = after(*ns, *cut_short);
                if *goes_on {
                    words.push_str(", another goes on");
                }
                if !error.is_empty() {
                    words.push_str(&format!(", {error}"));
                }
                words
            }
            Self::PowerCut { lost_bytes, kept_bytes, lost_names } => {
                power_cut(*lost_bytes, *kept_bytes, *lost_names)
            }
            Self::Rotted { bits: 0, .. } => {
                "nothing was stored lately, so no bit flipped".to_owned()
            }
            Self::Rotted { bits, places } => {
                let is_part = usize::try_from(*bits).is_ok_and(|bits| bits > places.len());
                let more = if is_part { ", …" } else { "" };
                let are = if *bits == 1 { "bit" } else { "bits" };
                format!("{bits} {are} flipped: {}{more}", places.join(", "))
            }
            Self::StartedAgain { ns, cut_short } => {
                format!("started again {}", after(*ns, *cut_short))
            }
            Self::CaughtUp { ns } => format!("caught up after {}", show_ns(*ns)),
            Self::NotCaughtUp { ns, over, said } => {
                let words = format!(
                    "had not caught up {} after its start, when {}",
                    show_ns(*ns),
                    over.in_words()
                );
                if said.is_empty() { words } else { format!("{words} (it said last: {said})") }
            }
            Self::EndedAgain { ns, how } => {
                format!("ended again {} after its start: {how}", show_ns(*ns))
            }
            Self::Down { why } => format!("could not be started again and stays down: {why}"),
            Self::NotWiped { why, over } => {
                let over = over.map(|over| over.in_words().to_owned());
                let why = why.clone().or(over).unwrap_or_default();
                format!("started again without being wiped: {why}")
            }
            Self::GivenUp => "given up: no node of the last cycle came back".to_owned(),
            Self::NoSuchNode { known } => {
                format!("there is no such node; there are: {}", known.join(", "))
            }
            Self::NoSuchLink => {
                "there is no such link between nodes that are on the network".to_owned()
            }
            Self::NoNetwork => "the trial has no network of its own".to_owned(),
            Self::NoCare => "this system does not say how its nodes are wiped".to_owned(),
            Self::NotReached => "the trial ended before its time came".to_owned(),
            Self::TooMuch => "further fault events are dropped: the limit is reached".to_owned(),
            Self::Why { text } => text.clone(),
        }
    }
}

impl RotationOver {
    const fn in_words(self) -> &'static str {
        match self {
            Self::Time => "the time of the rotation was over",
            Self::Trial => "the trial had ended",
        }
    }
}

fn after(ns: i64, cut_short: bool) -> String {
    let after = format!("after {}", show_ns(ns));
    if cut_short { format!("{after}, the trial ended before its time") } else { after }
}

fn power_cut(lost_bytes: u64, kept_bytes: u64, lost_names: u64) -> String {
    let parts = [
        (lost_bytes, format!("lost {lost_bytes} bytes that were not synced")),
        (lost_names, format!("{lost_names} changes of names undone")),
        (kept_bytes, format!("{kept_bytes} bytes survived unsynced")),
    ];
    let words: Vec<String> = parts.into_iter().filter(|(n, _)| *n > 0).map(|(_, it)| it).collect();
    if words.is_empty() {
        "everything was synced, so the cut tested nothing".to_owned()
    } else {
        words.join(", ")
    }
}

fn cut(way: CutWay, client: bool) -> String {
    let way = match way {
        CutWay::Both => "",
        CutWay::In => "only what comes in",
        CutWay::Out => "only what goes out",
    };
    let client = if client { "from the instrument, too" } else { "" };
    let words: Vec<&str> = [way, client].into_iter().filter(|it| !it.is_empty()).collect();
    words.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::FaultValue;

    /// Claim: what was cut short, goes on elsewhere or went wrong is said after the length, and keys as planned are
    /// said with their values.
    #[test]
    fn words_of_details() {
        let after = |cut_short, goes_on, error: &str| FaultDetail::After {
            ns: 1_500_000_000,
            cut_short,
            goes_on,
            error: error.to_owned(),
        };
        let power = |lost_bytes, kept_bytes, lost_names| FaultDetail::PowerCut {
            lost_bytes,
            kept_bytes,
            lost_names,
        };
        let keys = [
            ("delay".to_owned(), FaultValue::Duration(std::time::Duration::from_millis(200))),
            ("nice".to_owned(), FaultValue::Count(10)),
        ];
        for (detail, words) in [
            (after(false, false, ""), "after 1.50 s"),
            (after(true, false, ""), "after 1.50 s, the trial ended before its time"),
            (
                after(false, true, "no such process"),
                "after 1.50 s, another goes on, no such process",
            ),
            (FaultDetail::Keys { keys: keys.into() }, "delay 200ms, nice 10"),
            (power(512, 0, 0), "lost 512 bytes that were not synced"),
            (power(0, 1024, 2), "2 changes of names undone, 1024 bytes survived unsynced"),
            (power(0, 0, 0), "everything was synced, so the cut tested nothing"),
            (
                FaultDetail::Cut { way: CutWay::In, client: true },
                "only what comes in, from the instrument, too",
            ),
            (
                FaultDetail::NotWiped { why: None, over: Some(RotationOver::Trial) },
                "started again without being wiped: the trial had ended",
            ),
        ] {
            assert_eq!(detail.in_words(), words);
        }
    }
}
