//! The command line as typed. It holds no decisions: each command's module turns its arguments into work.

mod quick;
mod spread;
mod watched;

use std::path::PathBuf;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, Parser, Subcommand, ValueEnum};
pub use quick::{QuickArguments, SearchOver};
use report::{FORMS, Form};
pub use spread::{AgentArguments, NatsArguments, SpreadArguments};
pub use watched::{TellArguments, WatchArguments};

/// The text that `assay` alone prints.
pub const WELCOME: &str = "\
assay measures what a client of a transaction system really gets: it loads the system, follows every
transaction from when it was due to when the client has verified it, audits the measurement and the
ledger, and writes a report with a verdict.

Nothing is ever sent anywhere but to the targets that you name.

Try:
  assay run demo                                        one minute, no network, every section of a report
  assay run http://127.0.0.1:8080/ --rate 50/s --duration 30s
  assay init --template http > my.toml                  an experiment file to start from
  assay run my.toml

assay --help lists all commands.
";

/// Measure what a client of a transaction system really gets.
#[derive(Debug, Parser)]
#[command(name = "assay", version = VERSION, propagate_version = true, max_term_width = 100)]
pub struct Cli {
    /// The command
    #[command(subcommand)]
    pub command: Option<Command>,
    /// Colour of the output
    #[arg(long, global = true, value_enum, default_value_t = ColorChoice::Auto)]
    pub color: ColorChoice,
}

/// The version with the commit that it was built from.
pub const VERSION: &str = env!("ASSAY_VERSION");

/// When to colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ColorChoice {
    /// If the output is a terminal and neither NO_COLOR nor TERM=dumb is set
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

/// All commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run an experiment: a file, a URL, `-` (vegeta targets on standard input), `demo` or `demo-kv`
    #[command(after_long_help = RUN_EXAMPLES)]
    Run(Box<RunArguments>),
    /// Carry out parts of loads for runs elsewhere: `assay run … --agents`
    #[command(after_long_help = spread::EXAMPLES)]
    Agent(AgentArguments),
    /// Validate an experiment; print the plan, the time it takes, and look at the host
    #[command(after_long_help = "Example:\n  assay check my.toml --explain")]
    Check(Box<CheckArguments>),
    /// Watch a run that goes on, in this terminal or in a browser, from its folder
    #[command(after_long_help = watched::EXAMPLES)]
    Watch(WatchArguments),
    /// Tell a run that goes on to start its load (with --hold), to stop, or to mark this moment
    #[command(after_long_help = watched::TELL_EXAMPLES)]
    Tell(TellArguments),
    /// Write the report of runs on disk
    #[command(
        after_long_help = "Examples:\n  assay report runs/20261121T065032Z_demo --format md -o report.md\n  assay report runs/20261121T065032Z_demo --part 1/4 -o part-1     # and 2/4, 3/4, 4/4, on any host\n  assay report runs/20261121T065032Z_demo --merge part-1 part-2 part-3 part-4"
    )]
    Report(ReportArguments),
    /// Seal the files of a run with a digest, sign it, or check that a run is as it was sealed and signed
    #[command(after_long_help = SEAL_EXAMPLES)]
    Seal(SealArguments),
    /// Compare two runs, number by number: better, worse, equivalent or inconclusive
    #[command(after_long_help = COMPARE_EXAMPLES)]
    Compare(CompareArguments),
    /// Give a run a name that `--baseline` and `assay compare` know; several runs may have the same
    #[command(after_long_help = "Example:\n  assay mark runs/20261121T065032Z_api main")]
    Mark(MarkArguments),
    /// Runs on disk: verdict and headline numbers; or the words that thresholds and experiments may use
    #[command(
        after_long_help = "Examples:\n  assay list\n  assay list --trend api -o trend.html\n  assay list numbers connections\n  assay list audits backlog_drift"
    )]
    List(ListArguments),
    /// Make an experiment file to start from: a template, or from targets, a HAR recording, OpenAPI
    #[command(after_long_help = INIT_EXAMPLES)]
    Init(InitArguments),
    /// Convert results: rows, vegeta's results and reports, HdrHistogram's files
    #[command(after_long_help = CONVERT_EXAMPLES)]
    Convert(ConvertArguments),
    /// Calibrate the instrument on this host and print its data sheet; install peers and real systems
    #[command(after_long_help = "Example:\n  assay doctor\n  assay doctor --install k6")]
    Doctor(DoctorArguments),
    /// Run one of the built-in systems for real
    #[command(after_long_help = "Example:\n  assay serve echo --help", disable_help_flag = true)]
    Serve(ServeArguments),
    /// Print a JSON Schema
    #[command(after_long_help = "Example:\n  assay schema result > result.schema.json")]
    Schema(SchemaArguments),
    /// Print completions for a shell
    #[command(
        after_long_help = "Example:\n  assay completions bash > /etc/bash_completion.d/assay"
    )]
    Completions(CompletionsArguments),
    /// Print the manual page
    #[command(after_long_help = "Example:\n  assay man | man -l -")]
    Man,
}

