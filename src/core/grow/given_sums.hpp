// Cuts of cells whose sums are given: those of a table whose rows lie elsewhere.
//
// Growth goes as far as sums are known, and notes which others it wants. It is made again once they
// are there. What was decided before is not decided again.
#pragma once

#include <cstring>
#include <unordered_map>

#include "grow/decide.hpp"
#include "grow/send.hpp"

namespace certree {
namespace {

// Sums of rows that nobody has at hand to be sent.
template <class Sums>
concept RowsLieElsewhere = requires { Sums::kElsewhere; };

// A cut as bytes that are the same in every process of a machine.
struct CutBytes {
  double gain, value;
  std::int64_t bin, next;  // the last occupied bin left, the first right
  std::array<std::int64_t, 3> sums;
  std::int32_t feature;
  std::uint8_t is_known, has_missing, missing_left, has_sides;
  std::array<Child, 256> sides;
};
static_assert(sizeof(CutBytes) <= kSplitBytes && std::is_trivially_copyable_v<CutBytes>);

inline CutBytes bytes_of(const SplitInfo& cut) {
  CutBytes made{};
  made.gain = cut.gain;
  made.value = cut.value;
  made.bin = static_cast<std::int64_t>(cut.threshold.bin);
  made.next = static_cast<std::int64_t>(cut.next);
  std::ranges::copy(cut.sums, made.sums.begin());
  made.feature = cut.feature;
  made.is_known = 1;
  made.has_missing = cut.has_missing;
  made.missing_left = cut.missing_left;
  made.has_sides = !cut.child_of_bin.empty();
  std::ranges::copy(cut.child_of_bin, made.sides.begin());
  return made;
}

inline SplitInfo cut_of(const CutBytes& known) {
  SplitInfo cut;
  cut.gain = known.gain;
  cut.value = known.value;
  cut.feature = known.feature;
  cut.has_missing = known.has_missing != 0;
  cut.missing_left = known.missing_left != 0;
  cut.threshold.bin = static_cast<std::size_t>(known.bin);
  cut.next = static_cast<std::size_t>(known.next);
  cut.sums.assign(known.sums.begin(), known.sums.end());
  if (known.has_sides) cut.child_of_bin.assign(known.sides.begin(), known.sides.end());
  return cut;
}

template <class Target>
class GivenSums {
 public:
  using Row = std::int32_t;
  static constexpr bool kKeeps = true, kSparse = Target::kSparse, kElsewhere = true;

  // totals: of the nodes.
  GivenSums(const KeptBins& bins, const NodeTotals& totals, std::span<const std::int32_t> features,
            const BinnedGrowth& growth, const Target& target, const KnownNodes& known,
            GivenTree& made)
      : totals_(totals),
        features_(features),
        target_(target),
        decider_(target, bins, growth),
        layout_(features, bins.n_bins, Target::kLanes),
        known_(known),
        made_(made) {
    if (known.keys.size() > 0 && known.sums.width != static_cast<std::int64_t>(layout_.size()))
      throw std::invalid_argument("sums must be those of the features by their bins");
    for (const std::size_t i : indices(known.decided.size())) decided_[known.decided[i]] = i;
    for (const std::size_t i : indices(known.keys.size())) waiting_[known.keys[i]] = i;
    made_.splits.resize(checked_size(known.keys.size(), kSplitBytes));
  }

  const Decider<Target>& decider() const { return decider_; }
  std::span<const std::int32_t> features() const { return features_; }

