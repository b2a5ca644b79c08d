#!/bin/sh
# Does a Kafka broker that syncs each record lose acknowledged ones when a bit of its partition's log flips? Without Assay:
# 500 records with acks = all from Kafka's own load tool, all processes killed, a bit flipped in a record in the middle of the segment,
# the broker started again, and the partition's end asked by Kafka's own tool. Takes `kafka` of assay doctor.
set -eu
kafka=$(ls -d "${ASSAY_CACHE:-$HOME/.cache/assay}"/kafka/*/kafka)
place=$(mktemp -d)
trap 'kill -9 "$broker" 2>/dev/null; rm -rf "$place"' EXIT
trap 'exit 1' TERM INT
at=127.85.3.1
mkdir "$place/data"
printf 'version=1\nnode.id=1\ncluster.id=AAAAAAAAAAAAAAAAAAAAAA\n' > "$place/data/meta.properties"
cat > "$place/broker" <<END
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@$at:9093
listeners=PLAINTEXT://$at:9092,CONTROLLER://$at:9093
advertised.listeners=PLAINTEXT://$at:9092
controller.listener.names=CONTROLLER
log.dirs=$place/data
log.flush.interval.messages=1
END
run() { "$kafka" -Xmx128m -XX:-UsePerfData -Dorg.slf4j.simpleLogger.defaultLogLevel=error "$@"; }
start() {
    "$kafka" -Xmx256m -XX:-UsePerfData -Dorg.slf4j.simpleLogger.defaultLogLevel=warn kafka.Kafka "$place/broker" \
        >> "$place/said" 2>&1 &
    broker=$!
}
end_of_partition() {
    tries=0
    until end=$(run org.apache.kafka.tools.GetOffsetShell --bootstrap-server $at:9092 --topic rot 2>/dev/null) && [ -n "$end" ]; do
        tries=$((tries + 1))
        [ $tries -lt 30 ] || { cat "$place/said"; exit 1; }
        sleep 1
    done
    echo "${end##*:}"
}
start
# One record a batch, as batches of several would be lost together.
run org.apache.kafka.tools.ProducerPerformance --topic rot --num-records 500 --record-size 64 --throughput -1 \
    --bootstrap-server $at:9092 --command-property acks=all batch.size=1 linger.ms=0 > "$place/produced"
acknowledged=$(end_of_partition)
kill -9 "$broker"
wait "$broker" 2>/dev/null || true
python3 - "$place/data/rot-0/00000000000000000000.log" <<'END'
import os, sys
with open(sys.argv[1], "r+b") as log:
    batch = os.path.getsize(sys.argv[1]) // 500
    # All batches are as long, but for two bytes: 61 bytes of a head, whose first eight no checksum has, then the record.
    at = batch * 250 + 90
    log.seek(at)
    byte = log.read(1)[0]
    log.seek(at)
    log.write(bytes([byte ^ 1]))
END
start
echo "acknowledged $acknowledged, kept $(end_of_partition)"
grep -i "corrupt\|truncat\|crc\|invalid" "$place/said" | cut -c1-400 || true