const RUN_EXAMPLES: &str = "Examples:
  assay run my.toml --set load.rate=80/s
  assay run http://127.0.0.1:8080/ --rate 50/s --duration 30s
  assay run - --rate 50/s --duration 30s < targets.txt
  assay run http://127.0.0.1:8080/ --find 'p99 < 100ms'
  assay run demo

Exit codes: 0 no threshold failed · 1 could not run · 2 usage or experiment-file error ·
97 undecided or invalid · 98 worse than the baseline · 99 a threshold or a check failed · 130 interrupted";

const COMPARE_EXAMPLES: &str = "Examples:
  assay compare runs/20261121T065032Z_api runs/20261122T065029Z_api
  assay compare main runs/20261122T065029Z_api --format md     # all runs marked `main` are the baseline
  assay compare runs/20261122T065029Z_versions --by version    # two labels of an axis of one run
  assay run my.toml --baseline main
  assay run http://127.0.0.1:8080/ --against http://127.0.0.1:8081/

Exit codes: 0 no number is told to be worse · 1 could not, or the sides differ in what matters · 2 usage ·
97 most numbers cannot be told · 98 a number is worse";

const SEAL_EXAMPLES: &str = "Examples:
  assay seal runs/20261121T065032Z_demo                       is it as it was sealed?
  assay seal --sign ~/.minisign/minisign.key runs/…           who measured: seal.sha256.minisig
  assay seal --verify minisign.pub runs/…                     by whom, and is it whole?

Keys are minisign's: `minisign -G` makes a pair. The password of a secret key is asked for, or taken from the variable
ASSAY_KEY_PASSWORD. Without Assay: sha256sum -c seal.sha256, and minisign -Vm seal.sha256 -p KEY.";

const INIT_EXAMPLES: &str = "Examples:
  assay init --template http > my.toml
  assay init --from recording.har -o my/
  assay init --from openapi.yaml > my.toml        # the targets stand in the experiment
  assay init --from http://127.0.0.1:8000/openapi.json -o my/
  assay init --from script.js > my.toml           # the options of a k6 script; its requests are yours to write

Secrets of a recording (Authorization, cookies, keys) are left out; the experiment says which and where to
name the environment variable that holds them.";

const CONVERT_EXAMPLES: &str = "Examples:
  assay convert runs/20261121T065032Z_demo/settings/default/trial-0 -o rows.csv
  vegeta encode --to csv results.bin | assay convert - -o rows.parquet
  assay convert latency.hlog -o latency.hgrm --tag committed

Stages of services (event-sampler, events) become a run in the folder OUT. What a format cannot hold is said on
standard error.

Exit codes: 0 converted · 1 could not · 2 usage, or a conversion that cannot be";

/// Arguments of `assay convert`.
#[derive(Debug, Args)]
pub struct ConvertArguments {
    /// File, run folder, folder of a trial, or `-`
    #[arg(value_name = "IN")]
    pub input: PathBuf,
    /// File to write; `-` is standard output
    #[arg(long, short, value_name = "OUT", default_value = "-")]
    pub output: PathBuf,
    /// Format of the input, where its name and first line do not say
    #[arg(long, value_name = "FORMAT", value_parser = formats())]
    pub from: Option<exchange::Format>,
    /// Format of the output, where its name does not say
    #[arg(long, value_name = "FORMAT", value_parser = formats())]
    pub to: Option<exchange::Format>,
    /// Which tag of an interval log, where the output has room for one
    #[arg(long, value_name = "TAG")]
    pub tag: Option<String>,
}

