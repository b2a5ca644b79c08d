//! The table of routes and fields: for people, for the OpenAPI document, for metrics.

/// A part of a path that the client chooses.
#[derive(Debug)]
pub struct Field {
    /// Its name in the template.
    pub name: &'static str,
    /// Its form in words.
    pub wanted: &'static str,
    /// Its form as a regular expression.
    pub pattern: &'static str,
    /// One that is well formed.
    pub example: &'static str,
}

/// One way to ask.
#[derive(Debug)]
pub struct Route {
    /// Its name: `operationId`, the label of metrics.
    pub name: &'static str,
    /// Its path.
    pub template: &'static str,
    /// One sentence on its answer.
    pub summary: &'static str,
    /// The schema of its answer, by name.
    pub answer: &'static str,
    /// Whether what is asked for may be absent.
    pub may_be_absent: bool,
    /// Whether the node may refuse it for what is asked.
    pub may_be_refused: bool,
    /// Whether it reaches the node at all.
    pub asks_node: bool,
    /// Whether it is a POST; all others are GETs.
    pub is_posted: bool,
    /// Parameters after the question mark.
    pub asked_with: &'static [&'static str],
}

const HASH: &str = "`0x` and 64 hexadecimal digits";
const ADDRESS: &str = "`0x` and 40 hexadecimal digits";
#[cfg(feature = "server")]
pub(super) const CHECKSUM: &str =
    "an address with the right checksum (EIP-55), or one in small letters";
const BLOCK: &str = "`last`, `latest`, `safe`, `finalized`, a height in up to 19 decimal digits, or a hash: `0x` and 64 hexadecimal digits";
const COUNT: &str = "a number of blocks, from 1 to 1024";
const HEIGHT: &str = "a height in up to 19 decimal digits";
const INDEX: &str = "a place in the block, from 0, in up to 9 decimal digits";
const NUMBER: &str = "a block's height: `0x` and up to 15 hexadecimal digits";
pub(super) const RANGE: &str = "not below `first`";
pub(super) const UNKNOWN: &str = "left away: this route is not asked with it";
const QUANTITY: &str = "`0x` and up to 64 hexadecimal digits";
const GAS: &str = "`0x` and up to 16 hexadecimal digits";
const DATA: &str = "`0x` and an even number of hexadecimal digits, 4096 at most";

/// Digits of the data of a call: its length must fit into a request line.
pub(super) const DATA_DIGITS_MAX: usize = 4096;
/// Blocks of a history of fees; more no node gives.
pub(super) const FEE_BLOCKS_MAX: u64 = 1024;

const BLOCK_PATTERN: &str = "^(0x[0-9a-fA-F]{64}|[0-9]{1,19}|last|latest|safe|finalized|earliest)$";
const HASH_PATTERN: &str = "^0x[0-9a-fA-F]{64}$";
const ADDRESS_PATTERN: &str = "^0x[0-9a-fA-F]{40}$";
pub(super) const HASH_EXAMPLE: &str =
    "0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef";
pub(super) const ADDRESS_EXAMPLE: &str = "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266";

/// Every field, by the name that it has in templates.
pub static FIELDS: [Field; 19] = [
    Field { name: "hash", wanted: HASH, pattern: HASH_PATTERN, example: HASH_EXAMPLE },
    Field { name: "block", wanted: BLOCK, pattern: BLOCK_PATTERN, example: "1" },
    Field { name: "slot", wanted: QUANTITY, pattern: "^0x[0-9a-fA-F]{1,64}$", example: "0x0" },
    Field { name: "count", wanted: COUNT, pattern: "^[0-9]{1,4}$", example: "4" },
    Field { name: "at", wanted: BLOCK, pattern: BLOCK_PATTERN, example: "latest" },
    Field { name: "topic0", wanted: HASH, pattern: HASH_PATTERN, example: HASH_EXAMPLE },
    Field { name: "topic1", wanted: HASH, pattern: HASH_PATTERN, example: HASH_EXAMPLE },
    Field { name: "topic2", wanted: HASH, pattern: HASH_PATTERN, example: HASH_EXAMPLE },
    Field { name: "topic3", wanted: HASH, pattern: HASH_PATTERN, example: HASH_EXAMPLE },
    Field { name: "height", wanted: HEIGHT, pattern: "^[0-9]{1,19}$", example: "1" },
    Field { name: "index", wanted: INDEX, pattern: "^[0-9]{1,9}$", example: "0" },
    Field { name: "address", wanted: ADDRESS, pattern: ADDRESS_PATTERN, example: ADDRESS_EXAMPLE },
    Field { name: "first", wanted: NUMBER, pattern: "^0x[0-9a-fA-F]{1,15}$", example: "0x1" },
    Field { name: "last", wanted: NUMBER, pattern: "^0x[0-9a-fA-F]{1,15}$", example: "0xa" },
    Field { name: "topic", wanted: HASH, pattern: HASH_PATTERN, example: HASH_EXAMPLE },
    Field { name: "from", wanted: ADDRESS, pattern: ADDRESS_PATTERN, example: ADDRESS_EXAMPLE },
    Field { name: "to", wanted: ADDRESS, pattern: ADDRESS_PATTERN, example: ADDRESS_EXAMPLE },
    Field { name: "gas", wanted: GAS, pattern: "^0x[0-9a-fA-F]{1,16}$", example: "0x5208" },
    Field { name: "value", wanted: QUANTITY, pattern: "^0x[0-9a-fA-F]{1,64}$", example: "0x0" },
];

/// The data of a call, which is too long for the table's other columns.
pub static DATA_FIELD: Field = Field {
    name: "data",
    wanted: DATA,
    pattern: "^0x([0-9a-fA-F]{2}){0,2048}$",
    example: "0x18160ddd",
};

