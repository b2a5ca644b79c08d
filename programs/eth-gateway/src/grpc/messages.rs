//! The messages of `proto/gateway.proto`, and how they are made of what the node gives.

use serde_json::Value;

use crate::quantity::Quantity;
use proto::{
    Access, Authorization, Block, Count, Data, Fate, FeeHistory, Height, Log, Logs, Receipt,
    Rewards, Sent, Transaction, Wei, Withdrawal,
};

/// Made by the compiler of the description.
pub mod proto {
    #![allow(
        clippy::all,
        clippy::unwrap_used,
        clippy::allow_attributes_without_reason,
        missing_docs,
        reason = "the compiler of the description writes it"
    )]
    include!(concat!(env!("OUT_DIR"), "/ethgateway.v1.rs"));
}

/// A message that is made of a body of the REST API; nothing if the body is none of it.
pub trait OfJson: Sized {
    fn of(body: &Value) -> Option<Self>;
}

fn text(of: &Value, name: &str) -> String {
    of[name].as_str().unwrap_or_default().to_owned()
}

fn quantity(of: &Value, name: &str) -> Option<Quantity> {
    of[name].as_str().and_then(Quantity::from_hex)
}

fn quantity_of(value: &Value) -> Option<Quantity> {
    value.as_str().and_then(Quantity::from_hex)
}

/// A number that the node may leave away.
fn optional(of: &Value, name: &str) -> Option<u64> {
    quantity(of, name).and_then(Quantity::to_u64)
}

fn texts(of: &Value) -> Vec<String> {
    let list = of.as_array().map_or(&[][..], Vec::as_slice);
    list.iter().filter_map(|it| it.as_str().map(str::to_owned)).collect()
}

fn number(of: &Value, name: &str) -> u64 {
    quantity(of, name).and_then(Quantity::to_u64).unwrap_or_default()
}

fn decimal(of: &Value, name: &str) -> String {
    quantity(of, name).map(Quantity::to_decimal).unwrap_or_default()
}

fn list<T: OfJson>(of: &Value) -> Option<Vec<T>> {
    of.as_array()?.iter().map(T::of).collect()
}

impl OfJson for Height {
    fn of(body: &Value) -> Option<Self> {
        body["lastBlockHeight"].as_str()?.parse().ok().map(|height| Self { height })
    }
}

impl OfJson for Wei {
    fn of(body: &Value) -> Option<Self> {
        let wei = body.get("gasPrice").or_else(|| body.get("balance"))?;
        Some(Self { wei: wei.as_str()?.to_owned() })
    }
}

impl OfJson for Count {
    fn of(body: &Value) -> Option<Self> {
        let names = ["nonce", "gas", "chainId"];
        let count = names.into_iter().find_map(|name| body.get(name))?;
        Some(Self { count: count.as_str()?.parse().ok()? })
    }
}

impl OfJson for Data {
    fn of(body: &Value) -> Option<Self> {
        let data = body.get("code").or_else(|| body.get("value")).unwrap_or(body);
        Some(Self { data: data.as_str()?.to_owned() })
    }
}

impl OfJson for Sent {
    fn of(body: &Value) -> Option<Self> {
        Some(Self { hash: body["hash"].as_str()?.to_owned() })
    }
}

impl OfJson for Fate {
    fn of(body: &Value) -> Option<Self> {
        let decimal = |value: &Value| value.as_str().and_then(|text| text.parse().ok());
        Some(Self {
            hash: body["hash"].as_str()?.to_owned(),
            state: body["state"].as_str()?.to_owned(),
            block_number: decimal(&body["block"]["height"]).unwrap_or_default(),
            block_hash: text(&body["block"], "hash"),
            confirmations: decimal(&body["confirmations"]).unwrap_or_default(),
            succeeded: body["succeeded"].as_bool(),
        })
    }
}

