"""The boards that QEMU emulates, one for each core, and their memory."""

from dataclasses import dataclass

from tinybayes.errors import error

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


BOARDS = {
    # The machine has a Cortex-M0; the M0+ runs the same instructions, in fewer cycles.
    "m0+": Board("Cortex-M0+", "microbit", ("-mcpu=cortex-m0plus",), 256 * KIB, 16 * KIB, 16_000_000),
    "m3": Board("Cortex-M3", "mps2-an385", ("-mcpu=cortex-m3",), 4096 * KIB, 4096 * KIB, 25_000_000),
    "m4": Board(
        "Cortex-M4",
        "mps2-an386",
        ("-mcpu=cortex-m4", "-mfpu=fpv4-sp-d16", "-mfloat-abi=hard"),
        4096 * KIB,
        4096 * KIB,
        25_000_000,
    ),
    "m7": Board(
        "Cortex-M7",
        "mps2-an500",
        ("-mcpu=cortex-m7", "-mfpu=fpv5-sp-d16", "-mfloat-abi=hard"),
        4096 * KIB,
        4096 * KIB,
        25_000_000,
    ),
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
