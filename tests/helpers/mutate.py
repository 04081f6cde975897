"""Turning sound files into damaged and hostile ones: bytes, words, lines, JSON, and model files with a right checksum.

Everything depends on a `random.Random` alone, so that a seed says which input it was. It is written for speed, since
fuzzing makes millions of inputs; tests with Hypothesis use it through `mutants`.
"""

import hashlib
import json
import re
import struct
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

import numpy as np
from safetensors.numpy import load as load_tensors
from safetensors.numpy import save as save_tensors

BLANK = "0" * 64
NUMBERS = [
    *(b"0", b"1", b"-1", b"2", b"3", b"7", b"8", b"255", b"256", b"65535", b"65536", b"1000000", b"16777217"),
    *(b"2147483647", b"2147483648", b"-2147483649", b"4294967296", b"9223372036854775808", b"9" * 30, b"9" * 400),
    *(b"0.5", b".25", b"1e-320", b"1e308", b"1e999", b"-0.0", b"nan", b"inf", b"-inf", b"1_0", b"0x10", b"+1"),
    *("٣".encode(), "½".encode(), b"1e", b"1,5", b"00", b"1.0"),
]
ODDITIES = [
    *(b"", b" ", b"\n", b"\r", b"\r\n", b"\t", b"\0", b"\xff", b"\xed\xa0\x80", b"\xef\xbb\xbf", b"\xc3", b"'", b'"'),
    *("é".encode(), "\u2028".encode(), "\x85".encode(), "😀".encode(), b"\\", b"\\u0000", b"%s", b"{}", b"../", b"#"),
]
_WORD = re.compile(rb"[^\s,;|(){}\[\]<>=:\"]+")


class Corpus:
    """Sound inputs of a reader and the words of its language.

    Parameters
    ----------
    seeds
        Sound inputs.
    tokens
        Words and marks that mean something to the reader.
    longest
        Mutants are cut to so many bytes.
    """

    def __init__(self, seeds: Sequence[bytes], tokens: Sequence[bytes | str], longest: int = 20_000) -> None:
        self.seeds = list(seeds)
        self.tokens = [token.encode() if isinstance(token, str) else token for token in tokens]
        self.longest = longest
        self._words = [[found.span() for found in _WORD.finditer(seed)] or [(0, 0)] for seed in self.seeds]
        self._lines = [seed.splitlines(keepends=True) or [b""] for seed in self.seeds]

    def mutant(self, rng: Random) -> bytes:
        """Return an input that most often is nearly sound."""
        draw = rng.random()
        if draw < 0.03:
            return self._soup(rng)
        if draw < 0.04:
            return rng.randbytes(rng.randrange(200))
        number = rng.randrange(len(self.seeds))
        if draw < 0.55:
            data = self._change_words(rng, number)
        elif draw < 0.75:
            data = self._change_lines(rng, number)
        else:
            data = self._change_bytes(rng, self.seeds[number])
        while rng.random() < 0.3:
            data = self._change_bytes(rng, data)
        if rng.random() < 0.004:
            data = self._pile(rng, data)
        return data[: self.longest]

    def piece(self, rng: Random) -> bytes:
        """Return a word of the language, a number, an oddity or a few bytes."""
        draw = rng.random()
        if draw < 0.45:
            return rng.choice(self.tokens)
        if draw < 0.75:
            return rng.choice(NUMBERS)
        return rng.choice(ODDITIES) if draw < 0.92 else rng.randbytes(rng.randrange(1, 4))

    def _soup(self, rng: Random) -> bytes:
        glue = rng.choice((b" ", b" ", b"", b"\n", b","))
        return glue.join(self.piece(rng) for _ in range(rng.randrange(1, 40)))

    def _change_words(self, rng: Random, number: int) -> bytes:
        seed, words = self.seeds[number], self._words[number]
        for start, stop in sorted(rng.choices(words, k=rng.choice((1, 1, 2, 3))), reverse=True):
            draw = rng.random()
            if draw < 0.6:
                word = self.piece(rng)
            elif draw < 0.8:
                other = rng.choice(words)
                word = self.seeds[number][other[0] : other[1]]
            else:
                word = self._change_bytes(rng, seed[start:stop])
            seed = seed[:start] + word + seed[stop:]
        return seed

    def _change_lines(self, rng: Random, number: int) -> bytes:
        lines = self._lines[number].copy()
        place, draw = rng.randrange(len(lines)), rng.random()
        if draw < 0.25:
            del lines[place]
        elif draw < 0.5:
            other = rng.randrange(len(lines))
            lines[place], lines[other] = lines[other], lines[place]
        elif draw < 0.75:
            lines[place:place] = [lines[rng.randrange(len(lines))]] * rng.choice((1, 1, 2, 9))
        else:
            others = self._lines[rng.randrange(len(self._lines))]
            lines[place : place + rng.randrange(3)] = others[rng.randrange(len(others)) :]
        return b"".join(lines)

    def _change_bytes(self, rng: Random, data: bytes) -> bytes:
        at = rng.randrange(len(data) + 1)
        draw = rng.random()
        if draw < 0.25 and at < len(data):
            return b"%s%c%s" % (data[:at], data[at] ^ (1 << rng.randrange(8)), data[at + 1 :])
        if draw < 0.6:
            return data[:at] + self.piece(rng) + data[at + rng.choice((0, 0, 1, 4)) :]
        if draw < 0.75:
            return data[:at] + data[at + rng.randrange(1, 12) :]
        if draw < 0.9:
            other = rng.randrange(len(data) + 1)
            return data[:at] + data[other : other + rng.randrange(40)] + data[at:]
        return data[:at]

    def _pile(self, rng: Random, data: bytes) -> bytes:
        """Repeat something very often: depth, width and length."""
        at = rng.randrange(len(data) + 1)
        piece = self.piece(rng) if rng.random() < 0.7 else data[at : at + rng.randrange(1, 30)]
        return data[:at] + (piece or b"[") * rng.choice((300, 1500, 5000)) + data[at:]


