#!/usr/bin/env bash
# Installs the Debian packages that Cloche needs and that are missing; prints the command where it may not.
# With the word `tests` those as well that only the tests need.
set -euo pipefail
export PATH="$PATH:/usr/sbin:/sbin"

has_program() { command -v "$1" >/dev/null; }
has_file() { compgen -G "$1" >/dev/null; }

# A test, then the package that makes it true.
wanted=(
  "has_program crun|crun"
  "has_program runc|runc"
  "has_program gcc|gcc"
  "has_file /usr/lib/*/libc.a|libc6-dev"
  "has_file /usr/include/linux/mount.h|linux-libc-dev"
  "has_program mkfs.ext4|e2fsprogs"
  "has_program python3|python3"
  "${PYTHON:-python3} -c 'import ensurepip, venv' 2>/dev/null|python3-venv"
  "${PYTHON:-python3} -c 'import pip' 2>/dev/null|python3-pip"
)
if [ "${1:-}" = tests ]; then
  wanted+=(
    "has_program node|nodejs"
    "has_program npm|npm"
    "has_program zsh|zsh"
    "has_program fish|fish"
  )
fi

missing=()
for row in "${wanted[@]}"; do
  eval "${row%|*}" || missing+=("${row##*|}")
done
((${#missing[@]})) || exit 0

install="apt-get install -y --no-install-recommends ${missing[*]}"
if ! has_program apt-get; then
  echo "Missing: ${missing[*]} (Debian's names). This machine has no apt-get: install them with its own package manager." >&2
  exit 1
fi
if ((EUID != 0)); then
  printf 'Cloche needs packages that only root can install. Run this, then make again:\n\n    sudo %s\n\n' "$install" >&2
  exit 1
fi

echo "Installing ${missing[*]} ..."
export DEBIAN_FRONTEND=noninteractive
log=$(mktemp)
trap 'rm -f "$log"' EXIT
if ! { $install || { apt-get update && $install; }; } >"$log" 2>&1; then
  tail -20 "$log" >&2
  echo "That failed: $install" >&2
  exit 1
fi
