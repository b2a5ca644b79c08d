//! `[system.deploy]` and `[workload]` of the gateway: every key typed. What belongs to the load is the adapter of HTTP's to
//! read, and is read by it twice: here for mistakes, and when the requests are known.

use std::path::PathBuf;
use std::sync::OnceLock;

use ethereum_adapter::NodeKind;
use model::Seed;
use model::options::{Options, Problems, Section, Value};
use model::plan::LoadPlan;
use sut::{Request, System};

use crate::targets::Scenario;
use crate::upstream::Upstream;

/// Blocks of the first scenario unless said otherwise: as the published generator.
const DRAW: u64 = 5;

/// Transactions on the chain of a node that is started here.
const TRANSACTIONS: u64 = 400;

/// Keys of the workload that are ours; all others are of the adapter of HTTP.
const OURS: [&str; 2] = ["scenario", "draw"];

/// A gateway as an experiment wants it.
pub(crate) struct Gateway {
    pub(crate) upstream: Upstream,
    /// On the chain of a node that is started here.
    pub(crate) transactions: u64,
    /// Whether all that saves calls is off.
    pub(crate) is_plain: bool,
    pub(crate) arguments: Vec<String>,
    pub(crate) scenario: Scenario,
    pub(crate) draw: u64,
    pub(crate) of_load: OfLoad,
    pub(crate) seed: Seed,
    /// What loads the gateway; there when it is deployed.
    pub(crate) inner: OnceLock<Box<dyn System>>,
    /// The node's URL; there when it is deployed.
    pub(crate) node: OnceLock<String>,
}

/// Builds the system, or reports everything that is wrong.
pub(crate) fn build(request: &Request<'_>, problems: &mut Problems) -> Option<Box<dyn System>> {
    let system = read(request, problems)?;
    Some(Box::new(system))
}

/// The node that runs already: the gateway asks it for us.
pub(crate) fn targets(request: &Request<'_>) -> Vec<String> {
    request.deploy.get("upstream").map(Options::labels).unwrap_or_default()
}

pub(crate) fn read(request: &Request<'_>, problems: &mut Problems) -> Option<Gateway> {
    let before = problems.list.len();
    let mut deploy = Section::open(request.deploy, "system.deploy", problems);
    let upstream = upstream(&mut deploy, problems);
    let transactions = deploy.integer("transactions", 10, 100_000, problems);
    let is_plain = deploy.boolean("plain", problems).unwrap_or(false);
    let words = |deploy: &mut Section<'_>, problems: &mut Problems| -> Vec<String> {
        let list = deploy.strings("arguments", problems).unwrap_or_default();
        list.into_iter().map(str::to_owned).collect()
    };
    let arguments = words(&mut deploy, problems);
    deploy.finish(problems);
    let (scenario, draw) = scenario(request.workload, problems);
    let of_load = OfLoad::new(request);
    of_load.check(problems);
    (problems.list.len() == before).then(|| Gateway {
        upstream,
        transactions: transactions.unwrap_or(TRANSACTIONS),
        is_plain,
        arguments,
        scenario,
        draw,
        of_load,
        seed: Seed(request.run_mark).split("targets"),
        inner: OnceLock::new(),
        node: OnceLock::new(),
    })
}

fn upstream(deploy: &mut Section<'_>, problems: &mut Problems) -> Upstream {
    let node = deploy.one_of("node", &["mock", "anvil", "geth"], problems);
    let words = deploy.strings("node_arguments", problems);
    let at = deploy.string("upstream", problems);
    if at.is_some() && (node.is_some() || words.is_some()) {
        let message = "a node that runs already is not started";
        deploy.reject(
            "upstream",
            message,
            Some("remove it, or node and node_arguments".to_owned()),
            problems,
        );
    }
    if let Some(text) = at {
        let is_url = text.contains("://");
        let url = if is_url { text.to_owned() } else { format!("http://{text}") };
        let host = url.split_once("://").map_or("", |(_, rest)| rest);
        let is_named = !host.is_empty() && !host.starts_with(['/', ':']);
        let is_known = url.starts_with("http://") || url.starts_with("https://");
        // Without a scheme a name alone is more likely a slip than a host.
        let is_placed = is_url || host.contains(':');
        if is_known && is_named && is_placed {
            return Upstream::At(url);
        }
        let message = format!("`{text}` is not a URL such as http://127.0.0.1:8545");
        deploy.reject("upstream", message, None, problems);
        return Upstream::Played(Vec::new());
    }
    let kind = match node {
        Some("anvil") => NodeKind::Anvil,
        Some("geth") => NodeKind::Geth,
        _ => {
            let words = words.unwrap_or_default();
            return Upstream::Played(words.into_iter().map(str::to_owned).collect());
        }
    };
    if words.is_some_and(|words| !words.is_empty()) {
        let message = "`node_arguments` are of the node that is played";
        deploy.reject("node_arguments", message, None, problems);
    }
    Upstream::Started(kind)
}

/// Which requests, and how many blocks are drawn for them.
fn scenario(workload: &Options, problems: &mut Problems) -> (Scenario, u64) {
    // What is not ours is looked at below.
    let mut section = Section::open(workload, "workload", problems);
    let scenario = Scenario::of_word(section.one_of("scenario", Scenario::WORDS, problems));
    (scenario, section.integer("draw", 1, 500, problems).unwrap_or(DRAW))
}

/// What the adapter of HTTP is told, but for where and what.
pub(crate) struct OfLoad {
    workload: Options,
    folder: PathBuf,
    run_mark: u64,
    load: Option<LoadPlan>,
}

impl OfLoad {
    fn new(request: &Request<'_>) -> Self {
        let mut workload = Options::empty();
        if let Value::Table(table) = &request.workload.value {
            let theirs = table.iter().filter(|(key, _)| !OURS.contains(&key.as_str()));
            theirs.for_each(|(key, (_, value))| workload.set(key, value.clone()));
        }
        let folder = request.folder.to_owned();
        Self { workload, folder, run_mark: request.run_mark, load: request.load.cloned() }
    }

    /// Looks for mistakes before anything is started.
    fn check(&self, problems: &mut Problems) {
        let _ = self.build_with("http://127.0.0.1:1", |_| {}, problems);
    }

    /// The system that loads `url` with requests from a file.
    pub(crate) fn of_file(&self, url: &str, file: &str) -> Result<Box<dyn System>, String> {
        let mut problems = Problems::default();
        let system =
            self.build_with(url, |workload| workload.set("targets", text(file)), &mut problems);
        let why = || problems.list.iter().map(|one| one.message.clone()).collect::<Vec<_>>();
        system.ok_or_else(|| why().join("; "))
    }

    fn build_with(
        &self,
        url: &str,
        add: impl FnOnce(&mut Options),
        problems: &mut Problems,
    ) -> Option<Box<dyn System>> {
        let mut deploy = Options::empty();
        deploy.set("url", text(url));
        let mut workload = self.workload.clone();
        add(&mut workload);
        let request = Request {
            deploy: &deploy,
            workload: &workload,
            folder: &self.folder,
            run_mark: self.run_mark,
            load: self.load.as_ref(),
        };
        (http_adapter::ADAPTER.build)(&request, problems)
    }
}

fn text(text: &str) -> Options {
    Options { value: Value::String(text.to_owned()), span: model::options::Span::default() }
}
