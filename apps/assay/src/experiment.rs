//! From what the user named (a file, a URL, `-`, the name of a demo) and the layers over it to a resolved plan with its
//! systems built once, so that every mistake is found before anything is sent or started.

use std::cell::RefCell;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use model::names::DeclaredNames;
use model::options::Problems;
use model::plan::{Arrivals, LoadPlan, Plan, Schedule, SearchKey, SettingPlan, SystemPlan};
use model::quantity::Rate;
use model::secret;
use plan::{Effective, Input, Mistake, Outside, Rejected, Resolved, Source, UrlRun};
use record::RunFolder;
use sut::{Request, Role, System};

use crate::cli::{LayerArguments, QuickArguments, SearchOver};
use crate::sandbox;
use crate::systems;
use crate::terminal::say;

/// The experiments that are run by a name: `assay run demo` and its like.
pub const DEMOS: [(&str, &str); 2] =
    [("demo", include_str!("../demo.toml")), ("demo-kv", include_str!("../data/demo-kv.toml"))];

/// Targets from standard input.
const STDIN: &str = "-";

/// The largest file that is read as an experiment or a body, in bytes.
const FILE_BYTES_MAX: u64 = 64 << 20;

/// A resolved experiment.
pub struct Experiment {
    /// The experiment file's text (or the equivalent of a quick run), for the run folder.
    pub text: String,
    /// The plan.
    pub plan: Plan,
    /// Every effective value with its origin.
    pub effective: Vec<Effective>,
    /// The texts that places in the plan point into; none of a run that is resumed.
    pub sources: Vec<Source>,
    /// The folder that relative paths in the file are relative to.
    pub folder: PathBuf,
    /// Whether it was not read from a file, so that the user has no file yet.
    pub is_quick: bool,
}

/// Why there is no experiment.
pub enum Refusal {
    /// Mistakes in the user's texts, with their places.
    Rejected(Rejected),
    /// Anything else the user can fix.
    Usage(String),
}

impl From<String> for Refusal {
    fn from(message: String) -> Self {
        Self::Usage(message)
    }
}

/// Reads and resolves what the user named.
pub fn load(
    what: &str,
    layers: &LayerArguments,
    quick: &QuickArguments,
) -> Result<Experiment, Refusal> {
    if layers.sandbox {
        // Before anything of a stranger's is read, in whatever encoding it asks.
        secret::forbid_environment();
    }
    let Named { file, folder, mut flags } = source(what, quick)?;
    let text = file.text.clone();
    // Its secrets are known from here on, also where it is refused.
    plan::taint(&text);
    if let Some(seed) = layers.seed {
        flags.push(("seed".to_owned(), seed.to_string()));
    }
    if let Some(trials) = layers.trials {
        flags.push(("trials".to_owned(), trials.to_string()));
    }
    let is_quick = is_quick(what);
    let resolved = resolve(file, &folder, layers, flags).map_err(Refusal::Rejected)?;
    let Resolved { plan, effective, remarks, sources } = resolved;
    plan::taint_plan(&plan);
    // As the run folder keeps it, without secrets. Only the plan says which values of an include are some.
    let text = plan::redact(&text);
    let experiment = Experiment { text, plan, effective, sources, folder, is_quick };
    remarks.iter().for_each(|remark| say!("assay: {remark}"));
    Ok(experiment)
}

/// The experiment of a run that was stopped. Secrets are read from the environment, as the folder names them; relative
/// paths are relative to where the experiment was, or to here. Never of a stranger's folder: `--sandbox` and `--resume` exclude
/// each other on the command line.
pub fn resumed(run: &RunFolder) -> Result<Experiment, Refusal> {
    let words = |error: record::RecordError| Refusal::Usage(error.to_string());
    let plan = run.plan().map_err(words)?;
    let text = run.experiment().map_err(words)?;
    plan::taint(&text);
    let here = std::env::current_dir().map_err(|e| format!("reading the working folder: {e}"))?;
    let command = run.environment().map_err(words)?.command;
    if command.iter().any(|word| word == "--sandbox") {
        // Its stored secrets are references, which are no more to be read than when it began.
        secret::forbid_environment();
    }
    let file = command.iter().map(Path::new).find(|word| {
        word.extension().is_some_and(|extension| extension == "toml") && word.is_file()
    });
    let folder = file.and_then(Path::parent).map_or(here.clone(), |folder| here.join(folder));
    let (effective, sources) = (Vec::new(), Vec::new());
    Ok(Experiment { text, plan, effective, sources, folder, is_quick: false })
}

