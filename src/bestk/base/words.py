"""Numbers in words; nothing slow is imported for it."""


def counted(number: int, one: str, many: str = "") -> str:
    """``1 row`` or ``1,200 rows``."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"
