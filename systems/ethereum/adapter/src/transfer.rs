//! Transfers, signed ahead of their due times: EIP-1559 transactions of the accounts of a trial, in the order that the
//! course says. Signing is done here and nowhere on the path of a transaction.

use std::collections::HashMap;
use std::sync::Arc;

use k256::ecdsa::SigningKey;
use model::TxId;
use model::seed::Rng;
use sut::{Made, Workload};

use crate::accounts::{Account, Address, keccak};
use crate::course::{Course, Walk};
use crate::hex::Hash;
use crate::rlp;

/// The kinds, by their place in the list that the system declares.
pub(crate) const PLAIN: u32 = 0;
pub(crate) const REVERTING: u32 = 1;

/// What a payment costs, as every chain has it; and what one may use that goes to a contract.
const GAS_PLAIN: u64 = 21_000;
const GAS_REVERTING: u64 = 30_000;

/// What a chain and the experiment say of all transactions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Terms {
    pub(crate) chain: u64,
    pub(crate) fee_max: u128,
    pub(crate) tip: u128,
    /// A contract that takes no payment.
    pub(crate) refusing: Address,
}

/// One transaction before it is signed.
pub(crate) struct Unsigned<'a> {
    pub(crate) chain: u64,
    pub(crate) nonce: u64,
    pub(crate) tip: u128,
    pub(crate) fee_max: u128,
    pub(crate) gas: u64,
    /// `None`: it makes a contract.
    pub(crate) to: Option<&'a Address>,
    pub(crate) value: u128,
    pub(crate) data: &'a [u8],
}

impl Unsigned<'_> {
    fn fields(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(160 + self.data.len());
        rlp::number(&mut out, self.chain.into());
        rlp::number(&mut out, self.nonce.into());
        rlp::number(&mut out, self.tip);
        rlp::number(&mut out, self.fee_max);
        rlp::number(&mut out, self.gas.into());
        rlp::bytes(&mut out, self.to.map_or(&[], |to| &to[..]));
        rlp::number(&mut out, self.value);
        rlp::bytes(&mut out, self.data);
        // No list of what it touches.
        rlp::list(&mut out, 0);
        out
    }

    /// Signs it; gives its bytes.
    pub(crate) fn sign(&self, key: &SigningKey) -> Vec<u8> {
        let mut fields = self.fields();
        let digest = keccak(&typed(&fields));
        let (signature, recovery) = key.sign_prehash_recoverable(&digest);
        let signature = signature.to_bytes();
        let (r, s) = signature.split_at(32);
        rlp::number(&mut fields, u128::from(recovery.is_y_odd()));
        rlp::trimmed(&mut fields, r);
        rlp::trimmed(&mut fields, s);
        typed(&fields)
    }
}

/// The fields as a list, behind the number of the type (EIP-2718).
fn typed(fields: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(fields.len() + 5);
    out.push(2);
    rlp::list(&mut out, fields.len());
    out.extend_from_slice(fields);
    out
}

/// A payload: the transaction's hash, and the transaction.
pub(crate) fn split(payload: &[u8]) -> Option<(&Hash, &[u8])> {
    payload.split_first_chunk()
}

/// The transfers of one engine thread.
pub(crate) struct Transfers {
    accounts: Arc<[Account]>,
    course: Course,
    terms: Terms,
    worker: u32,
    workers: u32,
    /// How far each client has come, by its number.
    walks: HashMap<u32, Walk>,
    turn: u32,
    rng: Rng,
}

impl Transfers {
    pub(crate) fn new(
        accounts: Arc<[Account]>,
        course: Course,
        terms: Terms,
        rng: Rng,
        (worker, workers): (u32, u32),
    ) -> Self {
        Self {
            accounts,
            course,
            terms,
            worker,
            workers: workers.max(1),
            walks: HashMap::new(),
            turn: 0,
            rng,
        }
    }

    /// Whose turn it is where nobody says: all clients of this thread, one after another.
    fn whose(&mut self) -> u32 {
        let clients = self.course.clients();
        if self.worker >= clients {
            return self.worker % clients;
        }
        let own = (clients - self.worker).div_ceil(self.workers);
        let client = self.worker + self.turn * self.workers;
        self.turn = (self.turn + 1) % own;
        client
    }
}

impl Workload for Transfers {
    fn next(&mut self, id: TxId, client: Option<u32>, payload: &mut Vec<u8>) -> Made {
        let client = client.unwrap_or_else(|| self.whose());
        let step = self.course.step(client, self.walks.entry(client).or_default());
        let from = usize::try_from(self.course.account(client)).expect("a number of accounts");
        let count = u64::try_from(self.accounts.len()).expect("a number of accounts");
        let to = usize::try_from(self.rng.below(count)).expect("a number of accounts");
        let Terms { chain, fee_max, tip, refusing } = self.terms;
        let (to, gas, kind) = match step.reverts {
            true => (&refusing, GAS_REVERTING, REVERTING),
            false => (&self.accounts[to].address, GAS_PLAIN, PLAIN),
        };
        // A node takes a replacement that pays at least a tenth more.
        let more = |fee: u128| if step.replaces { fee + fee / 4 } else { fee };
        let transaction = Unsigned {
            chain,
            nonce: step.nonce,
            tip: more(tip),
            fee_max: more(fee_max),
            gas,
            to: Some(to),
            // What makes it differ from another of the same account and nonce.
            value: u128::from(id) + 1,
            data: &[],
        };
        let bytes = transaction.sign(&self.accounts[from].key);
        payload.extend_from_slice(&keccak(&bytes));
        payload.extend_from_slice(&bytes);
        Made { kind, client }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hex;

    /// Claim: a transaction is signed byte for byte as other programs do it (RFC 6979 makes signatures the same each time):
    /// the vector is anvil's, of its `eth_signTransaction`.
    #[test]
    fn known_answer() {
        let secret =
            hex::bytes("0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80");
        let account = Account::of_secret(&secret.unwrap()).unwrap();
        let to = hex::bytes("0x70997970c51812dc3a010c7d01b50e0d17dc79c8").unwrap();
        let transaction = Unsigned {
            chain: 31337,
            nonce: 9,
            tip: 1_000_000_000,
            fee_max: 20_000_000_000,
            gas: 21_000,
            to: Some(&to),
            value: 1_000_000,
            data: &[],
        };
        assert_eq!(hex::text(&transaction.sign(&account.key)), KNOWN);
    }

    const KNOWN: &str = "0x02f870827a6909843b9aca008504a817c8008252089470997970c51812dc3a010c7d01b50e0d17dc79c8830f424080c080a09aa5e64c3611f9f9cffdf925982dd1bec2cb2d4a56b72fd0e34a262dec5bfd9da01fa6288e2275f9a963c475411a5cd3974ec7e812b46c706f97c3f014348177cf";
}