impl Experiment {
    /// Builds the system of a setting for one trial.
    pub fn build(
        &self,
        setting: &SettingPlan,
        run_mark: u64,
        problems: &mut Problems,
    ) -> Option<Box<dyn System>> {
        build(&self.request(setting, run_mark), &setting.system.kind, problems)
    }

    /// The request to an adapter.
    pub fn request<'a>(&'a self, setting: &'a SettingPlan, run_mark: u64) -> Request<'a> {
        request(&self.folder, &setting.system, Some(&setting.load), run_mark)
    }

    /// The highest rate that any setting offers; `None` if one is not bounded by a rate.
    pub fn rate_max(&self) -> Option<f64> {
        let of_rate = self.plan.search.as_ref().filter(|search| search.find == SearchKey::Rate);
        let mut highest = of_rate.map_or(0.0, |search| search.most);
        for setting in &self.plan.settings {
            let rate = match &setting.load.arrivals {
                Arrivals::Closed { .. } => return None,
                Arrivals::Open { schedule } => schedule_rate_max(schedule)?,
            };
            highest = highest.max(rate);
        }
        Some(highest)
    }
}

/// The request to an adapter; relative paths are relative to `folder`.
fn request<'a>(
    folder: &'a Path,
    system: &'a SystemPlan,
    load: Option<&'a LoadPlan>,
    run_mark: u64,
) -> Request<'a> {
    Request { deploy: &system.deploy, workload: &system.workload, folder, run_mark, load }
}

/// Builds the system of a kind.
fn build(request: &Request<'_>, kind: &str, problems: &mut Problems) -> Option<Box<dyn System>> {
    // The reader of the plan refuses kinds that do not exist.
    let adapter = systems::adapter(kind)?;
    (adapter.build)(request, problems)
}

/// Most systems that a new setting is compared with: a matrix of thousands must not compare each with each.
const KNOWN_MAX: usize = 64;

/// Declarations of the settings' systems, each system built once. Its mistakes are told where the setting is read
/// ([`plan::Outside::check_system`]).
struct Declarations<'a> {
    folder: &'a Path,
    is_sandbox: bool,
    known: RefCell<Vec<(SystemPlan, Option<Rc<DeclaredNames>>)>>,
}

impl Declarations<'_> {
    fn of(&self, setting: &SettingPlan) -> Option<Rc<DeclaredNames>> {
        let system = &setting.system;
        let is_it = |of: &SystemPlan| {
            of.kind == system.kind && of.deploy == system.deploy && of.workload == system.workload
        };
        let mut known = self.known.borrow_mut();
        if let Some((_, names)) = known.iter().rev().take(KNOWN_MAX).find(|(of, _)| is_it(of)) {
            return names.clone();
        }
        if self.is_sandbox && sandbox::refuse(system, self.folder, &mut Problems::default()) {
            return None;
        }
        let request = request(self.folder, system, Some(&setting.load), 0);
        let built = build(&request, &system.kind, &mut Problems::default());
        let names = built.map(|built| Rc::new(declared(&*built)));
        known.push((system.clone(), names.clone()));
        names
    }
}

/// The names that a system declares.
fn declared(system: &dyn System) -> DeclaredNames {
    let owned = |(source, names): (&str, Vec<&str>)| {
        (source.to_owned(), names.into_iter().map(str::to_owned).collect())
    };
    let stages = system.stages();
    let reached = |role| stages.get(system.reaches(role)).cloned().unwrap_or_default();
    DeclaredNames {
        load_reaches: reached(Role::Submit),
        probe_reaches: reached(Role::Probe),
        stages,
        node_stages: system.node_stages().into_iter().map(|stage| stage.name).collect(),
        sources: testbed::known_sources().into_iter().map(owned).collect(),
    }
}

/// The highest rate of a schedule; `None` if it is `max` or a trace.
pub fn schedule_rate_max(schedule: &Schedule) -> Option<f64> {
    let rate = |rate: &Rate| (!rate.is_max()).then(|| rate.as_per_second());
    match schedule {
        Schedule::Constant { rate: r }
        | Schedule::Poisson { rate: r }
        | Schedule::Burst { rate: r, .. } => rate(r),
        Schedule::Ramp { from, to } => Some(rate(from)?.max(rate(to)?)),
        Schedule::Steps { steps } => {
            steps.iter().try_fold(0.0_f64, |highest, step| Some(highest.max(rate(&step.rate)?)))
        }
        Schedule::Trace { .. } => None,
    }
}

