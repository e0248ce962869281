#!/usr/bin/env bash
# The whole suite, two files at a time for each core and one more: tests wait half of their time.
# Nothing is tried twice: a test that fails beside others fails.
set -euo pipefail
cd "$(dirname "$0")/.."
workers=$((2 * $(nproc) + 1))
[ "$workers" -le 6 ] || workers=6

# Where no bytecode may be written, each worker compiles all tests and each of the hundreds of
# processes that they start compiles this package: a tenth of the suite.
unset PYTHONDONTWRITEBYTECODE

# All cores are taken. More threads of a product of matrices would wait for each other, busily: they
# used up to four times the processor.
export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1

# Long tests of the laboratory run where it has changed, and in `make test-all`, which says so here.
# That looks at all generated examples, too.
if [ "${1:-}" = --all ]; then
  shift
  export EXAMPLES="${EXAMPLES:-1}"
elif .venv/bin/python tests/laboratory.py; then
  echo "Without long tests of the laboratory, which has not changed: make test-all has them."
  set -- -m "not laboratory" "$@"
fi

.venv/bin/python tests/budget.py --show

# tests/conftest.py has the order of the files: else one that is a single long test comes last.
exec .venv/bin/python -m pytest -n "$workers" --dist loadfile --no-loadscope-reorder "$@"
