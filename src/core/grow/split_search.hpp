// The best split of a node by its sums, one feature at a time.
//
// Of equal splits that of the feature that was searched first is taken, of those by one
// feature one that sends missing values right, then the lowest. The categories of a node, a missing
// value among them, stand in the order of their responses, if they differ by more than chance
// explains; then they are split like numbers.
#pragma once

#include <array>
#include <bit>

#include "grow/binned_growth.hpp"
#include "grow/chance.hpp"
#include "grow/histogram_memory.hpp"
#include "grow/random.hpp"

namespace certree {
namespace {

// Bits of numbers that are not negative are in the order of these, and those of others below.
inline double largest_of_bits(std::int64_t bits) {
  return bits < 0 ? -kInfinity : std::bit_cast<double>(bits);
}

// The sums of a node by one feature: lanes with an entry for each of its bins, and one for missing
// values behind them. The last lane counts rows.
struct AllBins {
  const std::int64_t* lanes;  // (n_lanes, width)
  std::size_t n_lanes, width, n_bins;
  bool has_missing;

  const std::int64_t* rows() const { return lanes + (n_lanes - 1) * width; }
  bool is_constant(std::int64_t n_rows) const {
    const std::int64_t* const end = rows() + n_bins + 1;
    return std::find(rows(), end, n_rows) != end;
  }
  bool is_empty(std::size_t i) const { return rows()[i] == 0; }
  std::size_t bin(std::size_t i) const { return i; }
  std::int64_t sum(std::size_t lane, std::size_t i) const { return lanes[lane * width + i]; }
};

// The same by the bins alone that rows of the node have; an entry is one sum or more.
template <class Target>
struct FewBins {
  using Sum = typename Target::Sum;

  const Sum* sums;  // (n_bins + 1, n_sums)
  std::size_t n_sums, n_bins;
  const std::uint8_t* bins;  // (n_bins,) which these are, ascending
  const std::int64_t* rows;  // (n_bins + 1,) if they are counted beside
  bool has_missing;

  bool is_constant(std::int64_t) const { return n_bins + has_missing < 2; }
  static bool is_empty(std::size_t) { return false; }
  std::size_t bin(std::size_t i) const { return bins[i]; }
  const Sum* at(std::size_t i) const { return sums + i * n_sums; }
};

// The child that rows of a category go to; categories without rows in the node are unseen, and go
// to the child with the greater weight.
enum class Child : std::uint8_t { right, left, unseen };

// Growing rows, and what is known of their node.
struct BinnedNode {
  std::int64_t begin, end;
  std::int32_t depth, index;
  std::uint64_t key;             // of what is drawn
  std::size_t copy;              // of the codes that its rows mean
  std::int64_t n_elsewhere = 0;  // rows of other ranks

  // Number of rows of all ranks.
  std::int64_t size() const { return end - begin + n_elsewhere; }
};

// Bounds of the responses below a node.
struct Bounds {
  double lower = -kInfinity, upper = kInfinity;
};

// The best split of a node so far.
struct SplitInfo {
  double gain = 0.0;          // what decides which leaf is split next
  double value = -kInfinity;  // what decides between the splits of a node
  std::int32_t feature = -1;
  bool has_missing = false;  // whether rows of the node lack the value
  bool missing_left = false;
  bool is_drawn = false;            // whether the threshold is final
  BinThreshold threshold{};         // or the last occupied bin left
  std::size_t next = 0;             // the first occupied bin right; 0: none
  std::vector<Child> child_of_bin;  // of a categorical feature; or empty
  std::vector<std::int64_t> sums;   // of the left child
  // Where sums are kept.
  std::vector<std::int32_t> varying;                  // features that are not constant in the node
  HistogramPool::Place place = HistogramPool::kNone;  // of the node's
  std::int64_t squares = 0;                           // of the node

  bool is_made() const { return feature >= 0; }

