//! What a session keeps of an answer for the checks: what reads of lists and of accounts gave, in the form of
//! `isolation::observation`.

use isolation::observation::{self, Shown};
use isolation::workload::Bank;
use isolation::{Element, GARBAGE};
use kv_node::database::results::{Given, GivenValue, ResultReader};
use kv_node::database::transaction::{Transaction, code, tag};
use model::TxId;
use sut::Marks;

/// What is kept.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Observes {
    /// Nothing.
    Nothing,
    /// What reads of lists gave.
    Lists,
    /// What was moved, and what all accounts hold.
    Bank(Bank),
}

/// A connection's side of it.
pub(crate) struct Observer {
    what: Observes,
    shown: Option<Box<Shown>>,
    bytes: Vec<u8>,
    elements: Vec<Element>,
    balances: Vec<i64>,
}

impl Observer {
    pub(crate) fn new(what: Observes) -> Self {
        let shown = matches!(what, Observes::Lists).then(Box::default);
        Self { what, shown, bytes: Vec::new(), elements: Vec::new(), balances: Vec::new() }
    }

    /// Forgets what was shown on the connection before.
    pub(crate) fn reset(&mut self) {
        *self = Self::new(self.what);
    }

    /// Which lists a transaction reads, in its order: asked as it is sent, since its answer does not say.
    pub(crate) fn reads_of(&self, payload: &[u8], keys: &mut Vec<u32>) -> u8 {
        let before = keys.len();
        if self.shown.is_some()
            && let Ok(transaction) = Transaction::read(payload)
        {
            let mut operations = transaction.operations();
            while let Ok(Some(operation)) = operations.next() {
                let key = operation.path.key.and_then(|key| key.try_into().ok());
                if let (true, Some(key)) = (operation.code == code::GET, key) {
                    keys.push(u32::from_le_bytes(key));
                }
            }
        }
        u8::try_from(keys.len() - before).expect("a transaction has few operations")
    }

    /// Keeps what the result of a transaction that was done shows; `keys` are the lists that it read. What cannot be one
    /// of ours is kept as such, so that a check finds it.
    pub(crate) fn done(
        &mut self,
        tx: TxId,
        mut result: ResultReader<'_>,
        keys: &[u32],
        marks: &mut Marks,
    ) {
        self.bytes.clear();
        match self.what {
            Observes::Nothing => return,
            Observes::Lists => self.lists(&mut result, keys),
            Observes::Bank(bank) => self.bank(&mut result, &bank),
        }
        marks.observed(tx, &self.bytes);
    }

    fn lists(&mut self, result: &mut ResultReader<'_>, keys: &[u32]) {
        Shown::begin(&mut self.bytes);
        let mut keys = keys.iter();
        while let Ok(Some(given)) = result.next() {
            self.elements.clear();
            match given {
                Given::Done => continue,
                Given::Absent => {}
                Given::Value(_, GivenValue::List(_, bytes)) => elements(bytes, &mut self.elements),
                Given::Value(..) => self.elements.push(GARBAGE),
            }
            if let (Some(shown), Some(key)) = (&mut self.shown, keys.next()) {
                shown.read(*key, &self.elements, &mut self.bytes);
            }
        }
    }

    fn bank(&mut self, result: &mut ResultReader<'_>, bank: &Bank) {
        let at_first = i64::try_from(bank.balance).unwrap_or(i64::MAX);
        self.balances.clear();
        self.balances.resize(usize::try_from(bank.accounts).unwrap_or(0), at_first);
        let mut is_read = false;
        while let Ok(Some(given)) = result.next() {
            match given {
                // A transfer gives what the accounts hold then.
                Given::Value(_, GivenValue::Integer(_)) => {
                    observation::put_transfer(true, &mut self.bytes);
                    return;
                }
                Given::Value(_, GivenValue::Map(entries)) => {
                    is_read = true;
                    for (key, inside) in entries {
                        let account = key.try_into().map(u32::from_le_bytes).ok();
                        let place = account.and_then(|account| usize::try_from(account).ok());
                        match (place.and_then(|place| self.balances.get_mut(place)), inside) {
                            (Some(balance), Given::Value(_, GivenValue::Integer(more))) => {
                                *balance = balance.saturating_add(more);
                            }
                            // Money where no account is: the total will say so.
                            _ => self.balances.push(1),
                        }
                    }
                }
                _ => is_read = true,
            }
        }
        if is_read {
            observation::put_balances(&self.balances, &mut self.bytes);
        }
    }
}

/// The elements of a list, as the database writes them.
fn elements(mut bytes: &[u8], out: &mut Vec<Element>) {
    while let Some((first, rest)) = bytes.split_first() {
        match rest.split_first_chunk::<8>() {
            Some((number, rest)) if *first == tag::INTEGER => {
                out.push(observation::element(u64::from_le_bytes(*number)));
                bytes = rest;
            }
            _ => {
                out.push(GARBAGE);
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use kv_node::database::Status;
    use model::Seed;
    use sut::conformance::options::{table, text};

    use super::*;
    use crate::workload::Sort;

    /// Claim: a balance beyond all bounds, as a replica may say it, is kept as the highest or the lowest that there is.
    #[test]
    fn balances_beyond_bounds() {
        let sort = crate::options::sort(&table(&[("kind", text("bank"))]), Seed(1)).unwrap();
        let Sort::Bank(bank) = sort else { panic!("another workload") };
        let at_first = i64::try_from(bank.balance).unwrap();
        for (said, kept) in
            [(5, at_first + 5), (i64::MAX, i64::MAX), (i64::MIN, i64::MIN + at_first)]
        {
            let mut result = vec![Status::Done as u8];
            result.extend_from_slice(&[0; 8]);
            result.extend_from_slice(&[1, tag::MAP]);
            result.extend_from_slice(&[0; 8]);
            result.extend_from_slice(&[1, 0, 0, 0, 4, 1, 0, 0, 0, tag::INTEGER]);
            result.extend_from_slice(&[0; 8]);
            result.extend_from_slice(&i64::to_le_bytes(said));
            let mut observer = Observer::new(Observes::Bank(bank));
            observer.bank(&mut ResultReader::read(&result).unwrap(), &bank);
            let balances = observation::balances(&observer.bytes).unwrap();
            assert_eq!(balances[..3], [at_first, kept, at_first]);
        }
    }
}
