//! What other programs make of the gateway: schemathesis of its OpenAPI document, a browser of its Swagger UI, grpcurl of
//! its gRPC service. What is not installed is skipped by name.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::programs::Program;

/// Cases that are generated for each operation and phase; ETH_GATEWAY_EXAMPLES sets another number.
const EXAMPLES: &str = "4";

/// A program in PATH, or where Go puts what it installs.
pub fn program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let home = std::env::var_os("HOME").map(|home| PathBuf::from(home).join("go/bin"));
    let cached =
        std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache/assay").join(name));
    let versions =
        cached.and_then(|folder| std::fs::read_dir(folder).ok()).into_iter().flatten().flatten();
    let mut folders: Vec<PathBuf> = std::env::split_paths(&path).chain(home).collect();
    for version in versions {
        folders.extend([version.path(), version.path().join("bin")]);
        // A package that is one program: npm puts it into a folder of its own.
        let scoped = std::fs::read_dir(version.path().join("node_modules/@foundry-rs"));
        folders.extend(scoped.into_iter().flatten().flatten().map(|it| it.path().join("bin")));
    }
    folders.into_iter().map(|folder| folder.join(name)).find(|file| file.is_file())
}

/// Runs a program that must end well; what it says is in the failure.
fn succeeds(command: &mut Command) -> String {
    let output = command.output().expect("it starts");
    let said = format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(output.status.success(), "{said}");
    said
}

/// Claim: over cases that schemathesis makes of the document, no answer is a failure of the server, has a status or a type
/// that is not documented, or a body that is not as documented.
#[test]
fn schemathesis() {
    let python = std::env::var_os("ASSAY_TEST_PYTHON").map(PathBuf::from);
    let tool = python.as_deref().and_then(Path::parent).map(|folder| folder.join("schemathesis"));
    let Some(tool) = tool.filter(|tool| tool.is_file()) else {
        eprintln!("SKIPPED schemathesis: not installed; cargo xtask test installs it");
        return;
    };
    let node = Program::mock(&["--blocks", "300"]);
    let gateway = Program::gateway(node.address, &["--log-one-in", "0"]);
    let document = format!("http://{}/openapi.json", gateway.address);
    let examples = std::env::var("ETH_GATEWAY_EXAMPLES").unwrap_or_else(|_| EXAMPLES.to_owned());
    let checks = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance";
    let folder = tempfile::tempdir().expect("a folder");
    let mut command = Command::new(tool);
    command.args([
        "run",
        &document,
        "--checks",
        checks,
        "--max-examples",
        &examples,
        "--seed",
        "1",
    ]);
    command.args(["--phases", "examples,coverage,fuzzing", "--no-color"]).current_dir(&folder);
    let said = succeeds(&mut command);
    assert!(said.contains("generated"), "{said}");
    println!("{said}");
}

/// Claim: web3.py, which knows nothing of the gateway, sends a transfer through it, by JSON-RPC and by the REST API, and follows
/// both to finality; the fees of today, logs, code and a subscription to heads are what it expects.
#[test]
fn web3() {
    let python = std::env::var_os("ASSAY_TEST_PYTHON").map(PathBuf::from);
    let has_web3 = |python: &PathBuf| {
        let done = Command::new(python).args(["-c", "import web3, websockets"]).output();
        done.is_ok_and(|done| done.status.success())
    };
    let (Some(python), Some(anvil)) = (python.filter(has_web3), program("anvil")) else {
        eprintln!(
            "SKIPPED web3.py: it needs web3 (cargo xtask test installs it) and anvil (assay doctor --install anvil)"
        );
        return;
    };
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut command = Command::new(python);
    command.arg(here.join("tests/survival/follow.py")).arg(anvil);
    let said = succeeds(command.arg(env!("CARGO_BIN_EXE_eth-gateway")));
    assert!(said.lines().any(|line| line == "followed"), "{said}");
    println!("{said}");
}

/// Claim: Swagger UI opens in a browser, and a request that is executed there is answered.
#[test]
fn swagger_ui() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let web = here.join("../../web");
    let browser = ["chromium", "chromium-browser", "google-chrome"].into_iter().find_map(program);
    if browser.is_none()
        || program("node").is_none()
        || !web.join("node_modules/playwright-core").is_dir()
    {
        eprintln!(
            "SKIPPED Swagger UI in a browser: it needs node, chromium and web/'s packages (cargo xtask web)"
        );
        return;
    }
    let node = Program::mock(&["--blocks", "300"]);
    let gateway = Program::gateway(node.address, &[]);
    let mut command = Command::new("node");
    command.arg(here.join("tests/survival/swagger.mjs")).arg(format!("http://{}", gateway.address));
    let said = succeeds(&mut command);
    assert!(said.contains("\"lastBlockHeight\": 299"), "{said}");
}