  void restart() {
    value = -kInfinity;
    feature = -1;
  }
  // The better one of two searches of a node; what both found to vary and what is known of the node
  // stay. feature_order: of equal ones, that of the feature which comes first in it.
  void challenge(SplitInfo&& other, const FeatureOrder& feature_order) {
    varying.insert(varying.end(), other.varying.begin(), other.varying.end());
    const bool is_equal = is_made() && other.is_made() && other.value == value;
    if (!(other.value > value || (is_equal && feature_order.is_before(other.feature, feature))))
      return;
    std::swap(other.place, place);
    std::swap(other.varying, varying);
    other.squares = squares;
    *this = std::move(other);
  }
};

// What the split search knows of a node.
template <class Target>
struct SearchedNode {
  typename Target::NodeEvaluator& of;
  std::span<const std::int64_t> total;
  std::int64_t n_rows;
  Bounds bounds;
  std::uint64_t key;  // of what is drawn
};

// All splits are allowed.
struct AllSplits {
  bool operator()(const std::int64_t*) const { return true; }
};

// Sums up to each of some splits, (lanes, width), and their values.
struct SplitSums {
  std::vector<std::int64_t> prefix;
  std::array<double, 257> value;
};

// The first of the best of n splits that beat `most`, which becomes its value, and are allowed by
// the sums on their left, which are written to `left`; n: none does. most_of_all: the largest
// value; shift: is added to sums, of missing values: without others, where the last lane counts
// rows, they do not go left, as that they go right has been tried.
template <class Target, class Allows>
std::size_t first_of_best(const SplitSums& splits, std::size_t width, std::size_t n,
                          std::span<const std::int64_t> shift, double most_of_all,
                          const Allows& allows, double& most, std::vector<std::int64_t>& left) {
  if (!(most_of_all > most)) return n;
  const auto sum_left = [&](std::size_t at) {
    left.resize(shift.size());
    for (std::size_t l = 0; l < shift.size(); ++l)
      left[l] = splits.prefix[l * width + at] + shift[l];
  };
  std::size_t best = n;
  if constexpr (std::is_same_v<Allows, AllSplits>) {
    best = static_cast<std::size_t>(
        std::find(splits.value.data(), splits.value.data() + n, most_of_all) - splits.value.data());
    most = most_of_all;
  } else {
    std::vector<std::int64_t> own(shift.size());
    for (std::size_t b = 0; b < n; ++b) {
      if (!(splits.value[b] > most)) continue;
      if (Target::kKeeps && splits.prefix[(shift.size() - 1) * width + b] == 0) continue;
      for (std::size_t l = 0; l < own.size(); ++l) own[l] = splits.prefix[l * width + b] + shift[l];
      if (!allows(own.data())) continue;
      most = splits.value[b];
      best = b;
    }
  }
  if (best < n) sum_left(best);
  return best;
}

template <class Target>
class SplitSearch {
 public:
  using Node = SearchedNode<Target>;

  struct Memory {
    typename Target::NodeEvaluator::Memory evaluator;
    Groups groups{0};                 // categories
    std::vector<double> numbers;      // that describe one
    std::vector<std::size_t> place;   // of each in their order
    std::vector<std::size_t> order;   // where among bins they stand
    std::vector<Child> child_of_bin;  // that are drawn
    std::vector<std::int64_t> lanes;  // of bins in another order
    std::vector<typename Target::Sum> sums;
    std::vector<std::int64_t> rows;
  };

  SplitSearch(const Target& target, const KeptBins& bins, const BinnedGrowth& growth)
      : target_(target), bins_(bins), growth_(growth) {}

  // Challenges the best split so far by those of a feature; false if it is constant in the node.
  template <class Bins>
  bool search_splits(const Node& node, std::int32_t feature, const Bins& bins, Memory& own,
                     SplitInfo& best) const {
    if (bins.is_constant(node.n_rows)) return false;
    const bool is_set = bins_.category[static_cast<std::size_t>(feature)] != 0;
    if constexpr (!Target::kKeeps) {
      if (growth_.random_splits) {
        is_set ? draw_set(node, feature, bins, own, best)
               : draw_threshold(node, feature, bins, own, best);
        return true;
      }
    }
    const double value = best.value;
    best.value = to_beat(feature, best);
    is_set ? search_sets(node, feature, bins, own, best)
           : search_thresholds(node, feature, bins, own, best);
    if (best.feature != feature) best.value = value;
    return true;
  }

