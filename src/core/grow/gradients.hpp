// Gradients and Hessians of a loss as a target of histogram-based growth. Included by
// binned_growth.cpp alone.
//
// A target is a class with these types. Row: what is partitioned, from which the bins of a row are
// found. Item: what is added up for each row, sometimes the Row itself; for gradients it is the
// gradient pair. Sum: a sum of items, in integers; a bin has one or more. NodeEvaluator: the rows
// of a node and their sums; it writes the sums of a bin as lanes of int64, computes the value of a
// split from the sums of its left child, and describes categories. If a target keeps the histograms
// of nodes (kKeeps), tally() adds up lanes for all bins of some features, and the last lane counts
// rows.
#pragma once

#include <array>
#include <stdexcept>
#include <tuple>

#include "grow/binned_growth.hpp"
#include "grow/chance.hpp"
#include "grow/split_search.hpp"
#include "grow/whole_numbers.hpp"

namespace certree {
namespace {

// Regularisation, and limits on both children of a split, in the units of the sums.
struct GradientLimits {
  double l2, min_hessian;
  std::int64_t min_rows;
};

// The gradient pair of a row in integers. The gradient is multiplied by 2^12 and the number of
// rows, 1, is added, so that one addition sums up both.
struct GradientItem {
  std::int64_t gradient_and_row, hessian;

  void operator+=(const GradientItem& other) {
    gradient_and_row += other.gradient_and_row;
    hessian += other.hessian;
  }
};
inline constexpr int kRowBits = 12;
// Rows of a block: the sum of so many gradients of up to 2^40, with their rows, fits into an int64.
inline constexpr std::size_t kRowsOfBlock = 2047;

// The sums of a block by bin, for one feature.
using BlockSums = std::array<GradientItem, 256>;

// Adds n items, at most a block, to the sums of their bins, for several features together: while
// one addition waits for memory, the others proceed. codes: bins of each feature, that of the i-th
// item at places[i].
template <class Places, std::size_t... f>
void add_items(const std::uint8_t* const* codes, const Places& places, const GradientItem* item,
               std::size_t n, BlockSums* sums, std::index_sequence<f...>) {
  const std::array<const std::uint8_t*, sizeof...(f)> code{codes[f]...};
  for (std::size_t i = 0; i < n; ++i) {
    const GradientItem one = item[i];
    const auto place = static_cast<std::size_t>(places[i]);
    ((sums[f][code[f][place]] += one), ...);
  }
}

// Writes the sums of a block of n bins to lanes of the given width, or adds them if `add`.
template <bool add>
CERTREE_SIMD_CLONES void unpack(const GradientItem* sums, std::size_t n, std::int64_t* lanes,
                                std::size_t width) noexcept {
  // Numbers are shifted above 0 and back: there is no vector instruction for a signed right shift.
  constexpr std::uint64_t kAbove = std::uint64_t{1} << 63;
  std::int64_t *const g = lanes, *const h = lanes + width, *const rows = h + width;
  for (std::size_t b = 0; b < n; ++b) {
    const auto both = static_cast<std::uint64_t>(sums[b].gradient_and_row);
    const std::uint64_t gradient = ((both + kAbove) >> kRowBits) - (kAbove >> kRowBits);
    g[b] = (add ? g[b] : 0) + static_cast<std::int64_t>(gradient);
    h[b] = (add ? h[b] : 0) + sums[b].hessian;
    rows[b] = (add ? rows[b] : 0) + static_cast<std::int64_t>(both & ((1 << kRowBits) - 1));
  }
}

// Returns the value G^2 / (H + l2) of both children of a split together; -inf if a child is too
// small. It is the same to the bit if the children are exchanged.
CERTREE_INLINE double value_of_children(std::int64_t g_one, std::int64_t h_one, std::int64_t n_one,
                                        std::int64_t g_two, std::int64_t h_two, std::int64_t n_two,
                                        const GradientLimits& limits) {
  const auto [l2, min_hessian, min_rows] = limits;
  const double g_left = to_double(g_one), g_right = to_double(g_two);
  const double h_left = to_double(h_one), h_right = to_double(h_two);
  const double left = h_left + l2, right = h_right + l2;
  const bool enough = (n_one >= min_rows) & (n_two >= min_rows) & (h_left >= min_hessian) &
                      (h_right >= min_hessian) & (left > 0.0) & (right > 0.0);
  const double both = g_left * g_left / left + g_right * g_right / right;
  return enough ? both : -kInfinity;
}

// Computes the values of the splits behind each bin, (n_bins,), and returns the largest. prefix:
// (3, width) cumulative sums up to each bin, to which `shift` is added; total: (3,) of the node.
CERTREE_SIMD_CLONES double value_gradient_splits(const std::int64_t* prefix, std::size_t width,
                                                 std::size_t n_bins, const std::int64_t* shift,
                                                 const std::int64_t* total,
                                                 const GradientLimits& limits,
                                                 double* value) noexcept {
  const std::int64_t *const g = prefix, *const h = g + width, *const n = h + width;
  const std::int64_t g_shift = shift[0], h_shift = shift[1], n_shift = shift[2];
  const std::int64_t g_all = total[0], h_all = total[1], n_all = total[2];
  const GradientLimits own = limits;  // a copy, as writing to value could change limits
  auto most = std::numeric_limits<std::int64_t>::min();
  for (std::size_t b = 0; b < n_bins; ++b) {
    const std::int64_t g_left = g[b] + g_shift, h_left = h[b] + h_shift, n_left = n[b] + n_shift;
    value[b] = value_of_children(g_left, h_left, n_left, g_all - g_left, h_all - h_left,
                                 n_all - n_left, own);
    most = std::max(most, std::bit_cast<std::int64_t>(value[b]));
  }
  return largest_of_bits(most);
}

// The target. Lanes are sums of gradients, of Hessians, and numbers of rows.
class Gradients {
 public:
  using Row = std::int32_t;
  using Item = GradientItem;
  using Sum = GradientItem;
  static constexpr bool kKeeps = true, kSparse = false;
  static constexpr std::size_t kLanes = 3;  // gradients, Hessians, rows
  static constexpr std::size_t kBlock = kRowsOfBlock;
  static constexpr std::size_t kTogether = 4;  // features by which rows are added up at a time

