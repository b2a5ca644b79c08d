//! `assay serve echo …`: options as words. One table says what there is; help and parser read it.

use std::path::PathBuf;
use std::time::Duration;

use crate::faults::{Lie, Slow, Window};
use crate::limiter::Limit;
use crate::options::{CommitWay, Options};
use crate::queue::Distribution;

/// The command line, read.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Command {
    pub(crate) options: Options,
    pub(crate) listen: Option<String>,
    pub(crate) http: Option<String>,
    pub(crate) metrics: Option<String>,
    pub(crate) ledger: Option<PathBuf>,
    pub(crate) confess: Option<PathBuf>,
    pub(crate) events: Option<PathBuf>,
    pub(crate) parent_pipe: bool,
    pub(crate) again: bool,
    pub(crate) help: bool,
}

/// An option: its name, its value in help (empty: none is taken), what it does, and how it is read.
type Entry =
    (&'static str, &'static str, &'static str, fn(&mut Command, &str) -> Result<(), String>);

const TABLE: &[Entry] = &[
    ("listen", "ADDRESS", "binary frames here (default 127.0.0.1:0, any free port)", |c, v| {
        text(&mut c.listen, v)
    }),
    ("http", "ADDRESS", "HTTP/1.1 here as well", |c, v| text(&mut c.http, v)),
    ("metrics", "ADDRESS", "what it says of itself here, at /metrics, for Prometheus", |c, v| {
        text(&mut c.metrics, v)
    }),
    ("servers", "N", "servers of the queue (1)", |c, v| number(&mut c.options.servers, v, 1)),
    ("service", "TIME", "mean service time, such as 1ms (0: answered at once)", |c, v| {
        time(&mut c.options.service, v)
    }),
    ("distribution", "WORD", "of service times: constant or exponential (constant)", distribution),
    ("queue-max", "N", "the most that wait; more are answered as overloaded (no bound)", |c, v| {
        number(c.options.queue_max.get_or_insert(0), v, 0)
    }),
    ("seed", "N", "what service times and lies are drawn from (1)", |c, v| {
        number(&mut c.options.seed, v, 0)
    }),
    ("commit", "WORD", "how commits are told: answer, observer or poll (answer)", commit),
    (
        "stages",
        "N",
        "1: committed; 2: accepted, committed; 3: accepted, started, committed (1)",
        stages,
    ),
    ("ledger", "FILE", "store what is committed there; the file must not exist", |c, v| {
        path(&mut c.ledger, v)
    }),
    ("sync", "", "have it on the disk before it is acknowledged", |c, _| {
        flag(&mut c.options.syncs)
    }),
    ("batches", "", "take several transactions in one frame, too", |c, _| {
        flag(&mut c.options.batches)
    }),
    (
        "ordered",
        "",
        "refuse as conflict what comes out of its client's order, or on another connection than its client is on",
        |c, _| flag(&mut c.options.ordered),
    ),
    ("per-frame", "TIME", "what each frame with transactions costs a server (0)", |c, v| {
        time(&mut c.options.per_frame, v)
    }),
    ("frames-max", "N", "the most batches outstanding on a connection (0: no bound)", |c, v| {
        number(&mut c.options.frames_max, v, 0)
    }),
    ("again", "", "started again: the files go on where they are", |c, _| flag(&mut c.again)),
    ("parent-pipe", "", "end when standard input ends", |c, _| flag(&mut c.parent_pipe)),
    ("confess", "FILE", "write down what was lied about, for tests", |c, v| {
        path(&mut c.confess, v)
    }),
    (
        "events",
        "FILE",
        "stamp each stage of each transaction there; the file must not exist",
        |c, v| path(&mut c.events, v),
    ),
    (
        "faults-from",
        "WORD",
        "fault times count from the first transaction or the start (first)",
        faults_from,
    ),
    ("stall", "AT+FOR", "the whole server stands still, such as 5s+1s; repeatable", |c, v| {
        c.options.faults.stalls.push(window(v)?);
        Ok(())
    }),
    ("store-stall", "AT+FOR", "nothing is stored, all else goes on; repeatable", |c, v| {
        c.options.faults.store_stalls.push(window(v)?);
        Ok(())
    }),
    ("slow", "AT+FOR*N", "service takes N times as long, such as 5s+1s*10; repeatable", slow),
    ("drift", "PERCENT", "service time grows by so much of its beginning each second", drift),
    ("limit-rate", "N", "token bucket: tokens a second", |c, v| number(&mut limit(c).rate, v, 0.0)),
    ("limit-burst", "N", "token bucket: the most tokens (one second's)", |c, v| {
        number(&mut limit(c).burst, v, 0.0)
    }),
    ("limit-backoff", "TIME", "everything is refused for so long after a refusal (0)", |c, v| {
        time(&mut limit(c).backoff, v)
    }),
    ("refuse", "KIND", "always answer this kind as invalid, by its number", |c, v| {
        number(c.options.faults.refused_kind.get_or_insert(0), v, 0)
    }),
    ("logs-refused", "", "what is refused as invalid is logged, as refused", |c, _| {
        flag(&mut c.options.faults.logs_refused)
    }),
    ("logs-reads", "", "what reads is stored, too", |c, _| flag(&mut c.options.faults.logs_reads)),
    (
        "reads",
        "KIND",
        "this kind reads the register that the others write, by its number; payloads begin with the key",
        |c, v| number(c.options.reads.get_or_insert(0), v, 0),
    ),
    (
        "reorder-by",
        "N",
        "how many later commits a reordered one is stored behind (1000)",
        |c, v| number(&mut c.options.faults.reorder_by, v, 1),
    ),
    ("late-by", "TIME", "how late a late answer is (60s)", |c, v| {
        time(&mut c.options.faults.late_by, v)
    }),
    ("help", "", "this text", |c, _| flag(&mut c.help)),
];

/// Reads the words behind `assay serve echo`.
pub(crate) fn parse(words: &[String]) -> Result<Command, String> {
    let mut command = Command::default();
    let mut rest = words.iter();
    while let Some(word) = rest.next() {
        let name = match word.as_str() {
            "-h" => "help",
            word => word.strip_prefix("--").ok_or_else(|| unknown(word))?,
        };
        let (name, attached) =
            name.split_once('=').map_or((name, None), |(name, value)| (name, Some(value)));
        let mut value = |is_taken: bool| match (is_taken, attached) {
            (false, None) => Ok(""),
            (false, Some(_)) => Err(format!("--{name} takes no value")),
            (true, Some(value)) => Ok(value),
            (true, None) => rest
                .next()
                .map(String::as_str)
                .ok_or_else(|| format!("--{name} needs a value; see --help")),
        };
        let said = |why: String| format!("--{name}: {why}");
        if let Some(lie) = Lie::ALL.into_iter().find(|lie| lie.word() == name) {
            let every = &mut command.options.faults.every[lie as usize];
            number(every, value(true)?, 1).map_err(said)?;
        } else if let Some((_, hint, _, read)) = TABLE.iter().find(|entry| entry.0 == name) {
            read(&mut command, value(!hint.is_empty())?).map_err(said)?;
        } else {
            return Err(unknown(word));
        }
    }
    finish(command)
}

/// What depends on several options.
fn finish(mut command: Command) -> Result<Command, String> {
    if let Some(limit) = &mut command.options.faults.limit {
        if limit.rate <= 0.0 {
            return Err("a limiter needs --limit-rate above 0".to_owned());
        }
        if limit.burst <= 0.0 {
            limit.burst = limit.rate.max(1.0);
        }
    }
    let is_plain = command.options.stages == 1 && command.options.commit == CommitWay::Answer;
    let logs_refused = command.options.faults.logs_refused;
    if command.options.batches && (!is_plain || command.options.reads.is_some() || logs_refused) {
        let why = "--batches goes with one stage that the answer tells and with writes alone: leave --stages, --commit, --reads and --logs-refused out";
        return Err(why.to_owned());
    }
    if command.options.ordered && command.options.batches {
        let why = "--ordered and --batches: a submission in a batch does not say whose it is; leave one of the two out";
        return Err(why.to_owned());
    }
    let is_unordered = command.options.faults.every[Lie::Unordered as usize] > 0;
    if is_unordered && command.options.stages == 1 {
        return Err("--unordered needs --stages 2 or 3: one cannot be out of order".to_owned());
    }
    Ok(command)
}

/// The text of `--help`.
pub(crate) fn help() -> String {
    let mut text = "assay serve echo [OPTIONS]\n\nA queue whose theory is known, with a ledger, that lies on request. Serves until SIGTERM or SIGINT.\nPrints one line `ready frames=ADDRESS …` when it serves.\n\nOptions\n".to_owned();
    for (name, hint, what, _) in TABLE {
        text.push_str(&format!("  {:<24} {what}\n", format!("--{name} {hint}")));
    }
    text.push_str(
        "\nLies, each of one commit (of `stale`: one read) in N; the first is chosen by the seed\n",
    );
    for lie in Lie::ALL {
        text.push_str(&format!("  {:<24} {}\n", format!("--{} N", lie.word()), lie.summary()));
    }
    text.push_str("\nExamples\n  assay serve echo --http 8080\n  assay serve echo --service 1ms --distribution exponential --ledger /tmp/ledger --lose 100000\n");
    text
}

fn unknown(word: &str) -> String {
    format!("`{word}` is not an option of this server; see --help")
}

fn flag(to: &mut bool) -> Result<(), String> {
    *to = true;
    Ok(())
}

fn text(to: &mut Option<String>, value: &str) -> Result<(), String> {
    *to = Some(value.to_owned());
    Ok(())
}

fn path(to: &mut Option<PathBuf>, value: &str) -> Result<(), String> {
    *to = Some(PathBuf::from(value));
    Ok(())
}

fn number<T: std::str::FromStr + PartialOrd + std::fmt::Display>(
    to: &mut T,
    value: &str,
    min: T,
) -> Result<(), String> {
    let number: T = value.parse().map_err(|_| format!("`{value}` is not such a number"))?;
    // Written so that a NaN is refused too.
    if number >= min {
        *to = number;
        return Ok(());
    }
    Err(format!("`{value}` is below {min}"))
}

fn time(to: &mut Duration, value: &str) -> Result<(), String> {
    *to = duration(value)?;
    Ok(())
}

/// A number with a unit: `250us`, `1.5ms`, `30s`, `2m`.
fn duration(text: &str) -> Result<Duration, String> {
    if text == "0" {
        return Ok(Duration::ZERO);
    }
    let refused =
        || format!("`{text}` is not a time; write a number with a unit, such as 250us or 30s");
    let split = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).ok_or_else(refused)?;
    let (digits, unit) = text.split_at(split);
    let unit_ns = match unit {
        "ns" => 1.0,
        "us" | "µs" => 1e3,
        "ms" => 1e6,
        "s" => 1e9,
        "m" => 60e9,
        "h" => 3600e9,
        _ => return Err(refused()),
    };
    let amount: f64 = digits.parse().map_err(|_| refused())?;
    Duration::try_from_secs_f64(amount * unit_ns / 1e9).map_err(|_| refused())
}

