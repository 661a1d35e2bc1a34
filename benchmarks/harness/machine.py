"""Where a table was measured: processor, versions, threads, commit."""

from __future__ import annotations

import os
import platform
import subprocess
from datetime import date
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_info

ROOT = Path(__file__).parents[2]


def describe(threads: int) -> list[str]:
    """Lines for the head of a table."""
    blas = {
        f"{pool['internal_api']} {pool['version']}"
        for pool in threadpool_info()
        if pool["user_api"] == "blas"
    }
    return [
        f"{date.today()}, commit {commit()}",
        f"{processor()}, {os.cpu_count()} cores, {memory()}, {platform.system()}",
        f"Python {platform.python_version()}, NumPy {np.__version__} ({', '.join(sorted(blas))})",
        f"threads: {threads}",
    ]


def warn_if_busy() -> None:
    if os.getloadavg()[0] > 0.5:
        print("the machine is busy: times will mean little, those of BLAS threads least")


def commit() -> str:
    def git(*args: str) -> str:
        done = subprocess.run(["git", *args], cwd=ROOT, capture_output=True, text=True)
        return done.stdout.strip()

    changed = git("status", "--porcelain", "--untracked-files=no", "--", "src", "benchmarks/*.py")
    return (git("rev-parse", "--short", "HEAD") or "unknown") + (" with changes" if changed else "")


def processor() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def memory() -> str:
    try:
        return f"{os.sysconf('SC_PHYS_PAGES') * os.sysconf('SC_PAGE_SIZE') / 2**30:.0f} GiB"
    except (ValueError, OSError):
        return "memory unknown"
