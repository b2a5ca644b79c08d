//! Replicas that agree on a sequence of values, though messages are lost and processes and machines fail.
//!
//! This is **Multi-Paxos** with a leader, as a value: a [`Replica`] is told what happened and when
//! ([`Replica::step`]) and says what is to be done ([`Effect`]). It has no socket, file, clock or thread, so the same code
//! runs under a real shell and in a simulator that breaks everything that can break. It never looks into a value.
//!
//! # The protocol on one page
//!
//! Values stand at *instances* 1, 2, 3, … Each instance is decided by Paxos (Lamport, "Paxos made simple", 2001), and the
//! leader's first phase is shared by all of them:
//!
//! 1. **Waiting.** A follower that has not heard its leader for one to two election timeouts asks the members whether they
//!    would vote for it. They would not if they hear a leader themselves, or if it lacks what they know to be chosen. This
//!    breaks no promise; it only keeps one that was cut off from unseating a leader that works.
//! 2. **Prepare** (phase 1). With a majority of such votes it picks a *ballot* above all that it has seen (a counter, then
//!    its id) and asks all to promise it, once for all instances that it does not know to be chosen. A *promise*, durable
//!    before it is sent, means: I accept nothing below this ballot any more, and this is what I have accepted so far. The
//!    candidate's own promise counts once it is durable, like any other.
//! 3. **Take-over.** With a majority of promises it proposes, in its own ballot, for each instance the entry that was accepted in the
//!    highest ballot, all in one round and as many as there are. Where no replica has anything, nothing was chosen. From here
//!    on it is the leader.
//! 4. **Accept** (phase 2). The leader gives each value the next instance and sends it to all, many before the first is
//!    answered (the *window*). A follower accepts unless it has promised a higher ballot. Its entries of one ballot have no
//!    gap: what comes too early it does not take, so that one number says how far it is.
//! 5. **Chosen.** An entry that a majority has accepted *durably* is chosen, for ever. The leader's own disk is one of
//!    them, and not a special one. That it is chosen is told by a number in the next accept or heartbeat, so values cross
//!    the network once a follower. What is chosen is delivered in order ([`Effect::Deliver`]).
//!
//! Why a chosen value stays: whoever leads later had promises from a majority, one of which accepted it before it promised,
//! and told so; of several ballots the highest wins, by induction the chosen value's.
//!
//! **Order.** Each entry carries its *origin*, the ballot in which it was first proposed, and that of the entry before it.
//! A new leader does not propose an entry that followed another than the one that stands before it now: it was left
//! behind, and so is all behind it. So of what one leader proposed, nothing is ever delivered without everything that it had proposed
//! before: a client may pipeline.
//!
//! **Followers that lag** are sent, by the same accepts, what the leader's log has, as much at a time as
//! [`Config::peer_bytes_max`] allows; chosen entries may be accepted again in any later ballot, as nothing else can be
//! proposed there. What the log no longer has comes as a snapshot in parts.
//!
//! **Reads** ([`Input::Read`]) cost no write: the leader notes what is chosen, makes sure by one round of heartbeats
//! that it leads still, and serves the read when that much has been delivered (Raft's read index).
//!
//! **A leader that is cut off** or was paused gives up when it has not heard from a majority for an election timeout; before
//! that it can neither choose nor serve anything, because both take a majority.
//!
//! **A leader whose disk stands still** (full, or hung) gives up when nothing that waits for it has become durable for an
//! election timeout, and does not try again before something has: others' disks decide without it, until what waits for
//! its own is too much, and then nothing would.
//!
//! **Members** change by one replica at a time, through the log. A change is in force from the instance behind it, and
//! the leader proposes nothing behind it until it is chosen (Lamport's α is 1 there). A candidate needs promises
//! from a majority of the members that it knows and of those of each change that it is told of. A newcomer
//! catches up before it is let in.
//!
//! # What a shell does
//!
//! It carries out effects in order: sends messages (loss is no harm, so a full queue may drop), appends records and says
//! when they are durable (several steps' records with one sync: group commit is the shell's), gives what is delivered to the
//! state machine, makes and keeps snapshots, and wakes the replica at [`Effects::wake_at`]. The only thing it must
//! never do is say [`Input::Persisted`] of what a power cut can take away.
//!
//! A replica that has lost its records must come back under a new id: what it promised would be forgotten.
//!
//! **What is not believed.** A ballot that jumps by more than 2³² is refused, because one of 2⁶² would leave no ballots to
//! lead with. A follower compares what a leader sends with what it holds: where they differ, one of the two has lost records, and
//! the follower takes part no more ([`Effect::Distrusted`]).

mod acceptor;
mod codec;
mod config;
mod effects;
mod election;
mod entry;
mod fuzz;
mod ids;
mod leader;
mod log;
mod message;
mod peer;
mod random;
mod reads;
mod record;
mod recover;
mod replica;
mod role;
mod snapshot;
#[cfg(test)]
mod tests;
mod value;

pub use codec::DecodeError;
#[doc(hidden)]
pub use config::Broken;
pub use config::Config;
pub use effects::{Distrust, Effect, Effects, Input, Refusal, Request};
pub use entry::{Accepted, Entry, Proposal, SnapshotHead, VALUE_BYTES_MAX};
pub use fuzz::fuzz_consensus;
pub use ids::{Ballot, Instance, MEMBERS_MAX, Members, ReplicaId};
pub use message::Message;
pub use record::Record;
pub use recover::RecoverError;
pub use replica::Replica;
pub use value::Value;
