// The best cut of a cell, found from its sums by bin.
//
// Belongs to counted.cpp alone. Of equal cuts that of the first feature is taken, of those by one
// feature one that sends missing values right, then the lowest. The categories of a cell, a missing
// value among them, stand in the order of their responses, if they differ by more than chance
// explains; then they are cut like numbers.
#pragma once

#include <array>

#include "grow/chance.hpp"
#include "grow/counted.hpp"
#include "grow/sums.hpp"

namespace certree {
namespace {

// A gain below this share of the value of the cell is what rounding leaves of nothing.
inline constexpr double kNothing = 0x1p-46;

struct CountedCell {
  std::int64_t begin, end;  // growing rows
  std::int64_t others_begin, others_end;
  std::int32_t depth;
  int side;                          // 0: root, 1: left, 2: right
  double lower, upper;               // bounds of the responses below
  std::vector<std::int64_t> sums;    // of all growing rows
  std::int64_t squares;              // what the target adds up of all rows for their scatter
  std::vector<std::uint8_t> groups;  // whether each holds all features compared above; or empty

  std::int64_t size() const { return end - begin; }
};

// Where rows of a category go; those that no row of the cell has go where missing values go.
enum class Side : std::uint8_t { right, left, unseen };

struct CountedCut {
  double gain = 0.0;          // what decides which leaf is divided next
  double value = -1.0;        // of both sides
  std::int32_t feature = -1;  // its place among those of the tree
  bool has_missing = false;   // whether rows of the cell lack the value
  bool missing_left = false;
  std::size_t bin = 0, next = 0;            // the last occupied bin left, the first one right or 0
  std::vector<Side> sides;                  // of the categories by bin, missing last; or empty
  std::vector<std::int64_t> sums;           // of the left side
  std::int64_t squares = 0;                 // of the cell
  std::vector<std::int32_t> varying;        // features that are not constant in the cell
  SumsPool::Place place = SumsPool::kNone;  // where the sums of the cell lie

  bool is_made() const { return feature >= 0; }

  // The better one of two searches of a cell, and what both found to vary; the place stays.
  void challenge(CountedCut&& other) {
    varying.insert(varying.end(), other.varying.begin(), other.varying.end());
    if (!(other.value > value)) return;
    std::swap(other.place, place);
    std::swap(other.varying, varying);
    other.squares = squares;
    *this = std::move(other);
  }
};

// The sums of a cell by one feature: lanes with an entry for each bin, and one for missing values
// behind them. Of a small cell the bins may be those alone that its rows have.
struct BinSums {
  const std::int64_t* lanes;
  std::size_t n_bins;
  const std::uint8_t* bins;  // (n_bins,) which bins these are; null: all of the feature

  std::size_t width() const { return n_bins + 1; }
  std::size_t bin(std::size_t i) const { return bins ? bins[i] : i; }
};

// What is asked of the cuts of a cell.
template <class Target>
class CountedSearch {
 public:
  struct Work {
    std::vector<std::int64_t> prefix;  // (lanes, width) sums up to each bin
    std::vector<std::int64_t> shift;   // (lanes,) of missing values where they go left, else 0
    std::array<double, 256> value;
    Groups groups{0};                   // categories
    std::vector<std::int64_t> entry;    // (lanes,) of one
    std::vector<double> numbers;        // that describe it
    std::vector<std::size_t> place;     // of each in their order
    std::vector<std::size_t> order;     // their bins
    std::vector<std::int64_t> ordered;  // (lanes, number of categories) their sums
  };

  // category: (p,) whether a feature holds categories.
  CountedSearch(const Target& target, const SumsLayout& layout, const Counting& counting,
                std::span<const std::uint8_t> category)
      : target_(target), layout_(layout), counting_(counting), category_(category) {}

