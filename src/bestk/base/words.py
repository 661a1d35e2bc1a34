"""Numbers in words, and words of strangers; nothing slow is imported for them."""

import re

# Controls, separators of lines, halves of characters, and what changes the direction of writing.
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def counted(number: int, one: str, many: str = "") -> str:
    """``1 row`` or ``1,200 rows``."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def printable(text: object, keep: str = "") -> str:
    """A text, perhaps from a stranger's file, as a terminal can show it.

    Codes stand in place of what would move the cursor, colour or hide something; of control
    characters only those of `keep` are left.
    """
    return _CONTROL.sub(lambda c: c[0] if c[0] in keep else ascii(c[0])[1:-1], str(text))
