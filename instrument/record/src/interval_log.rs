//! latency.hlog: an HdrHistogram V2 interval log, one tagged histogram per second and kind of latency, in
//! nanoseconds with three significant digits. Every HdrHistogram log processor reads it.
//!
//! Tags: each stage's name for its response time (mark − due), `service` for the service time of the stream's
//! final stage (mark − sent), `send_lag` for sent − due; with `probe.` before it for the probe's transactions. It holds
//! the transactions of the measured window, which are those that fell due in it, as every other figure does; an interval
//! has those of them whose mark (or sending, for `send_lag`) fell in that second after the trial's start.
//!
//! Negative times have no place in an HdrHistogram; they, and stamps outside [`SECONDS_MAX`], are left out and
//! counted in the last comment line. Nothing is clamped.
//!
//! Rows come in the order of their ends and a mark may lie long before the end, so a second is complete only
//! when no later row touches it. A first pass over the row log ([`LastFrames`]) finds out when that is; in the
//! second pass each second is written and forgotten as soon as it is complete. Memory follows the longest
//! wait of a transaction, not the length of the run, and every count is exact. Should more than
//! [`OPEN_LATENCIES_MAX`] be waiting, what there is of each open second is written and the rest of it later:
//! a second then has two intervals, which log processors add up.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::time::Duration;

use hdrhistogram::Histogram;
use hdrhistogram::serialization::V2DeflateSerializer;
use hdrhistogram::serialization::interval_log::{
    IntervalLogWriter, IntervalLogWriterBuilder, IntervalLogWriterError, Tag,
};
use model::facts::TrialFacts;
use model::{FinalStages, NO_STAMP, Row, STAGES_MAX, Stamp};

use crate::error::RecordError;
use crate::slots::{Counts, value_of};

/// The longest trial whose seconds are told apart: 46 days.
const SECONDS_MAX: i64 = 4_000_000;
/// Latencies that wait for their second to be complete: some 40 MB as a rule, 500 MB at the very worst.
const OPEN_LATENCIES_MAX: usize = 8_000_000;
const SECOND_NS: i64 = 1_000_000_000;
const SIGNIFICANT_DIGITS: u8 = 3;

/// Latencies of a stream: one for each stage, service, send lag.
const SERVICE: usize = STAGES_MAX;
const SEND_LAG: usize = STAGES_MAX + 1;
const PER_STREAM: usize = STAGES_MAX + 2;
const SERIES: usize = 2 * PER_STREAM;

/// Due times of the transactions that the log holds.
pub type Window = std::ops::Range<Stamp>;

/// The measured window of a trial; one that declares none is all window.
pub fn window(facts: &TrialFacts) -> Window {
    let declared = &facts.declared;
    if declared.measure_start == declared.measure_end {
        return Stamp::MIN..Stamp::MAX;
    }
    facts.measure_start()..facts.measure_end()
}

/// Calls `f(series, stamp, latency)` for every latency of a row that belongs to the window.
fn for_each_latency(
    row: &Row,
    final_stages: FinalStages,
    window: &Window,
    mut f: impl FnMut(usize, i64, i64),
) {
    if !window.contains(&row.due) {
        return;
    }
    let first = if row.stream == 0 { 0 } else { PER_STREAM };
    for (stage, &mark) in row.marks.iter().enumerate() {
        if mark != NO_STAMP {
            f(first + stage, mark, mark.wrapping_sub(row.due));
        }
    }
    if row.sent != NO_STAMP {
        f(first + SEND_LAG, row.sent, row.sent.wrapping_sub(row.due));
        let mark = row.marks[final_stages.of(row.stream)];
        if mark != NO_STAMP {
            f(first + SERVICE, mark, mark.wrapping_sub(row.sent));
        }
    }
}

/// The second that a latency belongs to, if it has a place in the log.
fn second_of(stamp: i64, latency: i64) -> Option<usize> {
    let second = stamp.div_euclid(SECOND_NS);
    let fits = (0..SECONDS_MAX).contains(&second) && latency >= 0;
    fits.then(|| usize::try_from(second).expect("it is in 0..SECONDS_MAX"))
}

/// The first pass: for each second, the last frame of the row log that touches it.
#[derive(Debug, Default)]
pub struct LastFrames {
    /// Frame index by second; at most `SECONDS_MAX` entries, 16 MB.
    last: Vec<u32>,
    frame: u32,
    stages_used: usize,
}

impl LastFrames {
    /// Takes the next frame.
    pub fn frame(&mut self, rows: &[Row], final_stages: FinalStages, window: &Window) {
        for row in rows {
            for_each_latency(row, final_stages, window, |series, stamp, latency| {
                let Some(second) = second_of(stamp, latency) else { return };
                if second >= self.last.len() {
                    self.last.resize(second + 1, 0);
                }
                self.last[second] = self.frame;
                let stage = series % PER_STREAM;
                if stage < STAGES_MAX {
                    self.stages_used = self.stages_used.max(stage + 1);
                }
            });
            // A mark without a place in the log still needs its column.
            for (stage, mark) in row.marks.iter().enumerate().skip(self.stages_used) {
                if *mark != NO_STAMP {
                    self.stages_used = stage + 1;
                }
            }
        }
        // Frames beyond the range share the last number: their seconds wait for the end of the log.
        self.frame = self.frame.saturating_add(1);
    }