  // Challenges the best cut so far by those of a feature, unless it is constant in the cell.
  void look(const CountedCell& cell, std::int32_t feature, const BinSums& sums, Work& own,
            CountedCut& best) const {
    const auto f = static_cast<std::size_t>(feature);
    const std::int64_t* const rows = rows_of(sums);
    const std::int64_t* const end = rows + sums.width();
    if (std::find(rows, end, cell.size()) != end) return;
    best.varying.push_back(feature);
    own.shift.assign(layout_.n_lanes(), 0);
    if (is_categorical(f))
      look_at_sets(cell, f, sums, own, best);
    else
      look_at_thresholds(cell, f, sums, own, best);
  }

  // Of the left and the right side of a cut.
  std::pair<double, double> responses(const CountedCell& cell,
                                      const std::vector<std::int64_t>& sums) const {
    std::vector<std::int64_t> others = cell.sums;
    for (std::size_t l = 0; l < others.size(); ++l) others[l] -= sums[l];
    return {target_.response(sums.data()), target_.response(others.data())};
  }

  // Whether the best cut of a cell is made.
  bool settle(const CountedCell& cell, CountedCut& best) const {
    const double gain = best.value - target_.value(cell.sums.data());
    if (!best.is_made() || !(gain > kNothing * best.value && gain >= target_.min_gain())) {
      best.feature = -1;
      return false;
    }
    best.gain = counting_.best_first ? gain : 0.0;
    return true;
  }

 private:
  std::size_t number_of(std::size_t f) const {
    return static_cast<std::size_t>(counting_.features[f]);
  }
  bool is_categorical(std::size_t f) const { return category_[number_of(f)] != 0; }
  const std::int64_t* rows_of(const BinSums& sums) const {
    return sums.lanes + (layout_.n_lanes() - 1) * sums.width();
  }

  void look_at_thresholds(const CountedCell& cell, std::size_t f, const BinSums& sums, Work& own,
                          CountedCut& best) const {
    const std::size_t n_bins = sums.n_bins, width = sums.width();
    const bool has_missing = rows_of(sums)[n_bins] > 0;
    sum_up(sums.lanes, n_bins, width, own);
    const auto challenge_by = [&](bool missing_left) {
      if (!challenge(cell, f, n_bins, width, own, best)) return;
      place_between(sums, best);
      best.has_missing = has_missing;
      best.missing_left = missing_left;
      best.sides.clear();
    };
    challenge_by(false);
    if (!has_missing) return;
    for (std::size_t l = 0; l < layout_.n_lanes(); ++l)
      own.shift[l] = sums.lanes[l * width + n_bins];
    challenge_by(true);
  }

  // Of the bins looked at, the cut is behind the one that stands there.
  void place_between(const BinSums& sums, CountedCut& best) const {
    const std::int64_t *const rows = rows_of(sums), *const end = rows + sums.n_bins;
    const std::int64_t* const next =
        std::find_if(rows + best.bin + 1, end, [](std::int64_t n) { return n > 0; });
    best.next = next == end ? 0 : sums.bin(static_cast<std::size_t>(next - rows));
    best.bin = sums.bin(best.bin);
  }

  // Cuts behind each of the categories in their order but the last.
  void look_at_sets(const CountedCell& cell, std::size_t f, const BinSums& sums, Work& own,
                    CountedCut& best) const {
    const std::size_t n_bins = layout_.n_bins(f), width = sums.width();
    if (!order_categories(cell, sums.lanes, width, own)) return;
    const std::size_t n_seen = own.order.size();
    own.ordered.resize(layout_.n_lanes() * n_seen);
    for (std::size_t l = 0; l < layout_.n_lanes(); ++l)
      for (std::size_t i = 0; i < n_seen; ++i)
        own.ordered[l * n_seen + i] = sums.lanes[l * width + own.order[i]];
    sum_up(own.ordered.data(), n_seen - 1, n_seen, own);
    if (!challenge(cell, f, n_seen - 1, n_seen, own, best)) return;
    best.sides.assign(n_bins + 1, Side::unseen);
    for (std::size_t i = 0; i < n_seen; ++i) {
      const std::size_t b = own.order[i];
      best.sides[b < sums.n_bins ? sums.bin(b) : n_bins] = i <= best.bin ? Side::left : Side::right;
    }
    best.has_missing = best.sides[n_bins] != Side::unseen;
    best.missing_left = best.sides[n_bins] == Side::left;
  }

