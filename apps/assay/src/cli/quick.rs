//! Flags of a quick run. Nothing here is decided.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

/// Flags that stand for the few keys of a quick run; over a file they overlay it.
#[derive(Debug, Args)]
pub struct QuickArguments {
    /// Rate, such as 50/s, 600/1m or max [default: 50/s with a URL]
    #[arg(long, short, value_name = "RATE", allow_hyphen_values = true)]
    pub rate: Option<String>,
    /// Length of the measured window
    #[arg(long, short, value_name = "DURATION", allow_hyphen_values = true)]
    pub duration: Option<String>,
    /// Length of the warm-up
    #[arg(long, value_name = "DURATION", allow_hyphen_values = true)]
    pub warmup: Option<String>,
    /// A closed loop with this many clients instead of a rate
    #[arg(long, value_name = "COUNT", conflicts_with = "rate")]
    pub clients: Option<u32>,
    /// Connections
    #[arg(long, short, value_name = "COUNT")]
    pub connections: Option<u32>,
    /// Engine threads
    #[arg(long, value_name = "COUNT")]
    pub threads: Option<u32>,
    /// A transaction without an answer after this is unknown
    #[arg(long, value_name = "DURATION", allow_hyphen_values = true)]
    pub timeout: Option<String>,
    /// Request method (with a URL) [default: GET]
    #[arg(long, short = 'X', value_name = "METHOD")]
    pub method: Option<String>,
    /// Request header (with a URL), such as 'Authorization: Bearer ${TOKEN}': `${NAME}` is read from the environment, here
    /// and in the URL and the body, and never stored
    #[arg(long = "header", short = 'H', value_name = "NAME: VALUE")]
    pub headers: Vec<String>,
    /// Request body (with a URL); `@FILE` reads it from a file [default: none]
    #[arg(long, short = 'b', value_name = "TEXT")]
    pub body: Option<String>,
    /// Assert every answer (with a URL): status=200, contains=TEXT, equals=TEXT, length=BYTES, regex=PATTERN,
    /// header.NAME=VALUE or json./POINTER=VALUE; an answer that differs is a failure
    #[arg(long = "expect", value_name = "PART=VALUE")]
    pub expects: Vec<String>,
    /// Target file: vegeta `http` or `json` format, or a list of URLs
    #[arg(long, value_name = "FILE")]
    pub targets: Option<PathBuf>,
    /// Do not verify the server's certificate (with a URL); the report says so
    #[arg(long, short = 'k')]
    pub insecure: bool,
    /// Speak HTTP/2: with https by ALPN, with http from the first byte on (with a URL)
    #[arg(long)]
    pub http2: bool,
    /// Load this URL by turns with the other, and compare them
    #[arg(long, value_name = "URL")]
    pub against: Option<String>,
    /// Search for the highest rate that keeps this threshold, such as 'p99 < 100ms'; it begins with --rate, and --duration
    /// is how long a rate must be sustained. With --clients: for the most clients
    #[arg(long, value_name = "EXPRESSION")]
    pub find: Option<String>,
    /// The key that --find searches; it begins with --rate, --clients or --connections [default: clients where they
    /// are given, else the rate]
    #[arg(long, value_enum, value_name = "KEY", requires = "find")]
    pub over: Option<SearchOver>,
    /// A threshold to check, such as 'p99 < 1s'
    #[arg(long = "threshold", value_name = "EXPRESSION")]
    pub thresholds: Vec<String>,
}

/// The key whose highest value is searched for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum SearchOver {
    /// The rate of an open load
    Rate,
    /// Clients of a closed loop
    Clients,
    /// Connections of an open load
    Connections,
}

impl SearchOver {
    /// Its word.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Rate => "rate",
            Self::Clients => "clients",
            Self::Connections => "connections",
        }
    }
}