    /// One more than the highest stage that any row reached.
    pub const fn stages_used(&self) -> usize {
        self.stages_used
    }
}

/// The second pass: counts rows and gives out seconds as they become complete.
#[derive(Debug)]
pub struct OpenSeconds {
    last_frames: LastFrames,
    final_stages: FinalStages,
    window: Window,
    frame: u32,
    open: BTreeMap<usize, [Counts; SERIES]>,
    open_latencies: usize,
    left_out: u64,
}

impl OpenSeconds {
    /// Starts the second pass over the same frames.
    pub const fn new(last_frames: LastFrames, final_stages: FinalStages, window: Window) -> Self {
        let open = BTreeMap::new();
        Self { last_frames, final_stages, window, frame: 0, open, open_latencies: 0, left_out: 0 }
    }

    /// Takes the next frame.
    pub fn frame(&mut self, rows: &[Row]) {
        for row in rows {
            for_each_latency(
                row,
                self.final_stages,
                &self.window,
                |series, stamp, latency| match (second_of(stamp, latency), u64::try_from(latency)) {
                    (Some(second), Ok(latency)) => {
                        self.open.entry(second).or_default()[series].add(latency);
                        self.open_latencies += 1;
                    }
                    _ => self.left_out += 1,
                },
            );
        }
        self.frame = self.frame.saturating_add(1);
    }

    /// The earliest second, if no later frame touches it (or if the log has ended).
    fn take_complete(&mut self, is_at_end: bool) -> Option<(usize, [Counts; SERIES])> {
        let entry = self.open.first_entry()?;
        let is_complete = self.last_frames.last[*entry.key()] < self.frame;
        if !is_complete && !is_at_end {
            return None;
        }
        let (second, series) = entry.remove_entry();
        self.open_latencies -= series.iter().map(|counts| counts.total).sum::<usize>();
        Some((second, series))
    }
}

/// Writes the log. `W` is where it goes.
pub struct IntervalLog<'a, W: Write> {
    path: &'a Path,
    log: IntervalLogWriter<'a, 'a, W, V2DeflateSerializer>,
    tags: Vec<String>,
    histogram: Histogram<u64>,
}

impl<'a, W: Write> IntervalLog<'a, W> {
    /// Writes the head of the log.
    pub fn start(
        path: &'a Path,
        out: &'a mut W,
        serializer: &'a mut V2DeflateSerializer,
        stages: &[String],
        started_unix_ns: i64,
    ) -> Result<Self, RecordError> {
        let started = Duration::from_nanos(u64::try_from(started_unix_ns).unwrap_or(0));
        let started = std::time::UNIX_EPOCH + started;
        let log = IntervalLogWriterBuilder::new()
            .add_comment(
                "[Assay: latencies in nanoseconds, by the second in which the stage was reached]",
            )
            .with_start_time(started)
            .with_base_time(started)
            .with_max_value_divisor(1e6)
            .begin_log_with(out, serializer)
            .map_err(|error| RecordError::writing(path, error))?;
        let histogram = Histogram::new(SIGNIFICANT_DIGITS).expect("three digits are allowed");
        Ok(Self { path, log, tags: tags(stages), histogram })
    }

    /// Writes the seconds that are complete; all that are left if the row log has ended.
    pub fn write(&mut self, seconds: &mut OpenSeconds, is_at_end: bool) -> Result<(), RecordError> {
        let write_all = is_at_end || seconds.open_latencies > OPEN_LATENCIES_MAX;
        while let Some((second, series)) = seconds.take_complete(write_all) {
            for (counts, tag) in series.iter().zip(&self.tags) {
                if counts.total > 0 {
                    fill(&mut self.histogram, counts);
                    let tag = Tag::new(tag).expect("`tags` leaves no character that it refuses");
                    let start = Duration::from_secs(second as u64);
                    self.log
                        .write_histogram(&self.histogram, start, Duration::from_secs(1), Some(tag))
                        .map_err(|error| failure(self.path, error))?;
                }
            }
        }
        Ok(())
    }

    /// Writes the last line.
    pub fn finish(mut self, seconds: &OpenSeconds) -> Result<(), RecordError> {
        assert!(seconds.open.is_empty(), "every second was written");
        let left_out = seconds.left_out;
        self.log
            .write_comment(&format!(
                "[End: {left_out} latencies left out, negative or out of range]"
            ))
            .map_err(|error| RecordError::writing(self.path, error))
    }
}

fn failure<E: std::fmt::Display>(path: &Path, error: IntervalLogWriterError<E>) -> RecordError {
    let io = match error {
        IntervalLogWriterError::IoError(error) => error,
        IntervalLogWriterError::SerializeError(error) => std::io::Error::other(error.to_string()),
    };
    RecordError::writing(path, io)
}

