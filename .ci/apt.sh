#!/usr/bin/env bash
# apt-get, one call at a time: steps that install something run beside each other.
set -euo pipefail
dir=${XDG_CACHE_HOME:-$HOME/.cache}/ragpilot-ci
mkdir -p "$dir"
exec flock "$dir/apt.lock" apt-get "$@"
