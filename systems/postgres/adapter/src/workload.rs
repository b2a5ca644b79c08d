//! The source of transactions: each is a function of the trial's seed and mark and of its number alone. A payload is what
//! is asked of the server, ready to be sent, after a head that says to the session what to expect in the answer.

use isolation::MicroOp;
use isolation::workload::{BankOp, Lists};
use model::TxId;
use sut::content::letters;
use sut::{Made, Workload};

use crate::messages::{run, sync};
use crate::statements::{APPEND, READ, READ_ALL, RECORD, Sort, TRANSFER};

/// Kinds: what stands in the ledger, and what does not.
pub(crate) const WRITES: u32 = 0;
pub(crate) const READS: u32 = 1;

/// The answer to a statement of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answers {
    /// No row.
    Nothing,
    /// No row, and a tag that says whether money was moved.
    Moved,
    /// The list with this key, or no row where there is none.
    List(u32),
    /// A row an account.
    Balances,
}

/// Statements of a transaction, at most: eight operations and the entry.
const STATEMENTS_MAX: usize = 9;
/// Bytes of one in the head: its sort, and a key.
const STATEMENT_BYTES: usize = 5;

/// Writes the head.
fn write_head(statements: &[Answers], out: &mut Vec<u8>) {
    assert!(statements.len() <= STATEMENTS_MAX, "a transaction has few operations");
    out.push(u8::try_from(statements.len()).expect("few"));
    for statement in statements {
        let (sort, key) = match statement {
            Answers::Nothing => (0, 0),
            Answers::Moved => (1, 0),
            Answers::List(key) => (2, *key),
            Answers::Balances => (3, 0),
        };
        out.push(sort);
        out.extend_from_slice(&key.to_le_bytes());
    }
}

/// The head's statements, and the bytes to send; `None`: it is no payload of ours.
pub(crate) fn split(payload: &[u8]) -> Option<(impl Iterator<Item = Answers>, &[u8])> {
    let (count, rest) = payload.split_first()?;
    let (head, wire) = rest.split_at_checked(usize::from(*count) * STATEMENT_BYTES)?;
    let statements = head.as_chunks::<STATEMENT_BYTES>().0.iter().map(|[sort, key @ ..]| {
        let key = u32::from_le_bytes(*key);
        match sort {
            1 => Answers::Moved,
            2 => Answers::List(key),
            3 => Answers::Balances,
            _ => Answers::Nothing,
        }
    });
    (*count > 0).then_some((statements, wire))
}

/// Transactions of one sort.
pub(crate) struct Transactions {
    pub(crate) sort: Sort,
    pub(crate) run_mark: u64,
    pub(crate) content_bytes: usize,
    ops: Vec<MicroOp>,
    content: Vec<u8>,
    wire: Vec<u8>,
    statements: Vec<Answers>,
}

impl Transactions {
    pub(crate) fn new(sort: Sort, run_mark: u64, content_bytes: usize) -> Self {
        let (ops, content, wire) = (Vec::new(), Vec::new(), Vec::new());
        Self { sort, run_mark, content_bytes, ops, content, wire, statements: Vec::new() }
    }

    fn ask(&mut self, answers: Answers, name: &str, values: &[&[u8]]) {
        self.statements.push(answers);
        run(name, values, &mut self.wire);
    }

    /// The entry, in the same transaction as what else it does.
    fn record(&mut self, id: TxId) {
        self.content.clear();
        letters(self.run_mark, id, self.content_bytes, &mut self.content);
        self.statements.push(Answers::Nothing);
        run(RECORD, &[&id.to_be_bytes(), &self.content], &mut self.wire);
    }

    fn lists(&mut self, lists: &Lists, id: TxId) -> bool {
        let mut ops = std::mem::take(&mut self.ops);
        lists.ops(id, &mut ops);
        for op in &ops {
            match *op {
                MicroOp::Append { key, element } => {
                    let values: [&[u8]; 2] = [&key.to_be_bytes(), &element.to_be_bytes()];
                    self.ask(Answers::Nothing, APPEND, &values);
                }
                MicroOp::Read { key, .. } => {
                    self.ask(Answers::List(key), READ, &[&key.to_be_bytes()]);
                }
            }
        }
        let only_reads = Lists::only_reads(&ops);
        self.ops = ops;
        only_reads
    }
}

impl Workload for Transactions {
    fn next(&mut self, id: TxId, client: Option<u32>, payload: &mut Vec<u8>) -> Made {
        self.wire.clear();
        self.statements.clear();
        let only_reads = match self.sort {
            Sort::Append => false,
            Sort::Lists(lists) => self.lists(&lists, id),
            Sort::Bank(bank) => match bank.op(id) {
                BankOp::ReadAll => {
                    self.ask(Answers::Balances, READ_ALL, &[]);
                    true
                }
                BankOp::Transfer { from, to, amount } => {
                    let values: [&[u8]; 3] =
                        [&from.to_be_bytes(), &to.to_be_bytes(), &amount.to_be_bytes()];
                    self.ask(Answers::Moved, TRANSFER, &values);
                    false
                }
            },
        };
        if !only_reads {
            self.record(id);
        }
        sync(&mut self.wire);
        write_head(&self.statements, payload);
        payload.extend_from_slice(&self.wire);
        Made::of(if only_reads { READS } else { WRITES }, client)
    }
}