fn fill(histogram: &mut Histogram<u64>, counts: &Counts) {
    histogram.reset();
    for (slot, count) in counts.slots() {
        histogram
            .record_n(value_of(slot), u64::from(count))
            .expect("a histogram that resizes itself takes every value");
    }
}

/// A tag for each series. Commas, spaces and line breaks would end a tag and become `_`.
fn tags(stages: &[String]) -> Vec<String> {
    let mut names: Vec<String> = (0..STAGES_MAX)
        .map(|index| match stages.get(index) {
            Some(name) if name == "service" || name == "send_lag" => format!("stage.{name}"),
            Some(name) => name.replace([',', ' ', '\r', '\n'], "_"),
            None => format!("stage{index}"),
        })
        .collect();
    names.extend(["service".to_owned(), "send_lag".to_owned()]);
    let probe: Vec<_> = names.iter().map(|name| format!("probe.{name}")).collect();
    names.extend(probe);
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Claim: a second that had to be written before it was complete gets the rest in a second interval, no
    /// latency is lost or counted twice, and a negative one is left out and counted.
    #[test]
    fn a_second_written_early_is_completed_later() {
        let row = |end: i64| {
            let mut row = crate::row_code::BEFORE_FIRST;
            (row.sent, row.marks[0], row.end) = (0, end, end);
            row
        };
        let frames = [[row(1_000), row(5 * SECOND_NS)], [row(2_000), row(-1)]];
        let mut last_frames = LastFrames::default();
        let window = Stamp::MIN..Stamp::MAX;
        frames.iter().for_each(|frame| last_frames.frame(frame, FinalStages::all(0), &window));
        let mut seconds = OpenSeconds::new(last_frames, FinalStages::all(0), window);
        let (mut out, mut serializer) = (Vec::new(), V2DeflateSerializer::new());
        let path = Path::new("x.hlog");
        let mut log = IntervalLog::start(path, &mut out, &mut serializer, &[], 0).unwrap();
        for (index, frame) in frames.iter().enumerate() {
            seconds.frame(frame);
            log.write(&mut seconds, false).unwrap();
            // The second frame still touches second 0, so nothing was complete after the first.
            assert_eq!(seconds.open.is_empty(), index == 1);
            log.write(&mut seconds, true).unwrap();
            assert_eq!(seconds.open_latencies, 0);
        }
        log.finish(&seconds).unwrap();
        let text = String::from_utf8(out).unwrap();
        let of = |start: &str| text.lines().filter(|line| line.starts_with(start)).count();
        assert_eq!((of("Tag=stage0,0.000,"), of("Tag=stage0,5.000,")), (2, 1), "{text}");
        assert_eq!((of("Tag=service,"), of("Tag=send_lag,0.000,")), (3, 2), "{text}");
        assert!(text.contains("[End: 2 latencies left out"), "{text}");
    }

    /// Claim: the log holds what fell due in the measured window, with the answers that came after its end, and neither
    /// the warm-up nor what fell due in the drain; a trial that declares no window is all window.
    #[test]
    fn only_the_measured_window() {
        let mut facts = TrialFacts::default();
        assert_eq!(window(&facts), Stamp::MIN..Stamp::MAX);
        (facts.declared.measure_start, facts.declared.measure_end) = (SECOND_NS, 3 * SECOND_NS);
        let window = window(&facts);
        assert_eq!(window, SECOND_NS..3 * SECOND_NS);
        let row = |due: i64| {
            let mut row = crate::row_code::BEFORE_FIRST;
            let end = due + SECOND_NS;
            (row.due, row.sent, row.marks[0], row.end) = (due, due, end, end);
            row
        };
        let frame = [0, SECOND_NS, 3 * SECOND_NS - 1, 3 * SECOND_NS].map(row);
        let mut last_frames = LastFrames::default();
        last_frames.frame(&frame, FinalStages::all(0), &window);
        let mut seconds = OpenSeconds::new(last_frames, FinalStages::all(0), window);
        seconds.frame(&frame);
        assert_eq!(seconds.open_latencies, 2 * 3, "response, service and lag of two");
        assert_eq!(seconds.left_out, 0);
    }

    /// Claim: service time is to the final stage of a row's own stream, and no stage of another's.
    #[test]
    fn service_is_to_the_streams_own_end() {
        let ends = FinalStages { load: 0, probe: 1 };
        let mut row = Row { due: 0, sent: 1, end: 30, ..Row::EMPTY };
        (row.marks[0], row.marks[1]) = (10, 30);
        let services = |row: &Row| {
            let mut found = Vec::new();
            for_each_latency(row, ends, &(0..1), |series, _, latency| {
                if series % PER_STREAM == SERVICE {
                    found.push((series / PER_STREAM, latency));
                }
            });
            found
        };
        assert_eq!(services(&row), [(0, 9)]);
        assert_eq!(services(&Row { stream: 1, ..row }), [(1, 29)]);
    }
}