  SplitInfo search_root(const BinnedNode& cell, const std::vector<std::int32_t>& features) {
    return look_up(cell, Bounds(), features, [] {});
  }
  static std::int64_t n_left(const SplitInfo& cut, const GoesLeft&) { return cut.sums.back(); }
  // A cell is divided.
  void note(const BinnedNode& cell, const SplitInfo& cut, const GoesLeft& goes_left) {
    made_.keys.push_back(cell.key);
    made_.feature.push_back(cut.feature);
    made_.goes_left.insert(made_.goes_left.end(), goes_left.begin(), goes_left.end());
    made_.wanted.resize(made_.wanted.size() + 2);
  }
  void open(const SplitInfo&, const std::array<BinnedNode, 2>& children,
            const std::array<Bounds, 2>& bounds, std::array<bool, 2> may_be_split,
            std::vector<std::int32_t>&& features) {
    cells_ = children;
    bounds_ = bounds;
    may_ = may_be_split;
    allowed_ = std::move(features);
    for (const BinnedNode& child : children) {
      made_.keys.push_back(child.key);
      made_.n_rows.push_back(child.size());
    }
  }
  SplitInfo search_child(std::int32_t node) {
    const std::size_t which = node == cells_[1].index ? 1 : 0;
    if (!may_[which]) return {};
    return look_up(cells_[which], bounds_[which], allowed_,
                   [&] { *(made_.wanted.end() - 2 + static_cast<std::ptrdiff_t>(which)) = 1; });
  }

 private:
  template <class Want>
  SplitInfo look_up(const BinnedNode& cell, const Bounds& bounds,
                    const std::vector<std::int32_t>& features, const Want& want) {
    if (const auto at = decided_.find(cell.key); at != decided_.end()) {
      CutBytes known;
      std::memcpy(&known, known_.splits.row(at->second), sizeof known);
      expect_cut(known);
      return with_features(cut_of(known));
    }
    const auto at = waiting_.find(cell.key);
    if (at == waiting_.end()) {
      want();
      return {};
    }
    SplitInfo cut =
        search(cell, bounds, features, known_.sums.row(at->second), known_.squares[at->second]);
    const CutBytes told = bytes_of(cut);
    std::memcpy(made_.splits.data() + at->second * kSplitBytes, &told, sizeof told);
    return cut;
  }
  // Bytes may come from anywhere.
  void expect_cut(const CutBytes& known) const {
    const auto is_bin = [](std::int64_t bin) { return bin >= 0 && bin < kMostBins; };
    const bool is_among = known.feature < 0 || std::ranges::binary_search(features_, known.feature);
    if (!known.is_known || !is_among || !is_bin(known.bin) || !is_bin(known.next))
      throw std::invalid_argument("cuts must be those that were told of the cells before");
  }
  // Cells below are searched by all features: those that are constant there are passed over.
  SplitInfo with_features(SplitInfo&& cut) const {
    cut.varying.assign(features_.begin(), features_.end());
    return std::move(cut);
  }

  SplitInfo search(const BinnedNode& cell, const Bounds& bounds,
                   const std::vector<std::int32_t>& features, const std::int64_t* sums,
                   std::int64_t squares) {
    const NodeTotals::One total = totals_.of(cell.index);
    typename Target::NodeEvaluator of(target_, total, squares);
    const Undecided<Target> known{of, total.sum, cell.size(), bounds, cell.key};
    SplitInfo cut;
    count_steps(layout_.size());
    for (const std::int32_t j : features) {
      AllBins bins{sums + layout_.start(j), Target::kLanes, layout_.width(j), layout_.n_bins(j),
                   false};
      bins.has_missing = !bins.is_empty(bins.n_bins);
      decider_.search_splits(known, j, bins, memory_, cut);
    }
    decider_.settle(of, 0.0, cut);
    return with_features(std::move(cut));
  }

  const NodeTotals& totals_;
  std::span<const std::int32_t> features_;
  const Target& target_;
  Decider<Target> decider_;
  SumsLayout layout_;
  const KnownNodes& known_;
  GivenTree& made_;
  std::unordered_map<std::uint64_t, std::size_t> decided_, waiting_;
  typename Decider<Target>::Memory memory_;
  // The children of the cell that was divided last.
  std::array<BinnedNode, 2> cells_{};
  std::array<Bounds, 2> bounds_{};
  std::array<bool, 2> may_{};
  std::vector<std::int32_t> allowed_;
};

}  // namespace
}  // namespace certree