fn window(text: &str) -> Result<Window, String> {
    let (at, length) =
        text.split_once('+').ok_or_else(|| format!("`{text}` is not AT+FOR, such as 5s+1s"))?;
    Ok(Window { at: duration(at)?, length: duration(length)? })
}

fn slow(command: &mut Command, text: &str) -> Result<(), String> {
    let (span, factor) = text
        .split_once('*')
        .ok_or_else(|| format!("`{text}` is not AT+FOR*N, such as 5s+1s*10"))?;
    let mut slow = Slow { window: window(span)?, factor: 1.0 };
    number(&mut slow.factor, factor, 0.0)?;
    command.options.faults.slows.push(slow);
    Ok(())
}

fn drift(command: &mut Command, text: &str) -> Result<(), String> {
    let mut percent = 0.0;
    number(&mut percent, text.strip_suffix('%').unwrap_or(text), 0.0)?;
    command.options.faults.drift = percent / 100.0;
    Ok(())
}

fn limit(command: &mut Command) -> &mut Limit {
    let none = Limit { rate: 0.0, burst: 0.0, backoff: Duration::ZERO };
    command.options.faults.limit.get_or_insert(none)
}

fn distribution(command: &mut Command, text: &str) -> Result<(), String> {
    command.options.distribution = match text {
        "constant" => Distribution::Constant,
        "exponential" => Distribution::Exponential,
        _ => return Err(format!("`{text}` is neither constant nor exponential")),
    };
    Ok(())
}

