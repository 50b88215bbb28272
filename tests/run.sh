#!/usr/bin/env bash
# Sets up what the tests need and runs all of them. Arguments go to pytest.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source launch/environment.sh
make_environment '.[report,ray,gcs,test]'

.venv/bin/ruff check .
.venv/bin/ruff format --check .
exec .venv/bin/python -m pytest tests "$@"
