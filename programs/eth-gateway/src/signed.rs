//! Who asks: a client signs a message with the key of its account (EIP-4361) and gets a token for a while (a JWT).
//!
//! A message is recognised by its nonce, half of which is a code over the whole of it that only this gateway can make: so
//! nothing is kept of messages that are given out, and a flood of them takes no other away. All that is kept, until it is
//! too old, is which of them a signature was accepted for: a message serves once.
//!
//! The checks are made here and not by a library for tokens, because such a library reads the clock itself.

use std::collections::{HashSet, VecDeque};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use clock::WallTime;
use k256::ecdsa::{RecoveryId, Signature, VerifyingKey};
use ring::hmac;
use ring::rand::{SecureRandom as _, SystemRandom};
use serde_json::{Value, json};
use sha3::{Digest as _, Keccak256};

use crate::routes::checksummed;

/// Messages that served and are not too old yet; beyond that the oldest is forgotten.
const SERVED_MAX: usize = 100_000;
/// How long a challenge may be answered.
const CHALLENGE_AGE: Duration = Duration::from_secs(300);
/// Hexadecimal digits of a nonce that are drawn; as many follow that are the code.
const NONCE_DIGITS: usize = 32;
/// How far the clocks of those who make tokens may be from this one.
const LEEWAY_S: i64 = 5;
/// Larger requests for a token are not read.
pub const TOKEN_REQUEST_BYTES_MAX: usize = 8 << 10;

/// Why a request is not let in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unsigned {
    /// There is no token.
    NoToken,
    /// It is none of ours, or too old.
    BadToken,
    /// The body is no message with a signature.
    NoMessage,
    /// The message is none that was given out, or too old, or was used.
    UnknownMessage,
    /// The signature is not that of the message's account.
    BadSignature,
}

impl Unsigned {
    /// In words, with what to do.
    pub fn words(self) -> &'static str {
        match self {
            Self::NoToken => {
                "this needs `Authorization: Bearer TOKEN`; /auth/challenge/{address} says how to get one"
            }
            Self::BadToken => "the token is none of this gateway's, or too old; get another",
            Self::NoMessage => {
                "the body must be {\"message\": the challenge's, \"signature\": 0x and 130 hexadecimal digits}"
            }
            Self::UnknownMessage => {
                "the message is none that was given out in the last five minutes, or was used before"
            }
            Self::BadSignature => "the signature is not by the account in the message",
        }
    }
}

/// See the module.
pub struct Signed {
    tokens: hmac::Key,
    challenges: hmac::Key,
    random: SystemRandom,
    domain: String,
    scheme: &'static str,
    age: Duration,
    served: Mutex<Served>,
}

#[derive(Default)]
struct Served {
    nonces: HashSet<String>,
    /// The oldest first, with when each is too old.
    in_order: VecDeque<(WallTime, String)>,
}

impl Served {
    /// Whether this nonce serves now, for the first time.
    fn take(&mut self, nonce: &str, until: WallTime, now: WallTime) -> bool {
        while self.in_order.len() >= SERVED_MAX
            || self.in_order.front().is_some_and(|(until, _)| *until <= now)
        {
            let Some((_, nonce)) = self.in_order.pop_front() else { break };
            self.nonces.remove(&nonce);
        }
        let is_first = self.nonces.insert(nonce.to_owned());
        if is_first {
            self.in_order.push_back((until, nonce.to_owned()));
        }
        is_first
    }
}

impl Signed {
    /// With an empty secret, one that is drawn and that ends with the process.
    pub fn new(secret: &str, domain: &str, is_tls: bool, age: Duration) -> Result<Self, String> {
        let random = SystemRandom::new();
        let mut drawn = [0; 32];
        random.fill(&mut drawn).map_err(|_| "this host gives no random numbers".to_owned())?;
        let secret = if secret.is_empty() { &drawn[..] } else { secret.as_bytes() };
        let tokens = hmac::Key::new(hmac::HMAC_SHA256, secret);
        // A key of its own, so that no token is ever a nonce's code.
        let of_challenges = hmac::sign(&tokens, b"challenges");
        Ok(Self {
            tokens,
            challenges: hmac::Key::new(hmac::HMAC_SHA256, of_challenges.as_ref()),
            random,
            domain: domain.to_owned(),
            scheme: if is_tls { "https" } else { "http" },
            age,
            served: Mutex::default(),
        })
    }

