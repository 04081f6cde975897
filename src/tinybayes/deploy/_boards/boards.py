"""The boards that QEMU emulates; the cross compiler and the emulator as functions: sources to an image, and a run."""

import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tinybayes.errors import error

COMPILER, SIZER, EMULATOR = "arm-none-eabi-gcc", "arm-none-eabi-size", "qemu-system-arm"
PACKAGES = {COMPILER: "gcc-arm-none-eabi libnewlib-arm-none-eabi", EMULATOR: "qemu-system-arm"}
BUILD_SECONDS = 120.0
ROOM = 2**28  # bytes of memory for a program that is only measured, not run
KIB = 1024


@dataclass(frozen=True)
class Board:
    """A core, the machine that emulates it, and its memory."""

    core: str  # the usual name
    machine: str  # QEMU's name of the board
    flags: tuple[str, ...]  # the compiler's options for the core
    flash: int  # bytes of memory for code and constants, from address 0
    ram: int  # bytes of RAM, from address 0x20000000
    hertz: int  # the frequency of the core's timer; the emulated core executes one instruction per nanosecond

    @property
    def where(self) -> str:
        """The board in a message."""
        return f"{self.core} ({self.machine})"


_MPS2 = (4096 * KIB, 4096 * KIB, 25_000_000)
_M4 = ("-mcpu=cortex-m4", "-mfpu=fpv4-sp-d16", "-mfloat-abi=hard")
_M7 = ("-mcpu=cortex-m7", "-mfpu=fpv5-sp-d16", "-mfloat-abi=hard")
BOARDS = {
    # The machine has a Cortex-M0; the M0+ runs the same instructions, in fewer cycles.
    "m0+": Board("Cortex-M0+", "microbit", ("-mcpu=cortex-m0plus",), 256 * KIB, 16 * KIB, 16_000_000),
    "m3": Board("Cortex-M3", "mps2-an385", ("-mcpu=cortex-m3",), *_MPS2),
    "m4": Board("Cortex-M4", "mps2-an386", _M4, *_MPS2),
    "m7": Board("Cortex-M7", "mps2-an500", _M7, *_MPS2),
}


def find_board(name: str) -> Board:
    """Return a board by its short name."""
    if name not in BOARDS:
        raise error(f"one of {', '.join(BOARDS)}", repr(name), where="board")
    return BOARDS[name]


def linker_script(flash: int, ram: int) -> str:
    """Write the linker script: the sections of code, constants, variables and the stack."""
    return f"""
MEMORY
{{
    flash (rx) : ORIGIN = 0, LENGTH = {flash}
    ram (rw) : ORIGIN = 0x20000000, LENGTH = {ram}
}}
SECTIONS
{{
    .text : {{ KEEP(*(.vectors)) *(.text*) *(.rodata*) . = ALIGN(4); }} > flash
    .data : {{ data_begin = .; *(.data*) . = ALIGN(4); data_end = .; }} > ram AT > flash
    data_image = LOADADDR(.data);
    .bss (NOLOAD) : {{ bss_begin = .; *(.bss*) *(COMMON) . = ALIGN(4); bss_end = .; end = .; }} > ram
    /DISCARD/ : {{ *(.ARM.exidx*) *(.ARM.extab*) }}
}}
stack_top = ORIGIN(ram) + LENGTH(ram);
"""


def need_tools() -> None:
    """Raise when a program is missing, with the packages to install."""
    for program, packages in PACKAGES.items():
        if shutil.which(program) is None:
            remedy = f"on Debian: apt-get install {packages}"
            raise error(f"the program {program}", "none on the path", where="measuring", remedy=remedy)


def weigh(directory: Path, files: Mapping[str, str], board: Board, flags: Sequence[str], entry: str) -> tuple[int, int]:
    """Link a function with all that it calls; return its bytes of flash and of static RAM."""
    alone = [*flags, f"-Wl,--entry={entry}", f"-Wl,--undefined={entry}"]
    image = _link(directory, files, board, alone, linker_script(ROOM, ROOM), "alone.elf")
    listed = _run([SIZER, "-A", image.name], directory, BUILD_SECONDS).stdout
    size = {name: int(count) for name, count in re.findall(r"^(\.\w+)\s+(\d+)", listed, re.MULTILINE)}
    text, data, zeros = (size.get(name, 0) for name in (".text", ".data", ".bss"))
    for kind, room, needed in (("flash", board.flash, text + data), ("memory", board.ram, data + zeros)):
        if needed > room:
            remedy = "take fewer bits, a smaller structure or a larger board"
            raise error(f"at most {room:,} bytes of {kind}", f"{needed:,}", where=board.where, remedy=remedy)
    return text + data, data + zeros


def build(directory: Path, files: Mapping[str, str], board: Board, flags: Sequence[str]) -> Path:
    """Compile and link a program that begins with ``reset``."""
    script = linker_script(board.flash, board.ram)
    return _link(directory, files, board, [*flags, "-Wl,--entry=reset"], script, "board.elf")


def emulate(image: Path, board: Board, seconds: float) -> None:
    """Run an image; the program opens files in the image's directory. One instruction takes one nanosecond."""
    command = [EMULATOR, "-machine", board.machine, "-kernel", image.name, "-icount", "shift=0", "-nographic"]
    command += ["-monitor", "none", "-serial", "none", "-semihosting-config", "enable=on,target=native"]
    done = _run(command, image.parent, seconds)
    if done.returncode:
        said = " ".join(done.stderr.split())[:300] or f"exit code {done.returncode}"
        remedy = "the stack or the code of the program went wrong on the board"
        raise error("a run without faults", said, where=board.where, remedy=remedy)


def _link(
    directory: Path, files: Mapping[str, str], board: Board, flags: Sequence[str], script: str, image: str
) -> Path:
    for file, content in {**files, "board.ld": script}.items():
        (directory / file).write_text(content, encoding="utf-8")
    sources = [file for file in files if Path(file).suffix in (".c", ".S", ".cpp")]
    command = [COMPILER, "-mthumb", *board.flags, "-ffunction-sections", "-fdata-sections", *flags, *sources]
    command += ["-nostartfiles", "--specs=nosys.specs", "-T", "board.ld", "-Wl,--gc-sections", "-lm", "-o", image]
    done = _run(command, directory, BUILD_SECONDS)
    if done.returncode:
        said = done.stderr.splitlines()
        lines = [line for line in said if "error:" in line or "undefined" in line or "will not fit" in line]
        raise error("code that compiles and links", (lines or said or ["nothing said"])[0][:300], where=board.core)
    return directory / image


def _run(command: Sequence[str], directory: Path, seconds: float) -> "subprocess.CompletedProcess[str]":
    try:
        return subprocess.run(  # noqa: S603 - a list of our own making, no shell
            command, cwd=directory, capture_output=True, text=True, timeout=seconds, stdin=subprocess.DEVNULL
        )
    except FileNotFoundError as problem:
        need_tools()
        raise error(f"the program {command[0]}", "none on the path", where="measuring") from problem
    except subprocess.TimeoutExpired as problem:
        where, remedy = Path(command[0]).name, "give more time"
        raise error(f"an end within {seconds:g} s", "none", where=where, remedy=remedy) from problem
