"""Check that built pages can be hosted as they are: search, dark mode, versions, no network."""

import re
import sys
from pathlib import Path

import bestk

# What a browser fetches by itself; links that people follow may go anywhere.
FETCHED = re.compile(
    r"<(?:script|img|iframe|source|audio|video|embed)\b[^>]*\bsrc=[\"']?(?:https?:)?//[^>]*>"
    r"|<link\b[^>]*\brel=[\"']?(?:stylesheet|preload|icon|preconnect|modulepreload)[^>]*"
    r"href=[\"']?(?:https?:)?//[^>]*>"
    r"|url\(\s*[\"']?(?:https?:)?//[^)]*\)|@import\s+[\"'](?:https?:)?//[^;]*",
    re.IGNORECASE,
)

root = Path(sys.argv[1])
pages = [*root.rglob("*.html"), *root.rglob("*.css")]
wrong = [
    f"{page.relative_to(root)} fetches {found[0][:120]}"
    for page in pages
    for found in FETCHED.finditer(page.read_text("utf-8"))
]
index = (root / "index.html").read_text("utf-8")
for what, words in {
    "a search": "sidebar-search",
    "dark mode": "theme-toggle",
    "the version": f"bestk {bestk.__version__}",
    "the list of versions": 'class="versions"',
}.items():
    wrong += [] if words in index else [f"index.html lacks {what} ({words})"]
wrong += [] if (root / "searchindex.js").exists() else ["there is no searchindex.js"]
if wrong or not pages:
    sys.exit("\n".join(wrong) or f"there are no pages in {root}")
print(f"{len(pages)} pages and styles: none fetches anything from the network")
