"""The written C on other processors: 64-bit ARM, and a microcontroller that trains; both emulated."""

from __future__ import annotations

import shutil
import subprocess

import numpy as np
import pytest

import glassgrad as gg
from glassgrad import nn, optim
from glassgrad.nn import functional as F
from tests.compile.c.conftest import STRICT, prepare
from tests.compile.c.steps import STEPS, training

# A Cortex-M4 has 4 MB of each kind of memory on this board; `_start` of the C library calls main.
START = """\
#include <stdint.h>
extern void _start(void);
void reset(void);
__attribute__((section(".vectors"), used)) void *const vectors[] = {(void *)0x20400000, (void *)reset};
void reset(void)
{
    *(volatile uint32_t *)0xE000ED88 |= 0xFu << 20; /* the floating-point unit */
    __asm volatile("dsb; isb");
    _start();
}
"""
LAYOUT = """\
ENTRY(reset)
MEMORY { CODE (rx) : ORIGIN = 0, LENGTH = 4M  DATA (rwx) : ORIGIN = 0x20000000, LENGTH = 4M }
SECTIONS {
  .text : { KEEP(*(.vectors)) *(.text*) *(.rodata*) KEEP(*(.init)) KEEP(*(.fini))
          *(.init_array*) *(.fini_array*) } > CODE
  .ARM.exidx : { *(.ARM.exidx*) } > CODE
  .data : { *(.data*) } > DATA
  .bss : { __bss_start__ = .; *(.bss*) *(COMMON) . = ALIGN(8); __bss_end__ = .; } > DATA
  end = .; __end__ = .;
}
"""
BOARD = [
    "qemu-system-arm",
    "-M",
    "mps2-an386",
    "-nographic",
    "-monitor",
    "none",
    "-serial",
    "none",
    "-semihosting",
    "-kernel",
    "test.elf",
]


def needs(*tools):
    absent = [tool for tool in tools if shutil.which(tool) is None]
    if absent:
        pytest.skip(f"{', '.join(absent)} not installed")


def done(command, folder):
    run = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=240)
    assert run.returncode == 0, (run.returncode, run.stderr[:4000])
    return np.array([float(line) for line in run.stdout.split()])


def names_as_in_the_benchmark():
    """The names network with 12,297 parameters, of W1."""
    model = nn.Sequential(
        nn.Embedding(27, 10), nn.Flatten(), nn.Linear(30, 200), nn.BatchNorm1d(200), nn.Tanh(), nn.Linear(200, 27)
    )
    rng = np.random.default_rng(0)
    batches = [tuple(gg.tensor(rng.integers(0, 27, shape)) for shape in ((32, 3), (32,))) for _ in range(23)]
    return training(model, optim.SGD(model.parameters(), lr=0.1), F.cross_entropy), batches


def losses_there(make, command, run, folder):
    """Compile for another processor, run 20 steps there, and return the losses and those of Python."""
    gg.manual_seed(3)
    step, batches = make()
    for batch in batches[:2]:
        step(*batch)
    prepare(step, folder, batches[2:22])
    done([*command, *STRICT, "-o", "test.elf", "test.c", "step.c", "-lm"], folder)
    return done(run, folder), np.array([step(*batch).item() for batch in batches[2:22]])


@pytest.mark.parametrize("name", ["images", "lstm", "double"])
def test_on_64_bit_arm(name, tmp_path):
    needs("aarch64-linux-gnu-gcc", "qemu-aarch64")
    command = ["aarch64-linux-gnu-gcc", "-static", "-O3", "-ffp-contract=fast", "-fopenmp-simd", "-DGG_SIMD"]
    got, want = losses_there(STEPS[name], command, ["qemu-aarch64", "./test.elf"], tmp_path)
    np.testing.assert_allclose(got, want, rtol=1e-12 if name == "double" else 1e-5)
    assert gg.load(tmp_path / "trained.weights")


def test_a_microcontroller_trains(tmp_path):
    """The step and its state lie in the memory of the chip; only the example's files come from the host."""
    needs("arm-none-eabi-gcc", "qemu-system-arm")
    (tmp_path / "start.c").write_text(START)
    (tmp_path / "link.ld").write_text(LAYOUT)
    chip = "-mcpu=cortex-m4 -mthumb -mfloat-abi=hard -mfpu=fpv4-sp-d16 -O2 -ffp-contract=fast --specs=rdimon.specs"
    command = ["arm-none-eabi-gcc", *chip.split(), "-T", "link.ld", "start.c"]
    got, want = losses_there(names_as_in_the_benchmark, command, BOARD, tmp_path)
    np.testing.assert_allclose(got, want, rtol=1e-5)
    trained = gg.load(tmp_path / "trained.weights")
    assert sum(value.numel() for name, value in trained.items() if "running" not in name) > 12_000
