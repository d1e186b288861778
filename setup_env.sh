#!/usr/bin/env bash
# Makes .venv: a virtual environment with this project (editable) and the pinned packages of constraints.txt.
#
#   ./setup_env.sh                     called by every make target; returns at once when .venv is up to date
#   PYTHON=python3.12 ./setup_env.sh   with a chosen Python
#
# pip installs without compiling: only what gets imported is compiled, at its first import (step 4), which takes
# a quarter of the time. That is also why PYTHONDONTWRITEBYTECODE is unset here and in the Makefile.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
unset PYTHONDONTWRITEBYTECODE

venv=.venv
stamp=$venv/.set-up
log=$venv/set-up.log
needed_mb=3000

# What the environment is made from, and where: a changed pin or a moved folder makes it stale.
current="$(cat pyproject.toml constraints.txt setup_env.sh | cksum) $PWD"
is_current() { [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$current" ]; }
is_current && exit 0

if command -v flock >/dev/null; then
    exec 9>.venv.lock
    flock 9
    is_current && exit 0
fi

step() { printf 'set-up %s/4: %s\n' "$1" "$2"; }
fail() {
    printf 'error: %s\n  way out: %s\n' "$1" "$2" >&2
    exit 1
}

find_python() {
    local candidate
    for candidate in ${PYTHON:-python3 python3.13 python3.12 python3.11 python}; do
        if "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            command -v "$candidate"
            return
        fi
    done
    local found
    found="$("${PYTHON:-python3}" --version 2>&1 | tail -n 1)" || found="no such command"
    fail "Python 3.11 or newer is needed; ${PYTHON:-python3} is: $found." \
        "install it, or name one: make PYTHON=/path/to/python3.12 ..."
}

check_disk() {
    local free_mb
    free_mb="$(df -Pk . | awk 'NR == 2 {print int($4 / 1024)}')"
    [ "$free_mb" -ge "$needed_mb" ] || fail \
        "$PWD has $free_mb MB free; the environment needs about $needed_mb MB." \
        "free some space, or move the checkout to another disk"
}

# Runs a command, its output in the log; on failure says which kind it was. $1: what was being done.
logged() {
    local what="$1"
    shift
    "$@" >>"$log" 2>&1 && return
    grep -v 'is ignored: it is neither a file nor a directory' "$log" | tail -n 12 >&2 || true
    local way_out="read the lines above; the whole log is $log"
    if grep -qE 'No space left on device|Disk quota exceeded' "$log"; then
        way_out="the disk is full: free some space (about $needed_mb MB), then run the same command again"
    elif grep -qE 'NewConnectionError|ConnectTimeout|Read timed out|ProxyError|SSLError|name resolution|Connection (refused|reset|aborted|broken)|Max retries exceeded' "$log"; then
        way_out="check the network, the proxy (HTTPS_PROXY) or pip's index (PIP_INDEX_URL), then run the same command again; what was downloaded is kept"
    elif grep -qE 'ResolutionImpossible|conflicting dependencies' "$log"; then
        way_out="constraints.txt does not fit pyproject.toml or this Python: see CONTRIBUTING.md, Pins"
    elif grep -qE 'No matching distribution' "$log"; then
        way_out="this Python or system has no build of a pinned package: use Python 3.11 to 3.13 (make PYTHON=...), or see CONTRIBUTING.md, Pins"
    elif grep -qE 'ensurepip is not available|No module named (venv|ensurepip)' "$log"; then
        way_out="install Python's venv module (Debian, Ubuntu: apt-get install python3-venv), then run the same command again"
    fi
    fail "$what failed." "$way_out"
}

# Compiles what gets imported, one process a core, and finds a broken package now rather than in a run.
first_imports() {
    "$venv/bin/python" -c 'import scipy.stats, torch, transformers.models.llama.modeling_llama, lm_eval.evaluator' &
    local first=$!
    "$venv/bin/python" -c 'import mlflow.server, mlflow.store.tracking.sqlalchemy_store, pandas, matplotlib.pyplot, hydra, submitit, math_verify' || {
        wait "$first"
        return 1
    }
    wait "$first"
}

python="$(find_python)"
step 1 "Python $("$python" -c 'import sys; print("%d.%d.%d" % sys.version_info[:3])') ($python)"
check_disk

if [ "$("$venv/bin/python" -c 'import sys; print(sys.prefix)' 2>/dev/null)" = "$PWD/$venv" ]; then
    step 2 "virtual environment $venv: bring the existing one up to date"
    : >"$log"
else
    step 2 "virtual environment $venv"
    rm -rf "$venv"
    mkdir "$venv"
    logged "Making the virtual environment" "$python" -m venv "$venv"
fi
rm -f "$stamp"

export PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_INPUT=1
install=("$venv/bin/python" -m pip install --progress-bar off --no-compile -c constraints.txt)
step 3 "$(grep -c == constraints.txt) pinned packages (one to five minutes with nothing downloaded yet; log: $log)"
logged "Installing pip and setuptools" "${install[@]}" --upgrade pip setuptools
logged "Installing the packages" "${install[@]}" --no-build-isolation -e '.[dev,numba]'

step 4 "first import of the packages"
logged "Importing the packages" first_imports

printf '%s\n' "$current" >"$stamp"
