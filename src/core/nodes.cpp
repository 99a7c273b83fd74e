// The loops over nodes: routing, counting, the law over prunings and its vote.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "buffer.hpp"
#include "core.hpp"
#include "law.hpp"

namespace certree {
namespace {

// -- routing
// ---------------------------------------------------------------------------------------

// What one step of a walk reads, in one piece of memory.
struct Step {
  double threshold;
  std::int32_t feature;  // its complement where NaN goes left
  std::int32_t left;

  Step() = default;
  Step(const TreeView& tree, std::int32_t v)
      : threshold(tree.threshold[v]),
        feature(tree.missing_left[v] ? ~tree.feature[v] : tree.feature[v]),
        left(tree.left[v]) {}

  bool missing_left() const { return feature < 0; }

  template <class Real>
  double value(const Real* x) const {
    return static_cast<double>(x[feature ^ (feature >> 31)]);
  }

  template <class Real>
  std::int32_t next(const Real* x) const {
    const double here = value(x);
    // No short cuts: a branch here would be guessed wrong half of the time.
    const int beyond = !(here <= threshold);
    const int exempt = static_cast<int>(missing_left()) & static_cast<int>(here != here);
    return left + (beyond & ~exempt);
  }
};

// Steps of a tree in which no node compares categories.
struct Thresholds {
  template <class Real>
  std::int32_t next(const Step& step, std::int32_t, const Real* x) const {
    return step.next(x);
  }
};

// Steps of a tree in which some do.
struct Sets {
  const std::int64_t* start;
  const std::int32_t* categories;

  template <class Real>
  std::int32_t next(const Step& step, std::int32_t v, const Real* x) const {
    const std::int32_t* const first = categories + start[v];
    const std::int32_t* const last = categories + start[v + 1];
    if (first == last) return step.next(x);
    return step.left + (holds(first, last, step.value(x)) == step.missing_left());
  }

