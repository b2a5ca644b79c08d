//! The stages that nodes stamp, and reading the files that they stamp them in.

use std::collections::HashMap;
use std::fs::File;
use std::io::BufReader;
use std::path::Path;
use std::time::Duration;

use atomizer_node::stamps::Stage;
use clock::WallTime;
use model::TxId;
use sampler::{Reader, What};
use sut::{NodeEvent, NodeEvents, NodeSpan, NodeStage};

use crate::known::Known;

/// The deployment, as far as its nodes' stages depend on it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stamped {
    /// One atomizer does everything.
    pub(crate) is_alone: bool,
    /// Atomizers keep a log.
    pub(crate) keeps_log: bool,
    /// Commits are seen at the archiver.
    pub(crate) is_seen_archived: bool,
}

impl Stamped {
    fn of(self) -> impl Iterator<Item = Stage> {
        Stage::ALL.into_iter().filter(move |it| *it != Stage::Sync || self.keeps_log)
    }

    /// The leg of a transaction's way that a stage ends.
    fn leg(self, stage: Stage) -> &'static str {
        match stage {
            Stage::Receive => "to the node",
            Stage::Log => "queue",
            Stage::Sync => "sync",
            Stage::Apply => "agreement",
            Stage::Block => "waiting for the block",
            Stage::Archive if self.is_seen_archived => "to the archiver",
            _ => "",
        }
    }
}

/// All stages, those of the pipeline first. Where one atomizer does everything, all that it logs is applied, all that it admits
/// is in blocks, and all that is in blocks is archived; of several, each applies, and one makes blocks.
pub(crate) fn stages(stamped: Stamped) -> Vec<NodeStage> {
    let is_alone = stamped.is_alone;
    let of = |stage: Stage| {
        let named = NodeStage::new(stage.name(), stage.label()).ending(stamped.leg(stage));
        match stage {
            Stage::Apply if is_alone => named.behind(Stage::Log.name()),
            Stage::Block if is_alone => named.behind(Stage::Admit.name()),
            Stage::Archive if is_alone => named.behind(Stage::Block.name()),
            other => match other.behind() {
                Some(before) => named.behind(before.name()),
                None => named,
            },
        }
    };
    stamped.of().map(of).collect()
}

/// The file in which a node keeps its events.
pub(crate) const FILE: &str = "events";

/// Hands over what a node stamped into its file. A key is the first eight bytes of a transaction's name.
pub(crate) fn hand_over(
    (node, path): (&str, &Path),
    stamped: Stamped,
    names: &HashMap<u64, TxId>,
    to: &mut dyn NodeEvents,
) {
    let problem = |what: String| format!("`{node}`, {}: {what}", path.display());
    let opened = File::open(path).map_err(sampler::EventFileError::Io);
    let mut reader = match opened.and_then(|file| Reader::open(BufReader::new(file))) {
        Ok(reader) => reader,
        Err(error) => return to.problem(problem(error.to_string())),
    };
    let place = |name: &str| stamped.of().position(|stage| stage.name() == name);
    let places: Vec<Option<usize>> =
        reader.head().stages.iter().map(|stage| place(&stage.name)).collect();
    let origin = reader.head().origin.unix_ns();
    let wall = |ns: i64| WallTime::from_unix_ns(origin.saturating_add(ns));
    loop {
        let each = |record: &sampler::Record| {
            let Some(Some(stage)) = places.get(usize::from(record.stage)) else { return };
            let stage = u32::try_from(*stage).expect("a few stages");
            let at = record.at.as_ns();
            match record.what {
                What::Count(count) => {
                    let took = Some(Duration::from_nanos(record.took_ns));
                    to.event(NodeEvent { stage, node, at: wall(at), count, took });
                }
                What::Span(key) => {
                    if let Some(tx) = names.get(&key) {
                        let took = i64::try_from(record.took_ns).unwrap_or(i64::MAX);
                        let from = wall(at.saturating_sub(took));
                        to.span(NodeSpan { tx: *tx, stage, node, from, to: wall(at) });
                    }
                }
            }
        };
        match reader.next(each) {
            Ok(true) => {}
            Ok(false) => break,
            Err(error) => return to.problem(problem(error.to_string())),
        }
    }
    if let Some(what) = reader.problem_so_far() {
        to.problem(problem(what));
    }
}

/// The transactions that spans can be of, by the first bytes of their names.
pub(crate) fn names(known: &Known, one_in: u64) -> HashMap<u64, TxId> {
    known.all().filter(|(short, _)| short % one_in.max(1) == 0).collect()
}
