// KD trees: a node is split at the median of one feature of its rows.
//
// The threshold is the middle of the gap between two distinct values that is nearest to the
// weighted median. Features take turns, or the feature is taken that has the largest range in the
// node, in units of its standard deviation over all rows. A feature that is constant in the node is
// skipped. NaN counts as larger than every number.

#include "grow/growth.hpp"
#include "numbers.hpp"

namespace certree {
namespace {

// Sums of p features with twice the precision of a double, so that their rounded values do not
// depend on the order of the terms. High and low parts are in separate arrays, for vector
// instructions.
struct DoubledSums {
  std::vector<double> high, low;
  explicit DoubledSums(std::size_t p) : high(p, 0.0), low(p, 0.0) {}
  double value(std::size_t j) const { return high[j] + low[j]; }
};

// Adds x + error, with |error| much smaller than |x|, to the sum high + low.
inline void add_doubled(double& high, double& low, double x, double error) {
  const double total = high + x;
  const double part = total - high;
  low += ((high - (total - part)) + (x - part)) + error;
  high = total;
}

// Returns a * b - product exactly (Dekker), by arithmetic that compilers vectorise.
double product_error(double a, double b, double product) {
  constexpr double kSplit = 134217729.0;  // 2^27 + 1
  const double a_high = kSplit * a - (kSplit * a - a), a_low = a - a_high;
  const double b_high = kSplit * b - (kSplit * b - b), b_low = b - b_high;
  return ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low;
}

// Returns one over the standard deviation of each feature, (p,); 0 if it is constant. It is
// computed from values in units of half the range, which cannot overflow.
template <class Real>
std::vector<double> inverse_deviation(const Table<const Real>& X, const Stopping& stopping) {
  const auto p = static_cast<std::size_t>(X.width);
  const Box box(X);
  std::vector<double> low = box.low, half_range(p), scale(p, 0.0);
  for (std::size_t j = 0; j < p; ++j) {
    half_range[j] = box.half_range(j);
    if (!(half_range[j] > 0.0)) half_range[j] = low[j] = 0.0;
  }
  const double* const weight = stopping.weight.data();
  DoubledSums weights(p), sums(p), squares(p);
  const auto add = [](DoubledSums& to, std::size_t j, double x, double error) {
    add_doubled(to.high[j], to.low[j], x, error);
  };
  for (const std::size_t i : indices(X.n_rows, X.width)) {
    const double w = weight ? weight[i] : 1.0;
    for (std::size_t j = 0; j < p; ++j) {
      const double x = X.row(i)[j];
      const bool counts = x == x && half_range[j] > 0.0;
      const double u = counts ? (x * 0.5 - low[j] * 0.5) / half_range[j] : 0.0;
      const double x_weight = counts ? w : 0.0;
      const double first = x_weight * u;
      const double second = u * u;
      const double weighted = x_weight * second;
      add(weights, j, x_weight, 0.0);
      add(sums, j, first, product_error(x_weight, u, first));
      add(squares, j, weighted,
          product_error(x_weight, second, weighted) + x_weight * product_error(u, u, second));
    }
  }
  for (std::size_t j = 0; j < p; ++j) {
    if (!(half_range[j] > 0.0)) continue;
    const double mean = sums.value(j) / weights.value(j);
    const double variance = squares.value(j) / weights.value(j) - mean * mean;
    scale[j] = 1.0 / (half_range[j] * std::sqrt(std::max(variance, 1e-300)));
  }
  return scale;
}

// The rule of Growth<KdRule> that splits nodes.
template <class Real>
class KdRule {
 public:
  struct Node : GrowingNode {
    std::int64_t next;  // feature at which the search for a varying one starts
  };

