//! Was the trial carried out to its end, and is its record whole?

use model::facts::NodeFacts;
use model::result::{Family, Voided};

use super::evidence::Evidence;
use super::finding::{ALL_OF_ROWS, Audit, Finding, failed, ok, warn};

pub(super) const AUDIT: Audit = Audit {
    name: "complete",
    question: "Was the trial carried out to its end, and is its record whole?",
    voids: &ALL_OF_ROWS,
    figures: &[],
};

pub(super) fn audit(evidence: &Evidence<'_>) -> Finding {
    let facts = evidence.trial.facts;
    if evidence.trial.grid.slots == 0 {
        return failed("the trial has no measured window: it ended before its warm-up did");
    }
    // Of a record of earlier versions it is not known which were ended by a fault.
    let is_without_faults = evidence.trial.setting.faults.is_empty();
    let by_itself = |node: &&NodeFacts| node.is_unasked || is_without_faults;
    let ended = facts.after.nodes.iter().filter(|it| !it.ended.is_empty()).find(by_itself);
    if !facts.complete {
        return failed(format!(
            "the run ended without closing this trial (a crash, a kill, a full disk): it shows the part that was \
             recorded{}",
            lost_tail(evidence.dropped_bytes)
        ));
    }
    if evidence.dropped_bytes > 0 {
        let said = format!("the record is damaged{}", lost_tail(evidence.dropped_bytes));
        return failed(said).voiding(of_fates_too());
    }
    let mut lost = facts.load.agents.iter().filter(|agent| !agent.lost.is_empty());
    if let Some(agent) = lost.next() {
        let share = match agent.not_offered {
            Some(count) => format!("{count} transactions of its part were not offered"),
            None => "what of its part was not offered is not known".to_owned(),
        };
        let more = match lost.count() {
            0 => String::new(),
            more => format!(", and {more} more agents were lost"),
        };
        let said = format!("agent {} was lost ({}): {share}{more}", agent.name, agent.lost);
        return failed(said).voiding(of_fates_too());
    }
    if !facts.interrupted().is_empty() {
        #[expect(clippy::cast_precision_loss, reason = "seconds, for people")]
        let measured = evidence.result.window_ns as f64 / 1e9;
        let planned = evidence.trial.setting.load.duration.as_secs_f64();
        let said =
            format!("{}: {measured:.1} s of {planned:.1} s were measured", facts.interrupted());
        return if evidence.figures.flow.due_in_window == 0 { failed(said) } else { warn(said) };
    }
    let faults = &evidence.result.faults;
    let failed_ones: Vec<_> = faults.iter().filter(|fault| !fault.happened).collect();
    if let [first, rest @ ..] = failed_ones.as_slice() {
        let more =
            if rest.is_empty() { String::new() } else { format!(", and {} more", rest.len()) };
        return warn(format!(
            "the fault {} {} did not take place ({}){more}",
            first.kind,
            first.node,
            first.in_words()
        ));
    }
    let met_nothing: Vec<_> =
        faults.iter().filter_map(|it| it.met_nothing().map(|why| (it, why))).collect();
    if let [(first, why), rest @ ..] = met_nothing.as_slice() {
        let more = match rest.len() {
            0 => String::new(),
            more => format!(", and {more} more"),
        };
        return warn(format!(
            "the fault {} {} tested nothing: {why} when it began{more}; raise the load, or leave out think times",
            first.kind, first.node
        ));
    }
    match ended {
        Some(node) => warn(format!(
            "node {} ended during the trial ({}), which the experiment did not ask for",
            node.name, node.ended
        )),
        None => ok("the trial ran to its end and its record is whole"),
    }
}

/// A ledger seems to hold what was never submitted where rows of it are missing.
fn of_fates_too() -> impl Iterator<Item = Voided> {
    ALL_OF_ROWS.into_iter().chain([Voided::either(Family::Fates)])
}

