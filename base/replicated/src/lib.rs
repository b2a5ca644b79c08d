//! A replica of a state machine, as a part of a node: [`consensus`] on the connections, the log and the cells of
//! [`process`].
//!
//! A node that holds a [`Group`] gives it every input first ([`Group::take`]) and gets back what is not the group's;
//! then it does what [`Group::next_event`] says: apply what was chosen, serve a read, make a snapshot, install one. It
//! proposes with [`Group::propose`] and is never told twice of one instance in one life.
//!
//! * **Connections.** Each replica dials every other one and sends on that connection; what it is sent comes on those that
//!   it accepts on the group's listener. The first bytes say who speaks: magic, version, the
//!   service, the sender's identity. Frames are a length (u32, little-endian) and a message. What a peer has not taken is bounded: beyond
//!   the bound messages are dropped, which consensus allows, and sent again when they are missed.
//! * **Identity.** A folder is formatted once: the group's name, its replicas and the own number are pinned in a cell. A replica
//!   refuses the folder of another, and a peer of another group. One whose folder is empty is a newcomer: the leader gives it an
//!   id that no replica had, it catches up without a vote, and takes the place of what was lost. Votes are given and taken at an operator's word
//!   ([`Group::want_vote`]).
//! * **Disk.** One log with the replica's records. Two cells with snapshots, written in turn, so that the one that the
//!   log's head names is there until the next one holds.
//! * **Snapshots** are bytes that the state machine makes and reads part by part, while it goes on. They are on the disk and
//!   never in memory as a whole: followers are sent what is read from there.
//!
//! It never looks into a value and knows no state machine.

mod error;
mod frames;
mod group;
mod identity;
mod links;
mod order;
mod settings;
mod snapshots;
mod standing;

#[doc(hidden)]
pub use consensus::Broken;
pub use consensus::{Config, Instance, Members, Refusal, ReplicaId, Request, Value};
pub use error::{NoChange, StartError};
pub use frames::fuzz_frames;
pub use group::{CELL_NAMES, Event, Group, Started};
pub use identity::{NUMBERS_MAX, number_of};
pub use order::Order;
pub use settings::Settings;
