// KD cells: a cell is cut at the median of one coordinate of its rows.
//
// The cut is the gap between two distinct values that is nearest to the weighted median, with its
// threshold in the middle of the gap. Coordinates come in cycle, or the one with the largest range in
// the cell, in units of its standard deviation over all rows, is taken. A coordinate that is constant
// in the cell is skipped. NaN counts as larger than every number.
#include <algorithm>
#include <cmath>
#include <limits>

#include "core.hpp"

namespace certree {
namespace {

// A sum of doubles with twice their precision, so that the order of the terms does not show.
struct ExactSum {
  double high = 0.0;
  double low = 0.0;
  void add(double x, double error = 0.0) {
    const double total = high + x;
    const double part = total - high;
    low += ((high - (total - part)) + (x - part)) + error;
    high = total;
  }
  void add_product(double a, double b) { add(a * b, std::fma(a, b, -(a * b))); }
  double value() const { return high + low; }
};

// One over the standard deviation of each coordinate in units of half its range: (p,), 0 if constant.
template <class Real>
std::vector<double> inverse_deviation(const Matrix<Real>& X, const Stopping& stopping) {
  const auto p = static_cast<std::size_t>(X.n_features);
  const double none = std::numeric_limits<double>::quiet_NaN();
  std::vector<double> low(p, none), high(p, none), scale(p, 0.0);
  std::vector<ExactSum> weight(p), sum(p), square(p);
  for (std::int64_t i = 0; i < X.n_rows; ++i)
    for (std::size_t j = 0; j < p; ++j) {
      low[j] = std::fmin(low[j], static_cast<double>(X.row(i)[j]));
      high[j] = std::fmax(high[j], static_cast<double>(X.row(i)[j]));
    }
  for (std::int64_t i = 0; i < X.n_rows; ++i) {
    const double w = stopping.weight ? stopping.weight[i] : 1.0;
    for (std::size_t j = 0; j < p; ++j) {
      const double x = X.row(i)[j];
      const double half_range = high[j] * 0.5 - low[j] * 0.5;
      if (std::isnan(x) || !(half_range > 0.0)) continue;
      const double u = (x * 0.5 - low[j] * 0.5) / half_range;
      weight[j].add(w);
      sum[j].add_product(w, u);
      square[j].add_product(w * u, u);
    }
  }
  for (std::size_t j = 0; j < p; ++j) {
    const double half_range = high[j] * 0.5 - low[j] * 0.5;
    if (!(half_range > 0.0)) continue;
    const double mean = sum[j].value() / weight[j].value();
    const double variance = square[j].value() / weight[j].value() - mean * mean;
    scale[j] = 1.0 / (half_range * std::sqrt(std::max(variance, 1e-300)));
  }
  return scale;
}

template <class Real>
class KdRule {
 public:
  KdRule(const Matrix<Real>& X, const Stopping& stopping, Axis axis)
      : X_(X), stopping_(stopping), axis_(axis), rows_(static_cast<std::size_t>(X.n_rows)) {
    if (axis == Axis::spread) scale_ = inverse_deviation(X, stopping);
    for (std::int64_t i = 0; i < X.n_rows; ++i)
      rows_[static_cast<std::size_t>(i)] = {0.0, static_cast<std::int32_t>(i),
                                            stopping.y ? stopping.y[i] : 0};
  }

  bool split(const Cell& cell, Split& split, Cell& left, Cell& right) const {
    if (cell.depth >= stopping_.max_depth || small_or_pure(cell)) return false;
    const std::int64_t j = axis_ == Axis::cycle ? next_varying(cell) : widest(cell);
    if (j < 0) return false;
    split.feature = static_cast<std::int32_t>(j);
    const std::int64_t cut = cell.begin + (stopping_.weight ? cut_weighted(cell) : cut_plain(cell));
    const auto first = rows_.begin() + cell.begin;
    const auto middle = rows_.begin() + cut;
    split.threshold = between(std::max_element(first, middle, below)->value,
                              std::min_element(middle, rows_.begin() + cell.end, below)->value);
    const auto cursor = static_cast<std::int32_t>((j + 1) % X_.n_features);
    left = {cell.begin, cut, cell.depth + 1, cursor};
    right = {cut, cell.end, cell.depth + 1, cursor};
    return true;
  }

 private:
  struct Row {
    double value;  // of the coordinate looked at; +inf for NaN
    std::int32_t index;
    std::int32_t y;
  };
  static bool below(const Row& a, const Row& b) { return a.value < b.value; }

  // X is finite or NaN, so a stored infinity can only stand for NaN.
  static double key(double x) { return std::isnan(x) ? HUGE_VAL : x; }

  static double between(double low, double high) {
    if (std::isinf(high)) return low;
    const double middle = low * 0.5 + high * 0.5;
    return middle >= low && middle < high ? middle : low;
  }

  bool small_or_pure(const Cell& cell) const {
    const Row* rows = rows_.data();
    double n = 0.0;
    for (std::int64_t i = cell.begin; i < cell.end && n <= stopping_.min_rows; ++i)
      n += stopping_.rows(rows[i].index);
    if (n <= stopping_.min_rows) return true;
    if (!stopping_.y) return false;
    for (std::int64_t i = cell.begin + 1; i < cell.end; ++i)
      if (rows[i].y != rows[cell.begin].y) return false;
    return true;
  }

