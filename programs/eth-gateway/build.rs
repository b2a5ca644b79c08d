//! Makes the messages and the service of gRPC from their description, where they are asked for.

fn main() {
    println!("cargo:rerun-if-changed=proto/gateway.proto");
    #[cfg(feature = "grpc")]
    grpc();
}

/// The compiler of descriptions is a library (protox), so that no `protoc` has to be there.
#[cfg(feature = "grpc")]
fn grpc() {
    use prost::Message as _;
    let described = protox::compile(["proto/gateway.proto"], ["proto"]);
    let described = described.unwrap_or_else(|error| panic!("proto/gateway.proto: {error}"));
    let folder = std::env::var_os("OUT_DIR").expect("cargo sets it");
    let path = std::path::Path::new(&folder).join("gateway.bin");
    std::fs::write(path, described.encode_to_vec()).expect("cargo makes the folder");
    let builder = tonic_prost_build::configure().build_client(false).build_transport(false);
    builder.compile_fds(described).expect("what was compiled can be written as code");
}