fn is_quick(what: &str) -> bool {
    what == "-" || plan::is_url(what)
}

/// The input that the user named, read.
struct Named {
    /// The text that is resolved.
    file: Source,
    /// The folder of its relative paths.
    folder: PathBuf,
    /// Flags that overlay it.
    flags: Vec<(String, String)>,
}

fn source(what: &str, quick: &QuickArguments) -> Result<Named, Refusal> {
    let here = std::env::current_dir().map_err(|e| format!("reading the working folder: {e}"))?;
    if let Some((name, text)) = DEMOS.into_iter().find(|(name, _)| *name == what) {
        let file = Source { name: name.to_owned(), text: text.to_owned() };
        return Ok(Named { file, folder: here, flags: overlay(quick) });
    }
    if is_quick(what) {
        let run = url_run(what, quick)?;
        let stdin = if run.targets == STDIN { Some(read_stdin()?) } else { None };
        let name = if what == "-" { "standard input" } else { "command line" };
        let text = quick_text(&run, stdin.as_deref());
        return Ok(Named {
            file: Source { name: name.to_owned(), text },
            folder: here,
            flags: Vec::new(),
        });
    }
    if what.contains("://") {
        return Err(Refusal::Usage(format!(
            "`{what}`: only http(s)://, grpc(s):// and ws(s):// URLs can be loaded"
        )));
    }
    let path = Path::new(what);
    if !path.exists()
        && let Some(near) = model::options::nearest(what, DEMOS.into_iter().map(|(name, _)| name))
    {
        return Err(Refusal::Usage(format!("there is no file `{what}`; did you mean `{near}`?")));
    }
    if !path.exists()
        && let Some(near) = file_nearby(path)
    {
        return Err(Refusal::Usage(format!("there is no file `{what}`; did you mean `{near}`?")));
    }
    if !path.exists() && looks_like_a_server(what) {
        return Err(Refusal::Usage(format!(
            "there is no file `{what}`; if it is a server, say how to speak to it: http://{what}"
        )));
    }
    let text = read(path)?;
    for (given, flag) in [
        (quick.method.is_some(), "--method"),
        (!quick.headers.is_empty(), "--header"),
        (quick.body.is_some(), "--body"),
        (!quick.expects.is_empty(), "--expect"),
        (quick.targets.is_some(), "--targets"),
        (quick.insecure, "--insecure"),
        (quick.http2, "--http2"),
    ] {
        if given {
            return Err(Refusal::Usage(format!(
                "{flag} goes with a URL; in an experiment file write it under [workload], or use --set workload.…"
            )));
        }
    }
    let folder =
        path.parent().filter(|f| !f.as_os_str().is_empty()).map_or(here, Path::to_path_buf);
    let file = Source { name: what.to_owned(), text };
    Ok(Named { file, folder, flags: overlay(quick) })
}

/// The experiment file beside a path that is not there, whose name is nearest to it, as it would be written.
fn file_nearby(path: &Path) -> Option<String> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let entries = std::fs::read_dir(folder.unwrap_or(Path::new("."))).ok()?;
    let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
    let names: Vec<String> = names.filter(|name| name.ends_with(".toml")).collect();
    let typed = path.file_name()?.to_str()?;
    let near = model::options::nearest(typed, names.iter().map(String::as_str))?;
    Some(folder.map_or(near.to_owned(), |folder| folder.join(near).display().to_string()))
}

/// Whether a name is more likely that of a server without its scheme than that of a file: `localhost:8080/x`,
/// `api.example.com`, `10.0.0.1`.
fn looks_like_a_server(what: &str) -> bool {
    let authority = what.split(['/', '?']).next().unwrap_or(what);
    let (host, port) = authority.rsplit_once(':').unwrap_or((authority, ""));
    let is_host = !host.is_empty()
        && host.chars().all(|c| c.is_ascii_alphanumeric() || "-.[]:".contains(c))
        && !host.starts_with('.');
    let has_port = !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    let last = host.rsplit('.').next().unwrap_or_default();
    let is_file = ["toml", "txt", "json", "har", "yaml", "yml", "http"].contains(&last);
    is_host && (has_port || host == "localhost" || (host.contains('.') && !is_file))
}

