// Best splits of nodes by features that are drawn at each node, whose histograms are not kept.
#pragma once

#include "grow/draws.hpp"
#include "grow/node_bins.hpp"

namespace certree {
namespace {

// NodeBins: how the bins of the rows of a node are found, see node_bins.hpp.
template <class Target, class NodeBins>
class DrawnHistograms {
 public:
  using Item = typename Target::Item;
  using Row = typename Target::Row;
  static constexpr bool kKeeps = false, kSparse = Target::kSparse;

  // items: in-bag rows, partitioned by node; sums: of the nodes.
  DrawnHistograms(const DrawnRows& rows, std::span<Item> items, const NodeTotals& sums,
                  std::vector<std::int32_t>&& features, const BinnedGrowth& growth,
                  const Target& target)
      : bins_(rows.bins),
        items_(items),
        sums_(sums),
        growth_(growth),
        split_search_(target, rows.bins, growth),
        of_(target),
        few_(target),
        draws_(std::move(features), growth.max_features == 0),
        node_bins_(rows) {}

  const SplitSearch<Target>& split_search() const { return split_search_; }
  auto codes(const BinnedNode& node, std::int32_t feature) const {
    return node_bins_.codes(node, feature);
  }

  // Finds the best split of a node among the features for which allowed(feature) is true.
  template <class Allowed>
  void search(BinnedNode& node, const Bounds& bounds, const Allowed& allowed,
              SplitInfo& split_info) {
    const NodeTotals::One total = sums_.of(node.index);
    of_.open(items_of(node), total);
    if (node.depth == 0) least_ = growth_.min_gain * of_.weight();
    if (of_.is_pure()) return;
    const bool ranks = growth_.ties_by_root && growth_.max_features == 0 && node.depth == 0;
    if (ranks) of_root_.assign(static_cast<std::size_t>(std::ssize(bins_.n_bins)), -kInfinity);
    node_bins_.open(node, items_of(node), of_, growth_.order == Order::depth);
    const SearchedNode<Target> known{of_, total.sum, node.size(), bounds, node.key};
    draws_.restart(node.key);
    std::size_t left =
        growth_.max_features > 0 ? static_cast<std::size_t>(growth_.max_features) : draws_.n_left();
    while (left > 0 && draws_.n_left() > 0) {
      draw(std::min(left, few_.together(of_)), allowed);
      node_bins_.compute_histogram(node, items_of(node), of_, drawn_, few_);
      for (std::size_t f = 0; f < drawn_.size(); ++f) {
        const auto n_bins =
            static_cast<std::size_t>(bins_.n_bins[static_cast<std::size_t>(drawn_[f])]);
        const FewBins<Target> bins = few_.take(of_, f, n_bins);
        if (ranks) rank(known, drawn_[f], bins);
        left -= split_search_.search_splits(known, drawn_[f], bins, memory_, split_info) ? 1 : 0;
      }
    }
    if (ranks) draws_.reorder(of_root_);
    split_search_.settle(of_, least_, split_info);
  }

 private:
  std::span<Item> items_of(const BinnedNode& node) const {
    return items_.subspan(static_cast<std::size_t>(node.begin),
                          static_cast<std::size_t>(node.size()));
  }

  // Stores the value of the best split of the root by a feature.
  void rank(const SearchedNode<Target>& root, std::int32_t feature, const FewBins<Target>& bins) {
    SplitInfo best;
    split_search_.search_splits(root, feature, bins, memory_, best);
    of_root_[static_cast<std::size_t>(feature)] = best.value;
  }

  template <class Allowed>
  void draw(std::size_t most, const Allowed& allowed) {
    std::size_t n = 0;
    drawn_.resize(most);
    while (n < most && draws_.n_left() > 0) {
      drawn_[n] = draws_.next();
      n += allowed(drawn_[n]) && node_bins_.may_vary(drawn_[n]) ? 1 : 0;
    }
    drawn_.resize(n);
  }

  const KeptBins& bins_;
  std::span<Item> items_;
  const NodeTotals& sums_;
  const BinnedGrowth& growth_;
  SplitSearch<Target> split_search_;
  typename Target::NodeEvaluator of_;
  FewHistograms<Target> few_;
  typename SplitSearch<Target>::Memory memory_;
  FeatureDraws draws_;
  std::vector<std::int32_t> drawn_;
  NodeBins node_bins_;
  double least_ = 0.0;           // least gain of a split
  std::vector<double> of_root_;  // (p,) value of the best split of the root by each feature
};

}  // namespace
}  // namespace certree
