//! A program that is up: started as a node of the testbed with its ends of the channels, described, deployed. Adapters of
//! other systems start theirs here too, as a probe beside a load of their own.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};

use clock::Clock;
use serde_json::json;
use sut::{Channel, Ledger, Link, NodeEvents, SutError, Testbed};
use testbed::{Node, NodeSpec};

use crate::control::Control;
use crate::ledger::{Entries, Way};
use crate::line::Vocabulary;
use crate::lives::{self, Lives, Up};
use crate::session::LineSession;
use crate::start::Start;
use crate::steps::Steps;

/// The variable that tells a program its descriptors.
const VARIABLE: &str = "ASSAY_EXEC_FDS";

/// A program that is up.
pub struct Program {
    start: Start,
    node: Node,
    words: Arc<Vocabulary>,
    steps: Arc<Steps>,
    channels: Vec<Channel>,
    /// Connections of a probe that have asked for a channel, in the order in which they did.
    probes: Mutex<Vec<u32>>,
    control: Arc<Mutex<Control>>,
    lives: Arc<Lives>,
    /// How its ledger is read, if it reads one.
    ledger: Option<Way>,
    /// What it says of itself, for the report.
    pub facts: BTreeMap<String, String>,
    clock: Clock,
}

impl Program {
    /// Starts it and asks it to deploy.
    ///
    /// # Errors
    /// When it cannot be started, ends, speaks another language, or says that it failed; with its last lines.
    pub fn start(start: Start, bed: &mut Testbed) -> Result<Self, SutError> {
        let (program, arguments) = start
            .command
            .split_first()
            .ok_or_else(|| SutError::Deploy(format!("the command of `{}` is empty", start.name)))?;
        // In a folder of its own, where the plan gives it a disk on that.
        let folder = bed.node_folder(&start.name)?;
        let clock = bed.clock();
        let lives = Arc::new(Lives::new(start.clone(), clock));
        let of_each = Arc::clone(&lives);
        let mut spec = NodeSpec::new(&start.name, program)
            .args(arguments)
            .pass(start.environment.iter().cloned())
            .inherit(VARIABLE, move || of_each.begin());
        if let Some(folder) = &start.folder {
            spec = spec.cwd(folder);
        }
        let node = bed.spawn(spec)?;
        let ends = lives.first().ok_or_else(|| {
            SutError::Deploy(format!("`{}` was started without its channels", start.name))
        })?;
        let (control, load) = ends.split();
        let channels: Vec<Channel> = (0..start.channels)
            .map(|_| {
                let node = node.clone();
                Channel::new(&start.name, Box::new(move || node.last_lines()))
            })
            .collect();
        let folder = folder.display().to_string();
        let mut control = Control::new(control, clock);
        let agreed = lives::agree(&mut control, &start, &folder, 1)
            .map_err(|why| SutError::Deploy(words_of(&start, &node, &why)))?;
        let control = Arc::new(Mutex::new(control));
        let up = Up { channels: channels.clone(), control: Arc::clone(&control), folder };
        lives.are_up(load, up);
        Ok(Self {
            words: Arc::new(start.words.clone()),
            steps: Arc::default(),
            channels,
            probes: Mutex::default(),
            control,
            lives,
            ledger: agreed.ledger,
            facts: agreed.facts,
            clock,
            node,
            start,
        })
    }

    /// The node that it is.
    #[must_use]
    pub const fn node(&self) -> &Node {
        &self.node
    }

    /// The `index`-th channel of the load, with what is spoken on it.
    ///
    /// # Errors
    /// When there are not so many.
    pub fn link(&self, index: usize) -> Result<Link, SutError> {
        let channel = self.channels.get(index).cloned().ok_or_else(|| {
            SutError::Deploy(format!(
                "`{}` has {} channels; ask for more with system.deploy.channels",
                self.start.name,
                self.channels.len()
            ))
        })?;
        Ok(Link::Channel(channel, Box::new(self.session())))
    }

    /// The channel of a connection of a probe, whatever its number: each has the next from `first` on.
    ///
    /// # Errors
    /// As [`Program::link`].
    pub fn link_of_probe(&self, index: u32, first: usize) -> Result<Link, SutError> {
        let mut probes = self.probes.lock().unwrap_or_else(PoisonError::into_inner);
        let place = probes.iter().position(|known| *known == index).unwrap_or_else(|| {
            probes.push(index);
            probes.len() - 1
        });
        self.link(first + place)
    }

    /// What is spoken on a channel, without one.
    #[must_use]
    pub fn session(&self) -> LineSession {
        let (words, steps) = (Arc::clone(&self.words), Arc::clone(&self.steps));
        LineSession::new(words, steps, self.start.in_flight_max)
    }

    /// What the system holds, as the program says; `None`: it says that it reads no ledger.
    ///
    /// # Errors
    /// When it cannot be asked.
    pub fn ledger(&self, stop: &Arc<AtomicBool>) -> Result<Option<Box<dyn Ledger>>, SutError> {
        let Some(way) = self.ledger.clone() else { return Ok(None) };
        // One that was started again a moment ago deploys first.
        self.lives.settle();
        let control = Arc::clone(&self.control);
        let within = self.start.answer_within;
        let entries = Entries::ask(control, way, within, stop).map_err(|error| match error {
            SutError::Ledger(why) => SutError::Ledger(self.words_of(&why)),
            other => other,
        })?;
        Ok(Some(Box::new(entries)))
    }

    /// Says that nothing more is wanted of it. One that does not hear this hears the end of its input.
    pub fn stop(&self) {
        let mut control = self.control.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = control.ask("stop", json!({}));
    }

    /// Hands over the steps that it timed.
    pub fn hand_over_steps(&self, to: &mut dyn NodeEvents) {
        self.steps.hand_over(&self.start.name, self.clock, to);
    }

    fn words_of(&self, why: &str) -> String {
        words_of(&self.start, &self.node, why)
    }
}

fn words_of(start: &Start, node: &Node, why: &str) -> String {
    let last = node.last_lines();
    let last = if last.is_empty() {
        String::new()
    } else {
        format!("; the last lines that it wrote:\n{last}")
    };
    format!("the program `{}`, {why}{last}", start.name)
}
