//! `probe`: a client that is driven in lines of JSON over inherited sockets, as docs/exec.md has it. It submits what it is given,
//! watches the buckets by itself and says when each transaction was accepted, durable, on the main chain and verified, with
//! what took how long. It keeps nothing.

mod parts;
mod speech;

use std::sync::Arc;
use std::time::Duration;

use clock::Clock;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, UnixStream};
use tokio::sync::{mpsc, watch};
use tokio::time::timeout;

use crate::asking::{NoAnswer, Service};
use crate::config::Config;
use crate::data::transaction_id;
use crate::lifecycle::runtime;
use crate::protocol::{Refused, kind};
use crate::storage::Storage;
use crate::watch::Watch;
use speech::{Asked, Deploy, End, Stage, Submitted, entries};

const HELP: &str = "\
probe: a client that is driven in lines of JSON over the sockets whose numbers are in ASSAY_EXEC_FDS (docs/exec.md).
Options of `deploy`: ledger (the ledger's file; needed), listen (where pipelines say when batches take steps),
bucket_to_queue_ms, queue_to_cache_ms, omc_ms (100, 100, 50), push (false), give_up_ms (30000).
";

/// The variable with the numbers of the sockets.
const SOCKETS: &str = "ASSAY_EXEC_FDS";
/// A line has at most so many bytes.
const LINE_BYTES_MAX: usize = 1 << 20;
/// Lines that wait to be written on one channel.
const LINES_MAX: usize = 4_096;

/// What transactions need.
struct Engine {
    queue: Service,
    watch: Arc<Watch>,
    give_up: Duration,
}

/// Serves until the control channel ends or says so.
pub(crate) fn run(words: &[String]) -> Result<(), String> {
    if !words.is_empty() {
        print!("{HELP}");
        return Ok(());
    }
    let numbers = std::env::var(SOCKETS).map_err(|_| {
        format!(
            "{SOCKETS} has no numbers of sockets: probe is started by `assay`; see probe --help"
        )
    })?;
    let mut channels = crate::inherited::sockets(&numbers)?.into_iter();
    let control = channels.next().ok_or("there is no control channel")?;
    runtime()?.block_on(async {
        let (engine, engines) = watch::channel(None);
        for channel in channels {
            let (channel, engines) = (socket(channel)?, engines.clone());
            tokio::spawn(async move {
                if let Err(why) = load(channel, engines).await {
                    eprintln!("a load channel: {why}");
                }
            });
        }
        serve_control(socket(control)?, engine).await
    })
}

fn socket(channel: std::os::unix::net::UnixStream) -> Result<UnixStream, String> {
    let words = |error: std::io::Error| format!("a channel: {error}");
    channel.set_nonblocking(true).map_err(words)?;
    UnixStream::from_std(channel).map_err(words)
}

/// Lines of a channel; one that is too long is an error.
struct Lines<R> {
    reads: BufReader<R>,
    line: Vec<u8>,
}

impl<R: tokio::io::AsyncRead + Unpin> Lines<R> {
    fn of(reads: R) -> Self {
        Self { reads: BufReader::new(reads), line: Vec::new() }
    }

    async fn next(&mut self) -> Result<Option<&[u8]>, String> {
        self.line.clear();
        loop {
            let words = |error: std::io::Error| format!("reading: {error}");
            let part = self.reads.fill_buf().await.map_err(words)?;
            if part.is_empty() {
                return Ok(None);
            }
            let end = part.iter().position(|byte| *byte == b'\n');
            let taken = end.map_or(part.len(), |end| end + 1);
            self.line.extend_from_slice(&part[..taken]);
            self.reads.consume(taken);
            if self.line.len() > LINE_BYTES_MAX {
                return Err(format!("a line has more than {LINE_BYTES_MAX} bytes"));
            }
            if end.is_some() {
                return Ok(Some(&self.line));
            }
        }
    }
}

async fn serve_control(
    control: UnixStream,
    engine: watch::Sender<Option<Arc<Engine>>>,
) -> Result<(), String> {
    let (reads, mut writes) = control.into_split();
    let mut lines = Lines::of(reads);
    while let Some(line) = lines.next().await? {
        let asked = serde_json::from_slice(line)
            .map_err(|error| format!("the control channel: {error}"))?;
        let is_stop = matches!(asked, Asked::Stop);
        let answer = match asked {
            Asked::Describe { versions } => speech::description(&versions),
            Asked::Deploy(deploy) => match begin(&deploy).await {
                Ok(begun) => {
                    engine.send_replace(Some(begun));
                    speech::did("deploy")
                }
                Err(why) => speech::failed(&why),
            },
            Asked::Ledger => speech::failed("a probe has no ledger; the buckets have it"),
            Asked::Stop => speech::did("stop"),
        };
        writes.write_all(&answer).await.map_err(|error| format!("writing: {error}"))?;
        if is_stop {
            break;
        }
    }
    Ok(())
}

async fn begin(deploy: &Deploy) -> Result<Arc<Engine>, String> {
    let options = &deploy.options;
    let config = Config::read(&options.ledger)?;
    let queue = Service::at(&Config::address("queue", config.queue.as_ref())?);
    let clock = Clock::start();
    let storage = Storage::open(&config, clock)?;
    let watch = Watch::new(storage, config.trust()?, options.waits(), clock);
    if let Some(listen) = &options.listen {
        let words = |error: std::io::Error| format!("listening at {listen}: {error}");
        let notes = TcpListener::bind(listen).await.map_err(words)?;
        let metrics = TcpListener::bind("127.0.0.1:0").await.map_err(words)?;
        tokio::spawn(crate::watch::serve(Arc::clone(&watch), notes, metrics));
    }
    tokio::spawn(Arc::clone(&watch).run());
    Ok(Arc::new(Engine { queue, watch, give_up: Duration::from_millis(options.give_up_ms) }))
}

async fn load(
    channel: UnixStream,
    engines: watch::Receiver<Option<Arc<Engine>>>,
) -> Result<(), String> {
    let (reads, mut writes) = channel.into_split();
    let (lines, mut to_write) = mpsc::channel::<Vec<u8>>(LINES_MAX);
    let writer = tokio::spawn(async move {
        while let Some(line) = to_write.recv().await {
            if writes.write_all(&line).await.is_err() {
                return;
            }
        }
    });
    let mut reads = Lines::of(reads);
    while let Some(line) = reads.next().await? {
        let Submitted { transactions } =
            serde_json::from_slice(line).map_err(|error| format!("a line: {error}"))?;
        let engine = engines.borrow().clone().ok_or("transactions came before `deploy`")?;
        for transaction in transactions {
            let (engine, lines) = (Arc::clone(&engine), lines.clone());
            let (id, payload) = (transaction.id, transaction.bytes()?);
            tokio::spawn(async move {
                let ended = timeout(engine.give_up, engine.follow(id, &payload, &lines)).await;
                let late = || End { class: "unknown", text: "not verified in time".to_owned() };
                if let Err(end) = ended.unwrap_or_else(|_| Err(late())) {
                    // Whoever drives this is gone.
                    let _ = lines.send(end.line(id)).await;
                }
            });
        }
    }
    drop(lines);
    // What is outstanding is nobody's any more.
    writer.abort();
    Ok(())
}

impl Engine {
    /// One transaction, from its submission to its strong verification.
    async fn follow(
        &self,
        id: u64,
        transaction: &[u8],
        lines: &mpsc::Sender<Vec<u8>>,
    ) -> Result<(), End> {
        let mut changes = self.watch.changes();
        let submitted = self.watch.now_ns();
        let asked =
            self.queue.ask_for(kind::ACCEPTED, kind::SUBMIT, transaction.to_vec(), self.give_up);
        asked.await.map_err(|error| End { class: class(&error), text: error.to_string() })?;
        let accepted = self.watch.now_ns();
        reached(lines, id, Stage::Accepted, None).await;
        let name = transaction_id(transaction);
        let mut is_durable = false;
        let found = loop {
            changes.borrow_and_update();
            if !is_durable && self.watch.is_seen(&name) {
                // It was rebuilt from the buckets.
                is_durable = true;
                reached(lines, id, Stage::Durable, None).await;
            }
            if let Some(found) = self.watch.locate(&name) {
                break found;
            }
            self.wait(&mut changes).await?;
        };
        reached(lines, id, Stage::OnMainChain, None).await;
        let verified = self.watch.verify(transaction, &found);
        let verified_at = self.watch.now_ns();
        verified.map_err(|refusal| End { class: "server", text: refusal.to_string() })?;
        let steps = parts::parts(submitted, accepted, &found, verified_at);
        reached(lines, id, Stage::Verified, Some(&steps)).await;
        Ok(())
    }

    async fn wait(&self, changes: &mut watch::Receiver<u64>) -> Result<(), End> {
        if let Some(refusal) = self.watch.refused() {
            return Err(End { class: "server", text: refusal.to_string() });
        }
        let ended = |_| End { class: "client", text: "the watcher has ended".to_owned() };
        changes.changed().await.map_err(ended)
    }
}

async fn reached(
    lines: &mpsc::Sender<Vec<u8>>,
    id: u64,
    stage: Stage,
    steps: Option<&[parts::Part]>,
) {
    // Whoever drives this is gone.
    let _ = lines.send(entries::reached(id, stage, steps)).await;
}

/// How a submission that was not acknowledged ended.
const fn class(error: &NoAnswer) -> &'static str {
    match error {
        NoAnswer::Refused(Refused::Full) => "overloaded",
        NoAnswer::Refused(Refused::Size | Refused::Malformed | Refused::NoSuchBatch) => {
            "bad_request"
        }
        NoAnswer::Refused(Refused::Unknown | Refused::Unsigned | Refused::NoSuchNumber)
        | NoAnswer::Garbled(_) => "server",
        // Whether the queue has it is not known.
        NoAnswer::Lost(_) | NoAnswer::Late(_) => "unknown",
    }
}
