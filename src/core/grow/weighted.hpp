// Classes and numbers of weighted rows as targets of histogram-based growth; see gradients.hpp for
// what a target has. Included by the growers of trees from histograms alone.
//
// The gain of a split is the decrease in impurity times the weight of the node; its value is the
// gain up to a factor that is the same for all splits of a node.
#pragma once

#include "grow/binned_growth.hpp"
#include "grow/chance.hpp"
#include "grow/split_search.hpp"
#include "grow/whole_numbers.hpp"
#include "numbers.hpp"

namespace certree {
namespace {

// The unit of the row weights, which are integers, and the limit on rows.
struct RowLimits {
  int unit;               // exponent of their unit, a power of two
  std::int64_t min_rows;  // in either child of a split; rows are counted only if it exceeds 1
  bool counts_rows() const { return min_rows > 1; }
  bool has_enough(std::int64_t n_left, std::int64_t n) const {
    return std::min(n_left, n - n_left) >= min_rows;
  }
};

template <class Item>
double squared_weights(std::span<const Item> items) {
  double squares = 0.0;
  for (const auto chunk : chunks(items))
    for (const Item& item : chunk)
      squares += static_cast<double>(item.weight) * static_cast<double>(item.weight);
  return squares;
}

// Returns the mean of response k in each group.
inline std::vector<double> group_means(const Groups& groups, std::size_t k) {
  std::vector<double> mean(groups.size());
  for (std::size_t g = 0; g < mean.size(); ++g) mean[g] = groups.mean(g, k);
  return mean;
}

// -- a weight and a sum: two classes, and numbers

// Both in 32 bits each.
struct SmallPair {
  std::uint64_t bits = 0;
  std::int64_t weight() const { return static_cast<std::int64_t>(bits & 0xFFFFFFFFu); }
  std::int64_t sum() const { return static_cast<std::int64_t>(bits >> 32); }
  void operator+=(SmallPair other) { bits += other.bits; }
  void operator-=(SmallPair other) { bits -= other.bits; }
};

struct WidePair {
  std::int64_t weights = 0, sums = 0;
  std::int64_t weight() const { return weights; }
  std::int64_t sum() const { return sums; }
  void operator+=(WidePair other) {
    weights += other.weights;
    sums += other.sums;
  }
  void operator-=(WidePair other) {
    weights -= other.weights;
    sums -= other.sums;
  }
};

// A row that was drawn `weight` times; sum is the same for class 1, and 0 for class 0.
struct SmallPairItem {
  using Sum = SmallPair;
  static constexpr std::int64_t kMostWeight = 0xFFFF;
  std::uint32_t row;
  std::uint16_t weight, sum;

  SmallPairItem(std::uint32_t i, std::int64_t w, std::int64_t t)
      : row(i), weight(static_cast<std::uint16_t>(w)), sum(static_cast<std::uint16_t>(w * t)) {}
  Sum pair() const { return {weight | std::uint64_t{sum} << 32}; }
};

struct DrawnNumberItem {
  using Sum = WidePair;
  static constexpr std::int64_t kMostWeight = 0xFFFFFFFF;
  std::uint32_t row, weight;
  std::int64_t sum;

  DrawnNumberItem(std::uint32_t i, std::int64_t w, std::int64_t t)
      : row(i), weight(static_cast<std::uint32_t>(w)), sum(w * t) {}
  Sum pair() const { return {weight, sum}; }
};

struct WidePairItem {
  using Sum = WidePair;
  static constexpr std::int64_t kMostWeight = std::numeric_limits<std::int64_t>::max();
  std::int64_t weight, sum;
  std::uint32_t row;

  WidePairItem(std::uint32_t i, std::int64_t w, std::int64_t t) : weight(w), sum(w * t), row(i) {}
  Sum pair() const { return {weight, sum}; }
};

// The response: integers; for two classes, 0 and 1.
struct PairResponse {
  bool classes;
  bool poisson;                     // for numbers: Poisson deviance instead of squared error
  std::span<const double> x_log_x;  // for classes: table by x for cross entropy; empty: Gini index
  std::span<const std::int64_t> whole;  // (n,)
  std::int64_t bits = 1;                // number of bits of the largest
  int unit = 0;                         // exponent of their unit, a power of two
};

// Values of the splits of a node by squared error. Numbers are taken relative to the node's mean,
// rounded to an integer, to avoid cancellation.
struct PairCentre {
  std::int64_t weight = 0, centre = 0, n_rows = 0;
  double all = 0.0, rest = 0.0;

