#!/usr/bin/env bash
# Installs, builds, serves the demo model on two tensor-parallel ranks and asks it one question.
# Stays in the foreground until Ctrl-C; with --once it stops after the answer.
# LEVIN_PORT and LEVIN_GRPC_PORT choose the ports (8000 and 50051).
set -euo pipefail
cd "$(dirname "$0")"

once=no
case "${1:-}" in
  --once) once=yes ;;
  "") ;;
  *) echo "quickstart.sh: unknown argument '$1', expected --once or nothing" >&2; exit 2 ;;
esac
port=${LEVIN_PORT:-8000} grpc_port=${LEVIN_GRPC_PORT:-50051}
unset LEVIN_PORT LEVIN_GRPC_PORT

./install_packages.sh
[ -f build/release/build.ninja ] || cmake --preset release -DLEVIN_TESTS=OFF >/dev/null
cmake --build --preset release --target levin levin-router levin-worker

log=$(mktemp)
server=
stop() {
  if [ -n "$server" ]; then kill -TERM "$server" 2>/dev/null || true; wait "$server" || true; server=; fi
  rm -f "$log"
}
trap 'stop; exit 130' INT TERM
trap stop EXIT

build/release/bin/levin serve models/levin-demo --tensor-parallel-size 2 --port "$port" --grpc-port "$grpc_port" >"$log" &
server=$!
until grep -q '^levin: ready ' "$log"; do
  kill -0 "$server" 2>/dev/null || { wait "$server" && code=0 || code=$?; server=; exit "$code"; }
  sleep 0.1
done
cat "$log"
url=$(sed -n 's/^levin: ready \(http:[^ ]*\).*/\1/p' "$log")

question='What is lightning attention?'
body="{\"model\":\"levin-demo\",\"stream\":true,\"messages\":[{\"role\":\"user\",\"content\":\"$question\"}]}"
echo
echo "> $question"
curl -sSN --fail-with-body "$url/v1/chat/completions" -H 'Content-Type: application/json' -d "$body" | python3 -c '
import json, sys
answer = ""
for line in sys.stdin:
    if not line.startswith("data: ") or line.startswith("data: [DONE]"): continue
    event = json.loads(line[6:])
    if "error" in event: sys.exit("quickstart.sh: " + event["error"]["message"])
    for choice in event["choices"]:
        text = choice["delta"].get("content") or ""
        answer += text
        print(text, end="", flush=True)
print()
sys.exit(0 if answer else "quickstart.sh: the answer was empty")'
echo
echo "Go on with:"
echo "  curl -N $url/v1/chat/completions -H 'Content-Type: application/json' -d '$body'"
if [ $once = yes ]; then
  kill -TERM "$server"
  wait "$server" && code=0 || code=$?
  server=
  exit "$code"
fi
echo "Ctrl-C stops the server."
wait "$server"
