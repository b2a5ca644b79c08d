//! The same operations over gRPC, with the health service, and reflection by which a client learns them: HTTP/2 on an address of
//! its own.
//!
//! A call becomes the path of the REST API that asks the same, so that both check their fields with the same code, and lets in
//! the same clients.

mod messages;

use std::convert::Infallible;
use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use hyper::Request as HttpRequest;
use hyper::Response as HttpResponse;
use hyper::body::Incoming;
use serde_json::Value;
use tonic::body::Body;
use tonic::codegen::Service;
use tonic::{Code, Request, Response, Status};
use tonic_health::ServingStatus;
use tonic_health::server::HealthReporter;

use crate::answers::Problem;
use crate::gateway::{Form, Gateway, Spent};
use crate::quantity::Quantity;
use crate::routes::{self, NotFound, Operation};
use crate::rpc::Failure;
use crate::server::{Serving, let_in};
use messages::OfJson;
use messages::proto::gateway_server::{Gateway as Methods, GatewayServer};
use messages::proto::{
    AddressRequest, Block, BlockRequest, CallRequest, Count, Data, Empty, Fate, FeeHistory,
    FeeHistoryRequest, HashRequest, Height, Logs, LogsRequest, PlaceRequest, Receipt,
    SearchRequest, SendRequest, Sent, StorageRequest, Transaction, Wei,
};

/// The compiled description, for reflection.
pub const DESCRIPTION: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/gateway.bin"));
const SERVICE: &str = "/ethgateway.v1.Gateway/";

/// A service that a library has, by what it is called with.
type Serves = Box<
    dyn Fn(HttpRequest<Body>) -> Pin<Box<dyn Future<Output = HttpResponse<Body>> + Send>>
        + Send
        + Sync,
>;

/// See the module.
pub struct Calls {
    methods: GatewayServer<Served>,
    gateway: Arc<Gateway>,
    health: Serves,
    reporter: HealthReporter,
    reflection: Serves,
    reflection_alpha: Serves,
}

impl Calls {
    /// # Errors
    /// When the description is none, which a test looks at.
    pub fn new(gateway: Arc<Gateway>) -> Result<Self, String> {
        let failed = |error| format!("the description of the gRPC service: {error}");
        let build = || {
            tonic_reflection::server::Builder::configure()
                .register_encoded_file_descriptor_set(DESCRIPTION)
                .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
        };
        let current = build().build_v1().map_err(failed)?;
        let alpha = build().build_v1alpha().map_err(failed)?;
        let (reporter, health) = tonic_health::server::health_reporter();
        Ok(Self {
            methods: GatewayServer::new(Served { gateway: Arc::clone(&gateway) }),
            gateway,
            reporter,
            health: Box::new(move |request| pass_to(health.clone(), request)),
            reflection: Box::new(move |request| pass_to(current.clone(), request)),
            reflection_alpha: Box::new(move |request| pass_to(alpha.clone(), request)),
        })
    }

    /// Answers one call.
    pub async fn respond(
        &self,
        request: HttpRequest<Incoming>,
        peer: SocketAddr,
        serving: &Serving,
    ) -> Result<HttpResponse<Body>, Infallible> {
        let path = request.uri().path().to_owned();
        let request = request.map(Body::new);
        if path.starts_with("/grpc.reflection.v1.") {
            return Ok((self.reflection)(request).await);
        }
        if path.starts_with("/grpc.reflection.v1alpha.") {
            return Ok((self.reflection_alpha)(request).await);
        }
        if path.starts_with("/grpc.health.v1.") {
            self.look_after_health().await;
            return Ok((self.health)(request).await);
        }
        if path.starts_with(SERVICE)
            && let Err(problem) =
                let_in(serving, request.headers(), peer, (1, self.gateway.clock.now()))
        {
            return Ok(status(&problem).into_http());
        }
        self.methods.clone().call(request).await
    }

    /// The service is healthy while the node answers.
    async fn look_after_health(&self) {
        let ready = Operation::Ready;
        let done = self.gateway.perform(&ready, Form::Version1, &mut Spent::default()).await;
        match done {
            Ok(_) => self.reporter.set_serving::<GatewayServer<Served>>().await,
            Err(_) => self.reporter.set_not_serving::<GatewayServer<Served>>().await,
        }
        let whole = if done.is_ok() { ServingStatus::Serving } else { ServingStatus::NotServing };
        self.reporter.set_service_status("", whole).await;
    }
}