  // The categories that rows of the cell have, by their responses, ties by bin; false if these
  // differ by no more than chance explains.
  bool order_categories(const CountedCell& cell, const std::int64_t* sums, std::size_t width,
                        Work& own) const {
    const std::int64_t* const rows = sums + (layout_.n_lanes() - 1) * width;
    Groups& groups = own.groups;
    if (groups.width() != target_.n_of_group()) groups = Groups(target_.n_of_group());
    groups.clear();
    own.entry.resize(layout_.n_lanes());
    own.numbers.resize(target_.n_of_group());
    for (std::size_t b = 0; b < width; ++b) {
      if (rows[b] == 0) continue;
      for (std::size_t l = 0; l < own.entry.size(); ++l) own.entry[l] = sums[l * width + b];
      target_.describe(own.entry.data(), own.numbers.data());
      groups.add(static_cast<std::uint32_t>(b), own.numbers.data());
    }
    if (groups.size() < 2) return false;
    if (groups.size() > kFreeCategories &&
        !beyond_chance(groups, groups.total(), target_.scatter(cell.sums.data(), cell.squares)))
      return false;
    const std::vector<double> score = target_.scores(groups, cell.sums.data());
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

  void sum_up(const std::int64_t* sums, std::size_t n_bins, std::size_t width, Work& own) const {
    own.prefix.resize(layout_.n_lanes() * width);
    for (std::size_t l = 0; l < layout_.n_lanes(); ++l) {
      const std::int64_t* const from = sums + l * width;
      std::int64_t* const to = own.prefix.data() + l * width;
      std::int64_t sum = 0;
      for (std::size_t b = 0; b < n_bins; ++b) to[b] = sum += from[b];
    }
  }

  // Whether one of the cuts behind so many bins, whose sums are added up, is better than the best.
  bool challenge(const CountedCell& cell, std::size_t f, std::size_t n_bins, std::size_t width,
                 Work& own, CountedCut& best) const {
    const double most = target_.value_cuts(own.prefix.data(), width, n_bins, own.shift.data(),
                                           cell.sums.data(), own.value.data());
    if (!(most > best.value)) return false;
    const std::span<const double> values(own.value.data(), n_bins);
    std::size_t bin = n_bins;
    if (counting_.monotonic.empty()) {
      bin = static_cast<std::size_t>(std::ranges::find(values, most) - values.begin());
    } else {
      // Below the first value missing ones would go left alone; that they go right has been tried.
      const std::int64_t* const rows = own.prefix.data() + (layout_.n_lanes() - 1) * width;
      for (std::size_t b = 0; b < n_bins; ++b)
        if (rows[b] > 0 && values[b] > (bin < n_bins ? values[bin] : best.value) &&
            is_allowed(cell, f, sums_left(own, width, b)))
          bin = b;
    }
    if (bin == n_bins) return false;
    best.value = values[bin];
    best.bin = bin;
    best.feature = static_cast<std::int32_t>(f);
    best.sums = sums_left(own, width, bin);
    return true;
  }

  static std::vector<std::int64_t> sums_left(const Work& own, std::size_t width, std::size_t bin) {
    std::vector<std::int64_t> sums = own.shift;
    for (std::size_t l = 0; l < sums.size(); ++l) sums[l] += own.prefix[l * width + bin];
    return sums;
  }

  // Whether a cut keeps to the slopes and to the bounds of the cell.
  bool is_allowed(const CountedCell& cell, std::size_t f,
                  const std::vector<std::int64_t>& sums) const {
    const auto [left, right] = responses(cell, sums);
    return std::min(left, right) >= cell.lower && std::max(left, right) <= cell.upper &&
           counting_.monotonic[number_of(f)] * (right - left) >= 0.0;
  }

  const Target& target_;
  const SumsLayout& layout_;
  const Counting& counting_;
  std::span<const std::uint8_t> category_;
};

}  // namespace
}  // namespace certree
