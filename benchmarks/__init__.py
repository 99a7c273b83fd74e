"""Benchmarks: what each module measures, and which pages and goals it supports.

`python -m benchmarks.NAME --help` shows the options of a benchmark; `make bench` runs all. Each writes
`benchmarks/results/NAME.csv`, unless the table says otherwise.

Shared by all:

| module | contents |
|---|---|
| tables | loads the public tables of CERTREE_DATA, and draws and splits rows |
| peers | models of other libraries, and the measures of a fit |
| timing | times in turn, and runs in new processes |
| results | result files, and the versions of each run (`runs.csv`) |
| figures | `make figures`: the figures of all pages by `figures.csv`, with labels from `labels.csv` |

| module | measures | supports |
|---|---|---|
| answers | hashes of the results of 793 small fits | the goal that results change only on purpose |
| boosting | losses and seconds of boosted trees | README, compare/index, compare/boosting |
| boosting_steps | losses with other defaults (prints only) | defaults in `ensembles.round_schedule` |
| certificates | bounds against hold-outs (`certificates_draws.csv`), seconds | compare/certificates |
| certified_boosting | bounds of boosted trees, forests (`certified_forest.csv`) | compare/index, \
guide/certify_any_classifier, guide/forests, theory/ensemble_bounds |
| code_size | lines of code (prints only) | the goal of a small code base |
| defaults | losses of candidate settings of trees | guide/trees |
| duplicates | false certificates with copied rows | guide/copies |
| evidence | losses of trees and forests; the picture | README, compare/index |
| forest | losses and seconds of forests | guide/forests |
| import_time | seconds of imports | compare/speed, the goal for imports |
| intervals | widths and coverage of prediction intervals | guide/prediction_intervals, compare/index |
| learning_curves | one tree against a tuned tree by rows | guide/trees |
| random_categories | effect of random categories | guide/growers |
| memory | memory beyond the input | howto/large_data, the goal for memory |
| model_trees | excess error of models in leaves | guide/model_trees |
| naive_bayes | losses and seconds of naive Bayes | guide/naive_bayes, compare/speed |
| other_tools | lines for other tools (prints only) | compare/other_tools |
| outputs | one fit to several outputs | guide/several_targets, guide/forests |
| prunings | seconds of the spatially adaptive rule | theory/scott_nowak |
| ranking | NDCG and seconds of rankers | guide/ranking |
| repeated_rows | losses with repeated rows | guide/weights, `rows.duplicates.MOST_REPEATED` |
| rules | errors of pruning rules | theory/prunings |
| scale | out-of-core and Dask fits (`scale*.csv`) | guide/large_data, the goals for speed |
| searches | false certificates after searches | guide/certificates |
| single_tree | one tree against a tuned tree | compare/index, compare/speed |
| small_tree | bounds of small certified trees | guide/certify_any_classifier |
| sparse | boosted trees on sparse rows | compare/boosting |
| speed | races (`cart`, `categorical`, `counts`, `forest_growth`, `grow`, `predict`, \
`predict_boosted`, `shapley`, `explain`) | compare/speed, compare/boosting, guide/shapley_values, \
guide/explanations |
| table2_borders | effect of rows on thresholds | theory/experiment |
| table2_cells | ranges of the ratios of Table 2 | theory/experiment, `paper.table2.EXAMINED` |
| table2_errors | errors and ratios of Table 2 | theory/experiment |
| tabarena.bagging | TabArena's protocol on the shared tables | `tabarena/PULL_REQUEST.md` |
| thresholds | certified costs at thresholds | guide/guarantees |
| time_order | losses and false certificates of fits by time | guide/time |
| times | seconds of boosted trees with losses | compare/boosting |
| uncertainty | coverage of standard errors | guide/prediction_intervals |

The size of the wheel is checked by `release/check.py --wheels`.
"""
