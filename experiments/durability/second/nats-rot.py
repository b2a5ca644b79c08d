#!/usr/bin/env python3
"""Five servers of NATS JetStream, a stream of five replicas that syncs each message; one server is killed, one bit in the first file
of its stream flips, and it is started again. Which of the acknowledged messages does a consumer on that server get, and which one on
another? Without Assay, its disks and its load engine.

    python3 nats-rot.py NATS-SERVER [MESSAGES]
"""
import glob, json, os, shutil, signal, sys, tempfile, time

from nats_servers import Connection, start, until

program, messages = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 6000
BYTES, BATCH = 4096, 64


def publish(connection, numbers):
    """Publishes and waits for each; gives those that are acknowledged."""
    acknowledged = []
    for first in range(0, len(numbers), BATCH):
        batch = numbers[first:first + BATCH]
        for number in batch:
            connection.publish("second", number, str(number).ljust(BYTES, ".").encode())
        for _ in batch:
            which, said, _ = connection.answer()
            if said and "error" not in json.loads(said):
                acknowledged.append(int(which))
    return acknowledged


def info(connection):
    return connection.ask("STREAM.INFO.S")


def has_caught_up():
    """The stream, once all servers but its leader are known to be as far as it is."""
    said = info(Connection(1, f"info{time.time()}"))
    replicas = said.get("cluster", {}).get("replicas", [])
    return said if len(replicas) == 4 and all(it["current"] and not it.get("offline") for it in replicas) else None


def read(server):
    """The numbers of the messages that a consumer on this server gets."""
    config = {"deliver_policy": "all", "ack_policy": "none", "num_replicas": 1, "mem_storage": True,
              "inactive_threshold": 60_000_000_000}
    for attempt in range(100):
        connection = Connection(1, f"read{server}{attempt}")
        made = connection.ask("CONSUMER.CREATE.S", json.dumps({"stream_name": "S", "config": config}).encode())
        if made.get("cluster", {}).get("leader") == server:
            break
        connection.ask(f"CONSUMER.DELETE.S.{made.get('name')}")
    else:
        raise SystemExit(f"no consumer stood on {server}")
    numbers, silent = [], 0
    while silent < 3:
        connection.publish(f"$JS.API.CONSUMER.MSG.NEXT.S.{made['name']}", "batch", b'{"batch":200,"expires":1000000000}')
        before = len(numbers)
        while True:
            _, body, head = connection.answer()
            if head:
                break
            numbers.append(int(body.rstrip(b".")))
            if len(numbers) - before == 200:
                break
        silent = silent + 1 if len(numbers) == before else 0
    return numbers


folder = tempfile.mkdtemp(prefix="nats-rot-")
servers = [start(program, folder, at, 5, "always") for at in range(5)]
try:
    config = json.dumps({"name": "S", "subjects": ["second"], "storage": "file", "num_replicas": 5}).encode()
    until(lambda: Connection(1, "make").ask("STREAM.CREATE.S", config).get("config"))
    connection = Connection(1, "publish")
    connection.socket.settimeout(20)
    acknowledged = publish(connection, list(range(messages)))
    servers[0].send_signal(signal.SIGKILL)
    servers[0].wait()
    [path] = glob.glob(f"{folder}/n0/jetstream/*/streams/S/msgs/1.blk")
    with open(path, "r+b") as file:
        at = os.path.getsize(path) // 2
        file.seek(at)
        byte = file.read(1)[0]
        file.seek(at)
        file.write(bytes([byte ^ 1]))
    servers[0] = start(program, folder, 0, 5, "always")
    until(lambda: has_caught_up())
    acknowledged += publish(connection, list(range(messages, messages + 200)))
    said = until(lambda: has_caught_up())
    other = next(f"n{at}" for at in range(1, 5) if f"n{at}" != said["cluster"]["leader"])
    for server in ["n0", other]:
        numbers = read(server)
        missing = sorted(set(acknowledged) - set(numbers))
        span = f", {missing[0]} to {missing[-1]}" if missing else ""
        print(f"{server}, of {len(acknowledged)} acknowledged: {len(missing)} missing{span}", flush=True)
    for line in open(f"{folder}/n0.log"):
        if "for stream '$G > S'" in line:
            print("n0's log:", line[line.index("["):].split("] ", 1)[1].split(" ", 2)[2].strip())
finally:
    for server in servers:
        server.kill()
        server.wait()
    if os.environ.get("KEEP") is None:
        shutil.rmtree(folder, ignore_errors=True)