  // What a split by a feature must be worth more than. Where sums are kept features come as they
  // stand: of equal splits, that by the feature which comes first in the order is made.
  double to_beat(std::int32_t feature, const SplitInfo& best) const {
    const bool is_first =
        Target::kKeeps && best.is_made() && growth_.feature_order.is_before(feature, best.feature);
    return is_first ? std::nextafter(best.value, -kInfinity) : best.value;
  }

  // Responses of the left and the right child of a split.
  std::pair<double, double> responses(std::span<const std::int64_t> total,
                                      const std::int64_t* left) const {
    std::vector<std::int64_t> right(total.begin(), total.end());
    for (std::size_t l = 0; l < right.size(); ++l) right[l] -= left[l];
    return {target_.response(left), target_.response(right.data())};
  }

  // The weight of rows by their sums.
  static std::int64_t weight(std::span<const std::int64_t> sums) { return Target::weight(sums); }

  // Whether the best split of a node is made: if it gains so much.
  bool settle(const typename Target::NodeEvaluator& of, double least, SplitInfo& best) const {
    if (!best.is_made()) return false;
    const auto [gain, is_enough] = of.gain(best.value, least);
    best.gain = growth_.order == Order::best ? gain : 0.0;
    if (!is_enough) best.feature = -1;
    return is_enough;
  }

 private:
  // Whether one of the splits behind the first n bins is better than the best so far; its place is
  // that of the threshold.
  template <class Bins>
  bool challenge(const Node& node, std::int32_t feature, const Bins& bins, std::size_t n,
                 bool missing_left, Memory& own, SplitInfo& best) const {
    const auto place_by = [&](const auto& allows) {
      return node.of.best(bins, n, missing_left, allows, own.evaluator, best.value, best.sums);
    };
    const std::size_t at =
        growth_.monotonic.empty()
            ? place_by(AllSplits())
            : place_by([&](const std::int64_t* left) { return is_allowed(node, feature, left); });
    if (at == n) return false;
    best.threshold.bin = at;
    best.feature = feature;
    best.has_missing = bins.has_missing;
    best.missing_left = missing_left;
    best.is_drawn = false;
    return true;
  }
  // Whether a split keeps to the monotonic constraints and to the bounds of the node.
  bool is_allowed(const Node& node, std::int32_t feature, const std::int64_t* sums) const {
    const auto [left, right] = responses(node.total, sums);
    return std::min(left, right) >= node.bounds.lower &&
           std::max(left, right) <= node.bounds.upper &&
           growth_.monotonic[static_cast<std::size_t>(feature)] * (right - left) >= 0.0;
  }

  // -- all splits

  template <class Bins>
  void search_thresholds(const Node& node, std::int32_t feature, const Bins& bins, Memory& own,
                         SplitInfo& best) const {
    const auto challenge_by = [&](std::size_t n_splits, bool missing_left) {
      if (!challenge(node, feature, bins, n_splits, missing_left, own, best)) return;
      std::size_t next = best.threshold.bin + 1;
      while (next < bins.n_bins && bins.is_empty(next)) ++next;
      best.next = next < bins.n_bins ? bins.bin(next) : 0;
      best.threshold.bin = bins.bin(best.threshold.bin);
      best.child_of_bin.clear();
    };
    // Behind the last bin missing values alone are right.
    challenge_by(bins.n_bins - !bins.has_missing, false);
    if (bins.has_missing) challenge_by(bins.n_bins - 1, true);
  }

