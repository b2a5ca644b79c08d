//! The sources of transactions. Each is a function of the seed and of the transaction's number alone. Lists and the bank are
//! those that the checks of `isolation` know; here they become operations of the database.

use isolation::MicroOp;
use isolation::workload::{Bank, BankOp, Lists};
use kv_node::database::compose::{Composer, published};
use kv_node::database::transaction::Literal;
use model::seed::Rng;
use model::{Seed, TxId};
use sut::{Made, Workload};

/// Kinds: what stands in the ledger, and what does not.
pub(crate) const WRITES: u32 = 0;
pub(crate) const READS: u32 = 1;

/// Lists and accounts lie in two tables by turns, so that most transactions are about both.
const TABLES: u32 = 2;

/// What a transaction does.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Sort {
    /// The seven operations of the published benchmark, on a table of the client's own.
    MapAndList,
    /// Opaque bytes, which take the place of those before in a table of the client's own.
    Proposal,
    /// Values stored under keys of one table, as load tools of other stores do.
    Puts(Puts),
    /// Appends to lists and reads of them.
    Lists(Lists),
    /// Money moves between accounts, and all of them are read.
    Bank(Bank),
}

impl Sort {
    /// The names of its kinds: of what is recorded, and of what only reads, if anything does.
    pub(crate) const fn kinds(&self) -> (&'static str, Option<&'static str>) {
        match self {
            Self::MapAndList => ("map-and-list", None),
            Self::Proposal => ("proposal", None),
            Self::Puts(_) => ("put", None),
            Self::Lists(_) => ("append", Some("read")),
            Self::Bank(_) => ("transfer", Some("read-all")),
        }
    }
}

/// Which keys a transaction stores: as many as `puts`, each drawn from `keys` alike.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Puts {
    pub(crate) keys: u64,
    pub(crate) puts: u32,
    pub(crate) seed: Seed,
}

/// The clients of one engine thread, where the arrivals are open: they are as many apart as there are threads, as the
/// engine's own clients are.
#[derive(Clone, Copy, Debug)]
struct Clients {
    first: u32,
    stride: u32,
    count: u64,
}

/// Transactions of one sort.
pub(crate) struct Transactions {
    sort: Sort,
    value: Vec<u8>,
    clients: Clients,
    ops: Vec<MicroOp>,
}

impl Transactions {
    pub(crate) fn new(
        sort: Sort,
        seed: Seed,
        value_bytes: usize,
        clients: u32,
        worker: u32,
        workers: u32,
    ) -> Self {
        let mut rng: Rng = seed.split("value").rng();
        // As published: random bytes, the same each time.
        let value =
            (0..value_bytes).map(|_| u8::try_from(rng.below(256)).expect("below 256")).collect();
        let stride = workers.max(1);
        let count = u64::from(clients.saturating_sub(worker).div_ceil(stride).max(1));
        Self { sort, value, clients: Clients { first: worker, stride, count }, ops: Vec::new() }
    }

    /// Whose a transaction is, if the engine does not say it.
    fn client_of(&self, id: TxId) -> u32 {
        let Clients { first, stride, count } = self.clients;
        let turn = u32::try_from(id / u64::from(stride) % count).expect("fewer than clients");
        first + turn * stride
    }
}

impl Workload for Transactions {
    fn next(&mut self, id: TxId, client: Option<u32>, payload: &mut Vec<u8>) -> Made {
        let client = client.unwrap_or_else(|| self.client_of(id));
        let kind = match self.sort {
            Sort::MapAndList => {
                published(payload, client.into(), &self.value);
                WRITES
            }
            Sort::Proposal => {
                let name = client.to_le_bytes();
                Composer::begin(payload, &[&name]).store(0, &[b"p"], Literal::Bytes(&self.value));
                WRITES
            }
            Sort::Puts(puts) => {
                write_puts(payload, &puts, id, &self.value);
                WRITES
            }
            Sort::Lists(lists) => {
                lists.ops(id, &mut self.ops);
                write_lists(payload, &self.ops);
                if Lists::only_reads(&self.ops) { READS } else { WRITES }
            }
            Sort::Bank(bank) => write_bank(payload, &bank, bank.op(id)),
        };
        Made::of(kind, Some(client))
    }
}

/// Keys of eight bytes, as the load tool of etcd makes them unless told otherwise.
fn write_puts(payload: &mut Vec<u8>, puts: &Puts, id: TxId, value: &[u8]) {
    let mut rng = puts.seed.split_index("put", id).rng();
    let mut composer = Composer::begin(payload, &[b"keys"]);
    for _ in 0..puts.puts {
        composer.put(0, &[&rng.below(puts.keys).to_le_bytes()], Literal::Bytes(value));
    }
}

fn write_lists(payload: &mut Vec<u8>, ops: &[MicroOp]) {
    let mut composer = Composer::begin(payload, &[b"even lists", b"odd lists"]);
    for op in ops {
        match *op {
            MicroOp::Append { key, element } => {
                let element = Literal::Integer(element.into());
                composer.append(table_of(key), &[&key.to_le_bytes()], element);
            }
            MicroOp::Read { key, .. } => {
                composer.get(table_of(key), &[&key.to_le_bytes()]);
            }
        }
    }
}

/// An account holds what it had at first and what stands in the database, which begins with nothing: so nobody has to
/// put money in before the load.
fn write_bank(payload: &mut Vec<u8>, bank: &Bank, op: BankOp) -> u32 {
    let mut composer = Composer::begin(payload, &[b"even accounts", b"odd accounts"]);
    match op {
        BankOp::Transfer { from, to, amount } => {
            let amount = i64::try_from(amount).expect("bounded by the options");
            let floor = -i64::try_from(bank.balance).expect("bounded by the options");
            composer.add(table_of(from), &[&from.to_le_bytes()], -amount, floor).add(
                table_of(to),
                &[&to.to_le_bytes()],
                amount,
                floor,
            );
            WRITES
        }
        BankOp::ReadAll => {
            composer.get(0, &[]).get(1, &[]);
            READS
        }
    }
}

fn table_of(number: u32) -> u8 {
    u8::try_from(number % TABLES).expect("two tables")
}
