//! Load from several hosts: the messages between a coordinator and its agents, their way over NATS, and what each side does
//! with them. The coordinator gathers agents, gives each its part of one plan, starts all at one moment, follows them and
//! takes their rows; an agent carries out its part with whatever the app gives it.
//!
//! This crate never sends a transaction and never reads a row: rows are bytes of a row log here. It is no scheduler (agents
//! are placed by others) and no broker (that is NATS). One host's clock is never subtracted from another's but in
//! [`exchange`], which says with which error.

pub mod agent;
pub mod coordinator;
mod exchange;
pub mod messages;
pub mod nats;

pub use exchange::Exchange;

/// The first part of every subject.
const SUBJECT: &str = "assay";
/// The most agents of one run: a row has eight bits for its worker.
pub const AGENTS_MAX: u32 = 255;
/// The longest name of a group.
const GROUP_LENGTH_MAX: usize = 64;

/// Errors of agents and of their coordinator.
#[derive(Debug, thiserror::Error)]
pub enum AgentsError {
    /// NATS cannot be used.
    #[error("NATS at {server}: {why}")]
    Nats {
        /// The server, without credentials.
        server: String,
        /// In words, with what to do.
        why: String,
    },
    /// NATS is not there (yet).
    #[error("NATS at {server}: {why}; is a nats-server running there?")]
    Away {
        /// The server, without credentials.
        server: String,
        /// In words.
        why: String,
    },
    /// A name cannot be a part of a subject.
    #[error("expected a name of letters, digits, `-` and `_`, got `{0}`")]
    Name(String),
    /// Another version of the messages.
    #[error(
        "agent {from}: expected messages of {expected}, got {found}; install the same version of assay on every host"
    )]
    OtherVersion {
        /// The sender.
        from: String,
        /// This one's.
        expected: &'static str,
        /// The sender's.
        found: String,
        /// The trial that the message belongs to.
        run: String,
    },
    /// Too few agents.
    #[error(
        "expected {expected} idle agents in group {group}, got {}; on each host run: assay agent --nats URL --group {group}",
        names(found)
    )]
    TooFew {
        /// The group.
        group: String,
        /// How many are wanted.
        expected: u32,
        /// Those that answered.
        found: Vec<String>,
    },
    /// An agent could not carry out its part.
    #[error("agent {name}: {why}")]
    Refused {
        /// The agent.
        name: String,
        /// In its own words.
        why: String,
    },
    /// The run was stopped before the load.
    #[error("stopped by request before the load")]
    Stopped,
}

fn names(found: &[String]) -> String {
    match found {
        [] => "none".to_owned(),
        some => format!("{} ({})", some.len(), some.join(", ")),
    }
}

/// Refuses what cannot stand in a subject.
///
/// # Errors
/// When the name is empty, too long or holds other characters.
pub fn check_name(name: &str) -> Result<(), AgentsError> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    match !name.is_empty() && name.len() <= GROUP_LENGTH_MAX && name.chars().all(is_plain) {
        true => Ok(()),
        false => Err(AgentsError::Name(name.to_owned())),
    }
}

/// Where a coordinator asks which agents are idle.
fn call_subject(group: &str) -> String {
    format!("{SUBJECT}.{group}.call")
}

/// Where one agent hears its orders.
fn agent_subject(group: &str, agent: &str) -> String {
    format!("{SUBJECT}.{group}.agent.{agent}")
}

/// Where the coordinator of one trial hears its agents.
fn run_subject(group: &str, run: &str) -> String {
    format!("{SUBJECT}.{group}.run.{run}")
}
