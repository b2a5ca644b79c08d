//! What holds of the values: data, chain, verification, pieces. Queue, sequencer and pipelines are
//! tried together, in `examples/sim_object_ledger`.

mod encodings;
mod forged;
pub(crate) mod made;
mod pieces;
mod sequencer;
