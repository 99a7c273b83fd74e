// Several numeric outputs, or several classification outputs, as a target of histogram-based
// growth; see gradients.hpp for what a target has. Included by binned_growth.cpp alone.
//
// A sum has the weight of the rows, and a lane for each output with numbers or two classes, or one
// for each class of an output with more classes. The gain of a split is the sum over lanes, each
// times its factor.
#pragma once

#include "grow/weighted.hpp"

namespace certree {
namespace {

struct OutputsResponse {
  std::span<const std::int64_t> whole;  // (n, n_columns) what a row adds to a lane of each output
  std::span<const std::int32_t> lane;   // (n, n_columns) that lane; empty: one for each output
  std::size_t n_columns, n_lanes;
  bool classes, logs;
  double unit;                         // the gain is in multiples of it
  std::span<const double> factor;      // (n_lanes,) weights of the lanes in the gain, the largest 1
  std::span<const std::uint8_t> both;  // (n_lanes,) whether a lane is the second of two classes
  std::span<const int> bits;           // (n_lanes,) number of bits of the largest addend
  std::span<const int> exponent;       // (n_lanes,) of the unit of the lane, a power of two
};

// A row: its place in the table of bins of the current node, and its place among the targets.
struct OutputsItem {
  using Sum = std::int64_t;
  static constexpr std::int64_t kMostWeight = std::numeric_limits<std::int64_t>::max();
  std::int64_t weight;
  std::uint32_t row, place;
};

// The sums of a node by bin. Numbers are taken relative to the node's means, rounded to integers,
// to avoid cancellation.
struct OutputSplits {
  const std::int64_t* sums;  // (n, 1 + n_lanes) of each bin, weight first
  std::size_t n_lanes;
  double all;                  // weight of the node
  const std::int64_t* centre;  // (n_lanes,) rounded means
  const double* rest;          // (n_lanes,) total minus weight times centre
  const double* total;         // (n_lanes,) sums of the node
  const double* factor;        // (n_lanes,)
  const std::uint8_t* both;    // (n_lanes,)
};

// Returns the sum of term(l) over n lanes, in an order that does not depend on the width of the
// vector instructions.
template <class Term>
CERTREE_INLINE double sum_of_lanes(std::size_t n, const Term& term) {
  constexpr std::size_t kTogether = 8;
  std::array<double, kTogether> part{};
  std::size_t first = 0;
  for (; first + kTogether <= n; first += kTogether)
    for (std::size_t i = 0; i < kTogether; ++i) part[i] += term(first + i);
  for (std::size_t i = 0; first + i < n; ++i) part[i] += term(first + i);
  for (std::size_t half = kTogether / 2; half > 0; half /= 2)
    for (std::size_t i = 0; i < half; ++i) part[i] += part[half + i];
  return part[0];
}

// Computes the values of the splits behind the first n bins by squared error or the Gini index.
// left: (1 + n_lanes,) sums of the left child before the first bin; it is added to.
CERTREE_SIMD_CLONES void value_by_scatter(const OutputSplits& given, std::size_t n,
                                          std::int64_t* left, double* value) noexcept {
  const OutputSplits splits = given;  // a copy, as writing could change it
  std::int64_t weight = left[0], *const lanes = left + 1;
  for (std::size_t b = 0; b < n; ++b) {
    const std::int64_t* const sums = splits.sums + b * (1 + splits.n_lanes);
    weight += sums[0];
    const double w = to_double(weight);
    const double scatter = sum_of_lanes(splits.n_lanes, [&](std::size_t l) {
      const std::int64_t sum = lanes[l] += sums[1 + l];
      const double beyond =
          to_double(sum - weight * splits.centre[l]) * splits.all - splits.rest[l] * w;
      return splits.factor[l] * (beyond * beyond);
    });
    value[b] = scatter / (w * (splits.all - w));
  }
}

// Computes the same by cross entropy. unsplit: sum of x log x over all classes of all outputs,
// minus that of the weight for each output.
CERTREE_SIMD_CLONES void value_by_entropy(const OutputSplits& given, std::size_t n,
                                          double n_columns, double unsplit, std::int64_t* left,
                                          double* value) noexcept {
  const OutputSplits splits = given;
  std::int64_t weight = left[0], *const lanes = left + 1;
  for (std::size_t b = 0; b < n; ++b) {
    const std::int64_t* const sums = splits.sums + b * (1 + splits.n_lanes);
    weight += sums[0];
    const double w = to_double(weight), rest = splits.all - w;
    const double order = sum_of_lanes(splits.n_lanes, [&](std::size_t l) {
      const double one = to_double(lanes[l] += sums[1 + l]), other = splits.total[l] - one;
      const double own = x_log_x(one) + x_log_x(other);
      return splits.both[l] ? own + x_log_x(w - one) + x_log_x(rest - other) : own;
    });
    value[b] = order - n_columns * (x_log_x(w) + x_log_x(rest)) - unsplit;
  }
}

// Adds a row to the sums of a bin.
CERTREE_INLINE void add_row(const OutputsResponse& of, const OutputsItem& item,
                            std::int64_t* sums) {
  // Copies, as adding to sums could change them.
  const std::size_t n = of.n_columns, first = item.place * n;
  const std::int64_t weight = item.weight;
  const std::int64_t* const whole = of.whole.data() + first;
  sums[0] += weight;
  if (of.lane.empty()) {
    for (std::size_t k = 0; k < n; ++k) sums[1 + k] += weight * whole[k];
  } else {
    const std::int32_t* const lane = of.lane.data() + first;
    for (std::size_t k = 0; k < n; ++k)
      sums[1 + static_cast<std::size_t>(lane[k])] += weight * whole[k];
  }
}

// Adds rows to the sums of their bins.
CERTREE_SIMD_CLONES void add_rows(const OutputsResponse& given, const OutputsItem* items,
                                  std::size_t n, const std::uint8_t* bin,
                                  std::int64_t* sums) noexcept {
  const OutputsResponse of = given;
  for (std::size_t i = 0; i < n; ++i) add_row(of, items[i], sums + bin[i] * (1 + of.n_lanes));
}

// Copies the sums of n bins to adjacent memory, and clears them.
CERTREE_SIMD_CLONES void move_bins(const std::uint8_t* bin, std::size_t n, std::size_t n_sums,
                                   std::int64_t* from, std::int64_t* to) noexcept {
  for (std::size_t i = 0; i < n; ++i) {
    std::int64_t* const sums = from + bin[i] * n_sums;
    std::copy_n(sums, n_sums, to + i * n_sums);
    std::fill_n(sums, n_sums, std::int64_t{0});
  }
}

class OutputsTarget {
 public:
  using Row = OutputsItem;
  using Item = OutputsItem;
  using Sum = std::int64_t;
  using Response = OutputsResponse;
  static constexpr bool kKeeps = false, kSparse = false;

