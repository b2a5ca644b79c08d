//! Thresholds of k6 as thresholds here. `http_req_failed` is the other way round; a check is an expectation of a step, and has
//! no number of its own.

use super::literal::Value;
use crate::import::experiment::quoted;

/// The thresholds, as they stand in an experiment; `left` is told what has no counterpart.
pub(super) fn read(thresholds: &Value, left: &mut Vec<String>) -> String {
    let mut text = String::new();
    for (metric, conditions) in thresholds.entries() {
        let conditions = match conditions {
            Value::List(items) => items.as_slice(),
            one => std::slice::from_ref(one),
        };
        for condition in conditions {
            let (said, abort) = match condition {
                Value::Text(said) => (said.as_str(), None),
                object => {
                    let said = object.get("threshold").and_then(Value::text).unwrap_or_default();
                    let aborts = object.get("abortOnFail") == Some(&Value::Boolean(true));
                    let after = object.get("delayAbortEval").and_then(Value::text).unwrap_or("10s");
                    (said, aborts.then_some(after))
                }
            };
            match expression(metric, said) {
                Some(expr) => {
                    text.push_str(&format!("\n[[threshold]]\nexpr = {}\n", quoted(&expr)));
                    if let Some(after) = abort {
                        text.push_str(&format!("abort = {}\n", quoted(after)));
                    }
                }
                None => left.push(format!("threshold `{metric}: {said}`{}", why(metric))),
            }
        }
    }
    text
}

fn why(metric: &str) -> &'static str {
    match metric.split('{').next().unwrap_or_default() {
        "checks" => "; write checks as `expect` of a step, and the threshold as success",
        "iteration_duration" => "; flow.p99 is the counterpart",
        _ if metric.contains('{') => {
            "; a step's name in `assay list numbers` is the counterpart of a tag"
        }
        _ => "",
    }
}

/// `p(95)<500` of `http_req_duration` as `p95 < 500ms`.
fn expression(metric: &str, said: &str) -> Option<String> {
    let said: String = said.chars().filter(|c| !c.is_whitespace()).collect();
    let at = said.find(['<', '>', '='])?;
    let (what, rest) = said.split_at(at);
    let operator =
        ["<=", ">=", "===", "==", "<", ">"].into_iter().find(|it| rest.starts_with(it))?;
    let limit: f64 = rest[operator.len()..].parse().ok()?;
    let prefix = match metric {
        "http_req_failed" => {
            let turned = match operator {
                "<" => ">",
                "<=" => ">=",
                ">" => "<",
                ">=" => "<=",
                _ => "==",
            };
            let percent = format!("{:.4}", 100.0 - limit * 100.0);
            let percent = percent.trim_end_matches('0').trim_end_matches('.');
            return (what == "rate").then(|| format!("success {turned} {percent}%"));
        }
        "http_req_duration" => "",
        "http_req_duration{expected_response:true}" => "committed.",
        _ => return None,
    };
    let name = match what {
        "avg" => "mean".to_owned(),
        "med" => "p50".to_owned(),
        "max" => "max".to_owned(),
        _ => {
            let percent = what.strip_prefix("p(")?.strip_suffix(')')?;
            percent.parse::<f64>().ok().filter(|it| (0.0..=100.0).contains(it))?;
            format!("p{percent}")
        }
    };
    if !matches!(operator, "<" | "<=") {
        return None;
    }
    Some(format!("{prefix}{name} {operator} {limit}ms"))
}
