//! Giving the accounts of a trial something to send, and making the contract that refuses payments: before the load, in
//! blocks that the ledger does not begin with.

use std::time::Duration;

use clock::Clock;
use serde_json::{Value, json};

use crate::accounts::{Account, Address, first_contract};
use crate::hex;
use crate::rpc::Rpc;
use crate::transfer::{Terms, Unsigned};

/// Transfers in one request.
const AT_ONCE: usize = 100;

/// How long a chain may take to mine all of it.
const MINED_WITHIN: Duration = Duration::from_secs(120);

/// Where no money has come within this, the node's own account makes one payment more, of nothing: geth's chain for
/// development may overlook a transaction that comes in while it starts, and looks again when another comes.
const PUSHED_EVERY: Duration = Duration::from_secs(2);

/// How often that is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// What a contract begins as that has `60006000fd` (revert, with nothing to say) for its code: it copies the five bytes
/// behind its own twelve and gives them back.
const REFUSING: [u8; 17] = [
    0x60, 0x05, 0x60, 0x0c, 0x60, 0x00, 0x39, 0x60, 0x05, 0x60, 0x00, 0xf3, // the maker
    0x60, 0x00, 0x60, 0x00, 0xfd, // the contract
];

/// More than making that contract takes.
const GAS_CREATING: u64 = 200_000;

/// Where the money comes from.
enum Source {
    /// anvil writes it into the state.
    Given,
    /// An account that the node itself signs for.
    Unlocked { from: String, nonce: u64 },
    /// An account whose key the experiment names.
    Held { account: Box<Account>, nonce: u64 },
}

/// Gives every account `wei`. `held`: the account that has them, where the node has none.
pub(crate) fn give(
    rpc: &mut Rpc,
    terms: &Terms,
    held: Option<Account>,
    accounts: &[Account],
    wei: u128,
    clock: Clock,
) -> Result<(), String> {
    let mut source = source(rpc, held)?;
    for some in accounts.chunks(AT_ONCE) {
        let questions: Vec<(&str, Value)> =
            some.iter().map(|account| source.question(terms, &account.address, wei)).collect();
        rpc.ask_all::<Value>(&questions)?;
    }
    let mut pushed = clock.now();
    for account in accounts.iter().rev().take(AT_ONCE) {
        until(clock, "the accounts' money", || {
            let now = clock.now();
            if let Source::Unlocked { .. } = source
                && now >= pushed.plus(PUSHED_EVERY)
            {
                rpc.ask_all::<Value>(&[source.question(terms, &account.address, 0)])?;
                pushed = now;
            }
            Ok(balance(rpc, &account.address)? >= wei)
        })?;
    }
    // None of it comes after the load has begun, payments that pushed included.
    if let Source::Unlocked { from, nonce } = &source {
        let of = json!([from, "latest"]);
        until(clock, "the accounts' money", || {
            Ok(rpc.number("eth_getTransactionCount", of.clone())? >= *nonce)
        })?;
    }
    Ok(())
}

/// Makes the contract that refuses payments; it is the first of its account.
pub(crate) fn make_refusing(
    rpc: &mut Rpc,
    terms: &Terms,
    creator: &Account,
    clock: Clock,
) -> Result<Address, String> {
    let Terms { chain, tip, fee_max, .. } = *terms;
    let gas = GAS_CREATING;
    let creation =
        Unsigned { chain, nonce: 0, tip, fee_max, gas, to: None, value: 0, data: &REFUSING };
    let _hash: String =
        rpc.ask("eth_sendRawTransaction", json!([hex::text(&creation.sign(&creator.key))]))?;
    let address = first_contract(&creator.address);
    until(clock, "the contract that refuses payments", || {
        let code: String = rpc.ask("eth_getCode", json!([hex::text(&address), "latest"]))?;
        Ok(code == hex::text(&REFUSING[12..]))
    })?;
    Ok(address)
}

/// In wei; more than 128 bits hold counts as that.
pub(crate) fn balance(rpc: &mut Rpc, of: &Address) -> Result<u128, String> {
    let text: String = rpc.ask("eth_getBalance", json!([hex::text(of), "latest"]))?;
    let digits = text.strip_prefix("0x").unwrap_or_default();
    Ok(u128::from_str_radix(digits, 16).unwrap_or(u128::MAX))
}

fn source(rpc: &mut Rpc, held: Option<Account>) -> Result<Source, String> {
    if let Some(account) = held {
        let of = json!([hex::text(&account.address), "pending"]);
        let nonce = rpc.number("eth_getTransactionCount", of)?;
        return Ok(Source::Held { account: Box::new(account), nonce });
    }
    let version: String = rpc.ask("web3_clientVersion", json!([]))?;
    if version.starts_with("anvil") {
        return Ok(Source::Given);
    }
    // Public nodes have none, and some do not even say so.
    let own: Vec<String> = rpc.ask("eth_accounts", json!([])).unwrap_or_default();
    let from = own.into_iter().next().ok_or_else(|| {
        "the node has no account of its own to pay from; name a file with the secret key of one that has money: system.deploy.funder".to_owned()
    })?;
    // Said with each, because a node that counts them itself has not always counted the one before.
    let nonce = rpc.number("eth_getTransactionCount", json!([from, "pending"]))?;
    Ok(Source::Unlocked { from, nonce })
}

impl Source {
    fn question(&mut self, terms: &Terms, to: &Address, wei: u128) -> (&'static str, Value) {
        let (text, amount) = (hex::text(to), format!("0x{wei:x}"));
        match self {
            Self::Given => ("anvil_setBalance", json!([text, amount])),
            Self::Unlocked { from, nonce } => {
                let nonce = format!("0x{:x}", std::mem::replace(nonce, *nonce + 1));
                let payment = json!({ "from": from, "to": text, "value": amount, "nonce": nonce });
                ("eth_sendTransaction", json!([payment]))
            }
            Self::Held { account, nonce } => {
                let Terms { chain, tip, fee_max, .. } = *terms;
                let (gas, to) = (21_000, Some(to));
                let nonce = std::mem::replace(nonce, *nonce + 1);
                let data = &[];
                let payment = Unsigned { chain, nonce, tip, fee_max, gas, to, value: wei, data };
                ("eth_sendRawTransaction", json!([hex::text(&payment.sign(&account.key))]))
            }
        }
    }
}

/// Asks again until it is so.
fn until(
    clock: Clock,
    what: &str,
    mut is_so: impl FnMut() -> Result<bool, String>,
) -> Result<(), String> {
    let deadline = clock.now().plus(MINED_WITHIN);
    while !is_so()? {
        if clock.now() >= deadline {
            return Err(format!("{what} was not mined within {} s", MINED_WITHIN.as_secs()));
        }
        clock.sleep_until(clock.now().plus(LOOK_EVERY));
    }
    Ok(())
}