const fn route(name: &'static str, template: &'static str, summary: &'static str) -> Route {
    Route {
        name,
        template,
        summary,
        answer: "Object",
        may_be_absent: false,
        may_be_refused: false,
        asks_node: true,
        is_posted: false,
        asked_with: &[],
    }
}

/// Routes whose answer is as of a block.
const AT: &[&str] = &["at"];
/// The parts of a search.
const SEARCH: &[&str] = &["first", "last", "address", "topic0", "topic1", "topic2", "topic3"];

/// Every route. The place of one is its number in metrics.
pub static ROUTES: [Route; 31] = [
    Route {
        answer: "Status",
        asks_node: false,
        ..route("status", "/", "Whether the gateway is there.")
    },
    Route {
        answer: "Transaction",
        may_be_absent: true,
        ..route("transaction", "/transaction/{hash}", "A transaction by its hash.")
    },
    Route {
        answer: "Receipt",
        may_be_absent: true,
        ..route("receipt", "/transaction/{hash}/receipt", "What became of a transaction.")
    },
    Route { answer: "Block", ..route("lastBlock", "/block/last", "The last block.") },
    Route {
        answer: "FullBlock",
        ..route("lastFullBlock", "/block/last/full", "The last block with whole transactions.")
    },
    Route {
        answer: "Height",
        ..route("lastHeight", "/block/last/height", "The height of the last block.")
    },
    Route {
        answer: "Block",
        may_be_absent: true,
        ..route("block", "/block/{block}", "A block by its hash or its height.")
    },
    Route {
        answer: "FullBlock",
        may_be_absent: true,
        ..route("fullBlock", "/block/{block}/full", "A block with whole transactions.")
    },
    Route {
        answer: "Transaction",
        may_be_absent: true,
        ..route(
            "transactionInBlock",
            "/block/{height}/transaction/{index}",
            "A transaction by its place in a block.",
        )
    },
    Route {
        answer: "GasPrice",
        ..route("gasPrice", "/gasprice", "What a unit of gas costs, in wei.")
    },
    Route {
        answer: "Balance",
        may_be_refused: true,
        asked_with: AT,
        ..route("balance", "/balance/{address}", "What an account has, in wei.")
    },
    Route {
        answer: "Logs",
        may_be_refused: true,
        ..route(
            "logs",
            "/log/{first}/{last}/{topic}",
            "Logs with this topic in blocks from the first to the last.",
        )
    },
    Route {
        answer: "Data",
        may_be_refused: true,
        asked_with: AT,
        ..route(
            "call",
            "/call/{from}/{to}/{gas}/{value}/{data}",
            "The answer of a contract, as of the last block; nothing is changed.",
        )
    },
    Route {
        answer: "Routes",
        asks_node: false,
        ..route("describe", "/describe", "The list of routes.")
    },
    Route {
        answer: "Nonce",
        may_be_refused: true,
        asked_with: AT,
        ..route("nonce", "/nonce/{address}", "How many transactions an account has sent.")
    },
    Route {
        answer: "Code",
        may_be_refused: true,
        asked_with: AT,
        ..route("code", "/code/{address}", "The code of a contract.")
    },
    Route {
        answer: "Storage",
        may_be_refused: true,
        asked_with: AT,
        ..route("storage", "/storage/{address}/{slot}", "A word of a contract's storage.")
    },
    Route {
        answer: "FeeHistory",
        may_be_refused: true,
        ..route("feeHistory", "/feehistory/{count}", "Base fees and tips of the last blocks.")
    },
    Route { answer: "ChainId", ..route("chainId", "/chainid", "The chain's number.") },
    Route {
        answer: "Fate",
        ..route(
            "fate",
            "/tx/{hash}",
            "What became of a transaction that was sent: pending, mined, safe, finalized, replaced, dropped or unknown.",
        )
    },
    Route {
        answer: "Logs",
        may_be_refused: true,
        asked_with: SEARCH,
        ..route("search", "/logs", "Logs by their address and topics in a range of blocks.")
    },
    Route {
        answer: "Gas",
        may_be_refused: true,
        ..route(
            "estimate",
            "/estimate/{from}/{to}/{value}/{data}",
            "The gas that a transaction would take.",
        )
    },
    Route {
        answer: "Ready",
        ..route("ready", "/ready", "Whether the node is there and of the right chain.")
    },
    Route {
        answer: "Sent",
        may_be_refused: true,
        is_posted: true,
        ..route("send", "/tx", "Sends a signed transaction; its fate is to be asked for.")
    },
    Route {
        answer: "Any",
        is_posted: true,
        ..route("rpc", "/rpc", "JSON-RPC 2.0: a call or a batch; also over a WebSocket.")
    },
    Route { asks_node: false, ..route("openapi", "/openapi.json", "This document.") },
    Route {
        answer: "Page",
        asks_node: false,
        ..route("swagger", "/swaggerui/", "This document, to be tried.")
    },
    Route {
        answer: "Metrics",
        asks_node: false,
        ..route("metrics", "/metrics", "Metrics for Prometheus.")
    },
    Route {
        answer: "Challenge",
        ..route(
            "challenge",
            "/auth/challenge/{address}",
            "A message to be signed by this account (EIP-4361).",
        )
    },
    Route {
        answer: "Token",
        asks_node: false,
        is_posted: true,
        ..route("token", "/auth/token", "A token for who signed a challenge.")
    },
    Route { asks_node: false, ..route("none", "", "What is no route.") },
];

/// So many routes are operations; after them come pages.
pub const OPERATIONS: usize = 23;

/// The field of this name.
#[must_use]
pub fn field(name: &str) -> Option<&'static Field> {
    FIELDS.iter().chain([&DATA_FIELD]).find(|field| field.name == name)
}
