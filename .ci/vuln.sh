#!/usr/bin/env bash
# Known vulnerabilities in what our code calls. They are those of Go's database, or, where that cannot be reached, of its source as
# .ci/vuln/database.txt pins it. What .ci/vuln/accepted.txt names is accepted, and must still be found. Exits 3 if something else is found.
set -euo pipefail
cd "$(dirname "$0")/.."

bin=$(.ci/tools.sh)
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
offline='vuln\.go\.dev|dial tcp|no such host|proxyconnect|Forbidden|i/o timeout|connection refused|GOPROXY=off'

database=()
if updated=$(timeout 30 "$bin/govulncheck" -version 2>/dev/null | sed -n 's/^DB updated: //p') && [[ -n $updated ]]; then
	echo "database: vuln.go.dev, of $updated"
else
	read -r module version sum < <(grep -v '^#' .ci/vuln/database.txt)
	if ! go mod download -json "$module@$version" >"$tmp/module" 2>"$tmp/log"; then
		cat "$tmp/log" "$tmp/module"
		grep -qE "$offline" "$tmp/log" "$tmp/module" || exit 1
		echo "not run: govulncheck (neither its database nor that one's source can be reached)"
		exit 77
	fi
	if ! grep -qF "\"Sum\": \"$sum\"" "$tmp/module"; then
		cat "$tmp/module"
		echo "$module $version is not what .ci/vuln/database.txt says"
		exit 1
	fi
	# Of a folder of entries without an index govulncheck makes that itself.
	database=(-db "file://$(sed -nE 's/^.*"Dir": "(.*)",?$/\1/p' "$tmp/module")/data/osv")
	echo "database: $module, of ${version:7:4}-${version:11:2}-${version:13:2} (vuln.go.dev cannot be reached)"
fi
if ! "$bin/govulncheck" -tags stores -format json "${database[@]}" ./... >"$tmp/found" 2>"$tmp/log"; then
	cat "$tmp/log"
	grep -qE "$offline" "$tmp/log" || exit 1
	echo "not run: govulncheck (its database cannot be reached any more)"
	exit 77
fi
go build -C .ci/tools -o "$tmp/vulnreport" ./vulnreport
"$tmp/vulnreport" -accepted .ci/vuln/accepted.txt <"$tmp/found"
