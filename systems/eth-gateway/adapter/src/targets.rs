//! The requests of the published scenarios, written from what a chain holds: random blocks and what is in them, by the
//! trial's seed. They are a target file like any other, in the folder of the trial's nodes.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use ethereum_adapter::Rpc;
use model::Seed;
use model::seed::Rng;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::token::{TOTAL_SUPPLY, TRANSFER_TOPIC};

/// Blocks that are looked at for some that have transactions, at most, and so many in one request.
const LOOKED_AT_MAX: usize = 2_000;
const AT_ONCE: usize = 20;

/// Blocks that a search of logs covers.
const LOG_BLOCKS: u64 = 11;

/// Hexadecimal digits of 32 bytes, of 20, and of 64 bits.
const HASH_DIGITS: RangeInclusive<usize> = 64..=64;
const ADDRESS_DIGITS: RangeInclusive<usize> = 40..=40;
const NUMBER_DIGITS: RangeInclusive<usize> = 1..=16;

/// So much of a node's words is shown.
const SHOWN_MAX: usize = 80;

/// Which requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scenario {
    /// Blocks and transactions by hash and by height.
    Blocks,
    /// What one page of a wallet asks for.
    Dapp,
    /// All that the API offers, and the path with a slash too many that the published file has.
    Everything,
    /// One request over and over.
    Log,
    Call,
    Last,
}

impl Scenario {
    /// The words that an experiment chooses by.
    pub(crate) const WORDS: &'static [&'static str] =
        &["blocks", "dapp", "everything", "log", "call", "last"];

    pub(crate) fn of_word(word: Option<&str>) -> Self {
        match word {
            Some("dapp") => Self::Dapp,
            Some("everything") => Self::Everything,
            Some("log") => Self::Log,
            Some("call") => Self::Call,
            Some("last") => Self::Last,
            _ => Self::Blocks,
        }
    }
}

/// What of a block is used.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Block {
    hash: String,
    number: String,
    transactions: Vec<Transaction>,
}

#[derive(Clone, Debug, Deserialize)]
struct Transaction {
    hash: String,
    from: String,
    to: Option<String>,
    input: String,
}

impl Block {
    /// Refuses what is no hash, address or number. A node may say anything, and in a target file `${NAME}`, `@FILE` and a
    /// line's end mean more than text.
    fn check(&self) -> Result<(), String> {
        digits("hash", &self.hash, HASH_DIGITS)?;
        digits("number", &self.number, NUMBER_DIGITS)?;
        for one in &self.transactions {
            digits("hash", &one.hash, HASH_DIGITS)?;
            digits("from", &one.from, ADDRESS_DIGITS)?;
            if let Some(to) = &one.to {
                digits("to", to, ADDRESS_DIGITS)?;
            }
            digits("input", &one.input, 0..=usize::MAX)?;
        }
        Ok(())
    }
}

fn digits(name: &str, text: &str, count: RangeInclusive<usize>) -> Result<(), String> {
    let digits = text.strip_prefix("0x").filter(|digits| count.contains(&digits.len()));
    if digits.is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit())) {
        return Ok(());
    }
    let shown: String = text.chars().take(SHOWN_MAX).collect();
    Err(format!(
        "a block of the chain: expected `{name}` as 0x and its hexadecimal digits, got {shown:?}; choose another node"
    ))
}

/// Draws blocks of a chain that have something in them.
pub(crate) struct Draw<'a> {
    pub(crate) rpc: &'a mut Rpc,
    pub(crate) rng: Rng,
    pub(crate) height: u64,
}

impl<'a> Draw<'a> {
    pub(crate) fn new(rpc: &'a mut Rpc, seed: Seed) -> Result<Self, String> {
        let height = rpc.height()?;
        Ok(Self { rpc, rng: seed.rng(), height })
    }

