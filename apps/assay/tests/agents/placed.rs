//! The files of `deploy/agents`, read by the programs that they are for, as far as there are some without a cluster or a
//! cloud: Helm and kubeconform, systemd, and `assay` itself for the words of its command line.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::harness::{ASSAY, Place, program, say};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/agents")
}

/// A program by one of its names; `None`, said by name, if it is not there.
fn found(test: &str, name: &str, path: Option<PathBuf>) -> Option<PathBuf> {
    if path.is_none() {
        say(&format!("SKIPPED {test}: {name} is not installed"));
    }
    path
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Where Kubernetes' schemas are: a package for Python that carries them.
fn schemas(test: &str) -> Option<PathBuf> {
    let python =
        found(test, "ASSAY_TEST_PYTHON", std::env::var_os("ASSAY_TEST_PYTHON").map(PathBuf::from))?;
    let asked =
        "import kubernetes_validate, os; print(os.path.dirname(kubernetes_validate.__file__))";
    let output = Command::new(python).args(["-c", asked]).output().expect("Python starts");
    let package = Some(text(&output.stdout).trim().to_owned()).filter(|path| !path.is_empty());
    let path = package.map(|path| Path::new(&path).join("kubernetes-json-schema"));
    found(test, "Python's kubernetes-validate", path)
}

/// kubeconform, with the schemas of versions of Kubernetes.
struct Validator {
    program: PathBuf,
    place: Place,
}

impl Validator {
    fn find(test: &str) -> Option<Self> {
        let program = found(test, "kubeconform", testbed::install::find("kubeconform"))?;
        let (from, place) = (schemas(test)?, Place::new());
        for (version, name) in VERSIONS.iter().flat_map(|it| SCHEMAS.map(|name| (it, name))) {
            let path = from.join(format!("v{version}-local-strict/{name}.json"));
            let schema = std::fs::read_to_string(path).expect("the package has it");
            // They refer to each other by addresses elsewhere, and lie side by side here.
            let schema = schema.replace("\"$id\"", "\"$comment\"").replace("\"/api/", "\"");
            place.write(&format!("schemas/{version}/{name}.json"), schema);
        }
        Some(Self { program, place })
    }

    fn is_valid(&self, document: &str, version: &str) -> (bool, String) {
        let path = self.place.write("made.yaml", document);
        let of = self.place.path().join("schemas").join(version).display().to_string();
        let of = of + "/{{.ResourceKind}}{{.KindSuffix}}.json";
        let mut validator = Command::new(&self.program);
        validator.args(["-strict", "-summary", "-schema-location", &of]).arg(path);
        let output = validator.output().expect("kubeconform starts");
        (output.status.success(), format!("{}{}", text(&output.stdout), text(&output.stderr)))
    }

    /// That so many resources are valid in the oldest and in the newest version that has schemas here.
    fn expect(&self, document: &str, resources: usize) {
        let wanted = format!(
            "{resources} resources found in 1 file - Valid: {resources}, Invalid: 0, Errors: 0, Skipped: 0"
        );
        for version in VERSIONS {
            let (is_valid, said) = self.is_valid(document, version);
            assert!(is_valid && said.contains(&wanted), "{version}: {said}\n{document}");
        }
    }
}

/// Kubernetes' versions, and the schemas of what there is in the file.
const VERSIONS: [&str; 2] = ["1.25.0", "1.37.0"];
const SCHEMAS: [&str; 5] =
    ["_definitions", "deployment-apps-v1", "job-batch-v1", "service-v1", "serviceaccount-v1"];

fn kubernetes() -> String {
    std::fs::read_to_string(folder().join("kubernetes.yaml")).expect("it is there")
}

/// Claim: the file for a cluster is one by Kubernetes' own schemas, and one with a misspelt key is none; its agents' command
/// line is one that `assay` takes.
#[test]
fn a_cluster_takes_the_file() {
    let file = kubernetes();
    let after = file.split("- agent\n").nth(1).and_then(|rest| rest.split("env:").next());
    let words = after.expect("agents have words").lines();
    let words = words.filter_map(|line| line.trim().strip_prefix("- "));
    let words: Vec<&str> = words.map(|word| word.trim_matches('"')).collect();
    assert!(words.contains(&"nats://assay-nats:4222"), "{words:?}");
    taken(&words);
    let Some(validator) = Validator::find("a_cluster_takes_the_file") else { return };
    validator.expect(&file, 4);
    let misspelt = file.replace("completionMode", "completionsMode");
    for version in VERSIONS {
        let (is_valid, said) = validator.is_valid(&misspelt, version);
        assert!(!is_valid && said.contains("completionsMode"), "{version}: {said}");
    }
}

/// Claim: the chart makes that file; with another's NATS it makes agents alone; without any NATS it makes nothing and says why.
#[test]
fn the_chart_makes_the_file() {
    let test = "the_chart_makes_the_file";
    let Some(helm) = found(test, "helm", testbed::install::find("helm")) else { return };
    let place = Place::new();
    let made = |more: &[&str]| -> Output {
        let mut helm = Command::new(&helm);
        helm.args(["template", "assay"]).arg(folder().join("chart")).args(more);
        helm.env("HOME", place.path()).output().expect("helm starts")
    };
    let file = kubernetes();
    let begin = file.find("---\n").expect("documents begin so");
    assert_eq!(text(&made(&[]).stdout), file[begin..]);
    let elsewhere = ["--set", "nats.install=false", "--set", "nats.url=tls://nats.example:4222"];
    let agents = text(&made(&elsewhere).stdout);
    assert!(agents.contains("tls://nats.example:4222"), "{agents}");
    let refused = made(&["--set", "nats.install=false"]);
    assert!(!refused.status.success() && text(&refused.stderr).contains("nats.url"), "{refused:?}");
    if let Some(validator) = Validator::find(test) {
        validator.expect(&agents, 2);
    }
}

/// That the command line is one of `assay agent`: it complains of the last word alone, which is none of its own.
fn taken(words: &[&str]) {
    let output = Command::new(ASSAY).arg("agent").args(words).arg("--bogus").output();
    let said = text(&output.expect("assay starts").stderr);
    assert!(said.contains("'--bogus'"), "assay agent {words:?}: {said}");
}

/// Claim: systemd finds nothing to say about the unit, and something about one with a misspelt key; its command line is one
/// that `assay` takes.
#[test]
fn systemd_takes_the_unit() {
    let Some(analyze) =
        found("systemd_takes_the_unit", "systemd-analyze", program("systemd-analyze"))
    else {
        return;
    };
    let place = Place::new();
    let unit = std::fs::read_to_string(folder().join("assay-agent.service")).expect("it is there");
    let unit = unit.replace("/usr/bin/assay", ASSAY);
    let verified = |text: &str| {
        let path = place.write("assay-agent.service", text);
        Command::new(&analyze).arg("verify").arg(path).output().expect("it starts")
    };
    let output = verified(&unit);
    assert!(output.status.success() && output.stderr.is_empty(), "{}", text(&output.stderr));
    assert!(!verified(&unit.replace("DynamicUser", "DynamicUsr")).stderr.is_empty());
    let line =
        unit.lines().find_map(|line| line.strip_prefix("ExecStart=")).expect("it starts something");
    let words: Vec<&str> = line.split(' ').skip(2).collect();
    taken(&words);
}

/// Claim: Terraform reads the machines as they are written. Whether AWS would make them, only AWS says.
#[test]
fn terraform_reads_the_machines() {
    let test = "terraform_reads_the_machines";
    let terraform = program("terraform").or_else(|| program("tofu"));
    let Some(terraform) = found(test, "terraform (or tofu)", terraform) else { return };
    let mut command = Command::new(terraform);
    command.args(["fmt", "-check", "-diff"]).arg(folder().join("terraform"));
    let output = command.output().expect("it starts");
    assert!(output.status.success(), "{}{}", text(&output.stdout), text(&output.stderr));
}
