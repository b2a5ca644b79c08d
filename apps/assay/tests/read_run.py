"""Reads a run folder with other people's readers and prints what they find, as one JSON document.

    python3 read_run.py RUN_FOLDER TRIAL_PATH RESULT_SCHEMA

DuckDB and pyarrow read the rows, hdrh the interval log, jsonschema the result. Nothing of Assay is used, nothing
is written, and nothing is judged but whether summary.json is of its schema. `--imports` only tries the readers.
"""

import json
import math
import os
import sys

import duckdb
import jsonschema
import pyarrow.parquet
from hdrh.histogram import HdrHistogram
from hdrh.log import HistogramLogReader

QUANTILES = (0.5, 0.9, 0.95, 0.99)
SECOND_NS = 1_000_000_000
HIGHEST_NS = 24 * 3600 * SECOND_NS


def by_duckdb(path, notes, start, end):
    """Counts by outcome, and exact quantiles of the response time, of the measured window."""
    connection = duckdb.connect()
    inside = f"FROM '{path}' WHERE due_ns >= {start} AND due_ns < {end} AND stream = 0"
    ask = lambda query: connection.execute(query).fetchall()
    stage = json.loads(notes["assay.stages"])[-1]
    latency = f"{stage}_after_due_ns"
    return {
        "columns": [name for name, *_ in ask(f"DESCRIBE SELECT * FROM '{path}'")],
        "outcomes": dict(ask(f"SELECT outcome, count(*) {inside} GROUP BY outcome")),
        "classes": dict(ask(f"SELECT class, count(*) {inside} AND outcome = 'rejected' GROUP BY class")),
        "quantiles": [
            ask(f"SELECT quantile_disc({latency}, {q}) {inside} AND {latency} IS NOT NULL")[0][0]
            for q in QUANTILES
        ],
        "sum": str(ask(f"SELECT sum({latency})::HUGEINT {inside}")[0][0]),
    }


def by_hdrh(path, stage):
    """All intervals of a stage, merged: the log holds what was due in the measured window, whenever it was answered."""
    log = HistogramLogReader(path, HdrHistogram(1, HIGHEST_NS, 3))
    merged, intervals = HdrHistogram(1, HIGHEST_NS, 3), 0
    while (interval := log.get_next_interval_histogram()) is not None:
        if interval.get_tag() == stage:
            merged.add(interval)
            intervals += 1
    count = merged.get_total_count()
    # Of a percentile it rounds the rank; the nearest rank is the next one above.
    share = lambda q: 100 * math.ceil(q * count) / max(count, 1)
    return {
        "intervals": intervals,
        "count": count,
        "quantiles": [merged.get_value_at_percentile(share(q)) for q in QUANTILES],
    }


def main(run, trial, schema):
    folder = os.path.join(run, trial)
    with open(os.path.join(folder, "trial.json"), encoding="utf-8") as file:
        facts = json.load(file)
    declared = facts["declared"]
    with open(os.path.join(run, "summary.json"), encoding="utf-8") as file:
        summary = json.load(file)
    with open(schema, encoding="utf-8") as file:
        schema = json.load(file)
    validator = jsonschema.validators.validator_for(schema)
    validator.check_schema(schema)
    mistakes = [f"{e.json_path}: {e.message[:200]}" for e in validator(schema).iter_errors(summary)]
    rows = os.path.join(folder, "transactions.parquet")
    parquet = pyarrow.parquet.ParquetFile(rows)
    notes = {k.decode(): v.decode() for k, v in (parquet.metadata.metadata or {}).items()}
    start, end = declared["measure_start"], declared["measure_end"]
    print(json.dumps({
        "schema_mistakes": mistakes,
        "pyarrow": {"rows": parquet.read().num_rows, "metadata_rows": parquet.metadata.num_rows},
        "duckdb": by_duckdb(rows, notes, start, end),
        "hdrh": by_hdrh(os.path.join(folder, "latency.hlog"), declared["stages"][declared["final_stage"]]),
    }, indent=1, sort_keys=True))


if __name__ == "__main__" and sys.argv[1:] != ["--imports"]:
    main(*sys.argv[1:])