fn pass_to<S>(
    mut service: S,
    request: HttpRequest<Body>,
) -> Pin<Box<dyn Future<Output = HttpResponse<Body>> + Send>>
where
    S: Service<HttpRequest<Body>, Response = HttpResponse<Body>, Error = Infallible>
        + Send
        + 'static,
    S::Future: Send + 'static,
{
    let answered = service.call(request);
    Box::pin(async move { answered.await.unwrap_or_else(|never| match never {}) })
}

/// The implementation of the generated service.
struct Served {
    gateway: Arc<Gateway>,
}

type Given<T> = Result<Response<T>, Status>;

impl Served {
    /// The answer of the REST API at a path, as a message.
    async fn at<T: OfJson>(&self, path: String) -> Given<T> {
        let gateway = &self.gateway;
        let began = gateway.clock.now();
        let mut spent = Spent::default();
        let operation =
            routes::find(&path).map_err(|not_found| status(&Problem::Path(not_found)))?;
        let done = gateway.perform(&operation, Form::Version1, &mut spent).await;
        let took = gateway.clock.now().saturating_since(began);
        let own = took.saturating_sub(spent.node.unwrap_or_default());
        let counted = match &done {
            Ok(_) => 200,
            Err(problem) => crate::answers::problem(problem).status().as_u16(),
        };
        gateway.metrics.answered(operation.route(), counted, own, spent.node);
        let (body, _) = done.map_err(|problem| status(&problem))?;
        let given = serde_json::from_slice::<Value>(&body).ok().as_ref().and_then(T::of);
        given.map(Response::new).ok_or_else(|| status(&Problem::Shape("this method")))
    }
}

#[tonic::async_trait]
impl Methods for Served {
    async fn get_transaction(&self, asked: Request<HashRequest>) -> Given<Transaction> {
        self.at(format!("/transaction/{}", plain(&asked.get_ref().hash))).await
    }

    async fn get_receipt(&self, asked: Request<HashRequest>) -> Given<Receipt> {
        self.at(format!("/transaction/{}/receipt", plain(&asked.get_ref().hash))).await
    }

    async fn get_last_height(&self, _: Request<Empty>) -> Given<Height> {
        self.at("/block/last/height".to_owned()).await
    }

    async fn get_block(&self, asked: Request<BlockRequest>) -> Given<Block> {
        let asked = asked.get_ref();
        let full = if asked.full { "/full" } else { "" };
        self.at(format!("/block/{}{full}", or_last(&asked.block))).await
    }

    async fn get_transaction_in_block(&self, asked: Request<PlaceRequest>) -> Given<Transaction> {
        let asked = asked.get_ref();
        self.at(format!("/block/{}/transaction/{}", asked.height, asked.index)).await
    }

    async fn get_gas_price(&self, _: Request<Empty>) -> Given<Wei> {
        self.at("/gasprice".to_owned()).await
    }

    async fn get_balance(&self, asked: Request<AddressRequest>) -> Given<Wei> {
        self.at(of_account("balance", asked.get_ref())).await
    }

    async fn get_logs(&self, asked: Request<LogsRequest>) -> Given<Logs> {
        let asked = asked.get_ref();
        let (first, last) = (asked.first, asked.last);
        self.at(format!("/log/{first:#x}/{last:#x}/{}", plain(&asked.topic))).await
    }

    async fn call(&self, asked: Request<CallRequest>) -> Given<Data> {
        let asked = asked.get_ref();
        let (from, to, gas) = (plain(&asked.from), plain(&asked.to), asked.gas);
        let (value, data, at) = (value(asked), data(asked), or_last(&asked.at));
        self.at(format!("/call/{from}/{to}/{gas:#x}/{value}/{data}?at={at}")).await
    }

    async fn get_nonce(&self, asked: Request<AddressRequest>) -> Given<Count> {
        self.at(of_account("nonce", asked.get_ref())).await
    }

    async fn get_code(&self, asked: Request<AddressRequest>) -> Given<Data> {
        self.at(of_account("code", asked.get_ref())).await
    }

    async fn get_storage(&self, asked: Request<StorageRequest>) -> Given<Data> {
        let asked = asked.get_ref();
        let (address, slot, at) = (plain(&asked.address), plain(&asked.slot), or_last(&asked.at));
        self.at(format!("/storage/{address}/{slot}?at={at}")).await
    }

    async fn estimate_gas(&self, asked: Request<CallRequest>) -> Given<Count> {
        let asked = asked.get_ref();
        let (from, to) = (plain(&asked.from), plain(&asked.to));
        self.at(format!("/estimate/{from}/{to}/{}/{}", value(asked), data(asked))).await
    }

