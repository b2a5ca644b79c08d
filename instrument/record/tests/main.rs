//! The run folder's tests, a module for each thing that is kept or damaged: one program, which is linked once.
#![allow(missing_docs, reason = "test code")]

mod crash;
mod folder;
mod mutation;
mod node_events;
mod observations;
mod other_readers;
mod round_trip;
mod rows;
mod stranger;
