/* $title
 *
 * Written by certree $version. Needs C99 and the mathematical library (-lm).
 *
 *     double x[$n_features], out[$n_results];
 *     x[j] = 1.5;  // a number, or a date in its unit; NAN if it is missing
 *     x[j] = ${name}_category(j, "text");  // the code of a category that is a text
 *     ${name}_predict(x, out);
 *
 * Features:$features
 * Results:$results
 */
#include <assert.h>
#include <float.h>
#include <math.h>
#include <string.h>

#define N_FEATURES $n_features
#define N_TREES $n_trees
#define N_OUTPUTS $n_outputs
#define N_RESULTS $n_results

static const int ROOT[] = {$root};
static const int FEATURE[] = {$feature};
static const int LEFT[] = {$left};
static const int SET[] = {$set};
static const int SETS[] = {$sets};
static const double THRESHOLD[] = {$threshold};
static const double MISSING_LEFT[] = {$missing_left};
static const double UNSEEN_LEFT[] = {$unseen_left};
static const double VALUE[] = {$value};
static const double START[] = {$start};
$category_arrays
static const char *const *const TEXTS[] = {$text_pointers};
static const double *const NUMBERS[] = {$number_pointers};
static const int N_CATEGORIES[] = {$n_categories};

#define UNKNOWN (-1)

/* Return the code of a category that is a text, -1 if the fit did not have it, NAN for a null pointer,
   which is a missing value. The feature must have categories that are texts: other calls end the
   program with a message, or return NAN if it is compiled with NDEBUG. */
double ${name}_category(int feature, const char *text)
{
    int is_text = feature >= 0 && feature < $n_features && TEXTS[feature];
    assert(is_text && "feature must be one whose categories are texts");
    if (!is_text || !text) return NAN;
    for (int code = 0; code < N_CATEGORIES[feature]; ++code)
        if (!strcmp(TEXTS[feature][code], text)) return code;
    return UNKNOWN;
}

/* Return the number that splits compare: finite, or the code of a category that is a number. */
static double encode(int feature, double number)
{
    if (NUMBERS[feature]) {
        if (isnan(number)) return NAN;
        for (int code = 0; code < N_CATEGORIES[feature]; ++code)
            if (NUMBERS[feature][code] == number) return code;
        return UNKNOWN;
    }
    if (isinf(number)) return number > 0 ? DBL_MAX : -DBL_MAX;
    return number;
}

static double left_fraction(int node, double number)
{
    if (isnan(number)) return MISSING_LEFT[node];
    if (SET[node] < 0) return number <= THRESHOLD[node];
    if (number == UNKNOWN) return UNSEEN_LEFT[node];
    for (int i = 1; i <= SETS[SET[node]]; ++i)
        if (SETS[SET[node] + i] == number) return 1;
    return 0;
}

/* Add the leaf values that a fraction of a row reaches below a node. */
static void add_leaves(const double *x, int node, double fraction, double *sum)
{
    while (FEATURE[node] >= 0) {
        double left = left_fraction(node, x[FEATURE[node]]);
        if (left > 0 && left < 1) {
            add_leaves(x, LEFT[node], fraction * left, sum);
            fraction *= 1 - left;
        }
        node = LEFT[node] + (left < 1);
    }
    for (int k = 0; k < N_OUTPUTS; ++k) sum[k] += fraction * VALUE[LEFT[node] + k];
}

/* Predict one row: x has N_FEATURES numbers, out gets N_RESULTS. */
void ${name}_predict(const double *x, double *out)
{
    double row[N_FEATURES], sum[N_OUTPUTS] = {0};
    for (int j = 0; j < N_FEATURES; ++j) row[j] = encode(j, x[j]);
    for (int t = 0; t < N_TREES; ++t) add_leaves(row, ROOT[t], 1, sum);
    for (int k = 0; k < N_OUTPUTS; ++k) sum[k] = sum[k] / $divisor + START[k];
$link}
