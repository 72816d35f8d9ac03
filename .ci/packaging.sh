#!/usr/bin/env bash
# What packaging/ promises: systemd takes the unit, and the container's program runs with nothing beside it and without rights. The image is
# built of the whole Containerfile where podman or docker is set up. Elsewhere its last stage is, by Debian's podman (.ci/podman.sh): what
# that copies from the other two stages, whose images no registry may have for this machine, is made here by their own lines.
set -euo pipefail
cd "$(dirname "$0")/.."

tmp=$(mktemp -d) tool="" name=ragpilot-ci-$$
trap 'if [[ -n $tool ]]; then "$tool" rm -f "$name" >/dev/null 2>&1 || true; "$tool" rmi -f "$name" >/dev/null 2>&1 || true; fi; rm -rf "$tmp"' EXIT

# The very line of the Containerfile.
build=$(sed -nE 's/^RUN (CGO_ENABLED=0 go build .*)$/\1/p' packaging/Containerfile)
mkdir -p "$tmp/build/etc/ssl/certs" "$tmp/model" "$tmp/empty"
VERSION=v0.0.0-test bash -c "${build/-o \/ragpilot/-o $tmp/build/ragpilot}"
if [[ $("$tmp/build/ragpilot" version) != "ragpilot v0.0.0-test"* ]]; then
	echo "the Containerfile's program does not know its version"
	exit 1
fi

if command -v systemd-analyze >/dev/null; then
	sed "s|/usr/local/bin/ragpilot|$tmp/build/ragpilot|" packaging/ragpilot.service >"$tmp/ragpilot.service"
	found=$(systemd-analyze verify "$tmp/ragpilot.service" 2>&1) || { echo "$found" && exit 1; }
	if [[ -n $found ]]; then
		echo "$found"
		exit 1
	fi
	echo "systemd-analyze verify: nothing to say of ragpilot.service"
else
	echo "not run: check of ragpilot.service (no systemd-analyze)"
fi

# The key that the program wants.
key=0123456789abcdef0123456789abcdef
echo "$key" >"$tmp/key"
chmod 644 "$tmp/key"

# outside ADDRESS: asks as a client on another machine would, without a key, with a wrong one and with the right one.
outside() {
	local got
	got=$(curl -s -o /dev/null -w '%{http_code}' --max-time 5 "http://$1/stats")$(curl -s -o /dev/null -w '-%{http_code}' --max-time 5 -H 'X-Api-Key: wrong' "http://$1/stats")
	got+=$(curl -s -o /dev/null -w '-%{http_code}' --max-time 5 -H "Authorization: Bearer $key" "http://$1/stats")
	if [[ $got != 401-401-503 ]]; then # 503: there is no index yet
		echo "asked from outside: $got, want 401-401-503"
		return 1
	fi
	echo "asked from outside: no key 401, wrong key 401, key let in"
}

# recalls ADDRESS: a fact is found when it is asked for in other words, so that the sentence model must have been there.
recalls() {
	local ask=(curl -s --max-time 10 --retry 20 --retry-delay 1 -H "Authorization: Bearer $key" -H "Content-Type: application/json") fact got
	for fact in "Ana drives an old Volvo." "Ana's travel document expires in May." "Ana needs new tyres."; do
		"${ask[@]}" -o /dev/null -d "{\"messages\":\"$fact\",\"user_id\":\"ana\"}" "http://$1/memories"
	done
	got=$("${ask[@]}" -d '{"query":"When do I need a new passport?","user_id":"ana","top_k":1}' "http://$1/search")
	if [[ $got != *"travel document"* ]]; then
		echo "memories: found $got"
		return 1
	fi
	echo "memories: the sentence model finds a fact in other words"
}

if ! command -v curl >/dev/null; then
	echo "not run: container, asked from outside (no curl)"
	exit 0
fi
for candidate in podman docker; do
	if command -v "$candidate" >/dev/null && "$candidate" info >/dev/null 2>&1; then
		tool=$candidate
		break
	fi
done
if [[ -n $tool ]]; then
	what="the image"
	"$tool" build -q -f packaging/Containerfile -t "$name" --build-arg VERSION=v0.0.0-test . >/dev/null
	network=(-p 127.0.0.1::8765)
