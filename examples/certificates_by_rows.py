"""Bounds and true errors against the number of rows, where the true error is known.

Rows are points of a grid, classes are the two sides of a slanted line, and one label in ten is wrong.
So the error of any classifier is a finite sum, and none has less than .1. Means over ten draws of the
rows are printed and drawn to certificates.png in the current directory; the bands reach from the lowest
to the highest draw.
"""

import matplotlib
import numpy as np
from matplotlib.figure import Figure

from certree import CertifiedTreeClassifier

SIDE, NOISE = 64, 0.1
ROWS = [100 * 2**k for k in range(8)]
DRAWS = 10

POINTS = np.stack(np.meshgrid(*2 * [np.arange(SIDE)]), axis=-1).reshape(-1, 2).astype(float)
PLANTED = (POINTS @ [1.0, 0.6] > 0.8 * SIDE).astype(int)

# Line, colour (Okabe and Ito) and style of each quantity, from the highest down.
STYLES = {
    "bound on the vote of all prunings": ("#E69F00", "-."),
    "bound on the fitted model": ("#0072B2", "-"),
    "true error of the fitted model": ("#009E73", "-"),
}


def measure(n: int, draw: int) -> list[float]:
    """Return the two bounds and the true error of one fit."""
    rng = np.random.default_rng([n, draw])
    point = rng.integers(len(POINTS), size=n)
    y = PLANTED[point] ^ (rng.random(n) < NOISE)
    model = CertifiedTreeClassifier(duplicates="genuine", random_state=draw)
    model.fit(POINTS[point], y)
    disagreement = np.mean(model.predict(POINTS) != PLANTED)
    true_error = NOISE + (1 - 2 * NOISE) * disagreement
    return [model.certificates_[1].bound, model.certificate_.bound, true_error]


def plot(figures: np.ndarray) -> Figure:
    """Draw figures of shape (rows, draws, quantities)."""
    picture = Figure(figsize=(6.4, 4.2), layout="constrained")
    ax = picture.subplots()
    for values, (label, (colour, style)) in zip(
        np.moveaxis(figures, 2, 0), STYLES.items(), strict=True
    ):
        ax.plot(ROWS, values.mean(axis=1), color=colour, linestyle=style, marker=".", label=label)
    for k, label in ((1, "bound on the fitted model"), (2, "true error of the fitted model")):
        low, high = figures[:, :, k].min(axis=1), figures[:, :, k].max(axis=1)
        ax.fill_between(ROWS, low, high, color=STYLES[label][0], alpha=0.15, linewidth=0)
    ax.axhline(NOISE, color="black", linewidth=1, label="lowest error of any classifier")
    ax.set_xscale("log", base=2)
    ax.set_xticks(ROWS, [f"{n:,}" for n in ROWS])
    ax.set_ylim(0.05, None)
    ax.set_xlabel("rows (35 to 85 % of them are training rows)")
    ax.set_ylabel("error")
    ax.grid(alpha=0.3)
    ax.legend(loc="upper right")
    return picture


def main() -> None:
    matplotlib.rcParams["font.size"] = 9
    figures = np.array([[measure(n, draw) for draw in range(DRAWS)] for n in ROWS])
    print(f"{'rows':>7}" + "".join(f"  {label}" for label in STYLES))
    for n, values in zip(ROWS, figures.mean(axis=1), strict=True):
        print(
            f"{n:7,}"
            + "".join(
                f"{value:{len(label) + 2}.3f}" for label, value in zip(STYLES, values, strict=True)
            )
        )
    broken = int(np.sum(figures[:, :, 2] > figures[:, :, 1]))
    print(f"\nTrue errors above their bounds: {broken} of {figures[:, :, 0].size}")
    plot(figures).savefig("certificates.png", dpi=110)
    print("The same as a picture: certificates.png")


if __name__ == "__main__":
    main()
