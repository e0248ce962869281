#!/usr/bin/env bash
# Installs into .venv what infra/locks name, by version and hash, and nothing else.
# usage: infra/install.sh run|test    TORCH=cpu|cuda chooses the build of torch.
set -euo pipefail
cd "$(dirname "$0")/.."
# What the platform keeps there is its owner's alone.
mkdir -p -m 700 var
log=var/setup.log
# Beside exact versions, constraints of the machine could only contradict, and hide why.
export PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_CONSTRAINT=/dev/null

# While a process runs: each 10 s (SETUP_LINE_S) how long it has, and what its log says pip is at.
progress() {
  local began=$SECONDS at
  while kill -0 "$1" 2>/dev/null; do
    sleep 1
    if [ $(((SECONDS - began) % ${SETUP_LINE_S:-10})) = 0 ]; then
      at="$(grep -aoE '(Collecting|Downloading|Using cached|Building wheel for|Installing collected packages)[^(]{0,60}[^( ]' "$log" | tail -n 1 || true)"
      # The longest part, of which pip says nothing.
      [[ "$at" != Installing* ]] || at="Installing: $(find .venv -maxdepth 4 -name '*.dist-info' | wc -l) packages are there"
      echo "  $((SECONDS - began)) s: ${at:-pip begins}"
    fi
  done
}
install() {
  .venv/bin/python -m pip install --no-build-isolation "$@" >"$log" 2>&1 &
  trap "kill $! 2>/dev/null || true" EXIT
  progress $!
  wait $!
}
locked() {
  local lock files=()
  for lock in "$@"; do files+=(--requirement "infra/locks/$lock.txt"); done
  install --require-hashes "${files[@]}"
}
# Why pip ended, in a sentence where it was for safety.
refused() {
  local package
  package="$(awk '/DO NOT MATCH THE HASHES/ { getline; print $1; exit }' "$log")"
  if [ -n "$package" ]; then
    echo "setup: the file of $package is not one of those that infra/locks name by their hashes; it was not installed (docs/concepts/security.md#packages)." >&2
  elif grep -aq 'n --require-hashes mode' "$log"; then
    package="$(awk '/n --require-hashes mode/ { getline; print $1; exit }' "$log")"
    echo "setup: infra/locks have no hash of $package, which is needed; it was not installed. 'make lock' writes them." >&2
  else
    grep -aE "ERROR|error:" "$log" | tail -n 8 >&2 || tail -n 8 "$log" >&2
    echo "setup: the installation failed; $log says more." >&2
  fi
  exit 1
}
missing() { sed -nE 's/.*No matching distribution found for ([^ ;]+).*/\1/p' "$log" | head -n 1; }

case "${1:-}" in
  run)
    locked build || refused
    torch="${TORCH:-$([ -e /dev/nvidiactl ] && echo cuda || echo cpu)}"
    [ -f "infra/locks/$torch.txt" ] || { echo "setup: TORCH is $torch; cpu and cuda are there." >&2; exit 2; }
    if ! locked "$torch" run; then
      [[ "$torch $(missing)" == "cpu torch=="* ]] || refused
      echo "The index has no torch for CPUs alone; the one for GPUs takes 3 GB more."
      locked cuda run || refused
    fi
    # The project in place, and of what it needs nothing that is not there: no index is asked.
    if ! PIP_CONFIG_FILE=/dev/null PIP_FIND_LINKS='' PIP_NO_INDEX=1 install --editable '.[all]'; then
      [ -n "$(missing)" ] || refused
      echo "setup: pyproject.toml needs $(missing), which infra/locks do not have; 'make lock' writes them." >&2
      exit 1
    fi ;;
  test)
    # Kernels for GPUs are tested by Triton's interpreter, and torch for CPUs brings no Triton.
    sed -n '/^triton==/,/[^\]$/p' infra/locks/cuda.txt >var/triton.txt
    install --require-hashes --requirement infra/locks/test.txt --requirement var/triton.txt || refused ;;
  *) echo "usage: infra/install.sh run|test" >&2; exit 2 ;;
esac
