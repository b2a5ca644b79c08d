//! Who asks: a client signs a message with the key of its account (EIP-4361) and gets a token for a while (a JWT).
//!
//! The message that comes back must be, byte for byte, one that was given out, so nothing of it has to be read but its
//! nonce. A challenge serves once.

use std::collections::{HashMap, VecDeque};
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

/// Challenges that are out at once; the oldest is forgotten for one more.
const CHALLENGES_MAX: usize = 10_000;
/// How long a challenge may be answered.
const CHALLENGE_AGE: Duration = Duration::from_secs(300);
/// Larger requests for a token are not read.
pub const TOKEN_REQUEST_BYTES_MAX: usize = 8 << 10;

/// Why somebody is not let in.
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
    key: hmac::Key,
    random: SystemRandom,
    domain: String,
    age: Duration,
    challenges: Mutex<Challenges>,
}

#[derive(Default)]
struct Challenges {
    by_nonce: HashMap<String, Challenge>,
    /// The oldest first.
    nonces: VecDeque<String>,
}

struct Challenge {
    message: String,
    address: [u8; 20],
    until: WallTime,
}

impl Signed {
    /// With an empty secret, one that nobody knows and that ends with the process.
    pub fn new(secret: &str, domain: &str, age: Duration) -> Result<Self, String> {
        let random = SystemRandom::new();
        let mut drawn = [0; 32];
        random.fill(&mut drawn).map_err(|_| "this host gives no random numbers".to_owned())?;
        let secret = if secret.is_empty() { &drawn[..] } else { secret.as_bytes() };
        Ok(Self {
            key: hmac::Key::new(hmac::HMAC_SHA256, secret),
            random,
            domain: domain.to_owned(),
            age,
            challenges: Mutex::new(Challenges::default()),
        })
    }

    /// A message that the account is to sign; `address` is `0x` and 40 digits.
    pub fn challenge(&self, address: &str, chain_id: &str, now: WallTime) -> Option<String> {
        let address: [u8; 20] = bytes(address)?.try_into().ok()?;
        let mut drawn = [0; 16];
        self.random.fill(&mut drawn).ok()?;
        let nonce: String = drawn.iter().map(|byte| format!("{byte:02x}")).collect();
        let until = later(now, CHALLENGE_AGE);
        let (domain, shown) = (&self.domain, checksummed(&address));
        let message = format!(
            "{domain} wants you to sign in with your Ethereum account:\n{shown}\n\nRead the chain through this gateway.\n\n\
             URI: http://{domain}/\nVersion: 1\nChain ID: {chain_id}\nNonce: {nonce}\nIssued At: {}\nExpiration Time: {}",
            now.rfc3339(),
            until.rfc3339()
        );
        let mut challenges = self.challenges.lock().unwrap_or_else(PoisonError::into_inner);
        if challenges.nonces.len() == CHALLENGES_MAX
            && let Some(oldest) = challenges.nonces.pop_front()
        {
            challenges.by_nonce.remove(&oldest);
        }
        challenges.nonces.push_back(nonce.clone());
        challenges.by_nonce.insert(nonce, Challenge { message: message.clone(), address, until });
        Some(message)
    }

    /// A token for who signed a challenge.
    pub fn token(&self, body: &[u8], now: WallTime) -> Result<String, Unsigned> {
        let body: Value = serde_json::from_slice(body).map_err(|_| Unsigned::NoMessage)?;
        let text = |name: &str| body[name].as_str().ok_or(Unsigned::NoMessage);
        let (message, signature) = (text("message")?, text("signature")?);
        let signature = bytes(signature).filter(|it| it.len() == 65).ok_or(Unsigned::NoMessage)?;
        let nonce = message.lines().find_map(|line| line.strip_prefix("Nonce: "));
        let challenge = {
            let mut challenges = self.challenges.lock().unwrap_or_else(PoisonError::into_inner);
            let challenge = nonce.and_then(|nonce| challenges.by_nonce.remove(nonce));
            // It serves once, and a list of those that were used would be a second truth.
            challenges.nonces.retain(|kept| Some(kept.as_str()) != nonce);
            challenge
        };
        let challenge = challenge.filter(|it| it.message == message && now < it.until);
        let challenge = challenge.ok_or(Unsigned::UnknownMessage)?;
        if signer(message, &signature) != Some(challenge.address) {
            return Err(Unsigned::BadSignature);
        }
        Ok(self.signed_token(&checksummed(&challenge.address), now))
    }

