#!/usr/bin/env python3
"""A write skew that PostgreSQL commits at serializable, step by step, without Assay. Three transactions stand in a cycle
(2 read a without what 1 added, 3 read that of 1 and b without what 2 added), so one of them has to be refused. It is, unless the
backend of 1 stands still for a moment after others see its commit and before it lets go of its predicate locks: gdb holds it
there, where a busy machine does it by chance. First the steps without gdb, then with it.

    python3 postgres-late-commit.py

It takes gdb. As root: setpriv --reuid=postgres --regid=postgres --clear-groups python3 postgres-late-commit.py
"""
import glob, os, shutil, signal, socket, subprocess, sys, tempfile, time

BIN = os.environ.get("BIN") or sorted(glob.glob("/usr/lib/postgresql/*/bin"))[-1]


class Session:
    """The protocol, version 3: simple queries, and of each the first value or the error."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(path)
        self.file = self.socket.makefile("rb")
        said = b"user\0assay\0database\0postgres\0\0"
        self.socket.sendall((8 + len(said)).to_bytes(4, "big") + (196608).to_bytes(4, "big") + said)
        self.answer()
        self.pid = int(self.ask("SELECT pg_backend_pid()"))

    def send(self, sql):
        body = sql.encode() + b"\0"
        self.socket.sendall(b"Q" + (4 + len(body)).to_bytes(4, "big") + body)

    def answer(self):
        value = ""
        while True:
            kind, length = self.file.read(1), int.from_bytes(self.file.read(4), "big")
            body = self.file.read(length - 4)
            if kind == b"D":
                value = body[6:].decode()
            elif kind == b"C" and not value:
                value = body[:-1].decode()
            elif kind == b"E":
                value = "ERROR " + dict((part[:1], part[1:].decode()) for part in body.split(b"\0") if part)[b"C"]
            elif kind == b"Z":
                return value

    def ask(self, sql):
        self.send(sql)
        return self.answer()


def steps(connect, held):
    """The six answers that matter: what was read, and what became of each transaction."""
    control, one, two, three = (connect() for _ in range(4))
    control.ask("DROP TABLE IF EXISTS lists")
    control.ask("CREATE TABLE lists (key text PRIMARY KEY, elements int[])")
    control.ask("INSERT INTO lists VALUES ('a', '{}'), ('b', '{}'), ('c', '{}')")
    read = lambda session, key: session.ask(f"SELECT elements FROM lists WHERE key = '{key}'")
    add = lambda session, key, element: session.ask(f"UPDATE lists SET elements = elements || {element} WHERE key = '{key}'")
    for session in (one, two):
        session.ask("BEGIN ISOLATION LEVEL SERIALIZABLE")
    found = {"2 read a": read(two, "a")}
    add(one, "a", 1)
    add(two, "b", 2)
    if held:
        gdb = subprocess.Popen(["gdb", "-q", "-nx", "-batch", "-p", str(one.pid), "-ex", "break ReleasePredicateLocks",
                                "-ex", "continue", "-ex", "shell touch held; until test -e go; do sleep 0.05; done", "-ex", "delete"],
                               stdout=open("gdb", "wb"), stderr=subprocess.STDOUT)
        for _ in range(600):
            if b"Continuing." in open("gdb", "rb").read():
                break
            time.sleep(0.1)
        one.send("COMMIT")
        for _ in range(100):
            if os.path.exists("held"):
                break
            time.sleep(0.1)
        else:
            sys.exit("gdb did not hold the backend: " + open("gdb").read())
    else:
        found["1"] = one.ask("COMMIT")
    three.ask("BEGIN ISOLATION LEVEL SERIALIZABLE")
    found["3 read a"] = read(three, "a")
    found["2"] = two.ask("COMMIT")
    if held:
        open("go", "wb").close()
        found["1"] = one.answer()
        gdb.wait()
    found["3 read b"] = read(three, "b")
    add(three, "c", 3)
    found["3"] = three.ask("COMMIT")
    return found


def main():
    folder = tempfile.mkdtemp()
    os.chdir(folder)
    subprocess.run([BIN + "/initdb", "-D", "data", "-U", "assay", "--auth=trust", "--no-instructions"], check=True, stdout=subprocess.DEVNULL)
    server = subprocess.Popen([BIN + "/postgres", "-D", "data", "-c", "listen_addresses=", "-c", "dynamic_shared_memory_type=mmap",
                               "-c", "unix_socket_directories=" + folder], stderr=open("log", "wb"))
    try:
        for _ in range(600):
            try:
                version = Session(folder + "/.s.PGSQL.5432").ask("SHOW server_version")
                break
            except OSError:
                time.sleep(0.1)
        else:
            sys.exit("the server does not start: " + open("log").read())
        for held in (False, True):
            found = steps(lambda: Session(folder + "/.s.PGSQL.5432"), held)
            print(f"{version}, {'1 held' if held else 'nothing held'}: " + "; ".join(f"{what}: {said}" for what, said in found.items()), flush=True)
    finally:
        server.send_signal(signal.SIGINT)
        server.wait()
        os.chdir("/")
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
