#!/usr/bin/env bash
# What packaging/ promises: systemd takes the unit, and the container's program runs with nothing beside it and without
# rights. Without podman or docker the image's last stage is made by hand, which needs root.
set -euo pipefail
cd "$(dirname "$0")/.."

tmp=$(mktemp -d)
running=""
trap 'if [[ -n $running ]]; then kill "$running" 2>/dev/null || true; wait "$running" 2>/dev/null || true; fi; rm -rf "$tmp"' EXIT

# The very line of the Containerfile.
build=$(sed -nE 's/^RUN (CGO_ENABLED=0 go build .*)$/\1/p' packaging/Containerfile)
mkdir -p "$tmp/root/etc/ssl/certs"
VERSION=v0.0.0-test bash -c "${build/-o \/ragpilot/-o $tmp/root/ragpilot}"
if [[ $("$tmp/root/ragpilot" version) != "ragpilot v0.0.0-test"* ]]; then
	echo "the Containerfile's program does not know its version"
	exit 1
fi

if command -v systemd-analyze >/dev/null; then
	sed "s|/usr/local/bin/ragpilot|$tmp/root/ragpilot|" packaging/ragpilot.service >"$tmp/ragpilot.service"
	found=$(systemd-analyze verify "$tmp/ragpilot.service" 2>&1) || { echo "$found" && exit 1; }
	if [[ -n $found ]]; then
		echo "$found"
		exit 1
	fi
	echo "systemd-analyze verify: nothing to say of ragpilot.service"
else
	echo "not run: check of ragpilot.service (no systemd-analyze)"
fi

# The settings that the Containerfile gives the program, and the key that it wants.
mapfile -t settings < <(sed -nE 's/^ENV (.*)$/\1/p' packaging/Containerfile | tr ' ' '\n')
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
for tool in podman docker; do
	if command -v "$tool" >/dev/null && "$tool" info >/dev/null 2>&1; then
		"$tool" build -q -f packaging/Containerfile -t ragpilot-ci --build-arg VERSION=v0.0.0-test . >/dev/null
		if "$tool" run --rm ragpilot-ci >"$tmp/log" 2>&1; then
			echo "$tool: the container runs without a key"
			exit 1
		fi
		name=ragpilot-ci-$$
		mkdir -m 777 "$tmp/memories"
		"$tool" run -d --rm --name "$name" -p 127.0.0.1::8765 -v "$tmp/key:/run/secrets/ragpilot-key:ro" -v "$tmp/memories:/memories" -e RAGPILOT_MEMORY_DIR=/memories -e RAGPILOT_INFER_API_URL=http://127.0.0.1:1 ragpilot-ci >/dev/null
		code=1
		for _ in {1..50}; do
			if "$tool" exec "$name" /ragpilot health --ready >/dev/null 2>&1; then
				code=0
				break
			fi
			sleep 0.1
		done
		if ((code == 0)); then
			address=$("$tool" port "$name" 8765 | head -1)
			outside "$address" && recalls "$address" || code=1
		fi
		"$tool" stop "$name" >/dev/null
		if ((code == 0)); then echo "$tool: the image is built, starts, and is ready"; else echo "$tool: the container is not as it should be"; fi
		exit "$code"
	fi
done
echo "not run: container image (neither podman nor a docker daemon)"

if [[ $(id -u) != 0 ]] || ! command -v chroot >/dev/null; then
	echo "not run: the image's last stage by hand (needs root and chroot)"
	exit 0
fi
if [[ -f /etc/ssl/certs/ca-certificates.crt ]]; then cp /etc/ssl/certs/ca-certificates.crt "$tmp/root/etc/ssl/certs/"; fi
chmod 755 "$tmp" "$tmp/root"
# The model's stage, by the Containerfile's line, and where its last stage puts it.
model=""
pull=$(sed -nE 's/^RUN \/ragpilot (model pull minilm) --dir \/minilm$/\1/p' packaging/Containerfile)
into=$(sed -nE 's/^COPY --from=model .* \/minilm (.*)$/\1/p' packaging/Containerfile)
if [[ -z $pull || -z $into || " ${settings[*]} " != *" RAGPILOT_MINILM=$into "* ]]; then
	echo "the Containerfile has no model where RAGPILOT_MINILM says: ${into:-nowhere}"
	exit 1
fi
mkdir -p "$tmp/root$into" && rmdir "$tmp/root$into"
if have=$("$tmp/root/ragpilot" model path minilm 2>/dev/null); then
	cp -r "$have" "$tmp/root$into" && model=here
elif read -ra words <<<"$pull" && "$tmp/root/ragpilot" "${words[@]}" --dir "$tmp/root$into" >/dev/null 2>"$tmp/error"; then
	model=fetched
elif grep -qE 'no program to fetch|cannot be reached' "$tmp/error"; then
	echo "not run: memories by the sentence model, which cannot be fetched"
else
	cat "$tmp/error"
	exit 1
fi
if [[ -n $model ]]; then chown -R 65532:65532 "$tmp/root$into"; fi
mkdir -m 777 "$tmp/root/memories"
port=$((20000 + $$ % 10000))
inside=(env "${settings[@]}" RAGPILOT_MEMORY_DIR=/memories "RAGPILOT_PORT=$port" "RAGPILOT_ADMIN_ADDR=127.0.0.1:$((port + 10000))" chroot --userspec=65532:65532 --groups= "$tmp/root" /ragpilot)
if "${inside[@]}" serve --infer-api-url http://127.0.0.1:1 >"$tmp/log" 2>&1; then
	echo "in an empty root: it runs without a key"
	exit 1
fi
mkdir -p "$tmp/root/run/secrets"
cp "$tmp/key" "$tmp/root/run/secrets/ragpilot-key"
"${inside[@]}" serve --infer-api-url http://127.0.0.1:1 2>"$tmp/log" &
running=$!
health=("--admin-addr=127.0.0.1:$((port + 10000))")
for _ in {1..100}; do
	if "${inside[@]}" health --ready "${health[@]}" 2>"$tmp/asked"; then break; fi
	sleep 0.1
done
"${inside[@]}" health --ready "${health[@]}" || { cat "$tmp/log" && exit 1; }
# By an address that is not loopback, where the machine has one.
address=$(hostname -I 2>/dev/null | awk '{ print $1 }')
outside "${address:-127.0.0.1}:$port" || { cat "$tmp/log" && exit 1; }
if [[ -n $model ]]; then recalls "127.0.0.1:$port" || { cat "$tmp/log" && exit 1; }; fi
user=$(awk '/^Uid:/ { print $2 "," $3 "," $4 "," $5 }' "/proc/$running/status" 2>/dev/null || echo unknown)
kill "$running"
code=0
wait "$running" || code=$?
running=""
if ((code != 0)) || [[ $user != 65532,65532,65532,65532 ]]; then
	echo "status $code after SIGTERM, user $user"
	cat "$tmp/log"
	exit 1
fi
if "${inside[@]}" health "${health[@]}" 2>/dev/null; then
	echo "healthy, though it has stopped"
	exit 1
fi
echo "in an empty root as user 65532: not without a key; with one it starts, is ready, stops with status 0"
