//! What other programs make of the gateway: schemathesis of its OpenAPI document, a browser of its Swagger UI, grpcurl of
//! its gRPC service. What is not installed is skipped by name.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::programs::Program;

/// Cases that are generated for each operation and phase; ETH_GATEWAY_EXAMPLES sets another number.
const EXAMPLES: &str = "4";

/// A program in PATH, or where Go puts what it installs.
fn program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let home = std::env::var_os("HOME").map(|home| PathBuf::from(home).join("go/bin"));
    let cached =
        std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache/assay").join(name));
    let versions =
        cached.and_then(|folder| std::fs::read_dir(folder).ok()).into_iter().flatten().flatten();
    let mut folders: Vec<PathBuf> = std::env::split_paths(&path).chain(home).collect();
    for version in versions {
        folders.extend([version.path(), version.path().join("bin")]);
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
    let fails = |method: &str, data: &str| {
        let output = call(method, data).output().expect("it starts");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let absent = fails("ethgateway.v1.Gateway/GetBlock", r#"{"block":"7000"}"#);
    assert!(absent.contains("NotFound"), "{absent}");
    let wrong = fails("ethgateway.v1.Gateway/GetBlock", r#"{"block":"../x"}"#);
    assert!(wrong.contains("InvalidArgument"), "{wrong}");
    node.control("mock_fault", "limited");
    let limited = fails("ethgateway.v1.Gateway/GetGasPrice", "{}");
    assert!(limited.contains("ResourceExhausted"), "{limited}");
}
