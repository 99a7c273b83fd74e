// The best cut of a cell of a forest's tree, among those of few features that are drawn.
//
// Belongs to forest.cpp alone. Of equal cuts that of the feature that was drawn first is taken, of
// those by one feature one that sends missing values right, then the lowest: where the first column
// won, the trees of a forest would be more alike than they need to be.
#pragma once

#include <array>
#include <functional>

#include "grow/forest_draws.hpp"
#include "grow/forest_targets.hpp"

namespace certree {
namespace {

struct ForestCut {
  double value = -kInfinity;
  std::int32_t feature = -1;
  bool has_missing = false;
  bool missing_left = false;
  BinThreshold threshold{};
  bool is_set = false;
  std::array<std::uint8_t, 256> levels_left;  // of a set, by bin

  bool is_made() const { return feature >= 0; }
};

// The bins of a feature that rows of a cell lie in, ascending, missing values last, with their
// sums.
template <class Target>
struct OccupiedBins {
  using Sum = typename Target::Sum;

  std::size_t n_lanes = 1;
  std::size_t n = 0, n_values = 0;  // with and without missing values
  std::array<std::uint8_t, 257> bin{};
  std::array<std::int64_t, 257> rows{};  // if they are counted
  std::vector<Sum> sums;

  explicit OccupiedBins(const Target& target) : sums(257 * target.n_lanes()) {}

  bool has_missing() const { return n > n_values; }
  const Sum* at(std::size_t i) const { return sums.data() + i * (Target::kOneLane ? 1 : n_lanes); }
};

// The sums of the left side of a cut.
template <class Target>
class LeftSums {
 public:
  using Sum = typename Target::Sum;

  void clear(std::size_t n_lanes) {
    if constexpr (!Target::kOneLane) lanes_.resize(n_lanes);
    std::ranges::fill(lanes_, Sum{});
  }
  CERTREE_INLINE void add(const Sum* sums) {
    for (std::size_t l = 0; l < lanes_.size(); ++l) lanes_[l] += sums[l];
  }
  const Sum* data() const { return lanes_.data(); }

 private:
  std::conditional_t<Target::kOneLane, std::array<Sum, 1>, std::vector<Sum>> lanes_{};
};

// Sums by bin of some features at a time. All are empty between cells, so that small cells clear no
// more than they filled.
template <class Target>
class BinSums {
 public:
  using Sum = typename Target::Sum;
  using Item = typename Target::Item;
  using Lanes = typename Target::Lanes;

  BinSums(const Target& target, const Lanes& lanes, const ForestRows& rows, bool counts_rows)
      : lanes_(lanes),
        bins_(rows.bins),
        sums_(std::max(kCache, 256 * target.n_lanes())),
        rows_(counts_rows ? kMostTogether * 256 : 0) {}

  // So many features fit into the cache.
  std::size_t together() const {
    return std::clamp<std::size_t>(kCache / (256 * lanes_.n()), 1, kMostTogether);
  }

  // At most so many features as go together.
  void add_up(std::span<const Item> items, const Table<const std::uint8_t>& codes,
              std::span<const std::int32_t> features) {
    few_ = items.size() <= kFew;
    spend(items.size() * features.size());
    for (std::size_t first = 0; first < items.size(); first += kBlock) {
      const auto block = items.subspan(first, std::min(kBlock, items.size() - first));
      for (std::size_t f = 0; f < features.size(); ++f) {
        const std::uint8_t* const code = codes.data + features[f];
        few_ ? add_block<true>(block, code, codes.width, f)
             : add_block<false>(block, code, codes.width, f);
      }
    }
  }

  // Takes the sums of the f-th feature.
  void collect(std::size_t f, std::int32_t feature, OccupiedBins<Target>& to) {
    to.n = 0;
    to.n_lanes = lanes_.n();
    if (few_) {
      for (std::size_t word = 0; word < 4; ++word)
        for (std::uint64_t& bits = seen_[f][word]; bits != 0; bits &= bits - 1)
          take(f, 64 * word + static_cast<std::size_t>(std::countr_zero(bits)), to);
    } else {
      const auto n_bins = static_cast<std::size_t>(bins_.n_bins[static_cast<std::size_t>(feature)]);
      for (std::size_t bin = 0; bin < n_bins; ++bin) take_if_any(f, bin, to);
      take_if_any(f, kMissingBin, to);
    }
    to.n_values = to.n - (to.n > 0 && to.bin[to.n - 1] == kMissingBin ? 1 : 0);
  }

