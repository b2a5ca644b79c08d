//! A witness (c2sp.org/tlog-witness): it cosigns a checkpoint of a ledger if that is signed by the sequencer and continues the
//! last one that it has cosigned. So a sequencer that shows two histories cannot show both.

use std::convert::Infallible;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use clock::Clock;
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::time::timeout;

use crate::data::{Hash, PublicKey, from_hex, hex};
use crate::keys::Key;
use crate::note::{Checkpoint, NOTE_BYTES_MAX, cosignature, hash_of, is_consistent, origin};

const CONNECTIONS_MAX: usize = 256;
/// A request's head may take so long, and its body once more.
const PATIENCE: Duration = Duration::from_secs(10);
/// Hashes of a proof at most: two for each level of a tree of 2⁶⁴ leaves.
const PROOF_MAX: usize = 128;
const FILE: &str = "cosigned";

/// The message to a witness.
pub(crate) struct Options {
    pub(crate) data: PathBuf,
    /// The ledger's name.
    pub(crate) ledger: String,
    pub(crate) sequencer: PublicKey,
    /// Its own name.
    pub(crate) name: String,
}

/// The last checkpoint that it has cosigned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Last {
    size: u64,
    root: Hash,
}

#[derive(Default)]
struct Counts {
    cosigned: u64,
    refused: u64,
}

pub(crate) struct Witness {
    options: Options,
    key: Key,
    clock: Clock,
    state: Mutex<(Option<Last>, Counts)>,
}

impl Witness {
    /// One as its folder left it.
    pub(crate) fn open(options: Options, key: Key, clock: Clock) -> Result<Arc<Self>, String> {
        let path = options.data.join(FILE);
        let last = match std::fs::read_to_string(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
            Err(error) => return Err(format!("{}: {error}", path.display())),
            Ok(text) => {
                let read = text.trim_end().split_once(' ').and_then(|(size, root)| {
                    Some(Last { size: size.parse().ok()?, root: from_hex(root)? })
                });
                Some(read.ok_or_else(|| format!("{} is no size and root", path.display()))?)
            }
        };
        Ok(Arc::new(Self { options, key, clock, state: Mutex::new((last, Counts::default())) }))
    }

