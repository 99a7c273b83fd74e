/**
 * $title
 *
 * Written by certree $version. An ECMAScript module: import { predict } from "./FILE.mjs", then
 * predict(x) for an array x of $n_features numbers or names of categories; null, undefined and NaN
 * are missing values.
 *
 * Features:$features
 * Results:$results
 */
const N_OUTPUTS = $n_outputs;
const ROOT = [$root];
const FEATURE = [$feature];
const LEFT = [$left];
const SET = [$set];
const SETS = [$sets];
const THRESHOLD = [$threshold];
const MISSING_LEFT = [$missing_left];
const UNSEEN_LEFT = [$unseen_left];
const UNKNOWN = -1;
const VALUE = [$value];
const START = [$start];
const CATEGORIES = [$categories];

function encode(feature, value) {
  if (value === null || value === undefined || Number.isNaN(value)) return NaN;
  if (CATEGORIES[feature]) return CATEGORIES[feature].indexOf(value); // UNKNOWN if it is none
  if (!["number", "bigint", "boolean"].includes(typeof value))
    throw new TypeError(`x[$${feature}] must be a number or null, got $${typeof value} $${value}`);
  return Math.max(-Number.MAX_VALUE, Math.min(Number.MAX_VALUE, Number(value)));
}

function leftFraction(node, number) {
  if (Number.isNaN(number)) return MISSING_LEFT[node];
  if (SET[node] < 0) return number <= THRESHOLD[node] ? 1 : 0;
  if (number === UNKNOWN) return UNSEEN_LEFT[node];
  const first = SET[node] + 1;
  return SETS.slice(first, first + SETS[SET[node]]).includes(number) ? 1 : 0;
}

function addLeaves(x, node, fraction, sum) {
  while (FEATURE[node] >= 0) {
    const left = leftFraction(node, x[FEATURE[node]]);
    if (left > 0 && left < 1) {
      addLeaves(x, LEFT[node], fraction * left, sum);
      fraction *= 1 - left;
    }
    node = LEFT[node] + (left < 1 ? 1 : 0);
  }
  for (let k = 0; k < N_OUTPUTS; ++k) sum[k] += fraction * VALUE[LEFT[node] + k];
}

/** Predict one row. */
export function predict(x) {
  if (x?.length !== $n_features)
    throw new TypeError(`x must be an array of $n_features values, got $${x?.length ?? typeof x}`);
  const sum = new Array(N_OUTPUTS).fill(0), out = new Array($n_results).fill(0);
  const row = CATEGORIES.map((_, j) => encode(j, x[j]));
  for (const root of ROOT) addLeaves(row, root, 1, sum);
  for (let k = 0; k < N_OUTPUTS; ++k) sum[k] = sum[k] / $divisor + START[k];
$link  return out;
}
