#!/usr/bin/env bash
# KL from a full prefill by the length of blocks (64, 128, 256, 512 tokens), naive and with 20 % computed again, with SmolLM2-135M-Instruct on the
# first texts of engines/local/internal/runner/testdata/texts.txt: TEXTS of them (2, up to 24), one to two minutes a text on one core.
set -euo pipefail
cd "$(dirname "$0")/../.."
go test -count=1 -timeout 2h -v -run '^TestBlockSizes$' ./engines/local/internal/runner -sweep-texts "${TEXTS:-2}" |
	sed -nE 's/^ +texts_test.go:[0-9]+: //p; /^(---|ok|FAIL)/p'