else
	code=0
	own=$(.ci/podman.sh) || code=$?
	case $code in
	0) tool=$own ;;
	77)
		echo "not run: container image (no podman and no docker, see above)"
		exit 0
		;;
	*) exit "$code" ;;
	esac
	what="the image's last stage"
	cp /etc/ssl/certs/ca-certificates.crt "$tmp/build/etc/ssl/certs/" 2>/dev/null || touch "$tmp/build/etc/ssl/certs/ca-certificates.crt"
	pull=$(sed -nE 's/^RUN \/ragpilot (model pull minilm) --dir \/minilm$/\1/p' packaging/Containerfile)
	if have=$("$tmp/build/ragpilot" model path minilm 2>/dev/null); then
		cp -r "$have" "$tmp/model/minilm"
	elif ! read -ra words <<<"$pull" || ! "$tmp/build/ragpilot" "${words[@]}" --dir "$tmp/model/minilm" >/dev/null 2>"$tmp/error"; then
		cat "$tmp/error"
		grep -qE 'no program to fetch|cannot be reached' "$tmp/error" || exit 1
		echo "not run: container image (its sentence model cannot be fetched, see above)"
		exit 0
	fi
	sed -n '/^FROM scratch/,$p' packaging/Containerfile >"$tmp/Containerfile"
	"$tool" build -q --format docker -f "$tmp/Containerfile" -t "$name" --build-context "build=$tmp/build" --build-context "model=$tmp/model" "$tmp/empty" >/dev/null
	# It is on this machine's network: other ports than those of a server that may run here.
	port=$((20000 + $$ % 10000))
	network=(--no-healthcheck -e "RAGPILOT_PORT=$port" -e "RAGPILOT_ADMIN_ADDR=127.0.0.1:$((port + 10000))")
fi

if "$tool" run --rm "${network[@]}" -e RAGPILOT_INFER_API_URL=http://127.0.0.1:1 "$name" >"$tmp/log" 2>&1; then
	echo "the container runs without a key"
	exit 1
fi
if ! grep -q key "$tmp/log"; then
	cat "$tmp/log"
	exit 1
fi
mkdir -m 777 "$tmp/memories"
"$tool" run -d --name "$name" "${network[@]}" -v "$tmp/key:/run/secrets/ragpilot-key:ro" -v "$tmp/memories:/memories" -e RAGPILOT_MEMORY_DIR=/memories \
	-e RAGPILOT_INFER_API_URL=http://127.0.0.1:1 "$name" >/dev/null

# check asks the running container; what it runs as is seen from here only where users are not mapped.
check() {
	local address user ready="" pid
	for _ in {1..100}; do
		if "$tool" exec "$name" /ragpilot health --ready >/dev/null 2>&1; then
			ready=1
			break
		fi
		sleep 0.1
	done
	if [[ -z $ready ]]; then
		echo "it is not ready after 100 questions"
		return 1
	fi
	if [[ -n ${port:-} ]]; then
		# By an address that is not loopback, where the machine has one.
		address=$(hostname -I 2>/dev/null | awk '{ print $1 }')
		address=${address:-127.0.0.1}:$port
		pid=$("$tool" inspect -f '{{.State.Pid}}' "$name")
		user=$(awk '/^Uid:/ { print $2 "," $3 "," $4 "," $5 }' "/proc/$pid/status")
		if [[ $user != 65532,65532,65532,65532 ]]; then
			echo "it runs as $user"
			return 1
		fi
	else
		address=$("$tool" port "$name" 8765 | head -1)
	fi
	outside "$address" || return
	recalls "$address" || return
	"$tool" stop "$name" >/dev/null
	code=$("$tool" inspect -f '{{.State.ExitCode}}' "$name")
	if ((code != 0)); then
		echo "it ends with status $code when it is stopped"
		return 1
	fi
}

if ! check; then
	"$tool" logs "$name" 2>&1 | tail -20
	exit 1
fi
echo "$what, built and run by ${tool##*/}, as a user without rights: not without a key; with one it starts, is ready, stops with status 0"