 private:
  static constexpr std::size_t kCache = (1 << 15) / sizeof(Sum), kMostTogether = 8;
  static constexpr std::size_t kBlock = 256, kFew = 160;

  Sum* sums_of(std::size_t f, std::size_t bin) {
    return sums_.data() + (256 * f + bin) * lanes_.n();
  }

  template <bool few>
  void add_block(std::span<const Item> items, const std::uint8_t* code, std::int64_t width,
                 std::size_t f) {
    Sum* const sums = sums_of(f, 0);
    std::uint64_t* const seen = seen_[f].data();
    for (const Item& item : items) {
      const std::size_t bin = code[item.row * width];
      lanes_.add(item, sums + bin * lanes_.n());
      if constexpr (few) seen[bin / 64] |= std::uint64_t{1} << bin % 64;
    }
    if (rows_.empty()) return;
    for (const Item& item : items) ++rows_[256 * f + code[item.row * width]];
  }

  void take(std::size_t f, std::size_t bin, OccupiedBins<Target>& to) {
    Sum* const from = sums_of(f, bin);
    Sum* const sums = to.sums.data() + to.n * lanes_.n();
    for (std::size_t l = 0; l < lanes_.n(); ++l) sums[l] = std::exchange(from[l], Sum{});
    if (!rows_.empty()) to.rows[to.n] = std::exchange(rows_[256 * f + bin], 0);
    to.bin[to.n++] = static_cast<std::uint8_t>(bin);
  }
  // No branch: whether a bin is empty would be guessed wrong too often.
  void take_if_any(std::size_t f, std::size_t bin, OccupiedBins<Target>& to) {
    const bool is_empty = lanes_.is_empty(sums_of(f, bin));
    take(f, bin, to);
    to.n -= is_empty ? 1 : 0;
  }

  const Lanes& lanes_;
  const KeptBins& bins_;
  std::vector<Sum> sums_;                                           // (together, 256, lanes)
  std::array<std::array<std::uint64_t, 4>, kMostTogether> seen_{};  // bins, in small cells
  std::vector<std::int64_t> rows_;                                  // (together, 256) or empty
  bool few_ = false;
};

template <class Target>
class ForestSearch {
 public:
  using Item = typename Target::Item;
  using Sum = typename Target::Sum;
  using Worth = typename Target::Worth;

  ForestSearch(const Target& target, const ForestRows& rows, const ForestGrowth& growth,
               std::uint64_t key)
      : target_(target),
        bins_(rows.bins),
        growth_(growth),
        draws_(features_of_tree(rows.codes.width, growth.max_features_of_tree, key)),
        lanes_(target),
        sums_(target, lanes_, rows, growth.min_rows > 1),
        occupied_(target),
        ordered_(target),
        worth_(target) {}

  // A cut, which may not be made; it serves until the next search. items: those of a cell; total:
  // their sums.
  ForestCut& best(std::span<const Item> items, const Table<const std::uint8_t>& codes,
                  const Sum* total, std::uint64_t key) {
    items_ = items;
    total_ = total;
    key_ = key;
    cut_.value = -kInfinity;
    cut_.feature = -1;
    lanes_.open(total);
    worth_.open(lanes_);
    draws_.restart(key);
    for (std::int64_t left = growth_.max_features; left > 0 && draws_.n_left() > 0;) {
      const std::size_t n =
          std::min({static_cast<std::size_t>(left), sums_.together(), draws_.n_left()});
      drawn_.resize(n);
      for (std::int32_t& feature : drawn_) feature = draws_.next();
      sums_.add_up(items, codes, drawn_);
      for (std::size_t f = 0; f < n; ++f) left -= look(f, drawn_[f]) ? 1 : 0;
    }
    return cut_;
  }

  double decrease(const ForestCut& cut) const { return worth_.decrease(cut.value); }

  // Where rows go by the code of the cut's feature. The threshold is that of the tree.
  void settle(ForestCut& cut, std::array<std::uint8_t, 256>& goes_left) const {
    if (cut.is_set) {
      goes_left = cut.levels_left;
      return;
    }
    if (!growth_.random_cuts)
      cut.threshold = threshold_behind(bins_, cut.feature, cut.threshold.bin, next_);
    goes_left.fill(0);
    std::fill_n(goes_left.begin(), cut.threshold.bin + 1, std::uint8_t{1});
    goes_left[kMissingBin] = cut.missing_left;
  }

