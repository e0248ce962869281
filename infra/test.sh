#!/usr/bin/env bash
# The whole suite, one file more at a time than there are cores: tests wait a lot. A few tests that
# fail beside others are run once more by themselves: what fails again fails the suite, what passes
# then is named, for it hangs on the load.
set -uo pipefail
cd "$(dirname "$0")/.."
most=3
failures=.pytest_cache/v/cache/lastfailed
workers=$(($(nproc) + 1))
[ "$workers" -le 4 ] || workers=4

# tests/conftest.py has the order of the files: else one that is a single long test comes last.
.venv/bin/python -m pytest -n "$workers" --dist loadfile --no-loadscope-reorder "$@"
ended=$?
[ "$ended" = 1 ] || exit "$ended" # 1: tests failed; anything else is no test's doing
failed="$(.venv/bin/python -c 'import json, sys; print(len(json.load(open(sys.argv[1]))))' "$failures")"
if [ "$failed" -gt "$most" ]; then
  echo "$failed tests failed; up to $most would have been run again by themselves."
  exit 1
fi
printf '\nOnce more by themselves: the %s that failed beside others.\n' "$failed"
.venv/bin/python -m pytest --last-failed --last-failed-no-failures none "$@" || exit
echo "Passed by themselves, so they hang on what runs beside them: a fault to mend."
