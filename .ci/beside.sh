#!/usr/bin/env bash
# Prints, for eval, the environment that lets tests meet what stands beside them: a Redis server, a browser, libzmq and the recorded data of
# ../shared, each where it can be had; and RAGPILOT_FORBID_SKIP, the words that no skipped test may give as its reason. What is missing it
# says on standard error.
set -euo pipefail
cd "$(dirname "$0")/.."

say() { printf 'export %s=%q\n' "$1" "$2"; }

server=$(.ci/redis.sh) || (($? == 77))
say RAGPILOT_REDIS_SERVER "$server"
browser=$(.ci/chromium.sh) || (($? == 77))
if [[ -n $browser ]]; then
	say CHROMIUM "$browser"
	say RAGPILOT_REQUIRE_BROWSER 1
fi
python=$(.ci/venv.sh zmq .ci/zmq/requirements.txt) || (($? == 77))
say RAGPILOT_PYZMQ "$python"
if [[ -d ../shared ]]; then
	say RAGPILOT_REQUIRE_SHARED 1
	say RAGPILOT_FORBID_SKIP ../shared
else
	echo "not run: tests on recorded data (no ../shared beside the repository)" >&2
	say RAGPILOT_FORBID_SKIP ""
fi
