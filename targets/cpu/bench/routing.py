"""Times what a routed call costs beside the product itself, on tiny operands.

Stock and routed calls take turns in one process: enable and disable are not
timed.
"""

from __future__ import annotations

from functools import partial

import torch

from timing import Candidate, emit, measure, off, on, ratio


def main() -> None:
    """Measures each function."""
    torch.set_num_threads(1)
    x, weight, bias = torch.randn(1, 16), torch.randn(16, 16), torch.randn(16)
    linear = torch.nn.functional.linear
    for name, call in (
        ("mm", partial(torch.mm, x, weight)),
        ("softmax", partial(torch.softmax, x, -1)),
        ("sum", partial(torch.sum, x, -1)),
        ("linear", partial(linear, x, weight)),
        ("linear-with-bias", partial(linear, x, weight, bias)),
    ):
        times = measure({"torch": Candidate(call, off), "routed": Candidate(call, on)})
        emit(
            f"RoutedCall/{name}",
            times["routed"],
            {
                "of-torch": ratio(times["routed"], times["torch"]),
                "extra-ns": (min(times["routed"]) - min(times["torch"])) * 1e9,
            },
        )
    off()


if __name__ == "__main__":
    with torch.inference_mode():
        main()