  // Returns the value of a split by the weight and the sum of its left child.
  CERTREE_INLINE double value(std::int64_t left, std::int64_t sum) const {
    const auto w = static_cast<double>(left), right = static_cast<double>(weight - left);
    const double beyond = static_cast<double>(sum - left * centre) * all - rest * w;
    return beyond * beyond / (w * right);
  }
};

// The same by half of the Poisson deviance; the value is the decrease by a split.
struct PoissonNode {
  std::int64_t weight = 0, sum = 0;
  double unsplit = 0.0;

  PoissonNode(std::int64_t w, std::int64_t s) : weight(w), sum(s), unsplit(part(s, w)) {}
  static double part(std::int64_t s, std::int64_t w) {
    const auto total = static_cast<double>(s);
    return s > 0 ? total * std::log(total / static_cast<double>(w)) : 0.0;
  }
  // A child with zeros alone would predict 0, so that every other number had probability 0.
  double value(std::int64_t left, std::int64_t of_left) const {
    if (of_left <= 0 || of_left >= sum) return -kInfinity;
    return part(of_left, left) + part(sum - of_left, weight - left) - unsplit;
  }
};

// Returns a table of x log x for integers up to `most`, or up to 2^16, enough for most nodes.
inline std::vector<double> logs_up_to(std::int64_t most) {
  std::vector<double> logs(static_cast<std::size_t>(std::min<std::int64_t>(most, 1 << 16)) + 1);
  for (const std::size_t x : indices(logs.size())) logs[x] = x_log_x(static_cast<double>(x));
  return logs;
}

// The same by cross entropy of two classes; sum: the weight of the second. The values are equal to
// the bit to those of ClassSplits.
struct EntropyNode {
  std::span<const double> logs;
  std::int64_t weight = 0, sum = 0;
  double unsplit = 0.0;

  EntropyNode(std::span<const double> x_log_x, std::int64_t w, std::int64_t s)
      : logs(x_log_x), weight(w), sum(s) {
    unsplit = -at(w);
    unsplit += at(w - s);
    unsplit += at(s);
  }
  CERTREE_INLINE double at(std::int64_t x) const {
    return std::cmp_less(x, logs.size()) ? logs[static_cast<std::size_t>(x)]
                                         : x_log_x(static_cast<double>(x));
  }
  CERTREE_INLINE double value(std::int64_t left, std::int64_t of_left) const {
    const std::int64_t zeros = left - of_left;
    double value = -at(left) - at(weight - left);
    value += at(zeros) + at(weight - sum - zeros);
    value += at(of_left) + at(sum - of_left);
    return value - unsplit;
  }
};

// Sets the values of splits with too few rows in a child to -inf, and returns the largest value.
inline double value_enough(const std::int64_t* n_left, std::size_t n, std::int64_t shift,
                           std::int64_t n_rows, const RowLimits& limits, double* value) {
  double most = -kInfinity;
  for (std::size_t b = 0; b < n; ++b) {
    if (!limits.has_enough(n_left[b] + shift, n_rows)) value[b] = -kInfinity;
    most = std::max(most, value[b]);
  }
  return most;
}

// The target of two classes, and of numbers.
template <class ItemType>
class PairTarget {
 public:
  using Row = ItemType;
  using Item = ItemType;
  using Sum = typename Item::Sum;
  using Response = PairResponse;
  static constexpr bool kKeeps = false, kSparse = false;

  PairTarget(const Response& response, const RowLimits& limits)
      : response_(response), limits_(limits) {}

  static constexpr std::size_t most_sums() { return 1; }
  bool counts_rows() const { return limits_.counts_rows(); }
  Item item(std::size_t row, std::int64_t weight) const {
    return Item(static_cast<std::uint32_t>(row), weight, response_.whole[row]);
  }
  void total(std::span<const Item> items, NodeTotals& sums) const {
    Sum total{};
    for (const auto chunk : chunks(items))
      for (const Item& item : chunk) total += item.pair();
    sums.add(0, total.weight());
    sums.add(1, total.sum());
  }