/// Flags over a file, by the path that each stands for.
fn overlay(quick: &QuickArguments) -> Vec<(String, String)> {
    let mut flags = Vec::new();
    let mut put = |path: &str, value: &Option<String>| {
        if let Some(value) = value {
            flags.push((path.to_owned(), value.clone()));
        }
    };
    put("load.rate", &quick.rate);
    put("load.duration", &quick.duration);
    put("load.warmup", &quick.warmup);
    put("load.timeout", &quick.timeout);
    put("load.model", &quick.clients.map(|_| "closed".to_owned()));
    put("load.clients", &quick.clients.map(|n| n.to_string()));
    put("load.connections", &quick.connections.map(|n| n.to_string()));
    put("load.threads", &quick.threads.map(|n| n.to_string()));
    put("against.deploy.url", &quick.against);
    if let Some(find) = &quick.find {
        flags.push(("threshold".to_owned(), find.clone()));
        let over = quick.over.map_or("", SearchOver::word);
        let over = plan::search_over(over, quick.clients.is_some());
        flags.push(("search.find".to_owned(), over.to_owned()));
    }
    for threshold in &quick.thresholds {
        flags.push(("threshold".to_owned(), threshold.clone()));
    }
    flags
}

/// The quick run as `plan` takes it.
fn url_run(what: &str, quick: &QuickArguments) -> Result<UrlRun, Refusal> {
    let mut headers = Vec::new();
    for header in &quick.headers {
        let (name, value) = header
            .split_once(':')
            .ok_or_else(|| format!("--header `{header}` is not of the form `Name: value`"))?;
        headers.push((name.trim().to_owned(), value.trim().to_owned()));
    }
    let mut expects = Vec::new();
    for expect in &quick.expects {
        let (what, value) = expect.split_once('=').ok_or_else(|| {
            format!("--expect `{expect}` is not of the form WHAT=VALUE, such as status=200 or contains=ok")
        })?;
        expects.push((what.trim().to_owned(), value.to_owned()));
    }
    let body = match quick.body.as_deref() {
        Some(text) => match text.strip_prefix('@') {
            Some(path) => read_text(Path::new(path)).map_err(|error| {
                format!(
                    "--body @{path}: {error}; `@` names a file: write the body itself without it, or the path from here"
                )
            })?,
            None => text.to_owned(),
        },
        None => String::new(),
    };
    let text = |value: &Option<String>| value.clone().unwrap_or_default();
    let count = |value: &Option<u32>| value.map(|n| n.to_string()).unwrap_or_default();
    let file = quick.targets.as_ref().map(|path| path.display().to_string());
    let (url, targets) = match what {
        "-" => (String::new(), STDIN.to_owned()),
        _ => (what.to_owned(), file.unwrap_or_default()),
    };
    Ok(UrlRun {
        url,
        targets,
        insecure: quick.insecure,
        http2: quick.http2,
        method: text(&quick.method),
        headers,
        body,
        expects,
        rate: text(&quick.rate),
        clients: count(&quick.clients),
        duration: text(&quick.duration),
        warmup: text(&quick.warmup),
        timeout: text(&quick.timeout),
        connections: count(&quick.connections),
        threads: count(&quick.threads),
        against: text(&quick.against),
        find: text(&quick.find),
        over: quick.over.map_or("", SearchOver::word).to_owned(),
        thresholds: quick.thresholds.clone(),
    })
}

/// The experiment file of a quick run. Targets from standard input become part of it, so that it can be run again.
fn quick_text(run: &UrlRun, stdin: Option<&str>) -> String {
    let text = plan::from_url(run);
    let Some(stdin) = stdin else { return text };
    let value = toml_text(stdin);
    text.replace("targets = \"-\"", &format!("targets_text = {value}"))
}

/// A TOML basic string of several lines.
fn toml_text(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 16);
    quoted.push_str("\"\"\"\n");
    for c in text.chars() {
        match c {
            '\\' => quoted.push_str("\\\\"),
            '"' => quoted.push_str("\\\""),
            '\n' | '\t' => quoted.push(c),
            c if c.is_control() => quoted.push_str(&format!("\\u{:04X}", u32::from(c))),
            c => quoted.push(c),
        }
    }
    quoted.push_str("\"\"\"");
    quoted
}

