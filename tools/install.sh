#!/usr/bin/env bash
# Installs what is named into .venv, made where there is none; with uv where it is there, else with pip.
set -euo pipefail

what=$1
python=${PYTHON:-python3}
if ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
  echo "$python is $("$python" --version 2>&1); Cloche needs Python 3.11 or newer: make PYTHON=python3.12" >&2
  exit 1
fi
[ -x .venv/bin/python ] || "$python" -m venv .venv

log=$(mktemp)
trap 'rm -f "$log"' EXIT
echo "Installing Cloche into .venv ..."
with_uv() { uv pip install --quiet --python .venv/bin/python --editable "$what"; }
with_pip() { .venv/bin/python -m pip install --quiet --disable-pip-version-check --editable "$what"; }
if command -v uv >/dev/null && with_uv >"$log" 2>&1; then exit 0; fi
if ! with_pip >"$log" 2>&1; then
  tail -30 "$log" >&2
  exit 1
fi
