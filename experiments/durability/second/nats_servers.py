"""Servers of NATS and their text protocol, for the programs beside this file."""
import json, socket, subprocess, time

HOST, CLIENTS, ROUTES = "127.91.0.%d", 4222, 6222


class Connection:
    """The text protocol: publish with an inbox, read what comes."""

    def __init__(self, server, name):
        self.socket = socket.create_connection((HOST % (server + 1), CLIENTS), timeout=3)
        self.file = self.socket.makefile("rb")
        self.inbox = f"_INBOX.{name}."
        self.send(b'CONNECT {"verbose":false,"pedantic":false,"headers":true,"no_responders":true}\r\n'
                  + f"SUB {self.inbox}* 1\r\nPING\r\n".encode())
        while not self.line().startswith(b"PONG"):
            pass

    def send(self, data):
        self.socket.sendall(data)

    def line(self):
        line = self.file.readline()
        if not line.endswith(b"\r\n"):
            raise OSError("closed")
        return line

    def publish(self, subject, number, body):
        self.send(f"PUB {subject} {self.inbox}{number} {len(body)}\r\n".encode() + body + b"\r\n")

    def answer(self):
        """Number, body, and where it would be acknowledged."""
        while True:
            words = self.line().split()
            if words[0] == b"PING":
                self.send(b"PONG\r\n")
            elif words[0] in (b"MSG", b"HMSG"):
                body = self.file.read(int(words[-1]) + 2)[:-2]
                head = int(words[-2]) if words[0] == b"HMSG" else 0
                return words[1].rsplit(b".", 1)[-1], body[head:], head
            elif words[0] == b"-ERR":
                raise OSError(words)

    def ask(self, subject, body=b""):
        self.publish("$JS.API." + subject, 0, body)
        _, said, head = self.answer()
        return {"error": "no server leads"} if head and not said else json.loads(said)


def start(program, folder, number, of, sync):
    routes = ", ".join(f'"nats-route://{HOST % (other + 1)}:{ROUTES}"' for other in range(of) if other != number)
    always = "sync_interval: always" if sync == "always" else ""
    path = f"{folder}/{number}.conf"
    with open(path, "w") as file:
        file.write(f'server_name: "n{number}"\nlisten: "{HOST % (number + 1)}:{CLIENTS}"\n'
                   f'jetstream {{ store_dir: "{folder}/n{number}"\n {always}\n}}\n'
                   f'cluster {{ name: second\n listen: "{HOST % (number + 1)}:{ROUTES}"\n no_advertise: true\n routes: [ {routes} ] }}\n')
    log = open(f"{folder}/n{number}.log", "ab")
    return subprocess.Popen([program, "--config", path], stdout=log, stderr=log)


def until(what, limit=60):
    end = time.time() + limit
    while time.time() < end:
        try:
            found = what()
            if found is not None:
                return found
        except (OSError, ValueError):
            pass
        time.sleep(0.1)
    raise SystemExit("the cluster does not serve")
