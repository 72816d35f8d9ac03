#!/usr/bin/env bash
# The tables of docs/compression.md, with SmolLM2: how questions are answered behind what was kept of texts, and what it costs in time and
# memory. About half an hour on one core; the model is fetched if it is not there (98 MB).
set -euo pipefail
cd "$(dirname "$0")/../.."

export CGO_ENABLED=0
export RAGPILOT_COMPRESS_TEXTS=${RAGPILOT_COMPRESS_TEXTS:-40} RAGPILOT_COMPRESS_SHARES=${RAGPILOT_COMPRESS_SHARES:-0.5,0.25,0.125} RAGPILOT_COMPRESS_TABLE=1
RAGPILOT_SMOLLM2=$(go run ./cmd/ragpilot model pull smollm2)
export RAGPILOT_SMOLLM2

table() { go test -count=1 -timeout 60m -v -run "$1" "$2" | sed -nE 's/^ +[a-z0-9_]+_test\.go:[0-9]+: //p'; }

echo "== answers"
table '^TestSmolLM2$' ./engines/local/internal/compress
echo
echo "== time and memory"
table '^TestSmolLM2Context(Table|Speed|Formats)$' ./engines/local
