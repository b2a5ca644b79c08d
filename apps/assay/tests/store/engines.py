"""Asks a query engine the query that docs/scale.md has for it, of run folders in a store.

engines.py ENGINE PAGE FOLDER ADDRESS: the store's folder on this host, and its HTTP address for the engine that speaks S3;
AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY are its key. Prints {outcome: [rows, p99_ms]}; ends with 77 without the engine.
"""

import json
import os
import re
import sys


def duckdb(query, folder, _):
    import duckdb

    return duckdb.sql(query.replace("s3://BUCKET/FOLDER", folder)).fetchall()


def clickhouse(query, _, address):
    from chdb import session

    key = ", ".join(f"'{os.environ[name]}'" for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"))
    query = query.replace("https://STORE/BUCKET/FOLDER", address).replace("parquet')", f"parquet', {key})")
    # rclone's server writes the same ETag with quotes and without.
    query += " settings s3_validate_etag_on_read = 0"
    said = json.loads(session.Session().query(query, "JSON").bytes())
    return [(row["outcome"], int(row["rows"]), row["p99_ms"]) for row in said["data"]]


def spark(query, folder, _):
    from pyspark.sql import SparkSession

    spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
    try:
        return [tuple(row) for row in spark.sql(query.replace("s3a://BUCKET/FOLDER", folder)).collect()]
    finally:
        spark.stop()


engine, page, folder, address = sys.argv[1:]
text = open(page, encoding="utf-8").read()
query = re.search(rf"```sql file={engine}\.sql\n(.*?)```", text, re.DOTALL).group(1)
try:
    rows = globals()[engine](query, folder, address)
except ImportError as error:
    sys.exit((print(error, file=sys.stderr), 77)[1])
print(json.dumps({outcome: [rows, p99] for outcome, rows, p99 in rows}))