  OutputsTarget(const Response& response, const RowLimits& limits)
      : response_(response), limits_(limits) {}

  std::size_t most_sums() const { return 1 + response_.n_lanes; }
  bool counts_rows() const { return limits_.counts_rows(); }
  Item item(std::size_t row, std::int64_t weight) const {
    const auto place = static_cast<std::uint32_t>(row);
    return {weight, place, place};
  }
  void total(std::span<const Item> items, NodeTotals& sums) const {
    std::vector<Sum> total(most_sums());
    for (const auto part : chunks(items))
      for (const Item& item : part) add(item, total.data());
    for (std::size_t l = 0; l < total.size(); ++l) sums.add(static_cast<std::int32_t>(l), total[l]);
  }
  CERTREE_INLINE void add(const Item& item, Sum* sums) const { add_row(response_, item, sums); }
  static std::int64_t weight(std::span<const std::int64_t> sums) { return sums.front(); }
  // Monotonic constraints need a single output.
  double response(const std::int64_t*) const { return 0.0; }

  class NodeEvaluator {
   public:
    explicit NodeEvaluator(const OutputsTarget& target)
        : target_(target),
          of_(target.response_),
          centre_(of_.n_lanes),
          rest_(of_.n_lanes),
          total_(of_.n_lanes),
          left_(n_sums()) {}
    void open(std::span<const Item> items, const NodeTotals::One& total) {
      items_ = items;
      const std::int64_t weight = total.sum[0];
      all_ = static_cast<double>(weight);
      unsplit_ = static_cast<double>(of_.n_columns) * -x_log_x(all_);
      for (std::size_t l = 0; l < of_.n_lanes; ++l) {
        const std::int64_t sum = total.sum[1 + l];
        centre_[l] = weight > 0 ? sum / weight : 0;
        rest_[l] = static_cast<double>(sum - weight * centre_[l]);
        total_[l] = static_cast<double>(sum);
        if (of_.logs) unsplit_ += x_log_x(total_[l]);
        if (of_.logs && of_.both[l]) unsplit_ += x_log_x(all_ - total_[l]);
      }
    }
    std::size_t n_sums() const { return 1 + of_.n_lanes; }
    CERTREE_INLINE void add(const Item& item, Sum* sums) const { target_.add(item, sums); }
    // Bins have many sums, so blocks of rows are added up, and blocks of bins moved, by loops of
    // their own.
    void add_block(std::span<const Item> items, const std::uint8_t* bin, Sum* sums) const {
      add_rows(of_, items.data(), items.size(), bin, sums);
    }
    void move(const std::uint8_t* bin, std::size_t n, Sum* from, Sum* to) const {
      move_bins(bin, n, n_sums(), from, to);
    }
    static bool is_empty(const Sum* sums) { return *sums == 0; }
    double weight() const { return all_; }
    bool is_pure() const {
      const Item& first = items_.front();
      return all_of(items_, [&](const Item& item) {
        return is_same(of_.whole, item, first) && is_same(of_.lane, item, first);
      });
    }
    using Memory = SplitSums;
    template <class Allows>
    std::size_t best(const FewBins<OutputsTarget>& bins, std::size_t n, bool missing_left,
                     const Allows&, Memory& own, double& most, std::vector<std::int64_t>& left) {
      restart(bins, missing_left);
      const OutputSplits splits{bins.sums,         of_.n_lanes,    all_,
                                centre_.data(),    rest_.data(),   total_.data(),
                                of_.factor.data(), of_.both.data()};
      if (of_.logs)
        value_by_entropy(splits, n, static_cast<double>(of_.n_columns), unsplit_, left_.data(),
                         own.value.data());
      else
        value_by_scatter(splits, n, left_.data(), own.value.data());
      const std::size_t best = first_of_best(bins, n, missing_left, own.value.data(), most);
      if (best == n) return n;
      restart(bins, missing_left);
      for (std::size_t b = 0; b <= best; ++b)
        for (std::size_t l = 0; l < n_sums(); ++l) left_[l] += bins.at(b)[l];
      left = left_;
      return best;
    }
    std::pair<double, bool> gain(double value, double least) const {
      const double gain = of_.logs ? value : value / all_;
      return {gain, least == 0.0 || gain * of_.unit >= least};
    }

