//! `[system.deploy]` and `[workload]` of an Ethereum node: every key typed, every mistake reported with its place. Nothing is
//! started here.

use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use model::Seed;
use model::options::{Options, Problems, Section};
use model::plan::Arrivals;
use sut::{Request, System};

use crate::accounts::Account;
use crate::course::{Course, PARTS};
use crate::hex;
use crate::known::Known;
use crate::node::{Which, Wish};
use crate::observer::Success;
use crate::system::Ethereum;

/// Outstanding on a connection unless said otherwise.
const IN_FLIGHT_MAX: u64 = 65_536;

/// What main networks had for years.
const GAS_LIMIT: u64 = 30_000_000;

/// Accounts unless said otherwise.
const ACCOUNTS: u64 = 100;

/// Each takes a key, an address and some money before the load.
const ACCOUNTS_MAX: u64 = 100_000;

/// Blocks on top of a transfer's own, at most: what is followed is bounded.
const CONFIRMATIONS_MAX: u64 = 1_000;

/// In gwei: what an account is willing to pay a unit of gas, and what of it is the maker's. Blocks that are full make the
/// base fee an eighth dearer each, so that it grows by a factor of a thousand in 59 of them.
const FEE_MAX_GWEI: u64 = 10_000;
const TIP_GWEI: u64 = 1;

const WEI_PER_GWEI: u128 = 1_000_000_000;

/// Reads both tables.
pub(crate) fn build(request: &Request<'_>, problems: &mut Problems) -> Option<Box<dyn System>> {
    let system = read(request, problems)?;
    Some(Box::new(system))
}

/// The node that runs already; one that is started here runs on this host.
pub(crate) fn targets(request: &Request<'_>) -> Vec<String> {
    let of = |key| request.deploy.get(key).map(Options::labels).unwrap_or_default();
    let (mut all, http): (Vec<String>, Vec<String>) = (of("attach"), of("attach_http"));
    all.extend(http);
    all
}

pub(crate) fn read(request: &Request<'_>, problems: &mut Problems) -> Option<Ethereum> {
    let before = problems.list.len();
    let mut deploy = Section::open(request.deploy, "system.deploy", problems);
    let attach = address(&mut deploy, "attach", problems);
    let attach_http = address(&mut deploy, "attach_http", problems).or(attach);
    let wish = wish(&mut deploy, request, problems);
    let confirmations = deploy.integer("confirmations", 0, CONFIRMATIONS_MAX, problems);
    let success = deploy.one_of("success", &["receipt", "inclusion"], problems);
    let in_flight_max = deploy.integer("in_flight_max", 1, 1 << 20, problems);
    let funder = funder(&mut deploy, request, problems);
    deploy.finish(problems);
    let course = course(request.workload, Seed(0), problems);
    let (fee_max, tip) = fees(request.workload, problems);
    enough_accounts(request, &course, problems);
    (problems.list.len() == before).then(|| Ethereum {
        wish,
        attach: attach.zip(attach_http),
        confirmations: confirmations.unwrap_or(0),
        success: if success == Some("inclusion") { Success::Inclusion } else { Success::Receipt },
        in_flight_max: u32::try_from(in_flight_max.unwrap_or(IN_FLIGHT_MAX)).expect("bounded"),
        funder,
        course,
        fee_max,
        tip,
        run_mark: request.run_mark,
        known: Arc::new(Known::default()),
        accounts: OnceLock::new(),
        chain: OnceLock::new(),
    })
}

fn wish(deploy: &mut Section<'_>, request: &Request<'_>, problems: &mut Problems) -> Wish {
    let which = Which::of_word(deploy.one_of("node", Which::WORDS, problems));
    let block_time = deploy.duration("block_time", problems);
    if which == Which::Geth && block_time.is_some_and(|every| every.subsec_nanos() > 0) {
        let message = "geth makes blocks every so many whole seconds";
        deploy.reject("block_time", message, None, problems);
    }
    if block_time.is_some_and(|every| every < Duration::from_millis(10)) {
        let message = "blocks come at most every 10ms; without `block_time` one is made as soon as there is something to put into it";
        deploy.reject("block_time", message, None, problems);
    }
    let gas_limit = deploy.integer("gas_limit", 100_000, 1 << 50, problems);
    let arguments = deploy.strings("arguments", problems).unwrap_or_default();
    let ours = ["node", "block_time", "gas_limit", "program", "arguments"];
    let message = "a node that runs already has its own settings";
    deploy.reject_beside("attach", &ours, message, problems);
    Wish {
        which,
        program: deploy.string("program", problems).map(|path| request.folder.join(path)),
        block_time,
        gas_limit: gas_limit.unwrap_or(GAS_LIMIT),
        arguments: arguments.into_iter().map(str::to_owned).collect(),
    }
}