  // For the rows of all blocks or ranks, given their largest absolute values.
  Gradients(const Derivatives& response, const LargestDerivatives& largest,
            const BinnedGrowth& growth)
      : gradient_(largest.gradient, largest.n_rows),
        hessian_(largest.hessian, largest.n_rows),
        limits_{std::ldexp(response.l2, -hessian_.unit()),
                std::ldexp(response.min_hessian, -hessian_.unit()),
                std::max<std::int64_t>(growth.min_rows, 1)},
        min_gain_(std::ldexp(growth.min_gain, hessian_.unit() - 2 * gradient_.unit())),
        response_(response) {}

  static LargestDerivatives largest(const Derivatives& response,
                                    std::span<const std::int32_t> rows) {
    const auto [gradient, hessian] = std::pair(response.gradient, response.hessian);
    // As integers, the bit patterns of numbers >= 0 have the order of the numbers, and those of all
    // other numbers are larger.
    std::uint64_t g = 0, h = 0;
    for (const auto part : chunks(rows))
      for (const std::int32_t row : part) {
        const auto i = static_cast<std::size_t>(row);
        const double factor = response.factors[i];
        g = std::max(g, std::bit_cast<std::uint64_t>(std::abs(factor * gradient[i])));
        // + 0.0 turns -0.0 into 0.0.
        h = std::max(h, std::bit_cast<std::uint64_t>(factor * hessian[i] + 0.0));
      }
    const auto number = [](std::uint64_t bits) {
      return std::bit_cast<double>(std::min(bits, std::bit_cast<std::uint64_t>(kInfinity)));
    };
    return {number(g), number(h), std::ssize(rows)};
  }

  // Throws std::invalid_argument for the first row whose gradient or Hessian is wrong; it may be on
  // another rank.
  [[noreturn]] static void refuse(const Derivatives& response, std::span<const std::int32_t> rows) {
    double g = 0.0, h = 0.0;
    const auto is_wrong = [&](std::int32_t row) {
      const auto i = static_cast<std::size_t>(row);
      g = response.factors[i] * response.gradient[i];
      h = response.factors[i] * response.hessian[i];
      return !std::isfinite(g) || !(h >= 0.0 && h < kInfinity);
    };
    if (std::ranges::find_if(rows, is_wrong) == rows.end())
      throw std::invalid_argument(
          "gradients and Hessians must be finite, got others on another rank");
    if (!std::isfinite(g))
      throw std::invalid_argument("gradients must be finite, got " + std::to_string(g));
    throw std::invalid_argument("Hessians must be finite and not negative, got " +
                                std::to_string(h));
  }

  // The units of the integers.
  struct Units {
    FixedPoint gradient, hessian;
  };
  Units units() const { return {gradient_, hessian_}; }
  // Returns the item of n rows, 0 or 1.
  static CERTREE_INLINE Item item(std::int64_t gradient, std::int64_t hessian, std::int64_t n) {
    return {gradient * (1 << kRowBits) + n, hessian};
  }

