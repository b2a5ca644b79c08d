"""A program that speaks the protocol of docs/exec.md and keeps its ledger in the way of its first argument."""
import json, os, socket, sys, threading

way = sys.argv[1]
lock, stored, asked = threading.Lock(), [], [0]


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
    return ledger() if question["do"] == "ledger" else [{"did": question["do"]}]


def submit(question):
    ids = [transaction["id"] for transaction in question["tx"]]
    with lock:
        stored.extend(ids)
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