  // Squared numbers are divided by 2^shift() and rounded, which keeps their sum below 2^62.
  int shift() const { return static_cast<int>(response_.bits) + 4; }

  static std::int64_t weight(std::span<const std::int64_t> sums) { return sums.front(); }
  // Returns the mean, to which monotonic constraints apply.
  double response(const std::int64_t* sums) const {
    return static_cast<double>(sums[1]) / static_cast<double>(sums[0]);
  }

  class NodeEvaluator {
   public:
    explicit NodeEvaluator(const PairTarget& target) : target_(target) {}
    void open(std::span<const Item> items, const NodeTotals::One& total) {
      items_ = items;
      open(total, std::ssize(items));
    }

    static constexpr std::size_t n_sums() { return 1; }
    static CERTREE_INLINE void add(const Item& item, Sum* sum) { *sum += item.pair(); }
    static bool is_empty(const Sum* sum) { return sum->weight() == 0; }
    double weight() const { return centre_.all; }
    bool is_pure() const {
      if (target_.response_.classes) return all_.sums == 0 || all_.sums == all_.weights;
      const auto value = [](const Item& item) {
        return static_cast<std::int64_t>(item.sum) / static_cast<std::int64_t>(item.weight);
      };
      const std::int64_t first = value(items_.front());
      return all_of(items_, [&](const Item& item) { return value(item) == first; });
    }
    // No memory is needed: the splits of a node are evaluated one by one.
    struct Memory {};
    template <class Allows>
    std::size_t best(const FewBins<PairTarget>& bins, std::size_t n, bool missing_left,
                     const Allows& allows, Memory&, double& most,
                     std::vector<std::int64_t>& left) const {
      const auto best_by = [&](const auto& node) {
        return bins.rows ? best<true>(bins, node, n, missing_left, allows, most, left)
                         : best<false>(bins, node, n, missing_left, allows, most, left);
      };
      const PairResponse& of = target_.response_;
      if (of.poisson) return best_by(PoissonNode(all_.weights, all_.sums));
      if (!of.x_log_x.empty()) return best_by(EntropyNode(of.x_log_x, all_.weights, all_.sums));
      return best_by(PairCentre(centre_));
    }
    // Returns the gain of a split by its value, and whether it is at least `least`.
    std::pair<double, bool> gain(double value, double least) const {
      const PairResponse& of = target_.response_;
      const bool is_gain = of.poisson || !of.x_log_x.empty();
      const double gain = is_gain ? value : (of.classes ? 2.0 : 1.0) * value / centre_.all;
      const int unit = (of.poisson ? 1 : 2) * of.unit;
      return {gain, least == 0.0 || gain * std::ldexp(1.0, unit) >= least};
    }

    std::size_t n_of_group() const { return 2; }
    static void describe(const FewBins<PairTarget>& bins, std::size_t i, double* numbers) {
      numbers[0] = static_cast<double>(bins.at(i)->weight());
      numbers[1] = static_cast<double>(bins.at(i)->sum());
    }
    std::int64_t squares_beyond_mean(std::span<const Item> items) const {
      const int shift = target_.shift();
      std::int64_t squares = 0;
      for (const auto chunk : chunks(items))
        for (const Item& item : chunk) {
          const auto w = static_cast<std::int64_t>(item.weight);
          const std::int64_t number = static_cast<std::int64_t>(item.sum) / w;
          const auto beyond = static_cast<double>(number - centre_.centre);
          squares += w * static_cast<std::int64_t>(std::ldexp(beyond * beyond, -shift));
        }
      return squares;
    }
    Scatter scatter() const { return {squared_weights(items_) / centre_.all, variation()}; }
    // Returns the mean of each category, or the probability of the second class.
    std::vector<double> scores(const Groups& groups) const { return group_means(groups, 0); }

