//! A token with `totalSupply`, `balanceOf`, `transfer` and the event `Transfer`, so that a chain for tests has logs to search
//! and something to call. Assembled by hand, because no compiler of contracts is part of this project: an account's balance
//! stands in the storage slot that its address is.

/// What is hashed to the topic of `Transfer(address,address,uint256)`.
pub(crate) const TRANSFER_TOPIC: &str =
    "0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef";

/// The first four bytes of calls.
pub(crate) const TOTAL_SUPPLY: &str = "0x18160ddd";
const TRANSFER: &str = "0xa9059cbb";

/// The transaction's data that makes the contract: all of 10^27 units are its maker's.
pub(crate) fn creation() -> String {
    format!("0x{}{}", MAKER.concat(), CONTRACT.concat())
}

/// The data of a call that moves `amount` units.
pub(crate) fn transfer(to: &str, amount: u64) -> String {
    let to = to.trim_start_matches("0x");
    format!("{TRANSFER}{to:0>64}{amount:064x}")
}

/// Runs once: the maker's balance, then the contract's code, which begins behind these 27 bytes, is given back.
const MAKER: &[&str] = &[
    "6b033b2e3c9fd0803ce8000000", // PUSH12 10^27
    "3355",                       // CALLER SSTORE
    "60a0601b600039",             // CODECOPY 160 bytes from 27 to 0
    "60a06000f3",                 // RETURN them
];

/// 160 bytes; where a jump goes stands in front.
const CONTRACT: &[&str] = &[
    "60003560e01c",                 // 00: the first four bytes of the call
    "8063a9059cbb14604b57",         // 06: transfer -> 4b
    "806370a0823114602857",         // 10: balanceOf -> 28
    "6318160ddd14603557",           // 1a: totalSupply -> 35
    "60006000fd",                   // 23: REVERT
    "5b6004355460005260206000f3",   // 28: RETURN the slot that the argument is
    "5b6b033b2e3c9fd0803ce8000000", // 35: 10^27
    "60005260206000f3",             // 43: RETURN it
    "5b602435",                     // 4b: amount
    "3354",                         // 4f: amount, balance of the caller
    "818110609a57",                 // 51: balance < amount -> 9a
    "8190033355",                   // 57: the caller's balance less amount
    "600435805482018155",           // 5c: the other's and amount
    "90600052",                     // 65: amount to memory
    "33",                           // 69: to, caller
    "7fddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef", // 6a: the topic
    "60206000a3",                   // 8b: LOG3
    "600160005260206000f3",         // 90: RETURN true
    "5b60006000fd",                 // 9a: REVERT
];

#[cfg(test)]
mod tests {
    use super::*;

    /// Claim: each piece begins where its comment says, which is where the jumps go, and lengths are those that the maker
    /// copies.
    #[test]
    fn places() {
        let source = include_str!("token.rs");
        let mut at = 0;
        for piece in CONTRACT {
            let comment = source.split(&format!("\"{piece}\",")).nth(1).unwrap();
            let place = comment.split("// ").nth(1).unwrap();
            assert!(place.starts_with(&format!("{at:02x}:")), "{piece} at {at:02x}");
            at += piece.len() / 2;
        }
        assert_eq!((at, MAKER.concat().len() / 2), (0xa0, 0x1b));
        for target in [0x28, 0x35, 0x4b, 0x9a] {
            assert_eq!(&CONTRACT.concat()[2 * target..2 * target + 2], "5b", "{target:02x}");
        }
    }

    /// Claim: a call has its selector and two words.
    #[test]
    fn calls() {
        let call = transfer("0x00000000000000000000000000000000000000ff", 16);
        assert_eq!(call.len(), 2 + 8 + 64 + 64);
        assert!(call.ends_with("10") && call.contains("ff0000"), "{call}");
    }
}