fn resolve(
    file: Source,
    folder: &Path,
    layers: &LayerArguments,
    flags: Vec<(String, String)>,
) -> Result<Resolved, Rejected> {
    let kinds: Vec<&str> = systems::ADAPTERS.iter().map(|adapter| adapter.kind).collect();
    let is_sandbox = layers.sandbox;
    let read_file = |path: &Path| {
        if is_sandbox {
            sandbox::check_file(&path.to_string_lossy(), folder)?;
        }
        read_text(&folder.join(path))
    };
    let declarations = Declarations { folder, is_sandbox, known: RefCell::default() };
    let names = |setting: &SettingPlan| declarations.of(setting);
    let check_system = |system: &SystemPlan, load: Option<&LoadPlan>, problems: &mut Problems| {
        // Before it is built: building reads the files that it names.
        if is_sandbox && sandbox::refuse(system, folder, problems) {
            return;
        }
        let _ = build(&request(folder, system, load, 0), &system.kind, problems);
    };
    let check_stage = |stage: &str, names: &DeclaredNames| match names.has_stage(stage) {
        true => Ok(()),
        false => Err(Mistake::from_sentence(stage, &analysis::no_stage(stage, names))),
    };
    let check_threshold = |expr: &str, names: Option<&DeclaredNames>| {
        analysis::check_threshold(expr, names).map_err(|e| Mistake::from_sentence(expr, &e))
    };
    let check_metric = |name: &str, names: Option<&DeclaredNames>| {
        analysis::check_metric(name, names).map_err(|e| Mistake::from_sentence(name, &e))
    };
    let env = std::env::vars().filter(|(name, _)| name.starts_with("ASSAY_")).collect();
    plan::resolve(&Input {
        file,
        profile: layers.profile.clone(),
        user: user_configuration(),
        env,
        sets: layers.sets.clone(),
        flags,
        outside: Outside {
            kinds: &kinds,
            faults: testbed::fault_kinds(),
            read_file: &read_file,
            names: &names,
            check_system: &check_system,
            check_stage: &check_stage,
            check_threshold: &check_threshold,
            check_metric: &check_metric,
        },
    })
}

/// The user's own defaults, `assay/config.toml` in the configuration folder, if there are any.
fn user_configuration() -> Option<Source> {
    let base = std::env::var_os("XDG_CONFIG_HOME").map(PathBuf::from);
    let base =
        base.or_else(|| std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".config")))?;
    let path = base.join("assay/config.toml");
    let text = std::fs::read_to_string(&path).ok()?;
    Some(Source { name: path.display().to_string(), text })
}

fn read(path: &Path) -> Result<String, Refusal> {
    read_text(path).map_err(|error| {
        let hint = if path.exists() { "" } else { "; assay init prints one to start from" };
        Refusal::Usage(format!("reading {}: {error}{hint}", path.display()))
    })
}

fn read_text(path: &Path) -> Result<String, String> {
    let file = std::fs::File::open(path).map_err(|error| error.to_string())?;
    let mut bytes = Vec::new();
    file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Err(format!("larger than {} MiB", FILE_BYTES_MAX >> 20));
    }
    String::from_utf8(bytes).map_err(|_| "not UTF-8 text".to_owned())
}

fn read_stdin() -> Result<String, Refusal> {
    let mut bytes = Vec::new();
    std::io::stdin()
        .lock()
        .take(FILE_BYTES_MAX + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| format!("reading standard input: {error}"))?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Err(Refusal::Usage(format!(
            "standard input is larger than {} MiB",
            FILE_BYTES_MAX >> 20
        )));
    }
    String::from_utf8(bytes)
        .map_err(|_| Refusal::Usage("standard input is not UTF-8 text".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::looks_like_a_server;

    /// Claim: what has a port or a domain is taken for a server, and what has the ending of a file for a file.
    #[test]
    fn servers_without_a_scheme() {
        for server in
            ["localhost", "localhost:8080/x", "api.example.com", "10.0.0.1", "[::1]:80", "web:80"]
        {
            assert!(looks_like_a_server(server), "{server}");
        }
        for file in
            ["my.toml", "experiments/http/x.toml", "../my.toml", "my", "targets.txt", "a b.c"]
        {
            assert!(!looks_like_a_server(file), "{file}");
        }
    }
}
