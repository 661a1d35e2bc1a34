"""A browser for tests of pages, which are skipped without it."""

import shutil
from contextlib import contextmanager

import pytest


@contextmanager
def chromium():
    """Chromium, driven by Playwright (pip install playwright, apt-get install chromium)."""
    playwright = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
    path = shutil.which("chromium") or shutil.which("chromium-browser")
    if path is None:
        pytest.skip("Chromium is not installed")
    with playwright.sync_playwright() as tool:
        browser = tool.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        browser.close()