/// Arguments of `assay run`.
#[derive(Debug, Args)]
pub struct RunArguments {
    /// Experiment file, URL, `-`, `demo` or `demo-kv`
    #[arg(
        value_name = "EXPERIMENT|URL|-|demo",
        required_unless_present = "resume",
        conflicts_with = "resume"
    )]
    pub what: Option<String>,
    #[command(flatten)]
    pub layers: LayerArguments,
    #[command(flatten)]
    pub quick: QuickArguments,
    #[command(flatten)]
    pub spread: SpreadArguments,
    /// Go on with a run that was stopped: its whole trials stay, the others are run
    #[arg(long, value_name = "FOLDER", conflicts_with = "sandbox")]
    pub resume: Option<PathBuf>,
    /// Compare with a run folder, or with the runs that have this baseline name (see `assay mark`); exits with 98 where a
    /// number is worse
    #[arg(long, value_name = "NAME|FOLDER")]
    pub baseline: Option<String>,
    #[command(flatten)]
    pub compared: ComparedArguments,
    /// Folder that run folders are made in
    #[arg(long, value_name = "FOLDER", default_value = "runs")]
    pub runs: PathBuf,
    /// Print the result document on standard output instead of tables
    #[arg(long)]
    pub json: bool,
    /// Show every audit in full, not only those that warn or fail
    #[arg(long, short)]
    pub verbose: bool,
    /// How progress is shown on standard error
    #[arg(long, value_enum, default_value_t = ProgressChoice::Auto)]
    pub progress: ProgressChoice,
    /// Serve what the run does in OpenMetrics while it runs, at http://ADDRESS/metrics: 127.0.0.1:9464
    #[arg(long, value_name = "ADDRESS", value_parser = watched::address)]
    pub metrics: Option<std::net::SocketAddr>,
    /// Push the same each second to a receiver of OTLP over HTTP, in protobuf: http://127.0.0.1:4318. Headers, such as a key, are
    /// read from OTEL_EXPORTER_OTLP_HEADERS
    #[arg(long, value_name = "URL", value_parser = watched::receiver)]
    pub otlp: Option<String>,
    /// Copy the run folder, rows included, to an object store when the run has ended: s3://BUCKET/FOLDER, gs:// or az://. rclone
    /// carries it; credentials are read from the variables of the store's own tools. Exits with 1 in place of 0 if it cannot
    #[arg(long, value_name = "URL", value_parser = crate::run::check_store)]
    pub rows: Option<String>,
    /// Sample a process of the target's on this host (its number, or all of a name): processor, memory, descriptors; may be
    /// given several times
    #[arg(long = "pid", value_name = "PID|NAME")]
    pub pids: Vec<String>,
    /// Sample the metrics that the target serves in Prometheus's format; may be given several times
    #[arg(long, value_name = "URL", value_parser = watched::metrics_page)]
    pub scrape: Vec<String>,
    /// Confirm that a target which is neither loopback nor private may be loaded with more than 1,000/s
    #[arg(long)]
    pub i_own_this_target: bool,
    /// Leave out the calibration of this machine before the run
    #[arg(long)]
    pub no_calibration: bool,
    /// Deploy the system, then wait with the load until `assay tell start`
    #[arg(long)]
    pub hold: bool,
    /// Skip the test requests before the load: it is sent even if none of it can succeed
    #[arg(long)]
    pub no_preflight: bool,
}

/// The conditions of a comparison.
#[derive(Debug, Args)]
pub struct ComparedArguments {
    /// Ratios within this make no difference [default: 5%]
    #[arg(long, value_name = "PERCENT")]
    pub margin: Option<String>,
    /// Compare although plans, hosts or builds differ in what matters
    #[arg(long)]
    pub anyway: bool,
}

/// Arguments of `assay compare`.
#[derive(Debug, Args)]
pub struct CompareArguments {
    /// Baseline and candidate: run folders, or baseline names; or one run of which two labels of an axis are compared
    #[arg(value_name = "RUN", required = true, num_args = 1..=2)]
    pub sides: Vec<String>,
    /// The axis whose first two labels are the sides of one run
    #[arg(long, value_name = "AXIS", default_value = plan::SIDE_AXIS)]
    pub by: String,
    #[command(flatten)]
    pub compared: ComparedArguments,
    /// Form of the comparison
    #[arg(long, default_value = "text", value_parser = forms(|form| form.of_comparison.is_some()))]
    pub format: &'static Form,
    /// File to write; `-` is standard output
    #[arg(long, short, value_name = "FILE", default_value = "-")]
    pub output: PathBuf,
    /// Folder of run folders that baseline names are looked for in
    #[arg(long, value_name = "FOLDER", default_value = "runs")]
    pub runs: PathBuf,
}

