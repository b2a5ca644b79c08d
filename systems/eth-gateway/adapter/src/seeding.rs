//! Putting something on the chain of a node for development: accounts with money, a token, and blocks with payments and
//! transfers of that token, all from the account that the node itself signs for. The same each time but for timestamps.

use std::time::Duration;

use clock::Clock;
use ethereum_adapter::Rpc;
use serde_json::{Value, json};

use crate::token;

/// Transactions in one request to a node that makes blocks when it wants.
const AT_ONCE: u64 = 50;

/// Transactions in a block of a node that makes them when it is told.
const IN_A_BLOCK: u64 = 5;

/// Accounts that payments go to.
const ACCOUNTS: u64 = 20;

/// How long a node may take to mine one request's.
const MINED_WITHIN: Duration = Duration::from_secs(60);

/// How often that is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Enough for each of ours.
const GAS: &str = "0x493e0";

/// Sends `count` transactions, half of them transfers of the token, and waits until all are mined. anvil makes a block when
/// it is told to: where it makes them of what comes in, it may leave out a transaction of several that come at once, or
/// drop it (foundry-rs/foundry#10122). Other nodes have no such method, say so, and make blocks of a few.
pub(crate) fn seed(rpc: &mut Rpc, count: u64, clock: Clock) -> Result<(), String> {
    let own: Vec<String> = rpc.ask("eth_accounts", json!([]))?;
    let from = own.into_iter().next().ok_or("the node has no account of its own to pay from")?;
    let mut nonce = rpc.number("eth_getTransactionCount", json!([from, "latest"]))?;
    let creation = json!({ "from": from, "data": token::creation(), "gas": GAS });
    let hash: String = rpc.ask("eth_sendTransaction", json!([creation]))?;
    nonce += 1;
    let contract = contract(rpc, &hash, clock)?;
    let is_told = rpc.ask::<Value>("evm_setAutomine", json!([false])).is_ok();
    let at_once = if is_told { IN_A_BLOCK } else { AT_ONCE };
    let mut sent = 0;
    while sent < count {
        let some = (count - sent).min(at_once);
        let questions: Vec<(&str, Value)> = (sent..sent + some)
            .map(|n| ("eth_sendTransaction", transaction(n, &from, &contract, nonce + n)))
            .collect();
        rpc.ask_all::<String>(&questions)?;
        sent += some;
        if is_told {
            rpc.ask::<Value>("evm_mine", json!([]))?;
        }
        until_mined(rpc, &from, nonce + sent, clock)?;
    }
    if is_told {
        rpc.ask::<Value>("evm_setAutomine", json!([true]))?;
    }
    Ok(())
}

fn transaction(n: u64, from: &str, contract: &str, nonce: u64) -> Value {
    let to = account(n % ACCOUNTS);
    let nonce = format!("0x{nonce:x}");
    let transaction = match n % 2 {
        0 => json!({
            "from": from, "to": contract, "gas": GAS, "nonce": nonce,
            "data": token::transfer(&to, 1_000 + n),
        }),
        // More than 64 bits hold: balances are to be read whole.
        _ => json!({
            "from": from, "to": to, "gas": GAS, "nonce": nonce, "value": "0x1158e460913d00001",
        }),
    };
    json!([transaction])
}

/// Addresses that nobody has the key of.
fn account(n: u64) -> String {
    format!("0x{:040x}", 0xacc0_0000 + n)
}

/// Where the contract is that a transaction makes, as soon as there is a receipt of it: a node may count the nonce before,
/// and geth refuses to look for receipts while it still indexes the block.
fn contract(rpc: &mut Rpc, hash: &str, clock: Clock) -> Result<String, String> {
    let deadline = clock.now().plus(MINED_WITHIN);
    loop {
        let receipt: Result<Value, String> = rpc.ask("eth_getTransactionReceipt", json!([hash]));
        let is_late = clock.now() >= deadline;
        match receipt {
            Ok(receipt) if !receipt.is_null() => {
                let address = receipt["contractAddress"].as_str().map(str::to_owned);
                return address.ok_or_else(|| "the token was not made".to_owned());
            }
            Err(refused) if is_late => return Err(refused),
            Ok(_) if is_late => return Err("the token was not made in time".to_owned()),
            _ => {}
        }
        clock.sleep_until(clock.now().plus(LOOK_EVERY));
    }
}

fn until_mined(rpc: &mut Rpc, from: &str, nonce: u64, clock: Clock) -> Result<(), String> {
    let deadline = clock.now().plus(MINED_WITHIN);
    while rpc.number("eth_getTransactionCount", json!([from, "latest"]))? < nonce {
        if clock.now() >= deadline {
            let seconds = MINED_WITHIN.as_secs();
            return Err(format!("transaction {nonce} of the chain was not mined in {seconds} s"));
        }
        clock.sleep_until(clock.now().plus(LOOK_EVERY));
    }
    Ok(())
}
