"""The text of the results page, section by section; page.py fills in numbers, pictures and tables."""

HEAD = """# Results

Written by `python experiments/page.py` from the files under `experiments/*/results`; nothing is typed in by hand
except the numbers of the papers. Errors are test errors in percent, on satimage the mean of its five folds unless a
section says otherwise. [Named data sets](datasets.md) has the splits and discretisations; the papers' discretisation
of mnist is not public, so its numbers are not those of the papers' data.

**Chosen on test rows** marks what was picked by looking at the test rows, as the papers do. Such a number can be
compared with the papers', but it is too good as a forecast for new rows. **Chosen on validation rows** marks numbers
for which no test row was looked at.
"""
TABLE = """
## Differentiable TAN, Table 1: structures

The column *chosen on test rows* is the paper's protocol: the best of all final runs, looked up on the test rows. The
column *chosen on validation rows* is the test error of the setting that was best, in the first stage, on a tenth of
the training rows. *Runs* counts both stages and all folds; the paper ran 500 settings (naive Bayes, Chow-Liu) or 25
to 50 structures with 100 settings each, all with two learning rates. [What was run](#what-was-run) lists our sweeps.
Order-free TAN, structure noise, sharing and structures by row are ours and not in the paper; a pseudo-TAN may have
cycles and is no Bayesian network. The ranges of the sweeps called narrowed, narrower, slow, wide margin, full, sharing
or first space were set after a look at the test errors of earlier ones, so that what was chosen on validation rows
there is not wholly free of the test rows.

| data | structure | runs | chosen on test rows | paper, chosen on test rows | chosen on validation rows |
|---|---|---:|---:|---:|---:|
"""
FINDINGS1 = """
The paper finds that searched trees (TAN Subset) beat random trees and the tree of Chow and Liu on all four data sets,
that more candidates than eight bring nothing, and that choosing candidates by the distance of pixels helps on mnist
and not on usps.
"""
FIGURE2 = """
## Differentiable TAN, Figure 2: the weight of the margin

![Test error over log10 lambda for every structure, a panel for each data set]({picture})

{run} Each point is a setting after its full training; those that did badly in the first stage are missing. A line is
the lower convex hull of its points: no point of that colour lies below it, so it is **chosen on test rows**. Where a
line stays low over a long stretch, the structure is good over many settings and not by one lucky draw. The paper
finds this for TAN Subset, which stays below the random trees and Chow-Liu over a wide range of lambda.
"""
FIGURE3 = """
## Differentiable TAN, Figure 3: orderings, K, subsets

![Test error over log10 lambda by ordering, by number of candidates and by subset]({picture})

{run} Points and lines as in Figure 2; one stage, all settings shown, and the lines and the numbers below are **chosen
on test rows**. Least errors:

{least}

On mnist the paper finds ordering C (from the middle outwards) slightly ahead of B (along the diagonal) and B of A
(row by row), a gain from one candidate to two and next to none from five to eight. On satimage some orderings are
better than others for almost every lambda; on letter some subsets are, and a larger K narrows the gap between them.
"""
RECOVERY = """
## Differentiable TAN, section 4.6: the tree of Chow and Liu

With lambda = 0 the loss is the negative log-likelihood, whose best tree is known in closed form. The table counts the
features whose parent is that of this tree after {epochs} epochs, for {seeds} random orderings and initial values; the
candidates of a feature are its parent in the tree and earlier features. No test row is involved. The paper reports
that the tree is found consistently.

| data | features | candidates | parents that agree, by seed |
|---|---:|---:|---|
"""
FIGURE5 = """
## Resource-efficient classifiers, Figure 5: the price of size

![Error and size over lambda_MS on letter; size against error on satimage, usps and mnist]({picture})

{run} Sizes are numbers of table entries, in multiples of naive Bayes. In (a) the lines are means of the runs with the
same price. In (b) to (d) the blue points are those that no smaller model reaches, **chosen on test rows**; so are the
numbers of the table, the least errors of models up to so many times the size of naive Bayes. The paper finds naive
Bayes at the one end, the free search at the other, and on usps, where features have few values, most of the gain for
a small part of the size.

| data | {heads} | any size |
|---|{rules}---:|
"""
FIGURE6 = """
## Resource-efficient classifiers, Figure 6: bits

![Test error over the bits of an entry, for naive Bayes and Chow-Liu on each data set]({picture})

{run} Solid lines: trained through fixed point, for each number of bits the best of the integer bits 1 to 6 and of all
settings. Dotted lines: the best float32 error of Table 1 on the same folds. {rounding}All of them are **chosen on
test rows**. A solid line that reaches the dotted one has lost nothing at that width. The paper's tree is the best of
its own searches, ours that of Chow and Liu, so the trees cannot be compared in numbers; it finds that one or two bits
hurt naive Bayes more than the tree, and that letter gains up to six or seven bits while usps is good with few.

| data | structure | tables | float32 | {heads} |
|---|---|---|---:|{rules}
"""
ROUNDING = """Dashed lines: float32 tables rounded after training, the baseline to beat; they come from one float model
each (`rounding.py` has its setting), the solid lines from the best of several settings, so a part of the gap is
choice."""
DEFAULTS = """
## Defaults

Test errors in percent on a CPU with two cores (`python experiments/defaults.py`); in brackets the seconds, with
compiled code on disk. *Search* is `n_configs=20`. Nothing was chosen on test rows; the defaults themselves were
chosen on held-out training rows of these four data sets. satimage is its first fold.

| data | structure | closed form | hybrid | search |
|---|---|---:|---:|---:|
"""
SWEEPS = """
## What was run

Every sweep of the files above. A setting draws lambda and gamma uniformly on a log scale and eta uniformly, and takes
the learning rates in turn. With two stages, all settings are trained for the epochs of the first on nine tenths of
the training rows, and those best on test rows and on validation rows go on. *Runs* counts what is in the store.

| file | sweep | K | settings | log10 lambda | log10 gamma | eta | learning rates | epochs | runs |
|---|---|---:|---:|---:|---:|---:|---:|---:|---:|
"""
