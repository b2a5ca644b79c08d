//! Questions to the server beside the load: does it serve, which settings has it, what does it hold. A connection of its
//! own, blocking and bounded in time; never used while transactions are timed.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use sut::asker::{Asker, Clock, connect};

use crate::messages::{self, Message};

/// The longest wait for the server to take a connection or answer a question: a large table is sorted before its first
/// row comes.
const PATIENCE: Duration = Duration::from_secs(30);

/// SQLSTATE of a table that does not exist.
pub(crate) const UNDEFINED_TABLE: &str = "42P01";

/// Who connects, and to which database.
#[derive(Clone, Debug)]
pub(crate) struct Login {
    pub(crate) user: String,
    pub(crate) database: String,
}

/// Why a question has no answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ControlError {
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error("the server says: {code} {text}")]
    Server { code: String, text: String },
    #[error("the server does not keep its protocol: {0}")]
    Strange(String),
}

/// A connection for questions.
pub(crate) struct Control {
    asker: Asker,
}

/// Columns of a row, in the text form.
pub(crate) type Columns = Vec<Option<String>>;

impl Control {
    pub(crate) fn open(
        server: SocketAddr,
        login: &Login,
        clock: Clock,
    ) -> Result<Self, ControlError> {
        let mut control = Self { asker: Asker::new(connect(server, PATIENCE)?, clock) };
        let mut out = Vec::new();
        messages::startup(&[("user", &login.user), ("database", &login.database)], &mut out);
        control.asker.send(&out)?;
        while control.until_ready()?.is_some() {}
        Ok(control)
    }

    /// Whether it serves: a server that still recovers refuses the session.
    pub(crate) fn is_serving(server: SocketAddr, login: &Login, clock: Clock) -> bool {
        Self::open(server, login, clock).is_ok()
    }

    /// All rows of a statement that has few.
    pub(crate) fn ask(&mut self, sql: &str) -> Result<Vec<Columns>, ControlError> {
        self.begin(sql)?;
        let mut rows = Vec::new();
        while let Some(row) = self.until_ready()? {
            rows.push(row);
        }
        Ok(rows)
    }

    /// Begins a statement whose rows are taken one by one.
    pub(crate) fn begin(&mut self, sql: &str) -> Result<(), ControlError> {
        let mut out = Vec::new();
        messages::query(sql, &mut out);
        Ok(self.asker.send(&out)?)
    }

    /// The next row of the statement that was begun; `None`: there is no other.
    pub(crate) fn next_row(&mut self) -> Result<Option<Columns>, ControlError> {
        self.asker.go_on();
        self.until_ready()
    }

    /// The next row, or the end of the statement. After an error the server is heard out.
    fn until_ready(&mut self) -> Result<Option<Columns>, ControlError> {
        loop {
            let read = messages::message(self.asker.unread());
            let read = read.map_err(|strange| ControlError::Strange(strange.0))?;
            let Some((message, length)) = read else {
                self.asker.read()?;
                continue;
            };
            let found = match message {
                Message::Row(row) => {
                    let text = |value: &[u8]| String::from_utf8_lossy(value).into_owned();
                    Some(Ok(Some(row.map(|column| column.map(text)).collect())))
                }
                Message::Ready(_) => Some(Ok(None)),
                Message::Error(complaint) => {
                    let (code, text) = (complaint.code.to_owned(), complaint.text.to_owned());
                    Some(Err(ControlError::Server { code, text }))
                }
                Message::Authentication(wanted @ 1..) => Some(Err(ControlError::Strange(format!(
                    "expected a server that trusts this login, got a demand for authentication {wanted}"
                )))),
                _ => None,
            };
            self.asker.skip(length);
            if let Some(found) = found {
                return found;
            }
        }
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        let mut out = Vec::new();
        messages::terminate(&mut out);
        // A server that is gone needs no farewell.
        let _ = self.asker.send(&out);
    }
}
