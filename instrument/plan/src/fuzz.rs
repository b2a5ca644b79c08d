//! Any bytes as an experiment file: the entry of the fuzzer, and of a quick test with seeded damage.

use model::fault::FaultKind;
use model::plan::Plan;

use crate::{Input, Outside, Source, outline, redact, resolve};

/// Settings beyond which the plan is not written and read back, so that one input stays quick.
const SETTINGS_ROUND_TRIP_MAX: usize = 8;

/// Resolves `bytes` as an experiment file, with these kinds of fault. It must come to an end, with a plan that survives plan.toml, or
/// with a rejection that can be shown.
///
/// # Panics
/// If it does not: that is the fuzzer's finding.
pub fn fuzz_experiment(bytes: &[u8], faults: &[FaultKind]) {
    let text = String::from_utf8_lossy(bytes).into_owned();
    // What is stored of a file is without its secrets, whatever the file holds, and stays so.
    let stored = redact(&text);
    assert_eq!(redact(&stored), stored, "what has no secrets loses none");
    // The first line, where it is a comment, is the profile and a `--set`; so the fuzzer reaches these too.
    let first = text.lines().next().and_then(|line| line.strip_prefix('#')).unwrap_or_default();
    let profile = first.split_whitespace().next().map(str::to_owned);
    let sets = first.split_whitespace().nth(1).map(str::to_owned).into_iter().collect();
    let trace = text.clone();
    let input = Input {
        file: Source { name: "fuzz.toml".into(), text },
        profile: profile.filter(|word| word != "-"),
        sets,
        outside: Outside { faults, read_file: &|_| Ok(trace.clone()), ..Outside::default() },
        ..Input::default()
    };
    match resolve(&input) {
        Ok(resolved) => {
            let _ = outline(&resolved.plan);
            if resolved.plan.settings.len() <= SETTINGS_ROUND_TRIP_MAX {
                let text = toml::to_string(&resolved.plan).expect("a plan can be written");
                let _: Plan = toml::from_str(&text).expect("a written plan can be read");
            }
        }
        Err(rejected) => {
            assert!(!rejected.problems().is_empty(), "a rejection has a reason");
            let _ = rejected.render(false);
            let _ = rejected.render(true);
        }
    }
}
