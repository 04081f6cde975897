"""Runs a program under a real MicroPython: the one of this machine, or that of an emulated micro:bit."""

import os
import select
import shutil
import subprocess
import time
from pathlib import Path

import pytest

FIRMWARE = Path("/usr/share/firmware-microbit-micropython/firmware.hex")
SECONDS = 60


def run_micropython(directory, program):
    """Return what a program prints."""
    if interpreter := shutil.which("micropython"):
        (directory / "program.py").write_text(program)
        done = subprocess.run([interpreter, "program.py"], cwd=directory, capture_output=True, text=True, check=True)
        return done.stdout
    if shutil.which("qemu-system-arm") and FIRMWARE.exists():
        return _on_board(program)
    pytest.skip("neither micropython nor qemu-system-arm with firmware-microbit-micropython on this machine")


def _on_board(program):
    loader = f"loader,file={FIRMWARE}"
    command = ["qemu-system-arm", "-M", "microbit", "-device", loader, "-nographic", "-serial", "stdio"]
    streams = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    with subprocess.Popen([*command, "-monitor", "none"], **streams) as board:
        try:
            _until(board, b">>> ")
            _send(board, b"\x01")  # the prompt for programs, without echo
            _until(board, b"exit\r\n>")
            _send(board, program.encode() + b"\x04")
            answer = _until(board, b"\x04>")
        finally:
            board.kill()
    said, problem = answer.removeprefix(b"OK").removesuffix(b"\x04>").split(b"\x04")
    assert not problem, problem.decode()
    return said.decode().replace("\r\n", "\n")


def _send(board, content):
    """Write slowly: the serial port of the board has a short buffer."""
    for i in range(0, len(content), 32):
        board.stdin.write(content[i : i + 32])
        board.stdin.flush()
        time.sleep(0.003)


def _until(board, end):
    found, stop = b"", time.monotonic() + SECONDS
    while not found.endswith(end):
        ready, _, _ = select.select([board.stdout], [], [], 1)
        if ready:
            found += os.read(board.stdout.fileno(), 4096)
        assert time.monotonic() < stop, f"the board did not answer; it said {found!r}"
    return found