  static constexpr std::size_t most_sums() { return 1; }
  static constexpr bool counts_rows() { return false; }  // the last lane does

  using Lanes = std::array<std::int64_t, kLanes>;
  // Splits a sum into lanes.
  static Lanes lanes_of(const Sum& sum) {
    const std::int64_t n = rows_of(sum);
    return {(sum.gradient_and_row - n) / (1 << kRowBits), sum.hessian, n};
  }

  // Computes the items of rows. items: (n,) by number of row.
  void itemise(std::span<const std::int32_t> rows, Item* items) const {
    for (const auto part : chunks(rows))
      for (const std::int32_t row : part) {
        const auto i = static_cast<std::size_t>(row);
        const double factor = response_.factors[i];
        items[i] = item(gradient_.whole(factor * response_.gradient[i]),
                        hessian_.whole(factor * response_.hessian[i]), 1);
      }
  }

  // Adds the histogram of a block of n rows to lanes, or writes it if it is the first block. codes:
  // bins of each of some features, at places; lanes: of each feature, with n_bins + 1 entries per
  // lane.
  template <class Places>
  static void tally(std::span<const std::uint8_t* const> codes, const Places& places,
                    const Item* items, std::size_t n, const std::size_t* n_bins, bool first,
                    std::int64_t* const* lanes) {
    std::array<BlockSums, kTogether> sums;
    for (std::size_t f = 0; f < codes.size(); ++f) {
      std::fill_n(sums[f].data(), n_bins[f], GradientItem{0, 0});
      sums[f][kMissingBin] = {0, 0};
    }
    const auto add = [&]<std::size_t... f>(std::index_sequence<f...> together) {
      add_items(codes.data(), places, items, n, sums.data(), together);
    };
    static_assert(kTogether == 4);
    if (codes.size() == 4) add(std::make_index_sequence<4>());
    if (codes.size() == 3) add(std::make_index_sequence<3>());
    if (codes.size() == 2) add(std::make_index_sequence<2>());
    if (codes.size() == 1) add(std::make_index_sequence<1>());
    for (std::size_t f = 0; f < codes.size(); ++f) {
      const auto write = first ? unpack<false> : unpack<true>;
      write(sums[f].data(), n_bins[f], lanes[f], n_bins[f] + 1);
      write(&sums[f][kMissingBin], 1, lanes[f] + n_bins[f], n_bins[f] + 1);
    }
  }

  // Returns the sums over rows by lane.
  static Lanes total(std::span<const std::int32_t> rows, const Item* items) {
    std::int64_t g = 0, h = 0;
    for (const auto part : chunks(rows))
      for (const std::int32_t row : part) {
        g += gradient_of(items[row]);
        h += items[row].hessian;
      }
    return {g, h, std::ssize(rows)};
  }

  // Returns the sum of the squared gradients of rows, in units of 2^40 squared units, for
  // scatter().
  static std::int64_t squares(std::span<const std::int32_t> rows, const Item* items) {
    std::int64_t sum = 0;
    for (const auto part : chunks(rows))
      for (const std::int32_t row : part) {
        const auto g = static_cast<double>(gradient_of(items[row]));
        sum += static_cast<std::int64_t>(g * g * 0x1p-40);
      }
    return sum;
  }

  // Returns the Newton step of a node, to which monotonic constraints apply.
  // Gradients are multiplied by the weights of rows, so their sums only tell the number of rows.
  static std::int64_t weight(std::span<const std::int64_t> sums) { return sums.back(); }
  double response(const std::int64_t* sums) const {
    const double h = static_cast<double>(sums[1]) + limits_.l2;
    return h > 0.0 ? -static_cast<double>(sums[0]) / h : 0.0;
  }

  class NodeEvaluator {
   public:
    NodeEvaluator(const Gradients& target, const NodeTotals::One& total, std::int64_t squares)
        : target_(target), squares_(squares) {
      std::ranges::copy(total.sum, total_.begin());
    }
    static constexpr std::size_t n_sums() { return 1; }
    static CERTREE_INLINE void add(const Item& item, Sum* sum) { *sum += item; }
    static bool is_empty(const Sum* sum) { return rows_of(*sum) == 0; }
    // Subtracts a sum from lanes of the given width.
    static void take_away(const Sum& sum, std::int64_t* lanes, std::size_t width) {
      const auto less = lanes_of(sum);
      for (std::size_t l = 0; l < kLanes; ++l) lanes[l * width] -= less[l];
    }

