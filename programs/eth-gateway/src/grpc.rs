//! The same operations over gRPC, and reflection, by which a client learns them: HTTP/2 on an address of its own.
//!
//! A call becomes the path of the REST API that asks the same, so that both check their fields with the same code.

mod messages;

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use hyper::Request as HttpRequest;
use hyper::Response as HttpResponse;
use hyper::body::Incoming;
use prost::Message;
use serde_json::Value;
use tonic::body::Body;
use tonic::codegen::Service;
use tonic::server::Grpc;
use tonic::{Code, Request, Response, Status};
use tonic_prost::ProstCodec;

use crate::answers::Problem;
use crate::gateway::{Form, Gateway, Spent};
use crate::quantity::Quantity;
use crate::routes::{self, NotFound};
use crate::rpc::Failure;
use messages::{
    AddressRequest, Block, BlockRequest, CallRequest, Data, Empty, HashRequest, Height, Logs,
    LogsRequest, OfJson, PlaceRequest, Receipt, Transaction, Wei,
};

/// The compiled description: `protoc --include_imports --descriptor_set_out=gateway.bin gateway.proto`.
const DESCRIPTION: &[u8] = include_bytes!("../proto/gateway.bin");
const SERVICE: &str = "/ethgateway.v1.Gateway/";

/// What answers calls of reflection.
type Reflecting = Box<
    dyn Fn(HttpRequest<Body>) -> Pin<Box<dyn Future<Output = HttpResponse<Body>> + Send>>
        + Send
        + Sync,
>;

/// See the module.
pub struct Calls {
    gateway: Arc<Gateway>,
    reflection: Reflecting,
    reflection_alpha: Reflecting,
}

impl Calls {
    /// # Errors
    /// When the description is none, which a test looks at.
    pub fn new(gateway: Arc<Gateway>) -> Result<Self, String> {
        let failed = |error| format!("the description of the gRPC service: {error}");
        let build = || {
            tonic_reflection::server::Builder::configure()
                .register_encoded_file_descriptor_set(DESCRIPTION)
        };
        let current = build().build_v1().map_err(failed)?;
        let alpha = build().build_v1alpha().map_err(failed)?;
        Ok(Self {
            gateway,
            reflection: Box::new(move |request| reflect(current.clone(), request)),
            reflection_alpha: Box::new(move |request| reflect(alpha.clone(), request)),
        })
    }

    /// Answers one call.
    pub async fn respond(
        &self,
        request: HttpRequest<Incoming>,
    ) -> Result<HttpResponse<Body>, Infallible> {
        let path = request.uri().path().to_owned();
        let request = request.map(Body::new);
        if path.starts_with("/grpc.reflection.v1.") {
            return Ok((self.reflection)(request).await);
        }
        if path.starts_with("/grpc.reflection.v1alpha.") {
            return Ok((self.reflection_alpha)(request).await);
        }
        let method = path.strip_prefix(SERVICE).unwrap_or_default();
        Ok(match method {
            "GetTransaction" => self.unary::<HashRequest, Transaction>(request, transaction).await,
            "GetReceipt" => self.unary::<HashRequest, Receipt>(request, receipt).await,
            "GetLastHeight" => {
                self.unary::<Empty, Height>(request, |_| "/block/last/height".to_owned()).await
            }
            "GetBlock" => self.unary::<BlockRequest, Block>(request, block).await,
            "GetTransactionInBlock" => {
                self.unary::<PlaceRequest, Transaction>(request, place).await
            }
            "GetGasPrice" => self.unary::<Empty, Wei>(request, |_| "/gasprice".to_owned()).await,
            "GetBalance" => self.unary::<AddressRequest, Wei>(request, balance).await,
            "GetLogs" => self.unary::<LogsRequest, Logs>(request, logs).await,
            "Call" => self.unary::<CallRequest, Data>(request, call).await,
            _ => {
                Status::unimplemented("there is no such method; reflection lists them").into_http()
            }
        })
    }

    async fn unary<Asked, Given>(
        &self,
        request: HttpRequest<Body>,
        path: fn(Asked) -> String,
    ) -> HttpResponse<Body>
    where
        Asked: Message + Default + 'static,
        Given: Message + Default + OfJson + 'static,
    {
        let mut grpc = Grpc::new(ProstCodec::<Given, Asked>::default());
        let gateway = Arc::clone(&self.gateway);
        grpc.unary(Unary { gateway, path, given: std::marker::PhantomData }, request).await
    }
}