    /// A message that the account is to sign; `address` is `0x` and 40 digits.
    pub fn challenge(&self, address: &str, chain_id: &str, now: WallTime) -> Option<String> {
        bytes(address).filter(|bytes| bytes.len() == 20)?;
        let mut drawn = [0; NONCE_DIGITS / 2];
        self.random.fill(&mut drawn).ok()?;
        let drawn = digits(&drawn);
        let until = later(now, CHALLENGE_AGE);
        let (domain, scheme, shown) =
            (&self.domain, self.scheme, checksummed(&address.to_ascii_lowercase()));
        let message = |nonce: &str| {
            format!(
                "{domain} wants you to sign in with your Ethereum account:\n{shown}\n\nRead the chain through this gateway.\n\n\
                 URI: {scheme}://{domain}/\nVersion: 1\nChain ID: {chain_id}\nNonce: {nonce}\nIssued At: {}\nExpiration Time: {}",
                now.rfc3339(),
                until.rfc3339()
            )
        };
        let code = self.code(&message(&drawn));
        Some(message(&format!("{drawn}{code}")))
    }

    /// The end that the nonce of a message must have; the message comes with the drawn half alone.
    fn code(&self, message: &str) -> String {
        let tag = hmac::sign(&self.challenges, message.as_bytes());
        digits(&tag.as_ref()[..NONCE_DIGITS / 2])
    }

    /// A token for an account that signed a challenge.
    pub fn token(&self, body: &[u8], now: WallTime) -> Result<String, Unsigned> {
        let body: Value = serde_json::from_slice(body).map_err(|_| Unsigned::NoMessage)?;
        let text = |name: &str| body[name].as_str().ok_or(Unsigned::NoMessage);
        let (message, signature) = (text("message")?, text("signature")?);
        let signature = bytes(signature).filter(|it| it.len() == 65).ok_or(Unsigned::NoMessage)?;
        let (nonce, address, until) = self.ours(message).ok_or(Unsigned::UnknownMessage)?;
        if now >= until {
            return Err(Unsigned::UnknownMessage);
        }
        if signer(message, &signature) != Some(address) {
            return Err(Unsigned::BadSignature);
        }
        let is_first = {
            let mut served = self.served.lock().unwrap_or_else(PoisonError::into_inner);
            served.take(nonce, until, now)
        };
        if !is_first {
            return Err(Unsigned::UnknownMessage);
        }
        Ok(self.signed_token(&checksummed(&format!("0x{}", digits(&address))), now))
    }