    std::size_t n_of_group() const { return n_sums(); }
    // Sums are scaled such that the squares of all lanes have equal weights.
    void describe(const FewBins<OutputsTarget>& bins, std::size_t i, double* numbers) const {
      numbers[0] = static_cast<double>(bins.at(i)[0]);
      for (std::size_t l = 0; l < of_.n_lanes; ++l)
        numbers[1 + l] = std::sqrt(of_.factor[l]) * static_cast<double>(bins.at(i)[1 + l]);
    }
    Scatter scatter() const {
      double scatter = 0.0;
      for (std::size_t l = 0; l < of_.n_lanes; ++l) scatter += of_.factor[l] * variation(l);
      return {squared_weights(items_) / all_, scatter};
    }
    // Returns the projection of the means of each category on their first principal component; 0 if
    // all means are equal.
    std::vector<double> scores(const Groups& groups) const {
      std::vector<double> score = principal_scores(groups);
      if (!std::isfinite(score.front())) std::ranges::fill(score, 0.0);
      return score;
    }

   private:
    void restart(const FewBins<OutputsTarget>& bins, bool missing_left) {
      if (missing_left)
        std::copy_n(bins.at(bins.n_bins), n_sums(), left_.begin());
      else
        std::ranges::fill(left_, 0);
    }
    // Returns the first split of the largest value above `most` with enough rows in both children;
    // n if there is none. Updates most.
    std::size_t first_of_best(const FewBins<OutputsTarget>& bins, std::size_t n, bool missing_left,
                              const double* value, double& most) const {
      std::int64_t rows = bins.rows && missing_left ? bins.rows[bins.n_bins] : 0;
      std::size_t best = n;
      for (std::size_t b = 0; b < n; ++b) {
        if (bins.rows) rows += bins.rows[b];
        if (!(value[b] > most)) continue;
        if (bins.rows && !target_.limits_.has_enough(rows, std::ssize(items_))) continue;
        most = value[b];
        best = b;
      }
      return best;
    }
    template <class Some>
    bool is_same(std::span<const Some> of, const Item& one, const Item& other) const {
      if (of.empty()) return true;
      const std::size_t n = of_.n_columns;
      return std::ranges::equal(of.subspan(one.place * n, n), of.subspan(other.place * n, n));
    }
    // Squared numbers are divided by 2^shift and rounded, which keeps their sum below 2^62.
    double variation(std::size_t l) const {
      if (of_.classes) return total_[l] * (1.0 - total_[l] / all_);
      const int shift = of_.bits[l] + 4;
      std::int64_t squares = 0;
      for (const auto part : chunks(items_))
        for (const Item& item : part) {
          const auto beyond =
              static_cast<double>(of_.whole[item.place * of_.n_columns + l] - centre_[l]);
          squares += item.weight * static_cast<std::int64_t>(std::ldexp(beyond * beyond, -shift));
        }
      return std::max(std::ldexp(static_cast<double>(squares), shift) - rest_[l] * rest_[l] / all_,
                      0.0);
    }

    const OutputsTarget& target_;
    const Response& of_;
    std::span<const Item> items_;
    double all_ = 0.0, unsplit_ = 0.0;
    std::vector<std::int64_t> centre_;  // (n_lanes,) see OutputSplits
    std::vector<double> rest_, total_;  // (n_lanes,)
    std::vector<std::int64_t> left_;    // (1 + n_lanes,) sums of the left child
  };

  void write(const NodeTotals::One& total, NodeSums& sums) const {
    for (std::size_t l = 0; l <= response_.n_lanes; ++l) {
      const int unit = limits_.unit + (l > 0 ? response_.exponent[l - 1] : 0);
      sums.sum.push_back(std::ldexp(static_cast<double>(total.sum[l]), unit));
    }
  }

 private:
  Response response_;
  RowLimits limits_;
};

}  // namespace
}  // namespace certree
