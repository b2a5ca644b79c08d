//! The second half of docs/theory.md: how often printed intervals hold, and how often audits condemn and find, both in
//! virtual time. The tests of `stats` and `analysis` measure it and print tables; this runs them with many seeds and
//! keeps what they print.

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

/// The first line of the simulated half.
const MARK: &str = "<!-- simulated -->\n";

const SCOPE: &str = "## How a threshold is decided

`p99 < L` asks whether more than 1 % of all that were due are beyond L, or were never answered. That is a count, and needs no estimate of a quantile:

1. Each row is counted twice: as measured, and less the instrument's own lag of that row. If the two counts lie on different sides of the allowed share, the answer is *invalid*.
2. Neighbours in time are alike, so chance is judged by excursions and not by rows. The window is cut into slots; their counts say how many rows beyond L come together, and as many are worth one.
3. A binomial test with so many fewer rows asks how easily chance would have put the count there if the true share were the allowed one.
4. Counts within the allowed share show few of the excursions that they lack, or none. There the levels below L say how many rows would come together, and the distribution up to the largest row how steeply it would have to fall to leave the allowed share beyond L. 0 of 9,000 rows beyond an hour are evidence, whatever lies below; 0 of 2,000 beyond what a busy queue exceeds twice a minute are not.
5. Beyond the share, with a chance below 2.5 %: *failed*. Beyond it, with more: *undecided*, and the line says how long a run would decide. Within it: *met*, and where the chance is above 5 % the line says how many would exclude it; with `confidence = \"95%\"` it is then *undecided*.

Shares (`success >= 99.9%`) are decided the same way. How often the answers are right is counted below, in *Coverage of verdicts*.

## What \"95 of 100\" means

An interval holds the true value in 95 of 100 repetitions of *this window on this system as it was*. It knows what happened in the window, and nothing else:

* What comes more rarely than about once in a third of the window may not have come at all. Of something that was not seen in T seconds, up to one in T/3 s is not excluded (the rule of three: with that rate it would have been missed in one of twenty windows). A minute without a stall says nothing of stalls that come every half an hour.
* A window of a few relaxation times does not show what it lacks. A queue at 0.9 with a service time of 4 ms forgets in some 1.5 s: in five seconds the interval of its mean holds in 85 to 90 of 100. The same is true of heavy tails, whose mean is made by what is seldom. The tables below say where.
* An interval may have a lower end alone (`at least 35 ms`): the window holds too few excursions beyond the percentile to limit it from above. The upper end of a percentile above p90 comes from the number of excursions, as the percentile and the levels below it show them: how far a count of excursions may lie below the true one, with Student's t for their size. Where a window holds about fifteen excursions between which the time falls to p90, an upper end exists in 97 of 100 windows or more, and the interval holds in 93 of 100 (85 for a heavy tail); with five, 90 and 90 (80). Fewer give mostly a lower end, and an upper one that exists holds less often.
* The interval of a trial says nothing of what differs between trials. The interval over several trials of a setting does (see below), and [repeatability](audits/repeatability.md) compares them.
";

