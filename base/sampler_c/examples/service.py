"""A service in Python that stamps its stages, through ctypes.

    cargo build --release -p sampler_c
    python3 base/sampler_c/examples/service.py target/release/libsampler_c.so /tmp/events
    cargo run --release -p sampler --example show -- /tmp/events
"""

import ctypes
import http.server
import sys
import threading
import urllib.request


class Ring:
    """A thread's own place for events."""

    def __init__(self, library, sampler):
        self.library = library
        self.ring = ctypes.c_void_p(library.sampler_ring_new(sampler))

    def now(self):
        return self.library.sampler_now(self.ring)

    def done(self, stage, begun, count=1):
        return self.library.sampler_done(self.ring, stage, begun, count)

    def free(self):
        self.library.sampler_ring_free(self.ring)


def load(path):
    library = ctypes.CDLL(path)
    pointer, number = ctypes.c_void_p, ctypes.c_uint64
    library.sampler_open.restype = pointer
    library.sampler_open.argtypes = [
        ctypes.c_char_p, ctypes.c_char_p, ctypes.POINTER(ctypes.c_char_p), ctypes.c_size_t]
    library.sampler_ring_new.restype = pointer
    library.sampler_ring_new.argtypes = [pointer]
    library.sampler_now.restype = number
    library.sampler_now.argtypes = [pointer]
    library.sampler_done.restype = number
    library.sampler_done.argtypes = [pointer, ctypes.c_uint8, number, ctypes.c_uint64]
    library.sampler_ring_free.argtypes = [pointer]
    library.sampler_close.restype = ctypes.c_int64
    library.sampler_close.argtypes = [pointer]
    return library


STAGES = [b"parse", b"work", b"answer"]


def main():
    library = load(sys.argv[1])
    names = (ctypes.c_char_p * len(STAGES))(*STAGES)
    sampler = ctypes.c_void_p(
        library.sampler_open(sys.argv[2].encode(), b"service.py", names, len(STAGES)))
    if not sampler:
        sys.exit("the file cannot be made: " + sys.argv[2])
    ring = Ring(library, sampler)

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            at = ring.now()
            number = int(self.path.strip("/") or 0)
            at = ring.done(0, at)
            body = str(sum(range(number))).encode()
            at = ring.done(1, at)
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)
            ring.done(2, at)

        def log_message(self, *_):
            pass

    server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    for number in range(200):
        url = f"http://127.0.0.1:{server.server_address[1]}/{number}"
        assert urllib.request.urlopen(url).read() == str(sum(range(number))).encode()
    server.shutdown()
    thread.join()
    ring.free()
    lost = library.sampler_close(sampler)
    print(f"600 events, {lost} lost")
    sys.exit(0 if lost == 0 else 1)


main()
