#!/usr/bin/env bash
# Runs an S3-compatible store in a folder of its own until its input ends.
#
#   seaweed.sh WEED PORT...    eight free ports, the last but one is that of S3
#
# Prints the folder when the store answers. On "bucket NAME" it makes a bucket
# and prints its name. What it started and made is gone when it ends.
set -euo pipefail

weed=$1
shift
ports=("$@")
s3=${ports[6]}
folder=$(mktemp -d "${TMPDIR:-/tmp}/cofferdam-s3-XXXXXX")
child=
finish() {
    if [ -n "$child" ]; then
        kill -KILL "$child" 2>/dev/null || true
        wait "$child" 2>/dev/null || true
    fi
    rm -rf "$folder"
}
trap finish EXIT

mkdir "$folder/data"
cat >"$folder/s3.json" <<'JSON'
{"identities": [{"name": "test", "credentials": [{"accessKey": "the-id", "secretKey": "the-secret"}],
 "actions": ["Admin", "Read", "Write", "List", "Tagging"]}]}
JSON
# Every bucket has volumes of its own; one of each is enough here.
export WEED_MASTER_VOLUME_GROWTH_COPY_1=1
"$weed" -logdir="$folder" server -dir="$folder/data" -ip=127.0.0.1 -ip.bind=127.0.0.1 \
    -master.port="${ports[0]}" -master.port.grpc="${ports[1]}" \
    -volume.port="${ports[2]}" -volume.port.grpc="${ports[3]}" \
    -filer -filer.port="${ports[4]}" -filer.port.grpc="${ports[5]}" \
    -s3 -s3.port="$s3" -s3.port.grpc="${ports[7]}" -s3.config="$folder/s3.json" \
    -s3.port.iceberg=0 -s3.port.lance=0 -master.telemetry=false \
    -master.volumeSizeLimitMB=64 -volume.max=500 >"$folder/log" 2>&1 </dev/null &
child=$!

make_bucket() {
    curl -sf -o /dev/null -X PUT --aws-sigv4 aws:amz:us-east-1:s3 --user the-id:the-secret \
        "http://127.0.0.1:$s3/$1"
}

for _ in $(seq 300); do
    kill -0 "$child" 2>/dev/null || { cat "$folder/log" >&2; exit 1; }
    make_bucket first && break
    sleep 0.2
done
printf '%s\n' "$folder"

while read -r order name; do
    case $order in
        bucket)
            make_bucket "$name"
            printf '%s\n' "$name"
            ;;
    esac
done
