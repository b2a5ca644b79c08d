//! The lives of a program: each gets channels of its own and is asked what it is and to deploy. The first is asked by who
//! starts it; one that a fault started again is asked by a thread, and its channels are given to the load when it answered.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use clock::Clock;
use serde_json::json;
use sut::Channel;
use testbed::Inheritance;

use crate::control::Control;
use crate::ledger::Way;
use crate::start::Start;

/// The version of the protocol.
const VERSION: u64 = 1;

/// Our ends of one life's channels.
pub(crate) struct Ends {
    control: UnixStream,
    load: ForLoad,
}

impl Ends {
    /// The control channel, and what the load gets once it has been spoken with.
    pub(crate) fn split(self) -> (UnixStream, ForLoad) {
        (self.control, self.load)
    }
}

/// Our ends of one life's channels of the load.
pub(crate) struct ForLoad {
    sockets: Vec<OwnedFd>,
    is_asked_to_end: Arc<AtomicBool>,
}

impl ForLoad {
    fn hand_over(self, to: &[Channel]) {
        for (channel, socket) in to.iter().zip(self.sockets) {
            channel.begin(socket, Arc::clone(&self.is_asked_to_end));
        }
    }
}

/// All lives of one program.
pub(crate) struct Lives {
    start: Start,
    clock: Clock,
    now: Mutex<Now>,
}

#[derive(Default)]
struct Now {
    count: u32,
    /// Those of the first life, until it has deployed.
    first: Option<Ends>,
    /// Shared by later lives; `None`: the first has not deployed.
    up: Option<Up>,
    /// A life that is being asked.
    asking: Option<JoinHandle<()>>,
}

/// The parts that outlive a life.
#[derive(Clone)]
pub(crate) struct Up {
    pub(crate) channels: Vec<Channel>,
    pub(crate) control: Arc<Mutex<Control>>,
    pub(crate) folder: String,
}

impl Lives {
    pub(crate) fn new(start: Start, clock: Clock) -> Self {
        Self { start, clock, now: Mutex::default() }
    }

    /// A life begins: makes its channels, and gives what the program inherits.
    pub(crate) fn begin(&self) -> io::Result<Inheritance> {
        let (mut theirs, mut sockets) = (Vec::new(), Vec::new());
        let mut pair = || -> io::Result<UnixStream> {
            let (ours, other) = UnixStream::pair()?;
            theirs.push(other.into());
            Ok(ours)
        };
        let control = pair()?;
        for _ in 0..self.start.channels {
            sockets.push(pair()?.into());
        }
        let is_asked_to_end = Arc::<AtomicBool>::default();
        let inheritance =
            Inheritance { descriptors: theirs, is_asked_to_end: Arc::clone(&is_asked_to_end) };
        let ends = Ends { control, load: ForLoad { sockets, is_asked_to_end } };
        let mut now = self.now();
        now.count += 1;
        match now.up.clone() {
            None => now.first = Some(ends),
            Some(up) => {
                let (start, clock, life) = (self.start.clone(), self.clock, now.count);
                let asking = std::thread::Builder::new()
                    .name(format!("{} again", start.name))
                    .spawn(move || ask_again(&start, clock, life, ends, &up))?;
                now.asking = Some(asking);
            }
        }
        Ok(inheritance)
    }

    /// Our ends of the first life's control channel.
    pub(crate) fn first(&self) -> Option<Ends> {
        self.now().first.take()
    }

    /// The first life has deployed: the load gets its channels, and later lives go on with `up`.
    pub(crate) fn are_up(&self, load: ForLoad, up: Up) {
        load.hand_over(&up.channels);
        self.now().up = Some(up);
    }

    /// Waits until the newest life has deployed or failed: as long as its answers may take.
    pub(crate) fn settle(&self) {
        let asking = self.now().asking.take();
        if let Some(asking) = asking {
            // It gives its words to the channels itself.
            let _ = asking.join();
        }
    }

    fn now(&self) -> MutexGuard<'_, Now> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Asks a later life, and has the load go on with it.
fn ask_again(start: &Start, clock: Clock, life: u32, ends: Ends, up: &Up) {
    let (control, load) = ends.split();
    let mut control = Control::new(control, clock);
    let agreed = agree(&mut control, start, &up.folder, life);
    // From now on questions go to this life.
    *up.control.lock().unwrap_or_else(PoisonError::into_inner) = control;
    match agreed {
        Ok(_) => load.hand_over(&up.channels),
        // Ended by the next fault before it was up.
        Err(_) if load.is_asked_to_end.load(Ordering::SeqCst) => {}
        Err(why) => {
            let why = format!("started again, {why}");
            up.channels.iter().for_each(|channel| channel.stays_down(&why));
        }
    }
}

/// A program's words about itself.
pub(crate) struct Agreed {
    /// How its ledger is read, if it reads one.
    pub(crate) ledger: Option<Way>,
    /// For the report.
    pub(crate) facts: BTreeMap<String, String>,
}

/// Asks it what it is, and has it deploy.
///
/// # Errors
/// When it does not answer in time, speaks another language, or says that it failed.
pub(crate) fn agree(
    control: &mut Control,
    start: &Start,
    folder: &str,
    life: u32,
) -> Result<Agreed, String> {
    let within = start.start_within;
    let said = control.question("describe", json!({ "versions": [VERSION] }), within, None)?;
    if said.version != Some(VERSION) {
        let version = said.version.map_or_else(|| "none".to_owned(), |it| it.to_string());
        return Err(format!(
            "it speaks version {version} of the protocol, and this is version {VERSION}"
        ));
    }
    for (key, wanted, has) in [
        ("stages", &start.words.stages, &said.stages),
        ("kinds", &start.words.kinds, &said.kinds),
        ("steps", &start.words.steps, &said.steps),
    ] {
        if wanted != has {
            return Err(format!(
                "it says {key} = {has:?} and the experiment {key} = {wanted:?}; make them the same"
            ));
        }
    }
    let ledger = said.ledger.then(|| Way {
        words: said.way.unwrap_or_else(|| "as the program says that it holds it".to_owned()),
        is_ordered: said.ordered.unwrap_or(true),
    });
    let (run, seed) = (format!("{:016x}", start.run_mark), start.seed.0);
    let mut question =
        json!({ "run": run, "seed": seed, "folder": folder, "options": &start.options });
    if life > 1 {
        question["life"] = life.into();
    }
    let deployed = control.question("deploy", question, within, None)?;
    let name = &start.name;
    let mut facts: BTreeMap<String, String> =
        deployed.facts.into_iter().map(|(key, value)| (format!("{name}.{key}"), value)).collect();
    facts.insert(format!("{name}.says"), said.name);
    Ok(Agreed { ledger, facts })
}