  // Splits behind each of the categories in their order but the last.
  template <class Bins>
  void search_sets(const Node& node, std::int32_t feature, const Bins& bins, Memory& own,
                   SplitInfo& best) const {
    if (!order_categories(node, bins, own)) return;
    const std::size_t n_splits = own.order.size() - 1;
    if (!challenge(node, feature, in_order(bins, own), n_splits, false, own, best)) return;
    best.child_of_bin.assign(256, Child::unseen);
    for (std::size_t i = 0; i <= n_splits; ++i) {
      const std::size_t b = own.order[i], code = b < bins.n_bins ? bins.bin(b) : kMissingBin;
      best.child_of_bin[code] = i <= best.threshold.bin ? Child::left : Child::right;
    }
    best.has_missing = bins.has_missing;
    best.missing_left = best.child_of_bin[kMissingBin] == Child::left;
  }

  // The categories that rows of the node have, by their responses, ties by bin; false if these
  // differ by no more than chance explains.
  template <class Bins>
  bool order_categories(const Node& node, const Bins& bins, Memory& own) const {
    Groups& groups = own.groups;
    if (groups.width() != node.of.n_of_group()) groups = Groups(node.of.n_of_group());
    groups.clear();
    own.numbers.resize(node.of.n_of_group());
    for (std::size_t b = 0; b < bins.n_bins + bins.has_missing; ++b) {
      if (bins.is_empty(b)) continue;
      node.of.describe(bins, b, own.numbers.data());
      groups.add(static_cast<std::uint32_t>(b), own.numbers.data());
    }
    if (groups.size() > kFreeCategories &&
        !beyond_chance(groups, groups.total(), node.of.scatter()))
      return false;
    const std::vector<double> score = node.of.scores(groups);
    if (!std::ranges::all_of(score, [](double one) { return std::isfinite(one); })) return false;
    own.place.resize(groups.size());
    std::iota(own.place.begin(), own.place.end(), std::size_t{0});
    std::ranges::sort(own.place, [&](std::size_t a, std::size_t b) {
      return score[a] < score[b] || (score[a] == score[b] && a < b);
    });
    own.order.clear();
    for (const std::size_t g : own.place) own.order.push_back(groups.code(g));
    return true;
  }

  static AllBins in_order(const AllBins& bins, Memory& own) {
    const std::size_t n = own.order.size();
    own.lanes.resize(bins.n_lanes * n);
    for (std::size_t l = 0; l < bins.n_lanes; ++l)
      for (std::size_t i = 0; i < n; ++i) own.lanes[l * n + i] = bins.sum(l, own.order[i]);
    return {own.lanes.data(), bins.n_lanes, n, n - 1, false};
  }
  static FewBins<Target> in_order(const FewBins<Target>& bins, Memory& own) {
    own.sums.clear();
    own.rows.clear();
    for (const std::size_t i : own.order) {
      own.sums.insert(own.sums.end(), bins.at(i), bins.at(i) + bins.n_sums);
      if (bins.rows) own.rows.push_back(bins.rows[i]);
    }
    return {own.sums.data(),
            bins.n_sums,
            own.order.size() - 1,
            nullptr,
            bins.rows ? own.rows.data() : nullptr,
            false};
  }

  // -- one split, drawn

  // A threshold between the smallest and the largest value of the node, as far as bins tell. Where
  // it would lie inside a bin it is moved to one end of the bin.
  void draw_threshold(const Node& node, std::int32_t feature, const FewBins<Target>& bins,
                      Memory& own, SplitInfo& best) const {
    Random random(key_of(node.key, static_cast<std::uint64_t>(growth_.feature_order.of(feature))));
    const BinThreshold threshold = bins.n_bins == 1
                                       ? threshold_behind(bins_, feature, bins.bin(0), 0)
                                       : between_values(feature, bins, random.uniform());
    std::size_t n_left = 1;
    while (n_left < bins.n_bins && bins.bin(n_left) <= threshold.bin) ++n_left;
    start_merged(bins, own);
    for (std::size_t i = 0; i < n_left; ++i) add_to_merged(bins, i, 0, own);
    const auto take = [&](bool) {
      best.threshold = threshold;
      best.is_drawn = true;
      best.child_of_bin.clear();
    };
    challenge_drawn(node, feature, bins, n_left, own, best, take);
  }

