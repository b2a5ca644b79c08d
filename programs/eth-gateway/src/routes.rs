//! What the gateway can be asked: every route, once under `/` as it was published and once under `/v1`.
//!
//! [`find`] reads a path. [`ROUTES`] says the same for people and for the OpenAPI document; a test holds both together.

mod table;

#[cfg(feature = "server")]
use sha3::{Digest as _, Keccak256};

use crate::quantity::Quantity;
use crate::query::At;

#[cfg(feature = "server")]
use table::CHECKSUM;
use table::{DATA_DIGITS_MAX, FEE_BLOCKS_MAX, RANGE, UNKNOWN};
pub use table::{Field, OPERATIONS, ROUTES, Route, field};

/// A request that was understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Whether the gateway is there.
    Status,
    /// A transaction by its hash.
    Transaction(String),
    /// The receipt of a transaction.
    Receipt(String),
    /// The last block, with whole transactions or with their hashes.
    LastBlock {
        /// With whole transactions.
        full: bool,
    },
    /// The height of the last block.
    LastHeight,
    /// A block by its hash.
    BlockByHash {
        /// `0x` and 64 digits.
        hash: String,
        /// With whole transactions.
        full: bool,
    },
    /// A block by its height.
    BlockByHeight {
        /// Its height.
        height: u64,
        /// With whole transactions.
        full: bool,
    },
    /// A transaction by its place in a block.
    TransactionInBlock {
        /// The block's height.
        height: u64,
        /// Its place, from 0.
        index: u64,
    },
    /// A block by a word that the chain gives a meaning.
    BlockAt {
        /// Which.
        at: At,
        /// With whole transactions.
        full: bool,
    },
    /// The price of gas.
    GasPrice,
    /// What an account has.
    Balance {
        /// The account.
        address: String,
        /// When.
        at: At,
    },
    /// How many transactions an account has sent.
    Nonce {
        /// The account.
        address: String,
        /// When.
        at: At,
    },
    /// The code of a contract.
    Code {
        /// The account.
        address: String,
        /// When.
        at: At,
    },
    /// A word of a contract's storage.
    Storage {
        /// The account.
        address: String,
        /// Which.
        slot: Quantity,
        /// When.
        at: At,
    },
    /// Base fees and tips of the last blocks.
    FeeHistory {
        /// How many.
        count: u64,
    },
    /// The chain's number.
    ChainId,
    /// The fate of a transaction that was sent.
    Fate(String),
    /// A search of logs by any part of them.
    Search(Search),
    /// The gas that a transaction would take.
    Estimate {
        /// The sender.
        from: String,
        /// Where to.
        to: String,
        /// Wei.
        value: Quantity,
        /// `0x` and bytes.
        data: String,
    },
    /// Whether the node is there and of the right chain.
    Ready,
    /// Logs of a range of blocks with one topic.
    Logs {
        /// The first block.
        from: u64,
        /// The last block.
        to: u64,
        /// The topic.
        topic: String,
    },
    /// A call of a contract that changes nothing.
    Call {
        /// Who calls.
        from: String,
        /// What is called.
        to: String,
        /// Gas.
        gas: Quantity,
        /// Wei.
        value: Quantity,
        /// `0x` and bytes.
        data: String,
        /// When.
        at: At,
    },
    /// The list of routes.
    Describe,
}

/// Logs that are searched for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Search {
    /// The first block.
    pub from: At,
    /// The last block.
    pub to: At,
    /// The contract, if that matters.
    pub address: Option<String>,
    /// Topics by their places; those that do not matter are none.
    pub topics: [Option<String>; 4],
}

/// Why a path is no operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotFound {
    /// There is no such route; perhaps this one was meant.
    Route(Option<&'static str>),
    /// There is, and this field is wrong.
    Field {
        /// Its name in the template.
        name: &'static str,
        /// What it must be.
        wanted: &'static str,
    },
}

impl Operation {
    /// Its place in [`ROUTES`].
    #[must_use]
    pub fn route(&self) -> usize {
        match self {
            Self::Status => 0,
            Self::Transaction(_) => 1,
            Self::Receipt(_) => 2,
            Self::LastBlock { full } => 3 + usize::from(*full),
            Self::LastHeight => 5,
            Self::BlockByHash { full, .. }
            | Self::BlockByHeight { full, .. }
            | Self::BlockAt { full, .. } => 6 + usize::from(*full),
            Self::TransactionInBlock { .. } => 8,
            Self::GasPrice => 9,
            Self::Balance { .. } => 10,
            Self::Logs { .. } => 11,
            Self::Call { .. } => 12,
            Self::Describe => 13,
            Self::Nonce { .. } => 14,
            Self::Code { .. } => 15,
            Self::Storage { .. } => 16,
            Self::FeeHistory { .. } => 17,
            Self::ChainId => 18,
            Self::Fate(_) => 19,
            Self::Search(_) => 20,
            Self::Estimate { .. } => 21,
            Self::Ready => 22,
        }
    }
}

