"""Put built documentation beside that of other versions, in a folder that can be hosted as it is.

    python .ci/arrange_site.py docs/_build/html site

A release 1.2.3 goes to site/1.2, where it replaces 1.2.2; all that is not a release goes to
site/dev. Other versions stay. site/versions.js lists all of them for their pages, and
site/index.html leads to the newest release.
"""

import json
import shutil
import sys
from pathlib import Path

from packaging.version import Version

INDEX = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="color-scheme" content="light dark">
<meta http-equiv="refresh" content="0; url={folder}/index.html">
<title>bestk</title>
<p><a href="{folder}/index.html">Documentation of bestk {version}</a></p>
</html>
"""


def version_of(pages: Path) -> Version | None:
    """Which version a folder of pages is about; None if it has no documentation of bestk."""
    try:
        with (pages / "objects.inv").open("rb") as file:
            _, project, version = (next(file).decode().strip() for _ in range(3))
    except (OSError, StopIteration, UnicodeDecodeError):
        return None
    is_ours = project == "# Project: bestk"
    return Version(version.removeprefix("# Version: ")) if is_ours else None


def folder_of(version: Version) -> str:
    return "dev" if version.is_prerelease else f"{version.major}.{version.minor}"


def pages_of(folder: Path) -> list[str]:
    """Pages that a reader may want to see in another version; listings of code are left out."""
    names = (page.relative_to(folder).as_posix() for page in folder.rglob("*.html"))
    return sorted(name for name in names if not name.startswith("_"))


def arrange(built: Path, site: Path) -> None:
    version = version_of(built)
    if version is None:
        sys.exit(f"{built} has no documentation of bestk: run `make docs` first")
    if (site / "index.html").exists() and not (site / "versions.js").exists():
        sys.exit(f"{site} has pages that are not from here: choose another folder")
    own = site / folder_of(version)
    if own.exists() and version_of(own) is None:
        sys.exit(f"{own} has no documentation of bestk and would be replaced: move it away")
    if own.exists():
        shutil.rmtree(own)
    shutil.copytree(built, own, ignore=shutil.ignore_patterns(".doctrees", ".buildinfo*"))

    found = {folder: version_of(folder) for folder in site.iterdir()}
    known = {v: folder for folder, v in found.items() if v and folder.name == folder_of(v)}
    newest_first = sorted(known, reverse=True)
    releases = [v for v in newest_first if not v.is_prerelease]
    first = (releases or newest_first)[0]
    listed = {
        "newest": folder_of(releases[0]) if releases else None,
        "versions": [
            {"folder": known[v].name, "version": str(v), "pages": pages_of(known[v])}
            for v in newest_first
        ],
    }
    text = f"window.bestkVersions = {json.dumps(listed)};\n"
    (site / "versions.js").write_text(text, "utf-8")
    (site / "index.html").write_text(INDEX.format(folder=folder_of(first), version=first), "utf-8")
    (site / ".nojekyll").touch()  # GitHub would leave out folders such as _static
    print(f"{own}: bestk {version}; in {site}: {', '.join(map(str, newest_first))}")


if __name__ == "__main__":
    arrange(Path(sys.argv[1]), Path(sys.argv[2]))