    /// `count` different ones; fewer where there are not so many among the blocks that are looked at.
    fn blocks(&mut self, count: u64) -> Result<Vec<Block>, String> {
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        let mut found: Vec<Block> = Vec::new();
        let mut looked_at = BTreeSet::new();
        // Of a chain whose blocks are mostly empty many are looked at, but not all of a long one.
        let enough = usize::try_from(self.height).unwrap_or(usize::MAX).min(LOOKED_AT_MAX);
        while found.len() < count && looked_at.len() < enough {
            let mut some = Vec::with_capacity(AT_ONCE);
            while some.len() < AT_ONCE && looked_at.len() < enough {
                let height = 1 + self.rng.below(self.height.max(1));
                if looked_at.insert(height) {
                    some.push(("eth_getBlockByNumber", json!([format!("0x{height:x}"), true])));
                }
            }
            let blocks: Vec<Value> = self.rpc.ask_all(&some)?;
            for block in blocks {
                let block: Block = serde_json::from_value(block)
                    .map_err(|why| format!("a block of the chain: {why}"))?;
                block.check()?;
                if !block.transactions.is_empty() && found.len() < count {
                    found.push(block);
                }
            }
        }
        if found.is_empty() {
            let (height, looked_at) = (self.height, looked_at.len());
            return Err(format!(
                "expected blocks with transactions, got none among {looked_at} of {height}; choose a chain that is used"
            ));
        }
        Ok(found)
    }
}

/// The requests of a scenario, one a line; `draw`: how many blocks the first takes.
pub(crate) fn write(scenario: Scenario, draw: u64, chain: &mut Draw<'_>) -> Result<String, String> {
    let blocks = chain.blocks(if scenario == Scenario::Blocks { draw } else { 8 })?;
    let height = chain.height;
    let lines = match scenario {
        Scenario::Blocks => of_blocks(&blocks)?,
        Scenario::Dapp => dapp(&blocks, height),
        Scenario::Everything => everything(&blocks, height)?,
        Scenario::Log => vec![log(height)],
        Scenario::Call => vec![call(&blocks)],
        Scenario::Last => vec!["/block/last/full".to_owned()],
    };
    Ok(lines.iter().map(|line| format!("GET {line}\n")).collect())
}

fn decimal(block: &Block) -> Result<u64, String> {
    let number = u64::from_str_radix(block.number.trim_start_matches("0x"), 16);
    number.map_err(|why| format!("a block of the height `{}`: {why}", block.number))
}

/// In the order of the published generator: the last height, hashes of blocks, of transactions, heights.
fn of_blocks(blocks: &[Block]) -> Result<Vec<String>, String> {
    let mut lines = vec!["/block/last/height".to_owned()];
    lines.extend(blocks.iter().map(|block| format!("/block/{}", block.hash)));
    let transactions = blocks.iter().flat_map(|block| &block.transactions);
    lines.extend(transactions.map(|one| format!("/transaction/{}", one.hash)));
    for block in blocks {
        lines.push(format!("/block/{}", decimal(block)?));
    }
    Ok(lines)
}

/// The gas price, four balances, a search of logs and a call: seven requests.
fn wallet(blocks: &[Block], height: u64) -> Vec<String> {
    let all = blocks.iter().flat_map(|block| &block.transactions);
    let mut accounts: Vec<&str> =
        all.flat_map(|one| std::iter::once(one.from.as_str()).chain(one.to.as_deref())).collect();
    accounts.sort_unstable();
    accounts.dedup();
    let mut lines = vec!["/gasprice".to_owned()];
    lines.extend(accounts.iter().cycle().take(4).map(|account| format!("/balance/{account}")));
    lines.push(log(height));
    lines.push(call(blocks));
    lines
}

/// Twelve requests.
fn dapp(blocks: &[Block], height: u64) -> Vec<String> {
    let mut lines = wallet(blocks, height);
    lines.extend(["/block/last/full".to_owned(), "/block/last/height".to_owned()]);
    lines.extend(transactions(blocks, 3));
    lines
}

