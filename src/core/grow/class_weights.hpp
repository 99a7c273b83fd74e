// Weights of classes as a target of growth from sums.
//
// Belongs to counted.cpp alone.
#pragma once

#include <array>
#include <stdexcept>

#include "grow/chance.hpp"
#include "grow/counted.hpp"
#include "grow/whole_numbers.hpp"

namespace certree {
namespace {

// A row's weight, times 2^12, and one row below it; and its class.
struct ClassItem {
  std::int64_t weight_and_row;
  std::int32_t y;
};

// What is added up by class for both sides of each cut: weights, and their squares or x log x.
struct ClassParts {
  std::array<double, 256> left, right, left_part, right_part;
};

// prefix: (n,) of one class. Weights are multiplied by `scale`; part(weight) is added up, too.
template <class Part>
CERTREE_INLINE void add_parts(const std::int64_t* prefix, std::size_t n, std::int64_t shift,
                              std::int64_t all, double scale, ClassParts& parts, const Part& part) {
  for (std::size_t b = 0; b < n; ++b) {
    const double left = to_double(prefix[b] + shift) * scale;
    const double right = to_double(all - prefix[b] - shift) * scale;
    parts.left[b] += left;
    parts.right[b] += right;
    parts.left_part[b] += part(left);
    parts.right_part[b] += part(right);
  }
}

CERTREE_WIDE void add_squares(const std::int64_t* prefix, std::size_t n, std::int64_t shift,
                              std::int64_t all, double scale, ClassParts& parts) noexcept {
  add_parts(prefix, n, shift, all, scale, parts, [](double x) { return x * x; });
}

CERTREE_WIDE void add_logs(const std::int64_t* prefix, std::size_t n, std::int64_t shift,
                           std::int64_t all, double scale, ClassParts& parts) noexcept {
  add_parts(prefix, n, shift, all, scale, parts, [](double x) { return times_log(x); });
}

// The weight times the sum of squared shares.
CERTREE_INLINE double value_by_squares(double weight, double squares) {
  return squares / (weight > 0.0 ? weight : 1.0);
}
// What the entropy of the classes, times their weight, is below that of equal shares.
CERTREE_INLINE double value_by_logs(double weight, double logs, double most) {
  const double value = weight * most - (times_log(weight) - logs);
  return value > 0.0 ? value : 0.0;
}

CERTREE_WIDE void value_parts(const ClassParts& parts, std::size_t n, double most, bool logs,
                              double* value) noexcept {
  if (logs)
    for (std::size_t b = 0; b < n; ++b)
      value[b] = value_by_logs(parts.left[b], parts.left_part[b], most) +
                 value_by_logs(parts.right[b], parts.right_part[b], most);
  else
    for (std::size_t b = 0; b < n; ++b)
      value[b] = value_by_squares(parts.left[b], parts.left_part[b]) +
                 value_by_squares(parts.right[b], parts.right_part[b]);
}

class ClassWeights {
 public:
  using Item = ClassItem;
  static constexpr std::size_t kBlock = 2047;  // so many weights of 2^40 and rows fit together
  static constexpr std::size_t kTogether = 1;

  ClassWeights(const ClassResponse& response, std::span<const std::int32_t> rows,
               const Counting& counting)
      : response_(response),
        n_classes_(static_cast<std::size_t>(response.n_classes)),
        logs_(response.criterion == Criterion::entropy),
        most_(log_positive(static_cast<double>(response.n_classes))),
        fixed_(largest(response.weight, rows), std::ssize(rows)),
        min_weight_(std::ldexp(counting.min_hessian, -fixed_.unit())),
        min_gain_(std::ldexp(counting.min_gain, -fixed_.unit())),
        min_rows_(std::max<std::int64_t>(counting.min_rows, 1)) {}

  // Classes, rows.
  std::size_t n_lanes() const { return n_classes_ + 1; }
  double min_gain() const { return min_gain_; }

  void itemise(std::span<const std::int32_t> rows, Item* items) const {
    const auto& weight = response_.weight;
    for (const auto part : stretches(rows))
      for (const std::int32_t row : part) {
        const auto i = static_cast<std::size_t>(row);
        const std::int64_t whole = fixed_.whole(weight.empty() ? 1.0 : weight[i]);
        items[i] = {whole * kRow + 1, response_.y[i]};
      }
  }

  // By one feature.
  void tally(std::span<const std::uint8_t* const> codes, std::span<const std::int32_t> rows,
             const Item* items, const std::size_t* n_bins, bool first,
             std::int64_t* const* lanes) const {
    thread_local std::vector<std::int64_t> sums;
    sums.resize(256 * n_classes_);
    std::fill_n(sums.data(), n_bins[0] * n_classes_, 0);
    std::fill_n(sums.data() + kMissingBin * n_classes_, n_classes_, 0);
    for (const std::int32_t row : rows) {
      const std::size_t at = codes[0][row] * n_classes_ + static_cast<std::size_t>(items->y);
      sums[at] += (items++)->weight_and_row;
    }
    const std::size_t width = n_bins[0] + 1;
    if (first) std::fill_n(lanes[0], n_lanes() * width, 0);
    for (std::size_t b = 0; b < width; ++b)
      for (std::size_t k = 0; k < n_classes_; ++k) {
        const std::int64_t sum = sums[(b < n_bins[0] ? b : kMissingBin) * n_classes_ + k];
        const std::int64_t n = sum & (kRow - 1);
        lanes[0][k * width + b] += (sum - n) / kRow;
        lanes[0][n_classes_ * width + b] += n;
      }
  }

