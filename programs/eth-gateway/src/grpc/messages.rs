//! The messages of `proto/gateway.proto`, and how they are made of what the node gives. A test holds both together: it
//! compares the names of all fields, in the order of their numbers, with the compiled description.

use prost::Message;
use serde_json::Value;

use crate::quantity::Quantity;

#[derive(Clone, PartialEq, Message)]
pub struct Empty {}

#[derive(Clone, PartialEq, Message)]
pub struct HashRequest {
    #[prost(string, tag = "1")]
    pub hash: String,
}

#[derive(Clone, PartialEq, Message)]
pub struct BlockRequest {
    #[prost(string, tag = "1")]
    pub block: String,
    #[prost(bool, tag = "2")]
    pub full: bool,
}

#[derive(Clone, PartialEq, Message)]
pub struct PlaceRequest {
    #[prost(uint64, tag = "1")]
    pub height: u64,
    #[prost(uint64, tag = "2")]
    pub index: u64,
}

#[derive(Clone, PartialEq, Message)]
pub struct AddressRequest {
    #[prost(string, tag = "1")]
    pub address: String,
}

#[derive(Clone, PartialEq, Message)]
pub struct LogsRequest {
    #[prost(uint64, tag = "1")]
    pub first: u64,
    #[prost(uint64, tag = "2")]
    pub last: u64,
    #[prost(string, tag = "3")]
    pub topic: String,
}

#[derive(Clone, PartialEq, Message)]
pub struct CallRequest {
    #[prost(string, tag = "1")]
    pub from: String,
    #[prost(string, tag = "2")]
    pub to: String,
    #[prost(uint64, tag = "3")]
    pub gas: u64,
    #[prost(string, tag = "4")]
    pub value: String,
    #[prost(string, tag = "5")]
    pub data: String,
}

#[derive(Clone, PartialEq, Message)]
pub struct Height {
    #[prost(uint64, tag = "1")]
    pub height: u64,
}

#[derive(Clone, PartialEq, Message)]
pub struct Wei {
    #[prost(string, tag = "1")]
    pub wei: String,
}

#[derive(Clone, PartialEq, Message)]
pub struct Data {
    #[prost(string, tag = "1")]
    pub data: String,
}

#[derive(Clone, PartialEq, Message)]
pub struct Block {
    #[prost(string, tag = "1")]
    pub hash: String,
    #[prost(string, tag = "2")]
    pub parent_hash: String,
    #[prost(uint64, tag = "3")]
    pub number: u64,
    #[prost(uint64, tag = "4")]
    pub timestamp: u64,
    #[prost(string, tag = "5")]
    pub miner: String,
    #[prost(uint64, tag = "6")]
    pub gas_limit: u64,
    #[prost(uint64, tag = "7")]
    pub gas_used: u64,
    #[prost(string, tag = "8")]
    pub state_root: String,
    #[prost(string, repeated, tag = "9")]
    pub transaction_hashes: Vec<String>,
    #[prost(message, repeated, tag = "10")]
    pub transactions: Vec<Transaction>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Transaction {
    #[prost(string, tag = "1")]
    pub hash: String,
    #[prost(string, tag = "2")]
    pub from: String,
    #[prost(string, tag = "3")]
    pub to: String,
    #[prost(uint64, tag = "4")]
    pub nonce: u64,
    #[prost(string, tag = "5")]
    pub value: String,
    #[prost(uint64, tag = "6")]
    pub gas: u64,
    #[prost(string, tag = "7")]
    pub gas_price: String,
    #[prost(string, tag = "8")]
    pub input: String,
    #[prost(string, tag = "9")]
    pub block_hash: String,
    #[prost(uint64, tag = "10")]
    pub block_number: u64,
    #[prost(uint64, tag = "11")]
    pub transaction_index: u64,
}

#[derive(Clone, PartialEq, Message)]
pub struct Receipt {
    #[prost(string, tag = "1")]
    pub transaction_hash: String,
    #[prost(string, tag = "2")]
    pub block_hash: String,
    #[prost(uint64, tag = "3")]
    pub block_number: u64,
    #[prost(uint64, tag = "4")]
    pub gas_used: u64,
    #[prost(uint64, tag = "5")]
    pub status: u64,
    #[prost(message, repeated, tag = "6")]
    pub logs: Vec<Log>,
    #[prost(string, tag = "7")]
    pub contract_address: String,
}

#[derive(Clone, PartialEq, Message)]
pub struct Log {
    #[prost(string, tag = "1")]
    pub address: String,
    #[prost(string, repeated, tag = "2")]
    pub topics: Vec<String>,
    #[prost(string, tag = "3")]
    pub data: String,
    #[prost(uint64, tag = "4")]
    pub block_number: u64,
    #[prost(string, tag = "5")]
    pub transaction_hash: String,
    #[prost(uint64, tag = "6")]
    pub log_index: u64,
}

#[derive(Clone, PartialEq, Message)]
pub struct Logs {
    #[prost(message, repeated, tag = "1")]
    pub logs: Vec<Log>,
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

impl OfJson for Data {
    fn of(body: &Value) -> Option<Self> {
        Some(Self { data: body.as_str()?.to_owned() })
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
            status: number(body, "status"),
            logs: list(&body["logs"])?,
            contract_address: text(body, "contractAddress"),
        })
    }
}

