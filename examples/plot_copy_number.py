"""
Copy numbers: segments of a chromosome by the fused lasso
=========================================================

A tumour gains and loses stretches of a chromosome. What is measured along the chromosome is noisy, but the truth is constant
on segments. The fused lasso penalises the jumps between neighbours, so its answer has few of them.
"""

from itertools import pairwise

import matplotlib.pyplot as plt
import numpy as np

import dapsgd as ds

rng = np.random.default_rng(0)
lengths = [300, 80, 220, 50, 150, 200]
levels = [0.0, 0.58, 0.0, -1.0, 0.0, 0.32]  # log2 of copies / 2: one more, one less, a mosaic
truth = np.repeat(levels, lengths)
measured = truth + 0.35 * rng.standard_normal(len(truth))

# %%
# With no data matrix in between, the answer is the proximal point of what was measured: one call, exact, in linear time.
# The strength goes with the noise, which the differences of neighbours tell.

noise = np.median(np.abs(np.diff(measured))) / (0.6745 * np.sqrt(2.0))
strength = 0.3 * noise * np.sqrt(len(measured))
segments = ds.prox(ds.FusedLasso(strength), measured, step=1.0)
print(f"noise {noise:.3f}, strength {strength:.2f}: {len(np.unique(segments))} different levels")

# %%
# A jump in noise may come out as a few small ones in close succession, and the penalty pulls the levels of short segments
# towards their neighbours. So take from it where the large jumps are, the largest among neighbours, and the levels from the
# data: the mean of what was measured on each segment.

heights = np.abs(np.diff(segments))
jumps = []
for j in np.argsort(-heights):
    if heights[j] > 0.3 * noise and all(abs(j - other) >= 10 for other in jumps):
        jumps.append(j)
jumps = np.sort(jumps)
print(f"{len(jumps) + 1} segments, which end at {jumps}; in truth at {np.cumsum(lengths)[:-1] - 1}")
cuts = np.r_[0, jumps + 1, len(measured)]
refitted = np.concatenate([np.full(b - a, measured[a:b].mean()) for a, b in pairwise(cuts)])
for name, estimate in (("measured", measured), ("fused lasso", segments), ("refitted", refitted)):
    print(f"{name:12} root mean square error {np.sqrt(np.mean((estimate - truth) ** 2)):.3f}")

figure, ax = plt.subplots(figsize=(9.0, 3.6), layout="constrained")
ax.plot(measured, ".", color="#bbbbbb", markersize=3, label="measured")
ax.plot(truth, color="#333333", linewidth=1.0, label="truth")
ax.plot(segments, color="#0072B2", linewidth=2.0, label="fused lasso")
ax.plot(refitted, color="#D55E00", linewidth=1.2, label="refitted")
ax.set_xlabel("position on the chromosome")
ax.set_ylabel("log2 ratio")
ax.spines[["top", "right"]].set_visible(False)
ax.legend(frameon=False, ncols=4, loc="lower left", markerscale=3)
plt.show()
