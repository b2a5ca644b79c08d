"""Stands before fake-gcs-server and does what Google's own front does and that server does not. It is the test's, and no store:
every object goes to fake-gcs-server and comes from it.

* Each request needs the token of a service account, signed with its key (RS256), not older than it may be; else 401.
* A plain PUT of the XML API goes on as the signed form of a PUT, the only one that fake-gcs-server takes on such a path (it says
  `invalid uploadType` to any other), and its answer gets the headers that Google's has: the ETag and the generation, both as
  fake-gcs-server gave them in the body.

Arguments: HOST:PORT of fake-gcs-server, the file to write the account to (made here, with a new key), names of buckets to make.
Says `ready requests=HOST:PORT`. The XML API: https://cloud.google.com/storage/docs/xml-api/put-object-upload; how an account
signs a token by itself: https://google.aip.dev/auth/4111"""
import base64, hashlib, http.client, json, os, subprocess, sys, time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

store, account_file, *buckets = sys.argv[1:]
EMAIL = "assay@test.iam.gserviceaccount.com"
EXPONENT, LENGTH = 65537, 256
SHA256_OF = bytes.fromhex("3031300d060960864801650304020105000420")
PASSED_ON = ["content-type", "x-goog-if-generation-match", "range"]


def openssl(*words):
    return subprocess.run(["openssl", *words], check=True, capture_output=True, text=True).stdout


os.umask(0o077)
key = openssl("genpkey", "-algorithm", "RSA", "-pkeyopt", f"rsa_keygen_bits:{8 * LENGTH}")
with open(account_file, "w") as file:
    json.dump({"type": "service_account", "client_email": EMAIL, "private_key_id": "1", "private_key": key}, file)
with open(account_file + ".pem", "w") as file:
    file.write(key)
modulus = int(openssl("rsa", "-in", account_file + ".pem", "-noout", "-modulus").split("=")[1], 16)


def ask(method, path, body=None, headers={}):
    connection = http.client.HTTPConnection(store, timeout=60)
    connection.request(method, path, body, headers)
    answer = connection.getresponse()
    content = answer.read()
    connection.close()
    return answer, content


def is_signed(authorization):
    """A token of the account, signed with its key (RFC 8017, 8.2.2), that has not run out."""
    try:
        head, claims, signature = authorization.removeprefix("Bearer ").split(".")
        decode = lambda text: base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
        known = json.loads(decode(claims))
        opened = pow(int.from_bytes(decode(signature), "big"), EXPONENT, modulus).to_bytes(LENGTH, "big")
        end = b"\x00" + SHA256_OF + hashlib.sha256(f"{head}.{claims}".encode()).digest()
        return (opened == b"\x00\x01" + b"\xff" * (LENGTH - 2 - len(end)) + end
                and known["iss"] == EMAIL and known["iat"] - 60 <= time.time() < known["exp"])
    except (ValueError, KeyError):
        return False


class Door(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *_):
        pass

    def answer(self, status, headers, content):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def do_PUT(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if not is_signed(self.headers.get("Authorization", "")):
            return self.answer(401, {}, b"")
        sent = {name: self.headers[name] for name in PASSED_ON if name in self.headers}
        if self.command == "GET":
            answer, content = ask("GET", self.path, headers=sent)
            kept = ("ETag", "Last-Modified", "Content-Type", "Content-Range", "x-goog-generation")
            return self.answer(answer.status, {name: answer.headers[name] for name in kept if name in answer.headers}, content)
        answer, content = ask("PUT", self.path + "?X-Goog-Algorithm=GOOG4-RSA-SHA256", body, sent)
        if answer.status != 200:
            return self.answer(answer.status, {}, content)
        stored = json.loads(content)
        self.answer(200, {"ETag": f'"{stored["etag"]}"', "x-goog-generation": stored["generation"]}, b"")

    do_GET = do_PUT


for bucket in buckets:
    made, said = ask("POST", "/storage/v1/b", json.dumps({"name": bucket}), {"Content-Type": "application/json"})
    assert made.status == 200, said
server = ThreadingHTTPServer(("127.0.0.1", 0), Door)
print(f"ready requests=127.0.0.1:{server.server_port}", flush=True)
server.serve_forever()
