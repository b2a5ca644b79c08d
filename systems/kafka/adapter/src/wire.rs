//! The primitives of Kafka's protocol (*Kafka protocol guide*, "Protocol Primitive Types"), in the versions of messages that
//! have no tagged fields. Values only: no socket, no time.
//!
//! On any bytes reading ends, takes no more memory than what arrived, and never panics.

/// Bytes that are not of the protocol: why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Strange(pub(crate) &'static str);

/// Bytes being read, from the front.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reader<'a>(pub(crate) &'a [u8]);

impl<'a> Reader<'a> {
    pub(crate) fn take(&mut self, count: usize) -> Result<&'a [u8], Strange> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or(Strange("it ends too early"))?;
        self.0 = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Strange> {
        let bytes = self.take(N)?;
        Ok(bytes.try_into().expect("as many as were taken"))
    }

    pub(crate) fn i8(&mut self) -> Result<i8, Strange> {
        self.array().map(i8::from_be_bytes)
    }

    pub(crate) fn i16(&mut self) -> Result<i16, Strange> {
        self.array().map(i16::from_be_bytes)
    }

    pub(crate) fn i32(&mut self) -> Result<i32, Strange> {
        self.array().map(i32::from_be_bytes)
    }

    pub(crate) fn u32(&mut self) -> Result<u32, Strange> {
        self.array().map(u32::from_be_bytes)
    }

    pub(crate) fn i64(&mut self) -> Result<i64, Strange> {
        self.array().map(i64::from_be_bytes)
    }

    /// A zigzag number of up to ten bytes.
    pub(crate) fn varint(&mut self) -> Result<i64, Strange> {
        let mut value = 0_u64;
        for shift in (0..64).step_by(7) {
            let [byte] = self.array()?;
            let part = u64::from(byte & 0x7f);
            if shift == 63 && part > 1 {
                break;
            }
            value |= part << shift;
            if byte & 0x80 == 0 {
                let sign = (value & 1).wrapping_neg();
                return Ok(((value >> 1) ^ sign).cast_signed());
            }
        }
        Err(Strange("a number is too long"))
    }

    /// A text, or `None` for the null text.
    pub(crate) fn nullable_text(&mut self) -> Result<Option<&'a [u8]>, Strange> {
        match self.i16()? {
            -1 => Ok(None),
            length => {
                let length = usize::try_from(length);
                self.take(length.map_err(|_| Strange("a length is negative"))?).map(Some)
            }
        }
    }

    pub(crate) fn text(&mut self) -> Result<&'a [u8], Strange> {
        self.nullable_text()?.ok_or(Strange("a text is missing"))
    }

    /// The bytes of a field that has their number before them; none for null.
    pub(crate) fn bytes(&mut self) -> Result<&'a [u8], Strange> {
        match self.i32()? {
            -1 => Ok(&[]),
            length => {
                let length = usize::try_from(length);
                self.take(length.map_err(|_| Strange("a length is negative"))?)
            }
        }
    }

    /// How many elements an array has, none for null. Each has at least a byte, so that a number of more than there are is
    /// refused before anything is done with it.
    pub(crate) fn count(&mut self) -> Result<usize, Strange> {
        match self.i32()? {
            -1 => Ok(0),
            count => {
                let count = usize::try_from(count).map_err(|_| Strange("a count is negative"))?;
                if count > self.0.len() {
                    return Err(Strange("it has fewer elements than it says"));
                }
                Ok(count)
            }
        }
    }

    /// Everything was read.
    pub(crate) fn end(self) -> Result<(), Strange> {
        if self.0.is_empty() { Ok(()) } else { Err(Strange("it goes on after its end")) }
    }
}

/// Appends numbers and texts.
pub(crate) trait Write {
    fn i8(&mut self, value: i8);
    fn i16(&mut self, value: i16);
    fn i32(&mut self, value: i32);
    fn i64(&mut self, value: i64);
    /// A zigzag number.
    fn varint(&mut self, value: i64);
    fn text(&mut self, value: &str);
    /// A number of elements or bytes.
    fn count(&mut self, value: usize);
    /// Begins a field whose length comes first, in four bytes; gives where.
    fn begin(&mut self) -> usize;
    /// Ends it.
    fn end(&mut self, begun: usize);
}

impl Write for Vec<u8> {
    fn i8(&mut self, value: i8) {
        self.extend_from_slice(&value.to_be_bytes());
    }

    fn i16(&mut self, value: i16) {
        self.extend_from_slice(&value.to_be_bytes());
    }

    fn i32(&mut self, value: i32) {
        self.extend_from_slice(&value.to_be_bytes());
    }

    fn i64(&mut self, value: i64) {
        self.extend_from_slice(&value.to_be_bytes());
    }

    fn varint(&mut self, value: i64) {
        let mut left = ((value << 1) ^ (value >> 63)).cast_unsigned();
        while left >= 0x80 {
            self.push(u8::try_from(left & 0x7f).expect("seven bits") | 0x80);
            left >>= 7;
        }
        self.push(u8::try_from(left).expect("seven bits"));
    }

    fn text(&mut self, value: &str) {
        self.i16(i16::try_from(value.len()).expect("names are short"));
        self.extend_from_slice(value.as_bytes());
    }

    fn count(&mut self, value: usize) {
        self.i32(i32::try_from(value).expect("requests are bounded"));
    }

    fn begin(&mut self) -> usize {
        self.i32(0);
        self.len()
    }

    fn end(&mut self, begun: usize) {
        let length = u32::try_from(self.len() - begun).expect("requests are bounded");
        self[begun - 4..begun].copy_from_slice(&length.to_be_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Claim: numbers of variable length are read as they were written, to their limits, and longer ones are refused.
    #[test]
    fn zigzag() {
        for value in [0, -1, 1, 63, 64, -64, -65, 300, i64::MAX, i64::MIN] {
            let mut out = Vec::new();
            out.varint(value);
            let mut reader = Reader(&out);
            assert_eq!((reader.varint(), reader.end()), (Ok(value), Ok(())));
        }
        assert_eq!(Reader(&[0x80; 10]).varint(), Err(Strange("a number is too long")));
        assert_eq!(Reader(&[0xff; 11]).varint(), Err(Strange("a number is too long")));
        assert_eq!(Reader(&[0x80]).varint(), Err(Strange("it ends too early")));
    }

    /// Claim: lengths and counts that cannot be are refused, and null is nothing.
    #[test]
    fn lengths() {
        assert_eq!(Reader(&[0xff, 0xff]).nullable_text(), Ok(None));
        assert!(Reader(&[0xff, 0xfe]).nullable_text().is_err());
        assert_eq!(Reader(&[0xff; 4]).bytes(), Ok(&[][..]));
        assert!(Reader(&[0x80, 0, 0, 0]).bytes().is_err());
        assert!(Reader(&[0, 0, 0, 2, 1]).count().is_err());
        assert_eq!(Reader(&[0, 0, 0, 1, 1]).count(), Ok(1));
    }
}
