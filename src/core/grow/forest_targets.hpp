// What the rows of a forest's tree are added up to, and what cuts are worth by it.
//
// Belongs to forest.cpp alone. A target has an Item for each row, which knows its row; a Sum;
// Lanes, so many sums of which are kept for each bin in a cell; and a Worth, which tells what is
// gained by sums on the left side of a cut of a cell. Sums are whole. A gain is the decrease of
// impurity times the weight of the cell, up to a factor that is the same for all cuts of a cell.
#pragma once

#include "grow/chance.hpp"
#include "grow/forest.hpp"
#include "grow/whole_numbers.hpp"

namespace certree {
namespace {

// Where levels stand among others: the mean of numbers, the share of the last of two classes; of
// more classes, shares along their first principal component.
inline std::vector<double> forest_scores(const Groups& groups) {
  if (groups.width() > 3) return principal_scores(groups);
  std::vector<double> score(groups.size());
  for (std::size_t g = 0; g < score.size(); ++g) score[g] = groups.share(g, groups.width() - 2);
  return score;
}

// -- a weight and a sum: two classes by Gini's index, and numbers

struct SmallPair {
  std::uint64_t bits = 0;
  std::int64_t weight() const { return static_cast<std::int64_t>(bits & 0xFFFFFFFFu); }
  std::int64_t sum() const { return static_cast<std::int64_t>(bits >> 32); }
  void operator+=(SmallPair other) { bits += other.bits; }
  bool is_empty() const { return bits == 0; }
};

struct WidePair {
  std::int64_t weights = 0, sums = 0;
  std::int64_t weight() const { return weights; }
  std::int64_t sum() const { return sums; }
  void operator+=(WidePair other) {
    weights += other.weights;
    sums += other.sums;
  }
  bool is_empty() const { return weights == 0; }
};

// Draws of one row, and the same for those of class 1.
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

// Whole numbers of rows; of two classes these themselves.
struct PairResponse {
  bool classes;
  std::span<const std::int64_t> whole;  // (n,)
  std::int64_t bits = 1;                // what is enough for one
  int unit = 0;                         // exponent of the power of two that they count
};

template <class ItemType>
class PairTarget {
 public:
  using Item = ItemType;
  using Sum = typename Item::Sum;
  using Response = PairResponse;
  static constexpr bool kOneLane = true;

  explicit PairTarget(const Response& response) : response_(response) {}

  static constexpr std::size_t n_lanes() { return 1; }
  Item item(std::size_t row, std::int64_t weight) const {
    return Item(static_cast<std::uint32_t>(row), weight, response_.whole[row]);
  }
  static void add(const Item& item, Sum* sum) { *sum += item.pair(); }

  class Lanes {
   public:
    explicit Lanes(const PairTarget&) {}
    void open(const Sum* total) { total_ = *total; }
    static constexpr std::size_t n() { return 1; }
    const Sum* total() const { return &total_; }
    static CERTREE_INLINE void add(const Item& item, Sum* sum) { *sum += item.pair(); }
    static bool is_empty(const Sum* sum) { return sum->is_empty(); }
    static void describe(const Sum* sum, double* numbers) {
      numbers[0] = static_cast<double>(sum->weight());
      numbers[1] = static_cast<double>(sum->sum());
    }

   private:
    Sum total_{};
  };

  bool is_pure(std::span<const Item> items, const Sum* total) const {
    if (response_.classes) return total->sum() == 0 || total->sum() == total->weight();
    const auto value = [](const Item& item) {
      return static_cast<std::int64_t>(item.sum) / static_cast<std::int64_t>(item.weight);
    };
    const std::int64_t first = value(items.front());
    return all_of(items, [&](const Item& item) { return value(item) == first; });
  }

  class Worth {
   public:
    explicit Worth(const PairTarget& target) : factor_(target.response_.classes ? 2.0 : 1.0) {}
    // Numbers count from the cell's mean, rounded, so that little cancels.
    void open(const Lanes& lanes) {
      const Sum* const total = lanes.total();
      weight_ = total->weight();
      centre_ = total->sum() / weight_;
      all_ = static_cast<double>(weight_);
      rest_ = static_cast<double>(total->sum() - weight_ * centre_);
    }
    CERTREE_INLINE double operator()(const Sum* left) const {
      const std::int64_t weight = left->weight(), right = weight_ - weight;
      const auto sum = static_cast<double>(left->sum() - weight * centre_);
      const auto w = static_cast<double>(weight);
      const double beyond = sum * all_ - rest_ * w;
      return beyond * beyond / (w * static_cast<double>(right));
    }
    double decrease(double value) const { return factor_ * value / all_; }

   private:
    std::int64_t weight_ = 0, centre_ = 0;
    double factor_, all_ = 0.0, rest_ = 0.0;
  };

  double unit_of_decrease() const { return std::ldexp(1.0, 2 * response_.unit); }
  double weight(const Sum* total) const { return static_cast<double>(total->weight()); }

  // Squares of numbers are rounded to units that keep their sum below 2^62.
  double scatter(std::span<const Item> items, const Sum* total) const {
    const auto all = weight(total), sum = static_cast<double>(total->sum());
    if (response_.classes) return sum * (1.0 - sum / all);
    const std::int64_t centre = total->sum() / total->weight();
    const int shift = static_cast<int>(response_.bits) + 4;
    std::int64_t squares = 0;
    for (const auto part : stretches(items))
      for (const Item& item : part) {
        const auto w = static_cast<std::int64_t>(item.weight);
        const auto beyond = static_cast<double>(static_cast<std::int64_t>(item.sum) / w - centre);
        squares += w * static_cast<std::int64_t>(std::ldexp(beyond * beyond, -shift));
      }
    const auto rest = static_cast<double>(total->sum() - total->weight() * centre);
    return std::max(std::ldexp(static_cast<double>(squares), shift) - rest * rest / all, 0.0);
  }

