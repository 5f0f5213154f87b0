#!/usr/bin/env bash
# Installs what is missing, builds everything and runs the tests. Arguments go to ctest (-L unit, -R name).
set -euo pipefail
cd "$(dirname "$0")"
./install_packages.sh --tests
cmake --preset release -DLEVIN_TESTS=ON >/dev/null
cmake --build --preset release
exec ctest --test-dir build/release --output-on-failure -j2 "$@"
