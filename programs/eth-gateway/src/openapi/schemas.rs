//! Schemas of the answers. What the node gives is passed on as it is, so that only what every node's answer has is required.

use serde_json::{Value, json};

/// All schemas by name.
pub fn schemas() -> Value {
    let quantity = json!({ "type": "string", "pattern": "^0x[0-9a-fA-F]+$" });
    let hash = json!({ "type": "string", "pattern": "^0x[0-9a-fA-F]{64}$" });
    let address = json!({ "type": "string", "pattern": "^0x[0-9a-fA-F]{40}$" });
    let data = json!({ "type": "string", "pattern": "^0x([0-9a-fA-F]{2})*$" });
    let decimal = json!({ "type": "string", "pattern": "^[0-9]+$" });
    let whole = json!({ "type": "integer", "minimum": 0 });
    let one = |name: &str, schema: &Value| json!({ "type": "object", "required": [name], "properties": { name: schema } });
    let or_null = |schema: &Value| json!({ "anyOf": [schema, { "type": "null" }] });
    let block = |transaction: Value| {
        json!({
            "type": "object",
            "required": ["hash", "number", "parentHash", "timestamp", "transactions"],
            "properties": {
                "hash": hash, "number": quantity, "parentHash": hash, "timestamp": quantity,
                "gasLimit": quantity, "gasUsed": quantity, "miner": address, "stateRoot": hash,
                "transactions": { "type": "array", "items": transaction },
            },
        })
    };
    json!({
        "Status": { "type": "object", "required": ["ok"], "properties": { "ok": { "const": true } } },
        "Object": { "type": "object" },
        "Height": one("lastBlockHeight", &whole),
        "HeightV1": one("lastBlockHeight", &decimal),
        "GasPrice": one("gasPrice", &whole),
        "GasPriceV1": one("gasPrice", &decimal),
        "Balance": one("balance", &whole),
        "BalanceV1": one("balance", &decimal),
        "Data": data,
        "Nonce": one("nonce", &whole),
        "NonceV1": one("nonce", &decimal),
        "Gas": one("gas", &whole),
        "GasV1": one("gas", &decimal),
        "ChainId": one("chainId", &whole),
        "ChainIdV1": one("chainId", &decimal),
        "Code": one("code", &data),
        "Storage": one("value", &quantity),
        "FeeHistory": { "type": "object", "required": ["oldestBlock", "baseFeePerGas"] },
        "Any": {},
        "Signed": one("raw", &data),
        "Sent": {
            "type": "object",
            "required": ["hash", "fate"],
            "properties": { "hash": hash, "fate": { "type": "string" } },
        },
        "Fate": {
            "type": "object",
            "required": ["hash", "state"],
            "properties": {
                "hash": hash,
                "state": { "enum": ["pending", "mined", "safe", "finalized", "replaced", "dropped", "unknown"] },
                "succeeded": { "type": "boolean" },
                "confirmations": { "anyOf": [whole, decimal] },
            },
        },
        "Block": block(hash.clone()),
        "FullBlock": block(json!({ "$ref": "#/components/schemas/Transaction" })),
        "Transaction": {
            "type": "object",
            "required": ["hash", "from", "nonce", "value", "gas", "input"],
            "properties": {
                "hash": hash, "from": address, "to": or_null(&address), "nonce": quantity,
                "value": quantity, "gas": quantity, "input": data,
                "blockHash": or_null(&hash), "blockNumber": or_null(&quantity),
                "transactionIndex": or_null(&quantity),
            },
        },
        "Receipt": {
            "type": "object",
            "required": ["transactionHash", "blockHash", "blockNumber", "gasUsed", "logs"],
            "properties": {
                "transactionHash": hash, "blockHash": hash, "blockNumber": quantity,
                "gasUsed": quantity, "status": quantity,
                "logs": { "$ref": "#/components/schemas/Logs" },
            },
        },
        "Logs": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["address", "topics", "data"],
                "properties": {
                    "address": address, "data": data,
                    "topics": { "type": "array", "items": hash },
                    "blockNumber": or_null(&quantity), "transactionHash": or_null(&hash),
                    "logIndex": or_null(&quantity),
                },
            },
        },
        "Routes": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["name", "path", "methods"],
                "properties": {
                    "name": { "type": "string" }, "path": { "type": "string" },
                    "methods": { "type": "array", "items": { "type": "string" } },
                },
            },
        },
        "Challenge": one("message", &json!({ "type": "string" })),
        "SignedMessage": {
            "type": "object",
            "required": ["message", "signature"],
            "properties": {
                "message": { "type": "string" },
                "signature": { "type": "string", "pattern": "^0x[0-9a-fA-F]{130}$" },
            },
        },
        "Token": {
            "type": "object",
            "required": ["token", "expiresIn"],
            "properties": { "token": { "type": "string" }, "expiresIn": whole },
        },
        "Problem": {
            "type": "object",
            "required": ["title", "status", "code", "detail"],
            "properties": {
                "title": { "type": "string" }, "status": { "type": "integer" },
                "code": { "type": "string", "description": "What is wrong, in a word." },
                "detail": { "type": "string" },
                "field": { "type": "string", "description": "Which field." },
            },
        },
    })
}