fn reflect<S>(
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

/// One call as the library wants it: a service of one method.
struct Unary<Asked, Given> {
    gateway: Arc<Gateway>,
    path: fn(Asked) -> String,
    given: std::marker::PhantomData<fn() -> Given>,
}

impl<Asked, Given> Service<Request<Asked>> for Unary<Asked, Given>
where
    Asked: Send + 'static,
    Given: OfJson + Send + 'static,
{
    type Response = Response<Given>;
    type Error = Status;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Given>, Status>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Status>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Asked>) -> Self::Future {
        let gateway = Arc::clone(&self.gateway);
        let path = (self.path)(request.into_inner());
        Box::pin(async move { answer::<Given>(&gateway, &path).await })
    }
}

async fn answer<Given: OfJson>(
    gateway: &Arc<Gateway>,
    path: &str,
) -> Result<Response<Given>, Status> {
    let began = gateway.clock.now();
    let mut spent = Spent::default();
    let operation = routes::find(path).map_err(|not_found| status(&Problem::Path(not_found)))?;
    let done = gateway.perform(&operation, Form::Version1, &mut spent).await;
    let took = gateway.clock.now().saturating_since(began);
    let own = took.saturating_sub(spent.node.unwrap_or_default());
    let counted = match &done {
        Ok(_) => 200,
        Err(problem) => crate::answers::problem(problem).status().as_u16(),
    };
    gateway.metrics.answered(operation.route(), counted, own, spent.node);
    let (body, _) = done.map_err(|problem| status(&problem))?;
    let given = serde_json::from_slice::<Value>(&body).ok().as_ref().and_then(Given::of);
    given.map(Response::new).ok_or_else(|| status(&Problem::Shape("this method")))
}

fn transaction(asked: HashRequest) -> String {
    format!("/transaction/{}", plain(&asked.hash))
}

fn receipt(asked: HashRequest) -> String {
    format!("/transaction/{}/receipt", plain(&asked.hash))
}

fn block(asked: BlockRequest) -> String {
    let id = if asked.block.is_empty() { "last" } else { plain(&asked.block) };
    format!("/block/{id}{}", if asked.full { "/full" } else { "" })
}

fn place(asked: PlaceRequest) -> String {
    format!("/block/{}/transaction/{}", asked.height, asked.index)
}

fn balance(asked: AddressRequest) -> String {
    format!("/balance/{}", plain(&asked.address))
}

fn logs(asked: LogsRequest) -> String {
    format!("/log/{:#x}/{:#x}/{}", asked.first, asked.last, plain(&asked.topic))
}

fn call(asked: CallRequest) -> String {
    let decimal = asked.value.parse().ok().map(|value: u64| Quantity::from(value).to_hex());
    let value = match (asked.value.is_empty(), decimal) {
        (true, _) => "0x0".to_owned(),
        (false, Some(hex)) => hex,
        (false, None) => plain(&asked.value).to_owned(),
    };
    let data = if asked.data.is_empty() { "0x" } else { plain(&asked.data) };
    format!("/call/{}/{}/{:#x}/{value}/{data}", plain(&asked.from), plain(&asked.to), asked.gas)
}

/// A field that could be more than one part of a path is none that is good; nor is one that says nothing.
fn plain(field: &str) -> &str {
    let is_plain = !field.is_empty() && field.bytes().all(|byte| byte.is_ascii_alphanumeric());
    if is_plain { field } else { "?" }
}

/// What went wrong, as gRPC says it.
fn status(problem: &Problem) -> Status {
    let (code, retry_after) = match problem {
        Problem::Path(NotFound::Route(_) | NotFound::Field { .. }) => (Code::InvalidArgument, None),
        Problem::Absent(_) => (Code::NotFound, None),
        Problem::Method => (Code::Unimplemented, None),
        Problem::Unsigned(_) => (Code::Unauthenticated, None),
        Problem::Shape(_) | Problem::NodeError { .. } => (Code::Internal, None),
        Problem::Node(failure) => match failure {
            Failure::Limited { retry_after, .. } => (Code::ResourceExhausted, Some(*retry_after)),
            Failure::Unreachable(_) => (Code::Unavailable, None),
            Failure::Busy => (Code::Unavailable, Some(Duration::from_secs(1))),
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