  void load(const Cell& cell, std::int64_t j) const {
    for (std::int64_t i = cell.begin; i < cell.end; ++i) {
      Row& row = rows_[static_cast<std::size_t>(i)];
      row.value = key(X_.row(row.index)[j]);
    }
  }

  // Loads the first coordinate of the cycle that varies in the cell; -1 if none does.
  std::int64_t next_varying(const Cell& cell) const {
    for (std::int64_t step = 0; step < X_.n_features; ++step) {
      const std::int64_t j = (cell.cursor + step) % X_.n_features;
      const double head = key(X_.row(rows_[static_cast<std::size_t>(cell.begin)].index)[j]);
      for (std::int64_t i = cell.begin + 1; i < cell.end; ++i)
        if (key(X_.row(rows_[static_cast<std::size_t>(i)].index)[j]) != head) {
          load(cell, j);
          return j;
        }
    }
    return -1;
  }

  // Loads the coordinate with the largest range in the cell; one that only NaN splits comes last.
  std::int64_t widest(const Cell& cell) const {
    const auto p = static_cast<std::size_t>(X_.n_features);
    std::vector<double> low(p, HUGE_VAL), high(p, -HUGE_VAL);
    std::vector<char> missing(p, 0);
    for (std::int64_t i = cell.begin; i < cell.end; ++i) {
      const Real* x = X_.row(rows_[static_cast<std::size_t>(i)].index);
      for (std::size_t j = 0; j < p; ++j) {  // comparisons with NaN are false
        const double value = x[j];
        low[j] = value < low[j] ? value : low[j];
        high[j] = value > high[j] ? value : high[j];
        missing[j] |= std::isnan(value);
      }
    }
    std::int64_t best = -1;
    double widest = -1.0;
    for (std::size_t j = 0; j < p; ++j) {
      if (!(low[j] < high[j]) && !(missing[j] && low[j] == high[j])) continue;
      const double range = (high[j] * 0.5 - low[j] * 0.5) * scale_[j];
      if (range > widest) {
        widest = range;
        best = static_cast<std::int64_t>(j);
      }
    }
    if (best >= 0) load(cell, best);
    return best;
  }

  // Both cuts order the cell's rows so that the first `cut` of them go left. Of the two gaps beside
  // the value of the median, they take the one nearer to half of the weight; on a tie the upper one.
  std::int64_t cut_plain(const Cell& cell) const {
    const auto first = rows_.begin() + cell.begin;
    const auto last = rows_.begin() + cell.end;
    const std::int64_t n = cell.end - cell.begin;
    const auto nth = first + (n - 1) / 2;
    std::nth_element(first, nth, last, below);
    const double median = nth->value;
    const auto equal = std::partition(first, nth, [&](const Row& r) { return r.value < median; });
    const auto above = std::partition(nth, last, [&](const Row& r) { return r.value <= median; });
    return nearer(equal - first, above - first, static_cast<double>(equal - first),
                  static_cast<double>(above - first), static_cast<double>(n), n);
  }

  std::int64_t cut_weighted(const Cell& cell) const {
    const auto first = rows_.begin() + cell.begin;
    const auto last = rows_.begin() + cell.end;
    std::sort(first, last, [](const Row& a, const Row& b) {
      return a.value < b.value || (a.value == b.value && a.index < b.index);
    });
    double total = 0.0;
    for (auto row = first; row != last; ++row) total += stopping_.weight[row->index];
    auto equal = first;
    double below_weight = 0.0, weight = 0.0;
    for (auto row = first; row != last;) {
      equal = row;
      below_weight = weight;
      for (; row != last && row->value == equal->value; ++row) weight += stopping_.weight[row->index];
      if (2.0 * weight >= total || row == last)
        return nearer(equal - first, row - first, below_weight, weight, total, last - first);
    }
    return 0;  // not reached: a cell has rows
  }

  static std::int64_t nearer(std::int64_t lower_cut, std::int64_t upper_cut, double lower_weight,
                             double upper_weight, double total, std::int64_t n) {
    if (lower_cut == 0) return upper_cut;
    if (upper_cut == n) return lower_cut;
    return std::abs(2.0 * lower_weight - total) < std::abs(2.0 * upper_weight - total) ? lower_cut
                                                                                     : upper_cut;
  }

  Matrix<Real> X_;
  Stopping stopping_;
  Axis axis_;
  std::vector<double> scale_;
  mutable std::vector<Row> rows_;  // every cell is a range of it
};

}  // namespace

template <class Real>
TreeColumns grow_kd(const Matrix<Real>& X, const Stopping& stopping, Axis axis, int n_threads) {
  const KdRule<Real> rule(X, stopping, axis);
  return Growth<KdRule<Real>>::run(rule, {0, X.n_rows, 0, 0}, n_threads);
}

template TreeColumns grow_kd(const Matrix<float>&, const Stopping&, Axis, int);
template TreeColumns grow_kd(const Matrix<double>&, const Stopping&, Axis, int);

}  // namespace certree