  void write(const Sum* total, NodeSums& sums) const {
    const auto put = [&](std::int32_t lane, double number) {
      sums.lane.push_back(lane);
      sums.sum.push_back(number);
    };
    const std::int64_t one = total->sum(), zero = total->weight() - one;
    if (!response_.classes) {
      put(0, weight(total));
      put(1, std::ldexp(static_cast<double>(one), response_.unit));
      return;
    }
    if (zero > 0) put(0, static_cast<double>(zero));
    if (one > 0) put(1, static_cast<double>(one));
  }

 private:
  Response response_;
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

template <class ItemType>
class ClassTarget {
 public:
  using Item = ItemType;
  using Sum = typename Item::Sum;
  using Response = ForestClasses;
  static constexpr bool kOneLane = false;

  explicit ClassTarget(const Response& response)
      : response_(response), n_classes_(static_cast<std::size_t>(response.n_classes)) {}

  std::size_t n_lanes() const { return n_classes_; }
  Item item(std::size_t row, std::int64_t weight) const {
    Item item{};
    item.row = static_cast<std::uint32_t>(row);
    item.weight = static_cast<decltype(item.weight)>(weight);
    item.y = static_cast<decltype(item.y)>(response_.y[row]);
    return item;
  }
  static void add(const Item& item, Sum* sums) { sums[item.y] += item.weight; }

  // One for each class that rows of the cell have: small cells have few of many.
  class Lanes {
   public:
    explicit Lanes(const ClassTarget& target) : lane_(target.n_classes_) {}
    void open(const Sum* total) {
      total_.clear();
      for (std::size_t k = 0; k < lane_.size(); ++k) {
        lane_[k] = static_cast<std::uint32_t>(total_.size());
        if (total[k] > 0) total_.push_back(total[k]);
      }
    }
    std::size_t n() const { return total_.size(); }
    const Sum* total() const { return total_.data(); }
    CERTREE_INLINE void add(const Item& item, Sum* sums) const {
      sums[lane_[item.y]] += item.weight;
    }
    bool is_empty(const Sum* sums) const {
      return std::all_of(sums, sums + n(), [](Sum one) { return one == 0; });
    }
    void describe(const Sum* sums, double* numbers) const {
      std::copy_n(sums, n(), numbers + 1);
      numbers[0] = std::accumulate(numbers + 1, numbers + 1 + n(), 0.0);
    }

   private:
    std::vector<std::uint32_t> lane_;  // (n_classes,)
    std::vector<Sum> total_;           // (n,)
  };

  bool is_pure(std::span<const Item> items, const Sum* total) const {
    return static_cast<double>(total[items.front().y]) == weight(total);
  }

  class Worth {
   public:
    explicit Worth(const ClassTarget& target)
        : logs_(target.response_.criterion == Criterion::entropy) {}
    void open(const Lanes& lanes) {
      total_.assign(lanes.total(), lanes.total() + lanes.n());
      all_ = std::accumulate(total_.begin(), total_.end(), 0.0);
      if (!logs_) return;
      uncut_ = -times_log(all_);
      for (const double one : total_) uncut_ += times_log(one);
    }
    CERTREE_INLINE double operator()(const Sum* left) const {
      double weight = 0.0;
      for (std::size_t k = 0; k < total_.size(); ++k) weight += static_cast<double>(left[k]);
      return logs_ ? by_logs(left, weight) : by_squares(left, weight);
    }
    double decrease(double value) const { return logs_ ? value : value / all_; }

   private:
    double by_squares(const Sum* left, double weight) const {
      double squares = 0.0;
      for (std::size_t k = 0; k < total_.size(); ++k) {
        const double beyond = static_cast<double>(left[k]) * all_ - total_[k] * weight;
        squares += beyond * beyond;
      }
      return squares / (weight * (all_ - weight));
    }
    double by_logs(const Sum* left, double weight) const {
      double logs = -times_log(weight) - times_log(all_ - weight);
      for (std::size_t k = 0; k < total_.size(); ++k) {
        const auto one = static_cast<double>(left[k]);
        logs += times_log(one) + times_log(total_[k] - one);
      }
      return logs - uncut_;
    }

    bool logs_;
    std::vector<double> total_;
    double all_ = 0.0, uncut_ = 0.0;
  };

  static double unit_of_decrease() { return 1.0; }
  double weight(const Sum* total) const {
    double sum = 0.0;
    for (std::size_t k = 0; k < n_classes_; ++k) sum += static_cast<double>(total[k]);
    return sum;
  }

  double scatter(std::span<const Item>, const Sum* total) const {
    double scatter = 0.0;
    const double all = weight(total);
    for (std::size_t k = 0; k < n_classes_; ++k)
      scatter += static_cast<double>(total[k]) * (1.0 - static_cast<double>(total[k]) / all);
    return scatter;
  }

  void write(const Sum* total, NodeSums& sums) const {
    for (std::size_t k = 0; k < n_classes_; ++k) {
      if (total[k] == 0) continue;
      sums.lane.push_back(static_cast<std::int32_t>(k));
      sums.sum.push_back(static_cast<double>(total[k]));
    }
  }

 private:
  Response response_;
  std::size_t n_classes_;
};

}  // namespace
}  // namespace certree
