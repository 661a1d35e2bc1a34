"""A model as a formula, for LaTeX and SymPy: names of features are read as products and powers.

"a b", "a:b", "a*b", "x0 x1", "a^2", "I(a ** 2)" and "sin(2 x0)" are read, as scikit-learn, PySINDy
and formulas write them. "body mass" is a product only where "body" and "mass" are features: a name
that cannot be read is one symbol.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from math import isfinite
from typing import Any, NamedTuple

from bestk.base.validation import require_count
from bestk.results.interactive import Latex
from bestk.structure.hierarchy import Monomial, begins_with_digit, readings_of

# (value, name) of a term; the name None is that of the constant.
Term = tuple[float, str | None]

_SEPARATOR = re.compile(r"[\s:×*^]")
_POWER_OR_PRODUCT = re.compile(r"(?:\^|\*\*)\s*\d{1,2}(?!\d)|[:×*]")
_WORD = re.compile(r"[^\W\d]\w*")
# What mathematicians call a variable: with spaces between them, these are factors in any case.
_VARIABLE = re.compile(r"([A-Za-z])(?:_?(\d+))?")
_FUNCTIONS = "sin|cos|tan|sinh|cosh|tanh|exp|log|sqrt"
_CALL = re.compile(rf"(?:np\.)?\b({_FUNCTIONS})\(([^()]*)\)")
_ARGUMENT = re.compile(r"\s*(-?\s*\d+(?:\.\d*)?(?:e[-+]?\d+)?)?\s*\*?\s*(.*?)\s*", re.DOTALL)
# Longer names, or those with more factors, are nobody's product; to read them would take long.
_LONGEST, _MOST_FACTORS = 200, 20
_GREEK = frozenset(
    (
        "alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota", "kappa",
        "lambda", "mu", "nu", "xi", "rho", "sigma", "tau", "upsilon", "phi", "chi", "psi", "omega",
    )
)  # fmt: skip


class Call(NamedTuple):
    """A function of a product: ``sin(2 x0)``."""

    function: str
    factor: float
    argument: Monomial


class Reader:
    """Reads names as products of others.

    Parameters
    ----------
    names : names of all features
    states : further names that may be factors
    """

    def __init__(self, names: Iterable[str], states: Iterable[str] = ()) -> None:
        names, self.mains = [*names], {*states}
        for name in names:
            if not _SEPARATOR.search(name):
                self.mains.add(name)
            elif _is_readable(name):
                self.mains |= _factors_in(name)
        products = [name for name in names if name not in self.mains and _is_readable(name)]
        self.readings = readings_of(products, self.mains)

    def product(self, name: str) -> Monomial:
        """The factors of a name, each as often as its power says; itself if it is no product.

        A name that can be read in several ways is not read.
        """
        readings = self.readings.get(name, set())
        return next(iter(readings)) if len(readings) == 1 else (name,)

    def call(self, factor: str) -> Call | None:
        """A factor as a function of a product; None if it is none."""
        found = _CALL.fullmatch(factor) if _is_readable(factor) else None
        inner = _ARGUMENT.fullmatch(found[2]) if found else None
        if found is None or inner is None:
            return None
        number = float(inner[1].replace(" ", "")) if inner[1] else 1.0
        argument = self._argument(inner[2]) if inner[2] else ()
        if argument is None or not isfinite(number) or not (inner[1] or inner[2]):
            return None
        return Call(found[1], number, argument)

    def _argument(self, text: str) -> Monomial | None:
        if text in self.mains or _VARIABLE.fullmatch(text):
            return (text,)
        readings = readings_of([text], self.mains)[text]
        return next(iter(readings)) if len(readings) == 1 and readings != {(text,)} else None


def _is_readable(name: str) -> bool:
    return len(name) <= _LONGEST and len(_SEPARATOR.findall(name)) <= _MOST_FACTORS


def _factors_in(name: str) -> set[str]:
    """What must be a factor because of how a product is written, whether it is a feature or not."""
    calls = {match[0] for match in _CALL.finditer(name)}
    rest = _CALL.sub(" ", name).strip()
    if rest.startswith("I(") and rest.endswith(")"):
        rest = rest[2:-1]
    words = [word for word in re.split(r"[\s:×*]+|\^", rest) if word and not word.isdigit()]
    inner = [word for call in calls for word in _WORD.findall(call.partition("(")[2])]
    variables = {word for word in inner if _VARIABLE.fullmatch(word)}
    is_product = all(map(_VARIABLE.fullmatch, words)) or (
        _POWER_OR_PRODUCT.search(rest) and not re.search(r"\w\s+\w", rest)
    )
    if is_product and all(map(_WORD.fullmatch, words)):
        return calls | variables | set(words)
    return calls | variables


def factor(name: str) -> str:
    """A name behind a number, in plain text: " bmi", but " * 1450 nm"."""
    return f" * {name}" if begins_with_digit(name) else f" {name}"


# LaTeX ------------------------------------------------------------------------------------------

TIMES = r"\,"
_ESCAPES = {
    "\\": r"\textbackslash{}",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    **{character: f"\\{character}" for character in "{}$&#%_"},
}


def latex(target: str, terms: Sequence[Term], reader: Reader, digits: int = 4) -> Latex:
    """``y = 2.1 - 0.3\\,a^{2}\\,b``, to be put between dollars."""
    return Latex(f"{symbol(target)} = {latex_sum(terms, reader, digits)}")


def latex_sum(terms: Sequence[Term], reader: Reader, digits: int = 4) -> str:
    """The sum of some terms; those with coefficient zero are left out."""
    require_count("digits", digits, least=1)
    shown = [(value, name) for value, name in terms if value != 0.0]
    products = [() if name is None else reader.product(name) for _, name in shown]
    symbols = _symbols({factor for product in products for factor in product})
    written = ""
    for (value, _), product in zip(shown, products, strict=True):
        number = _latex_number(abs(value), digits)
        if product:
            times = r" \cdot " if begins_with_digit(product[0]) else TIMES
            number += times + _latex_product(product, reader, symbols)
        written += f" {'-' if value < 0 else '+'} {number}"
    if not written:
        return "0"
    return written[3:] if written.startswith(" + ") else "-" + written[3:]


def symbol(name: str) -> str:
    """One symbol: x_{0} for x0, an upright word for a word, escaped text for anything else."""
    variable = _VARIABLE.fullmatch(name)
    if variable:
        return f"{variable[1]}_{{{variable[2]}}}" if variable[2] else name
    if name in _GREEK:
        return f"\\{name}"
    if name.isascii() and name.isalpha():
        return f"\\mathrm{{{name}}}"
    return text(name)


def text(name: str) -> str:
    """A name as it is, with all characters escaped that mean something to LaTeX."""
    plain = "".join(character if character.isprintable() else " " for character in name)
    return f"\\text{{{''.join(_ESCAPES.get(character, character) for character in plain)}}}"


def _symbols(factors: set[str]) -> dict[str, str]:
    """A symbol for each factor. Two that would look alike, such as x1 and x_1, are text."""
    chosen = {factor: symbol(factor) for factor in factors}
    times = Counter(chosen.values())
    return {factor: text(factor) if times[shown] > 1 else shown for factor, shown in chosen.items()}


def _latex_product(product: Monomial, reader: Reader, symbols: dict[str, str]) -> str:
    variables: list[str] = []
    functions: list[str] = []
    for factor, power in Counter(product).items():
        call = reader.call(factor)
        shown = symbols[factor] if call is None else _latex_call(call, reader)
        own = variables if call is None else functions
        own.append(f"{shown}^{{{power}}}" if power > 1 else shown)
    return TIMES.join(variables + functions)


def _latex_call(call: Call, reader: Reader) -> str:
    inner = _latex_product(call.argument, reader, _symbols(set(call.argument)))
    if call.factor != 1.0 or not inner:
        sign = "-" if call.factor < 0 else ""
        inner = TIMES.join(filter(None, [sign + _latex_number(abs(call.factor), 12), inner]))
    name = rf"\{call.function}" if call.function != "sqrt" else r"\operatorname{sqrt}"
    return rf"{name}\left({inner}\right)"


def _latex_number(value: float, digits: int) -> str:
    mantissa, _, exponent = f"{value:.{digits}g}".partition("e")
    return rf"{mantissa} \times 10^{{{int(exponent)}}}" if exponent else mantissa


# SymPy ------------------------------------------------------------------------------------------


def sympy_sum(terms: Sequence[Term], reader: Reader) -> Any:
    """The sum of some terms as an expression of SymPy, with symbols called as the factors are."""
    sympy = _sympy()
    parts = []
    for value, name in terms:
        product = () if name is None else reader.product(name)
        parts.append(sympy.Mul(sympy.Float(float(value)), _sympy_product(product, reader, sympy)))
    return sympy.Add(*parts)


def _sympy_product(product: Monomial, reader: Reader, sympy: Any) -> Any:
    factors = []
    for factor in product:
        call = reader.call(factor)
        if call is None:
            factors.append(sympy.Symbol(factor))
            continue
        whole = int(call.factor) if call.factor.is_integer() else sympy.Float(call.factor)
        inner = sympy.Mul(whole, _sympy_product(call.argument, reader, sympy))
        factors.append(getattr(sympy, call.function)(inner))
    return sympy.Mul(*factors)


def _sympy() -> Any:
    try:
        import sympy
    except ImportError as error:
        raise ImportError("to_sympy needs SymPy: pip install sympy") from error
    return sympy
