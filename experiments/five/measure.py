#!/usr/bin/env python3
"""The table of this folder's README, and pairs of nginx that are the same or differ by a tenth of the work.

    experiments/five/measure.py table [--toy] [NAME ...]
    experiments/five/measure.py pairs COUNT [--toy]

It needs `target/release/assay`, and nginx, which it starts on 127.0.0.1:8090 to 8092 and ends again. Each figure comes from
a command of `assay`, which is printed before it is run; run folders stay under target/five, without what nodes kept. `table` prints Markdown;
a system whose program is not on this machine is skipped by name, and one that could not be run otherwise makes the exit code 1.
"""

import contextlib
import itertools
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
ASSAY = ROOT / "target/release/assay"
RUNS = ROOT / "target/five"
SYSTEMS = ["kv", "atomizer", "object-ledger", "eth-gateway", "cometbft", "redis", "nginx"]
HAVE_DISKS = {"kv", "redis"}
# Where a search begins, a second: about what the system took, so that most of its time is spent near the limit.
FIRST = {"kv": 32000, "atomizer": 64000, "object-ledger": 64000, "eth-gateway": 6400, "cometbft": 400, "redis": 64000, "nginx": 16000}
# Programs that are not built from the checkout.
PROGRAMS = {"redis": "redis-server", "nginx": "nginx"}
# One search ends within this, and one trial.
SEARCH_SECONDS_MAX, TRIAL_SECONDS_MAX = 1800, 300
HEADS = ["capacity", "limit", "repeated", "p50 at half", "p99 at half", "p50 to each rung", "processor time each", "kill", "power cut"]
CELLS = len(HEADS)
# Bytes that nginx compresses anew for each request.
BODY = 50_000


class NotRun(Exception):
    """A command gave no result document; says why."""


def answers():
    """Tells whether something answers on the port of nginx."""
    try:
        urllib.request.urlopen("http://127.0.0.1:8090/", timeout=1).read()
        return True
    except OSError:
        return False