    async fn get_fee_history(&self, asked: Request<FeeHistoryRequest>) -> Given<FeeHistory> {
        self.at(format!("/feehistory/{}", asked.get_ref().count)).await
    }

    async fn get_chain_id(&self, _: Request<Empty>) -> Given<Count> {
        self.at("/chainid".to_owned()).await
    }

    async fn search_logs(&self, asked: Request<SearchRequest>) -> Given<Logs> {
        let asked = asked.get_ref();
        let (first, last) = (or_last(&asked.first), or_last(&asked.last));
        let mut path = format!("/logs?first={first}&last={last}");
        if !asked.address.is_empty() {
            path.push_str(&format!("&address={}", plain(&asked.address)));
        }
        for (place, topic) in asked.topics.iter().enumerate().filter(|(_, it)| !it.is_empty()) {
            path.push_str(&format!("&topic{place}={}", plain(topic)));
        }
        self.at(path).await
    }

    async fn send_transaction(&self, asked: Request<SendRequest>) -> Given<Sent> {
        let raw = asked.get_ref().raw.as_str();
        let is_raw = raw.strip_prefix("0x").is_some_and(|digits| {
            !digits.is_empty() && digits.len().is_multiple_of(2) && routes::is_hex(digits)
        });
        if !is_raw {
            let words = "raw must be 0x and the bytes of a signed transaction";
            return Err(Status::invalid_argument(words));
        }
        let body = self.gateway.send(raw, &mut Spent::default()).await;
        let body = body.map_err(|problem| status(&problem))?;
        let given = serde_json::from_slice::<Value>(&body).ok().as_ref().and_then(Sent::of);
        given.map(Response::new).ok_or_else(|| status(&Problem::Shape("eth_sendRawTransaction")))
    }

    async fn get_fate(&self, asked: Request<HashRequest>) -> Given<Fate> {
        self.at(format!("/tx/{}", plain(&asked.get_ref().hash))).await
    }
}

fn of_account(route: &str, asked: &AddressRequest) -> String {
    format!("/{route}/{}?at={}", plain(&asked.address), or_last(&asked.at))
}

/// Wei, in either notation.
fn value(asked: &CallRequest) -> String {
    match Quantity::from_decimal(&asked.value) {
        _ if asked.value.is_empty() => "0x0".to_owned(),
        Some(value) => value.to_hex(),
        None => plain(&asked.value).to_owned(),
    }
}

fn data(asked: &CallRequest) -> &str {
    if asked.data.is_empty() { "0x" } else { plain(&asked.data) }
}

fn or_last(field: &str) -> &str {
    if field.is_empty() { "last" } else { plain(field) }
}

/// A field that could be more than one part of a path is none that is good; nor is one that says nothing.
fn plain(field: &str) -> &str {
    let is_plain = !field.is_empty() && field.bytes().all(|byte| byte.is_ascii_alphanumeric());
    if is_plain { field } else { "!" }
}

/// A failure as gRPC says it.
fn status(problem: &Problem) -> Status {
    let (code, retry_after) = match problem {
        Problem::Path(NotFound::Route(_) | NotFound::Field { .. }) | Problem::NoBody(_) => {
            (Code::InvalidArgument, None)
        }
        Problem::Absent(_) => (Code::NotFound, None),
        Problem::Method => (Code::Unimplemented, None),
        Problem::Unsigned(_) | Problem::NoKey => (Code::Unauthenticated, None),
        Problem::Over(wait) => (Code::ResourceExhausted, Some(*wait)),
        Problem::Shape(_) | Problem::NodeError { .. } => (Code::Internal, None),
        Problem::Node(failure) => match failure {
            Failure::Limited { retry_after, .. } => (Code::ResourceExhausted, Some(*retry_after)),
            Failure::Unreachable(_) => (Code::Unavailable, None),
            Failure::Busy => (Code::Unavailable, Some(Duration::from_secs(1))),
            Failure::OtherChain(_) => (Code::FailedPrecondition, None),
            Failure::Garbage(_) => (Code::Internal, None),
            Failure::TooLarge => (Code::OutOfRange, None),
            Failure::Late => (Code::DeadlineExceeded, None),
            Failure::Refused { .. } => (Code::FailedPrecondition, None),
        },
    };
    let mut status = Status::new(code, crate::answers::detail(problem));
    if let Some(retry_after) = retry_after {
        let seconds = (retry_after.as_secs() + 1).to_string();
        if let Ok(seconds) = seconds.parse() {
            status.metadata_mut().insert("retry-after", seconds);
        }
    }
    status
}
