"""A program that speaks the protocol of docs/exec.md and keeps its ledger in the way of its first argument: `writes` puts
transactions into a log before it acknowledges them and reads it when it is started again; the others keep them in memory."""
import json, os, socket, sys, threading

way = sys.argv[1]
lock, stored, asked, log = threading.Lock(), [], [0], [None]


def deploy(question):
    path = os.path.join(question["folder"], "log")
    if question.get("life", 1) > 1:
        with open(path) as old:
            # A torn line at the end was never acknowledged.
            stored.extend(int(line) for line in old if line.endswith("\n"))
    log[0] = open(path, "a")


def ledger():
    with lock:
        asked[0] += 1
        ids = list(stored)
    if way == "stores late" and asked[0] == 1:
        ids = ids[:-7]
    if way == "loses":
        ids = [id for id in ids if id % 50 != 7]
    entries = [{"entries": [{"id": id} for id in ids]}]
    if way == "fails":
        return [{"failed": "the disk is gone"}]
    if way == "breaks off":
        return entries
    if way == "refuses":
        return entries + [{"refused": "number 3 is withheld"}]
    return entries + [{"did": "ledger"}]


def control(question):
    if question["do"] == "describe":
        return [{"did": "describe", "version": 1, "name": way, "stages": ["committed"],
                 "kinds": ["submit"], "ledger": True}]
    if question["do"] == "deploy":
        deploy(question)
    return ledger() if question["do"] == "ledger" else [{"did": question["do"]}]


def submit(question):
    ids = [transaction["id"] for transaction in question["tx"]]
    with lock:
        stored.extend(ids)
        if way == "writes":
            log[0].writelines(f"{id}\n" for id in ids)
            log[0].flush()
    return [{"observed": [{"id": id, "reached": "committed"} for id in ids]}]


def serve(channel):
    for line in channel.makefile("r", encoding="utf-8", newline="\n"):
        question = json.loads(line)
        answers = submit(question) if question["do"] == "submit" else control(question)
        channel.sendall("".join(json.dumps(answer) + "\n" for answer in answers).encode())


channels = [socket.socket(fileno=int(fd)) for fd in os.environ["ASSAY_EXEC_FDS"].split(",")]
for channel in channels[1:]:
    threading.Thread(target=serve, args=(channel,), daemon=True).start()
serve(channels[0])
