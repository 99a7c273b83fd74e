// The best cut of a cell, found from its sums by bin.
//
// Belongs to counted.cpp alone. Of equal cuts that of the first feature is taken, of those by one
// feature one that sends missing values right, then the lowest.
#pragma once

#include "grow/gradients.hpp"
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
  std::vector<std::uint8_t> groups;  // features may act together with all those above; or empty

  std::int64_t size() const { return end - begin; }
};

struct CountedCut {
  double gain = 0.0;          // what decides which leaf is divided next
  double value = -1.0;        // of both sides
  std::int32_t feature = -1;  // its place among those of the tree
  bool has_missing = false;   // whether rows of the cell lack the value
  bool missing_left = false;
  std::size_t bin = 0, next = 0;            // the last occupied bin left, the first one right or 0
  std::vector<std::int64_t> sums;           // of the left side
  std::vector<std::int32_t> varying;        // features that are not constant in the cell
  SumsPool::Place place = SumsPool::kNone;  // where the sums of the cell lie

  bool is_made() const { return feature >= 0; }

  // The better one of two searches of a cell, and what both found to vary; the place stays.
  void challenge(CountedCut&& other) {
    varying.insert(varying.end(), other.varying.begin(), other.varying.end());
    if (!(other.value > value)) return;
    std::swap(other.place, place);
    std::swap(other.varying, varying);
    *this = std::move(other);
  }
};

// What is asked of the cuts of a cell.
template <class Target>
class CountedSearch {
 public:
  struct Work {
    std::vector<std::int64_t> prefix;  // (lanes, width) sums up to each bin
    std::vector<std::int64_t> shift;   // (lanes,) of missing values where they go left, else 0
    std::array<double, 256> value;
  };

  CountedSearch(const Target& target, const SumsLayout& layout, const Counting& counting)
      : target_(target), layout_(layout), counting_(counting) {}

  // Challenges the best cut so far by those of a feature, unless it is constant in the cell.
  void look(const CountedCell& cell, std::int32_t feature, const std::int64_t* sums, Work& own,
            CountedCut& best) const {
    const auto f = static_cast<std::size_t>(feature);
    const std::size_t n_bins = layout_.n_bins(f), width = layout_.width(f);
    const std::int64_t* const rows = sums + (layout_.n_lanes() - 1) * width;
    if (std::find(rows, rows + width, cell.size()) != rows + width) return;
    best.varying.push_back(feature);
    const bool has_missing = rows[n_bins] > 0;
    sum_up(sums, n_bins, width, own);
    auto& shift = own.shift;
    shift.assign(layout_.n_lanes(), 0);
    const auto challenge_by = [&](bool missing_left) {
      if (!challenge(cell, feature, n_bins, width, own, best)) return;
      best.has_missing = has_missing;
      best.missing_left = missing_left;
    };
    challenge_by(false);
    if (!has_missing) return;
    for (std::size_t l = 0; l < shift.size(); ++l) shift[l] = sums[l * width + n_bins];
    challenge_by(true);
  }

  // Whether the best cut of a cell is made. Its sums tell where the right side begins.
  bool settle(const CountedCell& cell, const std::int64_t* sums, CountedCut& best) const {
    const double gain = best.value - target_.value(cell.sums.data());
    if (!best.is_made() || !(gain > kNothing * best.value && gain >= target_.min_gain())) {
      best.feature = -1;
      return false;
    }
    best.gain = counting_.best_first ? gain : 0.0;
    const auto f = static_cast<std::size_t>(best.feature);
    const std::int64_t* const rows =
        sums + layout_.start(f) + (layout_.n_lanes() - 1) * layout_.width(f);
    const std::int64_t* const end = rows + layout_.n_bins(f);
    const std::int64_t* const next =
        std::find_if(rows + best.bin + 1, end, [](std::int64_t n) { return n > 0; });
    best.next = next == end ? 0 : static_cast<std::size_t>(next - rows);
    return true;
  }

 private:
  void sum_up(const std::int64_t* sums, std::size_t n_bins, std::size_t width, Work& own) const {
    own.prefix.resize(layout_.n_lanes() * width);
    for (std::size_t l = 0; l < layout_.n_lanes(); ++l) {
      const std::int64_t* const from = sums + l * width;
      std::int64_t* const to = own.prefix.data() + l * width;
      std::int64_t sum = 0;
      for (std::size_t b = 0; b < n_bins; ++b) to[b] = sum += from[b];
    }
  }

  bool challenge(const CountedCell& cell, std::int32_t feature, std::size_t n_bins,
                 std::size_t width, Work& own, CountedCut& best) const {
    const double most = target_.value_cuts(own.prefix.data(), width, n_bins, own.shift.data(),
                                           cell.sums.data(), own.value.data());
    if (!(most > best.value)) return false;
    best.value = most;
    best.bin = static_cast<std::size_t>(std::ranges::find(own.value, most) - own.value.begin());
    best.feature = feature;
    best.sums = own.shift;
    for (std::size_t l = 0; l < best.sums.size(); ++l)
      best.sums[l] += own.prefix[l * width + best.bin];
    return true;
  }

  const Target& target_;
  const SumsLayout& layout_;
  const Counting& counting_;
};

}  // namespace
}  // namespace certree
