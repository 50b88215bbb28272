"""Checks that end in one line naming the key, the value and the fix."""


def check_range(key: str, value: float, low: float, high: float) -> None:
    """Raises a ValueError unless low <= value <= high; NaN is never inside."""
    if not low <= value <= high:
        raise ValueError(f"{key}: {value} is out of range; use {low} to {high}")
