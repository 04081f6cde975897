"""The native model file: a safetensors file whose header says in JSON what its tensors are.

Reading trusts nothing: every field is checked before it is used, memory follows the size of the file and never
a number written in it, nothing is executed, and every fault becomes a `FileError` that says where it is.
The format is described in docs/model_file.md.
"""

import hashlib
import os
import stat
from collections.abc import Callable
from typing import Any

from safetensors import SafetensorError, deserialize
from safetensors.numpy import save as safetensors_bytes

from tinybayes.deploy.files._native import models
from tinybayes.deploy.files._native.fields import JSON, dumps, get, integer, parse, short
from tinybayes.deploy.files._native.tensors import Tensors
from tinybayes.errors import FileError, error
from tinybayes.files import atomic_path
from tinybayes.model import BayesNet, Circuit, LogLinear, NeuralNet

Model = BayesNet | Circuit | LogLinear | NeuralNet
VERSION = 1
_HEADER_LIMIT = 2**26
_BLANK = b"0" * 64  # replaces the checksum while that is computed
_DAMAGED = "the file is damaged: fetch or make it again"


_KINDS: dict[str, tuple[Callable[[Any], models.Packed], Callable[[models.Content, Tensors], Model]]] = {
    "BayesNet": (models.pack_bayes_net, models.unpack_bayes_net),
    "Circuit": (models.pack_circuit, models.unpack_circuit),
    "LogLinear": (models.pack_log_linear, models.unpack_log_linear),
    "NeuralNet": (models.pack_neural_net, models.unpack_neural_net),
}


def write_native(model: Model, path: str | os.PathLike[str], *, metadata: dict[str, JSON] | None = None) -> None:
    """Write a model to a file; the same model and metadata always give the same bytes."""
    kind = type(model).__name__
    if kind not in _KINDS:
        raise error(f"a model of the kind {' or '.join(_KINDS)}", kind, where="save")
    metadata = {} if metadata is None else metadata
    if not isinstance(metadata, dict):
        raise error("a JSON object", short(metadata), where="metadata")
    dumps(metadata, "metadata")  # raises here, so that the message does not blame the model
    content, tensors = _KINDS[kind][0](model)
    # "checksum" sorts first, so the first 64 zeros of the file are its own, whichever names follow.
    blank = _BLANK.decode()
    document = {"checksum": blank, "kind": kind, "metadata": metadata, "model": content, "version": VERSION}
    data = bytearray(safetensors_bytes(tensors, {"tinybayes": dumps(document, "model")}))
    length = int.from_bytes(data[:8], "little")
    if length > _HEADER_LIMIT:
        raise error(f"names, states and metadata within {_HEADER_LIMIT} bytes", length, where="model")
    start = data.index(_BLANK)
    data[start : start + len(_BLANK)] = hashlib.sha256(data).hexdigest().encode()
    with atomic_path(path) as temporary:
        temporary.write_bytes(data)


def read_native(path: str | os.PathLike[str]) -> Model:
    """Read a model; raise a `FileError` that says where the file is not sound."""
    document, tensors = _read(path)
    content = get(document, "model", dict, f"{path}, header")
    model = _KINDS[document["kind"]][1](content, tensors)
    tensors.finish()
    return model


def load_metadata(path: str | os.PathLike[str]) -> dict[str, JSON]:
    """Read the metadata that `save` stored beside the model."""
    document, _ = _read(path)
    return get(document, "metadata", dict, f"{path}, header")


def _read(path: str | os.PathLike[str]) -> tuple[dict[str, Any], Tensors]:
    """Read a file, and check everything but the content of the model."""
    where = f"{path}, header"
    data, header = _read_bytes(path)
    named = parse(header, where, _DAMAGED).get("__metadata__")
    if not isinstance(named, dict) or not isinstance(named.get("tinybayes"), str):
        raise error("a tinybayes model", "a safetensors file of something else", where=where, kind=FileError)
    try:
        entries = deserialize(data)
    except SafetensorError as problem:
        raise error("sound tensors", f"{problem}", where=where, remedy=_DAMAGED, kind=FileError) from problem
    document = parse(named["tinybayes"], where, _DAMAGED)
    version = integer(document, "version", where, low=1)
    if version > VERSION:
        expected, remedy = f"a file version up to {VERSION}", "upgrade tinybayes"
        raise error(expected, short(version), where=f"{where}.version", remedy=remedy, kind=FileError)
    _verify(data, header, get(document, "checksum", str, where), f"{where}.checksum")
    kind = get(document, "kind", str, where)
    if kind not in _KINDS:
        remedy = "a newer tinybayes may know it"
        raise error(" or ".join(_KINDS), short(kind), where=f"{where}.kind", remedy=remedy, kind=FileError)
    return document, Tensors(entries, str(path))


def _read_bytes(path: str | os.PathLike[str]) -> tuple[bytes, bytes]:
    """Read a file; return its bytes and the JSON of its header."""
    where = str(path)
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            raise error("a regular file", "a directory or a device", where=where, kind=FileError)
        with open(path, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            start = file.read(8)
            length = int.from_bytes(start, "little")
            if size < 8 or length > min(size - 8, _HEADER_LIMIT):
                expected = f"8 bytes, then a header within the file and {_HEADER_LIMIT} bytes"
                got = f"{size} bytes" if size < 8 else f"{size} bytes in all for a header of {length}"
                remedy = "this is no model file, or only a part of one"
                raise error(expected, got, where=where, remedy=remedy, kind=FileError)
            file.seek(0)
            data = file.read()
    except OSError as problem:
        reason = problem.strerror or problem
        raise error("a file that can be read", reason, where=where, kind=FileError) from problem
    return data, data[8 : 8 + length]


def _verify(data: bytes, header: bytes, checksum: str, where: str) -> None:
    """Raise unless the file is what was written, to the last bit."""
    digits = checksum.encode(errors="replace")
    start = 8 + header.find(digits)
    digest = hashlib.sha256(data[:start])
    digest.update(_BLANK)
    digest.update(memoryview(data)[start + len(digits) :])
    if digest.hexdigest() != checksum:
        raise error(digest.hexdigest(), short(checksum), where=where, remedy=_DAMAGED, kind=FileError)