  BinThreshold between_values(std::int32_t feature, const FewBins<Target>& bins,
                              double fraction) const {
    const double *const low = bins_.low_of(feature), *const high = bins_.high_of(feature);
    const std::size_t first = bins.bin(0), last = bins.bin(bins.n_bins - 1);
    const double value = low[first] * (1.0 - fraction) + high[last] * fraction;
    auto bin = static_cast<std::size_t>(std::upper_bound(low + first + 1, low + last + 1, value) -
                                        low - 1);
    const bool is_inside = high[bin] > value;
    if (bin == last || (is_inside && bin > first && value < low[bin] * 0.5 + high[bin] * 0.5))
      --bin;
    const bool is_in_gap = high[bin] <= value && value < low[bin + 1];
    const double wanted = is_in_gap ? value : between(high[bin], low[bin + 1]);
    return {threshold_near(wanted, high[bin], low[bin + 1]), bin};
  }

  // Assigns every category to either child, until both have some.
  void draw_set(const Node& node, std::int32_t feature, const FewBins<Target>& bins, Memory& own,
                SplitInfo& best) const {
    Random random(key_of(node.key, static_cast<std::uint64_t>(growth_.feature_order.of(feature))));
    const std::size_t n = bins.n_bins;
    std::size_t n_left = 0;
    own.child_of_bin.assign(256, Child::unseen);
    do {
      n_left = 0;
      for (std::size_t i = 0; i < n; ++i) {
        const std::size_t left = random.bits() >> 63;
        own.child_of_bin[bins.bin(i)] = left ? Child::left : Child::right;
        n_left += left;
      }
    } while (n_left == 0 || (n_left == n && n > 1));
    start_merged(bins, own);
    for (std::size_t i = 0; i < n; ++i)
      if (own.child_of_bin[bins.bin(i)] == Child::left) add_to_merged(bins, i, 0, own);
    const auto take = [&](bool missing_left) {
      best.child_of_bin = own.child_of_bin;
      if (bins.has_missing)
        best.child_of_bin[kMissingBin] = missing_left ? Child::left : Child::right;
    };
    challenge_drawn(node, feature, bins, n_left, own, best, take);
  }

  // Starts the sums of all bins that go left as one bin, and of missing values as another.
  static void start_merged(const FewBins<Target>& bins, Memory& own) {
    own.sums.assign(2 * bins.n_sums, {});
    if (bins.rows) own.rows.assign(2, 0);
    if (bins.has_missing) add_to_merged(bins, bins.n_bins, 1, own);
  }
  static void add_to_merged(const FewBins<Target>& bins, std::size_t i, std::size_t to,
                            Memory& own) {
    for (std::size_t l = 0; l < bins.n_sums; ++l) own.sums[to * bins.n_sums + l] += bins.at(i)[l];
    if (bins.rows) own.rows[to] += bins.rows[i];
  }

  // Missing values go to either child, unless only they go right.
  template <class Take>
  void challenge_drawn(const Node& node, std::int32_t feature, const FewBins<Target>& bins,
                       std::size_t n_left, Memory& own, SplitInfo& best, const Take& take) const {
    const FewBins<Target> merged{
        own.sums.data(), bins.n_sums, 1, nullptr, bins.rows ? own.rows.data() : nullptr,
        bins.has_missing};
    const auto challenge_by = [&](bool missing_left) {
      if (challenge(node, feature, merged, 1, missing_left, own, best)) take(missing_left);
    };
    const bool splits_values = n_left < bins.n_bins;
    if (splits_values || bins.has_missing) challenge_by(false);
    if (bins.has_missing && splits_values) challenge_by(true);
  }

  const Target& target_;
  const KeptBins& bins_;
  const BinnedGrowth& growth_;
};

}  // namespace
}  // namespace certree
