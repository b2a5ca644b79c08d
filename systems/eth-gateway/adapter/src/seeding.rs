//! Putting something on the chain of a node for development: accounts with money, a token, and blocks with payments and
//! transfers of that token, all from the account that the node itself signs for. The same each time but for timestamps.

use std::ops::Range;
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

/// An odd one is a payment, and needs no contract.
const PAYMENT: u64 = 1;

/// Enough for each of ours.
const GAS: &str = "0x493e0";

/// A node that has not mined within this is made to make a block: geth may overlook a transaction that comes in while it
/// starts, and looks again when another comes.
const PUSHED_EVERY: Duration = Duration::from_secs(2);

/// Sends `count` transactions, half of them transfers of the token, and waits until all are mined. anvil makes a block when
/// it is told to: where it makes them of what comes in, it may leave out a transaction of several that come at once, or
/// drop it (foundry-rs/foundry#10122). Other nodes have no such method, say so, and make blocks of a few.
pub(crate) fn seed(rpc: &mut Rpc, count: u64, clock: Clock) -> Result<(), String> {
    let own: Vec<String> = rpc.ask("eth_accounts", json!([]))?;
    let from = own.into_iter().next().ok_or("the node has no account of its own to pay from")?;
    let nonce = rpc.number("eth_getTransactionCount", json!([from, "latest"]))?;
    let mut chain = Chain { rpc, clock, from, nonce, is_told: false };
    let contract = chain.token()?;
    chain.is_told = chain.rpc.ask::<Value>("evm_setAutomine", json!([false])).is_ok();
    let at_once = if chain.is_told { IN_A_BLOCK } else { AT_ONCE };
    let mut sent = 0;
    while sent < count {
        let some = (count - sent).min(at_once);
        chain.send(sent..sent + some, &contract)?;
        sent += some;
    }
    if chain.is_told {
        chain.rpc.ask::<Value>("evm_setAutomine", json!([true]))?;
    }
    Ok(())
}

/// A node's chain, and who pays for all that is put on it.
struct Chain<'a> {
    rpc: &'a mut Rpc,
    clock: Clock,
    from: String,
    /// Of his next transaction.
    nonce: u64,
    /// Whether it makes a block when it is told to, and else of what comes in.
    is_told: bool,
}

impl Chain<'_> {
    /// Makes the token, and gives where it is as soon as there is a receipt of it: a node may count the nonce before.
    fn token(&mut self) -> Result<String, String> {
        let creation = json!({ "from": self.from, "data": token::creation(), "gas": GAS });
        let hash: String = self.rpc.ask("eth_sendTransaction", json!([creation]))?;
        self.nonce += 1;
        let receipt = self.until_there(|chain| {
            let receipt: Value = chain.rpc.ask("eth_getTransactionReceipt", json!([hash]))?;
            Ok((!receipt.is_null()).then_some(receipt))
        })?;
        let address = receipt["contractAddress"].as_str().map(str::to_owned);
        address.ok_or_else(|| "the token was not made".to_owned())
    }

    /// Sends some, and waits until they are mined.
    fn send(&mut self, some: Range<u64>, contract: &str) -> Result<(), String> {
        let first = self.nonce;
        self.nonce += some.end - some.start;
        let questions: Vec<(&str, Value)> = (first..)
            .zip(some)
            .map(|(nonce, n)| ("eth_sendTransaction", transaction(n, &self.from, contract, nonce)))
            .collect();
        self.rpc.ask_all::<String>(&questions)?;
        if self.is_told {
            self.rpc.ask::<Value>("evm_mine", json!([]))?;
        }
        self.until_there(|chain| {
            let mined =
                chain.rpc.number("eth_getTransactionCount", json!([chain.from, "latest"]))?;
            Ok((mined >= chain.nonce).then_some(()))
        })
    }

    /// Asks until there is an answer. What the node refuses it may answer later: geth looks for no receipt while it
    /// indexes a block.
    fn until_there<T>(
        &mut self,
        ask: impl Fn(&mut Self) -> Result<Option<T>, String>,
    ) -> Result<T, String> {
        let mut pushed = self.clock.now();
        let deadline = pushed.plus(MINED_WITHIN);
        loop {
            let answer = ask(self);
            let now = self.clock.now();
            match answer {
                Ok(Some(there)) => return Ok(there),
                Err(refused) if now >= deadline => return Err(refused),
                Ok(None) if now >= deadline => {
                    let (nonce, seconds) = (self.nonce, MINED_WITHIN.as_secs());
                    return Err(format!(
                        "transaction {nonce} of the chain was not mined in {seconds} s"
                    ));
                }
                _ => {}
            }
            if now >= pushed.plus(PUSHED_EVERY) {
                self.push()?;
                pushed = now;
            }
            self.clock.sleep_until(now.plus(LOOK_EVERY));
        }
    }

    /// Has it make one more block.
    fn push(&mut self) -> Result<(), String> {
        if self.is_told {
            self.rpc.ask::<Value>("evm_mine", json!([]))?;
            return Ok(());
        }
        let payment = transaction(PAYMENT, &self.from, "", self.nonce);
        self.rpc.ask::<String>("eth_sendTransaction", payment)?;
        self.nonce += 1;
        Ok(())
    }
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
