//! `control`, a socket in the run folder: other processes start a load that waits (`--hold`), stop it, and mark moments on its
//! line (`assay tell`). A connection is one line, at most 8 KiB, and one line in answer: `ok: …` or `error: …`.
//!
//! It trusts whoever may open the folder, which is its owner alone, to stop the run, and not what is written to make sense.
//! Nothing that the load does waits for it.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use clock::Clock;
use load::Live;
use model::facts::Event;
use model::result::Exit;
use record::RunFolder;

use super::sink::Events;
use crate::cli::TellArguments;
use crate::conclude;
use crate::interrupt::Interrupt;
use crate::terminal::{print, say};

/// The socket's name.
const NAME: &str = "control";
/// The longest answer.
const BYTES_MAX: u64 = 16 << 10;
/// The pieces in which an order may come, of 1 KiB at most.
const READS_MAX: usize = 8;
/// The longest text of a mark.
const MARK_CHARS_MAX: usize = 200;
/// A piece that does not come within this is the end of it.
const PATIENCE: Duration = Duration::from_secs(2);
/// How often a load that waits looks.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// The socket, until it is ended.
pub struct Orders {
    shared: Arc<Shared>,
    folder: PathBuf,
    thread: Mutex<Option<JoinHandle<()>>>,
}

struct Shared {
    interrupt: Interrupt,
    /// Whether a load still waits for its start.
    is_held: AtomicBool,
    is_over: AtomicBool,
    trial: Mutex<Option<Trial>>,
}

/// The load that goes on.
struct Trial {
    clock: Clock,
    live: Arc<Live>,
    events: Arc<Mutex<Events>>,
}

/// Does something with the socket's path, which is short however long the folder's is: a socket's name has 107 bytes at most.
fn at<T>(folder: &Path, f: impl FnOnce(&Path) -> io::Result<T>) -> io::Result<T> {
    let path = folder.join(NAME);
    if path.as_os_str().len() < 100 {
        return f(&path);
    }
    let opened = File::open(folder)?;
    f(&PathBuf::from(format!("/proc/self/fd/{}", opened.as_raw_fd())).join(NAME))
}

impl Orders {
    /// Listens in the folder of a run; with `is_held` its first load waits for `start`. Where no socket can be made (not every
    /// file system has them), that is said, and the run goes on without.
    ///
    /// # Errors
    /// When a load waits that nothing could start.
    pub fn listen(run: &RunFolder, interrupt: Interrupt, is_held: bool) -> Result<Self, String> {
        let folder = run.path().to_owned();
        let failed = |error: io::Error| format!("{}: {error}", folder.join(NAME).display());
        // Of a run that was killed, and now goes on.
        let _ = std::fs::remove_file(folder.join(NAME));
        let listener = at(&folder, |path| UnixListener::bind(path)).map_err(failed);
        let shared = Arc::new(Shared {
            interrupt,
            is_held: AtomicBool::new(is_held),
            is_over: AtomicBool::new(false),
            trial: Mutex::new(None),
        });
        let of = Arc::clone(&shared);
        let thread = listener.and_then(|listener| {
            let thread = std::thread::Builder::new().name("control".to_owned());
            thread.spawn(move || of.serve(&listener)).map_err(failed)
        });
        let thread = match thread {
            Err(why) if is_held => return Err(why),
            Err(why) => {
                say!("assay: {why}; the run goes on, out of reach of assay tell");
                None
            }
            Ok(thread) => Some(thread),
        };
        Ok(Self { shared, folder, thread: Mutex::new(thread) })
    }

    /// Waits, before the first load of a run with `--hold`, until it is started.
    ///
    /// # Errors
    /// When the run is stopped meanwhile.
    pub fn await_start(&self, interrupt: &Interrupt) -> Result<(), String> {
        if self.shared.is_held.load(SeqCst) {
            let run = self.folder.display();
            say!(
                "assay: the system is there, and the load waits for: assay tell start --run {run}"
            );
        }
        while self.shared.is_held.load(SeqCst) {
            if interrupt.is_set() {
                return Err("stopped by request before the load".to_owned());
            }
            std::thread::sleep(LOOK_EVERY);
        }
        Ok(())
    }

    /// A load goes on from now, and moments on its line can be marked.
    pub fn enter(&self, clock: Clock, live: &Arc<Live>, events: &Arc<Mutex<Events>>) {
        let (live, events) = (Arc::clone(live), Arc::clone(events));
        *self.shared.trial() = Some(Trial { clock, live, events });
    }

    /// It is over.
    pub fn leave(&self) {
        *self.shared.trial() = None;
    }

    /// Takes the socket away. Once more it does nothing.
    pub fn end(&self) {
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(thread) = thread else { return };
        self.shared.is_over.store(true, SeqCst);
        // It wakes up for a connection alone; without a socket it ends with this process.
        if at(&self.folder, |path| UnixStream::connect(path)).is_ok() {
            let _ = thread.join();
        }
        let _ = std::fs::remove_file(self.folder.join(NAME));
    }
}

