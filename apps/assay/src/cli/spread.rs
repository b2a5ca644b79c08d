//! Arguments of loads over agents, and of agents. Nothing here is decided.

use std::path::PathBuf;

use clap::Args;

pub(super) const EXAMPLES: &str = "Examples:
  assay agent --nats nats://10.0.0.5:4222 --group load
  ssh host assay agent --nats nats://10.0.0.5:4222
  assay run my.toml --agents load=4 --nats nats://10.0.0.5:4222
  assay run demo --agents 2                                    # on this machine alone";

/// The load's hosts.
#[derive(Debug, Args)]
pub struct SpreadArguments {
    /// Spread the load over this many agents: those of a group on other hosts (`NAME=COUNT`, with --nats), or (`COUNT`) as many
    /// started here
    #[arg(long, value_name = "[NAME=]COUNT", conflicts_with = "sandbox")]
    pub agents: Option<String>,
    #[command(flatten)]
    pub nats: NatsArguments,
}

/// The server of NATS over which agents and coordinators speak.
#[derive(Debug, Args)]
pub struct NatsArguments {
    /// Server of NATS: nats://HOST:PORT or tls://HOST:PORT; credentials are read from NATS_USER and NATS_PASSWORD,
    /// or NATS_TOKEN
    #[arg(long, value_name = "URL")]
    pub nats: Option<String>,
    /// Trust the certificates of this file instead of the host's (with tls://)
    #[arg(long, value_name = "FILE", requires = "nats")]
    pub nats_ca: Option<PathBuf>,
}

/// Arguments of `assay agent`.
#[derive(Debug, Args)]
pub struct AgentArguments {
    /// Group whose runs this agent takes part in
    #[arg(long, value_name = "NAME", default_value = "load")]
    pub group: String,
    #[command(flatten)]
    pub nats: NatsArguments,
    /// Folder for the rows of a part until they are handed over [default: the host's for temporary files]
    #[arg(long, value_name = "FOLDER")]
    pub spool: Option<PathBuf>,
}
