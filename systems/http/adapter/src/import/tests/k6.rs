//! Scripts of k6: what is taken of their options, and what is named as not taken.

use super::*;

/// The experiment without its first comments, and the notes.
fn made(script: &str) -> (String, Vec<String>) {
    let found = import("script.js", script.as_bytes(), &ImportOptions::default())
        .unwrap_or_else(|why| panic!("{why}"));
    let text = experiment(&found, "script", None);
    let load = text[text.find("[system]").unwrap()..].to_owned();
    (load, found.notes)
}

/// Claim: a script with a rate and thresholds becomes that load; what is not taken is named, thing by thing.
#[test]
fn a_rate_and_thresholds() {
    let (text, notes) = made(
        r#"
import http from "k6/http";
// const options = { vus: 99 };
export const options = {
  insecureSkipTLSVerify: true,
  noConnectionReuse: false,
  scenarios: {
    api: { executor: "constant-arrival-rate", rate: 300, timeUnit: "1m", duration: "45s", preAllocatedVUs: 20, startTime: "5s" },
    ui: { executor: "constant-vus", vus: 2, duration: "30s" },
  },
  thresholds: {
    http_req_duration: ["p(95)<500", "avg < 200", "p(99.9) < 1500.5", "min<1"],
    "http_req_duration{expected_response:true}": ["med<=100"],
    http_req_failed: [{ threshold: "rate<0.01", abortOnFail: true, delayAbortEval: "5s" }],
    checks: ["rate>0.9"],
  },
};
export default function () {
  http.get(`https://shop.example.org:8443/items?page=${__ITER}`);
  http.post("https://shop.example.org:8443/pay", "x");
}
"#,
    );
    assert_eq!(
        text,
        r#"[system]
kind = "http"
[system.deploy]
url = "https://shop.example.org:8443"
insecure = true

[workload]
kind = "flow"

[[workload.step]]
path = "/items?page="

[load]
arrival  = "constant"
rate     = "5/s"
duration = "45s"
warmup = "0s"

[[threshold]]
expr = "p95 < 500ms"

[[threshold]]
expr = "mean < 200ms"

[[threshold]]
expr = "p99.9 < 1500.5ms"

[[threshold]]
expr = "committed.p50 <= 100ms"

[[threshold]]
expr = "success > 99%"
abort = "5s"
"#
    );
    assert_eq!(
        notes,
        [
            "not taken: the script's function (2 requests); write each as a [[workload.step]]: assay init --template flow shows how",
            "not taken: `noConnectionReuse`",
            "not taken: scenario `ui` (constant-vus); one trial has one load, and flows have weights",
            "not taken: `preAllocatedVUs`: users that wait have no bound here, and connections grow to load.connections_max",
            "not taken: `startTime`",
            "not taken: threshold `http_req_duration: min<1`",
            "not taken: threshold `checks: rate>0.9`; write checks as `expect` of a step, and the threshold as success",
        ]
    );
}

/// Claim: each executor and the short forms become the load that they are, ramps as steps.
#[test]
fn executors() {
    for (options, expected) in [
        (
            "{ vus: 8, duration: '30s' }",
            "model    = \"closed\"\nclients  = 8\nduration = \"30s\"\n",
        ),
        (
            "{ vus: 3, iterations: 90 }",
            "model    = \"closed\"\nclients  = 3\ntransactions_max = 90\nduration = \"10m\"\n",
        ),
        ("{}", "model    = \"closed\"\nclients  = 1\nduration = \"30s\"\n"),
        (
            "{ scenarios: { a: { executor: 'per-vu-iterations', vus: 4, iterations: 5, maxDuration: '1m' } } }",
            "model    = \"closed\"\nclients  = 4\ntransactions_max = 20\nduration = \"1m\"\n",
        ),
        (
            "{ stages: [{ duration: '4s', target: 5 }, { duration: '10s', target: 5 }, { duration: '0s', target: 2 }, { duration: '1s', target: 2 }] }",
            "model = \"closed\"\nsteps = [\n  { clients = 2, for = \"1000ms\" },\n  { clients = 2, for = \"1000ms\" },\n  { clients = 4, for = \"1000ms\" },\n  { clients = 4, for = \"1000ms\" },\n  { clients = 5, for = \"10000ms\" },\n  { clients = 2, for = \"1000ms\" },\n]\n",
        ),
        (
            "{ scenarios: { a: { executor: 'ramping-arrival-rate', startRate: 60, timeUnit: '1m', stages: [{ duration: '2s', target: 240 }] } } }",
            "steps = [\n  { rate = \"1.75/s\", for = \"1000ms\" },\n  { rate = \"3.25/s\", for = \"1000ms\" },\n]\n",
        ),
    ] {
        let script = format!(
            "import http from 'k6/http';\nexport let options = {options};\nhttp.get('http://127.0.0.1:1/');"
        );
        let (text, _) = made(&script);
        let load = &text[text.find("[load]\n").unwrap() + 7..];
        assert_eq!(load, format!("{expected}warmup = \"0s\"\n"), "{options}");
    }
}

/// Claim: what is computed is named, and options that are computed as a whole are refused with what to do.
#[test]
fn what_is_computed() {
    let (_, notes) = made(
        "export const options = { vus: __ENV.VUS || 5, duration: '9s' };\n// import from 'k6'",
    );
    assert!(
        notes.iter().any(|it| it == "not taken: `vus`, which is computed: __ENV.VUS || 5"),
        "{notes:?}"
    );
    for (script, expected) in [
        (
            "import http from 'k6/http'; export default () => {}",
            "it is a k6 script without `export const options`; ",
        ),
        (
            "export const options = make(3);",
            "its options are computed (`make(3)`), and a script is not run here; ",
        ),
    ] {
        let why = import("s.js", script.as_bytes(), &ImportOptions::default()).unwrap_err();
        assert!(why.starts_with(&format!("reading s.js: {expected}")), "{why}");
    }
}
