//! The system: starting a node or attaching to one, its accounts, its ladder, its connections, its ledger.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};

use clock::Clock;
use model::Seed;
use model::facts::{ClockRelation, PreflightFinding};
use serde_json::json;
use sut::{
    Deployment, Endpoint, Kind, Ledger, Link, Role, Session, SutError, System, Testbed, Workload,
};

use crate::accounts::{Account, Address, PREPARING};
use crate::course::Course;
use crate::funds;
use crate::hex;
use crate::known::Known;
use crate::ledger::{Chain, Use};
use crate::node::Wish;
use crate::observer::{ObserveSession, Success, texts};
use crate::rpc::Rpc;
use crate::session::SubmitSession;
use crate::transfer::{Terms, Transfers};
use crate::view::View;

/// The node's addresses in the deployment.
const SOCKET: &str = "websocket";
const HTTP: &str = "http";

/// What an account gets, in wei: a million ether of a chain for tests.
const FUNDS: u128 = 1_000_000 * ETHER;

/// And where somebody's own account pays for it.
const FUNDS_HELD: u128 = ETHER / 100;

const ETHER: u128 = 1_000_000_000_000_000_000;

/// The chain of a system that was not deployed: tests of the contract make transactions, and no node sees them.
const NO_CHAIN: u64 = 31_337;

/// What the adapter remembers of a deployment: up to this height the chain is of earlier trials.
struct HeightAtStart(u64);

/// A node as an experiment wants it.
pub(crate) struct Ethereum {
    pub(crate) wish: Wish,
    /// A node that runs already: where it speaks WebSocket, and where HTTP; absent: one is started.
    pub(crate) attach: Option<(SocketAddr, SocketAddr)>,
    pub(crate) confirmations: u64,
    pub(crate) success: Success,
    pub(crate) in_flight_max: u32,
    pub(crate) funder: Option<Account>,
    pub(crate) course: Course,
    pub(crate) fee_max: u128,
    pub(crate) tip: u128,
    pub(crate) run_mark: u64,
    pub(crate) known: Arc<Known>,
    /// Made when they are first asked for.
    pub(crate) accounts: OnceLock<Arc<[Account]>>,
    /// The number of the chain, and the contract that refuses; known when the system is deployed.
    pub(crate) chain: OnceLock<(u64, Address)>,
}

impl Ethereum {
    /// The protocol on a connection, without a connection.
    pub(crate) fn session(
        &self,
        role: Role,
        index: u32,
        address: SocketAddr,
        begun: u64,
    ) -> Box<dyn Session> {
        let seed = Seed(self.run_mark).split_index("connection", u64::from(index));
        let channel = texts(address.to_string(), role == Role::Observe, seed);
        let known = Arc::clone(&self.known);
        match role {
            Role::Submit | Role::Probe => {
                Box::new(SubmitSession::new(channel, known, self.in_flight_max))
            }
            Role::Observe => {
                let view = View::new(begun, self.confirmations);
                Box::new(ObserveSession::new(channel, known, view, self.success))
            }
        }
    }

    fn accounts(&self) -> Arc<[Account]> {
        let make =
            || (0..self.course.accounts).map(|n| Account::of_run(self.run_mark, n)).collect();
        Arc::clone(self.accounts.get_or_init(make))
    }

    fn terms(&self) -> Terms {
        let (chain, refusing) = self.chain.get().copied().unwrap_or((NO_CHAIN, [0; 20]));
        Terms { chain, fee_max: self.fee_max, tip: self.tip, refusing }
    }

    /// Gives the accounts their money, and makes the contract if there is a use for it.
    fn prepare(&self, rpc: &mut Rpc, chain: u64, clock: Clock) -> Result<(), String> {
        let terms = Terms { chain, ..self.terms() };
        let preparing = Account::of_run(self.run_mark, PREPARING);
        let mut all = self.accounts().to_vec();
        if self.course.reverting > 0 {
            all.push(preparing.clone());
        }
        let wei = if self.funder.is_some() { FUNDS_HELD } else { FUNDS };
        funds::give(rpc, &terms, self.funder.clone(), &all, wei, clock)?;
        let refusing = match self.course.reverting {
            0 => [0; 20],
            _ => funds::make_refusing(rpc, &terms, &preparing, clock)?,
        };
        // A second deployment of one system is of the same chain.
        let _ = self.chain.set((chain, refusing));
        Ok(())
    }

    fn words_of_success(&self) -> &'static str {
        match self.success {
            Success::Receipt => "a receipt with status 1",
            Success::Inclusion => "inclusion in a block",
        }
    }
}

impl System for Ethereum {
    fn stages(&self) -> Vec<String> {
        let all = ["accepted", "committed", "verified"].map(str::to_owned);
        all[..if self.confirmations == 0 { 2 } else { 3 }].to_vec()
    }

    fn kinds(&self) -> Vec<Kind> {
        vec![Kind::recorded("transfer"), Kind::recorded("reverting transfer")]
    }

    fn fidelity(&self) -> Vec<String> {
        let words = "a transfer counts as committed when it stands in a block, also where it reverted (success = \"inclusion\")";
        (self.success == Success::Inclusion).then(|| words.to_owned()).into_iter().collect()
    }

