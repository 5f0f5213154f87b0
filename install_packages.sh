#!/usr/bin/env bash
# Installs what the build needs and is missing: Debian 12, Ubuntu 24.04. Root, or sudo.
# usage: ./install_packages.sh [--tests]   (--tests adds what the tests need)
set -euo pipefail

packages=(g++ cmake ninja-build pkg-config git curl ca-certificates python3
  libgrpc++-dev protobuf-compiler-grpc libprotobuf-dev protobuf-compiler grpc-proto
  libexpected-dev prometheus-cpp-dev libspdlog-dev libfmt-dev libcli11-dev
  libpcre2-dev libutf8proc-dev libxxhash-dev)
[ "${1:-}" = --tests ] && packages+=(libgtest-dev libgmock-dev python3-grpcio python3-protobuf python3-venv)

installed() { dpkg-query -W -f='${db:Status-Abbrev}' "$1" 2>/dev/null | grep -q '^ii'; }

# Debian 12 calls its newer Boost by number beside the default one; later releases have only newer ones.
boost_found=no
for version in 1.81 1.83 1.88 1.90; do
  if installed "libboost$version-dev" && installed "libboost-json$version-dev"; then boost_found=yes; fi
done

missing=()
for package in "${packages[@]}"; do installed "$package" || missing+=("$package"); done
if [ ${#missing[@]} -eq 0 ] && [ $boost_found = yes ]; then exit 0; fi

as_root=()
if [ "$(id -u)" != 0 ]; then
  command -v sudo >/dev/null || { echo "install_packages.sh: missing ${missing[*]}; run it as root, or install sudo" >&2; exit 1; }
  as_root=(sudo)
fi
export DEBIAN_FRONTEND=noninteractive
"${as_root[@]}" apt-get update -qq
if [ $boost_found = no ]; then
  for version in 1.81 1.83 1.88 1.90; do
    if apt-cache show "libboost-json$version-dev" >/dev/null 2>&1; then
      missing+=("libboost$version-dev" "libboost-json$version-dev"); boost_found=yes; break
    fi
  done
  [ $boost_found = yes ] || { echo "install_packages.sh: no Boost of at least 1.81 is offered here, expected Debian 12 or Ubuntu 24.04" >&2; exit 1; }
fi
echo "installing: ${missing[*]}"
"${as_root[@]}" apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