   private:
    // The node is passed by value, so that the compiler keeps it in registers.
    template <bool counts_rows, class ValueOf, class Allows>
    std::size_t best(const FewBins<PairTarget>& bins, const ValueOf node, std::size_t n,
                     bool missing_left, const Allows& allows, double& most,
                     std::vector<std::int64_t>& left) const {
      Sum sum = missing_left ? *bins.at(bins.n_bins) : Sum{};
      std::int64_t rows = counts_rows && missing_left ? bins.rows[bins.n_bins] : 0;
      double best_value = most;
      std::size_t best = n;
      left.resize(2);
      std::int64_t* const to = left.data();
      for (std::size_t i = 0; i < n; ++i) {
        sum += bins.sums[i];
        if constexpr (counts_rows) rows += bins.rows[i];
        const double value = node.value(sum.weight(), sum.sum());
        if (!(value > best_value)) continue;
        if (counts_rows && !target_.limits_.has_enough(rows, centre_.n_rows)) continue;
        if constexpr (!std::is_same_v<Allows, AllSplits>)
          if (!allows(std::array{sum.weight(), sum.sum()}.data())) continue;
        best_value = value;
        best = i;
        to[0] =
            sum.weight();  // writing makes this a branch, so iterations do not wait for each other
        to[1] = sum.sum();
      }
      most = best_value;
      return best;
    }

    CERTREE_INLINE void open(const NodeTotals::One& total, std::int64_t n_rows) {
      all_ = {total.sum[0], total.sum[1]};
      centre_.weight = all_.weights;
      centre_.centre = all_.weights > 0 ? all_.sums / all_.weights : 0;
      centre_.all = static_cast<double>(all_.weights);
      centre_.rest = static_cast<double>(all_.sums - all_.weights * centre_.centre);
      centre_.n_rows = n_rows;
    }
    double variation() const {
      const auto sum = static_cast<double>(all_.sums);
      if (target_.response_.classes) return sum * (1.0 - sum / centre_.all);
      const int shift = target_.shift();
      const std::int64_t squares = squares_beyond_mean(items_);
      const double rest = centre_.rest;
      return std::max(std::ldexp(static_cast<double>(squares), shift) - rest * rest / centre_.all,
                      0.0);
    }

    const PairTarget& target_;
    std::span<const Item> items_;
    WidePair all_;
    PairCentre centre_;
  };

  void write(const NodeTotals::One& total, NodeSums& sums) const {
    const std::int64_t one = total.sum[1], zero = total.sum[0] - one;
    if (!response_.classes) {
      sums.put(0, total.sum[0], limits_.unit);
      sums.put(1, one, limits_.unit + response_.unit);
      return;
    }
    if (zero > 0) sums.put(0, zero, limits_.unit);
    if (one > 0) sums.put(1, one, limits_.unit);
  }

 private:
  Response response_;
  RowLimits limits_;
};

// -- a weight for each class

struct SmallClassItem {
  using Sum = std::uint32_t;
  static constexpr std::int64_t kMostWeight = 0xFFFF, kMostClasses = 0x10000;
  std::uint32_t row;
  std::uint16_t weight, y;
};

struct WideClassItem {
  using Sum = std::int64_t;
  static constexpr std::int64_t kMostWeight = std::numeric_limits<std::int64_t>::max();
  static constexpr std::int64_t kMostClasses = std::int64_t{1} << 31;
  std::int64_t weight;
  std::uint32_t row, y;
};

// The class weights in the left child of each split of a node.
struct ClassSplits {
  const std::int64_t* prefix;  // (n_classes, width) cumulative weights up to each split
  std::size_t width;
  const std::int64_t* shift;  // (n_classes,) added to them
  const double* total;        // (n_classes,) of the node
  std::size_t n_classes;
  double all;  // weight of the node