/// More segments than this no route has.
const SEGMENTS_MAX: usize = 7;

/// Reads a path, without `/v1` in front of it, and what follows its question mark. A slash at the end makes another
/// path, as it did where the API comes from.
///
/// # Errors
/// When there is no such route, or a field is not what it must be.
pub fn find(target: &str) -> Result<Operation, NotFound> {
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let mut operation = find_path(path)?;
    let asked_with = ROUTES[operation.route()].asked_with;
    if !asked_with.is_empty() {
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let known = asked_with.iter().find(|known| **known == name);
            let name = known.ok_or(NotFound::Field { name: "at", wanted: UNKNOWN })?;
            operation.ask_with(name, value)?;
        }
    }
    if let Operation::Search(Search { from: At::Height(from), to: At::Height(to), .. }) = &operation
        && to < from
    {
        return Err(NotFound::Field { name: "last", wanted: RANGE });
    }
    Ok(operation)
}

impl Operation {
    /// Takes one pair of what follows the question mark.
    fn ask_with(&mut self, name: &'static str, value: &str) -> Result<(), NotFound> {
        match self {
            Self::Balance { at, .. }
            | Self::Nonce { at, .. }
            | Self::Code { at, .. }
            | Self::Storage { at, .. }
            | Self::Call { at, .. } => *at = block(value, name)?,
            Self::Search(search) => match name {
                "first" => search.from = block_or_number(value, name)?,
                "last" => search.to = block_or_number(value, name)?,
                "address" => search.address = Some(address(value, name)?),
                topic => {
                    let place = usize::from(topic.as_bytes()[topic.len() - 1] - b'0');
                    search.topics[place] = Some(digits(value, 64, name)?);
                }
            },
            _ => {}
        }
        Ok(())
    }
}

fn find_path(path: &str) -> Result<Operation, NotFound> {
    let mut segments = [""; SEGMENTS_MAX];
    let mut count = 0;
    for segment in path.strip_prefix('/').unwrap_or(path).split('/') {
        if count == SEGMENTS_MAX {
            return Err(NotFound::Route(None));
        }
        segments[count] = segment;
        count += 1;
    }
    match segments[..count] {
        [""] => Ok(Operation::Status),
        ["describe"] => Ok(Operation::Describe),
        ["gasprice"] => Ok(Operation::GasPrice),
        ["block", "last"] => Ok(Operation::LastBlock { full: false }),
        ["block", "last", "full"] => Ok(Operation::LastBlock { full: true }),
        ["block", "last", "height"] => Ok(Operation::LastHeight),
        ["block", id] if !id.is_empty() => a_block(id, false),
        ["block", id, "full"] => a_block(id, true),
        ["block", height, "transaction", index] => Ok(Operation::TransactionInBlock {
            height: decimal(height, 19, "height")?,
            index: decimal(index, 9, "index")?,
        }),
        ["transaction", hash] if !hash.is_empty() => {
            Ok(Operation::Transaction(digits(hash, 64, "hash")?))
        }
        ["transaction", hash, "receipt"] => Ok(Operation::Receipt(digits(hash, 64, "hash")?)),
        ["tx", hash] if !hash.is_empty() => Ok(Operation::Fate(digits(hash, 64, "hash")?)),
        ["balance", whose] if !whose.is_empty() => {
            Ok(Operation::Balance { address: address(whose, "address")?, at: At::Latest })
        }
        ["nonce", whose] if !whose.is_empty() => {
            Ok(Operation::Nonce { address: address(whose, "address")?, at: At::Latest })
        }
        ["code", whose] if !whose.is_empty() => {
            Ok(Operation::Code { address: address(whose, "address")?, at: At::Latest })
        }
        ["storage", whose, slot] => Ok(Operation::Storage {
            address: address(whose, "address")?,
            slot: number(slot, 64, "slot")?,
            at: At::Latest,
        }),
        ["chainid"] => Ok(Operation::ChainId),
        ["ready"] => Ok(Operation::Ready),
        ["feehistory", count] => {
            let count = decimal(count, 4, "count")?;
            let is_within = (1..=FEE_BLOCKS_MAX).contains(&count);
            if is_within { Ok(Operation::FeeHistory { count }) } else { Err(wrong("count")) }
        }
        ["log", first, last, topic] => logs(first, last, topic),
        ["logs"] => Ok(Operation::Search(Search {
            from: At::Latest,
            to: At::Latest,
            address: None,
            topics: [const { None }; 4],
        })),
        ["estimate", from, to, value, data] => Ok(Operation::Estimate {
            from: address(from, "from")?,
            to: address(to, "to")?,
            value: number(value, 64, "value")?,
            data: bytes(data)?,
        }),
        ["call", from, to, gas, value, data] => Ok(Operation::Call {
            from: address(from, "from")?,
            to: address(to, "to")?,
            gas: number(gas, 16, "gas")?,
            value: number(value, 64, "value")?,
            data: bytes(data)?,
            at: At::Latest,
        }),
        _ => Err(NotFound::Route(meant(path))),
    }
}