fn address(
    deploy: &mut Section<'_>,
    key: &'static str,
    problems: &mut Problems,
) -> Option<SocketAddr> {
    let text = deploy.string(key, problems)?;
    let address = text.parse().ok();
    if address.is_none() {
        let message = format!("`{text}` is not an address such as 127.0.0.1:8545");
        deploy.reject(key, message, None, problems);
    }
    address
}

/// The account that pays, by the file that has its secret key: never by the key itself, which would stand in the plan.
fn funder(
    deploy: &mut Section<'_>,
    request: &Request<'_>,
    problems: &mut Problems,
) -> Option<Account> {
    let path = request.folder.join(deploy.string("funder", problems)?);
    let text = std::fs::read_to_string(&path);
    let secret = text.ok().and_then(|text| {
        let text = text.trim();
        hex::digits(text.strip_prefix("0x").unwrap_or(text).as_bytes())
    });
    let account = secret.and_then(|secret| Account::of_secret(&secret));
    if account.is_none() {
        let message = format!("{} holds no secret key of 64 hexadecimal digits", path.display());
        deploy.reject("funder", message, None, problems);
    }
    account
}

/// What the clients do, without their seed.
pub(crate) fn course(workload: &Options, seed: Seed, problems: &mut Problems) -> Course {
    let mut section = Section::open(workload, "workload", problems);
    let accounts = section.integer("accounts", 1, ACCOUNTS_MAX, problems).unwrap_or(ACCOUNTS);
    let clients = section.integer("clients_per_account", 1, 1_000, problems).unwrap_or(1);
    let mut share = |key| {
        let share = section.percent(key, problems).unwrap_or(0.0);
        parts(share)
    };
    let (replacing, reverting) = (share("replacing"), share("reverting"));
    // Read by `fees`.
    let _ = (section.raw("fee_max_gwei"), section.raw("tip_gwei"));
    section.finish(problems);
    Course {
        seed,
        accounts: u32::try_from(accounts).expect("bounded"),
        clients_per_account: u32::try_from(clients).expect("bounded"),
        replacing,
        reverting,
    }
}

/// A share between 0 and 1 in parts.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "at most PARTS, which a float holds exactly"
)]
fn parts(share: f64) -> u64 {
    (share.clamp(0.0, 1.0) * PARTS as f64).round() as u64
}

fn fees(workload: &Options, problems: &mut Problems) -> (u128, u128) {
    let mut unheard = Problems::default();
    let mut section = Section::open(workload, "workload", &mut unheard);
    let fee = section.integer("fee_max_gwei", 1, 1 << 40, problems).unwrap_or(FEE_MAX_GWEI);
    let tip = section.integer("tip_gwei", 0, 1 << 40, problems).unwrap_or(TIP_GWEI);
    if tip > fee {
        let message = "the tip is part of what an account pays at most, and cannot be more";
        section.reject("tip_gwei", message, None, problems);
    }
    (u128::from(fee) * WEI_PER_GWEI, u128::from(tip) * WEI_PER_GWEI)
}

/// Each engine thread has accounts of its own, and each client of a closed loop, unless the experiment wants them shared.
fn enough_accounts(request: &Request<'_>, course: &Course, problems: &mut Problems) {
    let Some(load) = request.load else { return };
    let (count, whose) = match load.arrivals {
        Arrivals::Closed { clients, .. } => (clients, "clients"),
        Arrivals::Open { .. } => (load.threads, "threads"),
    };
    if count > course.clients() {
        let workload = Section::open(request.workload, "workload", &mut Problems::default());
        let message = format!(
            "the load has {count} {whose} and the workload {} accounts for {} clients each: two would count nonces of one account apart",
            course.accounts, course.clients_per_account
        );
        let help = format!("accounts = {count}, or clients_per_account if that is what is wanted");
        workload.reject("accounts", message, Some(help), problems);
    }
}