    pub(crate) fn says_metrics(self: &Arc<Self>) -> impl Fn() -> String + Clone + Send + 'static {
        let witness = Arc::clone(self);
        move || {
            let state = witness.state.lock().unwrap_or_else(PoisonError::into_inner);
            let size = state.0.map_or(0, |it| it.size);
            wire::metrics::text(&[
                ("ledger_cosigned_total", true, "Checkpoints cosigned.", state.1.cosigned),
                ("ledger_refused_total", true, "Checkpoints refused.", state.1.refused),
                ("ledger_witnessed", false, "Numbers under the last cosigned checkpoint.", size),
            ])
        }
    }

    /// Answers a request to cosign: a status, the type of what is said, and that.
    fn add(&self, text: &str) -> (StatusCode, &'static str, String) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let answer = self.decide(text, &mut state.0);
        if answer.0 == StatusCode::OK {
            state.1.cosigned += 1;
        } else {
            state.1.refused += 1;
        }
        answer
    }

    fn decide(&self, text: &str, last: &mut Option<Last>) -> (StatusCode, &'static str, String) {
        const TEXT: &str = "text/plain";
        let say = |status, words: &str| (status, TEXT, format!("{words}\n"));
        let Some((old, way, checkpoint)) = parsed(text) else {
            return say(
                StatusCode::BAD_REQUEST,
                "expected old SIZE, a proof, an empty line, a checkpoint",
            );
        };
        let origin = origin(&self.options.ledger);
        if checkpoint.origin != origin {
            return say(StatusCode::NOT_FOUND, "this witness does not know the origin");
        }
        if !checkpoint.is_signed(&origin, &self.options.sequencer) {
            return say(StatusCode::FORBIDDEN, "the sequencer has not signed this checkpoint");
        }
        if old > checkpoint.size {
            return say(StatusCode::BAD_REQUEST, "the old size is larger than the checkpoint's");
        }
        let known = last.map_or(0, |it| it.size);
        let is_other =
            last.is_some_and(|it| it.size == checkpoint.size && it.root != checkpoint.root);
        if old != known || is_other {
            return (StatusCode::CONFLICT, "text/x.tlog.size", format!("{known}\n"));
        }
        let Checkpoint { size, root, .. } = checkpoint;
        let continues = match &last {
            Some(it) if it.size > 0 => is_consistent(it.size, &it.root, size, &root, &way),
            _ => way.is_empty(),
        };
        if !continues {
            let words = "the proof does not lead from the last checkpoint to this one";
            return say(StatusCode::UNPROCESSABLE_ENTITY, words);
        }
        if let Err(why) = self.keep(Last { size, root }) {
            return say(StatusCode::INTERNAL_SERVER_ERROR, &why);
        }
        *last = Some(Last { size, root });
        let seconds = self.clock.wall_at(self.clock.now()).unix_ns() / 1_000_000_000;
        let seconds = u64::try_from(seconds).unwrap_or(0);
        let line = cosignature(&checkpoint.body, &self.options.name, &self.key, seconds);
        (StatusCode::OK, TEXT, line)
    }

    /// Keeps what is cosigned before anybody has it.
    fn keep(&self, last: Last) -> Result<(), String> {
        let text = format!("{} {}", last.size, hex(&last.root));
        crate::keys::write_new(&self.options.data, FILE, &text, 0o644)
            .map_err(|error| format!("keeping what is cosigned: {error}"))
    }
}

fn parsed(text: &str) -> Option<(u64, Vec<Hash>, Checkpoint)> {
    let (head, note) = text.split_once("\n\n")?;
    let mut lines = head.lines();
    let old = lines.next()?.strip_prefix("old ")?.parse().ok()?;
    let way = lines.map(hash_of).collect::<Option<Vec<Hash>>>()?;
    (way.len() <= PROOF_MAX).then_some(())?;
    Some((old, way, Checkpoint::parse(note)?))
}

/// Serves; never ends.
pub(crate) async fn serve(witness: Arc<Witness>, listener: TcpListener) {
    serve_patiently(witness, listener, PATIENCE).await;
}

/// Serves; an asker whose head or body does not come within `patience` makes room for others.
async fn serve_patiently(witness: Arc<Witness>, listener: TcpListener, patience: Duration) {
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(Duration::from_millis(20)).await;
            continue;
        };
        let witness = Arc::clone(&witness);
        tokio::spawn(async move {
            let answer = service_fn(|request| answer(&witness, request, patience));
            let mut http = http1::Builder::new();
            http.timer(TokioTimer::new()).header_read_timeout(patience);
            // The asker is gone, and gets no answer.
            let _ = http.serve_connection(TokioIo::new(stream), answer).await;
            drop(place);
        });
    }
}

