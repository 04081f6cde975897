"""Codes of a few bits each, packed without gaps."""

import numpy as np


def pack_bits(codes: np.ndarray, bits: int) -> np.ndarray:
    """Write codes without gaps, the lowest bit first: eight codes fill as many octets as a code has bits."""
    groups = np.zeros((-(-len(codes) // 8), 8), codes.dtype)
    groups.reshape(-1)[: len(codes)] = codes
    octets = np.zeros((len(groups), bits), np.uint8)
    for column in range(8):
        octet, shift = divmod(column * bits, 8)
        value = groups[:, column].astype(np.uint64) << np.uint64(shift)
        for part in range((shift + bits + 7) // 8):
            octets[:, octet + part] |= (value >> np.uint64(8 * part)).astype(np.uint8)
    return octets.reshape(-1)[: (len(codes) * bits + 7) // 8]


def unpack_bits(octets: np.ndarray, bits: int) -> np.ndarray:
    """Return as many codes as the octets hold, in the smallest unsigned type."""
    groups = np.zeros((-(-len(octets) // bits), bits), np.uint8)
    groups.reshape(-1)[: len(octets)] = octets
    codes = np.empty((len(groups), 8), np.min_scalar_type(2**bits - 1))
    for column in range(8):
        octet, shift = divmod(column * bits, 8)
        value = np.zeros(len(groups), np.uint64)
        for part in range((shift + bits + 7) // 8):
            value |= groups[:, octet + part].astype(np.uint64) << np.uint64(8 * part)
        codes[:, column] = (value >> np.uint64(shift)) & np.uint64(2**bits - 1)
    return codes.reshape(-1)[: 8 * len(octets) // bits]