/// Measures and replaces the simulated half of the page.
pub fn run(root: &Path) -> Result<(), String> {
    let path = root.join("docs/theory.md");
    let page = std::fs::read_to_string(&path)
        .map_err(|error| format!("reading {}: {error}", path.display()))?;
    let real = page.split(MARK).next().unwrap_or_default().trim_end();
    let machine = crate::bench::machine();
    let mut text = format!("{real}\n\n{MARK}\n{SCOPE}\n{machine} Simulated in virtual time.\n\n");
    let (intervals, verdicts) = ((500, "COVERAGE_SEEDS"), (300, "COVERAGE_SEEDS"));
    let audits = (200, "FALSE_ALARM_SEEDS");
    let _ = writeln!(
        text,
        "## Coverage of intervals, simulated\n\nShares of {} trials in virtual time (5 s of warm-up, service 4 ms) in which the true value lies in the 95 % interval, all trials counted: of the mean, with half of its width as a share of the mean; of p50; and of p99, with the excursions beyond it that a window holds on average, how many intervals have an upper end, and how many times as wide these are as the range that holds 95 of 100 of what trials see. The true values are theory's, or those of 20,000 simulated seconds. `cargo xtask theory --simulated`.\n",
        intervals.0
    );
    text += &tables(root, "stats", "truth_lies_inside", intervals)?;
    text += "\nSeveral trials of a setting (windows of 10 s of all these queues) that differ by so much beside what the queue does (standard deviation): how often the interval over them holds the setting's value, how many are open above, and how often what each trial is uncertain by, and Student's t over the trials, would hold it alone.\n\n";
    text += &tables(root, "stats", "a_setting_of_several_trials", intervals)?;
    let _ = writeln!(
        text,
        "\n## Coverage of verdicts, simulated\n\nAnswers to `p99 < L` in {} trials each, by limit as a multiple of the true p99: below 1 a system is guilty, above it innocent. The limits lie on both sides of what the instrument's own lag decides: *invalid*.\n\n* An innocent system with a tenth of room is failed in at most 1 of 100 windows, and more of the guilty are failed the longer the window.\n* Counts within the allowed share are met without a test of chance. A system that is guilty by a tenth is within it in a third of all short windows, and no rule that exits 0 there can be right more often. The line of such a threshold says `may be chance`, and how many would exclude it, exactly where `confidence = \"95%\"` would leave it undecided: a line without these words is as rarely wrong as the column *guilty and met, with `confidence`* says.\n* With `confidence = \"95%\"` a system that is guilty by a tenth or more is met in at most 5 of 100 windows. Two classes are beyond any rule that looks at one window: what happens once in ten seconds did not happen in a third of all windows of ten seconds (the rule of three, above), and heavy tails (Pareto, index 2.5), which fall slower than what was seen of them.\n* An innocent system pays for that with time: at a limit of twice its p99 M/M/1 at 0.8 is met for sure in four of five windows of half a minute. A limit that is ten times the largest row is always met for sure.",
        verdicts.0
    );
    text += &tables(root, "stats", "verdicts_are_right", verdicts)?;
    let _ = writeln!(
        text,
        "\n## False alarms and power of the audits, simulated\n\nStable queues, {0} trials each: how many trials any audit condemned, and which audits failed (or warned in) how many.\n",
        audits.0
    );
    text += &tables(root, "analysis", "stable_queues_are_not_condemned", audits)?;
    text += "\nOverloads of 0.5 to 5 %. A regular one is always found; a small one of a random queue looks like the noise of a busy one.\n\n";
    text += &tables(root, "analysis", "small_overloads_are_found", audits)?;
    text += "\nEach audit beside one thing that goes wrong with a calm trial (M/M/4 at 0.5, 30 s), and beside innocent trials of the stable queues above (30 s) with facts for it to look at: how many there were, and how many it failed and warned of.\n\n";
    text += &tables(root, "analysis", "the_guilty_are_found", audits)?;
    print!("{text}");
    std::fs::write(&path, text).map_err(|error| format!("writing {}: {error}", path.display()))
}

/// The tables that a test prints, with their headings.
fn tables(
    root: &Path,
    package: &str,
    test: &str,
    (seeds, variable): (u32, &str),
) -> Result<String, String> {
    let output = Command::new("cargo")
        .args(["test", "--release", "-q", "-p", package, test, "--", "--nocapture"])
        .env(variable, seeds.to_string())
        .current_dir(root)
        .output()
        .map_err(|error| format!("starting cargo: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() {
        return Err(format!("{test} failed:\n{text}{}", String::from_utf8_lossy(&output.stderr)));
    }
    let lines = text.lines().filter_map(|line| match line.as_bytes().first()? {
        b'|' => Some(format!("{line}\n")),
        b'#' => Some(format!("\n{line}\n\n")),
        _ => None,
    });
    Ok(lines.collect())
}