impl OfJson for FeeHistory {
    fn of(body: &Value) -> Option<Self> {
        let all = |of: &Value| {
            let list = of.as_array().map_or(&[][..], Vec::as_slice);
            list.iter()
                .map(|it| quantity_of(it).map(Quantity::to_decimal).unwrap_or_default())
                .collect()
        };
        let ratios = body["gasUsedRatio"].as_array().map_or(&[][..], Vec::as_slice);
        let rewards = body["reward"].as_array().map_or(&[][..], Vec::as_slice);
        Some(Self {
            oldest_block: quantity(body, "oldestBlock").and_then(Quantity::to_u64)?,
            base_fee_per_gas: all(&body["baseFeePerGas"]),
            gas_used_ratio: ratios.iter().filter_map(Value::as_f64).collect(),
            rewards: rewards.iter().map(|block| Rewards { wei: all(block) }).collect(),
        })
    }
}

impl OfJson for Block {
    fn of(body: &Value) -> Option<Self> {
        let all = body["transactions"].as_array()?;
        let hash = |it: &Value| it.as_str().map_or_else(|| text(it, "hash"), str::to_owned);
        Some(Self {
            hash: body["hash"].as_str()?.to_owned(),
            parent_hash: text(body, "parentHash"),
            number: number(body, "number"),
            timestamp: number(body, "timestamp"),
            miner: text(body, "miner"),
            gas_limit: number(body, "gasLimit"),
            gas_used: number(body, "gasUsed"),
            state_root: text(body, "stateRoot"),
            transaction_hashes: all.iter().map(hash).collect(),
            transactions: all.iter().filter_map(Transaction::of).collect(),
            base_fee_per_gas: decimal(body, "baseFeePerGas"),
            transactions_root: text(body, "transactionsRoot"),
            receipts_root: text(body, "receiptsRoot"),
            logs_bloom: text(body, "logsBloom"),
            extra_data: text(body, "extraData"),
            mix_hash: text(body, "mixHash"),
            nonce: text(body, "nonce"),
            size: number(body, "size"),
            difficulty: decimal(body, "difficulty"),
            sha3_uncles: text(body, "sha3Uncles"),
            uncles: texts(&body["uncles"]),
            withdrawals_root: text(body, "withdrawalsRoot"),
            withdrawals: list(&body["withdrawals"]).unwrap_or_default(),
            blob_gas_used: optional(body, "blobGasUsed"),
            excess_blob_gas: optional(body, "excessBlobGas"),
            parent_beacon_block_root: text(body, "parentBeaconBlockRoot"),
            requests_hash: text(body, "requestsHash"),
        })
    }
}

impl OfJson for Withdrawal {
    fn of(body: &Value) -> Option<Self> {
        Some(Self {
            index: number(body, "index"),
            validator_index: number(body, "validatorIndex"),
            address: body["address"].as_str()?.to_owned(),
            amount: number(body, "amount"),
        })
    }
}

impl OfJson for Transaction {
    fn of(body: &Value) -> Option<Self> {
        Some(Self {
            hash: body.as_object()?.get("hash")?.as_str()?.to_owned(),
            from: text(body, "from"),
            to: text(body, "to"),
            nonce: number(body, "nonce"),
            value: decimal(body, "value"),
            gas: number(body, "gas"),
            gas_price: decimal(body, "gasPrice"),
            input: text(body, "input"),
            block_hash: text(body, "blockHash"),
            block_number: number(body, "blockNumber"),
            transaction_index: number(body, "transactionIndex"),
            r#type: number(body, "type"),
            chain_id: optional(body, "chainId"),
            max_fee_per_gas: decimal(body, "maxFeePerGas"),
            max_priority_fee_per_gas: decimal(body, "maxPriorityFeePerGas"),
            access_list: list(&body["accessList"]).unwrap_or_default(),
            max_fee_per_blob_gas: decimal(body, "maxFeePerBlobGas"),
            blob_versioned_hashes: texts(&body["blobVersionedHashes"]),
            authorization_list: list(&body["authorizationList"]).unwrap_or_default(),
            v: text(body, "v"),
            r: text(body, "r"),
            s: text(body, "s"),
            y_parity: text(body, "yParity"),
        })
    }
}

impl OfJson for Access {
    fn of(body: &Value) -> Option<Self> {
        let address = body["address"].as_str()?.to_owned();
        Some(Self { address, storage_keys: texts(&body["storageKeys"]) })
    }
}

