"""Sends two transfers through the gateway and follows them. Arguments: anvil, the gateway's program."""

import asyncio, json, subprocess, sys, time, urllib.request

from eth_account import Account
from web3 import AsyncWeb3, Web3, WebSocketProvider

KEY = "0x59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d"


def started(words, mark):
    child = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    for line in child.stdout:
        if mark in line:
            return child, line.split(mark)[1].split()[0]
    raise SystemExit(f"{words[0]} does not say where it serves")


def rest(base, path, body=None):
    data = json.dumps(body).encode() if body is not None else None
    with urllib.request.urlopen(urllib.request.Request(base + path, data=data)) as answer:
        return answer.status, json.loads(answer.read())


async def heads(base, count, other):
    async with AsyncWeb3(WebSocketProvider(base.replace("http", "ws") + "/rpc")) as w:
        await w.eth.subscribe("newHeads")
        seen = []
        async for message in w.socket.process_subscriptions():
            seen.append(message["result"]["number"])
            other(seen[-1])
            if len(seen) == count:
                return seen


def main(anvil, gateway):
    node, at = started([anvil, "--port", "0", "--block-time", "1", "--slots-in-an-epoch", "1"], "Listening on ")
    try:
        served, base = started(
            [gateway, "--listen", "127.0.0.1:0", "--upstream", f"http://{at}/"], "ready http="
        )
        try:
            follow("http://" + base)
        finally:
            served.kill()
    finally:
        node.kill()


def follow(base):
    w = Web3(Web3.HTTPProvider(base + "/rpc"))
    account = Account.from_key(KEY)
    assert w.eth.chain_id == rest(base, "/chainid")[1]["chainId"] == 31337

    def signed(wei):
        return account.sign_transaction({
            "chainId": w.eth.chain_id, "nonce": w.eth.get_transaction_count(account.address), "gas": 21000,
            "to": "0x000000000000000000000000000000000000dEaD", "value": wei, "type": 2,
            "maxFeePerGas": w.eth.get_block("latest")["baseFeePerGas"] * 2 + 10**9, "maxPriorityFeePerGas": 10**9,
        })

    sent = w.eth.send_raw_transaction(signed(7).raw_transaction)
    receipt = w.eth.wait_for_transaction_receipt(sent, timeout=20)
    assert receipt["status"] == 1 and w.eth.get_transaction(sent)["value"] == 7
    status, answer = rest(base, "/tx", {"raw": signed(8).raw_transaction.to_0x_hex()})
    assert status == 202, answer
    states, deadline = [], time.monotonic() + 60
    while time.monotonic() < deadline:
        fate = rest(base, answer["fate"])[1]
        if fate["state"] not in states:
            states.append(fate["state"])
        if fate["state"] == "finalized":
            break
        time.sleep(0.05)
    assert states[0] in ("pending", "mined") and states[-1] == "finalized" and fate["succeeded"], states
    assert w.eth.get_balance("0x000000000000000000000000000000000000dEaD") == 15
    assert rest(base, "/nonce/" + account.address)[1]["nonce"] == 2
    assert rest(base, "/nonce/" + account.address + "?at=0")[1]["nonce"] == 0
    assert w.eth.get_code(account.address) == b"" and w.eth.estimate_gas({"to": account.address}) == 21000
    assert w.eth.fee_history(2, "latest")["oldestBlock"] > 0 and w.eth.get_logs({"fromBlock": 0}) == []
    assert rest(base, "/tx/0x" + "00" * 31 + "07")[1]["state"] == "unknown"
    seen = asyncio.run(asyncio.wait_for(heads(base, 2, lambda number: None), 30))
    assert seen[1] == seen[0] + 1, seen
    print(f"states {states}, heads {seen}")
    print("followed")


main(*sys.argv[1:])
