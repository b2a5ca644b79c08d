//! Comparisons of real runs: two sides of one run, a baseline by name, what is refused, and the history of an experiment.
//! The sides differ in a limiter: no count depends on how busy the machine is.

use serde_json::Value;

use crate::harness::{Place, Said, beside_others};

/// Echo at a rate, with further lines of its deployment or further tables.
fn echo(rate: &str, more: &str) -> String {
    format!(
        r#"
        name = "pair"
        system.kind = "echo"
        load = {{ rate = "{rate}", connections = 4, warmup = "0s", duration = "2s", timeout = "5s" }}
        [system.deploy]
        service = "1ms"
        {more}
        [[threshold]]
        expr = "success >= 1%"
        "#
    )
}

/// Refuses most of what is asked of it at 50/s.
const LIMITED: &str = r#"faults = { limit = { rate = "10/s", burst = 1 } }"#;

fn run(place: &Place, text: &str, more: &[&str]) -> Said {
    place.write("pair.toml", text);
    let mut words = vec!["run", "pair.toml", "--no-calibration", "--progress", "none"];
    words.extend(more);
    place.assay(&words)
}

fn number<'a>(document: &'a Value, name: &str) -> &'a Value {
    let numbers = document["numbers"].as_array().expect("a comparison has numbers");
    numbers.iter().find(|it| it["name"] == name).unwrap_or(&Value::Null)
}

/// Claim: of two sides by turns the one that refuses most is worse, with exit code 98, in the terminal, on the page, in
/// Markdown of at most 25 lines and as JUnit with a failure; the folder alone says the same again.
#[test]
fn a_worse_side() {
    let _beside = beside_others();
    let place = Place::new();
    let text = echo("50/s", &format!("[against.deploy]\n{LIMITED}"));
    let said = run(&place, &text, &["--trials", "3"]);
    said.expect_code(98);
    assert!(said.stdout.contains("WORSE"), "{}", said.stdout);
    let folder = place.run_folder();
    let name = folder.display().to_string();
    let json = std::fs::read_to_string(folder.join("comparison.json")).expect("it is kept");
    let document: Value = serde_json::from_str(&json).expect("it is JSON");
    assert_eq!(document["change"], "worse");
    assert_eq!(document["is_paired"], true, "{json}");
    let failed = number(&document, "failed");
    assert_eq!(failed["change"], "worse", "{json}");
    assert!(failed["effect"].as_f64().is_some_and(|share| share > 0.5), "{failed}");
    for (format, holds) in [("md", "worse"), ("junit", "<failure"), ("html", "<table")] {
        let said = place.assay(&["compare", &name, "--format", format]);
        said.expect_code(98);
        assert!(said.stdout.contains(holds), "{format}: {}", said.stdout);
    }
    let markdown = std::fs::read_to_string(folder.join("comparison.md")).expect("it is kept");
    assert!(markdown.lines().count() <= 25, "{markdown}");
    assert_eq!(place.assay(&["compare", &name, "--format", "json"]).stdout, json);
}

/// Claim: a baseline is known by its name; a run with another rate is refused before it is run, with the rate; and the
/// history of the experiment has its runs.
#[test]
fn a_baseline_by_name() {
    let _beside = beside_others();
    let place = Place::new();
    run(&place, &echo("50/s", ""), &[]).expect_code(0);
    let first = place.run_folder().display().to_string();
    place.assay(&["mark", &first, "main"]).expect_code(0);
    let said = run(&place, &echo("40/s", ""), &["--baseline", "main"]);
    said.expect_code(2);
    assert!(said.stderr.contains("load.") && said.stderr.contains("40"), "{}", said.stderr);
    assert_eq!(place.runs().len(), 1, "nothing was run");
    let said = run(&place, &echo("50/s", LIMITED), &["--baseline", "main"]);
    said.expect_code(98);
    assert!(said.stdout.contains("not known"), "{}", said.stdout);
    let second = place.run_folder().display().to_string();
    let said = place.assay(&["report", &first, &second, "--format", "md"]);
    said.expect_code(0);
    assert!(said.stdout.contains("worse") && said.stdout.lines().count() <= 25, "{}", said.stdout);
    let said = place.assay(&["compare", "nothing", &second]);
    said.expect_code(1);
    assert!(said.stderr.contains("assay mark"), "{}", said.stderr);
    let said = place.assay(&["list", "--trend", "pair", "--json", "-o", "trend.html"]);
    said.expect_code(0);
    let history: Value = serde_json::from_str(&said.stdout).expect("it is JSON");
    assert_eq!(history["runs"].as_array().map(Vec::len), Some(2), "{history}");
    assert_eq!(history["runs"][0]["baseline_names"][0], "main");
    let page = std::fs::read_to_string(place.path().join("trend.html")).expect("it is written");
    assert!(page.contains("<svg") && !page.contains("<script"), "a page that needs no script");
}