impl OfJson for Authorization {
    fn of(body: &Value) -> Option<Self> {
        Some(Self {
            chain_id: decimal(body, "chainId"),
            address: body["address"].as_str()?.to_owned(),
            nonce: number(body, "nonce"),
            y_parity: text(body, "yParity"),
            r: text(body, "r"),
            s: text(body, "s"),
        })
    }
}

impl OfJson for Receipt {
    fn of(body: &Value) -> Option<Self> {
        Some(Self {
            transaction_hash: body["transactionHash"].as_str()?.to_owned(),
            block_hash: text(body, "blockHash"),
            block_number: number(body, "blockNumber"),
            gas_used: number(body, "gasUsed"),
            status: optional(body, "status"),
            logs: list(&body["logs"])?,
            contract_address: text(body, "contractAddress"),
            from: text(body, "from"),
            to: text(body, "to"),
            cumulative_gas_used: number(body, "cumulativeGasUsed"),
            effective_gas_price: decimal(body, "effectiveGasPrice"),
            transaction_index: number(body, "transactionIndex"),
            r#type: number(body, "type"),
            logs_bloom: text(body, "logsBloom"),
            blob_gas_used: optional(body, "blobGasUsed"),
            blob_gas_price: decimal(body, "blobGasPrice"),
            root: text(body, "root"),
        })
    }
}

impl OfJson for Log {
    fn of(body: &Value) -> Option<Self> {
        body["topics"].as_array()?;
        Some(Self {
            address: body["address"].as_str()?.to_owned(),
            topics: texts(&body["topics"]),
            data: text(body, "data"),
            block_number: number(body, "blockNumber"),
            transaction_hash: text(body, "transactionHash"),
            log_index: number(body, "logIndex"),
            block_hash: text(body, "blockHash"),
            transaction_index: number(body, "transactionIndex"),
            removed: body["removed"].as_bool().unwrap_or_default(),
        })
    }
}

impl OfJson for Logs {
    fn of(body: &Value) -> Option<Self> {
        list(body).map(|logs| Self { logs })
    }
}

#[cfg(test)]
mod tests {
    use prost::Message as _;
    use serde_json::json;

    use super::*;

    /// Claim: a block with whole transactions becomes a message with the same hashes and quantities, also beyond 64 bits.
    #[test]
    fn of_a_block() {
        let body = json!({
            "hash": "0xaa", "parentHash": "0xbb", "number": "0x10", "timestamp": "0x5e2ce327",
            "baseFeePerGas": "0x7",
            "transactions": [{
                "hash": "0xcc", "to": null, "value": "0x10000000000000000", "nonce": "0x2", "type": "0x2",
                "maxFeePerGas": "0x9", "accessList": [{ "address": "0xdd", "storageKeys": ["0x1"] }],
            }],
        });
        let block = Block::of(&body).unwrap();
        assert_eq!((block.number, block.timestamp), (16, 1_580_000_039));
        assert_eq!((block.base_fee_per_gas.as_str(), block.blob_gas_used), ("7", None));
        assert_eq!(block.transaction_hashes, ["0xcc"]);
        let transaction = &block.transactions[0];
        assert_eq!(transaction.value, "18446744073709551616");
        assert_eq!((transaction.to.as_str(), transaction.r#type), ("", 2));
        assert_eq!(transaction.max_fee_per_gas, "9");
        assert_eq!(transaction.access_list[0].storage_keys, ["0x1"]);
        assert_eq!(Block::decode(block.encode_to_vec().as_slice()).unwrap(), block);
        assert_eq!(Block::of(&json!("0x1")), None);
    }

    /// Claim: a receipt from before Byzantium has no status, and is not said to be reverted.
    #[test]
    fn before_byzantium() {
        let receipt = |status: Value| {
            let mut body = json!({ "transactionHash": "0xaa", "logs": [], "root": "0xbb" });
            if !status.is_null() {
                body["status"] = status;
            }
            Receipt::of(&body).unwrap()
        };
        assert_eq!(receipt(Value::Null).status, None);
        assert_eq!(receipt(json!("0x0")).status, Some(0));
    }
}