fn commit(command: &mut Command, text: &str) -> Result<(), String> {
    let ways = [CommitWay::Answer, CommitWay::Observer, CommitWay::Poll];
    let way = ways.into_iter().find(|way| way.word() == text);
    command.options.commit =
        way.ok_or_else(|| format!("`{text}` is none of answer, observer, poll"))?;
    Ok(())
}

fn stages(command: &mut Command, text: &str) -> Result<(), String> {
    command.options.stages = match text {
        "1" => 1,
        "2" => 2,
        "3" => 3,
        _ => return Err(format!("`{text}` is none of 1, 2, 3")),
    };
    Ok(())
}

fn faults_from(command: &mut Command, text: &str) -> Result<(), String> {
    command.options.faults.from_start = match text {
        "first" => false,
        "start" => true,
        _ => return Err(format!("`{text}` is neither first nor start")),
    };
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<Command, String> {
        parse(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    /// Claim: every option of the help text is read, with its value attached or behind it.
    #[test]
    fn options() {
        assert!(read("--ordered").unwrap().options.ordered);
        let batches = read("--batches --per-frame 200us --frames-max 1").unwrap().options;
        assert!(batches.batches && batches.per_frame == Duration::from_micros(200));
        assert_eq!(batches.frames_max, 1);
        let command = read("--listen 4000 --http=127.0.0.1:1 --metrics 4001 --servers 4 --service 1.5ms --distribution exponential --queue-max 10 --seed 7 --commit poll --stages 2 --ledger /l --sync --confess /c --again --parent-pipe --faults-from start --stall 5s+1s --stall 9s+100ms --slow 1s+2s*10 --drift 2% --limit-rate 50 --limit-burst 3000 --limit-backoff 30s --refuse 2 --logs-refused --logs-reads --reads 1 --stale 9 --reorder-by 5 --late-by 3s --lose 100 --unordered=7").unwrap();
        let options = &command.options;
        assert_eq!((options.servers, options.service), (4, Duration::from_micros(1500)));
        assert_eq!((options.queue_max, options.seed, options.stages), (Some(10), 7, 2));
        assert_eq!(options.commit, CommitWay::Poll);
        let faults = &options.faults;
        assert_eq!(faults.stalls[1].length, Duration::from_millis(100));
        assert_eq!((faults.slows[0].factor, faults.drift), (10.0, 0.02));
        assert_eq!(faults.limit.unwrap().burst, 3000.0);
        assert_eq!(faults.every[Lie::Lose as usize], 100);
        assert_eq!(faults.every[Lie::Unordered as usize], 7);
        assert_eq!((faults.every[Lie::Stale as usize], options.reads), (9, Some(1)));
        assert!(faults.logs_refused && faults.logs_reads);
        assert!(options.syncs && command.again && command.parent_pipe && faults.from_start);
        for (name, ..) in TABLE {
            assert!(help().contains(&format!("  --{name}")), "{name}");
        }
    }

    /// Claim: what cannot be meant is refused, and the message names the option and says what was expected.
    #[test]
    fn refusals() {
        for (line, words) in [
            ("--nonsense 1", "`--nonsense` is not an option of this server; see --help"),
            ("serve", "`serve` is not an option"),
            ("--servers", "--servers needs a value"),
            ("--servers 0", "--servers: `0` is below 1"),
            ("--service 10", "--service: `10` is not a time; write a number with a unit"),
            ("--stall 5s", "--stall: `5s` is not AT+FOR"),
            ("--slow 5s+1s", "--slow: `5s+1s` is not AT+FOR*N"),
            ("--commit later", "--commit: `later` is none of answer, observer, poll"),
            ("--parent-pipe=yes", "--parent-pipe takes no value"),
            ("--limit-backoff 1s", "a limiter needs --limit-rate above 0"),
            ("--limit-rate nan", "--limit-rate: `nan` is below 0"),
            ("--unordered 5", "--unordered needs --stages 2 or 3"),
            ("--ordered --batches", "a submission in a batch does not say whose it is"),
            ("--lose 0", "--lose: `0` is below 1"),
        ] {
            let said = read(line).expect_err(line);
            assert!(said.contains(words), "{line}: {said}");
        }
    }
}
