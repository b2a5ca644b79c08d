//! `[against]`: another system beside `[system]`, loaded by turns with it. It makes two settings of each, along an axis of
//! its own, which a comparison reads.

use model::Seed;
use model::options::{Options, Span, Value};
use model::plan::SettingPlan;

use crate::matrix::Matrix;
use crate::table::{Reading, Table};

/// The axis that tells the two sides apart.
pub const SIDE_AXIS: &str = "side";
/// Its labels: the system, and the one against it.
pub const SIDES: [&str; 2] = ["system", "against"];
/// Trials of each side, unless the experiment says.
pub(crate) const TRIALS: u32 = 5;

/// Every combination twice, once for each side; `None` if `[against]` is wrong.
pub(crate) fn expand(root: &Options, matrix: Matrix, reading: &mut Reading<'_>) -> Option<Matrix> {
    let Some(options) = root.get("against") else { return Some(matrix) };
    let mut table = Table::open(options, "against", reading);
    let (kind, deploy) = (table.given("kind").cloned(), table.given("deploy").cloned());
    table.finish(reading);
    if matrix.axes.iter().any(|axis| axis == SIDE_AXIS) {
        let message = format!("the axis `{SIDE_AXIS}` is that of [against]");
        let help = "call the axis of the matrix something else".to_owned();
        reading.problems.add(options.span, message, Some(help));
        return None;
    }
    let differs = match (kind, deploy) {
        (None, None) => {
            let message = "`against` says nothing in which the other side differs";
            let help = "write [against.deploy] with url = \"http://127.0.0.1:8081/\"".to_owned();
            reading.problems.add(options.span, message, Some(help));
            return None;
        }
        // Another kind has keys of its own: nothing of [system.deploy] is laid below them.
        (Some(_), _) => {
            let nothing = Options { value: Value::String(String::new()), span: options.span };
            vec![assigned("system", nothing), assigned("system", options.clone())]
        }
        (None, Some(deploy)) => vec![assigned("system.deploy", deploy)],
    };
    let mut axes = matrix.axes;
    axes.push(SIDE_AXIS.to_owned());
    let mut combinations = Vec::with_capacity(2 * matrix.combinations.len());
    for combination in matrix.combinations {
        for (index, side) in SIDES.iter().enumerate() {
            let mut one = combination.clone();
            one.key = match one.labels.is_empty() {
                true => format!("{SIDE_AXIS}={side}"),
                false => format!("{},{SIDE_AXIS}={side}", one.key),
            };
            one.labels.push((SIDE_AXIS.to_owned(), (*side).to_owned()));
            if index == 1 {
                one.assignments.extend(differs.iter().cloned());
            }
            combinations.push(one);
        }
    }
    Some(Matrix { axes, combinations })
}

/// The seed of a trial. The two sides of [against] have the same: what is due, and when, is no difference between them.
#[must_use]
pub fn trial_seed(seed: Seed, setting: &SettingPlan, trial: u32) -> Seed {
    let side = setting.values.get(SIDE_AXIS).map(|side| format!("{SIDE_AXIS}={side}"));
    let key = match side {
        None => setting.key.as_str(),
        Some(side) => setting.key.strip_suffix(&side).unwrap_or(&setting.key),
    };
    seed.split(key.trim_end_matches(',')).split_index("trial", u64::from(trial))
}

fn assigned(path: &str, value: Options) -> (String, Span, Options) {
    (path.to_owned(), value.span, value)
}
