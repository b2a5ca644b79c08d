//! A chain of a node that says what no node should.

use std::net::TcpListener;

use clock::Clock;
use ethereum_adapter::Rpc;
use model::Seed;
use serde_json::{Value, json};

use super::chain::serve;
use crate::targets::{Draw, Scenario, write};

/// A good block with one transaction.
fn block() -> Value {
    json!({
        "hash": format!("0x{:064x}", 7), "number": "0x3",
        "transactions": [{
            "hash": format!("0x{:064x}", 8), "from": format!("0x{:040x}", 9), "to": null, "input": "0x",
        }],
    })
}

/// The requests that are written from a chain all of whose blocks are this one.
fn written(block: Value) -> Result<String, String> {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let serving = std::thread::spawn(move || {
        serve(listener.accept().unwrap().0, |question| {
            let result = match question["method"].as_str().unwrap() {
                "eth_blockNumber" => json!("0x5"),
                _ => block.clone(),
            };
            json!({ "jsonrpc": "2.0", "id": question["id"], "result": result })
        });
    });
    let mut rpc = Rpc::new(address, Clock::start());
    let written = Draw::new(&mut rpc, Seed(1))
        .and_then(|mut chain| write(Scenario::Everything, 5, &mut chain));
    drop(rpc);
    serving.join().unwrap();
    written
}

/// Claim: a hash, an address or a number that names a variable or a file, or holds a line's end, is refused and written
/// nowhere.
#[test]
fn words_that_mean_more_in_a_target_file() {
    assert!(written(block()).unwrap().contains("/block/3\n"));
    for hostile in ["0x${PATH}", "@/etc/passwd", "0x00\nPOST /x"] {
        // As long as a hash is, too: length alone tells nothing.
        for hostile in [hostile.to_owned(), format!("{hostile:0<66}")] {
            for name in ["hash", "number"] {
                let mut block = block();
                block[name] = json!(hostile);
                let refused = written(block).unwrap_err();
                assert!(refused.contains(&format!("expected `{name}`")), "{hostile}: {refused}");
            }
            for name in ["hash", "from", "to", "input"] {
                let mut block = block();
                block["transactions"][0][name] = json!(hostile);
                let refused = written(block).unwrap_err();
                assert!(refused.contains(&format!("expected `{name}`")), "{hostile}: {refused}");
            }
        }
    }
}
