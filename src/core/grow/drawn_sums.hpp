// Best splits of nodes by features that are drawn at each node, whose histograms are not kept.
#pragma once

#include "grow/drawn_cells.hpp"
#include "grow/draws.hpp"

namespace certree {
namespace {

// Cells: how the bins of the rows of a node are found, see drawn_cells.hpp.
template <class Target, class Cells>
class DrawnSums {
 public:
  using Item = typename Target::Item;
  using Row = typename Target::Row;
  static constexpr bool kKeeps = false, kSparse = Target::kSparse;

  // items: in-bag rows, partitioned by node; sums: of the nodes.
  DrawnSums(const DrawnRows& rows, std::span<Item> items, const CellSums& sums,
            std::vector<std::int32_t>&& features, const BinnedGrowth& growth, const Target& target)
      : DrawnSums(rows.bins, Cells(rows), items, sums, std::move(features), growth, target) {}
  DrawnSums(const KeptBins& bins, Cells&& cells, std::span<Item> items, const CellSums& sums,
            std::vector<std::int32_t>&& features, const BinnedGrowth& growth, const Target& target)
      : bins_(bins),
        items_(items),
        sums_(sums),
        growth_(growth),
        decider_(target, bins, growth),
        of_(target),
        few_(target),
        draws_(std::move(features), growth.max_features == 0),
        cells_(std::move(cells)) {}

  const Decider<Target>& decider() const { return decider_; }
  auto codes(const BinnedCell& cell, std::int32_t feature) const {
    return cells_.codes(cell, feature);
  }

  // Finds the best split of a node among the features for which allowed(feature) is true.
  template <class Allowed>
  void search(BinnedCell& cell, const Bounds& bounds, const Allowed& allowed, Cut& cut) {
    const CellSums::One total = sums_.of(cell.node);
    if constexpr (requires { cells_.rows(); })
      of_.open(cells_.rows(), total);
    else
      of_.open(items_of(cell), total);
    if (cell.depth == 0) least_ = growth_.min_gain * of_.weight();
    if (of_.is_pure()) return;
    const bool ranks = growth_.ties_by_root && growth_.max_features == 0 && cell.depth == 0;
    if (ranks) of_root_.assign(static_cast<std::size_t>(std::ssize(bins_.n_bins)), -kInfinity);
    cells_.open(cell, items_of(cell), of_, growth_.order == Order::depth);
    const Undecided<Target> known{of_, total.sum, cell.size(), bounds, cell.key};
    draws_.restart(cell.key);
    std::size_t left =
        growth_.max_features > 0 ? static_cast<std::size_t>(growth_.max_features) : draws_.n_left();
    while (left > 0 && draws_.n_left() > 0) {
      draw(std::min(left, few_.together(of_)), allowed);
      cells_.add_up(cell, items_of(cell), of_, drawn_, few_);
      for (std::size_t f = 0; f < drawn_.size(); ++f) {
        const auto n_bins =
            static_cast<std::size_t>(bins_.n_bins[static_cast<std::size_t>(drawn_[f])]);
        const FewBins<Target> bins = few_.take(of_, f, n_bins);
        if (ranks) rank(known, drawn_[f], bins);
        left -= decider_.search_splits(known, drawn_[f], bins, memory_, cut) ? 1 : 0;
      }
    }
    if (ranks) draws_.reorder(of_root_);
    decider_.settle(of_, least_, cut);
  }

  // The order of features and the least gain, both decided at the root. go_on() passes the latter
  // to the grower of a subtree.
  const std::vector<std::int32_t>& features() const { return draws_.features(); }
  double least() const { return least_; }
  void go_on(double least) { least_ = least; }

 protected:
  Cells& cells() { return cells_; }

 private:
  std::span<Item> items_of(const BinnedCell& cell) const {
    return items_.subspan(static_cast<std::size_t>(cell.begin),
                          static_cast<std::size_t>(cell.size()));
  }

  // Stores the value of the best split of the root by a feature.
  void rank(const Undecided<Target>& root, std::int32_t feature, const FewBins<Target>& bins) {
    Cut best;
    decider_.search_splits(root, feature, bins, memory_, best);
    of_root_[static_cast<std::size_t>(feature)] = best.value;
  }

  template <class Allowed>
  void draw(std::size_t most, const Allowed& allowed) {
    std::size_t n = 0;
    drawn_.resize(most);
    while (n < most && draws_.n_left() > 0) {
      drawn_[n] = draws_.next();
      n += allowed(drawn_[n]) && cells_.may_vary(drawn_[n]) ? 1 : 0;
    }
    drawn_.resize(n);
  }

  const KeptBins& bins_;
  std::span<Item> items_;
  const CellSums& sums_;
  const BinnedGrowth& growth_;
  Decider<Target> decider_;
  typename Target::OfCell of_;
  FewSums<Target> few_;
  typename Decider<Target>::Memory memory_;
  FeatureDraws draws_;
  std::vector<std::int32_t> drawn_;
  Cells cells_;
  double least_ = 0.0;           // least gain of a split
  std::vector<double> of_root_;  // (p,) value of the best split of the root by each feature
};

}  // namespace
}  // namespace certree
