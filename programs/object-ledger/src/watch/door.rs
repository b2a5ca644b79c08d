//! What a watcher answers, over connections.

use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, mpsc};
use tokio::time::timeout;

use super::Watch;
use crate::data::{Hash, Malformed, Reader};
use crate::protocol::{
    Frame, REQUEST_BYTES_MAX, Refused, StepNote, kind, next_frame, write_frame, write_refused,
};

/// Questions of one connection that wait at once.
const WAITING_MAX: usize = 4_096;
/// A question waits at most so long.
const WAIT_MAX: Duration = Duration::from_secs(60);

/// Serves questions and metrics; never ends.
pub(crate) async fn serve(watch: Arc<Watch>, questions: TcpListener, metrics: TcpListener) {
    let told = Arc::clone(&watch);
    let says = crate::metrics_door::serve(metrics, move || told.metrics());
    tokio::join!(accept(watch, questions), says);
}

async fn accept(watch: Arc<Watch>, listener: TcpListener) {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                let watch = Arc::clone(&watch);
                tokio::spawn(async move {
                    // Who asked is gone, or sent what is no question: the connection is closed, and that is all.
                    let _ = connection(&watch, stream).await;
                });
            }
            Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
        }
    }
}

async fn connection(watch: &Arc<Watch>, stream: TcpStream) -> Result<(), Malformed> {
    let _ = stream.set_nodelay(true);
    let (mut reads, mut writes) = stream.into_split();
    let (answers, mut answered) = mpsc::channel::<Vec<u8>>(64);
    let writer = tokio::spawn(async move {
        while let Some(bytes) = answered.recv().await {
            if writes.write_all(&bytes).await.is_err() {
                return;
            }
        }
    });
    let places = Arc::new(Semaphore::new(WAITING_MAX));
    let (mut bytes, mut used) = (Vec::new(), 0);
    let read = async {
        loop {
            while let Some(frame) = next_frame(&bytes[used..], REQUEST_BYTES_MAX)? {
                used += frame.used;
                if let Some((id, asked, wait)) = located(&frame) {
                    let Ok(place) = Arc::clone(&places).try_acquire_owned() else {
                        let mut out = Vec::new();
                        write_refused(&mut out, frame.id, Refused::Full);
                        let _ = answers.send(out).await;
                        continue;
                    };
                    let (watch, answers) = (Arc::clone(watch), answers.clone());
                    tokio::spawn(async move {
                        let answer = locate(&watch, id, &asked, wait).await;
                        let _ = answers.send(answer).await;
                        drop(place);
                    });
                } else {
                    let _ = answers.send(answer(watch, &frame)).await;
                }
            }
            bytes.drain(..used);
            used = 0;
            if reads.read_buf(&mut bytes).await.unwrap_or(0) == 0 {
                return Ok(());
            }
        }
    };
    let ended = read.await;
    writer.abort();
    ended
}

/// A question where a transaction is: number, id, and how long to wait.
fn located(frame: &Frame<'_>) -> Option<(u64, Hash, Duration)> {
    if frame.kind != kind::LOCATE {
        return None;
    }
    let mut reader = Reader::new(frame.payload);
    let (asked, wait) = (reader.array().ok()?, reader.u32().ok()?);
    reader.end().ok()?;
    Some((frame.id, asked, Duration::from_millis(wait.into()).min(WAIT_MAX)))
}

async fn locate(watch: &Watch, id: u64, asked: &Hash, wait: Duration) -> Vec<u8> {
    let mut changes = watch.changes();
    let found = timeout(wait, async {
        loop {
            if let Some(found) = watch.locate(asked) {
                return Some(found);
            }
            changes.changed().await.ok()?;
        }
    });
    let found = found.await.ok().flatten().or_else(|| watch.locate(asked));
    let mut out = Vec::new();
    match found {
        Some(found) => write_frame(&mut out, kind::FOUND, id, &[&found.encoded()]),
        None => write_frame(&mut out, kind::UNKNOWN, id, &[]),
    }
    out
}

fn answer(watch: &Watch, frame: &Frame<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    let chain = |out: &mut Vec<u8>, one: u64, two: u64| {
        write_frame(out, kind::CHAIN, frame.id, &[&one.to_be_bytes(), &two.to_be_bytes()]);
    };
    match frame.kind {
        kind::LENGTH if frame.payload.is_empty() => {
            let (height, next) = watch.length();
            chain(&mut out, height, next);
        }
        kind::CHECK => match <[u8; 8]>::try_from(frame.payload) {
            Ok(number) => {
                let height = watch.height_of(u64::from_be_bytes(number));
                chain(&mut out, height.unwrap_or(0), 0);
            }
            Err(_) => write_refused(&mut out, frame.id, Refused::Malformed),
        },
        kind::LOOK if frame.payload.is_empty() => {
            watch.look();
            write_frame(&mut out, kind::NOTED, frame.id, &[]);
        }
        kind::STEP => match StepNote::parse(frame.payload) {
            Ok(note) => {
                watch.noted(note);
                write_frame(&mut out, kind::NOTED, frame.id, &[]);
            }
            Err(_) => write_refused(&mut out, frame.id, Refused::Malformed),
        },
        _ => write_refused(&mut out, frame.id, Refused::Malformed),
    }
    out
}
