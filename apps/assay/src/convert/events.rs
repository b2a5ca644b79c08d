//! Event files of other programs, and of services that stamp with our sampler, as a run: what their stages passed and how long
//! it took stands in a run folder that `assay report` shows and audits like any other. There is no load in it, so it has no
//! rows.

use std::fs::{self, File};
use std::io::{BufReader, BufWriter};
use std::path::{Path, PathBuf};
use std::time::Duration;

use exchange::{
    ExchangeError, SAMPLER_EVENTS, SamplerRecord, read_event_sampler, write_event_sampler,
};
use model::WallTime;
use model::facts::{DeclaredFacts, Environment, TrialFacts};
use model::node_events::{NodeEvent, NodeStage};
use model::plan::Plan;
use plan::{Input, Outside, Source};
use record::RunFolder;
use sampler::{Reader, What};

use super::Failure;

/// Before and after the name of a file.
const BEFORE: &str = "event_sampler_";
const BEHIND: &str = ".bin";

/// The stages, each after the one that all its transactions have passed.
fn stages() -> Vec<NodeStage> {
    let of = |(_, name, label): &(u8, &str, &str)| {
        let stage = NodeStage::new(name, label);
        match *name {
            "accumulate" => stage.behind("receive"),
            "log" => stage.behind("accumulate"),
            "apply" => stage.behind("log"),
            "admit" | "expire" | "spent" => stage.behind("apply"),
            "block" => stage.behind("admit"),
            _ => stage,
        }
    };
    SAMPLER_EVENTS.iter().map(of).collect()
}

/// The files of a folder, with the names of their samplers.
fn files(folder: &Path) -> Result<Vec<(String, PathBuf)>, Failure> {
    let unreadable =
        |error: std::io::Error| Failure::CouldNot(format!("reading {}: {error}", folder.display()));
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        let name = path.file_name().and_then(|it| it.to_str()).unwrap_or_default();
        let sampler = name.strip_prefix(BEFORE).and_then(|it| it.strip_suffix(BEHIND));
        if let Some(sampler) = sampler {
            found.push((sampler.to_owned(), path.clone()));
        }
    }
    found.sort();
    if found.is_empty() {
        return Err(Failure::Usage(format!(
            "there is no file {BEFORE}NAME{BEHIND} in {}; name the folder that a run of the benchmark has left",
            folder.display()
        )));
    }
    Ok(found)
}

fn read(
    path: &Path,
    each: &mut dyn FnMut(SamplerRecord),
) -> Result<exchange::SamplerNotes, Failure> {
    let name = path.display().to_string();
    let file =
        File::open(path).map_err(|source| ExchangeError::Read { name: name.clone(), source })?;
    Ok(read_event_sampler(&name, &mut BufReader::new(file), each)?)
}

/// Makes a run folder in `runs` of the files in `folder`; gives what is to be said.
pub(super) fn import(folder: &Path, runs: &Path) -> Result<Vec<String>, Failure> {
    let files = files(folder)?;
    let mut lines = Vec::new();
    for (name, path) in &files {
        let notes = read(path, &mut |_| {})?;
        if notes.unknown > 0 || notes.torn_bytes > 0 {
            lines.push(format!(
                "{name}: {} records of no known event and {} bytes of a torn one are left out",
                notes.unknown, notes.torn_bytes
            ));
        }
    }
    let each_event = |each: &mut dyn FnMut(&NodeEvent<'_>)| {
        for (name, path) in &files {
            read(path, &mut |record| {
                let stage = u32::try_from(record.event).expect("eight events");
                let took = u64::try_from(record.latency_ns).ok().map(Duration::from_nanos);
                let (at, count) = (record.end, record.count);
                each(&NodeEvent { stage, node: name, at, count, took });
            })?;
        }
        Ok(())
    };
    let run = write_run("event-sampler", folder, &stages(), each_event, runs)?;
    lines.push(format!("wrote {}; next: assay report {0}", run.path().display()));
    Ok(lines)
}

