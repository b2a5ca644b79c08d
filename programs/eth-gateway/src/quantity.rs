//! Quantities of up to 256 bits, as a chain has them: wei do not fit into 64 bits once there are 18.4 ether of them.

/// An unsigned number of up to 256 bits; the least significant part first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Quantity([u64; 4]);

/// More decimal digits than this no quantity has.
const DIGITS_MAX: usize = 78;

impl Quantity {
    /// Reads `0x` and up to 64 hexadecimal digits, or more if those in front are zeros.
    #[must_use]
    pub fn from_hex(text: &str) -> Option<Self> {
        let digits = text.strip_prefix("0x").filter(|digits| !digits.is_empty())?;
        let mut parts = [0; 4];
        for digit in digits.chars() {
            let value = u64::from(digit.to_digit(16)?);
            if parts[3] >> 60 != 0 {
                return None;
            }
            for index in (0..4).rev() {
                let carried = if index == 0 { value } else { parts[index - 1] >> 60 };
                parts[index] = (parts[index] << 4) | carried;
            }
        }
        Some(Self(parts))
    }

    /// Reads decimal digits.
    #[must_use]
    pub fn from_decimal(text: &str) -> Option<Self> {
        if text.is_empty() || text.len() > DIGITS_MAX {
            return None;
        }
        let mut parts = [0_u64; 4];
        for digit in text.chars() {
            let mut carried = u128::from(digit.to_digit(10)?);
            for part in &mut parts {
                let value = u128::from(*part) * 10 + carried;
                *part = u64::try_from(value & u128::from(u64::MAX)).expect("64 bits");
                carried = value >> 64;
            }
            if carried > 0 {
                return None;
            }
        }
        Some(Self(parts))
    }

    /// As `0x` and hexadecimal digits without zeros in front, which is how JSON-RPC wants it.
    #[must_use]
    pub fn to_hex(self) -> String {
        let digits: String = self.0.iter().rev().map(|part| format!("{part:016x}")).collect();
        let digits = digits.trim_start_matches('0');
        format!("0x{}", if digits.is_empty() { "0" } else { digits })
    }

    /// As decimal digits.
    #[must_use]
    pub fn to_decimal(self) -> String {
        let mut parts = self.0;
        let mut digits = [b'0'; DIGITS_MAX];
        let mut first = DIGITS_MAX;
        while parts != [0; 4] {
            let mut left = 0_u128;
            for part in parts.iter_mut().rev() {
                let value = (left << 64) | u128::from(*part);
                *part = u64::try_from(value / 10).expect("what is left is below ten");
                left = value % 10;
            }
            first -= 1;
            digits[first] = b'0' + u8::try_from(left).expect("a digit");
        }
        let first = first.min(DIGITS_MAX - 1);
        digits[first..].iter().map(|digit| char::from(*digit)).collect()
    }

    /// The bytes, the most significant first, without zeros in front.
    #[must_use]
    pub fn to_bytes(self) -> Vec<u8> {
        let bytes: Vec<u8> = self.0.iter().rev().flat_map(|part| part.to_be_bytes()).collect();
        let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
        bytes[zeros..].to_vec()
    }

    /// The number, if it has no more than 64 bits.
    #[must_use]
    pub fn to_u64(self) -> Option<u64> {
        (self.0[1..] == [0; 3]).then_some(self.0[0])
    }
}

impl From<u64> for Quantity {
    fn from(value: u64) -> Self {
        Self([value, 0, 0, 0])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Claim: quantities around 64, 128 and 256 bits are the same in decimal digits as arithmetic elsewhere says.
    #[test]
    fn decimals() {
        for (hex, decimal) in [
            ("0x0", "0"),
            ("0xa", "10"),
            ("0xffffffffffffffff", "18446744073709551615"),
            ("0x10000000000000000", "18446744073709551616"),
            ("0x100000000000000000000000000000000", "340282366920938463463374607431768211456"),
            (
                "0xffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
                "115792089237316195423570985008687907853269984665640564039457584007913129639935",
            ),
        ] {
            let read = Quantity::from_hex(hex).unwrap();
            assert_eq!(read.to_decimal(), decimal);
            assert_eq!(read.to_hex(), hex);
            assert_eq!(Quantity::from_decimal(decimal), Some(read));
        }
        assert_eq!(Quantity::from_hex("0x000a").unwrap().to_hex(), "0xa");
        assert_eq!(Quantity::from(258).to_bytes(), [1, 2]);
        assert_eq!(Quantity::from_hex("0x10000000000000000").unwrap().to_u64(), None);
    }

    /// Claim: what is no quantity of 256 bits is none.
    #[test]
    fn refused() {
        for text in ["", "0x", "a", "0xg", "-0x1", "0x-1", "0x+1", "1"] {
            assert_eq!(Quantity::from_hex(text), None, "{text}");
        }
        assert_eq!(Quantity::from_hex(&format!("0x1{}", "0".repeat(64))), None);
        for text in ["", "0x1", "-1", "1.0", &"9".repeat(78), &"0".repeat(79)] {
            assert_eq!(Quantity::from_decimal(text), None, "{text}");
        }
    }
}
