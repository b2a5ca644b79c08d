"""A server that answers each handshake with a text, in which ACCEPT is the proof that it asks for, and the first frame after it
with some bytes; then it keeps the connection. Usage: hostile.py HOST PORT TEXT_IN_HEX BYTES_IN_HEX"""
import base64
import hashlib
import socketserver
import sys

TEXT, FRAMES = (bytes.fromhex(word) for word in sys.argv[3:5])


class Hostile(socketserver.BaseRequestHandler):
    def handle(self):
        received, step = b"", 0
        while piece := self.request.recv(4096):
            received += piece
            if step == 0 and b"\r\n\r\n" in received:
                keys = [line[19:] for line in received.split(b"\r\n") if line.startswith(b"Sec-WebSocket-Key: ")]
                proof = hashlib.sha1(keys[0] + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest()
                self.request.sendall(TEXT.replace(b"ACCEPT", base64.b64encode(proof)))
                step = 1
            elif step == 1:
                self.request.sendall(FRAMES)
                step = 2


class Threads(socketserver.ThreadingTCPServer):
    allow_reuse_address = daemon_threads = True


Threads((sys.argv[1], int(sys.argv[2])), Hostile).serve_forever()
