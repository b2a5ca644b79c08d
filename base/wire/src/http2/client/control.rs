//! Frames that steer the connection and not one answer: settings, windows, and the server's leave.

use super::super::frame::{
    ACK, Head, PAYLOAD_BYTES_MAX, SETTINGS, WINDOW_UPDATE, write_head, write_number,
};
use super::super::{Http2Error, code_name};
use super::{CONNECTION_WINDOW, Client, Ended, STREAM_WINDOW, Told, WINDOW_MAX, number, send_body};

impl Client {
    pub(super) fn settings(
        &mut self,
        head: Head,
        payload: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), Http2Error> {
        if head.stream != 0 {
            return Err(Http2Error::Misplaced("SETTINGS"));
        }
        if head.has(ACK) {
            return if payload.is_empty() { self.idle() } else { Err(Http2Error::FrameSize) };
        }
        if !payload.len().is_multiple_of(6) {
            return Err(Http2Error::FrameSize);
        }
        for setting in payload.chunks_exact(6) {
            let name = u16::from_be_bytes([setting[0], setting[1]]);
            let value = u32::from_be_bytes([setting[2], setting[3], setting[4], setting[5]]);
            match name {
                3 if value < self.limits.streams_max => {
                    return Err(Http2Error::TooFewStreams { allowed: value });
                }
                4 => {
                    let window = i64::from(value);
                    if window > WINDOW_MAX {
                        return Err(Http2Error::Window);
                    }
                    let more = window - self.stream_window_at_first;
                    self.stream_window_at_first = window;
                    self.streams.iter_mut().for_each(|stream| stream.send_window += more);
                }
                5 => {
                    let length = usize::try_from(value).unwrap_or(usize::MAX);
                    if !(PAYLOAD_BYTES_MAX..1 << 24).contains(&length) {
                        return Err(Http2Error::FrameSize);
                    }
                }
                _ => {}
            }
        }
        self.has_settings = true;
        write_head(out, 0, SETTINGS, ACK, 0);
        self.send_on(out);
        self.idle()
    }

    pub(super) fn window(
        &mut self,
        head: Head,
        payload: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), Http2Error> {
        let more = i64::from(number(payload)? & 0x7fff_ffff);
        if more == 0 {
            return Err(Http2Error::Window);
        }
        if head.stream == 0 {
            self.send_window += more;
            if self.send_window > WINDOW_MAX {
                return Err(Http2Error::Window);
            }
        } else if let Some(stream) = self.streams.iter_mut().find(|stream| stream.id == head.stream)
        {
            stream.send_window += more;
            if stream.send_window > WINDOW_MAX {
                return Err(Http2Error::Window);
            }
        } else if !self.has_begun(head.stream) {
            return Err(Http2Error::Unasked);
        }
        self.send_on(out);
        self.idle()
    }

    /// Sends what waited for room.
    pub(super) fn send_on(&mut self, out: &mut Vec<u8>) {
        let Self { streams, send_window, payload_bytes_max, .. } = self;
        if streams.iter().all(|stream| stream.unsent.is_empty()) {
            return;
        }
        // The one that has waited longest goes first: a stream that ends leaves its place to the newest.
        streams.sort_unstable_by_key(|stream| stream.id);
        for stream in streams.iter_mut().filter(|stream| !stream.unsent.is_empty()) {
            send_body(stream, send_window, *payload_bytes_max, out);
        }
    }

    pub(super) fn goes_away(
        &mut self,
        head: Head,
        payload: &[u8],
        told: &mut dyn FnMut(u64, Told<'_>) -> bool,
    ) -> Result<(), Http2Error> {
        if head.stream != 0 {
            return Err(Http2Error::Misplaced("GOAWAY"));
        }
        let (Some(last), Some(code)) = (payload.get(..4), payload.get(4..8)) else {
            return Err(Http2Error::FrameSize);
        };
        let (last, code) = (number(last)? & 0x7fff_ffff, number(code)?);
        self.last_stream = Some(last);
        // Streams beyond the last one were not processed (§6.8).
        while let Some(at) = self.streams.iter().position(|stream| stream.id > last) {
            let reset = Ended::Reset { why: code_name(code), is_refused: true };
            told(self.streams[at].tag, Told::End(reset));
            self.end(at, false);
        }
        if code != 0 {
            return Err(Http2Error::GoneAway(code_name(code)));
        }
        self.idle()
    }

    /// Lets the server send on, when half of what it may send was taken.
    pub(super) fn say_what_was_taken(&mut self, out: &mut Vec<u8>) {
        out.append(&mut self.owed);
        if self.taken >= CONNECTION_WINDOW / 2 {
            write_number(out, WINDOW_UPDATE, 0, self.taken);
            self.taken = 0;
        }
        for stream in self.streams.iter_mut().filter(|stream| stream.taken >= STREAM_WINDOW / 2) {
            write_number(out, WINDOW_UPDATE, stream.id, stream.taken);
            stream.taken = 0;
        }
    }
}
