//! Durability settings with the promises of a documentation, as every form of the report has them.

use exact::{Beside, Ran};
use model::facts::{DocumentedPromise, DurabilityFacts, DurabilitySetting};
use model::plan::SettingPlan;
use report::Style;

use crate::golden::check;
use crate::html_reader::{Element, elements};
use crate::made_runs::{ms, ran_beside, server};

const EXPERIMENT: &str = "
name = 'durability'
question = 'What does it cost to sync?'
[system]
kind = 'script'
[load]
rate = '200/s'
warmup = '0s'
duration = '5s'
";

const MATRIX: &str = "
[matrix]
sync = { set = 'system.deploy.sync', values = ['always', 'late', 'never'] }
fault = { set = 'system.deploy.fault', values = ['kill', 'power'] }
";

const ALWAYS: &str = "Every write is on the disk before it is acknowledged.";
const LATE: &str = "There can be a delay between when success is reported and when the write is safe against a crash. (The maximum delay is three times flush_delay.)";

fn setting(name: &str, value: Option<&str>, default: &str, words: &str) -> DurabilitySetting {
    let promise = (!words.is_empty()).then(|| DocumentedPromise {
        words: words.to_owned(),
        document: "Store 15".to_owned(),
        section: "20.5.1, Settings".to_owned(),
    });
    let value = value.map(str::to_owned);
    DurabilitySetting { name: name.to_owned(), value, default: default.to_owned(), promise }
}

/// A store that syncs as the setting says; `never` stands for a value of which its documentation promises nothing.
fn store(of: &SettingPlan) -> DurabilityFacts {
    let sync = of.values.get("sync").map_or("late", String::as_str);
    let words = match sync {
        "always" => ALWAYS,
        "late" => LATE,
        _ => "",
    };
    let settings = vec![
        setting("sync_on_commit", Some(sync), "always", words),
        setting("flush_delay", Some("200ms"), "200ms", "How often the writer makes a flush."),
        setting("spares", Some(""), "", ""),
        setting("replicas", None, "1", ""),
    ];
    DurabilityFacts { version: "15.18 (Distribution)".to_owned(), settings }
}

fn run(experiment: &str) -> Ran {
    let beside = Beside { durability: store, ..Beside::default() };
    ran_beside(experiment, &beside, |_| server(2, ms(2)))
}

fn matrix() -> Ran {
    run(&format!("{EXPERIMENT}{MATRIX}"))
}

/// Claim: a terminal names settings and values before the numbers, and with everything asked for says the promises whole, at
/// any width; Markdown has them folded away. The pages are the golden ones.
#[test]
fn pages_of_texts() {
    let (one, several) = (run(EXPERIMENT).result, matrix().result);
    let narrow = Style { width: 80, ..Style::default() };
    check("durability.80.txt", &report::terminal(&one, narrow));
    let verbose = Style { verbose: true, ..narrow };
    let part = |run, style| {
        let text = report::terminal(run, style);
        let from = text.find("Durability settings").expect("the section is there");
        let length = text[from..].find("\n\nAs vegeta").expect("another follows");
        text[from..from + length].to_owned() + "\n"
    };
    check("durability.verbose.80.txt", &part(&one, verbose));
    check("durability.matrix.txt", &part(&several, Style { width: 120, ..verbose }));
    check("durability.md", &report::markdown(&several));
}

/// Claim: the page has each promise whole with its place, in a section that is folded; settings of the experiment that share a
/// value share a row, which names them by the axis that tells them apart.
#[test]
fn the_page_says_what_is_promised() {
    let ran = matrix();
    let all = elements(&ran.page);
    let is_here =
        |it: &&Element| it.inside.iter().any(|it| it.starts_with("section#r0-durability"));
    let here = || all.iter().filter(is_here);
    let cells: Vec<&str> =
        here().filter(|it| it.tag.name == "td").map(|it| it.text.trim()).collect();
    let quoted = |words: &str| format!("“{words}” (Store 15, 20.5.1, Settings)");
    let delay = quoted("How often the writer makes a flush.");
    assert_eq!(
        cells,
        [
            "always (default)",
            "sync=always",
            &quoted(ALWAYS),
            "late (default: always)",
            "sync=late",
            &quoted(LATE),
            "never (default: always)",
            "sync=never",
            "none quoted",
            "200ms (default)",
            "all settings",
            &delay,
            "\"\" (default)",
            "all settings",
            "none quoted",
            "not known (default: 1)",
            "all settings",
            "none quoted",
        ]
    );
    let is_explained = |it: &&Element| it.tag.get("class") == Some("term");
    let explained: Vec<&str> = here()
        .filter(|it| it.inside.iter().any(|it| it.ends_with(".quoted")))
        .filter(is_explained)
        .map(|it| it.text.as_str())
        .collect();
    assert!(
        explained.is_empty(),
        "words of others do not mean what the glossary says: {explained:?}"
    );
    let fold = here().find(|it| it.tag.name == "details").expect("it is folded");
    assert_eq!(fold.tag.get("open"), None);
}

/// Claim: a record from before there were durability settings is read, and its report has no such section.
#[test]
fn a_record_without_them() {
    let facts: model::facts::DeclaredFacts = serde_json::from_str("{}").expect("all has defaults");
    assert_eq!(facts.durability, DurabilityFacts::default());
    let ran = ran_beside(EXPERIMENT, &Beside::default(), |_| server(2, ms(2)));
    assert!(!ran.page.contains("r0-durability"));
    let mut document = serde_json::to_value(&ran.result).expect("a result is JSON");
    let trial = document["settings"][0]["trials"][0].as_object_mut().expect("a trial");
    assert!(trial.remove("durability").is_some(), "this version has it");
    let read: model::result::RunResult = serde_json::from_value(document).expect("it is read");
    assert!(!report::markdown(&read).contains("Durability"));
}
