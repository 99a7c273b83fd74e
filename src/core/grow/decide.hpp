// Deciding by sums: the best cut of a cell, a feature at a time.
//
// Of equal cuts that of the feature that was looked at first is taken, of those by one feature one
// that sends missing values right, then the lowest. The categories of a cell, a missing value among
// them, stand in the order of their responses, if they differ by more than chance explains; then
// they are cut like numbers.
#pragma once

#include <array>
#include <bit>

#include "grow/binned_growth.hpp"
#include "grow/chance.hpp"
#include "grow/random.hpp"
#include "grow/sums.hpp"

namespace certree {
namespace {

// Bits of numbers that are not negative are in the order of these, and those of others below.
inline double largest_of_bits(std::int64_t bits) {
  return bits < 0 ? -kInfinity : std::bit_cast<double>(bits);
}

// The sums of a cell by one feature: lanes with an entry for each of its bins, and one for missing
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

// The same by the bins alone that rows of the cell have; an entry is one sum or more.
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

// Where rows of a category go; those that no row of the cell has go where missing values go.
enum class Side : std::uint8_t { right, left, unseen };

// Growing rows, and what is known of their cell.
struct BinnedCell {
  std::int64_t begin, end;
  std::int32_t depth, node;
  std::uint64_t key;  // of what is drawn
  std::size_t copy;   // of the codes that its rows mean

  std::int64_t size() const { return end - begin; }
};

// Of the responses below a cell.
struct Bounds {
  double lower = -kInfinity, upper = kInfinity;
};

struct Cut {
  double gain = 0.0;          // what decides which leaf is divided next
  double value = -kInfinity;  // what decides between the cuts of a cell
  std::int32_t feature = -1;
  bool has_missing = false;  // whether rows of the cell lack the value
  bool missing_left = false;
  bool is_drawn = false;           // whether the threshold is as it shall be
  BinThreshold threshold{};        // or the last occupied bin left
  std::size_t next = 0;            // the first occupied bin right; 0: none
  std::vector<Side> sides;         // of the categories by code; or empty
  std::vector<std::int64_t> sums;  // of the left side
  // Where sums are kept.
  std::vector<std::int32_t> varying;        // features that are not constant in the cell
  SumsPool::Place place = SumsPool::kNone;  // of the cell's
  std::int64_t squares = 0;                 // of the cell

  bool is_made() const { return feature >= 0; }

