//! Names that a system declares and that thresholds and tables may use: the one list of them.

/// The declarations of a system, before anything is started.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeclaredNames {
    /// Its ladder of stages, lowest first.
    pub stages: Vec<String>,
    /// The last of them that transactions of the load can reach on their way; empty: of the ladder.
    pub load_reaches: String,
    /// The same of the probe's.
    pub probe_reaches: String,
    /// The stages that its nodes stamp themselves.
    pub node_stages: Vec<String>,
    /// Sources whose series are all known before a run (the host, the generator), with the names of these; what other
    /// sources have is the system's business.
    pub sources: Vec<(String, Vec<String>)>,
}

impl DeclaredNames {
    /// Whether a transaction can reach a stage of this name.
    #[must_use]
    pub fn has_stage(&self, name: &str) -> bool {
        self.stages.iter().any(|stage| stage == name)
    }

    /// Whether its nodes stamp a stage of this name.
    #[must_use]
    pub fn has_node_stage(&self, name: &str) -> bool {
        self.node_stages.iter().any(|stage| stage == name)
    }

    /// Adds what another system declares: of several, what any of them has.
    pub fn join(&mut self, other: &Self) {
        for stage in &other.stages {
            if !self.has_stage(stage) {
                self.stages.push(stage.clone());
            }
        }
        for stage in &other.node_stages {
            if !self.has_node_stage(stage) {
                self.node_stages.push(stage.clone());
            }
        }
        for source in &other.sources {
            if !self.sources.contains(source) {
                self.sources.push(source.clone());
            }
        }
    }
}
