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
PAUSES = (0.003, 0.01, 0.03)  # after every 32 bytes: the serial port has no flow control, and a busy host loses some


def run_micropython(directory, program):
    """Return what a program prints."""
    if interpreter := shutil.which("micropython"):
        (directory / "program.py").write_text(program)
        done = subprocess.run([interpreter, "program.py"], cwd=directory, capture_output=True, text=True, check=True)
        return done.stdout
    if shutil.which("qemu-system-arm") and FIRMWARE.exists():
        for pause in PAUSES:
            said, problem = _on_board(program, pause)
            if not problem:
                return said
        raise AssertionError(problem)
    pytest.skip("neither micropython nor qemu-system-arm with firmware-microbit-micropython on this machine")


def _on_board(program, pause):
    loader = f"loader,file={FIRMWARE}"
    command = ["qemu-system-arm", "-M", "microbit", "-device", loader, "-nographic", "-serial", "stdio"]
    streams = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    with subprocess.Popen([*command, "-monitor", "none"], **streams) as board:
        try:
            _until(board, b">>> ")
            _send(board, b"\x01", pause)  # the prompt for programs, without echo
            _until(board, b"exit\r\n>")
            _send(board, program.encode() + b"\x04", pause)
            answer = _until(board, b"\x04>")
        finally:
            board.kill()
    said, problem = answer.removeprefix(b"OK").removesuffix(b"\x04>").split(b"\x04")
    return said.decode().replace("\r\n", "\n"), problem.decode()


def _send(board, content, pause):
    """Write slowly: the serial port of the board has a short buffer."""
    for i in range(0, len(content), 32):
        board.stdin.write(content[i : i + 32])
        board.stdin.flush()
        time.sleep(pause)


def _until(board, end):
    found, stop = b"", time.monotonic() + SECONDS
    while not found.endswith(end):
        ready, _, _ = select.select([board.stdout], [], [], 1)
        if ready:
            found += os.read(board.stdout.fileno(), 4096)
        assert time.monotonic() < stop, f"the board did not answer; it said {found!r}"
    return found