DEEP = "@deep"  # stands for lists in lists, which `json_text` writes: Python's own encoder refuses them
LEAVES: list[Any] = [None, True, False, 0, 1, -1, 2, 3, 2**31, 2**63, 10**40, 10**400, -0.5, 0.0, 1e308, 5e-324]
LEAVES += ["", "a", "nan", "\ud800", "../x", "float", "x" * 300, [], {}, [0], [[]], {"a": 1}, {"float": "inf"}]


def places(value: object) -> list[tuple[Any, Any]]:
    """Return every place in a document, as its holder and the key there."""
    keys = list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else []
    return [place for key in keys for place in [(value, key), *places(value[key])]]  # type: ignore[index]


def _place(rng: Random, value: Any) -> tuple[Any, Any] | None:
    """Return a place of a document by a walk from its top; None when it is empty."""
    found = None
    while isinstance(value, dict | list) and value:
        key = rng.choice(list(value)) if isinstance(value, dict) else rng.randrange(len(value))
        found = value, key
        value = value[key]
        if rng.random() < 0.2:
            break
    return found


def change_json(rng: Random, document: Any, times: int = 3) -> None:
    """Change a JSON document in a few places: other types and sizes, nothing, copies, depth, neighbours of integers."""
    for _ in range(rng.randrange(1, times + 1)):
        place = _place(rng, document)
        if place is None:
            return
        holder, key = place
        draw, value = rng.random(), holder[key]
        if draw < 0.3 and type(value) is int:
            holder[key] = value + rng.choice((-1, 1, 1, 7, -value, value))
        elif draw < 0.4 and isinstance(value, list) and value:
            holder[key] = value[rng.randrange(2) :] if rng.random() < 0.5 else value * rng.choice((2, 2, 50))
        elif draw < 0.5:
            del holder[key]
        elif draw < 0.65:
            other, where = _place(rng, document) or place
            holder[key] = json.loads(json.dumps(other[where]))
        elif draw < 0.7 and isinstance(holder, dict):
            holder[rng.choice(("name", "kind", "x", "tree", "id"))] = holder.pop(key)
        elif draw < 0.703:
            holder[key] = DEEP
        else:
            holder[key] = json.loads(json.dumps(rng.choice(LEAVES)))


def json_text(rng: Random, document: object) -> str:
    """Write a changed document, now and then in a way that JSON does not allow or that few write."""
    text = json.dumps(document, ensure_ascii=rng.random() < 0.8)
    if f'"{DEEP}"' in text:
        depth = rng.choice((60, 400, 900, 3000))
        text = text.replace(f'"{DEEP}"', "[" * depth + "]" * depth)
    return text