/// Writes the run folder of events; `each_event` passes all of them, as often as it is asked.
fn write_run(
    kind: &str,
    from: &Path,
    stages: &[NodeStage],
    each_event: impl Fn(&mut dyn FnMut(&NodeEvent<'_>)) -> Result<(), Failure>,
    runs: &Path,
) -> Result<RunFolder, Failure> {
    let (mut first, mut last) = (i64::MAX, i64::MIN);
    each_event(&mut |event| {
        let took = event.took.unwrap_or_default().as_nanos();
        let took = i64::try_from(took).unwrap_or(i64::MAX);
        first = first.min(event.at.unix_ns().saturating_sub(took));
        last = last.max(event.at.unix_ns());
    })?;
    if first > last {
        return Err(Failure::Usage(format!("{} holds no event", from.display())));
    }
    let started = WallTime::from_unix_ns(first);
    let length =
        Duration::from_nanos((last.saturating_sub(first).saturating_add(1)).unsigned_abs());
    let seconds = length.as_secs() + 1;
    let text = format!(
        "name = '{kind}'\nquestion = 'What did the stages pass, and does every sum come out?'\n\
         notes = 'Made of event files; there was no load.'\n[system]\nkind = '{kind}'\n[load]\nmodel = 'closed'\n\
         clients = 1\nwarmup = '0s'\nduration = '{seconds}s'\n[measure]\nledger = false\n"
    );
    let could_not = |error: record::RecordError| Failure::CouldNot(error.to_string());
    let plan = resolved(&text, kind)?;
    let run = RunFolder::create(runs, &plan.name, started).map_err(could_not)?;
    run.write_text("experiment.toml", &text).map_err(could_not)?;
    run.write_plan(&plan).map_err(could_not)?;
    run.write_environment(&Environment::default()).map_err(could_not)?;
    let trial = run.trial(&plan.settings[0].key, 0).map_err(could_not)?;
    let end = i64::try_from(seconds).unwrap_or(i64::MAX).saturating_mul(1_000_000_000);
    let mut facts = TrialFacts {
        declared: DeclaredFacts {
            setting: plan.settings[0].key.clone(),
            stages: vec!["committed".to_owned()],
            node_stages: stages.to_vec(),
            measure_end: end,
            ..DeclaredFacts::default()
        },
        ..TrialFacts::default()
    };
    trial.row_log().and_then(|log| log.close()).map_err(could_not)?;
    let mut writer = trial.node_events_writer(started, stages).map_err(could_not)?;
    each_event(&mut |event| writer.event(event))?;
    facts.after.node_events = Some(writer.close());
    (facts.load.started, facts.load.drain_end, facts.complete) = (started, end, true);
    trial.write_facts(&facts).map_err(could_not)?;
    trial.seal().map_err(could_not)?;
    Ok(run)
}

/// Makes a run folder in `runs` of what a service stamped with our sampler, whatever its stages are called.
pub(super) fn import_own(events: &Path, runs: &Path) -> Result<Vec<String>, Failure> {
    let (head, problem, spans) = read_own(events, &mut |_| {})?;
    let stages: Vec<NodeStage> =
        head.stages.iter().map(|stage| NodeStage::new(&stage.name, &stage.label)).collect();
    let origin = head.origin.unix_ns();
    let each_event = |each: &mut dyn FnMut(&NodeEvent<'_>)| {
        read_own(events, &mut |record| {
            if let What::Count(count) = record.what {
                let at = WallTime::from_unix_ns(origin.saturating_add(record.at.as_ns()));
                let took = Some(Duration::from_nanos(record.took_ns));
                let (stage, node) = (u32::from(record.stage), head.node.as_str());
                each(&NodeEvent { stage, node, at, count, took });
            }
        })?;
        Ok(())
    };
    let run = write_run("events", events, &stages, each_event, runs)?;
    let mut lines: Vec<String> = problem.into_iter().collect();
    if spans > 0 {
        lines.push(format!("{spans} records of single transactions are left out: an event file does not say which load they are of"));
    }
    lines.push(format!("wrote {}; next: assay report {0}", run.path().display()));
    Ok(lines)
}

/// Reads all records of a file of our sampler: what it says of itself, what is wrong with it, and how many records are of one
/// transaction.
fn read_own(
    events: &Path,
    each: &mut dyn FnMut(&sampler::Record),
) -> Result<(sampler::Head, Option<String>, u64), Failure> {
    let could_not = |what: String| Failure::CouldNot(format!("{}: {what}", events.display()));
    let file = File::open(events).map_err(|error| could_not(error.to_string()))?;
    let reader = Reader::open(BufReader::new(file));
    let mut reader = reader.map_err(|error| could_not(error.to_string()))?;
    let mut spans = 0;
    loop {
        let each = |record: &sampler::Record| {
            spans += u64::from(matches!(record.what, What::Span(_)));
            each(record);
        };
        if !reader.next(each).map_err(|error| could_not(error.to_string()))? {
            return Ok((reader.head().clone(), reader.problem(), spans));
        }
    }
}

fn resolved(text: &str, kind: &str) -> Result<Plan, Failure> {
    let resolved = plan::resolve(&Input {
        file: Source { name: "experiment.toml".to_owned(), text: text.to_owned() },
        outside: Outside { kinds: &[kind], ..Outside::default() },
        ..Input::default()
    });
    resolved.map(|it| it.plan).map_err(|rejected| Failure::CouldNot(rejected.to_string()))
}

/// Writes the file of events of one of our services in the published form; stages by other names, and spans, are left out.
pub(super) fn export(events: &Path, out: &Path) -> Result<Vec<String>, Failure> {
    let (head, problem, _) = read_own(events, &mut |_| {})?;
    let place = |name: &str| SAMPLER_EVENTS.iter().position(|(_, known, _)| *known == name);
    let places: Vec<Option<usize>> = head.stages.iter().map(|stage| place(&stage.name)).collect();
    if places.iter().all(Option::is_none) {
        let known = SAMPLER_EVENTS.map(|(_, name, _)| name).join(", ");
        return Err(Failure::Usage(format!(
            "expected stages of the published form ({known}), got none of them in {}; write --to run -o runs",
            events.display()
        )));
    }
    let origin = head.origin.unix_ns();
    let made = File::create(out).map_err(ExchangeError::Write)?;
    let mut made = BufWriter::new(made);
    let (mut left_out, mut failure) = (0_u64, None);
    read_own(events, &mut |record| {
        let event = places.get(usize::from(record.stage)).copied().flatten();
        let (Some(event), What::Count(count)) = (event, record.what) else {
            left_out += 1;
            return;
        };
        let end = WallTime::from_unix_ns(origin.saturating_add(record.at.as_ns()));
        let latency_ns = i64::try_from(record.took_ns).unwrap_or(i64::MAX);
        let record = SamplerRecord { event, end, latency_ns, count };
        failure = failure.take().or(write_event_sampler(&record, &mut made).err());
    })?;
    std::io::Write::flush(&mut made).map_err(ExchangeError::Write)?;
    if let Some(error) = failure {
        return Err(error.into());
    }
    let mut lines: Vec<String> = problem.into_iter().collect();
    if left_out > 0 {
        lines.push(format!(
            "{left_out} records of other stages, or of one transaction, are left out: --to run keeps all stages"
        ));
    }
    Ok(lines)
}
