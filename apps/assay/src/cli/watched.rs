//! Values of the options that let a run be watched, and those of `assay watch`. They are checked when the command line is read, before anything is started,
//! in one sentence each. Nothing is listened at and no name is looked up here.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;

use super::ProgressChoice;

/// The address of `--metrics` and of `--web`.
pub(super) fn address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| {
        format!(
            "expected an address and a port such as 127.0.0.1:9464, got `{}`",
            text.escape_debug()
        )
    })
}

/// The URL of `--scrape`.
pub(super) fn metrics_page(text: &str) -> Result<String, String> {
    match text.strip_prefix("http://") {
        Some(rest) if !rest.is_empty() => Ok(text.to_owned()),
        _ => Err("expected a URL over http:// such as http://127.0.0.1:9100/metrics".to_owned()),
    }
}

/// The URL of `--otlp`.
pub(super) fn receiver(text: &str) -> Result<String, String> {
    http_adapter::Receiver::check(text)?;
    Ok(text.to_owned())
}

pub(super) const EXAMPLES: &str = "Examples:
  assay watch                        the newest run under `runs`, as its own terminal shows it
  assay watch --web                  its report so far, in a browser on this host
  assay watch --web=0.0.0.0:8099     on others, too: only with the token of the address that is printed

Exit codes: 0 the run has ended with a result, whatever its verdict · 1 it has not, or could not be watched · 2 usage";

/// Arguments of `assay watch`.
#[derive(Debug, Args)]
pub struct WatchArguments {
    /// Run folder; without one, the newest under `runs`
    #[arg(value_name = "RUN")]
    pub run: Option<PathBuf>,
    /// Serve the report's page as far as the run has come, and at its end the report: on this host alone and at a free port, or
    /// at ADDRESS
    #[arg(
        long,
        value_name = "ADDRESS",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "127.0.0.1:0",
        value_parser = address
    )]
    pub web: Option<SocketAddr>,
    /// Folder of run folders
    #[arg(long, value_name = "FOLDER", default_value = "runs")]
    pub runs: PathBuf,
    /// How progress is shown on standard error
    #[arg(long, value_enum, default_value_t = ProgressChoice::Auto)]
    pub progress: ProgressChoice,
}

pub(super) const TELL_EXAMPLES: &str = "Examples:
  assay tell start                   a run that was started with --hold
  assay tell mark deployed v2        an event of the trial, on the line of its charts
  assay tell stop                    as Ctrl-C at the run itself

Exit codes: 0 it was heard · 1 it was not · 2 usage";

/// Arguments of `assay tell`.
#[derive(Debug, Args)]
pub struct TellArguments {
    /// `start`, `stop`, or `mark` and what happens now
    #[arg(value_name = "ORDER", required = true)]
    pub order: Vec<String>,
    /// Run folder; without it, the newest under `runs`
    #[arg(long, value_name = "FOLDER")]
    pub run: Option<PathBuf>,
}