def opened(data: bytes) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Take a model file apart, without our code."""
    length = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8 : 8 + length])
    return json.loads(header["__metadata__"]["tinybayes"]), load_tensors(data)


def sealed(document: object, tensors: dict[str, np.ndarray]) -> bytes:
    """Put a model file together, without our code, with a checksum that is right; documents may be JSON text."""
    if isinstance(document, dict):
        document = json.dumps({**document, "checksum": BLANK}, sort_keys=True)
    data = save_tensors(tensors, {"tinybayes": document})
    return data.replace(BLANK.encode(), hashlib.sha256(data).hexdigest().encode(), 1)


def sealed_again(data: bytes, checksum: bytes) -> bytes:
    """Put a right checksum where the old one stands, if it still does."""
    place = data.find(checksum)
    if place < 0:
        return data
    blank = data[:place] + BLANK.encode() + data[place + 64 :]
    return data[:place] + hashlib.sha256(blank).hexdigest().encode() + data[place + 64 :]


def change_tensor(rng: Random, tensors: dict[str, np.ndarray]) -> None:
    """Change one of the tensors: its numbers, its length, its type, its shape, its name, or leave it out."""
    if not tensors:
        return
    name = rng.choice(list(tensors))
    array, draw = tensors[name], rng.random()
    if draw < 0.5 and array.size:
        changed = bytearray(array.tobytes())
        for _ in range(rng.choice((1, 1, 2, 5, len(changed)))):
            changed[rng.randrange(len(changed))] = rng.choice((0, 1, 255, 127, 128, rng.randrange(256)))
        tensors[name] = np.frombuffer(bytes(changed), array.dtype)
    elif draw < 0.6:
        tensors[name] = np.full_like(array, rng.choice((0, 1, -1 if array.dtype.kind != "u" else 255, 100)))
    elif draw < 0.75:
        more = rng.choice((1, 1, 8, 3000))
        flat = array.reshape(-1)
        tensors[name] = flat[: max(0, flat.size - more)] if rng.random() < 0.5 else np.resize(flat, flat.size + more)
    elif draw < 0.85:
        octets = np.frombuffer(array.tobytes(), np.uint8)
        tensors[name] = octets.astype(rng.choice(("i1", "u1", "i2", "i4", "f4", "f8")))
    elif draw < 0.9:
        tensors[name] = array.reshape(1, -1) if rng.random() < 0.5 else array.reshape(-1)[:1, None]
    elif draw < 0.95:
        tensors[rng.choice(("more", *tensors))] = tensors.pop(name)
    else:
        del tensors[name]


class ModelFiles:
    """Model files to be damaged: in their JSON, in their tensors, or anywhere, nearly all with a right checksum."""

    def __init__(self, files: Sequence[bytes]) -> None:
        self.files = list(files)
        parts = [opened(file) for file in files]
        self._parts = [(json.dumps({**document, "checksum": ""}), tensors) for document, tensors in parts]
        self._sums = [document["checksum"].encode() for document, _ in parts]
        self._bytes = Corpus(self.files, ["{", "}", "[", "]", ":", ",", '"', "null", '"dtype":"U8"', '"shape":[1]'])

    def mutant(self, rng: Random) -> bytes:
        """Return a model file that is most often nearly sound."""
        number, draw = rng.randrange(len(self.files)), rng.random()
        if draw < 0.12:
            data = self._bytes._change_bytes(rng, self.files[number])
            return data if draw < 0.04 else sealed_again(data, self._sums[number])
        text, tensors = self._parts[number]
        document, tensors = json.loads(text), dict(tensors)
        if draw < 0.65:
            change_json(rng, document if draw < 0.2 else document["model"])
        if draw > 0.55:
            change_tensor(rng, tensors)
        document["checksum"] = BLANK
        return sealed(json_text(rng, dict(sorted(document.items()))).encode("utf-8", "replace").decode(), tensors)


def mutants(corpus: Corpus | ModelFiles) -> Any:
    """Return a Hypothesis strategy of mutants, for tests of a reader beside its other tests."""
    from hypothesis import strategies as st

    make: Callable[[int], bytes] = lambda seed: corpus.mutant(Random(seed))  # noqa: E731
    return st.integers(0, 2**48).map(make)