/// Claim: a client that knows nothing of the service learns it by reflection and gets a block; what is absent, wrong or
/// limited has gRPC's own word for it.
#[cfg(feature = "grpc")]
#[test]
fn grpcurl() {
    let Some(grpcurl) = program("grpcurl") else {
        eprintln!("SKIPPED grpcurl: not installed (assay doctor --install grpcurl)");
        return;
    };
    let node = Program::mock(&["--blocks", "300"]);
    let gateway = Program::gateway(node.address, &["--grpc", "127.0.0.1:0", "--latest", "false"]);
    let address = gateway.grpc.expect("it says where").to_string();
    let call = |method: &str, data: &str| {
        let mut command = Command::new(&grpcurl);
        command.args(["-plaintext", "-max-time", "20", "-d", data, &address, method]);
        command
    };
    let services = succeeds(Command::new(&grpcurl).args(["-plaintext", &address, "list"]));
    assert!(services.contains("ethgateway.v1.Gateway"), "{services}");
    let block =
        succeeds(&mut call("ethgateway.v1.Gateway/GetBlock", r#"{"block":"7","full":true}"#));
    assert!(
        block.contains("\"number\": \"7\"") && block.contains("\"gasPrice\": \"1000000000\""),
        "{block}"
    );
    let balance = format!(r#"{{"address":"0x{:040x}"}}"#, 1);
    let balance = succeeds(&mut call("ethgateway.v1.Gateway/GetBalance", &balance));
    assert!(balance.contains("\"wei\": \"100000000000000000000000\""), "{balance}");
    // Every method that reflection lists, with what it takes.
    let address_of = format!(r#""address":"0x{:040x}""#, 1);
    let topic = "0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef";
    let hash = block.split("\"hash\": \"").find_map(|it| it.get(..66)).expect("a block's hash");
    let first = block.split("\"transactionHashes\": [").nth(1).and_then(|it| it.split('"').nth(1));
    let transaction = format!(r#"{{"hash":"{}"}}"#, first.expect("a transaction"));
    let called = format!(
        r#"{{"from":"0x{:040x}","to":"0x{:040x}","gas":100000,"value":"20000000000000000000"}}"#,
        1, 2
    );
    let asked: [(&str, String); 17] = [
        ("GetTransaction", transaction.clone()),
        ("GetReceipt", transaction.clone()),
        ("GetLastHeight", "{}".to_owned()),
        ("GetBlock", format!(r#"{{"block":"{hash}"}}"#)),
        ("GetTransactionInBlock", r#"{"height":7,"index":0}"#.to_owned()),
        ("GetGasPrice", "{}".to_owned()),
        ("GetBalance", format!(r#"{{{address_of},"at":"finalized"}}"#)),
        ("GetLogs", format!(r#"{{"first":1,"last":2,"topic":"{topic}"}}"#)),
        ("Call", called.clone()),
        ("GetNonce", format!("{{{address_of}}}")),
        ("GetCode", format!("{{{address_of}}}")),
        ("GetStorage", format!(r#"{{{address_of},"slot":"0x0"}}"#)),
        ("EstimateGas", called),
        ("GetFeeHistory", r#"{"count":1}"#.to_owned()),
        ("GetChainId", "{}".to_owned()),
        ("SearchLogs", format!(r#"{{"first":"1","last":"2","topics":["{topic}"]}}"#)),
        ("GetFate", transaction),
    ];
    for (method, data) in &asked {
        succeeds(&mut call(&format!("ethgateway.v1.Gateway/{method}"), data));
    }
    let listed = succeeds(Command::new(&grpcurl).args([
        "-plaintext",
        &address,
        "list",
        "ethgateway.v1.Gateway",
    ]));
    // The played node takes no transactions.
    assert_eq!(listed.lines().count(), asked.len() + 1, "{listed}");
    let health = succeeds(&mut call("grpc.health.v1.Health/Check", "{}"));
    assert!(health.contains("SERVING") && !health.contains("NOT_SERVING"), "{health}");
    let guarded = Program::gateway(node.address, &["--grpc", "127.0.0.1:0", "--auth", "true"]);
    let guarded_at = guarded.grpc.expect("it says where").to_string();
    let refused = Command::new(&grpcurl)
        .args(["-plaintext", "-d", "{}", &guarded_at, "ethgateway.v1.Gateway/GetGasPrice"])
        .output()
        .expect("it starts");
    let refused = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(refused.contains("Unauthenticated"), "{refused}");
    let fails = |method: &str, data: &str| {
        let output = call(method, data).output().expect("it starts");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let sent = fails("ethgateway.v1.Gateway/SendTransaction", r#"{"raw":"0x01"}"#);
    assert!(sent.contains("FailedPrecondition") || sent.contains("Internal"), "{sent}");
    let absent = fails("ethgateway.v1.Gateway/GetBlock", r#"{"block":"7000"}"#);
    assert!(absent.contains("NotFound"), "{absent}");
    let wrong = fails("ethgateway.v1.Gateway/GetBlock", r#"{"block":"../x"}"#);
    assert!(wrong.contains("InvalidArgument"), "{wrong}");
    node.control("mock_fault", "limited");
    let limited = fails("ethgateway.v1.Gateway/GetGasPrice", "{}");
    assert!(limited.contains("ResourceExhausted"), "{limited}");
}