    fn deploy(&self, bed: &mut Testbed) -> Result<Deployment, SutError> {
        let clock = bed.clock();
        let (socket, http) = match self.attach {
            Some(both) => both,
            None => {
                let address = self.wish.start(bed)?;
                (address, address)
            }
        };
        let mut rpc = Rpc::new(http, clock);
        let ask = |rpc: &mut Rpc| {
            let version: String = rpc.ask("web3_clientVersion", json!([]))?;
            let chain = rpc.number("eth_chainId", json!([]))?;
            self.prepare(rpc, chain, clock)?;
            Ok((version, chain, rpc.height()?))
        };
        let (version, chain, height) = ask(&mut rpc).map_err(SutError::Deploy)?;
        let accounts = self.accounts();
        let facts = BTreeMap::from(
            [
                ("version", version),
                ("chain", chain.to_string()),
                ("accounts", accounts.len().to_string()),
                ("height_at_start", height.to_string()),
                ("committed_by", self.words_of_success().to_owned()),
            ]
            .map(|(name, value)| (format!("ethereum.{name}"), value)),
        );
        let is_here = socket.ip().is_loopback() || self.attach.is_none();
        Ok(Deployment {
            endpoints: vec![(SOCKET.to_owned(), socket), (HTTP.to_owned(), http)],
            nodes: bed.nodes(),
            facts,
            clocks: if is_here { ClockRelation::OneHost } else { ClockRelation::OtherHosts },
            state: Some(Arc::new(HeightAtStart(height))),
            folder: self.attach.is_none().then(|| bed.folder().to_owned()),
            ..Deployment::new(clock)
        })
    }

    fn workload(&self, seed: Seed, worker: u32, workers: u32) -> Box<dyn Workload> {
        let course = Course { seed, ..self.course };
        let rng = seed.split_index("recipients", u64::from(worker)).rng();
        let (accounts, terms) = (self.accounts(), self.terms());
        Box::new(Transfers::new(accounts, course, terms, rng, (worker, workers)))
    }

    fn connect(&self, to: &Deployment, role: Role, index: u32) -> Result<Link, SutError> {
        let address = endpoint(to, SOCKET)?;
        let HeightAtStart(begun) = to.state().expect("deploy says so");
        let session = self.session(role, index, address, *begun);
        Ok(Link::Wire(Endpoint { address, tls: None }, session))
    }

    fn observers(&self) -> u32 {
        1
    }

    /// Asks the node what a transfer would cost; nothing is submitted.
    fn preflight(&self, to: &Deployment) -> Result<Vec<PreflightFinding>, SutError> {
        let mut rpc = Rpc::new(endpoint(to, HTTP)?, to.clock);
        let accounts = self.accounts();
        let (from, last) = (&accounts[0], &accounts[accounts.len() - 1]);
        let payment = json!([{
            "from": hex::text(&from.address), "to": hex::text(&last.address), "value": "0x1",
        }]);
        let gas = rpc.number("eth_estimateGas", payment);
        let held = funds::balance(&mut rpc, &from.address);
        let cost = gas.and_then(|gas| affordable(gas, self.fee_max, held?));
        let is_taken = cost.is_ok();
        let detail =
            cost.map_or_else(|why| why, |gas| format!("would be taken, for {gas} units of gas"));
        let plain = PreflightFinding::new(&self.kinds()[0].name, is_taken, detail);
        let refused = "goes to a contract that refuses it";
        let reverting = PreflightFinding {
            remark: "it is to revert: mined, paid for, and without effect".to_owned(),
            ..PreflightFinding::new(&self.kinds()[1].name, true, refused)
        };
        let is_wanted = self.course.reverting > 0;
        Ok(std::iter::once(plain).chain(is_wanted.then_some(reverting)).collect())
    }

    fn ledger(&self, of: &Deployment) -> Result<Option<Box<dyn Ledger>>, SutError> {
        let HeightAtStart(begun) = of.state().expect("deploy says so");
        let usage = if self.attach.is_none() { Use::Own } else { Use::Shared };
        let rpc = Rpc::new(endpoint(of, HTTP)?, of.clock);
        let known = Arc::clone(&self.known);
        Ok(Some(Box::new(Chain::open(
            rpc,
            known,
            *begun,
            usage,
            (of.clock, Arc::clone(&of.stop)),
        )?)))
    }
}

/// The gas of a transfer, if an account that has so much may offer so much for a unit of it: a node takes no transfer whose
/// account could not pay the most that it offers.
fn affordable(gas: u64, fee_max: u128, held: u128) -> Result<u64, String> {
    let most = fee_max.saturating_mul(u128::from(gas));
    if held > most {
        return Ok(gas);
    }
    Err(format!(
        "expected an account to hold more than {most} wei, which is {gas} units of gas at fee_max_gwei, got {held}; \
         lower fee_max_gwei"
    ))
}

fn endpoint(of: &Deployment, name: &str) -> Result<SocketAddr, SutError> {
    let found = of.endpoint(name);
    found.ok_or_else(|| SutError::Deploy("the deployment has no address of a node".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Claim: what a funder gives an account does not pay for the dearest gas that is offered unless told otherwise, and
    /// that is said before the load; a hundredth of it is.
    #[test]
    fn funds_of_a_funder() {
        let gwei = 1_000_000_000;
        let refused = affordable(21_000, 10_000 * gwei, FUNDS_HELD).unwrap_err();
        assert!(refused.contains("lower fee_max_gwei"), "{refused}");
        assert_eq!(affordable(21_000, 100 * gwei, FUNDS_HELD), Ok(21_000));
        assert_eq!(affordable(21_000, 10_000 * gwei, FUNDS), Ok(21_000));
    }
}