  // Returns the weight of class k on the left of split b.
  CERTREE_INLINE double left(std::size_t k, std::size_t b) const {
    return to_double(prefix[k * width + b] + shift[k]);
  }
  // Computes the weight on the left of the first n splits.
  CERTREE_INLINE void sum_classes(std::size_t n, double* weight) const {
    std::fill_n(weight, n, 0.0);
    for (std::size_t k = 0; k < n_classes; ++k)
      for (std::size_t b = 0; b < n; ++b) weight[b] += left(k, b);
  }
};

// Computes the values of the first n splits by the Gini index, and returns the largest.
CERTREE_SIMD_CLONES double value_by_squares(const ClassSplits& splits, std::size_t n,
                                            double* value) noexcept {
  std::array<double, 257> weight;
  splits.sum_classes(n, weight.data());
  std::fill_n(value, n, 0.0);
  for (std::size_t k = 0; k < splits.n_classes; ++k)
    for (std::size_t b = 0; b < n; ++b) {
      const double beyond = splits.left(k, b) * splits.all - splits.total[k] * weight[b];
      value[b] += beyond * beyond;
    }
  auto most = std::numeric_limits<std::int64_t>::min();
  for (std::size_t b = 0; b < n; ++b) {
    value[b] /= weight[b] * (splits.all - weight[b]);
    most = std::max(most, std::bit_cast<std::int64_t>(value[b]));
  }
  return largest_of_bits(most);
}

// Computes the same by cross entropy. unsplit: sum of x log x over the classes, minus that of the
// node.
CERTREE_SIMD_CLONES double value_by_logs(const ClassSplits& splits, std::size_t n, double unsplit,
                                         double* value) noexcept {
  std::array<double, 257> weight;
  splits.sum_classes(n, weight.data());
  for (std::size_t b = 0; b < n; ++b)
    value[b] = -x_log_x(weight[b]) - x_log_x(splits.all - weight[b]);
  for (std::size_t k = 0; k < splits.n_classes; ++k)
    for (std::size_t b = 0; b < n; ++b) {
      const double left = splits.left(k, b);
      value[b] += x_log_x(left) + x_log_x(splits.total[k] - left);
    }
  double most = -kInfinity;
  for (std::size_t b = 0; b < n; ++b) {
    value[b] -= unsplit;
    most = std::max(most, value[b]);
  }
  return most;
}

// The target of any number of classes. Its lanes are classes.
template <class ItemType>
class ClassTarget {
 public:
  using Row = ItemType;
  using Item = ItemType;
  using Sum = typename Item::Sum;
  using Response = Classes;
  static constexpr bool kKeeps = false, kSparse = true;

  ClassTarget(const Response& response, const RowLimits& limits)
      : response_(response),
        limits_(limits),
        n_classes_(static_cast<std::size_t>(response.n_classes)) {}

  std::size_t most_sums() const { return n_classes_; }
  bool counts_rows() const { return limits_.counts_rows(); }
  Item item(std::size_t row, std::int64_t weight) const {
    Item item{};
    item.row = static_cast<std::uint32_t>(row);
    item.weight = static_cast<decltype(item.weight)>(weight);
    item.y = static_cast<decltype(item.y)>(response_.y[row]);
    return item;
  }
  void total(std::span<const Item> items, NodeTotals& sums) const {
    std::vector<std::int64_t> total(n_classes_);
    for (const auto chunk : chunks(items))
      for (const Item& item : chunk) total[item.y] += item.weight;
    for (std::size_t k = 0; k < n_classes_; ++k)
      if (total[k] > 0) sums.add(static_cast<std::int32_t>(k), total[k]);
  }

  static std::int64_t weight(std::span<const std::int64_t> sums) {
    return std::accumulate(sums.begin(), sums.end(), std::int64_t{0});
  }
  // Returns the probability of the second of two classes.
  double response(const std::int64_t* sums) const {
    return static_cast<double>(sums[1]) / static_cast<double>(sums[0] + sums[1]);
  }