async fn answer(
    witness: &Witness,
    request: Request<Incoming>,
    patience: Duration,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let is_it = request.method() == Method::POST && request.uri().path() == "/add-checkpoint";
    let (status, kind, words) = if is_it {
        let body = Limited::new(request.into_body(), NOTE_BYTES_MAX).collect();
        match timeout(patience, body).await {
            Ok(Ok(body)) => witness.add(&String::from_utf8_lossy(&body.to_bytes())),
            Ok(Err(_)) => {
                (StatusCode::BAD_REQUEST, "text/plain", "the request is too long\n".to_owned())
            }
            Err(_) => {
                let words = "the request did not come whole in time\n".to_owned();
                (StatusCode::REQUEST_TIMEOUT, "text/plain", words)
            }
        }
    } else {
        (StatusCode::NOT_FOUND, "text/plain", "POST /add-checkpoint\n".to_owned())
    };
    let response = Response::builder().status(status).header("content-type", kind);
    Ok(response.body(Full::new(words.into())).expect("the head is made here"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::note::{LogTree, body, lines_of, signed};

    fn witness(folder: &std::path::Path) -> Arc<Witness> {
        let sequencer = Key::of_seed(&[2; 32]).public();
        let (data, ledger, name) = (folder.to_owned(), "tests".to_owned(), "w".to_owned());
        let options = Options { data, ledger, sequencer, name };
        Witness::open(options, Key::of_seed(&[9; 32]), Clock::start()).unwrap()
    }

    fn note(tree: &LogTree, size: u64, seed: u8) -> String {
        signed(&body("tests", size, &tree.root(size)), &origin("tests"), &Key::of_seed(&[seed; 32]))
    }

    /// Claim: a witness cosigns what continues what it has cosigned, also after a start; another history of the same size or
    /// it refuses a larger one, one without a valid signature, and one of another ledger.
    #[test]
    fn one_history() {
        let folder = tempfile::tempdir().unwrap();
        let (mut tree, mut other) = (LogTree::default(), LogTree::default());
        for it in 0..9_u8 {
            tree.push(vec![it]);
            other.push(vec![if it < 4 { it } else { it + 100 }]);
        }
        let ask = |witness: &Witness, old: u64, way: &[Hash], note: &str| {
            witness.add(&format!("old {old}\n{}\n{note}", lines_of(way))).0.as_u16()
        };
        let first = witness(folder.path());
        assert_eq!(ask(&first, 0, &[], &note(&tree, 5, 2)), 200);
        let again = witness(folder.path());
        let way = |of: &LogTree, size| of.consistency(5, size);
        assert_eq!(ask(&again, 5, &way(&other, 9), &note(&other, 9, 2)), 422);
        assert_eq!(ask(&again, 5, &[], &note(&other, 5, 2)), 409);
        assert_eq!(ask(&again, 0, &[], &note(&tree, 9, 2)), 409);
        assert_eq!(ask(&again, 5, &way(&tree, 9), &note(&tree, 9, 3)), 403);
        assert_eq!(ask(&again, 9, &[], &note(&tree, 5, 2)), 400);
        assert_eq!(ask(&again, 5, &way(&tree, 9), &note(&tree, 9, 2)), 200);
        let elsewhere = note(&tree, 9, 2).replace("/tests", "/others");
        assert_eq!(ask(&again, 9, &[], &elsewhere), 404);
        assert_eq!(again.add("nothing").0, 400);
    }

    /// Claim: askers who never send the body that they announce make room for others: a witness all of whose places they have
    /// answers the next one.
    #[test]
    fn bodies_that_never_come() {
        use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
        use tokio::net::TcpStream;
        let folder = tempfile::tempdir().unwrap();
        let witness = witness(folder.path());
        crate::lifecycle::runtime().unwrap().block_on(async {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let address = listener.local_addr().unwrap();
            tokio::spawn(serve_patiently(witness, listener, Duration::from_secs(1)));
            let ask = async |body: &str| {
                let mut stream = TcpStream::connect(address).await.unwrap();
                let head = "POST /add-checkpoint HTTP/1.1\r\nhost: w\r\ncontent-length: 4\r\n\r\n";
                stream.write_all(format!("{head}{body}").as_bytes()).await.unwrap();
                stream
            };
            let mut silent = Vec::new();
            for _ in 0..CONNECTIONS_MAX {
                silent.push(ask("non").await);
            }
            let (mut asker, mut status) = (ask("none").await, [0; 12]);
            let answered = timeout(Duration::from_secs(60), asker.read_exact(&mut status)).await;
            assert_eq!(answered.expect("it has a place").unwrap(), 12);
            assert_eq!(&status, b"HTTP/1.1 400");
        });
    }
}
