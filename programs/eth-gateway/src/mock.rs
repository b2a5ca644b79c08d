//! A node to try the gateway on: a chain made of a seed, the limiter that public providers have, and every way to fail.
//!
//! It plays what a study of a published API ran into (so many calls a second over about a minute, then a back-off, and the
//! refusal's body word for word), so that the study needs nobody's network.

mod chain;
mod faults;
mod limit;

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use clock::Clock;
use http_body_util::{BodyExt as _, Limited};
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::lifecycle;
use crate::options::duration;
use chain::Chain;
use faults::{Fault, Sent};
use limit::{Limit, Refusal};

/// The largest request that is read.
const REQUEST_BYTES_MAX: usize = 1 << 20;

const HELP: &str = "\
A node with a chain made of a seed, a limiter and faults, for trials of a gateway.

eth-gateway mock [OPTIONS]

  --listen IP:PORT     where JSON-RPC is served [127.0.0.1:8545]
  --seed N             what the chain is made of [1]
  --blocks N           blocks that there are at the start [1000]
  --transactions N     transactions in a block [4]
  --block-time TIME    a new block so often; 0s: never [0s]
  --latency TIME       how long each call takes [0ms]
  --log-latency TIME   how long eth_getLogs takes, one at a time [0ms]
  --allowed-rps N      calls a second that the limiter allows; 0: no limiter [0]
  --limited WHICH      which calls it counts and refuses: all, or blocks: of blocks, heights and transactions [all]
  --window TIME        over which it counts [60s]
  --backoff TIME       how long everything is refused after a refusal [30s]
  --refusal-status N   HTTP status of a refusal: 429 or 200 [429]
  --fault FAULT        none, hang, slow, garbage, html, huge, reset, error or limited [none]

The method mock_fault [FAULT] changes the fault while it runs; mock_calls gives how many calls came; mock_reset has the
limiter forget what came before.
";

/// See the module.
struct Mock {
    clock: Clock,
    chain: Mutex<Chain>,
    limit: Option<Mutex<Limit>>,
    fault: Mutex<Fault>,
    calls: std::sync::atomic::AtomicU64,
    log_search: tokio::sync::Mutex<()>,
    settings: Settings,
}

struct Settings {
    listen: SocketAddr,
    seed: u64,
    blocks: u64,
    transactions: u64,
    block_time: Duration,
    latency: Duration,
    log_latency: Duration,
    allowed_rps: f64,
    is_blocks_only: bool,
    window: Duration,
    backoff: Duration,
    refusal_status: u16,
    fault: Fault,
}

/// Plays the node until the program is asked to end.
pub fn run(words: &[String]) -> Result<(), String> {
    if words.iter().any(|word| word == "--help") {
        return lifecycle::print(HELP);
    }
    let settings = Settings::read(words)?;
    lifecycle::runtime(0)?.block_on(serve(settings))
}

impl Settings {
    fn limit(&self) -> Limit {
        Limit::new(self.allowed_rps, self.window, self.backoff)
    }

    fn read(words: &[String]) -> Result<Self, String> {
        let mut read = Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 8545)),
            seed: 1,
            blocks: 1000,
            transactions: 4,
            block_time: Duration::ZERO,
            latency: Duration::ZERO,
            log_latency: Duration::ZERO,
            allowed_rps: 0.0,
            is_blocks_only: false,
            window: Duration::from_secs(60),
            backoff: Duration::from_secs(30),
            refusal_status: 429,
            fault: Fault::None,
        };
        for pair in words.chunks(2) {
            let [name, value] = pair else {
                return Err(format!("{} wants a value; see mock --help", pair[0]));
            };
            let wrong = || format!("{name}: `{value}` is wrong; see mock --help");
            let number = || value.parse().map_err(|_| wrong());
            match name.as_str() {
                "--listen" => read.listen = value.parse().map_err(|_| wrong())?,
                "--seed" => read.seed = number()?,
                "--blocks" => read.blocks = number()?.clamp(1, chain::BLOCKS_MAX),
                "--transactions" => read.transactions = number()?.min(1000),
                "--block-time" => read.block_time = duration(value)?,
                "--latency" => read.latency = duration(value)?,
                "--log-latency" => read.log_latency = duration(value)?,
                "--allowed-rps" => read.allowed_rps = value.parse().map_err(|_| wrong())?,
                "--limited" => {
                    read.is_blocks_only = match value.as_str() {
                        "all" => false,
                        "blocks" => true,
                        _ => return Err(wrong()),
                    }
                }
                "--window" => read.window = duration(value)?,
                "--backoff" => read.backoff = duration(value)?,
                "--refusal-status" => read.refusal_status = value.parse().map_err(|_| wrong())?,
                "--fault" => read.fault = Fault::named(value).ok_or_else(wrong)?,
                other => return Err(format!("there is no {other}; see mock --help")),
            }
        }
        Ok(read)
    }
}

async fn serve(settings: Settings) -> Result<(), String> {
    let listener = TcpListener::bind(settings.listen).await;
    let listener =
        listener.map_err(|error| format!("listening at {}: {error}", settings.listen))?;
    let address = listener.local_addr().map_err(|error| format!("listening: {error}"))?;
    let clock = Clock::start();
    let limit = settings.limit();
    let mock = Arc::new(Mock {
        clock,
        chain: Mutex::new(Chain::new(settings.seed, settings.blocks, settings.transactions)),
        limit: (settings.allowed_rps > 0.0).then(|| Mutex::new(limit)),
        fault: Mutex::new(settings.fault),
        calls: std::sync::atomic::AtomicU64::new(0),
        log_search: tokio::sync::Mutex::new(()),
        settings,
    });
    lifecycle::ready(&format!("http={address}"));
    let accepting = async {
        loop {
            let Ok((stream, _)) = listener.accept().await else {
                tokio::time::sleep(Duration::from_millis(10)).await;
                continue;
            };
            let _ = stream.set_nodelay(true);
            let mock = Arc::clone(&mock);
            tokio::spawn(async move {
                let service = service_fn(|request| mock.respond(request));
                let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
            });
        }
    };
    let ends = lifecycle::ends()?;
    tokio::select! { () = accepting => {}, () = ends => {} }
    Ok(())
}

