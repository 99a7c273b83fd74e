"""Put the site beside those of other versions: `python docs/versions.py SITE VERSIONS`.

The built site goes to a folder of VERSIONS that is named by its version, in place of one that is there
already. Then all folders learn of one another, each by its `_static/versions.js`, and `index.html`
leads to the newest release, or to the newest of all if none is a release. All links are from folder to
folder: the whole may lie anywhere, and asks for nothing elsewhere.
"""

import argparse
import json
import re
import shutil
import sys
from pathlib import Path

from packaging.version import InvalidVersion, Version

LIST = Path("_static") / "versions.js"
FRONT = """<!DOCTYPE html>
<html lang="en">
<meta charset="utf-8">
<meta http-equiv="refresh" content="0; url={newest}/index.html">
<title>certree</title>
<a href="{newest}/index.html">certree {newest}</a>
</html>
"""


def version_of(site: Path) -> str:
    """The version that a built site says it is of."""
    told = (site / "_static" / "documentation_options.js").read_text(encoding="utf-8")
    found = re.search(r"VERSION: '([^']+)'", told)
    if found is None:
        raise SystemExit(f"{site} is no built site: it says no version")
    return found[1]


def is_version(name: str) -> bool:
    """Whether a folder may be that of a version."""
    try:
        Version(name)
    except InvalidVersion:
        return False
    return True


def versions_in(place: Path) -> list[str]:
    """All versions that lie there, the newest one first."""
    found = [one.parent.parent.name for one in place.glob(f"*/{LIST.as_posix()}")]
    return sorted(filter(is_version, found), key=Version, reverse=True)


def put(site: Path, place: Path) -> list[str]:
    """Copy a site to its place among the versions, and tell all of them of each other."""
    version = version_of(site)
    goal = place / version
    shutil.rmtree(goal, ignore_errors=True)
    shutil.copytree(site, goal)
    versions = versions_in(place)
    text = f"const CERTREE_VERSIONS = {json.dumps(versions)};\n"
    for one in versions:
        (place / one / LIST).write_text(text, encoding="utf-8")
    released = [one for one in versions if not Version(one).is_prerelease]
    newest = (released or versions)[0]
    (place / "index.html").write_text(FRONT.format(newest=newest), encoding="utf-8")
    return versions


def main() -> None:
    """Print the versions that lie there now."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("site", type=Path)
    parser.add_argument("versions", type=Path)
    options = parser.parse_args()
    sys.stdout.write(" ".join(put(options.site, options.versions)) + "\n")


if __name__ == "__main__":
    main()
