//! The SQL of each workload: the tables that a trial has for itself, what a transaction runs, and how both are named.
//! Table names carry the trial's mark, so that two trials on one server never meet.

use isolation::workload::{Bank, Lists};

use crate::messages::oid;

/// The work of transactions.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Sort {
    /// Each appends one entry of its own.
    Append,
    /// Each appends to lists and reads lists.
    Lists(Lists),
    /// Each moves money between accounts, or reads all of them.
    Bank(Bank),
}

impl Sort {
    /// The names of its kinds: of what is recorded, and of what only reads, if anything does.
    pub(crate) const fn kinds(&self) -> (&'static str, Option<&'static str>) {
        match self {
            Self::Append => ("append", None),
            Self::Lists(_) => ("append", Some("read")),
            Self::Bank(_) => ("transfer", Some("read-all")),
        }
    }
}

/// Names of prepared statements.
pub(crate) const RECORD: &str = "record";
pub(crate) const APPEND: &str = "append";
pub(crate) const READ: &str = "read";
pub(crate) const TRANSFER: &str = "transfer";
pub(crate) const READ_ALL: &str = "read_all";

/// A statement that a session prepares.
pub(crate) struct Statement {
    pub(crate) name: &'static str,
    pub(crate) sql: String,
    pub(crate) types: &'static [u32],
}

/// The tables of a trial.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tables {
    pub(crate) run_mark: u64,
}

impl Tables {
    /// The name of one.
    fn name(self, what: &str) -> String {
        format!("assay_{:016x}_{what}", self.run_mark)
    }

    /// The statements that make them, one a line. Each is one line, since the server's single-user mode takes one a line.
    pub(crate) fn make(self, sort: &Sort) -> Vec<String> {
        let entries = self.name("entries");
        let mut all = vec![format!(
            "CREATE TABLE {entries} (position bigserial PRIMARY KEY, tx bigint NOT NULL, content bytea NOT NULL)"
        )];
        match sort {
            Sort::Append => {}
            Sort::Lists(_) => all.push(format!(
                "CREATE TABLE {} (key integer PRIMARY KEY, elements integer[] NOT NULL)",
                self.name("lists")
            )),
            Sort::Bank(bank) => {
                let accounts = self.name("accounts");
                let (balance, last) = (bank.balance, bank.accounts - 1);
                all.push(format!(
                    "CREATE TABLE {accounts} (id integer PRIMARY KEY, balance bigint NOT NULL)"
                ));
                all.push(format!(
                    "INSERT INTO {accounts} SELECT id, {balance} FROM generate_series(0, {last}) AS id"
                ));
            }
        }
        all
    }

    /// The statements that a session prepares.
    pub(crate) fn prepare(self, sort: &Sort) -> Vec<Statement> {
        let record = Statement {
            name: RECORD,
            sql: format!("INSERT INTO {} (tx, content) VALUES ($1, $2)", self.name("entries")),
            types: &[oid::INT8, oid::BYTEA],
        };
        let mut all = vec![record];
        match sort {
            Sort::Append => {}
            Sort::Lists(_) => {
                let lists = self.name("lists");
                all.push(Statement {
                    name: APPEND,
                    sql: format!(
                        "INSERT INTO {lists} AS l VALUES ($1, ARRAY[$2::integer]) \
                         ON CONFLICT (key) DO UPDATE SET elements = l.elements || $2::integer"
                    ),
                    types: &[oid::INT4, oid::INT4],
                });
                all.push(Statement {
                    name: READ,
                    sql: format!("SELECT elements FROM {lists} WHERE key = $1"),
                    types: &[oid::INT4],
                });
            }
            Sort::Bank(_) => {
                let accounts = self.name("accounts");
                // One statement, so that money is put where it was taken, or not at all.
                all.push(Statement {
                    name: TRANSFER,
                    sql: format!(
                        "WITH taken AS (UPDATE {accounts} SET balance = balance - $3 \
                         WHERE id = $1 AND balance >= $3 RETURNING id) \
                         UPDATE {accounts} SET balance = balance + $3 \
                         WHERE id = $2 AND EXISTS (SELECT FROM taken)"
                    ),
                    types: &[oid::INT4, oid::INT4, oid::INT8],
                });
                all.push(Statement {
                    name: READ_ALL,
                    sql: format!("SELECT balance FROM {accounts} ORDER BY id"),
                    types: &[],
                });
            }
        }
        all
    }

    /// All entries, in the order of their positions.
    pub(crate) fn all_entries(self) -> String {
        let entries = self.name("entries");
        format!("SELECT position, tx, encode(content, 'escape') FROM {entries} ORDER BY position")
    }

    /// The statement that removes them from a server that goes on.
    pub(crate) fn drop(self) -> String {
        let names = ["entries", "lists", "accounts"].map(|what| self.name(what)).join(", ");
        format!("DROP TABLE IF EXISTS {names}")
    }
}
