#!/usr/bin/env bash
# Makes .venv, installs Yeoron from infra/constraints.txt, and finds a Chromium.
# Works as root or not; nothing here needs a password: what needs rights is skipped and said.
set -euo pipefail
cd "$(dirname "$0")/.."

say() { printf '\033[1m%s\033[0m\n' "$*"; }
as_root() {
  if [ "$(id -u)" = 0 ]; then "$@"
  elif command -v sudo >/dev/null 2>&1 && sudo -n true 2>/dev/null; then sudo -n "$@"
  else return 77; fi
}
# While a process runs: each 10 s (SETUP_LINE_S) how long it has, and what its log says pip is at.
progress() {
  local began=$SECONDS at
  while kill -0 "$1" 2>/dev/null; do
    sleep 1
    if [ $(((SECONDS - began) % ${SETUP_LINE_S:-10})) = 0 ]; then
      at="$(grep -aoE '(Collecting|Downloading|Using cached|Building wheel for|Installing collected packages)[^(]{0,60}[^( ]' "$2" | tail -n 1 || true)"
      echo "  $((SECONDS - began)) s: ${at:-pip begins}"
    fi
  done
}
apt_install() {
  command -v apt-get >/dev/null 2>&1 || return 77
  if [ "$(id -u)" = 0 ]; then echo "Installing with apt-get: $*"
  elif command -v sudo >/dev/null 2>&1 && sudo -n true 2>/dev/null; then echo "Installing with sudo apt-get: $*"
  fi
  as_root env DEBIAN_FRONTEND=noninteractive sh -c \
    'apt-get update -qq && apt-get install -y -qq --no-install-recommends "$@"' _ "$@" >/dev/null 2>&1
}

python="${PYTHON:-python3}"
command -v "$python" >/dev/null 2>&1 || apt_install python3 || {
  echo "setup: no $python found; install Python 3.11 or newer, or set PYTHON=/path/to/python." >&2; exit 2; }
"$python" - <<'PY' || { echo "setup: $python is too old or too new; Python 3.11 to 3.13 is needed: set PYTHON=/path/to/python." >&2; exit 2; }
import sys
sys.exit(not ((3, 11) <= sys.version_info[:2] < (3, 14)))
PY

if [ ! -x .venv/bin/python ]; then
  say "Making .venv with $($python --version)"
  if ! "$python" -m venv .venv 2>/dev/null; then
    rm -rf .venv
    version="$($python -c 'import sys; print(f"{sys.version_info[0]}.{sys.version_info[1]}")')"
    apt_install "python${version}-venv" || apt_install python3-venv || {
      echo "setup: python venv is missing; install python${version}-venv." >&2; exit 2; }
    "$python" -m venv .venv
  fi
fi

say "Installing pinned packages (infra/constraints.txt); the first time takes some minutes"
# What the platform keeps there is its owner's alone.
mkdir -p -m 700 var
log=var/setup.log
PIP_CONSTRAINT="$PWD/infra/constraints.txt" PIP_DISABLE_PIP_VERSION_CHECK=1 \
  .venv/bin/python -m pip install -e '.[all]' >"$log" 2>&1 &
pip=$!
trap 'kill "$pip" 2>/dev/null || true' EXIT
progress "$pip" "$log"
if ! wait "$pip"; then
  grep -aE "ERROR|error:" "$log" | tail -n 8 >&2 || tail -n 8 "$log" >&2
  echo "setup: the installation failed; $log says more." >&2
  exit 1
fi

find_chromium() {
  command -v chromium || command -v chromium-browser || command -v google-chrome || command -v google-chrome-stable \
    || ls "${PLAYWRIGHT_BROWSERS_PATH:-$HOME/.cache/ms-playwright}"/chromium-*/chrome-linux*/chrome 2>/dev/null | head -n 1
}
if [ -z "$(find_chromium)" ]; then
  say "Looking for a Chromium (Playwright's own, then apt)"
  timeout 300 .venv/bin/python -m playwright install chromium >/dev/null 2>&1 \
    || apt_install chromium || apt_install chromium-browser || true
fi
if [ -n "$(find_chromium)" ]; then echo "Chromium: $(find_chromium)"
else echo "No Chromium: rendered sources and browser tests are skipped. Install one with: apt-get install chromium"; fi
if ! fc-list :lang=ko 2>/dev/null | grep -q .; then
  apt_install fonts-noto-cjk || echo "No Korean font found: screenshots may show boxes (apt-get install fonts-noto-cjk)."
fi
