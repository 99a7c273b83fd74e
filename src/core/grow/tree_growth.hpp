// Growth of one tree from histograms, for any target, with rows in memory or out of core.
//
// Included by the growers of trees from histograms alone.
#pragma once

#include "grow/drawn_sums.hpp"
#include "grow/given_sums.hpp"
#include "grow/growth.hpp"

namespace certree {
namespace {

// In-bag rows, from which the tree grows, other rows that are routed to leaves, and scratch memory
// for as many of each.
template <class Row>
struct MovedRows {
  std::span<Row> growing;
  std::span<std::int32_t> others;
  Row* growing_room;
  std::int32_t* others_room;
};

// Grows one tree. Sums: finds the best split of a node, such as KeptSums or DrawnSums.
template <class Sums>
class TreeGrowth {
 public:
  using Row = typename Sums::Row;
  using Cell = BinnedCell;
  using Cut = certree::Cut;

  // totals: sums of the nodes, at first of the root; the sums of new nodes are appended.
  TreeGrowth(const KeptBins& bins, const MovedRows<Row>& rows, const BinnedGrowth& growth,
             CellSums& totals, Sums& sums)
      : bins_(bins), rows_(rows), growth_(growth), totals_(totals), sums_(sums) {}

  // Grows the tree. key: of the random draws of the tree.
  TreeColumns grow(std::uint64_t key) {
    Cell root{};
    root.end = std::ssize(rows_.growing);
    if constexpr (RowsLieElsewhere<Sums>) root.end = totals_.of(0).sum.back();
    root.key = key;
    groups_.assign(static_cast<std::size_t>(growth_.groups.n_rows), 1);
    bounds_.resize(growth_.monotonic.empty() ? 0 : 1);
    if constexpr (Sums::kKeeps) nodes_.push_back({0, root.end, 0, std::ssize(rows_.others)});
    const Rule rule{*this};
    if constexpr (!Sums::kKeeps)
      if (growth_.order == Order::depth) return Growth<Rule>::whole(rule, root).columns();
    return grow_best_first(rule, root, growth_.max_leaves);
  }

  // Splits a single node that is not part of a tree, and writes its children; returns false if it
  // is a leaf.
  bool cut_alone(const Cell& cell, const Bounds& bounds, Split& split,
                 std::array<Cell, 2>& children) {
    groups_.assign(static_cast<std::size_t>(growth_.groups.n_rows), 1);
    if (!growth_.monotonic.empty()) bounds_.assign(1, bounds);
    return this->split(cell, split, children[0], children[1]);
  }
  Bounds bounds_of(std::int32_t node) const {
    return bounds_.empty() ? Bounds() : bounds_[static_cast<std::size_t>(node)];
  }

  // Calls settle(leaf, rows) for the in-bag rows, and for the other rows, of every leaf.
  template <class Settle>
  void settle_leaves(std::span<const std::int32_t> children, const Settle& settle) const {
    for (const std::size_t v : indices(children.size(), 1)) {
      if (children[v] != kLeaf) continue;
      settle(v, part_of(rows_.growing, nodes_[v].begin, nodes_[v].end));
      settle(v, part_of(rows_.others, nodes_[v].others_begin, nodes_[v].others_end));
    }
  }

 private:
  struct Rule {
    using Cell = BinnedCell;
    using Cut = certree::Cut;
    TreeGrowth& tree;

    Cut search(const Cell& cell) const { return tree.search(cell); }
    void divide(const Cell& cell, const Cut& cut, Split& split, Cell& left, Cell& right) const {
      tree.divide(cell, cut, split, left, right);
    }
    bool split(const Cell& cell, Split& split, Cell& left, Cell& right) const {
      return tree.split(cell, split, left, right);
    }
  };

  struct Node {
    std::int64_t begin, end, others_begin, others_end;
  };

  template <class Some>
  static std::span<Some> part_of(std::span<Some> rows, std::int64_t begin, std::int64_t end) {
    return rows.subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin));
  }

  bool may_be_cut(const Cell& cell) const {
    return cell.depth < growth_.max_depth && cell.size() >= growth_.min_split &&
           cell.size() / 2 >= growth_.min_rows;
  }

  // -- best splits

  Cut search(const Cell& cell) {
    if constexpr (Sums::kKeeps) {
      if (cell.node != 0) return sums_.search_child(cell.node);
      return may_be_cut(cell) ? sums_.search_root(cell, allowed(cell, sums_.features())) : Cut();
    } else {
      Cut cut;
      Cell own = cell;
      search(own, cut);
      return cut;
    }
  }
  void search(Cell& cell, Cut& cut) {
    cut.restart();
    if (may_be_cut(cell))
      sums_.search(
          cell, bounds_of(cell.node), [&](std::int32_t j) { return is_allowed(cell, j); }, cut);
  }
  bool split(const Cell& given, Split& split, Cell& left, Cell& right) {
    Cell cell = given;
    search(cell, cut_);
    if (!cut_.is_made()) return false;
    divide(cell, cut_, split, left, right);
    return true;
  }

  // -- partitioning rows

