"""Reads a trial folder with other people's readers and prints what they find, as one JSON document.

    python3 read_run.py TRIAL_FOLDER

pyarrow and DuckDB read the Parquet files, hdrh the interval log. Nothing of Assay is used, nothing is
written, and nothing is judged: this prints counts, sums and quantiles.
"""

import json
import math
import os
import sys

import duckdb
import pyarrow.parquet
from hdrh.histogram import HdrHistogram
from hdrh.log import HistogramLogReader

QUANTILES = (0.5, 0.9, 0.99, 1.0)
SUFFIX = "_after_due_ns"


def nearest_rank(values, q):
    """The smallest value with at least a fraction q of all values at or below it."""
    return values[max(0, math.ceil(q * len(values)) - 1)] if values else None


def by_pyarrow(path):
    file = pyarrow.parquet.ParquetFile(path)
    notes = {k.decode(): v.decode() for k, v in (file.metadata.metadata or {}).items()}
    table = file.read()
    found = {
        "rows": table.num_rows,
        "row_groups": file.metadata.num_row_groups,
        "columns": table.column_names,
        "types": [str(field.type) for field in table.schema],
        "notes": sorted(notes),
        "stages": json.loads(notes["assay.stages"]),
        "sum_due_ns": sum(table["due_ns"].to_pylist()),
        "latencies": {},
    }
    for name in table.column_names:
        if name.endswith(SUFFIX):
            values = sorted(v for v in table[name].to_pylist() if v is not None)
            found["latencies"][name.removesuffix(SUFFIX)] = {
                "count": len(values),
                "quantiles": [nearest_rank(values, q) for q in QUANTILES],
            }
    return found, notes


def by_duckdb(folder, notes):
    os.chdir(folder)
    connection = duckdb.connect()
    ask = lambda query: connection.execute(query).fetchall()
    found = {
        "outcomes": {f"{o}({c})" if c else o: n for o, c, n in ask(
            "SELECT outcome, class, count(*) FROM 'transactions.parquet' GROUP BY ALL")},
        "types": {name: kind for name, kind, *_ in ask("DESCRIBE SELECT * FROM 'transactions.parquet'")},
        # The query that the file itself brings: points in time instead of times after due.
        "stamps": dict(zip(
            ("due", "ready", "products", "sent", "end", "end_not_null"),
            ask("SELECT sum(due_ns)::HUGEINT::VARCHAR, sum(ready_ns)::HUGEINT::VARCHAR,"
                " sum(tx::HUGEINT * ready_ns)::HUGEINT::VARCHAR, sum(sent_ns)::HUGEINT::VARCHAR,"
                " sum(end_ns)::HUGEINT::VARCHAR, count(end_ns)"
                f" FROM ({notes['assay.sql']})")[0])),
        "bytes_in": ask("SELECT sum(bytes_in)::BIGINT FROM 'transactions.parquet'")[0][0],
        "tables": {},
    }
    for name in ("metrics", "events", "ledger"):
        if os.path.exists(f"{name}.parquet"):
            found["tables"][name] = ask(f"SELECT count(*) FROM '{name}.parquet'")[0][0]
    return found


def by_hdrh(path):
    log = HistogramLogReader(path, HdrHistogram(1, 24 * 3600 * 10**9, 3))
    tags = {}
    while (interval := log.get_next_interval_histogram()) is not None:
        tag = interval.get_tag()
        if tag not in tags:
            tags[tag] = {"histogram": HdrHistogram(1, 24 * 3600 * 10**9, 3), "intervals": 0}
        tags[tag]["histogram"].add(interval)
        tags[tag]["intervals"] += 1
    return {
        "start_s": log.get_start_time_sec(),
        "tags": {
            tag: {
                "intervals": entry["intervals"],
                "count": entry["histogram"].get_total_count(),
                "quantiles": [entry["histogram"].get_value_at_percentile(100 * q) for q in QUANTILES],
            }
            for tag, entry in tags.items()
        },
    }


def main():
    folder = os.path.abspath(sys.argv[1])
    found, notes = by_pyarrow(os.path.join(folder, "transactions.parquet"))
    print(json.dumps({
        "pyarrow": found,
        "hdrh": by_hdrh(os.path.join(folder, "latency.hlog")),
        "duckdb": by_duckdb(folder, notes),
    }, indent=1, sort_keys=True))


if __name__ == "__main__":
    main()
