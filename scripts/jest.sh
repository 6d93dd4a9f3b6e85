#!/usr/bin/env bash
# Puts jest, from npm, into the cache and prints the folder that has its
# node_modules. Does nothing, quickly, when it is there.
set -euo pipefail
# shellcheck source=lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

# Itself pinned by its version, and what it depends on by a day.
VERSION=30.5.2
DAY=2026-11-15

folder=${COFFERDAM_CACHE:-$HOME/.cache/cofferdam}/jest-$VERSION
if [ ! -e "$folder/node_modules/jest/bin/jest.js" ]; then
    need npm=npm
    note "fetching jest $VERSION"
    part=$folder.$$
    trap 'rm -rf "$part"' EXIT
    mkdir -p "$part"
    # Nothing that comes with it is run before it is in a sandbox.
    npm install --prefix "$part" --no-save --no-audit --no-fund --ignore-scripts \
        --before="$DAY" --loglevel=error "jest@$VERSION" >&2
    # Whoever was quicker has made the same.
    mv -T "$part" "$folder" 2>/dev/null || [ -e "$folder/node_modules/jest/bin/jest.js" ]
fi
printf '%s\n' "$folder"