  KdRule(const Table<const Real>& X, const Stopping& stopping, Axis axis)
      : X_(X), stopping_(stopping), axis_(axis), rows_(make_buffer<Row>(X.n_rows)) {
    if (axis == Axis::spread) scale_ = inverse_deviation(X, stopping);
    missing_ = !all_of(X.values(), [](Real x) { return !std::isnan(x); });
    for (const std::size_t i : indices(X.n_rows)) {
      const auto index = static_cast<std::int32_t>(i);
      rows_[i] = {0.0, index, stopping.class_of(index)};
    }
  }

  bool split(const Node& node, Split& split, Node& left, Node& right) const {
    if (node.depth >= stopping_.max_depth) return false;
    if (stopping_.holds(rows_.get() + node.begin, rows_.get() + node.end)) return false;
    const std::int64_t j = axis_ == Axis::cycle ? next_varying(node) : widest(node);
    if (j < 0) return false;
    split.feature = static_cast<std::int32_t>(j);
    const std::int64_t boundary =
        node.begin +
        (stopping_.weight.empty() ? split_at_median(node) : split_at_weighted_median(node));
    Row* const first = rows_.get() + node.begin;
    Row* const middle = rows_.get() + boundary;
    split.threshold = between(std::max_element(first, middle, below)->value,
                              std::min_element(middle, rows_.get() + node.end, below)->value);
    const std::int64_t next = (j + 1) % X_.width;
    left = {{node.begin, boundary, node.depth + 1}, next};
    right = {{boundary, node.end, node.depth + 1}, next};
    return true;
  }

 private:
  struct Row {
    double value;  // of the current feature; +inf for NaN
    std::int32_t index;
    std::int32_t y;
  };
  static bool below(const Row& a, const Row& b) { return a.value < b.value; }

  // X is finite or NaN, so infinity can only stand for NaN.
  static double key(double x) { return std::isnan(x) ? HUGE_VAL : x; }

  // The rows of a node are scattered over X; prefetching a later row hides most of the latency.
  static constexpr std::int64_t kAhead = 16;
  const Real* row_ahead(const Node& node, std::int64_t i) const {
    return X_.row(rows_[static_cast<std::size_t>(std::min(i + kAhead, node.end - 1))].index);
  }

  // Writes the values of feature j to the rows of a node.
  void load(const Node& node, std::int64_t j) const {
    for (const std::size_t turn : indices(node.end - node.begin)) {
      const std::int64_t i = node.begin + static_cast<std::int64_t>(turn);
      prefetch(row_ahead(node, i) + j, 1);
      Row& row = rows_[static_cast<std::size_t>(i)];
      row.value = key(X_.row(row.index)[j]);
    }
  }

  // Returns the next feature of the cycle that varies in the node, after loading it; -1 if none
  // does.
  std::int64_t next_varying(const Node& node) const {
    for (std::int64_t step = 0; step < X_.width; ++step) {
      const std::int64_t j = (node.next + step) % X_.width;
      const double head = key(X_.row(rows_[static_cast<std::size_t>(node.begin)].index)[j]);
      const auto constant = [&](const Row& row) { return key(X_.row(row.index)[j]) == head; };
      if (all_of(std::span(rows_.get() + node.begin, rows_.get() + node.end), constant)) continue;
      load(node, j);
      return j;
    }
    return -1;
  }

  // Returns the feature with the largest range in the node, after loading it; -1 if none varies. A
  // feature that only separates NaN from one value has range 0, so it comes last.
  std::int64_t widest(const Node& node) const {
    const auto p = static_cast<std::size_t>(X_.width);
    thread_local std::vector<double> low, high, missing;  // reused by all nodes
    low.assign(p, HUGE_VAL);
    high.assign(p, -HUGE_VAL);
    missing.assign(p, 0.0);
    double* const lowest = low.data();
    double* const highest = high.data();
    double* const nans = missing.data();
    for (const std::size_t turn : indices(node.end - node.begin, X_.width)) {
      const std::int64_t i = node.begin + static_cast<std::int64_t>(turn);
      prefetch(row_ahead(node, i), std::min<std::int64_t>(X_.width, 64));
      const Real* x = X_.row(rows_[static_cast<std::size_t>(i)].index);
      for (std::size_t j = 0; j < p; ++j) {  // comparisons with NaN are false
        const double value = x[j];
        lowest[j] = value < lowest[j] ? value : lowest[j];
        highest[j] = value > highest[j] ? value : highest[j];
      }
      if (missing_)
        for (std::size_t j = 0; j < p; ++j) nans[j] += std::isnan(x[j]) ? 1.0 : 0.0;
    }
    std::int64_t best = -1;
    double widest = -1.0;
    for (std::size_t j = 0; j < p; ++j) {
      if (!(low[j] < high[j]) && !(missing[j] > 0.0 && low[j] == high[j])) continue;
      const double range = (high[j] * 0.5 - low[j] * 0.5) * scale_[j];
      if (range > widest) {
        widest = range;
        best = static_cast<std::int64_t>(j);
      }
    }
    if (best >= 0) load(node, best);
    return best;
  }