    /// The nonce, the account and the end of a message that was given out here, unchanged.
    fn ours<'a>(&self, message: &'a str) -> Option<(&'a str, [u8; 20], WallTime)> {
        let after = |name: &str| message.lines().find_map(|line| line.strip_prefix(name));
        let nonce = after("Nonce: ").filter(|nonce| nonce.len() == 2 * NONCE_DIGITS)?;
        let (drawn, code) = nonce.split_at_checked(NONCE_DIGITS)?;
        let without = message.replacen(nonce, drawn, 1);
        let tag = bytes(&format!("0x{code}"))?;
        let wanted = bytes(&format!("0x{}", self.code(&without)))?;
        // Compared as secrets are: in the same time whatever differs.
        let (tag, wanted) = (hmac::sign(&self.tokens, &tag), hmac::sign(&self.tokens, &wanted));
        if tag.as_ref() != wanted.as_ref() {
            return None;
        }
        let address = bytes(message.lines().nth(1)?)?.try_into().ok()?;
        Some((nonce, address, WallTime::parse_rfc3339(after("Expiration Time: ")?)?))
    }

    fn signed_token(&self, address: &str, now: WallTime) -> String {
        let head = json!({ "alg": "HS256", "typ": "JWT" }).to_string();
        let claims = json!({
            "iss": self.domain, "aud": self.domain, "sub": address,
            "iat": seconds(now), "exp": seconds(later(now, self.age)),
        });
        let text = format!(
            "{}.{}",
            URL_SAFE_NO_PAD.encode(head),
            URL_SAFE_NO_PAD.encode(claims.to_string())
        );
        let tag = hmac::sign(&self.tokens, text.as_bytes());
        format!("{text}.{}", URL_SAFE_NO_PAD.encode(tag.as_ref()))
    }

    /// Lets in a request that has a token; gives the account that it is for.
    pub fn check(&self, authorization: Option<&str>, now: WallTime) -> Result<String, Unsigned> {
        let token = authorization.and_then(bearer).ok_or(Unsigned::NoToken)?;
        let (text, tag) = token.rsplit_once('.').ok_or(Unsigned::BadToken)?;
        let tag = URL_SAFE_NO_PAD.decode(tag).map_err(|_| Unsigned::BadToken)?;
        // Only this key and this algorithm count: a token whose head says another is refused.
        hmac::verify(&self.tokens, text.as_bytes(), &tag).map_err(|_| Unsigned::BadToken)?;
        let (head, claims) = text.split_once('.').ok_or(Unsigned::BadToken)?;
        let part = |part: &str| -> Option<Value> {
            serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).ok()?).ok()
        };
        if part(head).is_none_or(|head| head["alg"] != "HS256") {
            return Err(Unsigned::BadToken);
        }
        let claims = part(claims).ok_or(Unsigned::BadToken)?;
        if !self.holds(&claims, seconds(now)) {
            return Err(Unsigned::BadToken);
        }
        Ok(claims["sub"].as_str().unwrap_or_default().to_ascii_lowercase())
    }

    /// Whether a token is for this gateway, and now (RFC 7519). Another service may have the same secret.
    fn holds(&self, claims: &Value, now: i64) -> bool {
        let is_us = |name: &Value| name.as_str() == Some(&self.domain);
        let is_for_us = match &claims["aud"] {
            Value::Array(all) => all.iter().any(is_us),
            Value::Null => true,
            one => is_us(one),
        };
        // Seconds may have a fraction.
        let at = |name: &str| claims[name].as_f64();
        #[expect(clippy::cast_precision_loss, reason = "seconds of a calendar are below 2^53")]
        let now_s = now as f64;
        #[expect(clippy::cast_precision_loss, reason = "a few seconds")]
        let leeway = LEEWAY_S as f64;
        let is_begun = ["nbf", "iat"].into_iter().all(|name| {
            claims.get(name).is_none_or(|_| at(name).is_some_and(|from| from <= now_s + leeway))
        });
        is_for_us && is_us(&claims["iss"]) && is_begun && at("exp").is_some_and(|end| now_s < end)
    }
}

/// The token of `Authorization: Bearer TOKEN`; the scheme is written in any letters (RFC 9110).
fn bearer(authorization: &str) -> Option<&str> {
    let (scheme, token) = authorization.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim_start())
}