  void restart() {
    value = -kInfinity;
    feature = -1;
  }
  // The better one of two searches of a cell; what both found to vary and what is known of the cell
  // stay. feature_order: of equal ones, that of the feature which comes first in it.
  void challenge(Cut&& other, const FeatureOrder& feature_order) {
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

// What the decider knows of a cell.
template <class Target>
struct Undecided {
  typename Target::OfCell& of;
  std::span<const std::int64_t> total;
  std::int64_t n_rows;
  Bounds bounds;
  std::uint64_t key;  // of what is drawn
};

// All cuts are allowed.
struct AllCuts {
  bool operator()(const std::int64_t*) const { return true; }
};

// Sums up to each of some cuts, (lanes, width), and their values.
struct CutSums {
  std::vector<std::int64_t> prefix;
  std::array<double, 257> value;
};

// The first of the best of n cuts that beat `most`, which becomes its value, and are allowed by the
// sums on their left, which it tells; n: none does. most_of_all: the largest value; shift: is added
// to sums, of missing values: without others, where the last lane counts rows, they do not go left,
// as that they go right has been tried.
template <class Target, class Allows>
std::size_t first_of_best(const CutSums& cuts, std::size_t width, std::size_t n,
                          std::span<const std::int64_t> shift, double most_of_all,
                          const Allows& allows, double& most, std::vector<std::int64_t>& left) {
  if (!(most_of_all > most)) return n;
  const auto sum_left = [&](std::size_t at) {
    left.resize(shift.size());
    for (std::size_t l = 0; l < shift.size(); ++l) left[l] = cuts.prefix[l * width + at] + shift[l];
  };
  std::size_t best = n;
  if constexpr (std::is_same_v<Allows, AllCuts>) {
    best = static_cast<std::size_t>(
        std::find(cuts.value.data(), cuts.value.data() + n, most_of_all) - cuts.value.data());
    most = most_of_all;
  } else {
    std::vector<std::int64_t> own(shift.size());
    for (std::size_t b = 0; b < n; ++b) {
      if (!(cuts.value[b] > most)) continue;
      if (Target::kKeeps && cuts.prefix[(shift.size() - 1) * width + b] == 0) continue;
      for (std::size_t l = 0; l < own.size(); ++l) own[l] = cuts.prefix[l * width + b] + shift[l];
      if (!allows(own.data())) continue;
      most = cuts.value[b];
      best = b;
    }
  }
  if (best < n) sum_left(best);
  return best;
}

template <class Target>
class Decider {
 public:
  using Cell = Undecided<Target>;

  struct Memory {
    typename Target::OfCell::Memory of_cell;
    Groups groups{0};                 // categories
    std::vector<double> numbers;      // that describe one
    std::vector<std::size_t> place;   // of each in their order
    std::vector<std::size_t> order;   // where among bins they stand
    std::vector<Side> sides;          // that are drawn
    std::vector<std::int64_t> lanes;  // of bins in another order
    std::vector<typename Target::Sum> sums;
    std::vector<std::int64_t> rows;
  };

  Decider(const Target& target, const KeptBins& bins, const BinnedGrowth& growth)
      : target_(target), bins_(bins), growth_(growth) {}

  // Challenges the best cut so far by those of a feature; false if it is constant in the cell.
  template <class Bins>
  bool search_splits(const Cell& cell, std::int32_t feature, const Bins& bins, Memory& own,
                     Cut& best) const {
    if (bins.is_constant(cell.n_rows)) return false;
    const bool is_set = bins_.category[static_cast<std::size_t>(feature)] != 0;
    if constexpr (!Target::kKeeps) {
      if (growth_.random_cuts) {
        is_set ? draw_set(cell, feature, bins, own, best)
               : draw_threshold(cell, feature, bins, own, best);
        return true;
      }
    }
    const double value = best.value;
    best.value = to_beat(feature, best);
    is_set ? look_at_sets(cell, feature, bins, own, best)
           : look_at_thresholds(cell, feature, bins, own, best);
    if (best.feature != feature) best.value = value;
    return true;
  }

  // What a cut by a feature must be worth more than. Where sums are kept features come as they
  // stand: of equal cuts, that by the feature which is to be looked at first is made.
  double to_beat(std::int32_t feature, const Cut& best) const {
    const bool is_first =
        Target::kKeeps && best.is_made() && growth_.feature_order.is_before(feature, best.feature);
    return is_first ? std::nextafter(best.value, -kInfinity) : best.value;
  }

  // Of the left and the right side of a cut.
  std::pair<double, double> responses(std::span<const std::int64_t> total,
                                      const std::int64_t* left) const {
    std::vector<std::int64_t> right(total.begin(), total.end());
    for (std::size_t l = 0; l < right.size(); ++l) right[l] -= left[l];
    return {target_.response(left), target_.response(right.data())};
  }

  // Whether the best cut of a cell is made: if it gains so much.
  bool settle(const typename Target::OfCell& of, double least, Cut& best) const {
    if (!best.is_made()) return false;
    const auto [gain, is_enough] = of.gain(best.value, least);
    best.gain = growth_.order == Order::best ? gain : 0.0;
    if (!is_enough) best.feature = -1;
    return is_enough;
  }

 private:
  // Whether one of the cuts behind the first n bins is better than the best so far; its place is
  // that of the threshold.
  template <class Bins>
  bool challenge(const Cell& cell, std::int32_t feature, const Bins& bins, std::size_t n,
                 bool missing_left, Memory& own, Cut& best) const {
    const auto place_by = [&](const auto& allows) {
      return cell.of.best(bins, n, missing_left, allows, own.of_cell, best.value, best.sums);
    };
    const std::size_t at =
        growth_.monotonic.empty()
            ? place_by(AllCuts())
            : place_by([&](const std::int64_t* left) { return is_allowed(cell, feature, left); });
    if (at == n) return false;
    best.threshold.bin = at;
    best.feature = feature;
    best.has_missing = bins.has_missing;
    best.missing_left = missing_left;
    best.is_drawn = false;
    return true;
  }
  // Whether a cut keeps to the monotonic constraints and to the bounds of the cell.
  bool is_allowed(const Cell& cell, std::int32_t feature, const std::int64_t* sums) const {
    const auto [left, right] = responses(cell.total, sums);
    return std::min(left, right) >= cell.bounds.lower &&
           std::max(left, right) <= cell.bounds.upper &&
           growth_.monotonic[static_cast<std::size_t>(feature)] * (right - left) >= 0.0;
  }

  // -- all cuts

  template <class Bins>
  void look_at_thresholds(const Cell& cell, std::int32_t feature, const Bins& bins, Memory& own,
                          Cut& best) const {
    const auto challenge_by = [&](std::size_t n_cuts, bool missing_left) {
      if (!challenge(cell, feature, bins, n_cuts, missing_left, own, best)) return;
      std::size_t next = best.threshold.bin + 1;
      while (next < bins.n_bins && bins.is_empty(next)) ++next;
      best.next = next < bins.n_bins ? bins.bin(next) : 0;
      best.threshold.bin = bins.bin(best.threshold.bin);
      best.sides.clear();
    };
    // Behind the last bin missing values alone are right.
    challenge_by(bins.n_bins - !bins.has_missing, false);
    if (bins.has_missing) challenge_by(bins.n_bins - 1, true);
  }

  // Cuts behind each of the categories in their order but the last.
  template <class Bins>
  void look_at_sets(const Cell& cell, std::int32_t feature, const Bins& bins, Memory& own,
                    Cut& best) const {
    if (!order_categories(cell, bins, own)) return;
    const std::size_t n_cuts = own.order.size() - 1;
    if (!challenge(cell, feature, in_order(bins, own), n_cuts, false, own, best)) return;
    best.sides.assign(256, Side::unseen);
    for (std::size_t i = 0; i <= n_cuts; ++i) {
      const std::size_t b = own.order[i], code = b < bins.n_bins ? bins.bin(b) : kMissingBin;
      best.sides[code] = i <= best.threshold.bin ? Side::left : Side::right;
    }
    best.has_missing = bins.has_missing;
    best.missing_left = best.sides[kMissingBin] == Side::left;
  }

  // The categories that rows of the cell have, by their responses, ties by bin; false if these
  // differ by no more than chance explains.
  template <class Bins>
  bool order_categories(const Cell& cell, const Bins& bins, Memory& own) const {
    Groups& groups = own.groups;
    if (groups.width() != cell.of.n_of_group()) groups = Groups(cell.of.n_of_group());
    groups.clear();
    own.numbers.resize(cell.of.n_of_group());
    for (std::size_t b = 0; b < bins.n_bins + bins.has_missing; ++b) {
      if (bins.is_empty(b)) continue;
      cell.of.describe(bins, b, own.numbers.data());
      groups.add(static_cast<std::uint32_t>(b), own.numbers.data());
    }
    if (groups.size() > kFreeCategories &&
        !beyond_chance(groups, groups.total(), cell.of.scatter()))
      return false;
    const std::vector<double> score = cell.of.scores(groups);
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

  // -- one cut, drawn

  // A threshold between the smallest and the largest value of the cell, as far as bins tell. Where
  // it would cut a bin it is moved to one side of it.
  void draw_threshold(const Cell& cell, std::int32_t feature, const FewBins<Target>& bins,
                      Memory& own, Cut& best) const {
    Random random(key_of(cell.key, static_cast<std::uint64_t>(growth_.feature_order.of(feature))));
    const BinThreshold threshold = bins.n_bins == 1
                                       ? threshold_behind(bins_, feature, bins.bin(0), 0)
                                       : between_values(feature, bins, random.uniform());
    std::size_t n_left = 1;
    while (n_left < bins.n_bins && bins.bin(n_left) <= threshold.bin) ++n_left;
    restart_sides(bins, own);
    for (std::size_t i = 0; i < n_left; ++i) add_side(bins, i, 0, own);
    const auto take = [&](bool) {
      best.threshold = threshold;
      best.is_drawn = true;
      best.sides.clear();
    };
    challenge_drawn(cell, feature, bins, n_left, own, best, take);
  }

  BinThreshold between_values(std::int32_t feature, const FewBins<Target>& bins,
                              double share) const {
    const double *const low = bins_.low_of(feature), *const high = bins_.high_of(feature);
    const std::size_t first = bins.bin(0), last = bins.bin(bins.n_bins - 1);
    const double value = low[first] * (1.0 - share) + high[last] * share;
    auto bin = static_cast<std::size_t>(std::upper_bound(low + first + 1, low + last + 1, value) -
                                        low - 1);
    const bool is_cut = high[bin] > value;
    if (bin == last || (is_cut && bin > first && value < low[bin] * 0.5 + high[bin] * 0.5)) --bin;
    const bool is_in_gap = high[bin] <= value && value < low[bin + 1];
    const double wanted = is_in_gap ? value : between(high[bin], low[bin + 1]);
    return {threshold_near(wanted, high[bin], low[bin + 1]), bin};
  }

  // Every level to either side, until both have some.
  void draw_set(const Cell& cell, std::int32_t feature, const FewBins<Target>& bins, Memory& own,
                Cut& best) const {
    Random random(key_of(cell.key, static_cast<std::uint64_t>(growth_.feature_order.of(feature))));
    const std::size_t n = bins.n_bins;
    std::size_t n_left = 0;
    own.sides.assign(256, Side::unseen);
    do {
      n_left = 0;
      for (std::size_t i = 0; i < n; ++i) {
        const std::size_t left = random.bits() >> 63;
        own.sides[bins.bin(i)] = left ? Side::left : Side::right;
        n_left += left;
      }
    } while (n_left == 0 || (n_left == n && n > 1));
    restart_sides(bins, own);
    for (std::size_t i = 0; i < n; ++i)
      if (own.sides[bins.bin(i)] == Side::left) add_side(bins, i, 0, own);
    const auto take = [&](bool missing_left) {
      best.sides = own.sides;
      if (bins.has_missing) best.sides[kMissingBin] = missing_left ? Side::left : Side::right;
    };
    challenge_drawn(cell, feature, bins, n_left, own, best, take);
  }

  // The sums of all bins that go left as one bin, and those of missing values.
  static void restart_sides(const FewBins<Target>& bins, Memory& own) {
    own.sums.assign(2 * bins.n_sums, {});
    if (bins.rows) own.rows.assign(2, 0);
    if (bins.has_missing) add_side(bins, bins.n_bins, 1, own);
  }
  static void add_side(const FewBins<Target>& bins, std::size_t i, std::size_t to, Memory& own) {
    for (std::size_t l = 0; l < bins.n_sums; ++l) own.sums[to * bins.n_sums + l] += bins.at(i)[l];
    if (bins.rows) own.rows[to] += bins.rows[i];
  }

  // Missing values go to either side, unless only they go right.
  template <class Take>
  void challenge_drawn(const Cell& cell, std::int32_t feature, const FewBins<Target>& bins,
                       std::size_t n_left, Memory& own, Cut& best, const Take& take) const {
    const FewBins<Target> sides{
        own.sums.data(), bins.n_sums, 1, nullptr, bins.rows ? own.rows.data() : nullptr,
        bins.has_missing};
    const auto challenge_by = [&](bool missing_left) {
      if (challenge(cell, feature, sides, 1, missing_left, own, best)) take(missing_left);
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
