"""PyTorch's rows for the table that `cargo run` prints: the same layer, eager and compiled, on one thread.

    python benches/peers/pytorch.py    needs torch, and a C++ compiler for torch.compile
"""

import copy
import statistics
import time

import torch
from torch import nn

SIZES = [(4, 5), (16, 16), (16, 32), (32, 64), (50, 40), (64, 64), (128, 64), (128, 128), (256, 64), (256, 512)]
ROUNDS = 51
BATCH = 2e-3  # seconds in one round, at least


class DenseSynthesizer(nn.Module):
    def __init__(self, length, width):
        super().__init__()
        self.hidden = nn.Linear(width, width)
        self.scores = nn.Linear(width, length)

    def forward(self, x, v):
        return torch.softmax(self.scores(torch.relu(self.hidden(x))), -1) @ v


def seconds(forward, inputs, calls):
    start = time.perf_counter()
    for _ in range(calls):
        forward(*inputs)
    return time.perf_counter() - start


def calls_in_a_batch(forward, inputs):
    calls = 1
    while seconds(forward, inputs, calls) < BATCH:
        calls *= 2
    return calls


def measure(length, width):
    """Seconds a call in every round, by the row's name."""
    torch.compiler.reset()  # or the compiler would look for one program for all sizes
    layer = DenseSynthesizer(length, width).eval()
    inputs = torch.rand(2, length, width) * 2 - 1
    forwards = {
        f"PyTorch {torch.__version__}": layer,
        "PyTorch, compiled": torch.compile(layer, dynamic=False, fullgraph=True),
    }
    expected = copy.deepcopy(layer).double()(*inputs.double())
    for forward in forwards.values():
        torch.testing.assert_close(forward(*inputs).double(), expected, rtol=1e-5, atol=1e-5)
    calls = {name: calls_in_a_batch(forward, inputs) for name, forward in forwards.items()}
    times = {name: [] for name in forwards}
    for _ in range(ROUNDS):
        for name, forward in forwards.items():
            times[name].append(seconds(forward, inputs, calls[name]) / calls[name])
    return times


def main():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    with torch.inference_mode():
        sizes = [measure(length, width) for length, width in SIZES]
    for statistic, summarize in [("median", statistics.median), ("best", min)]:
        print(f"\n| {statistic} of {ROUNDS} rounds, us | " + " | ".join(f"{l}, {d}" for l, d in SIZES) + " |")
        print("|---|" + "---|" * len(SIZES))
        for name in sizes[0]:
            print(f"| {name} | " + " | ".join(f"{1e6 * summarize(times[name]):.1f}" for times in sizes) + " |")


if __name__ == "__main__":
    main()
