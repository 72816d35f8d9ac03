#!/usr/bin/env bash
# Runs the soak test of the sidecar (1M requests, 10k sessions, drift, evictions) and draws its figures.
# usage: docs/load/soak.sh [REQUESTS]      DRAW=1 draws what docs/load/soak.csv has, without a run
set -euo pipefail
cd "$(dirname "$0")/../.."
if [[ -z ${DRAW:-} ]]; then
	RAGPILOT_SOAK=${1:-1000000} RAGPILOT_SOAK_CSV=$PWD/docs/load/soak.csv go test -run Soak -timeout 2h ./internal/sidecar
fi
awk -F, '
	NR > 1 { n++; x[n] = $1; y[1, n] = $2; y[2, n] = $3; y[3, n] = $4; y[4, n] = $5 }
	END {
		split("heap, MiB;own time p50, µs;own time p99, µs;hit ratio", title, ";")
		print "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"720\" height=\"520\" font-family=\"sans-serif\" font-size=\"12\">"
		print "<style>text{fill:#555}path{fill:none;stroke:#2a6f97;stroke-width:2}line{stroke:#999}</style>"
		for (k = 1; k <= 4; k++) {
			top = 0
			for (i = 1; i <= n; i++) if (y[k, i] > top) top = y[k, i]
			left = 60 + (k - 1) % 2 * 350; base = 220 + int((k - 1) / 2) * 250
			printf "<text x=\"%d\" y=\"%d\">%s</text><line x1=\"%d\" y1=\"%d\" x2=\"%d\" y2=\"%d\"/>", left, base - 190, title[k], left, base, left + 280, base
			printf "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">%.4g</text><text x=\"%d\" y=\"%d\" text-anchor=\"end\">0</text>", left - 6, base - 170, top, left - 6, base
			printf "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">%d requests</text><path d=\"", left + 280, base + 16, x[n]
			for (i = 1; i <= n; i++) printf "%s%.1f %.1f", i == 1 ? "M" : "L", left + 280 * x[i] / x[n], base - 175 * y[k, i] / top
			print "\"/>"
		}
		print "</svg>"
	}' docs/load/soak.csv >docs/load/soak.svg
