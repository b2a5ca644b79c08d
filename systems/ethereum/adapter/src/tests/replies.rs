//! Replies to submissions, in the words of real nodes.

use model::{Class, Outcome};
use serde::de::IgnoredAny;

use crate::answer::{Reply, quickly_accepted, refusal};
use crate::hex;

/// Claim: a reply as nodes write it is read quickly; whatever differs from it is not, and nothing is taken for a reply that
/// is none.
#[test]
fn quick_replies() {
    let hash = hex::text(&[0xab; 32]);
    let plain = format!(r#"{{"jsonrpc":"2.0","id":77,"result":"{hash}"}}"#);
    assert_eq!(quickly_accepted(&plain), Some((77, [0xab; 32])));
    for other in [
        plain.replace("77", "077"),
        plain.replace("77", "-7"),
        plain.replace("77", "77777777777777777777"),
        plain.replace("\"id\"", " \"id\""),
        plain.replace("0xab", "0xag"),
        plain.replace("0xab", "0x"),
        plain.replace('}', "} "),
        plain.replace("result", "error"),
        plain[..plain.len() - 1].to_owned(),
    ] {
        assert_eq!(quickly_accepted(&other), None, "{other}");
    }
}

/// Claim: what nodes refuse is rejected for what it is, with the node's code, and an error that nobody knows is the server's,
/// in its own words.
#[test]
fn refusals() {
    let cases = [
        (-32000, "nonce too low: next nonce 5, tx nonce 4", Class::Conflict, "nonce too low"),
        (-32003, "nonce too low", Class::Conflict, "nonce too low"),
        (-32000, "already known", Class::Conflict, "already known"),
        (-32003, "transaction already imported", Class::Conflict, "already known"),
        (
            -32000,
            "replacement transaction underpriced: tx gas tip 1, required 2",
            Class::Conflict,
            "replacement underpriced",
        ),
        (
            -32000,
            "transaction underpriced: gas tip cap 1, minimum needed 2",
            Class::Overloaded,
            "underpriced: the pool is full of better",
        ),
        (-32000, "txpool is full", Class::Overloaded, "the pool is full"),
        (
            -32000,
            "insufficient funds for gas * price + value: balance 0, tx cost 21",
            Class::BadRequest,
            "insufficient funds",
        ),
        (
            -32000,
            "max fee per gas less than block base fee: address 0x1, maxFeePerGas: 1, baseFee: 2",
            Class::BadRequest,
            "max fee below the base fee",
        ),
        (-32005, "daily request count exceeded", Class::Limited, "rate limited"),
        (429, "Too Many Requests", Class::Limited, "rate limited"),
        (-32603, "boom", Class::Server, "boom (-32603)"),
    ];
    for (code, message, class, text) in cases {
        let reply = serde_json::json!({"id": 1, "error": {"code": code, "message": message}});
        let reply = reply.to_string();
        let reply: Reply<'_, IgnoredAny> = serde_json::from_str(&reply).unwrap();
        let (outcome, number, words) = refusal(&reply.error.unwrap());
        assert_eq!((outcome, words.as_str()), (Outcome::Rejected(class), text), "{message}");
        assert_eq!(i64::from(number), i64::abs(code));
    }
}