impl OfJson for Log {
    fn of(body: &Value) -> Option<Self> {
        let topics = body["topics"].as_array()?.iter();
        Some(Self {
            address: body["address"].as_str()?.to_owned(),
            topics: topics.filter_map(|topic| topic.as_str().map(str::to_owned)).collect(),
            data: text(body, "data"),
            block_number: number(body, "blockNumber"),
            transaction_hash: text(body, "transactionHash"),
            log_index: number(body, "logIndex"),
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
    use super::*;

    /// Claim: a block with whole transactions becomes a message with the same hashes and quantities, also beyond 64 bits.
    #[test]
    fn of_a_block() {
        let body = serde_json::json!({
            "hash": "0xaa", "parentHash": "0xbb", "number": "0x10", "timestamp": "0x5e2ce327",
            "transactions": [{ "hash": "0xcc", "to": null, "value": "0x10000000000000000", "nonce": "0x2" }],
        });
        let block = Block::of(&body).unwrap();
        assert_eq!((block.number, block.timestamp), (16, 1_580_000_039));
        assert_eq!(block.transaction_hashes, ["0xcc"]);
        assert_eq!(block.transactions[0].value, "18446744073709551616");
        assert_eq!(block.transactions[0].to, "");
        assert_eq!(Block::decode(block.encode_to_vec().as_slice()).unwrap(), block);
        assert_eq!(Block::of(&serde_json::json!("0x1")), None);
    }

    /// Claim: every message of the description is one here, with the same fields under the same numbers.
    #[test]
    fn as_described() {
        let set = prost_types::FileDescriptorSet::decode(crate::grpc::DESCRIPTION).unwrap();
        let shown = [
            ("Empty", format!("{:?}", Empty::default())),
            ("HashRequest", format!("{:?}", HashRequest::default())),
            ("BlockRequest", format!("{:?}", BlockRequest::default())),
            ("PlaceRequest", format!("{:?}", PlaceRequest::default())),
            ("AddressRequest", format!("{:?}", AddressRequest::default())),
            ("LogsRequest", format!("{:?}", LogsRequest::default())),
            ("CallRequest", format!("{:?}", CallRequest::default())),
            ("Height", format!("{:?}", Height::default())),
            ("Wei", format!("{:?}", Wei::default())),
            ("Data", format!("{:?}", Data::default())),
            ("Block", format!("{:?}", Block::default())),
            ("Transaction", format!("{:?}", Transaction::default())),
            ("Receipt", format!("{:?}", Receipt::default())),
            ("Log", format!("{:?}", Log::default())),
            ("Logs", format!("{:?}", Logs::default())),
        ];
        let described = &set.file[0].message_type;
        assert_eq!(described.len(), shown.len());
        for message in described {
            let (_, text) = shown.iter().find(|(name, _)| *name == message.name()).unwrap();
            let names: Vec<&str> = text
                .split(['{', ','])
                .skip(1)
                .filter_map(|it| it.split_once(':'))
                .map(|(name, _)| name.trim())
                .collect();
            let wanted: Vec<&str> = message.field.iter().map(|field| field.name()).collect();
            assert_eq!(names, wanted, "{}", message.name());
            assert!(
                message
                    .field
                    .iter()
                    .map(|field| field.number())
                    .eq(1..=i32::try_from(wanted.len()).unwrap())
            );
        }
    }
}
