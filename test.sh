#!/usr/bin/env bash
# Installs what is missing, builds everything and runs the tests. Arguments go to ctest (-L unit, -R name).
set -euo pipefail
cd "$(dirname "$0")"
./install_packages.sh --tests
# The official client, as its users install it. Its tests say so when it cannot be had.
if [ ! -x build/clients/bin/python3 ]; then
  /usr/bin/python3 -m venv build/clients
  build/clients/bin/pip install -q openai || echo "test.sh: the openai package could not be installed; its tests will be skipped" >&2
fi
cmake --preset release -DLEVIN_TESTS=ON >/dev/null
cmake --build --preset release
exec ctest --test-dir build/release --output-on-failure -j2 "$@"