  // There is one sum for each class that occurs in the node, as small nodes have few of many
  // classes.
  class NodeEvaluator {
   public:
    explicit NodeEvaluator(const ClassTarget& target)
        : target_(target),
          logs_(target.response_.criterion == Criterion::entropy),
          lane_(target.n_classes_) {}
    void open(std::span<const Item> items, const NodeTotals::One& total) {
      items_ = items;
      open(total, std::ssize(items));
    }
    std::size_t n_sums() const { return total_.size(); }
    CERTREE_INLINE void add(const Item& item, Sum* sums) const {
      sums[lane_[item.y]] += item.weight;
    }
    bool is_empty(const Sum* sums) const {
      return std::all_of(sums, sums + n_sums(), [](Sum one) { return one == 0; });
    }
    double weight() const { return all_; }
    bool is_pure() const { return total_.size() == 1; }
    using Memory = SplitSums;
    template <class Allows>
    std::size_t best(const FewBins<ClassTarget>& bins, std::size_t n, bool missing_left,
                     const Allows& allows, Memory& own, double& most,
                     std::vector<std::int64_t>& left) {
      const std::size_t width = bins.n_bins, n_lanes = n_sums() + (bins.rows != nullptr);
      if (!missing_left) sum_up(bins, own.prefix);
      shift_.assign(n_lanes, 0);
      if (missing_left) {
        std::copy_n(bins.at(bins.n_bins), n_sums(), shift_.begin());
        if (bins.rows) shift_.back() = bins.rows[bins.n_bins];
      }
      const ClassSplits splits{own.prefix.data(), width,    shift_.data(),
                               total_.data(),     n_sums(), all_};
      double value = logs_ ? value_by_logs(splits, n, unsplit_, own.value.data())
                           : value_by_squares(splits, n, own.value.data());
      if (bins.rows)
        value = value_enough(own.prefix.data() + n_sums() * width, n, shift_.back(), n_rows_,
                             target_.limits_, own.value.data());
      return first_of_best<ClassTarget>(own, width, n, shift_, value, allows, most, left);
    }
    std::pair<double, bool> gain(double value, double least) const {
      const double gain = logs_ ? value : value / all_;
      return {gain, least == 0.0 || gain >= least};
    }

    std::size_t n_of_group() const { return 1 + n_sums(); }
    void describe(const FewBins<ClassTarget>& bins, std::size_t i, double* numbers) const {
      std::copy_n(bins.at(i), n_sums(), numbers + 1);
      numbers[0] = std::accumulate(numbers + 1, numbers + 1 + n_sums(), 0.0);
    }
    Scatter scatter() const {
      double scatter = 0.0;
      for (const double one : total_) scatter += one * (1.0 - one / all_);
      return {squared_weights(items_) / all_, scatter};
    }
    // Returns the probability of the second of two classes in each category; for more classes, the
    // projection of the class probabilities on their first principal component.
    std::vector<double> scores(const Groups& groups) const {
      return n_sums() > 2 ? principal_scores(groups) : group_means(groups, n_sums() - 1);
    }

   private:
    CERTREE_INLINE void open(const NodeTotals::One& total, std::int64_t n_rows) {
      n_rows_ = n_rows;
      total_.resize(total.sum.size());
      for (std::size_t l = 0; l < total_.size(); ++l) {
        lane_[static_cast<std::size_t>(total.lane[l])] = static_cast<std::uint32_t>(l);
        total_[l] = static_cast<double>(total.sum[l]);
      }
      all_ = std::accumulate(total_.begin(), total_.end(), 0.0);
      if (!logs_) return;
      unsplit_ = -x_log_x(all_);
      for (const double one : total_) unsplit_ += x_log_x(one);
    }
    void sum_up(const FewBins<ClassTarget>& bins, std::vector<std::int64_t>& prefix) const {
      const std::size_t width = bins.n_bins, n_lanes = n_sums() + (bins.rows != nullptr);
      if (prefix.size() < n_lanes * width) prefix.resize(n_lanes * width);
      for (std::size_t l = 0; l < n_sums(); ++l) {
        std::int64_t sum = 0;
        for (std::size_t b = 0; b < width; ++b)
          prefix[l * width + b] = sum += static_cast<std::int64_t>(bins.at(b)[l]);
      }
      if (bins.rows)
        std::partial_sum(bins.rows, bins.rows + width,
                         prefix.begin() + static_cast<std::ptrdiff_t>(n_sums() * width));
    }

    const ClassTarget& target_;
    bool logs_;
    std::span<const Item> items_;
    std::int64_t n_rows_ = 0;
    std::vector<std::uint32_t> lane_;  // (n_classes,) number of the sum of each class that occurs
    std::vector<double> total_;        // (n_sums,) of the node
    double all_ = 0.0, unsplit_ = 0.0;
    std::vector<std::int64_t> shift_;  // sums of missing values, if they go left
  };

  void write(const NodeTotals::One& total, NodeSums& sums) const {
    for (std::size_t l = 0; l < total.sum.size(); ++l)
      sums.put(total.lane[l], total.sum[l], limits_.unit);
  }

 private:
  Response response_;
  RowLimits limits_;
  std::size_t n_classes_;
};

}  // namespace
}  // namespace certree
