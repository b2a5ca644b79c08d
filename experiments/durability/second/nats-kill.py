#!/usr/bin/env python3
"""Three servers of NATS JetStream, a stream of three replicas, 48 publishers; all servers are killed and started again while
the publishers go on, and the stream is asked what it holds: which acknowledged messages are missing. Without Assay, its disks and its load engine.

    python3 nats-kill.py NATS-SERVER [always|default] [TRIALS] [SECONDS]
"""
import base64, json, os, shutil, signal, sys, tempfile, threading, time

from nats_servers import Connection, start, until

program, sync = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else "always"
trials = int(sys.argv[3]) if len(sys.argv) > 3 else 5
seconds = float(sys.argv[4]) if len(sys.argv) > 4 else 2.0


def publisher(number, acknowledged, over):
    """Publishes one message after another, and goes on over a new connection when one breaks."""
    count = 0
    while not over.is_set():
        try:
            connection = Connection(number % 3, f"p{number}-{count}")
            connection.socket.settimeout(2)
            while not over.is_set():
                name = f"{number}-{count}"
                count += 1
                connection.publish("second", count, name.ljust(64, ".").encode())
                while True:
                    which, said, _ = connection.answer()
                    if which == str(count).encode():
                        break
                if said and "error" not in json.loads(said):
                    acknowledged.append(name)
        except (OSError, ValueError):
            time.sleep(0.05)


def held(connection):
    """The names in the stream, in its order; None: there is no leader yet."""
    info = connection.ask("STREAM.INFO.S")
    if "state" not in info or not info["cluster"].get("leader"):
        return None
    state, names = info["state"], []
    for place in range(state["first_seq"], state["last_seq"] + 1):
        said = connection.ask("STREAM.MSG.GET.S", json.dumps({"seq": place}).encode())
        if "message" in said:
            names.append(base64.b64decode(said["message"]["data"]).decode().rstrip("."))
    return names, state["first_seq"], state["last_seq"]


def trial(number):
    folder = tempfile.mkdtemp(prefix="nats-kill-")
    servers = [start(program, folder, at, 3, sync) for at in range(3)]
    try:
        config = json.dumps({"name": "S", "subjects": ["second"], "storage": "file", "num_replicas": 3}).encode()
        until(lambda: Connection(0, "make").ask("STREAM.CREATE.S", config).get("config"))
        acknowledged, over = [], threading.Event()
        threads = [threading.Thread(target=publisher, args=(at, acknowledged, over)) for at in range(48)]
        for thread in threads:
            thread.start()
        time.sleep(seconds)
        for server in servers:
            server.send_signal(signal.SIGKILL)
        for server in servers:
            server.wait()
        time.sleep(0.5)
        servers = [start(program, folder, at, 3, sync) for at in range(3)]
        time.sleep(seconds)
        over.set()
        for thread in threads:
            thread.join()
        names, first, last = until(lambda: held(Connection(0, f"read{time.time()}")))
        missing = set(acknowledged) - set(names)
        print(f"trial {number}: acknowledged {len(acknowledged)}, stream holds {len(names)} ({first} to {last}), lost {len(missing)}", flush=True)
        return len(acknowledged), len(missing)
    finally:
        for server in servers:
            server.kill()
            server.wait()
        if os.environ.get("KEEP") is None:
            shutil.rmtree(folder, ignore_errors=True)


results = [trial(number) for number in range(trials)]
print(f"{os.path.basename(os.path.dirname(program))}, sync_interval {sync}: acknowledged {sum(a for a, _ in results)}, "
      f"lost {sum(lost for _, lost in results)}, in {sum(lost > 0 for _, lost in results)} of {trials} trials")