 private:
  // Whether the feature varies.
  bool look(std::size_t f, std::int32_t feature) {
    sums_.collect(f, feature, occupied_);
    if (occupied_.n < 2) return false;
    const bool is_set = bins_.category[static_cast<std::size_t>(feature)] != 0;
    if (growth_.random_cuts && is_set)
      draw_set(feature);
    else if (growth_.random_cuts)
      draw_threshold(feature);
    else if (is_set)
      look_at_sets(feature);
    else
      look_at_thresholds(feature);
    return true;
  }

  // -- sums of the left side

  void start_left() {
    left_.clear(lanes_.n());
    rows_left_ = 0;
  }
  void add_left(const OccupiedBins<Target>& bins, std::size_t i) {
    left_.add(bins.at(i));
    if (growth_.min_rows > 1) rows_left_ += bins.rows[i];
  }
  // Whether the cut that has what was added on its left is the best so far.
  bool challenge() {
    const double value = worth_(left_.data());
    if (!(value > cut_.value) || !has_enough(rows_left_)) return false;
    cut_.value = value;
    return true;
  }
  bool has_enough(std::int64_t rows_left) const {
    return growth_.min_rows <= 1 ||
           std::min(rows_left, std::ssize(items_) - rows_left) >= growth_.min_rows;
  }
  void take(std::int32_t feature, bool is_set, bool missing_left) {
    cut_.feature = feature;
    cut_.is_set = is_set;
    cut_.has_missing = occupied_.has_missing();
    cut_.missing_left = missing_left;
  }

  // -- all cuts

  // Behind each of some bins. The place of the best cut that beats all so far; n: none does.
  std::size_t sweep(const OccupiedBins<Target>& bins, std::size_t n) {
    // What is small is kept at hand.
    std::conditional_t<Target::kOneLane, LeftSums<Target>, LeftSums<Target>&> left = left_;
    std::conditional_t<Target::kOneLane, const Worth, const Worth&> worth = worth_;
    std::int64_t rows_left = rows_left_;
    double most = cut_.value;
    std::size_t best = n;
    for (std::size_t i = 0; i < n; ++i) {
      left.add(bins.at(i));
      rows_left += bins.rows[i];
      const double value = worth(left.data());
      if (!(value > most) || !has_enough(rows_left)) continue;
      most = value;
      best = i;
    }
    cut_.value = most;
    return best;
  }

  void look_at_thresholds(std::int32_t feature) {
    const std::size_t n = occupied_.n_values;
    const auto sweep_by = [&](std::size_t n_cuts, bool missing_left) {
      const std::size_t i = sweep(occupied_, n_cuts);
      if (i == n_cuts) return;
      take(feature, false, missing_left);
      cut_.threshold = {0.0, occupied_.bin[i]};
      next_ = i + 1 < n ? occupied_.bin[i + 1] : 0;
    };
    start_left();
    sweep_by(occupied_.n - 1, false);
    if (!occupied_.has_missing()) return;
    start_left();
    add_left(occupied_, n);
    sweep_by(n - 1, true);
  }

  void look_at_sets(std::int32_t feature) {
    if (!order_levels()) return;
    start_left();
    const std::size_t i = sweep(ordered_, ordered_.n - 1);
    if (i == ordered_.n - 1) return;
    cut_.levels_left.fill(0);
    for (std::size_t g = 0; g <= i; ++g) cut_.levels_left[ordered_.bin[g]] = 1;
    take(feature, true, cut_.levels_left[kMissingBin] != 0);
  }

