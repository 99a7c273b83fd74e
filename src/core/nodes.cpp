// The loops over nodes: routing, counting, the law over prunings and its vote.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "buffer.hpp"
#include "core.hpp"

namespace certree {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// -- routing
// ---------------------------------------------------------------------------------------

// What one step of a walk reads, in one piece of memory.
struct Step {
  double threshold;
  std::int32_t feature;  // its complement where NaN goes left
  std::int32_t left;

  template <class Real>
  std::int32_t next(const Real* x) const {
    const std::int32_t complement = feature >> 31;  // all ones where NaN goes left
    const auto value = static_cast<double>(x[feature ^ complement]);
    // No short cuts: a branch here would be guessed wrong half of the time.
    const int beyond = !(value <= threshold);
    const int exempt = (complement & 1) & static_cast<int>(value != value);
    return left + (beyond & ~exempt);
  }
};

// Rows are walked in groups, so that the memory accesses of one hide behind those of the others.
constexpr std::int64_t kGroup = 16;

template <class Real>
void apply_packed(const Step* steps, const Matrix<Real>& X, std::int64_t begin, std::int64_t end,
                  std::int32_t* leaf) {
  for (std::int64_t i = begin; i < end; i += kGroup) {
    const std::int64_t width = std::min(kGroup, end - i);
    std::int32_t node[kGroup] = {};
    for (bool walking = true; walking;) {
      walking = false;
      for (std::int64_t w = 0; w < width; ++w) {
        const Step& step = steps[node[w]];
        if (step.left == kLeaf) continue;
        node[w] = step.next(X.row(i + w));
        walking = true;
      }
    }
    std::copy(node, node + width, leaf + i);
  }
}

Step step_of(const TreeView& tree, std::int32_t v) {
  const std::int32_t feature = tree.missing_left[v] ? ~tree.feature[v] : tree.feature[v];
  return {tree.threshold[v], feature, tree.left[v]};
}

template <class Real>
std::int32_t walk(const TreeView& tree, const Real* x) {
  std::int32_t v = 0;
  while (tree.left[v] != kLeaf) v = step_of(tree, v).next(x);
  return v;
}

}  // namespace

