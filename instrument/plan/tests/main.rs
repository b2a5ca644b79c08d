//! The tests of what an experiment's text comes to, a module for each part of it: one program, which is linked once.
#![allow(missing_docs, reason = "test code")]

mod broken;
mod disk;
mod experiments;
mod links;
mod plans;
mod schema;