def started(folder):
    """Starts nginx: 8090 a small file; 8091 and 8092 text that it compresses, on 8092 a tenth more of it."""
    words = ["debit", "credit", "transfer", "account", "ledger", "amount", "block", "receipt"]
    draw = random.Random(1)
    text = " ".join(f"{draw.choice(words)} {draw.randrange(10**6)}" for _ in range(BODY // 8))
    for name, body in [("small", "a small file\n"), ("one", text[:BODY]), ("more", text[: BODY * 11 // 10])]:
        (folder / name).mkdir()
        (folder / name / "index.html").write_text(body)
    servers = [(8090, "small", "off"), (8091, "one", "on"), (8092, "more", "on")]
    listen = "".join(
        f"server {{ listen 127.0.0.1:{port}; root {folder}/{name}; gzip {gzip}; gzip_comp_level 6; gzip_proxied any; }}\n"
        for port, name, gzip in servers
    )
    user = "user root;\n" if os.geteuid() == 0 else ""
    (folder / "nginx.conf").write_text(
        f"{user}daemon off;\npid {folder}/nginx.pid;\nerror_log stderr;\nworker_processes 1;\nevents {{}}\n"
        f"http {{ access_log off; default_type text/html;\nclient_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy;\n"
        f"fastcgi_temp_path {folder}/fastcgi; uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;\n{listen}}}\n"
    )
    if answers():
        raise SystemExit("something answers on 127.0.0.1:8090 already: end it")
    server = subprocess.Popen(["nginx", "-p", folder, "-c", folder / "nginx.conf"], stderr=subprocess.DEVNULL)
    for _ in range(100):
        if answers():
            return server
        time.sleep(0.1)
    server.terminate()
    raise SystemExit("nginx did not answer on 127.0.0.1:8090")


@contextlib.contextmanager
def nginx():
    """The server while it is needed."""
    with tempfile.TemporaryDirectory(prefix="five-") as folder:
        server = started(pathlib.Path(folder))
        try:
            yield server
        finally:
            server.terminate()
            server.wait()


def assay(words, seconds):
    """Runs assay; gives its exit code and the run folder's name for figures, or why there are none."""
    command = ["run", *words, "--no-calibration", "--progress", "none", "--json", "--runs", str(RUNS)]
    print("$ assay", " ".join(f"'{it}'" if " " in it or "<" in it else it for it in command), file=sys.stderr)
    # In a session of its own, so that Ctrl-C reaches it once, from here.
    process = subprocess.Popen(
        [ASSAY, *command], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        said, complaint = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        # The same as Ctrl-C: nodes are ended, and the record is kept.
        process.send_signal(signal.SIGINT)
        said, complaint = process.communicate()
    except KeyboardInterrupt:
        process.send_signal(signal.SIGINT)
        process.communicate()
        raise
    # A cell needs the figures alone; nodes leave gigabytes.
    for run in RUNS.iterdir():
        for nodes in run.glob("**/nodes"):
            shutil.rmtree(nodes, ignore_errors=True)
    # Otherwise the disk frees them while the next trial loads it.
    os.sync()
    try:
        return process.returncode, json.loads(said), complaint
    except json.JSONDecodeError:
        return process.returncode, None, complaint


def ms(ns):
    if ns is None:
        return "–"
    return f"{ns / 1e9:.3g} s" if ns >= 1e9 else f"{ns / 1e6:.3g} ms"


def measured(name, toy):
    """The cells of one system."""
    of = f"experiments/five/{name}.toml"
    scale = ["--profile", "toy"] if toy else []
    find = ["--find", "p99 < 50ms", "--set", "search.trials=1", "--set", "search.width=45%", "--set", "search.margin=20%"]
    find += ["--set", f"search.bracket={'1s' if toy else '15s'}"]
    if not toy:
        find += ["--rate", f"{FIRST[name]}/s"]
    code, run, complaint = assay([of, *scale, *find], SEARCH_SECONDS_MAX)
    if run is None:
        why = complaint.strip().splitlines()[-1] if complaint.strip() else f"exit {code}"
        raise NotRun(why)
    search = run["search"]
    capacity = search["confirmed"]
    if capacity is None:
        return [f"none confirmed ({search['end'] or 'interrupted'})", str(search["limit"] or "–")] + ["–"] * (CELLS - 2)
    cells = [f"{capacity:,g}/s, not {search['refuted'] or 0:,g}/s", str(search["limit"])]
    half = ["--rate", f"{capacity / 2:.2f}/s"]
    again = ["--rate", f"{capacity:.2f}/s"]
    code, _, _ = assay([of, *scale, "--threshold", "p99 < 50ms", *again], TRIAL_SECONDS_MAX)
    cells.append({0: "met", 97: "cannot tell", 99: "not met"}.get(code, f"exit {code}"))
    shorter = ["--duration", "2s", "--warmup", "500ms"] if toy else ["--duration", "20s"]
    _, run, _ = assay([of, "--profile", "half", *half, *shorter], TRIAL_SECONDS_MAX)
    if run is None or not run["settings"][0]["trials"]:
        return cells + ["–"] * (CELLS - len(cells))
    trial = run["settings"][0]["trials"][0]
    final = next(it for it in trial["latency"] if it["stage"] == trial["final_stage"])
    at = {it["name"]: it["unconditional_ns"] for it in final["response"]["quantiles"]}
    rungs = []
    for rung in trial["latency"]:
        p50 = next((it["value_ns"] for it in rung["response"]["quantiles"] if it["name"] == "p50"), None)
        rungs.append(f"{rung['stage']} {ms(p50)}")
    cpu = trial["processor"]["ns_per_transaction"]
    cells += [ms(at.get("p50")), ms(at.get("p99")), ", ".join(rungs), "–" if cpu is None else f"{cpu / 1e3:.0f} µs"]
    for profile in ["kill", "power"]:
        if name == "nginx" or (profile == "power" and name not in HAVE_DISKS):
            cells.append("–")
            continue
        # The fault comes after ten seconds and lasts two.
        shorter = ["--duration", "15s" if toy else "20s"]
        _, run, _ = assay([of, "--profile", profile, *half, *shorter], TRIAL_SECONDS_MAX)
        if run is None or not run["settings"][0]["trials"]:
            cells.append("not run")
            continue
        trial = run["settings"][0]["trials"][0]
        silences = [it["silence_ns"] for it in trial["faults"] if it["silence_ns"] is not None]
        fates = trial["fates"]
        held = "no ledger" if fates is None else f"{fates['lost']} lost, {fates['duplicate']} doubled"
        cuts = [it["began"] for it in trial["faults"] if it["began"]["what"] == "power_cut"]
        if cuts:
            unsynced = sum(it["lost_bytes"] + it["kept_bytes"] for it in cuts)
            held += f", {unsynced:,} bytes unsynced" if unsynced else ", all was synced: the cut tested nothing"
        cells.append(f"{ms(max(silences, default=None))} of silence, {held}")
    return cells


def table(names, toy):
    print("| system | " + " | ".join(HEADS) + " |")
    print("| --- | " + " | ".join(["---"] * CELLS) + " |")
    broken = []
    for name in names:
        program = PROGRAMS.get(name)
        if program and shutil.which(program) is None:
            print(f"SKIPPED {name}: no {program} on the PATH", file=sys.stderr)
            cells = [f"skipped: no {program} here"] + ["–"] * (CELLS - 1)
        else:
            try:
                cells = measured(name, toy)
            except NotRun as why:
                # A program that is not installed is named by assay, with how to get it.
                is_missing = "assay doctor --install" in str(why)
                print(f"{'SKIPPED' if is_missing else 'NOT RUN'} {name}: {why}", file=sys.stderr)
                if not is_missing:
                    broken.append(f"{name}: {why}")
                cells = [f"{'skipped' if is_missing else 'not run'}: {why}"] + ["–"] * (CELLS - 1)
        print("| " + " | ".join([name, *cells]) + " |", flush=True)
    if broken:
        raise SystemExit("not run: " + "; ".join(broken))


def pairs(server, count, toy):
    """A/A and A/B by turns: how many are called worse, better, the same, inconclusive."""
    length = "4s" if toy else "10s"
    worker = pathlib.Path(f"/proc/{server.pid}/task/{server.pid}/children").read_text().split()[0]
    kinds = [("the same", 8091), ("a tenth more to compress", 8092)]
    answers, ratios = {words: [] for words, _ in kinds}, {words: [] for words, _ in kinds}
    # One pair of each kind after the other: what changes on the machine meets both kinds.
    for seed, (words, other) in itertools.product(range(1, count + 1), kinds):
        command = ["http://127.0.0.1:8091/", "--against", f"http://127.0.0.1:{other}/", "--rate", "100/s", "--duration", length]
        command += ["--trials", "12", "--set", "load.warmup=1s", "--set", "load.arrival=poisson"]
        command += ["--seed", str(seed)]
        command += ["-H", "Accept-Encoding: gzip", "--pid", worker]
        before = set(RUNS.glob("*/comparison.json"))
        code, _, complaint = assay(command, TRIAL_SECONDS_MAX)
        made = set(RUNS.glob("*/comparison.json")) - before
        if not made:
            raise SystemExit(f"no comparison (exit {code}): {complaint}")
        file = made.pop()
        found = json.loads(file.read_text())
        answers[words].append(found["change"])
        time_each = next((it for it in found["numbers"] if it["name"] == "processor time"), None)
        if time_each and time_each["effect"] is not None:
            ends = [f"{it:.2f}" if it is not None else "open" for it in (time_each["low"], time_each["high"])]
            ratios[words].append(f"{time_each['effect']:.2f} ({ends[0]}–{ends[1]})")
        print(f"{words}: {found['change']}, {(ratios[words] or ['–'])[-1]}, {file.parent}", file=sys.stderr, flush=True)
    print("| pair | worse | better | equivalent | inconclusive | processor time |")
    print("| --- | ---: | ---: | ---: | ---: | --- |")
    for words, _ in kinds:
        counts = [str(answers[words].count(it)) for it in ("worse", "better", "equivalent", "inconclusive")]
        print(f"| {words} | {' | '.join(counts)} | {', '.join(ratios[words])} |", flush=True)


def main(words):
    toy = "--toy" in words
    words = [it for it in words if it != "--toy"]
    # Ends as with Ctrl-C, so that nothing that it started stays; a shell starts what it runs in the background without SIGINT.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.default_int_handler)
    if not ASSAY.exists():
        raise SystemExit("expected target/release/assay; build it: cargo build --release -p assay")
    RUNS.mkdir(parents=True, exist_ok=True)
    match words:
        case ["table", *names] if set(names) <= set(SYSTEMS):
            names = names or SYSTEMS
            has_nginx = "nginx" in names and shutil.which("nginx") is not None
            with nginx() if has_nginx else contextlib.nullcontext():
                table(names, toy)
        case ["pairs", count] if count.isdigit():
            with nginx() as server:
                pairs(server, int(count), toy)
        case _:
            raise SystemExit(__doc__)


main(sys.argv[1:])