  static bool holds(const std::int32_t* first, const std::int32_t* last, double value) {
    if (!(value >= 0.0 && value <= std::numeric_limits<std::int32_t>::max())) return false;
    const auto category = static_cast<std::int32_t>(value);
    return category == value && std::binary_search(first, last, category);
  }
};

// Rows are walked in groups, so that the memory accesses of one hide behind those of the others.
constexpr std::int64_t kGroup = 16;

template <class Real, class Steps>
void apply_packed(const Step* packed, const Steps& steps, const Matrix<Real>& X, std::int64_t begin,
                  std::int64_t end, std::int32_t* leaf) {
  for (std::int64_t i = begin; i < end; i += kGroup) {
    const std::int64_t width = std::min(kGroup, end - i);
    std::int32_t node[kGroup] = {};
    for (bool walking = true; walking;) {
      walking = false;
      for (std::int64_t w = 0; w < width; ++w) {
        const Step& step = packed[node[w]];
        if (step.left == kLeaf) continue;
        node[w] = steps.next(step, node[w], X.row(i + w));
        walking = true;
      }
    }
    std::copy(node, node + width, leaf + i);
  }
}

template <class Real, class Steps>
std::int32_t walk(const TreeView& tree, const Steps& steps, const Real* x) {
  std::int32_t v = 0;
  while (tree.left[v] != kLeaf) v = steps.next(Step(tree, v), v, x);
  return v;
}

template <class Real, class Steps>
void apply_with(const TreeView& tree, const Steps& steps, const Matrix<Real>& X, std::int32_t* leaf,
                int n_threads) {
  if (X.n_rows < tree.n_nodes / 8 + 32) {  // packing the nodes would cost more than it saves
    for (std::int64_t i = 0; i < X.n_rows; ++i) leaf[i] = walk(tree, steps, X.row(i));
    return;
  }
  const auto packed = make_buffer<Step>(tree.n_nodes);
  for (std::int32_t v = 0; v < tree.n_nodes; ++v) packed[static_cast<std::size_t>(v)] = {tree, v};
  constexpr std::int64_t kBlock = 1 << 14;
  parallel_for((X.n_rows + kBlock - 1) / kBlock, n_threads, [&](std::int64_t block) {
    const std::int64_t begin = block * kBlock, end = std::min(X.n_rows, begin + kBlock);
    apply_packed(packed.get(), steps, X, begin, end, leaf);
  });
}

}  // namespace

template <class Real>
void apply(const TreeView& tree, const Matrix<Real>& X, std::int32_t* leaf, int n_threads) {
  if (tree.category_start)
    apply_with(tree, Sets{tree.category_start, tree.categories}, X, leaf, n_threads);
  else
    apply_with(tree, Thresholds{}, X, leaf, n_threads);
}

template void apply(const TreeView&, const Matrix<float>&, std::int32_t*, int);
template void apply(const TreeView&, const Matrix<double>&, std::int32_t*, int);

// -- counting
// --------------------------------------------------------------------------------------

void count(const std::int32_t* left, std::int32_t n_nodes, const std::int32_t* leaf,
           const std::int32_t* y, const double* weight, std::int64_t n_rows, std::int64_t n_classes,
           double* counts) {
  for (std::int64_t i = 0; i < n_rows; ++i)
    counts[leaf[i] * n_classes + y[i]] += weight ? weight[i] : 1.0;
  for (std::int64_t v = n_nodes - 1; v >= 0; --v) {
    if (left[v] == kLeaf) continue;
    const double* l = counts + left[v] * n_classes;
    const double* r = l + n_classes;
    for (std::int64_t k = 0; k < n_classes; ++k) counts[v * n_classes + k] += l[k] + r[k];
  }
}

void moments(const std::int32_t* left, std::int32_t n_nodes, const std::int32_t* leaf,
             const double* target, const double* weight, std::int64_t n_rows, double* rows,
             double* mean, double* squares) {
  const auto one = [weight](std::int64_t i) { return weight ? weight[i] : 1.0; };
  for (double* column : {rows, mean, squares}) std::fill(column, column + n_nodes, 0.0);
  for (std::int64_t i = 0; i < n_rows; ++i) {
    rows[leaf[i]] += one(i);
    mean[leaf[i]] += one(i) * target[i];
  }
  for (std::int32_t v = 0; v < n_nodes; ++v)
    if (rows[v] > 0.0) mean[v] /= rows[v];
  for (std::int64_t i = 0; i < n_rows; ++i) {
    const double distance = target[i] - mean[leaf[i]];
    squares[leaf[i]] += one(i) * distance * distance;
  }
  for (std::int32_t v = n_nodes - 1; v >= 0; --v) {
    if (left[v] == kLeaf) continue;
    const std::int32_t l = left[v], r = l + 1;
    rows[v] = rows[l] + rows[r];
    if (rows[v] == 0.0) continue;
    const double distance = mean[r] - mean[l], share = rows[r] / rows[v];
    mean[v] = mean[l] + distance * share;
    squares[v] = squares[l] + squares[r] + distance * distance * rows[l] * share;
  }
  for (std::int32_t v = 0; v < n_nodes; ++v) {
    if (left[v] == kLeaf) continue;
    for (const std::int32_t child : {left[v], left[v] + 1})
      if (rows[child] == 0.0) mean[child] = mean[v];
  }
}

void majority(const std::int32_t* left, std::int32_t n_nodes, const double* counts,
              std::int64_t n_classes, std::int32_t* label) {
  label[0] = 0;
  for (std::int64_t v = 0; v < n_nodes; ++v) {
    const double* row = counts + v * n_classes;
    const double* largest = std::max_element(row, row + n_classes);
    if (*largest > 0.0) label[v] = static_cast<std::int32_t>(largest - row);
    if (left[v] != kLeaf) label[left[v]] = label[left[v] + 1] = label[v];
  }
}

namespace {

// value: (n_nodes, width) averages over the rows of a node and `smoothing` more like its parent's;
// rows_of(v) and total(v, k) sum over its own rows. The root's row of value holds its parent's.
template <class RowsOf, class Total>
void smooth(const std::int32_t* left, std::int32_t n_nodes, std::int64_t width, double smoothing,
            const RowsOf& rows_of, const Total& total, double* value) {
  for (std::int64_t v = 0; v < n_nodes; ++v) {
    double* own = value + v * width;  // holds the parent's
    const double n = rows_of(v) + smoothing;
    if (n > 0.0)
      for (std::int64_t k = 0; k < width; ++k) own[k] = (total(v, k) + smoothing * own[k]) / n;
    if (left[v] == kLeaf) continue;
    double* child = value + left[v] * width;
    std::copy(own, own + width, child);
    std::copy(own, own + width, child + width);
  }
}

}  // namespace

void frequencies(const std::int32_t* left, std::int32_t n_nodes, const double* counts,
                 std::int64_t n_classes, double smoothing, double* frequency) {
  std::fill(frequency, frequency + n_classes, 1.0 / static_cast<double>(n_classes));
  const auto rows_of = [&](std::int64_t v) {
    return std::accumulate(counts + v * n_classes, counts + (v + 1) * n_classes, 0.0);
  };
  const auto total = [&](std::int64_t v, std::int64_t k) { return counts[v * n_classes + k]; };
  smooth(left, n_nodes, n_classes, smoothing, rows_of, total, frequency);
}

void smoothed_means(const std::int32_t* left, std::int32_t n_nodes, const double* rows,
                    const double* mean, double smoothing, double* value) {
  value[0] = mean[0];
  const auto rows_of = [&](std::int64_t v) { return rows[v]; };
  const auto total = [&](std::int64_t v, std::int64_t) { return rows[v] * mean[v]; };
  smooth(left, n_nodes, 1, smoothing, rows_of, total, value);
}

void make_monotone(const std::int32_t* left, std::int32_t n_nodes, const std::int32_t* feature,
                   const std::int8_t* slope, double* value) {
  struct Bounds {
    double low, high;
  };
  const auto bounds = make_buffer<Bounds>(n_nodes);
  bounds[0] = {-kInfinity, kInfinity};
  for (std::int32_t v = 0; v < n_nodes; ++v) {
    if (left[v] == kLeaf) continue;
    const Bounds own = bounds[static_cast<std::size_t>(v)];
    const std::int8_t sign = slope[feature[v]];
    const std::int32_t lower = left[v] + (sign < 0), upper = left[v] + (sign >= 0);
    for (const std::int32_t child : {lower, upper})
      value[child] = std::clamp(value[child], own.low, own.high);
    const double middle = value[lower] * 0.5 + value[upper] * 0.5;
    if (sign != 0 && value[lower] > value[upper]) value[lower] = value[upper] = middle;
    bounds[static_cast<std::size_t>(lower)] = {own.low, sign != 0 ? middle : own.high};
    bounds[static_cast<std::size_t>(upper)] = {sign != 0 ? middle : own.low, own.high};
  }
}

void depths(const std::int32_t* left, const std::int32_t* chain, std::int32_t n_nodes,
            std::int64_t* depth) {
  depth[0] = 0;
  for (std::int32_t v = 0; v < n_nodes; ++v)
    if (left[v] != kLeaf) depth[left[v]] = depth[left[v] + 1] = depth[v] + chain[v];
}

// -- laws over prunings
// ----------------------------------------------------------------------------

namespace {

// The down pass: hands the probability of being a leaf to visit(v, weight), parents first.
// odds: (n_nodes,) of the up pass; visit may overwrite odds[v]. reach: (n_nodes,) scratch.
template <class Visit>
void down_pass(const std::int32_t* left, std::int32_t n_nodes, const double* odds, double* reach,
               const Visit& visit) {
  reach[0] = 1.0;
  for (std::int32_t v = 0; v < n_nodes; ++v) {
    if (left[v] == kLeaf) {
      visit(v, reach[v]);
      continue;
    }
    const Odds decision(odds[v]);
    reach[left[v]] = reach[left[v] + 1] = reach[v] * decision.split;
    visit(v, reach[v] * decision.stop);
  }
}

// Adds a node's vote to what it has from above, and hands the sum on to its children.
struct VotePass {
  const std::int32_t* left;
  const std::int32_t* label;
  const double* frequency;  // (n_nodes, n_classes), or null: one-hot labels
  std::int64_t n_classes;
  double* score;  // (n_nodes, n_classes); the root's row must be zero

