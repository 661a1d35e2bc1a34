"""Fenced blocks of Markdown pages, and how they are run: plain code, doctests, commands."""

import doctest
import re
import shlex

BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(page):
    """(language, code, line) of each fenced block."""
    text = page.read_text(encoding="utf-8")
    for match in BLOCK.finditer(text):
        yield match[1], match[2], text.count("\n", 0, match.start()) + 1


def run_block(language, code, page, line, namespace):
    """Run a block of Python in a namespace that it shares with others; other languages wait."""
    if language == "python":
        # Blank lines in front make line numbers of a traceback those of the page.
        exec(compile("\n" * line + code, str(page), "exec"), namespace)
    elif language == "pycon":
        parser = doctest.DocTestParser()
        test = parser.get_doctest(code, namespace, page.name, str(page), line)
        run_doctest(test)
        namespace.update(test.globs)


def run_doctest(test):
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    report: list[str] = []
    runner.run(test, out=report.append, clear_globs=False)
    assert not runner.failures, "".join(report)


def output_below(page, code):
    """The lines of the block without a language right below another one; none if there is none."""
    _, _, rest = page.read_text(encoding="utf-8").partition(f"{code}```\n\n```\n")
    return lasting(rest.partition("```\n")[0])


def lasting(output):
    """Lines of an output that the next run prints, too: without times and rounding errors."""
    lines = (line.rstrip() for line in output.splitlines())
    return [line for line in lines if not line.startswith(("seconds", "KKT residual"))]


def run_shell(code):
    """Run lines of a shell that call bestk; return what they print."""
    from typer.testing import CliRunner

    from bestk.cli.app import app

    printed = ""
    for command in code.splitlines():
        program, *arguments = shlex.split(command, comments=True) or [""]
        if program == "bestk":
            result = CliRunner().invoke(app, arguments)
            assert result.exit_code == 0, f"{command}\n{result.output}"
            printed += result.stdout
    return printed
