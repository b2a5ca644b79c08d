//! Why a file could not be converted, in words for people: what was attempted, on what, what to do next.

use std::io;

use record::RecordError;

/// Why a conversion failed.
#[derive(Debug, thiserror::Error)]
pub enum ExchangeError {
    /// The input cannot be read.
    #[error("reading {name}: {source}; check the path and that you may read it")]
    Read {
        /// The input.
        name: String,
        /// What the system says.
        source: io::Error,
    },
    /// A line of the input does not hold what it should.
    #[error("reading {name}, line {line}: {why}")]
    Line {
        /// The input.
        name: String,
        /// From 1.
        line: u64,
        /// What is wrong with it and what to do.
        why: String,
    },
    /// The input as a whole is not what it should be.
    #[error("reading {name}: {why}")]
    Input {
        /// The input.
        name: String,
        /// What is wrong with it and what to do.
        why: String,
    },
    /// What is asked for cannot be had.
    #[error("{0}")]
    Refused(String),
    /// The output cannot be written.
    #[error("writing the output: {0}; is there space, and may you write there?")]
    Write(#[source] io::Error),
    /// The reader of the output has had enough. Nothing to complain about.
    #[error("the output was closed")]
    Closed,
    /// A file of a run folder.
    #[error(transparent)]
    Record(#[from] RecordError),
}

impl ExchangeError {
    /// A failure to write, with a closed pipe told apart.
    pub(crate) fn writing(source: io::Error) -> Self {
        if source.kind() == io::ErrorKind::BrokenPipe { Self::Closed } else { Self::Write(source) }
    }
}