  // The next two functions reorder the rows of a node and return how many of the first go left. Of
  // the two gaps beside the median they choose the one nearer to half of the weight, on a tie the
  // upper one.
  std::int64_t split_at_median(const Node& node) const {
    Row* const first = rows_.get() + node.begin;
    Row* const last = rows_.get() + node.end;
    const std::int64_t n = node.end - node.begin;
    Row* const nth = first + (n - 1) / 2;
    with_interrupt_checks(n, below, [&](const auto& f) { std::nth_element(first, nth, last, f); });
    const double median = nth->value;
    Row* const equal = std::partition(first, nth, [&](const Row& r) { return r.value < median; });
    Row* const above = std::partition(nth, last, [&](const Row& r) { return r.value <= median; });
    return nearer_gap(equal - first, above - first, static_cast<double>(equal - first),
                      static_cast<double>(above - first), static_cast<double>(n), n);
  }

  std::int64_t split_at_weighted_median(const Node& node) const {
    Row* const first = rows_.get() + node.begin;
    Row* const last = rows_.get() + node.end;
    const auto is_before = [](const Row& a, const Row& b) {
      return a.value < b.value || (a.value == b.value && a.index < b.index);
    };
    with_interrupt_checks(last - first, is_before,
                          [&](const auto& f) { std::sort(first, last, f); });
    const double* const weight_of = stopping_.weight.data();
    double total = 0.0;
    for (const Row* row = first; row != last; ++row) total += weight_of[row->index];
    const Row* equal = first;
    double below_weight = 0.0, weight = 0.0;
    for (const Row* row = first; row != last;) {
      equal = row;
      below_weight = weight;
      for (; row != last && row->value == equal->value; ++row) weight += weight_of[row->index];
      if (2.0 * weight >= total || row == last)
        return nearer_gap(equal - first, row - first, below_weight, weight, total, last - first);
    }
    return 0;  // not reached: a node has rows
  }

  static std::int64_t nearer_gap(std::int64_t n_lower, std::int64_t n_upper, double lower_weight,
                                 double upper_weight, double total, std::int64_t n) {
    if (n_lower == 0) return n_upper;
    if (n_upper == n) return n_lower;
    return std::abs(2.0 * lower_weight - total) < std::abs(2.0 * upper_weight - total) ? n_lower
                                                                                       : n_upper;
  }

  Table<const Real> X_;
  Stopping stopping_;
  Axis axis_;
  std::vector<double> scale_;
  bool missing_;      // whether X has NaN
  Buffer<Row> rows_;  // each node has a range of it
};

}  // namespace

template <class Real>
TreeColumns grow_kd(Table<const Real> X, const Stopping& stopping, Axis axis, int n_threads) {
  const KdRule<Real> rule(X, stopping, axis);
  return Growth<KdRule<Real>>::run(rule, {{0, X.n_rows, 0}, 0}, n_threads);
}

template TreeColumns grow_kd(Table<const float>, const Stopping&, Axis, int);
template TreeColumns grow_kd(Table<const double>, const Stopping&, Axis, int);

}  // namespace certree