/// Arguments of `assay mark`.
#[derive(Debug, Args)]
pub struct MarkArguments {
    /// Run folder
    #[arg(value_name = "RUN")]
    pub folder: PathBuf,
    /// Baseline name: letters, digits, `-`, `_`, `.`, `+`
    #[arg(value_name = "NAME")]
    pub name: String,
    /// Take the name away
    #[arg(long)]
    pub remove: bool,
}

/// Layers over the experiment file.
#[derive(Debug, Args)]
pub struct LayerArguments {
    /// Overlay a profile of the experiment file
    #[arg(long, value_name = "NAME")]
    pub profile: Option<String>,
    /// Set a value, such as load.rate=80/s
    #[arg(long = "set", value_name = "PATH=VALUE")]
    pub sets: Vec<String>,
    /// Seed of the run
    #[arg(long, value_name = "NUMBER")]
    pub seed: Option<u64>,
    /// Trials of each setting
    #[arg(long, value_name = "COUNT")]
    pub trials: Option<u32>,
    /// Refuse what a stranger's experiment must not do here: start programs, read files that are not beside it, ask for
    /// variables of the environment
    #[arg(long)]
    pub sandbox: bool,
}

/// How to show progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ProgressChoice {
    /// A live block on a terminal, a plain line every 10 s otherwise
    Auto,
    /// The live block
    Tui,
    /// Plain lines
    Line,
    /// Nothing
    None,
}

/// Arguments of `assay check`.
#[derive(Debug, Args)]
pub struct CheckArguments {
    /// Experiment file
    #[arg(value_name = "EXPERIMENT")]
    pub what: String,
    #[command(flatten)]
    pub layers: LayerArguments,
    #[command(flatten)]
    pub quick: QuickArguments,
    /// Print every effective value and where it came from
    #[arg(long)]
    pub explain: bool,
}

/// Arguments of `assay report`.
#[derive(Debug, Args)]
pub struct ReportArguments {
    /// Run folders; without one, the newest under `runs`; two that can be compared are (see `assay compare`)
    #[arg(value_name = "RUN")]
    pub runs: Vec<PathBuf>,
    /// Form of the report
    #[arg(long, default_value = "text", value_parser = forms(|_| true))]
    pub format: &'static Form,
    /// File to write, a folder for figures; `-` is standard output
    #[arg(long, short, value_name = "FILE", default_value = "-")]
    pub output: PathBuf,
    /// Every audit in full
    #[arg(long, short)]
    pub verbose: bool,
    /// Exit with the code of the run's verdict (97, 99, …) instead of 0
    #[arg(long)]
    pub verdict: bool,
    /// Look through every byte of the run folder for secrets instead; exits with 1 if there is one
    #[arg(long, conflicts_with_all = ["format", "output", "verdict"])]
    pub check_secrets: bool,
    /// Read a share of the rows only (`2/4`: the second of four) and write what it counts to -o, for --merge
    #[arg(long, value_name = "I/N", conflicts_with_all = ["format", "verdict", "check_secrets"])]
    pub part: Option<record::Share>,
    /// Make the report of what readers of all shares have counted (--part)
    #[arg(long, value_name = "FILE", num_args = 1.., conflicts_with_all = ["part", "check_secrets"])]
    pub merge: Vec<PathBuf>,
}

/// Arguments of `assay seal`.
#[derive(Debug, Args)]
pub struct SealArguments {
    /// Run folders
    #[arg(value_name = "RUN", required = true)]
    pub runs: Vec<PathBuf>,
    /// Sign with this secret key, a file of minisign's; a run without a seal is sealed first
    #[arg(long, value_name = "KEY")]
    pub sign: Option<PathBuf>,
    /// Check the files and the signature with this public key, a file of minisign's or the key itself
    #[arg(long, value_name = "KEY", conflicts_with = "sign")]
    pub verify: Option<String>,
}