    using Memory = SplitSums;
    // Finds the best split behind one of the first n bins whose value exceeds `most`, and which
    // allows(its sums on the left) permits. On ties the first. Updates most and left, the sums of
    // its left child, and returns the bin, or n if there is none. Must be called with missing_left
    // = false first.
    template <class Bins, class Allows>
    std::size_t best(const Bins& bins, std::size_t n, bool missing_left, const Allows& allows,
                     Memory& own, double& most, std::vector<std::int64_t>& left) const {
      const std::size_t width = bins.n_bins + 1;
      if (!missing_left) sum_up(bins, own.prefix);
      std::array<std::int64_t, kLanes> shift{};
      if (missing_left) shift = entry(bins, bins.n_bins);
      const double value = value_gradient_splits(own.prefix.data(), width, n, shift.data(),
                                                 total_.data(), target_.limits_, own.value.data());
      return first_of_best<Gradients>(own, width, n, shift, value, allows, most, left);
    }
    // Returns the value of a split with these sums in one child.
    CERTREE_INLINE double value(const Lanes& child) const {
      return value_of_children(child[0], child[1], child[2], total_[0] - child[0],
                               total_[1] - child[1], total_[2] - child[2], target_.limits_);
    }
    std::pair<double, bool> gain(double value, double) const {
      const double gain = value - unsplit();
      return {gain, gain > kNothing * value && gain >= target_.min_gain_};
    }

    // Numbers that describe a category: its weight and its response.
    std::size_t n_of_group() const { return 2; }
    template <class Bins>
    void describe(const Bins& bins, std::size_t i, double* numbers) const {
      const auto sums = entry(bins, i);
      numbers[0] = static_cast<double>(std::max<std::int64_t>(sums[1], 1));
      numbers[1] = static_cast<double>(sums[0]);
    }
    // If gradients were assigned to rows at random, the squared sum over k rows would be about k
    // times their variance, whatever the Hessians are.
    Scatter scatter() const {
      const auto g = static_cast<double>(total_[0]), n = static_cast<double>(total_[2]);
      const auto h = static_cast<double>(std::max<std::int64_t>(total_[1], 1));
      const double variation = static_cast<double>(squares_) * 0x1p40 - g * g / n;
      return {h / n, std::max(variation, 0.0) * (n / h)};
    }
    // Returns the mean gradient of each category, shrunk by l2 towards that of the node.
    std::vector<double> scores(const Groups& groups) const {
      std::vector<double> score(groups.size());
      const double l2 = target_.limits_.l2, own = l2 * -target_.response(total_.data());
      for (std::size_t i = 0; i < score.size(); ++i)
        score[i] = (groups.sums(i)[1] + own) / (groups.sums(i)[0] + l2);
      return score;
    }

   private:
    // A gain below this fraction of the value is a rounding error of 0.
    static constexpr double kNothing = 0x1p-46;

    static Lanes entry(const FewBins<Gradients>& bins, std::size_t i) {
      return lanes_of(*bins.at(i));
    }
    static Lanes entry(const AllBins& bins, std::size_t i) {
      return {bins.sum(0, i), bins.sum(1, i), bins.sum(2, i)};
    }
    template <class Bins>
    static void sum_up(const Bins& bins, std::vector<std::int64_t>& prefix) {
      const std::size_t width = bins.n_bins + 1;
      if (prefix.size() < kLanes * width) prefix.resize(kLanes * width);
      std::int64_t* const to = prefix.data();
      Lanes sum{};
      for (std::size_t b = 0; b < bins.n_bins; ++b) {
        const Lanes one = entry(bins, b);
        for (std::size_t l = 0; l < kLanes; ++l) to[l * width + b] = sum[l] += one[l];
      }
    }
    double unsplit() const {
      const auto g = static_cast<double>(total_[0]);
      const double h = static_cast<double>(total_[1]) + target_.limits_.l2;
      return h > 0.0 ? g * g / h : 0.0;
    }

    const Gradients& target_;
    std::array<std::int64_t, kLanes> total_;
    std::int64_t squares_;
  };

  void write(const NodeTotals::One& total, std::vector<double>& numbers) const {
    numbers.push_back(gradient_.number(total.sum[0]));
    numbers.push_back(hessian_.number(total.sum[1]));
    numbers.push_back(static_cast<double>(total.sum[2]));
  }

 private:
  static std::int64_t rows_of(const Sum& sum) {
    return sum.gradient_and_row & ((1 << kRowBits) - 1);
  }
  static std::int64_t gradient_of(const Item& item) {
    return (item.gradient_and_row - 1) / (1 << kRowBits);
  }

  FixedPoint gradient_, hessian_;
  GradientLimits limits_;
  double min_gain_;
  Derivatives response_;
};

}  // namespace
}  // namespace certree