  void divide(const Cell& cell, const Cut& cut, Split& split, Cell& left, Cell& right) {
    GoesLeft goes_left = sides_of(cut, split);
    const std::int64_t n_left = send_growing(cell, cut, goes_left);
    split.feature = cut.feature;
    split.missing_left = cut.has_missing ? cut.missing_left : 2 * n_left >= cell.size();
    goes_left[kMissingBin] = split.missing_left;
    if (!cut.sides.empty()) collect_levels(cut, split, goes_left);
    const auto node = static_cast<std::int32_t>(totals_.size());
    const std::int64_t middle = cell.begin + n_left;
    left = {cell.begin, middle, cell.depth + 1, node, key_of(cell.key, 0), cell.copy};
    right = {middle, cell.end, cell.depth + 1, node + 1, key_of(cell.key, 1), cell.copy};
    keep_bounds(cell, cut);
    keep_groups(cell, cut.feature);
    totals_.add_parts(cell.node, cut.sums, Sums::kSparse);
    if constexpr (RowsLieElsewhere<Sums>) sums_.note(cell, cut, goes_left);
    if constexpr (Sums::kKeeps) {
      if constexpr (!RowsLieElsewhere<Sums>)
        send_others(nodes_[static_cast<std::size_t>(cell.node)], middle,
                    sums_.codes(cell, cut.feature), goes_left);
      sums_.open(cut, {left, right}, {bounds_of(node), bounds_of(node + 1)},
                 {may_be_cut(left), may_be_cut(right)}, allowed(left, cut.varying));
    }
  }

  // Partitions the in-bag rows of a node and returns how many go left; out of core, the sums tell
  // it.
  std::int64_t send_growing(const Cell& cell, const Cut& cut, const GoesLeft& goes_left) {
    if constexpr (RowsLieElsewhere<Sums>)
      return sums_.n_left(cut, goes_left);
    else
      return send(part_of(rows_.growing, cell.begin, cell.end), sums_.codes(cell, cut.feature),
                  goes_left, rows_.growing_room);
  }

  // Partitions the other rows of a node, and appends its two children to nodes_.
  template <class Codes>
  void send_others(const Node above, std::int64_t middle, const Codes& codes,
                   const GoesLeft& goes_left) {
    const auto others = part_of(rows_.others, above.others_begin, above.others_end);
    const std::int64_t others_middle =
        above.others_begin + send(others, codes, goes_left, rows_.others_room);
    nodes_.push_back({above.begin, middle, above.others_begin, others_middle});
    nodes_.push_back({middle, above.end, others_middle, above.others_end});
  }

  // Returns the side of each bin for the rows of the node, and writes the threshold.
  GoesLeft sides_of(const Cut& cut, Split& split) const {
    GoesLeft goes_left{};
    if (cut.sides.empty()) {
      const BinThreshold threshold =
          cut.is_drawn ? cut.threshold
                       : threshold_behind(bins_, cut.feature, cut.threshold.bin, cut.next);
      split.threshold = threshold.value;
      std::fill_n(goes_left.begin(), threshold.bin + 1, std::uint8_t{1});
    } else {
      for (std::size_t b = 0; b < goes_left.size(); ++b) goes_left[b] = cut.sides[b] == Side::left;
    }
    goes_left[kMissingBin] = cut.missing_left;
    return goes_left;
  }

  // Writes the set of a node, which goes to the side opposite to missing values. Categories without
  // rows in the node go with missing values.
  void collect_levels(const Cut& cut, Split& split, GoesLeft& goes_left) const {
    for (std::size_t b = 0; b < kMissingBin; ++b)
      if (cut.sides[b] == Side::unseen) goes_left[b] = split.missing_left;
    split.categories = levels_against_missing(bins_, cut.feature, goes_left);
  }

  // -- constraints on the nodes below

  // Appends the bounds of two children by monotonic constraints: the middle between their responses
  // bounds all responses below either of them.
  void keep_bounds(const Cell& cell, const Cut& cut) {
    if (growth_.monotonic.empty()) return;
    Bounds left = bounds_of(cell.node), right = left;
    const int constraint = growth_.monotonic[static_cast<std::size_t>(cut.feature)];
    if (constraint != 0) {
      const auto [a, b] = sums_.decider().responses(totals_.of(cell.node).sum, cut.sums.data());
      (constraint > 0 ? left.upper : left.lower) = (a + b) / 2.0;
      (constraint > 0 ? right.lower : right.upper) = (a + b) / 2.0;
    }
    bounds_.push_back(left);
    bounds_.push_back(right);
  }

  // Appends, for both children, which interaction groups contain all features that were split on at
  // or above the node.
  void keep_groups(const Cell& cell, std::int32_t feature) {
    const std::size_t n = static_cast<std::size_t>(growth_.groups.n_rows);
    const std::size_t above = static_cast<std::size_t>(cell.node) * n;
    for (std::size_t k = 0; k < 2 * n; ++k)
      groups_.push_back(groups_[above + k % n] & growth_.groups.row(k % n)[feature]);
  }
  // Returns whether some remaining interaction group of the node contains a feature.
  bool is_allowed(const Cell& cell, std::int32_t feature) const {
    const std::size_t n = static_cast<std::size_t>(growth_.groups.n_rows);
    if (n == 0) return true;
    for (std::size_t k = 0; k < n; ++k)
      if (groups_[static_cast<std::size_t>(cell.node) * n + k] && growth_.groups.row(k)[feature])
        return true;
    return false;
  }
  std::vector<std::int32_t> allowed(const Cell& cell,
                                    std::span<const std::int32_t> features) const {
    std::vector<std::int32_t> some(features.begin(), features.end());
    if (!growth_.groups.n_rows) return some;
    std::erase_if(some, [&](std::int32_t j) { return !is_allowed(cell, j); });
    return some;
  }

  const KeptBins& bins_;
  MovedRows<Row> rows_;
  const BinnedGrowth& growth_;
  CellSums& totals_;
  Sums& sums_;
  Cut cut_;                           // scratch memory of split()
  std::vector<Node> nodes_;           // (m,) ranges of rows, if Sums::kKeeps
  std::vector<Bounds> bounds_;        // (m,) with monotonic constraints
  std::vector<std::uint8_t> groups_;  // (m, k) whether group k has all features split on above
};

}  // namespace
}  // namespace certree