/// Forty-one requests, one of which can never succeed.
fn everything(blocks: &[Block], height: u64) -> Result<Vec<String>, String> {
    let mut lines = wallet(blocks, height);
    lines.extend(transactions(blocks, 5));
    let each = |count: usize| blocks.iter().cycle().take(count);
    lines.extend(each(5).map(|block| format!("/block/{}", block.hash)));
    lines.extend(each(6).map(|block| format!("/block/{}/full", block.hash)));
    for (count, end) in [(6, ""), (5, "/full"), (4, "/transaction/0")] {
        for block in each(count) {
            lines.push(format!("/block/{}{end}", decimal(block)?));
        }
    }
    lines.extend(["full", "", "height"].map(|end| format!("/block/last/{end}")));
    Ok(lines)
}

fn transactions(blocks: &[Block], count: usize) -> impl Iterator<Item = String> {
    let all = blocks.iter().flat_map(|block| &block.transactions).cycle();
    all.take(count).map(|one| format!("/transaction/{}", one.hash))
}

/// All that a token's holders moved in the last blocks.
fn log(height: u64) -> String {
    let first = height.saturating_sub(LOG_BLOCKS - 1);
    format!("/log/0x{first:x}/0x{height:x}/{TRANSFER_TOPIC}")
}

/// How much there is of a token: of what a transaction with data went to.
fn call(blocks: &[Block]) -> String {
    let mut all = blocks.iter().flat_map(|block| &block.transactions);
    let with_data = all.clone().find(|one| one.input.len() > 2 && one.to.is_some());
    let one = with_data.or_else(|| all.next()).expect("no drawn block is empty");
    let to = one.to.as_deref().unwrap_or(&one.from);
    format!("/call/{}/{to}/0x186a0/0x0/{TOTAL_SUPPLY}", one.from)
}

#[cfg(test)]
pub(crate) fn block(number: u64) -> Block {
    let transaction = |n: u64| Transaction {
        hash: format!("0x{:064x}", number * 100 + n),
        from: format!("0x{:040x}", 7 + n),
        to: Some(format!("0x{:040x}", 70 + n)),
        input: if n == 1 { "0xa9059cbb".to_owned() } else { "0x".to_owned() },
    };
    Block {
        hash: format!("0x{number:064x}"),
        number: format!("0x{number:x}"),
        transactions: (0..4).map(transaction).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Claim: the scenarios have the published numbers of requests of each form; the path that cannot succeed stands in
    /// one of them, once.
    #[test]
    fn published_counts() {
        let blocks: Vec<Block> = (10..18).map(block).collect();
        let count = |lines: &[String], form: fn(&str) -> bool| {
            lines.iter().filter(|line| form(line)).count()
        };
        let five = of_blocks(&blocks[..5]).unwrap();
        assert_eq!((five.len(), five[0].as_str()), (1 + 5 + 20 + 5, "/block/last/height"));
        let dapp = dapp(&blocks, 100);
        assert_eq!(dapp.len(), 12);
        assert_eq!(count(&dapp, |line| line.starts_with("/balance/0x")), 4);
        assert!(dapp.contains(&format!("/log/0x5a/0x64/{TRANSFER_TOPIC}")), "{dapp:?}");
        let call = &dapp[6];
        assert!(
            call.starts_with("/call/0x")
                && call.contains("/0x0000000000000000000000000000000000000047/"),
            "{call}"
        );
        let everything = everything(&blocks, 100).unwrap();
        assert_eq!(everything.len(), 41);
        assert_eq!(count(&everything, |line| line.ends_with('/')), 1);
        assert_eq!(
            count(&everything, |line| line.contains("/transaction/0")
                && !line.starts_with("/transaction")),
            4
        );
        assert_eq!(count(&everything, |line| line.ends_with("/full")), 12);
    }
}
