//! Broken experiment files, variables, `--set` arguments, flags and traces, each with the exact text that a
//! user gets. The cases stand in tests/broken/*.md, written to be read; `ASSAY_TEST_BLESS=1` rewrites the expected
//! texts from what the crate says now, to be reviewed by eye before they are kept.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use model::names::DeclaredNames;
use model::plan::SettingPlan;
use plan::{Input, Mistake, Outside, Source, resolve};

/// One case of a file of cases.
#[derive(Default)]
struct Case {
    title: String,
    /// Everything up to the expected text, as it stands in the file.
    given: String,
    toml: String,
    user: Option<String>,
    trace: Option<String>,
    settings: Vec<(String, String)>,
    expected: String,
}

/// Claim: every broken input gives exactly the text beside it, and there are at least 60 of them.
#[test]
fn every_mistake_has_its_message() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/broken");
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let mut count = 0;
    let mut wrong = Vec::new();
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        let (head, cases) = cases(&text);
        let mut blessed = head;
        for case in &cases {
            let actual = rejection(case);
            if actual != case.expected {
                wrong.push(format!("{}:\n{actual}\n--- expected\n{}", case.title, case.expected));
            }
            write!(blessed, "{}```text\n{actual}\n```\n\n", case.given).unwrap();
            count += 1;
        }
        if std::env::var_os("ASSAY_TEST_BLESS").is_some() {
            std::fs::write(&file, blessed.trim_end().to_owned() + "\n").unwrap();
        }
    }
    assert!(wrong.is_empty(), "{} of {count}:\n\n{}", wrong.len(), wrong.join("\n\n"));
    assert!(count >= 60, "only {count} cases");
}

fn rejection(case: &Case) -> String {
    let values = |word: &str| -> Vec<String> {
        case.settings
            .iter()
            .filter(|(key, _)| key == word)
            .map(|(_, value)| value.clone())
            .collect()
    };
    let pairs = |word: &str, mark: char| -> Vec<(String, String)> {
        let split = |text: &String| {
            let (name, value) = text.split_once(mark).expect("a name and a value");
            (name.to_owned(), value.to_owned())
        };
        values(word).iter().map(split).collect()
    };
    let trace = case.trace.clone();
    let read_file = |path: &Path| match (&trace, path.to_str()) {
        (Some(text), Some("trace.txt")) => Ok(text.clone()),
        _ => Err("no such file".to_owned()),
    };
    let outside = Outside {
        kinds: &["echo", "http"],
        faults: testbed::fault_kinds(),
        read_file: &read_file,
        names: &declared,
        check_system: &|_, _, _| {},
        check_stage: &|stage, names| match names.has_stage(stage) {
            true => Ok(()),
            false => Err(Mistake::from_sentence(stage, &format!("`{stage}` is not a stage"))),
        },
        check_threshold: &|expr, _| misspelt(expr),
        check_metric: &|name, _| misspelt(name),
    };
    let input = Input {
        file: Source { name: "my.toml".into(), text: case.toml.clone() },
        profile: values("profile").pop(),
        user: case.user.clone().map(|text| Source { name: "user.toml".into(), text }),
        env: pairs("env", '='),
        sets: values("set"),
        flags: pairs("flag", ' '),
        outside,
    };
    match resolve(&input) {
        Ok(_) => "nothing was found wrong".to_owned(),
        Err(rejected) => rejected.render(false),
    }
}

/// Stands for an adapter whose load hears no more than *accepted*; nothing is known where no final stage is written.
fn declared(setting: &SettingPlan) -> Option<Rc<DeclaredNames>> {
    let probe = setting.probe.as_ref().map_or("", |probe| &probe.until);
    if [setting.load.until.as_str(), &setting.measure.until, probe]
        .iter()
        .all(|until| until.is_empty())
    {
        return None;
    }
    Some(Rc::new(DeclaredNames {
        stages: ["accepted", "durable", "verified"].map(str::to_owned).to_vec(),
        load_reaches: "accepted".to_owned(),
        probe_reaches: "verified".to_owned(),
        ..DeclaredNames::default()
    }))
}

/// Stands for the analysis, which knows the names: `latnecy` is none.
fn misspelt(expr: &str) -> Result<(), Mistake> {
    match expr.find("latnecy") {
        None => Ok(()),
        Some(start) => Err(Mistake {
            start,
            end: start + "latnecy".len(),
            message: "`latnecy` is not a metric".into(),
            help: Some("did you mean `latency`?".into()),
        }),
    }
}

/// The text before the first case, and the cases.
fn cases(text: &str) -> (String, Vec<Case>) {
    let mut parts = text.split_inclusive("\n## ");
    let head = parts.next().unwrap_or_default().to_owned();
    let rest = &text[head.len()..];
    let mut cases = Vec::new();
    for part in rest.split("\n## ") {
        let prefix = if cases.is_empty() { "" } else { "## " };
        cases.push(case(prefix, part));
    }
    (head, cases)
}

fn case(prefix: &str, part: &str) -> Case {
    let mut case =
        Case { title: part.lines().next().unwrap_or_default().into(), ..Case::default() };
    let given = part.find("```text\n").unwrap_or(part.len());
    case.given = format!("{prefix}{}", &part[..given]);
    if !case.given.ends_with('\n') {
        case.given.push_str("\n\n");
    }
    for line in case.given.lines().filter_map(|line| line.strip_prefix("- ")) {
        let (key, value) = line.split_once(": ").expect("`- key: `value``");
        case.settings.push((key.into(), value.trim_matches('`').into()));
    }
    let block = |name: &str| {
        let start = part.find(&format!("```{name}\n"))? + name.len() + 4;
        Some(part[start..start + part[start..].find("```")?].to_owned())
    };
    case.toml = block("toml").unwrap_or_default();
    case.user = block("toml user");
    case.trace = block("trace");
    case.expected = block("text").unwrap_or_default().trim_end_matches('\n').to_owned();
    case
}