/// The route that there is without the slash at the end.
fn meant(path: &str) -> Option<&'static str> {
    let without = path.strip_suffix('/').filter(|path| !path.is_empty())?;
    let found = find(without).ok()?;
    Some(ROUTES[found.route()].template)
}

fn wrong(name: &'static str) -> NotFound {
    NotFound::Field { name, wanted: field(name).map_or("", |field| field.wanted) }
}

fn a_block(id: &str, full: bool) -> Result<Operation, NotFound> {
    Ok(match block(id, "block")? {
        At::Hash(hash) => Operation::BlockByHash { hash, full },
        At::Height(height) if id != "earliest" => Operation::BlockByHeight { height, full },
        at => Operation::BlockAt { at, full },
    })
}

/// A block as a client names it.
fn block(id: &str, name: &'static str) -> Result<At, NotFound> {
    if let Some(at) = At::of_word(id).filter(|at| *at != At::Pending) {
        return Ok(at);
    }
    if id.starts_with("0x") {
        return Ok(At::Hash(digits(id, 64, name)?));
    }
    Ok(At::Height(decimal(id, 19, name)?))
}

/// The same of a range: a word, or a height in either notation.
fn block_or_number(id: &str, name: &'static str) -> Result<At, NotFound> {
    if id.starts_with("0x") {
        return Ok(At::Height(number(id, 15, name)?.to_u64().ok_or(wrong(name))?));
    }
    block(id, name)
}

fn logs(first: &str, last: &str, topic: &str) -> Result<Operation, NotFound> {
    let height = |text, name| number(text, 15, name)?.to_u64().ok_or(wrong(name));
    let (from, to) = (height(first, "first")?, height(last, "last")?);
    let topic = digits(topic, 64, "topic")?;
    if to < from {
        return Err(NotFound::Field { name: "last", wanted: RANGE });
    }
    Ok(Operation::Logs { from, to, topic })
}

/// An address, in small letters. Capitals among small letters are a checksum, and one that is wrong is a slip of the pen.
fn address(text: &str, name: &'static str) -> Result<String, NotFound> {
    let small = digits(text, 40, name)?;
    #[cfg(feature = "server")]
    {
        let letters = || text.bytes().skip(2).filter(u8::is_ascii_alphabetic);
        let is_mixed = letters().any(|it| it.is_ascii_uppercase())
            && letters().any(|it| it.is_ascii_lowercase());
        if is_mixed && checksummed(&small) != text {
            return Err(NotFound::Field { name, wanted: CHECKSUM });
        }
    }
    Ok(small)
}

/// An address with the checksum in its capitals (EIP-55); it comes in small letters.
#[cfg(feature = "server")]
#[must_use]
pub fn checksummed(address: &str) -> String {
    let digits = address.trim_start_matches("0x");
    let hash = Keccak256::digest(digits.as_bytes());
    let capital = |(index, digit): (usize, char)| {
        let nibble = hash[index / 2] >> (if index % 2 == 0 { 4 } else { 0 }) & 15;
        if nibble >= 8 { digit.to_ascii_uppercase() } else { digit }
    };
    let shown: String = digits.chars().enumerate().map(capital).collect();
    format!("0x{shown}")
}

/// `0x` and exactly so many hexadecimal digits, in small letters.
fn digits(text: &str, count: usize, name: &'static str) -> Result<String, NotFound> {
    let found = text.strip_prefix("0x").filter(|digits| digits.len() == count && is_hex(digits));
    found.map(|_| text.to_ascii_lowercase()).ok_or(wrong(name))
}

