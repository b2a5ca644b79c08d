"""A WebSocket server for tests: calls by id, in any order and in fragments, and a path where each message is answered in turn.

Usage: server.py HOST PORT [CERTIFICATE KEY]; server.py --imports"""
import json
import random
import ssl
import sys
import threading

from websockets.sync.server import serve


def handler(connection):
    path = connection.request.path
    if path == "/turn":
        for message in connection:
            connection.send(json.dumps({"kind": "tick"}))
            connection.send(message if isinstance(message, bytes) else json.dumps({"kind": "done", "of": message}))
        return
    if path == "/token" and connection.request.headers.get("Authorization") != "Bearer s3cret-token":
        return connection.close(1008, "no token")
    for message in connection:
        call = json.loads(message)
        method, answer = call["method"], {"id": call["id"], "result": {"ok": True, "method": call["method"]}}
        if method == "close":
            return connection.close(1013, "full")
        if method == "fail":
            answer = {"id": call["id"], "error": {"code": -32000, "message": "no funds"}}
        connection.send(json.dumps({"event": "tick"}))
        connection.ping()
        text = json.dumps(answer)
        if method == "later":
            # In another order than they were asked in, and each without another's help.
            threading.Timer(random.random() / 20, connection.send, [text]).start()
            continue
        cut = len(text) // 2
        connection.send([text[:cut], text[cut:]])


def main(host, port, *files):
    context = None
    if files:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*files)
    def select(connection, offered):
        return "json" if "json" in offered else None

    with serve(handler, host, int(port), ssl=context, subprotocols=["json"], select_subprotocol=select) as server:
        server.serve_forever()


if sys.argv[1] != "--imports":
    main(*sys.argv[1:])