impl Mock {
    async fn respond(&self, request: Request<Incoming>) -> Result<Response<Sent>, std::io::Error> {
        let body = Limited::new(request.into_body(), REQUEST_BYTES_MAX).collect().await;
        let Ok(body) = body else { return Ok(say(413, &json!("too large"))) };
        let Ok(asked) = serde_json::from_slice::<Value>(&body.to_bytes()) else {
            return Ok(say(200, &error(&Value::Null, -32700, "Parse error")));
        };
        let calls = asked.as_array().map_or(std::slice::from_ref(&asked), Vec::as_slice);
        let is_control = calls
            .iter()
            .all(|call| call["method"].as_str().is_some_and(|method| method.starts_with("mock_")));
        if !is_control {
            let fault = *self.fault.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(response) = fault.instead().await? {
                return Ok(response);
            }
            let methods = calls.iter().filter_map(|call| call["method"].as_str());
            let counted = methods.filter(|method| self.counts(method)).count();
            if let Err(refusal) = self.admit(calls.len(), counted, fault) {
                return Ok(self.refuse(&calls[0]["id"], &refusal));
            }
        }
        let mut answers = Vec::with_capacity(calls.len());
        for call in calls {
            answers.push(self.answer(call).await);
        }
        let answer = match (asked.is_array(), answers.pop()) {
            (false, Some(only)) => only,
            (_, last) => Value::Array(answers.into_iter().chain(last).collect()),
        };
        Ok(say(200, &answer))
    }

    /// Whether the limiter counts a call.
    fn counts(&self, method: &str) -> bool {
        const OF_BLOCKS: [&str; 3] = ["eth_blockNumber", "eth_getBlock", "eth_getTransaction"];
        !self.settings.is_blocks_only || OF_BLOCKS.iter().any(|of| method.starts_with(of))
    }

    fn admit(&self, calls: usize, counted: usize, fault: Fault) -> Result<(), Refusal> {
        self.calls.fetch_add(calls as u64, std::sync::atomic::Ordering::Relaxed);
        if fault == Fault::Limited {
            return Err(Refusal::always());
        }
        let Some(limit) = &self.limit else { return Ok(()) };
        let mut limit = limit.lock().unwrap_or_else(PoisonError::into_inner);
        (0..counted).try_for_each(|_| limit.admit(self.clock.now()))
    }

    fn refuse(&self, id: &Value, refusal: &Refusal) -> Response<Sent> {
        let body = json!({
            "jsonrpc": "2.0", "id": id,
            "error": {
                "code": -32005,
                "message": "project ID request rate exceeded",
                "data": {
                    "rate": {
                        "allowed_rps": refusal.allowed_rps,
                        "backoff_seconds": refusal.backoff.as_secs_f64(),
                        "current_rps": refusal.current_rps,
                    },
                    "see": "https://infura.io/docs/ethereum/json-rpc/ratelimits",
                },
            },
        });
        let mut response = say(self.settings.refusal_status, &body);
        if self.settings.refusal_status == 429 {
            let seconds = refusal.wait.as_secs() + 1;
            response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }

    async fn answer(&self, call: &Value) -> Value {
        let (id, params) = (&call["id"], &call["params"]);
        let method = call["method"].as_str().unwrap_or_default();
        match method {
            "mock_fault" => {
                let fault = params[0].as_str().and_then(Fault::named);
                let Some(fault) = fault else { return error(id, -32602, "no such fault") };
                *self.fault.lock().unwrap_or_else(PoisonError::into_inner) = fault;
                return result(id, &Value::Bool(true));
            }
            "mock_reset" => {
                if let Some(limit) = &self.limit {
                    *limit.lock().unwrap_or_else(PoisonError::into_inner) = self.settings.limit();
                }
                return result(id, &Value::Bool(true));
            }
            "mock_calls" => {
                let calls = self.calls.load(std::sync::atomic::Ordering::Relaxed);
                return result(id, &Value::from(calls));
            }
            "eth_getLogs" if !self.settings.log_latency.is_zero() => {
                let _alone = self.log_search.lock().await;
                tokio::time::sleep(self.settings.log_latency).await;
            }
            _ if !self.settings.latency.is_zero() => {
                tokio::time::sleep(self.settings.latency).await
            }
            _ => {}
        }
        let mut chain = self.chain.lock().unwrap_or_else(PoisonError::into_inner);
        let each = self.settings.block_time;
        if !each.is_zero() {
            let passed = self.clock.now().saturating_since(clock::Instant::ZERO);
            let grown = passed.as_nanos() / each.as_nanos();
            chain.grow_to(self.settings.blocks + u64::try_from(grown).unwrap_or(u64::MAX));
        }
        match chain.answer(method, params) {
            Ok(answer) => result(id, &answer),
            Err((code, message)) => error(id, code, &message),
        }
    }
}

fn result(id: &Value, result: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "result": result })
}

fn error(id: &Value, code: i64, message: &str) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": message } })
}

fn say(status: u16, body: &Value) -> Response<Sent> {
    let mut response = Response::new(Sent::Whole(Some(Bytes::from(body.to_string()))));
    *response.status_mut() = status.try_into().unwrap_or_default();
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}
