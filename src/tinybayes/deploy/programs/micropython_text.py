"""Constants of modules for MicroPython as text: tuples, and tables in bytes."""

import numpy as np

CHUNK = 24  # bytes of a table in one line


def tuple_text(name: str, words: list[str]) -> str:
    """Write a tuple, in one line if it is short."""
    if sum(map(len, words)) < 80:
        return f"{name} = ({', '.join(words)}{',' if len(words) == 1 else ''})\n"
    return f"{name} = (\n" + "".join(f"    {word},\n" for word in words) + ")\n"


def byte_lines(data: bytes) -> list[str]:
    """Write bytes in lines of source code."""
    return [repr(data[i : i + CHUNK]) for i in range(0, len(data), CHUNK)] or ["b''"]


def bytes_text(data: bytes) -> str:
    """Write bytes as one expression."""
    lines = byte_lines(data)
    return lines[0] if len(lines) == 1 else "(\n" + "".join(f"    {line}\n" for line in lines) + ")"


class ByteTable:
    """Numbers that are not negative, in as few bytes each as the largest of them needs."""

    def __init__(self, name: str, numbers: np.ndarray) -> None:
        self.name, self.numbers = name, np.asarray(numbers, dtype="<u8").reshape(-1)
        self.width = max(1, -(-int(self.numbers.max(initial=0)).bit_length() // 8))

    @property
    def is_constant(self) -> bool:
        """Whether all numbers are equal."""
        return len(set(self.numbers.tolist())) <= 1

    def text(self) -> str:
        """Write the table."""
        data = self.numbers.view(np.uint8).reshape(-1, 8)[:, : self.width].tobytes()
        return f"{self.name} = {bytes_text(data)}\n"

    def entry(self, k: str) -> str:
        """Write the entry with the number `k`, which is a name or in parentheses."""
        if self.width == 1:
            return f"{self.name}[{k.removeprefix('(').removesuffix(')')}]"
        first = f"{self.width} * {k}"
        parts = (f"{self.name}[{first} + {i}] << {8 * i}" for i in range(1, self.width))
        return f"({' | '.join([f'{self.name}[{first}]', *parts])})"