/// Takes the word of one of the forms that are chosen.
fn forms(chosen: fn(&&'static Form) -> bool) -> impl TypedValueParser<Value = &'static Form> {
    let value = |form: &'static Form| PossibleValue::new(form.name).help(form.about);
    let of_word = |word: String| FORMS.iter().find(|form| form.name == word).expect("is one");
    PossibleValuesParser::new(FORMS.iter().filter(chosen).map(value)).map(of_word)
}

/// Takes the word of a format.
fn formats() -> impl TypedValueParser<Value = exchange::Format> {
    let value = |it: exchange::Format| PossibleValue::new(it.word()).help(it.about());
    let of_word = |word: String| exchange::Format::from_word(&word).expect("is one");
    PossibleValuesParser::new(exchange::Format::all().map(value)).map(of_word)
}

/// Arguments of `assay list`.
#[derive(Debug, Args)]
pub struct ListArguments {
    /// The list to print, if not the runs
    #[command(subcommand)]
    pub of: Option<ListOf>,
    /// Folder of run folders
    #[arg(long, value_name = "FOLDER", default_value = "runs")]
    pub runs: PathBuf,
    /// Print JSON
    #[arg(long, global = true)]
    pub json: bool,
    /// The history of an experiment: its numbers run by run, and where their level changed
    #[arg(long, value_name = "EXPERIMENT")]
    pub trend: Option<String>,
    /// Runs of the history, the newest ones
    #[arg(long, value_name = "COUNT", default_value_t = 200, requires = "trend")]
    pub last: usize,
    /// Levels of the history that differ by less are the same [default: 5%]
    #[arg(long, value_name = "PERCENT", requires = "trend")]
    pub margin: Option<String>,
    /// Write the history as a page
    #[arg(long, short, value_name = "FILE", requires = "trend")]
    pub output: Option<PathBuf>,
}

/// Lists of words.
#[derive(Debug, Subcommand)]
pub enum ListOf {
    /// Numbers of a result that thresholds and tables may name
    Numbers(WordArguments),
    /// Audits with what they ask, and their figures
    Audits(WordArguments),
    /// Kinds of faults that an experiment may inject
    Faults(WordArguments),
    /// Sections of the page
    Sections(WordArguments),
}

/// Arguments of a list of words.
#[derive(Debug, Args)]
pub struct WordArguments {
    /// Only those that have this in their name
    #[arg(value_name = "NAME")]
    pub name: Option<String>,
}

/// Arguments of `assay init`.
#[derive(Debug, Args)]
pub struct InitArguments {
    /// Which template
    #[arg(long, value_enum, default_value_t = Template::Http)]
    pub template: Template,
    /// Make the experiment of a file (or a URL) instead: vegeta targets, a HAR recording, an OpenAPI 3
    /// description, the options of a k6 script
    #[arg(long, value_name = "FILE", conflicts_with = "template")]
    pub from: Option<PathBuf>,
    /// Folder to write experiment.toml into, and targets.json beside it; nothing is overwritten
    #[arg(long, short, value_name = "FOLDER")]
    pub output: Option<PathBuf>,
    /// Which host's requests to keep; the most frequent one otherwise
    #[arg(long, value_name = "HOST", requires = "from")]
    pub host: Option<String>,
    /// Make one user's flow of a recording: what an answer says and a later request holds is carried on
    #[arg(long, requires = "from")]
    pub flow: bool,
    /// Take operations beyond GET and HEAD from a description too
    #[arg(long, requires = "from")]
    pub all_methods: bool,
}

/// Templates of experiment files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Template {
    /// An HTTP API: several rates, a threshold
    Http,
    /// The built-in echo system: a queue whose theory is known
    Echo,
    /// A staged pipeline: accepted, committed
    Stages,
    /// A ledger read back, of an honest system and of a liar
    Ledger,
    /// Users of an HTTP API who log in, keep a token and go on
    Flow,
}

/// Arguments of `assay doctor`.
#[derive(Debug, Args)]
pub struct DoctorArguments {
    /// Install a peer or a real system, pinned, into the cache folder; or build a node that is a program of its own
    #[arg(long, value_name = "NAME")]
    pub install: Option<String>,
    /// The checkout to build a node from, if this program was not built in one
    #[arg(long, value_name = "FOLDER", requires = "install")]
    pub checkout: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `assay serve`.
#[derive(Debug, Args)]
pub struct ServeArguments {
    /// The system, and its own options
    #[arg(
        value_name = "SYSTEM",
        required = true,
        trailing_var_arg = true,
        allow_hyphen_values = true
    )]
    pub words: Vec<String>,
}

/// Arguments of `assay schema`.
#[derive(Debug, Args)]
pub struct SchemaArguments {
    /// Of what
    #[arg(value_enum)]
    pub of: Schema,
}

/// Published schemas.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Schema {
    /// The result document
    Result,
    /// The experiment file
    Experiment,
}

/// Arguments of `assay completions`.
#[derive(Debug, Args)]
pub struct CompletionsArguments {
    /// The shell
    #[arg(value_enum)]
    pub shell: clap_complete::Shell,
}