fn number(text: &str, digits_max: usize, name: &'static str) -> Result<Quantity, NotFound> {
    let is_short = text.len() <= digits_max + 2;
    Quantity::from_hex(text).filter(|_| is_short).ok_or(wrong(name))
}

fn decimal(text: &str, digits_max: usize, name: &'static str) -> Result<u64, NotFound> {
    let is_decimal = text.len() <= digits_max && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| is_decimal).ok_or(wrong(name))
}

fn bytes(text: &str) -> Result<String, NotFound> {
    let is_good = |digits: &&str| {
        digits.len().is_multiple_of(2) && digits.len() <= DATA_DIGITS_MAX && is_hex(digits)
    };
    let found = text.strip_prefix("0x").filter(is_good);
    found.map(|_| text.to_ascii_lowercase()).ok_or(wrong("data"))
}

/// Whether all of it is hexadecimal digits.
#[must_use]
pub fn is_hex(digits: &str) -> bool {
    digits.bytes().all(|byte| byte.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::table::{ADDRESS_EXAMPLE, HASH_EXAMPLE};
    use super::*;

    /// Claim: the table's templates, filled with their fields' examples, are found as the routes that they stand for, and
    /// every field of a template is in the table.
    #[test]
    fn table_and_reader_agree() {
        for (index, route) in ROUTES.iter().enumerate().take(OPERATIONS) {
            let mut path = String::new();
            for part in route.template.split_inclusive('/') {
                let (name, slash) = match part.strip_suffix('/') {
                    Some(name) => (name, "/"),
                    None => (part, ""),
                };
                match name.strip_prefix('{').and_then(|name| name.strip_suffix('}')) {
                    Some(name) => path.push_str(field(name).unwrap().example),
                    None => path.push_str(name),
                }
                path.push_str(slash);
            }
            assert_eq!(find(&path).unwrap().route(), index, "{path}");
        }
    }

    /// Claim: the published slash at the end is no route, and the route without it is named.
    #[test]
    fn slash_at_the_end() {
        assert_eq!(find("/block/last/"), Err(NotFound::Route(Some("/block/last"))));
        assert_eq!(find("/gasprice/"), Err(NotFound::Route(Some("/gasprice"))));
        assert_eq!(find("/nothing/"), Err(NotFound::Route(None)));
        assert_eq!(find("/a/b/c/d/e/f/g/h"), Err(NotFound::Route(None)));
    }

    /// Claim: a field that is wrong is named.
    #[test]
    fn fields() {
        let hash = HASH_EXAMPLE;
        let named = |path: &str| match find(path) {
            Err(NotFound::Field { name, .. }) => name,
            other => panic!("{path}: {other:?}"),
        };
        assert_eq!(named("/block/newest"), "block");
        assert_eq!(named("/block/0x12"), "block");
        assert_eq!(named("/block/18446744073709551616"), "block");
        assert_eq!(named("/block/1/transaction/x"), "index");
        assert_eq!(named("/transaction/0x1"), "hash");
        assert_eq!(named("/balance/0xff"), "address");
        assert_eq!(named(&format!("/log/1/0x2/{hash}")), "first");
        assert_eq!(named(&format!("/log/0x2/0x1/{hash}")), "last");
        assert_eq!(named("/log/0x1/0x2/0x3"), "topic");
        let checksummed = "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266";
        assert!(find(&format!("/balance/{checksummed}")).is_ok());
        let slip = checksummed.replace("cffFb", "cfFfb");
        assert_eq!(named(&format!("/balance/{slip}")), "address");
        assert!(find(&format!("/balance/{}", slip.to_ascii_lowercase())).is_ok());
        assert_eq!(named(&format!("/balance/{checksummed}?at=newest")), "at");
        assert_eq!(named(&format!("/balance/{checksummed}?when=1")), "at");
        assert_eq!(named("/logs?first=2&last=1"), "last");
        assert_eq!(named("/logs?topic2=0x1"), "topic2");
        assert_eq!(named("/feehistory/1025"), "count");
        let (from, call) = (ADDRESS_EXAMPLE, "0x0/0x0/0x0");
        assert_eq!(named(&format!("/call/{from}/x/{call}")), "to");
        assert_eq!(named(&format!("/call/{from}/{from}/0x1/0x1/0x123")), "data");
    }
}
