#!/usr/bin/env bash
# Makes .venv, installs what running Yeoron needs, and finds a Chromium.
# Works as root or not; nothing here needs a password: what needs rights is skipped and said.
set -euo pipefail
cd "$(dirname "$0")/.."

say() { printf '\033[1m%s\033[0m\n' "$*"; }
as_root() {
  if [ "$(id -u)" = 0 ]; then "$@"
  elif command -v sudo >/dev/null 2>&1 && sudo -n true 2>/dev/null; then sudo -n "$@"
  else return 77; fi
}
# What it is for, and the packages.
apt_install() {
  local reason=$1
  shift
  command -v apt-get >/dev/null 2>&1 || return 77
  if [ "$(id -u)" = 0 ]; then echo "Installing $* with apt-get: $reason."
  elif command -v sudo >/dev/null 2>&1 && sudo -n true 2>/dev/null; then
    echo "Installing $* with sudo apt-get, which asks no password here: $reason."
  fi
  as_root env DEBIAN_FRONTEND=noninteractive sh -c \
    'apt-get update -qq && apt-get install -y -qq --no-install-recommends "$@"' _ "$@" >/dev/null 2>&1
}

python="${PYTHON:-python3}"
command -v "$python" >/dev/null 2>&1 || apt_install "Yeoron is written in Python" python3 || {
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
    apt_install "it makes .venv" "python${version}-venv" || apt_install "it makes .venv" python3-venv || {
      echo "setup: python venv is missing; install python${version}-venv." >&2; exit 2; }
    "$python" -m venv .venv
  fi
fi

say "Installing what the locks name (infra/locks/run.txt); the first time takes some minutes"
bash infra/install.sh run

find_chromium() {
  command -v chromium || command -v chromium-browser || command -v google-chrome || command -v google-chrome-stable \
    || ls "${PLAYWRIGHT_BROWSERS_PATH:-$HOME/.cache/ms-playwright}"/chromium-*/chrome-linux*/chrome 2>/dev/null | head -n 1
}
if [ -z "$(find_chromium)" ]; then
  say "Looking for a Chromium (Playwright's own, then apt)"
  pages="it shows pages that need JavaScript, and writes reports as PDF"
  timeout 300 .venv/bin/python -m playwright install chromium >/dev/null 2>&1 \
    || apt_install "$pages" chromium || apt_install "$pages" chromium-browser || true
fi
if [ -n "$(find_chromium)" ]; then echo "Chromium: $(find_chromium)"
else echo "No Chromium: rendered sources and browser tests are skipped. Install one with: apt-get install chromium"; fi
if ! fc-list :lang=ko 2>/dev/null | grep -q .; then
  apt_install "pictures of pages need a Korean font" fonts-noto-cjk || echo "No Korean font found: screenshots may show boxes (apt-get install fonts-noto-cjk)."
fi
