//! What transactions on lists, on a map and on accounts do.

use std::collections::HashMap;
use std::hash::Hash;

use crate::history::MicroOp;
use crate::prefix::{Key, Prefix};
use crate::replay::Model;
use crate::workload::{Bank, BankOp};

/// Lists that are appended to; an answer is what each read found.
#[derive(Clone, Debug, Default)]
pub struct ListModel {
    lists: HashMap<Key, Prefix>,
}

impl Model for ListModel {
    type Transaction = [MicroOp];
    type Answer = [Prefix];

    fn apply(&mut self, transaction: &[MicroOp], answer: Option<&[Prefix]>) -> bool {
        let mut told = answer.into_iter().flatten();
        let mut agrees = true;
        for op in transaction {
            match *op {
                MicroOp::Append { key, element } => {
                    let list = self.lists.entry(key).or_insert(Prefix::EMPTY);
                    *list = list.then(element);
                }
                MicroOp::Read { key, .. } => {
                    let held = self.lists.get(&key).copied().unwrap_or(Prefix::EMPTY);
                    agrees &= answer.is_none() || told.next() == Some(&held);
                }
            }
        }
        agrees && told.next().is_none()
    }
}

/// An operation on a map. With one key and neither checks nor deletions the map is a register.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MapOp<K, V> {
    /// Returns what the key has.
    Get(K),
    /// Gives it a value.
    Put(K, V),
    /// Takes its value away.
    Delete(K),
    /// Lets nothing of the transaction happen if the key has another value.
    Check(K, Option<V>),
}

/// A map of keys to values; all of a transaction happens, or nothing.
#[derive(Clone, Debug)]
pub struct MapModel<K, V> {
    values: HashMap<K, V>,
}

impl<K, V> Default for MapModel<K, V> {
    fn default() -> Self {
        Self { values: HashMap::new() }
    }
}

/// What a transaction on a map answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MapAnswer<V> {
    /// It happened, and each [`MapOp::Get`] returned this.
    Done(Vec<Option<V>>),
    /// A check failed, and nothing happened.
    CheckFailed,
}

impl<K: Clone + Eq + Hash, V: Clone + Eq> Model for MapModel<K, V> {
    type Transaction = [MapOp<K, V>];
    type Answer = MapAnswer<V>;

    fn apply(&mut self, transaction: &[MapOp<K, V>], answer: Option<&MapAnswer<V>>) -> bool {
        let mut changed: HashMap<&K, Option<&V>> = HashMap::new();
        let mut found = Vec::new();
        let mut is_done = true;
        for op in transaction {
            let held = |key: &K| match changed.get(key) {
                Some(value) => *value,
                None => self.values.get(key),
            };
            match op {
                MapOp::Get(key) => found.push(held(key).cloned()),
                MapOp::Check(key, value) => is_done &= held(key) == value.as_ref(),
                MapOp::Put(key, value) => {
                    changed.insert(key, Some(value));
                }
                MapOp::Delete(key) => {
                    changed.insert(key, None);
                }
            }
        }
        if is_done {
            let changed: Vec<(K, Option<V>)> =
                changed.into_iter().map(|(key, value)| (key.clone(), value.cloned())).collect();
            for (key, value) in changed {
                match value {
                    Some(value) => self.values.insert(key, value),
                    None => self.values.remove(&key),
                };
            }
        }
        match answer {
            None => true,
            Some(MapAnswer::Done(told)) => is_done && *told == found,
            Some(MapAnswer::CheckFailed) => !is_done,
        }
    }
}

/// Accounts between which money is moved.
#[derive(Clone, Debug)]
pub struct BankModel {
    /// What each account holds.
    pub balances: Vec<i64>,
}

impl BankModel {
    /// As the workload finds it.
    #[must_use]
    pub fn new(bank: &Bank) -> Self {
        let balance = i64::try_from(bank.balance).expect("a balance is at most 2⁴⁰");
        Self { balances: vec![balance; crate::at(bank.accounts)] }
    }
}

/// What a transaction of the bank answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BankAnswer {
    /// A transfer: whether there was enough to move.
    Moved(bool),
    /// A read of all accounts.
    Balances(Vec<i64>),
}

impl Model for BankModel {
    type Transaction = BankOp;
    type Answer = BankAnswer;

    fn apply(&mut self, transaction: &BankOp, answer: Option<&BankAnswer>) -> bool {
        let truth = match *transaction {
            BankOp::ReadAll => match answer {
                Some(BankAnswer::Balances(told)) => return *told == self.balances,
                Some(BankAnswer::Moved(_)) => return false,
                None => return true,
            },
            BankOp::Transfer { from, to, amount } => {
                let amount = i64::try_from(amount).expect("an amount is at most 2⁴⁰");
                let is_enough = self.balances[crate::at(from)] >= amount;
                if is_enough {
                    self.balances[crate::at(from)] -= amount;
                    self.balances[crate::at(to)] += amount;
                }
                BankAnswer::Moved(is_enough)
            }
        };
        answer.is_none_or(|answer| *answer == truth)
    }
}