template <class Real>
void apply(const TreeView& tree, const Matrix<Real>& X, std::int32_t* leaf, int n_threads) {
  if (X.n_rows < tree.n_nodes / 8 + 32) {  // packing the nodes would cost more than it saves
    for (std::int64_t i = 0; i < X.n_rows; ++i) leaf[i] = walk(tree, X.row(i));
    return;
  }
  const auto steps = make_buffer<Step>(tree.n_nodes);
  for (std::int32_t v = 0; v < tree.n_nodes; ++v)
    steps[static_cast<std::size_t>(v)] = step_of(tree, v);
  constexpr std::int64_t kBlock = 1 << 14;
  parallel_for((X.n_rows + kBlock - 1) / kBlock, n_threads, [&](std::int64_t block) {
    apply_packed(steps.get(), X, block * kBlock, std::min(X.n_rows, (block + 1) * kBlock), leaf);
  });
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

void depths(const std::int32_t* left, const std::int32_t* chain, std::int32_t n_nodes,
            std::int64_t* depth) {
  depth[0] = 0;
  for (std::int32_t v = 0; v < n_nodes; ++v)
    if (left[v] != kLeaf) depth[left[v]] = depth[left[v] + 1] = depth[v] + chain[v];
}

// -- laws over prunings
// ----------------------------------------------------------------------------

namespace {

// log(1 + e) for 0 <= e <= 1 (Kahan's correction of the rounding of 1 + e): as exact as std::log1p
// and several times as fast where that is old code.
double log_one_plus(double e) {
  const double u = 1.0 + e;
  return u == 1.0 ? e : std::log(u) * (e / (u - 1.0));
}

// The up pass. With logbeta(v) = own(v) + b(v), a node of chain 1 has b = log(1 + exp(x)) with
// x = b(left) + b(right) - theta . D(v), D being the gain in the terms of own = theta . F.
//
// b may be as large as lambda n, so it is kept as theta . d + c: d sums the gains over the splits
// of one pruning below v, which takes the likelier side of every decision, and c >= 0 is the log of
// what all other prunings add. d holds whole numbers of errors, so nothing is lost when large terms
// cancel on the way up. A pruning is the case c = 0: the same decisions, and nothing but them.
class UpPass {
 public:
  explicit UpPass(const Terms& terms)
      : terms_(terms),
        rest_(make_buffer<double>(terms.n_nodes)),
        total_(make_buffer<double>(std::int64_t{terms.n_nodes} * terms.n_terms)) {}

  // odds: (n_nodes,) exp(-|x|) with the sign of x: see Odds. log_odds may be null.
  // Returns log beta(root): c of the root, and theta . (F + d), whose large terms may cancel in F +
  // d.
  template <Rule rule>
  double run(const double* theta, const double* root, double* odds, double* log_odds) {
    switch (terms_.n_terms) {
      case 1:
        return run_fixed<rule, 1>(theta, root, odds, log_odds);
      case 2:
        return run_fixed<rule, 2>(theta, root, odds, log_odds);
      case 3:
        return run_fixed<rule, 3>(theta, root, odds, log_odds);
      default:
        return run_fixed<rule, 0>(theta, root, odds, log_odds);
    }
  }

 private:
  // kTerms = 0 stands for a number of terms known at run time only.
  template <Rule rule, int kTerms>
  double run_fixed(const double* theta, const double* root, double* odds, double* log_odds) {
    const auto n_terms = static_cast<std::size_t>(kTerms > 0 ? kTerms : terms_.n_terms);
    double* const total = total_.get();
    double* const rest = rest_.get();
    for (std::int64_t node = terms_.n_nodes - 1; node >= 0; --node) {
      const auto v = static_cast<std::size_t>(node);
      double* d = total + v * n_terms;
      const double stop = rule == Rule::average ? terms_.stop[v] : 0.0;
      if (terms_.left[v] == kLeaf) {
        for (std::size_t f = 0; f < n_terms; ++f) d[f] = 0.0;
        rest[v] = stop;
        odds[v] = -0.0;
        if (log_odds) log_odds[v] = -kInfinity;
        continue;
      }
      const auto l = static_cast<std::size_t>(terms_.left[v]);
      const double* gain = terms_.gains + v * n_terms;
      const double* d_left = total + l * n_terms;
      // What splitting v as the pruning below does is worth. Whole numbers times one come last, so
      // the sum up to them is exact and a single rounding follows: ties are seen as ties.
      double value = 0.0;
      for (std::size_t f = n_terms; f-- > 0;) {
        d[f] = gain[f] + (d_left[f] + d_left[n_terms + f]);
        value = std::fma(theta[f], d[f], value);
      }
      if constexpr (rule == Rule::prune) {
        const bool split = value > 0.0;
        odds[v] = split ? 0.0 : -0.0;
        if (log_odds) log_odds[v] = split ? kInfinity : -kInfinity;
        if (!split)
          for (std::size_t f = 0; f < n_terms; ++f) d[f] = 0.0;
        continue;
      }
      const double below = (rest[l] + rest[l + 1]) + terms_.split[v];
      double x = below == -kInfinity ? -kInfinity : value + (below - stop);
      const double e = std::exp(-std::abs(x));
      odds[v] = std::copysign(e, x);
      if (log_odds) log_odds[v] = x;
      if (x > 0.0) {
        rest[v] = below + log_one_plus(e);
      } else {
        rest[v] = stop + log_one_plus(e);
        for (std::size_t f = 0; f < n_terms; ++f) d[f] = 0.0;
      }
    }
    if constexpr (rule == Rule::prune) return 0.0;
    double evidence = rest[0];
    for (std::size_t f = n_terms; f-- > 0;)
      evidence = std::fma(theta[f], root[f] + total[f], evidence);
    return evidence;
  }

  const Terms& terms_;
  Buffer<double> rest_;   // (n_nodes,) c
  Buffer<double> total_;  // (n_nodes, n_terms) d
};

// A signed exp(-|x|) holds both probabilities of a decision to full precision.
struct Odds {
  double likelier, rarer;
  bool split_likelier;
  explicit Odds(double odds) : split_likelier(!std::signbit(odds)) {
    const double e = std::abs(odds);
    likelier = 1.0 / (1.0 + e);
    rarer = e * likelier;
  }
  double split() const { return split_likelier ? likelier : rarer; }
  double stop() const { return split_likelier ? rarer : likelier; }
};

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
    reach[left[v]] = reach[left[v] + 1] = reach[v] * decision.split();
    visit(v, reach[v] * decision.stop());
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

double up_pass(UpPass& pass, Rule rule, const double* theta, const double* root, double* odds,
               double* log_odds) {
  return rule == Rule::average ? pass.run<Rule::average>(theta, root, odds, log_odds)
                               : pass.run<Rule::prune>(theta, root, odds, log_odds);
}

double loss_of(const double* holdout, const double* score, std::int64_t n_classes, Loss kind) {
  double loss = 0.0;
  if (kind == Loss::error) {
    const std::int64_t label = std::max_element(score, score + n_classes) - score;
    for (std::int64_t k = 0; k < n_classes; ++k)
      if (k != label) loss += holdout[k];
    return loss;
  }
  if (kind == Loss::squared) {
    const double distance = score[0] - holdout[1];
    return holdout[0] * distance * distance + holdout[2];
  }
  constexpr double kSmallest = std::numeric_limits<double>::epsilon();
  double sum = 0.0;
  for (std::int64_t k = 0; k < n_classes; ++k) sum += score[k];
  for (std::int64_t k = 0; k < n_classes; ++k)
    if (holdout[k] > 0.0) loss -= holdout[k] * std::log(std::max(score[k] / sum, kSmallest));
  return loss;
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
  UpPass pass(terms);
  const double evidence = up_pass(pass, rule, theta, root, weight, log_odds);
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

void score_grid(const Terms& terms, const double* theta, std::int64_t n_grid, Rule rule,
                const std::int32_t* label, const double* frequency, std::int64_t n_classes,
                const double* holdout, Loss kind, double* loss, int n_threads) {
  const std::int64_t n_nodes = terms.n_nodes;
  const std::int64_t width = kind == Loss::squared ? 3 : n_classes;  // of a row of holdout
  std::vector<std::int32_t> judged;  // the leaves that hold held-out rows
  for (std::int32_t v = 0; v < terms.n_nodes; ++v) {
    const double* row = holdout + v * width;
    if (terms.left[v] == kLeaf && std::any_of(row, row + width, [](double w) { return w > 0.0; }))
      judged.push_back(v);
  }
  const std::vector<double> root(static_cast<std::size_t>(terms.n_terms),
                                 0.0);  // evidence is not asked for
  const std::int64_t parts = std::clamp<std::int64_t>(n_threads, 1, n_grid);
  parallel_for(parts, n_threads, [&](std::int64_t part) {
    UpPass pass(terms);
    const auto odds = make_buffer<double>(n_nodes), reach = make_buffer<double>(n_nodes);
    const auto score = make_buffer<double>(n_nodes * n_classes);
    const VotePass vote{terms.left, label, frequency, n_classes, score.get()};
    for (std::int64_t g = part; g < n_grid; g += parts) {
      up_pass(pass, rule, theta + g * terms.n_terms, root.data(), odds.get(), nullptr);
      std::fill(score.get(), score.get() + n_classes, 0.0);
      down_pass(terms.left, terms.n_nodes, odds.get(), reach.get(), vote);
      loss[g] = 0.0;
      for (const std::int32_t v : judged)
        loss[g] += loss_of(holdout + v * width, score.get() + v * n_classes, n_classes, kind);
    }
  });
}

}  // namespace certree