fn digits(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn seconds(at: WallTime) -> i64 {
    at.unix_ns().div_euclid(1_000_000_000)
}

fn later(at: WallTime, by: Duration) -> WallTime {
    let by = i64::try_from(by.as_nanos()).unwrap_or(i64::MAX);
    WallTime::from_unix_ns(at.unix_ns().saturating_add(by))
}

/// Whose signature this is (EIP-191, `personal_sign`).
fn signer(message: &str, signature: &[u8]) -> Option<[u8; 20]> {
    let mut hash = Keccak256::new();
    hash.update(format!("\u{19}Ethereum Signed Message:\n{}", message.len()));
    hash.update(message);
    let hash = hash.finalize();
    let (parts, v) = signature.split_at_checked(64)?;
    let v = *v.first()?;
    let recovery = RecoveryId::from_byte(if v >= 27 { v - 27 } else { v })?;
    let signature = Signature::from_slice(parts).ok()?;
    let key = VerifyingKey::recover_from_prehash(&hash[..], &signature, recovery).ok()?;
    address_of(&key)
}

/// An account's address: the end of the hash of its public key.
fn address_of(key: &VerifyingKey) -> Option<[u8; 20]> {
    let point = key.to_sec1_point(false);
    let hash = Keccak256::digest(point.as_bytes().get(1..)?);
    hash[12..].try_into().ok()
}

fn bytes(text: &str) -> Option<Vec<u8>> {
    let digits = text.strip_prefix("0x").filter(|digits| digits.len().is_multiple_of(2))?;
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    digits.as_bytes().chunks(2).map(|pair| Some(digit(pair[0])? << 4 | digit(pair[1])?)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use k256::ecdsa::SigningKey;

    fn hex(bytes: &[u8]) -> String {
        format!("0x{}", bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>())
    }

    fn sign(key: &SigningKey, message: &str) -> String {
        let text = format!("\u{19}Ethereum Signed Message:\n{}{message}", message.len());
        let hash = Keccak256::digest(text.as_bytes());
        let (signature, recovery) = key.sign_prehash_recoverable(&hash[..]);
        let mut all = signature.to_bytes().to_vec();
        all.push(27 + recovery.to_byte());
        hex(&all)
    }

    /// Claim: the address of a key that everybody knows, and its checksum, are what other programs say.
    #[test]
    fn addresses() {
        // The first account of development nodes.
        let secret =
            bytes("0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80").unwrap();
        let key = SigningKey::from_slice(&secret).unwrap();
        let address = address_of(key.verifying_key()).unwrap();
        assert_eq!(checksummed(&hex(&address)), "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266");
    }

    /// Claim: a token whose head names another algorithm is refused, even where its tag is right.
    #[test]
    fn another_algorithm() {
        let signed = Signed::new("secret", "h", false, Duration::from_secs(60)).unwrap();
        let now = WallTime::from_unix_ns(0);
        let token = signed.signed_token("0x", now);
        let claims = token.split('.').nth(1).unwrap();
        for (algorithm, is_ours) in [("HS256", true), ("RS256", false), ("none", false)] {
            let head = URL_SAFE_NO_PAD.encode(json!({ "alg": algorithm }).to_string());
            let text = format!("{head}.{claims}");
            let tag = hmac::sign(&signed.tokens, text.as_bytes());
            let token = format!("Bearer {text}.{}", URL_SAFE_NO_PAD.encode(tag.as_ref()));
            assert_eq!(signed.check(Some(&token), now).is_ok(), is_ours, "{algorithm}");
        }
    }

    /// Claim: who signs the challenge gets a token that is let in until it is too old; a challenge serves once, and only
    /// for its own account.
    #[test]
    fn tokens() {
        let signed = Signed::new("", "gateway.example", false, Duration::from_secs(60)).unwrap();
        let key = SigningKey::from_slice(&[7; 32]).unwrap();
        let address = hex(&address_of(key.verifying_key()).unwrap());
        let now = WallTime::from_unix_ns(1_700_000_000_000_000_000);
        let ask = |message: &str, signature: String| {
            signed.token(
                json!({ "message": message, "signature": signature }).to_string().as_bytes(),
                now,
            )
        };
        let message = signed.challenge(&address, "1", now).unwrap();
        assert!(message.starts_with("gateway.example wants you to sign in"), "{message}");
        let token = ask(&message, sign(&key, &message)).unwrap();
        assert_eq!(ask(&message, sign(&key, &message)), Err(Unsigned::UnknownMessage));
        let header = format!("Bearer {token}");
        assert_eq!(signed.check(Some(&header), now), Ok(address.clone()));
        assert_eq!(signed.check(Some(&format!("bEARER  {token}")), now), Ok(address.clone()));
        assert_eq!(
            signed.check(Some(&header), later(now, Duration::from_secs(60))),
            Err(Unsigned::BadToken)
        );
        assert_eq!(signed.check(None, now), Err(Unsigned::NoToken));
        let forged = format!("{}x", &header[..header.len() - 1]);
        assert_eq!(signed.check(Some(&forged), now), Err(Unsigned::BadToken));
        let other = SigningKey::from_slice(&[8; 32]).unwrap();
        let message = signed.challenge(&address, "1", now).unwrap();
        assert_eq!(ask(&message, sign(&other, &message)), Err(Unsigned::BadSignature));
        let message = signed.challenge(&address, "1", now).unwrap();
        let changed = message.replace("Chain ID: 1", "Chain ID: 2");
        assert_eq!(ask(&changed, sign(&key, &changed)), Err(Unsigned::UnknownMessage));
        let message = signed.challenge(&address, "1", now).unwrap();
        let body = json!({ "message": message, "signature": sign(&key, &message) }).to_string();
        let too_late = later(now, CHALLENGE_AGE);
        assert_eq!(signed.token(body.as_bytes(), too_late), Err(Unsigned::UnknownMessage));
        let elsewhere = Signed::new("", "gateway.example", false, Duration::from_secs(60)).unwrap();
        assert_eq!(elsewhere.check(Some(&header), now), Err(Unsigned::BadToken));
    }

    /// Claim: any number of challenges of others takes none away, and which of them served is forgotten when it is too
    /// old, and not before.
    #[test]
    fn a_flood_of_challenges() {
        let signed = Signed::new("", "gateway.example", true, Duration::from_secs(60)).unwrap();
        let key = SigningKey::from_slice(&[7; 32]).unwrap();
        let address = hex(&address_of(key.verifying_key()).unwrap());
        let now = WallTime::from_unix_ns(1_700_000_000_000_000_000);
        let message = signed.challenge(&address, "1", now).unwrap();
        assert!(message.contains("URI: https://gateway.example/"), "{message}");
        for other in 0..20_000 {
            signed.challenge(&format!("0x{other:040x}"), "1", now).unwrap();
        }
        let body = json!({ "message": message, "signature": sign(&key, &message) }).to_string();
        assert!(signed.token(body.as_bytes(), now).is_ok());
        assert_eq!(signed.token(body.as_bytes(), now), Err(Unsigned::UnknownMessage));
        let mut served = Served::default();
        let until = later(now, CHALLENGE_AGE);
        assert!(served.take("a", until, now) && !served.take("a", until, now));
        assert!(served.take("b", later(until, CHALLENGE_AGE), until));
        assert_eq!((served.nonces.len(), served.in_order.len()), (1, 1));
    }

    /// Claim: a token of the same secret that is for another service, by another, or of a time to come is none.
    #[test]
    fn claims() {
        let signed = Signed::new("", "gateway.example", true, Duration::from_secs(60)).unwrap();
        let us = "gateway.example";
        let good = json!({ "iss": us, "aud": us, "sub": "0x1", "iat": 90, "exp": 200 });
        let with = |name: &str, value: Value| {
            let mut claims = good.clone();
            claims[name] = value;
            signed.holds(&claims, 100)
        };
        assert!(signed.holds(&good, 100) && !signed.holds(&good, 200));
        assert!(with("aud", json!(["other", us])) && with("aud", Value::Null));
        assert!(with("nbf", json!(100)) && with("exp", json!(100.5)));
        for (name, value) in [
            ("aud", json!("other")),
            ("aud", json!(["other"])),
            ("iss", json!("evil.example")),
            ("iss", Value::Null),
            ("nbf", json!(3700)),
            ("nbf", json!("soon")),
            ("iat", json!(3700)),
            ("exp", json!("200")),
            ("exp", Value::Null),
        ] {
            assert!(!with(name, value.clone()), "{name}: {value}");
        }
    }

    /// Claim: what is no request for a token is none.
    #[test]
    fn bounds() {
        let signed = Signed::new("secret", "g", true, Duration::from_secs(60)).unwrap();
        let now = WallTime::from_unix_ns(0);
        for body in
            ["", "{}", "[]", r#"{"message":1}"#, r#"{"message":"Nonce: x","signature":"0x00"}"#]
        {
            assert_eq!(signed.token(body.as_bytes(), now), Err(Unsigned::NoMessage), "{body}");
        }
        assert_eq!(signed.challenge("0x1", "1", now), None);
    }
}
