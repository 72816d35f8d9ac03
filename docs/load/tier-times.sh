#!/usr/bin/env bash
# The simulator's tiers beside the local engine with files: 60 requests, and others for the constants, three times. It writes
# docs/load/tier-times.jsonl and says what the simulator predicts from it. Needs the model smollm2; the machine should have nothing else to do.
set -euo pipefail
cd "$(dirname "$0")/../.."
out=${1:-$PWD/docs/load/tier-times.jsonl}
export CGO_ENABLED=0
RAGPILOT_TIERS_RECORD=$out go test -count=1 -v -timeout 30m -run '^TestRecordTiers$' ./internal/lab/load
RAGPILOT_TIERS_RECORDED=$out go test -count=1 -v -run '^TestRecordedTiers$' ./internal/lab/load