    fn signed_token(&self, address: &str, now: WallTime) -> String {
        let head = json!({ "alg": "HS256", "typ": "JWT" }).to_string();
        let claims = json!({
            "iss": self.domain, "sub": address,
            "iat": seconds(now), "exp": seconds(later(now, self.age)),
        });
        let text = format!(
            "{}.{}",
            URL_SAFE_NO_PAD.encode(head),
            URL_SAFE_NO_PAD.encode(claims.to_string())
        );
        let tag = hmac::sign(&self.key, text.as_bytes());
        format!("{text}.{}", URL_SAFE_NO_PAD.encode(tag.as_ref()))
    }

    /// Lets in who has a token.
    pub fn check(&self, authorization: Option<&str>, now: WallTime) -> Result<(), Unsigned> {
        let token =
            authorization.and_then(|it| it.strip_prefix("Bearer ")).ok_or(Unsigned::NoToken)?;
        let (text, tag) = token.rsplit_once('.').ok_or(Unsigned::BadToken)?;
        let tag = URL_SAFE_NO_PAD.decode(tag).map_err(|_| Unsigned::BadToken)?;
        // Only this key and this algorithm count, and a head that says another is of no token of ours.
        hmac::verify(&self.key, text.as_bytes(), &tag).map_err(|_| Unsigned::BadToken)?;
        let (head, claims) = text.split_once('.').ok_or(Unsigned::BadToken)?;
        let part = |part: &str| -> Option<Value> {
            serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).ok()?).ok()
        };
        if part(head).is_none_or(|head| head["alg"] != "HS256") {
            return Err(Unsigned::BadToken);
        }
        let claims = part(claims);
        let until = claims.and_then(|claims| claims["exp"].as_i64()).unwrap_or_default();
        if seconds(now) < until { Ok(()) } else { Err(Unsigned::BadToken) }
    }
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

/// An address with the checksum in its capitals (EIP-55).
fn checksummed(address: &[u8; 20]) -> String {
    let digits: String = address.iter().map(|byte| format!("{byte:02x}")).collect();
    let hash = Keccak256::digest(digits.as_bytes());
    let capital = |(index, digit): (usize, char)| {
        let nibble = hash[index / 2] >> (if index % 2 == 0 { 4 } else { 0 }) & 15;
        if nibble >= 8 { digit.to_ascii_uppercase() } else { digit }
    };
    let shown: String = digits.chars().enumerate().map(capital).collect();
    format!("0x{shown}")
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
        assert_eq!(checksummed(&address), "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266");
    }

    /// Claim: a token whose head names another algorithm is refused, even where its tag is right.
    #[test]
    fn another_algorithm() {
        let signed = Signed::new("secret", "h", Duration::from_secs(60)).unwrap();
        let now = WallTime::from_unix_ns(0);
        let token = signed.signed_token("0x", now);
        let claims = token.split('.').nth(1).unwrap();
        for (algorithm, is_ours) in [("HS256", true), ("RS256", false), ("none", false)] {
            let head = URL_SAFE_NO_PAD.encode(json!({ "alg": algorithm }).to_string());
            let text = format!("{head}.{claims}");
            let tag = hmac::sign(&signed.key, text.as_bytes());
            let token = format!("Bearer {text}.{}", URL_SAFE_NO_PAD.encode(tag.as_ref()));
            assert_eq!(signed.check(Some(&token), now).is_ok(), is_ours, "{algorithm}");
        }
    }

    /// Claim: who signs the challenge gets a token that is let in until it is too old; a challenge serves once, and only
    /// for its own account.
    #[test]
    fn tokens() {
        let signed = Signed::new("", "gateway.example", Duration::from_secs(60)).unwrap();
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
        assert_eq!(signed.check(Some(&header), now), Ok(()));
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
        let elsewhere = Signed::new("", "gateway.example", Duration::from_secs(60)).unwrap();
        assert_eq!(elsewhere.check(Some(&header), now), Err(Unsigned::BadToken));
    }

    /// Claim: what is no request for a token is none, and challenges are bounded.
    #[test]
    fn bounds() {
        let signed = Signed::new("secret", "g", Duration::from_secs(60)).unwrap();
        let now = WallTime::from_unix_ns(0);
        for body in
            ["", "{}", "[]", r#"{"message":1}"#, r#"{"message":"Nonce: x","signature":"0x00"}"#]
        {
            assert_eq!(signed.token(body.as_bytes(), now), Err(Unsigned::NoMessage), "{body}");
        }
        let address = format!("0x{:040x}", 1);
        for _ in 0..CHALLENGES_MAX + 10 {
            signed.challenge(&address, "1", now).unwrap();
        }
        assert_eq!(signed.challenges.lock().unwrap().by_nonce.len(), CHALLENGES_MAX);
        assert_eq!(signed.challenge("0x1", "1", now), None);
    }
}