  std::vector<std::int64_t> total(std::span<const std::int32_t> rows, const Item* items) const {
    std::vector<std::int64_t> sums(n_lanes());
    for (const auto part : stretches(rows))
      for (const std::int32_t row : part)
        sums[static_cast<std::size_t>(items[row].y)] += (items[row].weight_and_row - 1) / kRow;
    sums[n_classes_] = std::ssize(rows);
    return sums;
  }

  double value_cuts(const std::int64_t* prefix, std::size_t width, std::size_t n_bins,
                    const std::int64_t* shift, const std::int64_t* all, double* value) const {
    ClassParts parts{};
    const int exponent = std::ilogb(std::max(weight(all), 1.0));
    const double unit = std::ldexp(1.0, exponent), scale = std::ldexp(1.0, -exponent);
    for (std::size_t k = 0; k < n_classes_; ++k)
      (logs_ ? add_logs : add_squares)(prefix + k * width, n_bins, shift[k], all[k], scale, parts);
    value_parts(parts, n_bins, most_, logs_, value);
    const std::int64_t* const rows = prefix + n_classes_ * width;
    const double least = min_weight_ * scale;
    double best = -1.0;
    for (std::size_t b = 0; b < n_bins; ++b) {
      const std::int64_t n_left = rows[b] + shift[n_classes_], n_right = all[n_classes_] - n_left;
      const double lighter = std::min(parts.left[b], parts.right[b]);
      const bool enough = std::min(n_left, n_right) >= min_rows_ && lighter >= least && lighter > 0;
      value[b] = enough ? value[b] * unit : -1.0;
      best = std::max(best, value[b]);
    }
    return best;
  }

  double value(const std::int64_t* sums) const {
    const double all = weight(sums);
    const int exponent = std::ilogb(std::max(all, 1.0));
    double part = 0.0;
    for (std::size_t k = 0; k < n_classes_; ++k) {
      const double one = std::ldexp(static_cast<double>(sums[k]), -exponent);
      part += logs_ ? times_log(one) : one * one;
    }
    const double scaled = std::ldexp(all, -exponent);
    return std::ldexp(logs_ ? value_by_logs(scaled, part, most_) : value_by_squares(scaled, part),
                      exponent);
  }
  // Share of the last of two classes.
  double response(const std::int64_t* sums) const {
    const double all = weight(sums);
    return all > 0.0 ? static_cast<double>(sums[n_classes_ - 1]) / all : 0.0;
  }

  // -- categories

  std::size_t n_of_group() const { return n_lanes(); }
  void describe(const std::int64_t* sums, double* numbers) const {
    numbers[0] = std::max(weight(sums), 1.0);
    for (std::size_t k = 0; k < n_classes_; ++k) numbers[1 + k] = static_cast<double>(sums[k]);
  }
  static std::int64_t squares(std::span<const std::int32_t>, const Item*) { return 0; }
  Scatter scatter(const std::int64_t* sums, std::int64_t) const {
    Scatter scatter;
    const double all = std::max(weight(sums), 1.0);
    for (std::size_t k = 0; k < n_classes_; ++k) {
      const auto one = static_cast<double>(sums[k]);
      scatter.total += one * (1.0 - one / all);
    }
    scatter.row = all / static_cast<double>(sums[n_classes_]);
    return scatter;
  }
  // Shares of the last of two classes; of more, along their first principal component.
  std::vector<double> scores(const Groups& groups, const std::int64_t*) const {
    if (n_classes_ > 2) return principal_scores(groups);
    std::vector<double> score(groups.size());
    for (std::size_t g = 0; g < score.size(); ++g) score[g] = groups.share(g, n_classes_ - 1);
    return score;
  }

  void add_numbers(const std::int64_t* sums, std::vector<double>& numbers) const {
    for (std::size_t k = 0; k < n_classes_; ++k) numbers.push_back(fixed_.number(sums[k]));
    numbers.push_back(static_cast<double>(sums[n_classes_]));
  }

 private:
  static constexpr std::int64_t kRow = 1 << 12;

  static double largest(std::span<const double> weight, std::span<const std::int32_t> rows) {
    double most = weight.empty() ? 1.0 : 0.0;
    if (weight.empty()) return most;
    for (const auto part : stretches(rows))
      for (const std::int32_t i : part) {
        const double one = weight[static_cast<std::size_t>(i)];
        if (!(one >= 0.0 && one < kInfinity))
          throw std::invalid_argument("weights must be finite and not negative, got " +
                                      std::to_string(one));
        most = std::max(most, one);
      }
    return most;
  }
  double weight(const std::int64_t* sums) const {
    return static_cast<double>(std::accumulate(sums, sums + n_classes_, std::int64_t{0}));
  }

  ClassResponse response_;
  std::size_t n_classes_;
  bool logs_;
  double most_;  // entropy of equal shares
  FixedPoint fixed_;
  double min_weight_, min_gain_;
  std::int64_t min_rows_;
};

}  // namespace
}  // namespace certree
