//! The testbed: nodes as processes, faults, what the host is, what it and the nodes use, and how the programs
//! that we measure or compare with are had.
//!
//! # What is left behind
//! Nothing, whatever ends first:
//!
//! | what happens | what ends the nodes |
//! | --- | --- |
//! | [`Testbed::stop_all`], or the testbed is dropped, a panic included | end of file on each node's standard input and SIGTERM to its process group; SIGKILL after a grace |
//! | a node ends by itself | what is left of its process group is killed before its id is given back to the kernel |
//! | the process calls `exit`, aborts, or is killed with SIGKILL | the kernel kills each node (`PR_SET_PDEATHSIG`); the guard, a `/bin/sh` that holds nothing but a pipe from us, kills their process groups and ends |
//!
//! Two things escape: a program that puts itself in the background (it must be told to stay in the foreground),
//! and a grandchild that leaves its process group on purpose (`setsid`); neither does from a node in a namespace of
//! processes of its own ([`NodeSpec::in_own_namespace`]), which takes root. What stays on disk is one log a node in
//! the folder that was given.
//!
//! This crate never times a transaction and never sends one: the only connections that it opens to a system under
//! test ask questions beside the load ([`ask`]). It knows no system by name outside [`install`].

pub mod ask;
mod bed;
mod care;
mod death_signal;
mod disk;
mod environment;
mod error;
mod fault;
mod findings;
mod guard;
mod inherit;
pub mod install;
mod keeper;
mod lateness;
mod log;
mod network;
mod node;
mod own_namespace;
mod passing_folder;
mod port;
mod processes;
pub mod program;
mod rootless;
mod sampler;
mod scrape;
mod series;
mod surroundings;

pub use bed::{BedControl, Testbed};
pub use care::NodeCare;
pub use death_signal::end_with_thread;
pub use disk::{EnteredDisks, PowerCut, Rotted};
pub use environment::{environment, raise_file_limit};
pub use error::TestbedError;
pub use fault::{FaultRunner, FaultSetup, FaultSink, fault_kinds};
pub use findings::host_findings;
pub use inherit::Inheritance;
pub use network::{Entered, LinkControl};
pub use node::{Node, NodeEnd, NodeSpec};
pub use own_namespace::{Account, FOLDER_AT};
pub use passing_folder::PassingFolder;
pub use port::{free_address, free_port, own_loopback};
pub use rootless::take_own_namespaces;
pub use sampler::{ResourceSampler, SAMPLE_INTERVAL, SampleSink, Watcher};
pub use scrape::{MetricScraper, Scrape, ScrapeSeries, Scraped, fuzz_metrics};
pub use series::{known_sources, own_series};
