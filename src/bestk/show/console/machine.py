"""What ``bestk doctor`` tells of a machine."""

from typing import Any

from bestk.base.words import counted
from bestk.show.console.words import escape, stdout


def show_machine(machine: dict[str, Any]) -> None:
    """What `bestk doctor` finds, one line each."""
    packages = machine["packages"] | {k: v for k, v in machine["optional"].items() if v}
    missing = [name for name, version in machine["optional"].items() if not version]
    threads, cache, devices = machine["threads"], machine["compile_cache"], machine["devices"]
    rows = [
        ("bestk", machine["version"]),
        ("Python", f"{machine['python']}, {machine['platform']}"),
        *((name, version or "missing") for name, version in packages.items()),
        ("not installed", ", ".join(missing)),
        ("threads", f"{threads['default']} of {counted(threads['cores'] or 1, 'core')}"),
        *(("BLAS", _blas_words(library)) for library in machine["blas"]),
        *machine["variables"].items(),
        ("compiled loops", _cache_words(cache)),
        ("devices", ", ".join(devices["names"]) or "cpu only"),
        *(("problem", found["problem"]) for found in (cache, devices) if found["problem"]),
    ]
    width = max(len(name) for name, _ in rows) + 2
    for name, words in rows:
        if words:
            stdout().print(f"[dim]{escape(name):<{width}}[/]{escape(words)}", soft_wrap=True)


def _blas_words(library: dict[str, Any]) -> str:
    details = [library["threading_layer"], library["architecture"]]
    told = [counted(library["num_threads"], "thread"), *(word for word in details if word)]
    return f"{library['internal_api']} {library['version'] or ''}".rstrip() + f", {', '.join(told)}"


def _cache_words(cache: dict[str, Any]) -> str:
    writable = "writable" if cache["writable"] else "not writable"
    return f"{cache['folder'] or 'no folder'}, {cache['bytes'] / 1e6:.1f} MB, {writable}"


def show_check(check: Any) -> None:
    """One line for each part of the self-test."""
    verdict = "[green]passed[/]" if check.passed else f"[red]failed[/]: {escape(check.problem)}"
    told = f"self-test of {check.name}: {verdict} [dim]{check.seconds:.2f} s[/]"
    stdout().print(told, soft_wrap=True)