  // The levels of the cell by their responses, ties by bin; false if these differ by no more than
  // chance explains.
  bool order_levels() {
    Groups groups(1 + lanes_.n());
    std::vector<double> numbers(groups.width());
    for (std::size_t i = 0; i < occupied_.n; ++i) {
      lanes_.describe(occupied_.at(i), numbers.data());
      groups.add(static_cast<std::uint32_t>(i), numbers.data());
    }
    if (groups.size() > kFreeCategories && !beyond_chance(groups, groups.total(), scatter()))
      return false;
    const std::vector<double> score = forest_scores(groups);
    if (!std::ranges::all_of(score, [](double one) { return std::isfinite(one); })) return false;
    std::vector<std::size_t> order(groups.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::stable_sort(order, std::less<>(), [&](std::size_t g) { return score[g]; });
    ordered_.n = order.size();
    ordered_.n_lanes = lanes_.n();
    for (std::size_t g = 0; g < order.size(); ++g) {
      ordered_.bin[g] = occupied_.bin[order[g]];
      ordered_.rows[g] = occupied_.rows[order[g]];
      std::copy_n(occupied_.at(order[g]), lanes_.n(), ordered_.sums.data() + g * lanes_.n());
    }
    return true;
  }

  Scatter scatter() const {
    double squares = 0.0;  // of weights
    for (const auto part : stretches(items_))
      for (const Item& item : part)
        squares += static_cast<double>(item.weight) * static_cast<double>(item.weight);
    return {squares / target_.weight(total_), target_.scatter(items_, total_)};
  }

  // -- one cut, drawn

  void challenge_by_missing(std::int32_t feature, bool is_set, const BinThreshold& threshold) {
    const auto challenge_with = [&](bool missing_left) {
      if (!challenge()) return;
      take(feature, is_set, missing_left);
      cut_.threshold = threshold;
      if (is_set) cut_.levels_left = levels_left_;
      cut_.levels_left[kMissingBin] = missing_left;
    };
    const bool splits_values = n_left_ < occupied_.n_values;
    if (splits_values || occupied_.has_missing()) challenge_with(false);
    if (!occupied_.has_missing() || !splits_values) return;
    add_left(occupied_, occupied_.n_values);
    challenge_with(true);
  }

  // A threshold between the smallest and the largest value of the cell, as far as bins tell. Where
  // it would cut a bin it is moved to one side of it.
  void draw_threshold(std::int32_t feature) {
    Random random(key_of(key_, static_cast<std::uint64_t>(feature)));
    const std::size_t n = occupied_.n_values;
    const BinThreshold threshold = n == 1 ? threshold_behind(bins_, feature, occupied_.bin[0], 0)
                                          : between_values(feature, random.uniform());
    start_left();
    for (n_left_ = 0; n_left_ < n && occupied_.bin[n_left_] <= threshold.bin; ++n_left_)
      add_left(occupied_, n_left_);
    challenge_by_missing(feature, false, threshold);
  }

  BinThreshold between_values(std::int32_t feature, double share) const {
    const double *const low = bins_.low.row(feature), *const high = bins_.high.row(feature);
    const std::size_t first = occupied_.bin[0], last = occupied_.bin[occupied_.n_values - 1];
    const double value = low[first] * (1.0 - share) + high[last] * share;
    auto bin = static_cast<std::size_t>(std::upper_bound(low + first + 1, low + last + 1, value) -
                                        low - 1);
    const bool is_cut = high[bin] > value;
    if (bin == last || (is_cut && bin > first && value < low[bin] * 0.5 + high[bin] * 0.5)) --bin;
    if (high[bin] <= value && value < low[bin + 1]) return {value, bin};
    return {between(high[bin], low[bin + 1]), bin};
  }

  // Every level to either side, until both have some.
  void draw_set(std::int32_t feature) {
    Random random(key_of(key_, static_cast<std::uint64_t>(feature)));
    const std::size_t n = occupied_.n_values;
    levels_left_.fill(0);
    do {
      n_left_ = 0;
      for (std::size_t i = 0; i < n; ++i) {
        const auto left = static_cast<std::uint8_t>(random.bits() >> 63);
        levels_left_[occupied_.bin[i]] = left;
        n_left_ += left;
      }
    } while (n_left_ == 0 || (n_left_ == n && n > 1));
    start_left();
    for (std::size_t i = 0; i < n; ++i)
      if (levels_left_[occupied_.bin[i]]) add_left(occupied_, i);
    challenge_by_missing(feature, true, {});
  }

  const Target& target_;
  const KeptBins& bins_;
  const ForestGrowth& growth_;
  FeatureDraws draws_;
  typename Target::Lanes lanes_;
  BinSums<Target> sums_;
  OccupiedBins<Target> occupied_, ordered_;
  LeftSums<Target> left_;
  std::int64_t rows_left_ = 0;
  Worth worth_;
  std::vector<std::int32_t> drawn_;
  std::array<std::uint8_t, 256> levels_left_{};
  std::size_t n_left_ = 0;
  // Of the cell that is searched.
  std::span<const Item> items_;
  const Sum* total_ = nullptr;
  std::uint64_t key_ = 0;
  ForestCut cut_;
  std::size_t next_ = 0;  // the bin behind the threshold of the best cut so far
};

}  // namespace
}  // namespace certree
