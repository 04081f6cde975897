"""The provenance of made-up results."""

MADE = {
    "date": "2020-01-02T03:04:05+00:00",
    "seconds": 10.0,
    "commit": "0123456789abcdef",
    "python": "3.12.0",
    "versions": {"jax": "1"},
    "device": "cpu a",
    "cores": 2,
}
