"""The program around a model on an emulated board: it reads rows, times and watches predictions, writes answers.

Files are those of the machine that runs the emulator, through semihosting. Each block of rows is timed twice, through
the prediction and through a function that returns at once, in the same loop; the difference is the prediction alone.
"""

from dataclasses import asdict, dataclass

BLOCK = 2048  # bytes of rows in the memory of the board at a time
CALLS = 32  # in one timing, at least: a tick of the timer is many instructions
PAINTED = 32 * 1024  # bytes of stack that are watched

START = """
    .syntax unified
    .thumb
    .section .vectors, "a"
    .word stack_top
    .word reset + 1
    .word fault + 1
    .word fault + 1
    .word fault + 1
    .word fault + 1
    .word fault + 1

    .section .text.reset, "ax"
    .thumb_func
    .global reset
reset:
    bl monitor_start
fault:
    ldr r0, =0x18       @ end the emulation with an error
    ldr r1, =0x20023
    bkpt 0xAB
    b fault

    .thumb_func
    .global semihost
semihost:
    bkpt 0xAB
    bx lr

    .thumb_func
    .global probe_nothing
probe_nothing:
    bx lr
"""

MONITOR = """
#include <stdint.h>
#include "{header}"

#define TIMER ((volatile uint32_t *)0xE000E010U)

extern uint32_t data_begin[], data_end[], data_image[], bss_begin[], bss_end[], stack_top[];
extern uint32_t semihost(uint32_t operation, const void *arguments);
extern {label} probe_nothing(const {element} *x);

static {element} block[{rows}U * {width}U];
static struct {{ uint32_t label; {score} score[{scores}]; }} answer;
static struct {{ uint32_t rows, stack; uint64_t ticks, empty; }} figures;
volatile uint32_t sink;

static __attribute__((noinline)) uint32_t probe_call(const {element} *x) {{ return (uint32_t){call}(x); }}
static __attribute__((noinline)) uint32_t probe_empty(const {element} *x) {{ return (uint32_t)probe_nothing(x); }}

static uint32_t *stack_limit(void)
{{
    const uintptr_t lowest = (uintptr_t)stack_top - {painted}U;
    return lowest > (uintptr_t)bss_end ? (uint32_t *)lowest : bss_end;
}}

static __attribute__((noinline)) void paint(void)
{{
    uint32_t *p, *here;
    __asm volatile("mov %0, sp" : "=r"(here));
    for (p = stack_limit(); p < here; ++p) {{
        *(volatile uint32_t *)p = 0xA5C35A3CU;
    }}
}}

static uint32_t depth(void)
{{
    const uint32_t *p = stack_limit();
    while (*(const volatile uint32_t *)p == 0xA5C35A3CU) {{
        ++p;
    }}
    return (uint32_t)((uintptr_t)stack_top - (uintptr_t)p);
}}

static __attribute__((noinline)) uint64_t timed(uint32_t (*probe)(const {element} *), uint32_t rows)
{{
    uint32_t r, k, before, now;
    uint64_t ticks = 0;
    TIMER[1] = 0xFFFFFFU;
    TIMER[2] = 0;
    TIMER[0] = 5;
    do {{
        before = TIMER[2]; /* 0 until the first tick */
    }} while (!before);
    for (r = 0; r < {repeat}U; ++r) {{
        const {element} *x = block;
        for (k = 0; k < rows; ++k) {{
            sink = probe(x);
            x += {width}U;
            now = TIMER[2]; /* 24 bits, counting down: read after every call, it may wrap between two of them */
            ticks += (before - now) & 0xFFFFFFU;
            before = now;
        }}
    }}
    return ticks;
}}

static uint32_t open_file(const char *name, uint32_t length, uint32_t mode)
{{
    const uint32_t arguments[3] = {{(uint32_t)(uintptr_t)name, mode, length}};
    return semihost(1, arguments);
}}

static uint32_t transfer(uint32_t operation, uint32_t file, const void *bytes, uint32_t count)
{{
    const uint32_t arguments[3] = {{file, (uint32_t)(uintptr_t)bytes, count}};
    return semihost(operation, arguments);
}}

static void watch(uint32_t rows)
{{
    uint32_t shallow, deep;
    paint();
    figures.empty += timed(probe_empty, rows);
    shallow = depth();
    paint();
    figures.ticks += timed(probe_call, rows);
    deep = depth();
    figures.rows += rows;
    if (deep - shallow > figures.stack) {{
        figures.stack = deep - shallow;
    }}
}}

static void work(void)
{{
    const uint32_t in = open_file("rows.bin", 8, 1), out = open_file("answers.bin", 11, 5);
    for (;;) {{
        const uint32_t missing = transfer(6, in, block, sizeof block) / (uint32_t)sizeof block[0];
        const uint32_t rows = {rows}U - missing / {width}U;
        const {element} *x;
        if (!rows) {{
            break;
        }}
        watch(rows);
        for (x = block; x < block + rows * {width}U; x += {width}U) {{
            answer.label = probe_call(x);
            {get_scores};
            transfer(5, out, &answer, {answer});
        }}
    }}
    transfer(5, open_file("figures.bin", 11, 5), &figures, sizeof figures);
}}

void monitor_start(void)
{{
    uint32_t *p;
    const uint32_t *from = data_image;
    {enable_floats}
    for (p = data_begin; p < data_end; ++p) {{
        *p = *from++;
    }}
    for (p = bss_begin; p < bss_end; ++p) {{
        *p = 0;
    }}
    work();
    semihost(0x18, (const void *)0x20026U);
}}
"""


@dataclass(frozen=True)
class Probe:
    """How C code calls a model, and the types of its answer."""

    header: str  # the file that declares the functions
    call: str  # the function from a row to a label
    element: str  # C type of the numbers of a row
    width: int  # how many numbers a row has
    label: str  # C type of a label
    scores: str = ""  # a function from a row to scores, or empty
    score: str = "int32_t"  # C type of a score
    classes: int = 0  # scores per row


def repeats(rows: int, row_bytes: int) -> int:
    """Return how often each block of rows is timed, so that single ticks of the timer do not matter."""
    return max(-(-CALLS // min(rows, _block(row_bytes))), -(-16 * CALLS // rows))


def _block(row_bytes: int) -> int:
    return max(1, BLOCK // max(1, row_bytes))


def program(probe: Probe, row_bytes: int, repeat: int, *, floats: bool) -> str:
    """Write the program; `row_bytes` is the size of a row, `floats` whether the core has a unit for them."""
    return MONITOR.format(
        **asdict(probe) | {"width": max(1, probe.width), "scores": max(1, probe.classes)},
        rows=_block(row_bytes),
        get_scores=f"{probe.scores}(x, answer.score)" if probe.scores else "",
        answer=4 + (4 * probe.classes if probe.scores else 0),
        repeat=repeat,
        painted=PAINTED,
        enable_floats="*(volatile uint32_t *)0xE000ED88U |= 0xF00000U;" if floats else "",
    )
