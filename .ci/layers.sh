#!/usr/bin/env bash
# Proves that the direction of imports is enforced: forbidden imports in a copy of the tree must be reported by
# depguard. Then lists what the core really depends on.
set -euo pipefail
cd "$(dirname "$0")/.."

bin=$(.ci/tools.sh)
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
git ls-files -z -co --exclude-standard | tar --null --ignore-failed-read -cf - -T - 2>/dev/null | tar -xf - -C "$tmp"
module=$(go list -m)

# expect <folder> <package> <import>: a file in folder that imports it is reported.
expect() {
	local file=$tmp/$1/zz_forbidden.go out
	printf 'package %s\n\nimport _ "%s"\n' "$2" "$3" >"$file"
	out=$(cd "$tmp" && "$bin/golangci-lint" run --enable-only depguard --max-same-issues 0 "./$1" 2>&1) || true
	rm "$file"
	if ! grep -q "zz_forbidden.go.*$3.*(depguard)" <<<"$out"; then
		printf 'not reported: %s importing %s\n%s\n' "$1" "$3" "$out"
		return 1
	fi
	echo "reported as it should be: $1 importing $3"
}
expect contextpilot contextpilot github.com/tmc/langchaingo/schema
expect contextpilot contextpilot github.com/blevesearch/bleve/v2
expect conversation conversation github.com/tmc/langchaingo/schema
expect conversation conversation github.com/tidwall/gjson
expect stabilise stabilise github.com/tmc/langchaingo/schema
expect engines engines "$module/retriever/bleve"
expect engines engines github.com/tmc/langchaingo/schema
expect retriever/bleve bleve "$module/engines"
expect retriever/bleve bleve github.com/spf13/cobra
expect engines engines "$module/internal/lab/trace"
expect engines engines "$module/internal/sidecar/tenant"
expect internal/sidecar/proxy proxy "$module/internal/sidecar/settings"
expect internal/sidecar/proxy proxy "$module/internal/lab/trace"
expect memory memory "$module/internal/testkit"
expect ragpilottest ragpilottest "$module/contextpilot"
expect prefixdiff prefixdiff "$module/contextpilot"
expect batch/table table "$module/engines"
expect batch/table table github.com/qdrant/go-client/qdrant
expect batch batch github.com/jackc/pgx/v5
expect batch/internal/queue queue "$module/batch/table"
expect batch/internal/dispatch dispatch github.com/riverqueue/river
expect examples/batch main "$module/internal/prompt/tokens"

# Adapters are modules of their own, which the rules above do not cover.
if git grep -n "\"$module/internal/" -- adapters; then
	echo "adapters must not import internal packages"
	exit 1
fi
echo "adapters import no internal package"

# A program with these three compiles the client of no store, browser or collector.
heavy=$(go list -deps ./contextpilot ./retriever ./engines/langchain |
	grep -E 'bleve|qdrant|elastic|sqlite|jackc/pgx|redis|chromedp|prometheus|go.opentelemetry.io/otel/sdk' || true)
if [[ -n $heavy ]]; then
	printf 'contextpilot, retriever or engines/langchain depends on:\n%s\n' "$heavy"
	exit 1
fi
echo "contextpilot, retriever and engines/langchain need the client of no store"

# The hash module brings one of its own.
foreign=$(go list -deps -f '{{if not .Standard}}{{.ImportPath}}{{end}}' ./contextpilot |
	grep -vE "^($module/(contextpilot|internal)(/|\$)|github.com/zeebo/xxh3\$|github.com/klauspost/cpuid/v2\$)" || true)
if [[ -n $foreign ]]; then
	printf 'contextpilot depends on:\n%s\n' "$foreign"
	exit 1
fi
echo "contextpilot depends on the standard library, our own packages and xxh3 only"

# Every package that others can import explains itself and shows its use.
for dir in $(go list -f '{{if and (ne .Name "main") .GoFiles}}{{.Dir}}{{end}}' ./... | grep -v /internal); do
	if [[ ! -f $dir/doc.go ]] || ! grep -qs '^func Example' "$dir"/*_test.go; then
		echo "${dir#"$PWD"/} lacks doc.go or an Example"
		exit 1
	fi
done
echo "every public package has doc.go and an Example"