impl Drop for Orders {
    fn drop(&mut self) {
        self.end();
    }
}

impl Shared {
    fn trial(&self) -> MutexGuard<'_, Option<Trial>> {
        self.trial.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn serve(&self, listener: &UnixListener) {
        loop {
            let connection = listener.accept();
            if self.is_over.load(SeqCst) {
                return;
            }
            match connection {
                Ok((stream, _)) => drop(self.answer(&stream)),
                // Out of descriptors: others have to end first.
                Err(_) => std::thread::sleep(LOOK_EVERY),
            }
        }
    }

    fn answer(&self, mut stream: &UnixStream) -> io::Result<()> {
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        let (mut line, mut part) = (Vec::new(), [0; 1024]);
        for _ in 0..READS_MAX {
            let count = stream.read(&mut part)?;
            line.extend_from_slice(&part[..count]);
            if count == 0 || line.contains(&b'\n') {
                break;
            }
        }
        let line = line.split(|byte| *byte == b'\n').next().unwrap_or_default();
        let answer = match self.obey(String::from_utf8_lossy(line).trim()) {
            Ok(done) => format!("ok: {done}\n"),
            Err(why) => format!("error: {why}\n"),
        };
        stream.write_all(answer.as_bytes())
    }

    fn obey(&self, order: &str) -> Result<String, String> {
        match order.split_once(' ').unwrap_or((order, "")) {
            ("start", "") if self.is_held.swap(false, SeqCst) => Ok("the load starts".to_owned()),
            ("start", "") => {
                Err("no load waits for its start; one that does is run with --hold".to_owned())
            }
            ("stop", "") if self.interrupt.ask() => Ok("the run stops, and is reported".to_owned()),
            ("stop", "") => Err("the run is stopping already".to_owned()),
            ("mark", text) if !text.trim().is_empty() => self.mark(text.trim()),
            _ => Err(format!("expected start, stop or mark TEXT, got `{}`", order.escape_debug())),
        }
    }

    fn mark(&self, text: &str) -> Result<String, String> {
        let trial = self.trial();
        let started = trial.as_ref().and_then(|it| Some((it, it.live.started()?)));
        let (trial, started) = started.ok_or("no load goes on whose line could be marked")?;
        let now = trial.clock.now();
        let event = Event {
            at: now.ns_since(started),
            name: "mark".to_owned(),
            tx: None,
            detail: text.chars().take(MARK_CHARS_MAX).collect(),
        };
        trial.events.lock().unwrap_or_else(PoisonError::into_inner).add(event);
        let seconds = now.saturating_since(started).as_secs_f64();
        Ok(format!("marked {seconds:.2} s after the start of the load"))
    }
}

/// `assay tell`: one order to a run that goes on.
pub fn tell(arguments: &TellArguments) -> Exit {
    match told(arguments) {
        Ok(answer) => match answer.strip_prefix("ok: ") {
            Some(done) => {
                let _ = print(done);
                Exit::Ok
            }
            None => {
                say!("assay tell: {}", answer.trim_end().trim_start_matches("error: "));
                Exit::CouldNotRun
            }
        },
        Err(message) => {
            say!("assay tell: {message}");
            Exit::CouldNotRun
        }
    }
}

fn told(arguments: &TellArguments) -> Result<String, String> {
    let folder = match &arguments.run {
        Some(folder) => folder.clone(),
        None => conclude::newest(Path::new("runs"))?,
    };
    let failed = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => {
            format!("{} is not of a run that goes on", folder.display())
        }
        _ => format!("{}: {error}", folder.join(NAME).display()),
    };
    let mut stream = at(&folder, |path| UnixStream::connect(path)).map_err(failed)?;
    let order = arguments.order.join(" ").replace('\n', " ");
    stream.write_all(format!("{order}\n").as_bytes()).map_err(failed)?;
    let mut answer = String::new();
    stream.take(BYTES_MAX).read_to_string(&mut answer).map_err(failed)?;
    Ok(answer)
}

#[cfg(test)]
mod tests {
    use clock::WallTime;

    use super::*;

    /// Claim: where no socket can be made a run goes on without one, unless its load waits for what would come through it.
    #[test]
    fn a_folder_without_sockets() {
        let folder = tempfile::tempdir().expect("a folder");
        let run = RunFolder::create(folder.path(), "x", WallTime::now()).expect("a run folder");
        // Something stands in the way.
        std::fs::create_dir_all(run.path().join(NAME).join("taken")).expect("a folder");
        let listen = |is_held| Orders::listen(&run, Interrupt::default(), is_held);
        assert!(listen(true).is_err_and(|why| why.contains(NAME)));
        let orders = listen(false).expect("it goes on");
        orders.end();
        assert!(run.path().join(NAME).join("taken").is_dir());
    }
}