fn lost_tail(bytes: u64) -> String {
    if bytes == 0 {
        String::new()
    } else {
        format!("; {bytes} bytes at the end of its rows could not be read")
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::time::Duration;

    use model::fault::{FaultDetail, FaultEvent, FaultPhase};
    use model::plan::FaultPlan;
    use model::result::AuditOutcome;

    use super::NodeFacts;
    use crate::audits::guilty::Guilt;
    use crate::testing::{Trial, audit, fault_event};

    pub(in crate::audits) const GUILTY: &[Guilt] =
        &[("the record ends early", |trial| trial.facts.complete = false)];

    /// Claim: a lost agent fails the trial by name, with how much of its part was not offered, also where that is not known.
    #[test]
    fn a_lost_agent_is_named() {
        for (not_offered, said) in [(Some(250), "250 transactions"), (None, "is not known")] {
            let mut trial = Trial::clean();
            trial.facts.load.agents = vec![model::facts::AgentFacts {
                name: "b-7".to_owned(),
                lost: "silent for 11 s until the end of the run".to_owned(),
                not_offered,
                ..Default::default()
            }];
            let result = trial.result();
            let found = audit(&result, "complete");
            assert_eq!(found.outcome, AuditOutcome::Failed);
            assert!(found.detail.contains("b-7") && found.detail.contains(said), "{found:?}");
        }
    }

    /// Claim: a node that ended by itself is said, whatever fault was planned for another; one that a fault ended is not.
    #[test]
    fn a_node_that_ended_by_itself() {
        let of = |is_unasked| {
            let mut trial = Trial::clean();
            let (name, ended) = ("b".to_owned(), "killed by SIGSEGV".to_owned());
            trial.facts.after.nodes =
                vec![NodeFacts { name, ended, is_unasked, ..NodeFacts::default() }];
            trial.setting.faults =
                vec![FaultPlan::new("pause", &["a"], Duration::ZERO, Duration::ZERO)];
            let result = trial.result();
            let found = audit(&result, "complete");
            (found.outcome, found.detail.contains("node b ended during the trial"))
        };
        assert_eq!(of(true), (AuditOutcome::Warn, true));
        assert_eq!(of(false), (AuditOutcome::Ok, false));
    }

    /// Claim: of a trial that lost an agent, whose rows are not all there, nothing that the ledger holds is held against the
    /// system.
    #[test]
    fn a_lost_agent_and_a_ledger() {
        let mut trial = Trial::clean();
        let entry =
            |(at, row): (u64, &model::Row)| model::facts::LedgerEntry::new(at, row.tx, true);
        trial.entries = Some((0..).zip(&trial.rows).map(entry).collect());
        trial.rows.truncate(trial.rows.len() - 100);
        trial.facts.load.agents = vec![model::facts::AgentFacts {
            name: "b-7".to_owned(),
            lost: "silent".to_owned(),
            ..Default::default()
        }];
        let result = trial.result();
        assert!(result.fates.as_ref().is_some_and(|fates| fates.phantom == 100));
        assert_eq!(result.verdict, model::result::Verdict::Invalid, "{}", result.reason);
    }

    /// Claim: a fault that was planned and did not take place is said: what was asked for is not what was measured.
    #[test]
    fn a_fault_that_did_not_take_place() {
        let mut trial = Trial::clean();
        let failed = |fault, node| FaultEvent {
            detail: FaultDetail::Why { text: "it has ended".into() },
            ..fault_event(1, FaultPhase::Failed, (fault, 0, "pause", node))
        };
        trial.faults = vec![failed(0, "a"), failed(1, "b")];
        let result = trial.result();
        let found = audit(&result, "complete");
        assert_eq!(found.outcome, AuditOutcome::Warn);
        assert_eq!(found.detail, "the fault pause a did not take place (it has ended), and 1 more");
    }

    /// Claim: a process that ended while nothing was under way is said: nothing that a crash can break was broken. One that
    /// ended under load, and a pause, are not.
    #[test]
    fn a_fault_that_met_nothing() {
        let of = |kind, ms: i64, detail| {
            let mut trial = Trial::clean();
            let event = fault_event(ms * 1_000_000, FaultPhase::Start, (0, 0, kind, "a"));
            trial.faults = vec![FaultEvent { detail, ..event }];
            trial.setting.faults =
                vec![FaultPlan::new(kind, &["a"], Duration::ZERO, Duration::ZERO)];
            let result = trial.result();
            let found = audit(&result, "complete");
            (found.outcome, found.detail.clone(), result.faults[0].in_flight)
        };
        let cut = |lost_bytes| FaultDetail::PowerCut { lost_bytes, kept_bytes: 0, lost_names: 0 };
        let (outcome, detail, in_flight) = of("kill", 600_000, FaultDetail::Killed);
        assert_eq!((outcome, in_flight), (AuditOutcome::Warn, Some(0)), "{detail}");
        assert!(
            detail.starts_with("the fault kill a tested nothing: no transaction was in flight")
        );
        let (outcome, detail, _) = of("power", 5_000, cut(0));
        assert_eq!(outcome, AuditOutcome::Warn, "{detail}");
        assert!(detail.contains("everything on its disk was synced"), "{detail}");
        let under_load =
            [("kill", FaultDetail::Killed), ("power", cut(512)), ("pause", FaultDetail::Nothing)];
        for (kind, began) in under_load {
            let (outcome, detail, in_flight) = of(kind, 5_000, began);
            assert_eq!(outcome, AuditOutcome::Ok, "{kind}: {detail}");
            assert!(in_flight > Some(0), "{kind}");
        }
    }

    /// Claim: a crash fails, a clean interruption warns with the measured part, an interruption before the window fails.
    #[test]
    fn crash_and_interruption() {
        let mut crashed = Trial::clean();
        crashed.facts.complete = false;
        assert_eq!(audit(&crashed.result(), "complete").outcome, AuditOutcome::Failed);

        let mut stopped = Trial::clean();
        stopped.facts.load.interrupted = "stopped by Ctrl-C".into();
        stopped.rows.truncate(4_000);
        let result = stopped.result();
        let found = audit(&result, "complete");
        assert_eq!(found.outcome, AuditOutcome::Warn);
        assert!(found.detail.contains("4.0 s of 10.0 s"), "{}", found.detail);
        assert!((result.rates.offered_per_s - 1_000.0).abs() < 0.5, "{:?}", result.rates);

        let mut early = Trial::clean();
        early.facts.load.interrupted = "stopped by Ctrl-C".into();
        early.rows.clear();
        assert_eq!(audit(&early.result(), "complete").outcome, AuditOutcome::Failed);
    }
}