  void operator()(std::int64_t v, double weight) const {
    double* row = score + v * n_classes;
    if (frequency) {
      const double* value = frequency + v * n_classes;
      for (std::int64_t k = 0; k < n_classes; ++k) row[k] += weight * value[k];
    } else {
      row[label[v]] += weight;
    }
    if (left[v] == kLeaf) return;
    double* child = score + left[v] * n_classes;
    std::copy(row, row + n_classes, child);
    std::copy(row, row + n_classes, child + n_classes);
  }
};

CERTREE_WIDE void decide(UpPass<1>& pass, Rule rule, const double* theta, double* odds,
                         double* log_odds) {
  pass.run(rule, theta, odds, log_odds);
}

}  // namespace

namespace {

// loss_gain(v, l, r) and rows_of(v) of node v with children l and r.
template <class RowsOf, class LossGain>
void law_gains(const std::int32_t* left, std::int32_t n_nodes, std::int64_t n_terms,
               bool empty_leaves_count, const RowsOf& rows_of, const LossGain& loss_gain,
               double* gains) {
  for (std::int64_t v = 0; v < n_nodes; ++v) {
    double* gain = gains + v * n_terms;
    std::fill(gain, gain + n_terms, 0.0);
    if (left[v] == kLeaf) continue;
    const std::int64_t l = left[v], r = l + 1;
    const double a = rows_of(l), b = rows_of(r), whole = a + b;
    gain[0] = loss_gain(v, l, r);
    // sqrt(a) + sqrt(b) - sqrt(a + b), without its cancellation.
    if (whole > 0.0)
      gain[1] =
          2.0 * std::sqrt(a) * std::sqrt(b) / (std::sqrt(a) + std::sqrt(b) + std::sqrt(whole));
    if (n_terms == 3) gain[2] = empty_leaves_count ? 1.0 : (a > 0.0) + (b > 0.0) - (whole > 0.0);
  }
}

}  // namespace

void error_gains(const std::int32_t* left, std::int32_t n_nodes, const double* counts,
                 const std::int32_t* label, std::int64_t n_classes, std::int64_t n_terms,
                 bool empty_leaves_count, double* gains) {
  const auto rows_of = [&](std::int64_t v) {
    return std::accumulate(counts + v * n_classes, counts + (v + 1) * n_classes, 0.0);
  };
  const auto errors = [&](std::int64_t v) { return rows_of(v) - counts[v * n_classes + label[v]]; };
  const auto loss_gain = [&](std::int64_t v, std::int64_t l, std::int64_t r) {
    return errors(l) + errors(r) - errors(v);
  };
  law_gains(left, n_nodes, n_terms, empty_leaves_count, rows_of, loss_gain, gains);
}

void squared_gains(const std::int32_t* left, std::int32_t n_nodes, const double* rows,
                   const double* mean, double unit, std::int64_t n_terms, bool empty_leaves_count,
                   double* gains) {
  const auto rows_of = [&](std::int64_t v) { return rows[v]; };
  // The difference of the sums of squares, without its cancellation.
  const auto loss_gain = [&](std::int64_t, std::int64_t l, std::int64_t r) {
    const double whole = rows[l] + rows[r], distance = mean[l] - mean[r];
    return whole > 0.0 ? -distance * distance / unit * rows[l] * (rows[r] / whole) : 0.0;
  };
  law_gains(left, n_nodes, n_terms, empty_leaves_count, rows_of, loss_gain, gains);
}

double weigh(const Terms& terms, const double* theta, const double* root, Rule rule, double* weight,
             double* log_odds) {
  for (std::int32_t v = 0; v < terms.n_nodes; ++v)
    if (terms.left[v] == kLeaf) log_odds[v] = -kInfinity;
  UpPass<1> pass(terms);
  decide(pass, rule, theta, weight, log_odds);
  const double evidence = rule == Rule::average ? pass.evidence(theta, root, 0) : 0.0;
  const auto reach = make_buffer<double>(terms.n_nodes);
  down_pass(terms.left, terms.n_nodes, weight, reach.get(),
            [&](std::int32_t v, double probability) { weight[v] = probability; });
  return evidence;
}

void reach(const std::int32_t* left, std::int32_t n_nodes, const double* log_odds,
           double* reached) {
  reached[0] = 1.0;
  for (std::int32_t v = 0; v < n_nodes; ++v)
    if (left[v] != kLeaf)
      reached[left[v]] = reached[left[v] + 1] = reached[v] / (1.0 + std::exp(-log_odds[v]));
}

void sums_below(const std::int32_t* left, std::int32_t n_nodes, const double* log_odds,
                const double* value, double* sum) {
  for (std::int64_t v = n_nodes - 1; v >= 0; --v) {
    sum[v] = value[v];
    if (left[v] == kLeaf) continue;
    const double below = sum[left[v]] + sum[left[v] + 1];
    sum[v] += (below - value[v]) / (1.0 + std::exp(-log_odds[v]));
  }
}

void log_masses(const std::int32_t* left, std::int32_t n_nodes, const std::int32_t* label,
                std::int64_t n_labels, const LabelledPriors& priors, double* mass) {
  constexpr std::int32_t kMixed = -1;
  const auto common = make_buffer<std::int32_t>(n_nodes);  // the label of all leaves below
  for (std::int32_t v = n_nodes - 1; v >= 0; --v) {
    const auto u = static_cast<std::size_t>(v), l = static_cast<std::size_t>(left[v]);
    if (left[v] == kLeaf)
      common[u] = label[v];
    else
      common[u] = common[l] == common[l + 1] ? common[l] : kMixed;
  }
  const auto below = make_buffer<double>(n_nodes);
  for (std::int64_t j = 0; j < priors.n_priors; ++j) {
    const double* const log_stop = priors.log_stop + j * n_nodes;
    const double* const log_split = priors.log_split + j * n_nodes;
    const double* const log_label = priors.log_label + j * n_nodes * n_labels;
    for (std::int32_t v = n_nodes - 1; v >= 0; --v) {
      const auto u = static_cast<std::size_t>(v), l = static_cast<std::size_t>(left[v]);
      const bool leaf = left[v] == kLeaf;
      const double split = leaf ? -kInfinity : log_split[u] + (below[l] + below[l + 1]);
      if (common[u] == kMixed) {
        below[u] = split;
        continue;
      }
      const double stop = log_stop[u] + log_label[v * n_labels + common[u]];
      const double larger = std::max(stop, split), smaller = std::min(stop, split);
      below[u] = smaller == -kInfinity ? larger : larger + std::log1p(std::exp(smaller - larger));
    }
    mass[j] = below[0];
  }
}

void likeliest(const std::int32_t* left, std::int32_t n_nodes, const double* log_odds,
               const double* chain_mode, double* log_odds_of_pruning) {
  // log(1 + exp(x)), so that a decision's log probabilities are -softplus(x) and -softplus(-x).
  const auto softplus = [](double x) {
    return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x)));
  };
  const auto best = make_buffer<double>(n_nodes);
  for (std::int32_t v = n_nodes - 1; v >= 0; --v) {
    const auto u = static_cast<std::size_t>(v);
    best[u] = chain_mode[u];
    log_odds_of_pruning[u] = -kInfinity;
    if (left[u] == kLeaf) continue;
    const auto l = static_cast<std::size_t>(left[u]);
    const double stop = best[u] - softplus(log_odds[u]);
    const double split = best[l] + best[l + 1] - softplus(-log_odds[u]);
    const double rounding = 1e-12 * (1.0 + std::abs(stop));  // a tie within it stops
    const bool splits = std::isinf(stop) ? split > stop : split > stop + rounding;
    best[u] = splits ? split : stop;
    if (splits) log_odds_of_pruning[u] = kInfinity;
  }
}

void push_down(const std::int32_t* left, std::int32_t n_nodes, const double* weight,
               const std::int32_t* label, const double* frequency, std::int64_t n_classes,
               double* score) {
  std::fill(score, score + n_classes, 0.0);
  const VotePass pass{left, label, frequency, n_classes, score};
  for (std::int32_t v = 0; v < n_nodes; ++v) pass(v, weight[v]);
}

}  // namespace certree
