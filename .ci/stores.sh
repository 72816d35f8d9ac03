#!/usr/bin/env bash
# The packages that talk to stores, against real servers (.ci/stores/servers.sh), which run on ports of their own while the
# tests do. A store whose variable (QDRANT_ADDR, ELASTICSEARCH_URL, POSTGRES_DSN, REDIS_ADDR) is set is used where it is. What
# cannot be started here is not run, and says why; with RAGPILOT_REQUIRE_STORES=1, as CI has it, that is a failure.
set -euo pipefail
cd "$(dirname "$0")/.."

if [[ ${CI:-} == true ]]; then export RAGPILOT_REQUIRE_STORES=${RAGPILOT_REQUIRE_STORES-1}; fi
RAGPILOT_STORES_RUN=$(mktemp -d)
export RAGPILOT_STORES_RUN
# Servers that a test has killed or that did not start are no error here.
trap '.ci/stores/servers.sh stop >/dev/null 2>&1 || true; rm -rf "$RAGPILOT_STORES_RUN"' EXIT

# free_port prints a port where nothing listens now.
free_port() {
	local port
	for _ in {1..100}; do
		port=$((20000 + RANDOM % 10000))
		if ! (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; then
			echo "$port"
			return
		fi
	done
	return 1
}
QDRANT_PORT=$(free_port) ELASTICSEARCH_PORT=$(free_port) VALKEY_PORT=$(free_port) POSTGRES_PORT=$(free_port)
export QDRANT_PORT ELASTICSEARCH_PORT VALKEY_PORT POSTGRES_PORT

declare -A variable=([valkey]=REDIS_ADDR [postgres]=POSTGRES_DSN [qdrant]=QDRANT_ADDR [elasticsearch]=ELASTICSEARCH_URL)
declare -A finder=([valkey]=Redis [postgres]='Postgres(Schema)?' [qdrant]=Qdrant [elasticsearch]=Elasticsearch)
result=0 packages=() absent=""
for store in valkey postgres qdrant elasticsearch; do
	name=${variable[$store]}
	# Tests find a store by internal/testkit/storetest, so what imports that for it is what needs it.
	mapfile -t users < <(grep -rlE "storetest\.${finder[$store]}\(" --include='*_test.go' . | xargs -r dirname | sort -u)
	if ((${#users[@]} == 0)); then
		echo "no test needs $store"
		continue
	fi
	code=0
	if [[ -n ${!name:-} ]]; then
		echo "$store: as $name says"
	else
		.ci/stores/servers.sh start "$store" || code=$?
	fi
	if ((code == 0)); then
		packages+=("${users[@]}")
	elif ((code == 77)) && [[ ${RAGPILOT_REQUIRE_STORES:-} != 1 ]]; then
		absent+=" $store"
	else
		result=1 absent+=" $store"
	fi
done
if ((${#packages[@]} == 0)); then
	if ((result == 0)); then exit 77; fi
	exit "$result"
fi
eval "$(.ci/stores/servers.sh env)"

# Where a store is absent, its tests skip, and the tests of the others run.
if [[ -z $absent ]]; then export RAGPILOT_REQUIRE_STORES=1; else unset RAGPILOT_REQUIRE_STORES; fi
# What fills a store for each call of each operation, measures recall, kills servers, or looks for races, is left to the step "long".
short=-short race=()
export CGO_ENABLED=0
if [[ ${RAGPILOT_LONG:-} == 1 ]]; then
	short=-short=false
	if command -v "$(go env CC)" >/dev/null; then race=(-race '-gcflags=modernc.org/...=-race=0 -dwarf=false') CGO_ENABLED=1; fi # as in the step "race"
fi
go build -C .ci/tools -o "$RAGPILOT_STORES_RUN/testreport" ./testreport
mapfile -t packages < <(printf '%s\n' "${packages[@]}" | sort -u)
forbid=""
if [[ -z $absent ]]; then forbid="make stores"; fi
# The step "clone" runs what needs no server: cases with SQLite, and in packages where each test asks for its store itself the other tests.
test_packages() { go test -tags stores -json -count=1 -timeout 40m -p 3 -skip '/sqlite$' "$@"; }
names='/^func / { name = $2; sub(/\(.*/, "", name) } /storetest\.[A-Z][A-Za-z]*\(/ && name !~ /^Benchmark/ { print name }'
whole=() single=() plain=()
for package in "${packages[@]}"; do
	if [[ $package == ./internal/lab/* ]]; then # what only measures learns nothing from the race detector
		plain+=("$package")
	elif awk "$names" "$package"/*_test.go | grep -qv '^Test'; then whole+=("$package"); else single+=("$package"); fi
done
GOGC=400 go list -export -deps -test -tags stores "${race[@]}" "${packages[@]}" >/dev/null # compiles, as in the step "race"
{
	code=0
	if ((${#whole[@]} > 0)); then test_packages $short "${race[@]}" "${whole[@]}" || code=1; fi
	if ((${#plain[@]} > 0)); then CGO_ENABLED=0 test_packages $short "${plain[@]}" || code=1; fi
	if ((${#single[@]} > 0)); then
		tests=$(for package in "${single[@]}"; do awk "$names" "$package"/*_test.go; done | sort -u | paste -sd'|')
		test_packages $short "${race[@]}" -run "^($tests)\$" "${single[@]}" || code=1
	fi
	exit "$code"
} | "$RAGPILOT_STORES_RUN/testreport" -forbid-skip "$forbid" || result=1
if [[ -n $absent ]]; then echo "without:$absent"; fi
exit "$result"
