//! The links between nodes, as planned: what happens to packets on their way, and which link a name means.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::quantity::{
    duration_text, duration_text_option, show_bandwidth, show_duration, show_percent,
};

/// The effect of links between nodes on packets: the testbed's own network, which it makes for the trial.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LinksPlan {
    /// How the network is made.
    pub through: Through,
    /// Every link between two nodes, each direction.
    pub between: LinkPlan,
    /// Between the instrument and every node, each direction.
    pub client: LinkPlan,
    /// Links that differ; of several that fit, the last holds.
    pub pairs: Vec<LinkPair>,
}

/// How a network between nodes is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Through {
    /// A namespace and a TUN device each node, and a switch in user space. It takes a user namespace, or root.
    Switch,
    /// A TCP forwarder each directed pair, for systems whose peers' addresses can be set. No loss, no reordering.
    Forwarders,
}

/// The effect on packets in one direction of one link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LinkPlan {
    /// Every packet is this late.
    #[serde(with = "duration_text")]
    pub delay: Duration,
    /// And by up to this much more or less, evenly; packets do not overtake each other for it.
    #[serde(with = "duration_text")]
    pub jitter: Duration,
    /// Share of packets that vanish, 0 to 1.
    pub loss: f64,
    /// Bytes a second; 0 = no limit.
    pub bandwidth: u64,
    /// Share of packets that overtake those before them: they go without delay, 0 to 1.
    pub reorder: f64,
}

impl LinksPlan {
    /// What happens to packets from one node to another: of the pairs that fit, the last; without one, what holds
    /// between nodes, or between `client` and them.
    #[must_use]
    pub fn link(&self, from: &str, to: &str) -> LinkPlan {
        let fits = |pair: &&LinkPair| is_meant(&pair.from, from) && is_meant(&pair.to, to);
        if let Some(pair) = self.pairs.iter().rev().find(fits) {
            return pair.link;
        }
        if from == CLIENT || to == CLIENT { self.client } else { self.between }
    }
}

/// The name that the instrument's own end of the links has.
pub const CLIENT: &str = "client";

/// Whether a pattern means this node: its name, or the beginning of it with `*` after them. The instrument's own end,
/// [`CLIENT`], is meant by its name only.
#[must_use]
pub fn is_meant(pattern: &str, name: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(start) => name != CLIENT && name.starts_with(start),
        None => pattern == name,
    }
}

/// A directed link, or several by pattern.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LinkPair {
    /// The sending node's name, with `*` at the end for several; `client` is the instrument.
    pub from: String,
    /// The receiving node's.
    pub to: String,
    /// The effect on it.
    pub link: LinkPlan,
}

/// Changes to a link; an absent key stays as it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LinkChange {
    /// As [`LinkPlan::delay`].
    #[serde(default, with = "duration_text_option", skip_serializing_if = "Option::is_none")]
    pub delay: Option<Duration>,
    /// As [`LinkPlan::jitter`].
    #[serde(default, with = "duration_text_option", skip_serializing_if = "Option::is_none")]
    pub jitter: Option<Duration>,
    /// As [`LinkPlan::loss`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loss: Option<f64>,
    /// As [`LinkPlan::bandwidth`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bandwidth: Option<u64>,
    /// As [`LinkPlan::reorder`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reorder: Option<f64>,
}

impl LinkChange {
    /// The link with what is different put in.
    #[must_use]
    pub fn over(self, link: LinkPlan) -> LinkPlan {
        LinkPlan {
            delay: self.delay.unwrap_or(link.delay),
            jitter: self.jitter.unwrap_or(link.jitter),
            loss: self.loss.unwrap_or(link.loss),
            bandwidth: self.bandwidth.unwrap_or(link.bandwidth),
            reorder: self.reorder.unwrap_or(link.reorder),
        }
    }

    /// `delay 200ms, loss 1%`; empty if nothing is different.
    #[must_use]
    pub fn in_words(self) -> String {
        let words = [
            self.delay.map(|delay| format!("delay {}", show_duration(delay))),
            self.jitter.map(|jitter| format!("jitter {}", show_duration(jitter))),
            self.loss.map(|loss| format!("loss {}", show_percent(loss))),
            self.bandwidth.map(|bandwidth| format!("bandwidth {}", show_bandwidth(bandwidth))),
            self.reorder.map(|reorder| format!("reorder {}", show_percent(reorder))),
        ];
        words.into_iter().flatten().collect::<Vec<_>>().join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Claim: of the pairs that fit a link the last holds, a pattern never means the instrument's own end, and a
    /// change leaves what it does not name.
    #[test]
    fn the_link_that_holds() {
        let of = |ms| LinkPlan { delay: Duration::from_millis(ms), ..LinkPlan::default() };
        let pair = |from: &str, to: &str, ms| LinkPair {
            from: from.to_owned(),
            to: to.to_owned(),
            link: of(ms),
        };
        let links = LinksPlan {
            through: Through::Switch,
            between: of(1),
            client: of(2),
            pairs: vec![pair("a*", "*", 3), pair("a1", "b", 4), pair("client", "b", 5)],
        };
        for (from, to, ms) in [
            ("b", "a1", 1),
            ("a1", "c", 3),
            ("a1", "b", 4),
            ("client", "b", 5),
            ("client", "a1", 2),
            ("a1", "client", 2),
        ] {
            assert_eq!(links.link(from, to), of(ms), "{from} to {to}");
        }
        let change = LinkChange { loss: Some(0.01), ..LinkChange::default() };
        assert_eq!(change.over(of(7)), LinkPlan { loss: 0.01, ..of(7) });
        assert_eq!(change.in_words(), "loss 1%");
    }
}
