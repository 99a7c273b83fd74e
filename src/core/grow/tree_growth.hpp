// Growth of one tree from histograms, for any target.
//
// Included by the growers of trees from histograms alone.
#pragma once

#include <unordered_map>

#include "grow/drawn_histograms.hpp"
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

// Grows one tree. Sums: finds the best split of a node, such as KeptHistograms or DrawnHistograms.
template <class Sums>
class TreeGrowth {
 public:
  using Row = typename Sums::Row;
  using Node = BinnedNode;
  using SplitInfo = certree::SplitInfo;

  // totals: sums of the nodes, at first of the root; the sums of new nodes are appended.
  TreeGrowth(const KeptBins& bins, const MovedRows<Row>& rows, const BinnedGrowth& growth,
             NodeTotals& totals, Sums& sums)
      : bins_(bins), rows_(rows), growth_(growth), totals_(totals), sums_(sums) {}

  // Grows the tree. key: of the random draws of the tree.
  TreeColumns grow(std::uint64_t key) {
    Node root{};
    root.end = std::ssize(rows_.growing);
    if constexpr (Sums::kKeeps) root.n_elsewhere = totals_.of(0).sum.back() - root.end;
    root.key = key;
    groups_.assign(static_cast<std::size_t>(growth_.groups.n_rows), 1);
    bounds_.resize(growth_.monotonic.empty() ? 0 : 1);
    if constexpr (Sums::kKeeps) ranges_.push_back({0, root.end, 0, std::ssize(rows_.others)});
    const Rule rule{*this};
    if constexpr (!Sums::kKeeps)
      if (growth_.order == Order::depth) return Growth<Rule>::whole(rule, root).columns();
    return grow_best_first(rule, root, growth_.max_leaves);
  }

  // Calls settle(leaf, rows) for the in-bag rows, and for the other rows, of every leaf.
  template <class Settle>
  void settle_leaves(std::span<const std::int32_t> children, const Settle& settle) const {
    for (const std::size_t v : indices(children.size(), 1)) {
      if (children[v] != kLeaf) continue;
      const RowRanges& range = ranges_[index_of(v)];
      settle(v, part_of(rows_.growing, range.begin, range.end));
      settle(v, part_of(rows_.others, range.others_begin, range.others_end));
    }
  }

  // Returns under which index a node of the tree was made, if Sums::kKeeps: some nodes that were
  // made in advance are not in the tree.
  std::size_t index_of(std::size_t node) const {
    return node == 0 ? 0 : static_cast<std::size_t>(lefts_[(node - 1) / 2]) + (node - 1) % 2;
  }

 private:
  // With ranks, leaves are divided ahead of their turn: at most a quarter of those that may still
  // be divided, whose gains are at least a fifth of that of the next one. On drawn tables this
  // saves 4 of 10 messages of a tree, and adds 4 % to the sums that are computed and sent.
  static constexpr std::int64_t kShareAhead = 4;
  static constexpr double kWorthAhead = 0.2;

  struct Rule {
    using Node = BinnedNode;
    using SplitInfo = certree::SplitInfo;
    TreeGrowth& tree;

    SplitInfo search(const Node& node) const { return tree.search(node); }
    void divide(const Node& node, const SplitInfo& split_info, Split& split, Node& left,
                Node& right) const {
      tree.take_divided(node, split_info, split, left, right);
    }
    // Divides, with ranks, the leaf that comes next and others that will probably follow it, so
    // that the children of all are searched in one message. n_more: leaves that may still be made.
    template <class Candidate>
    void look_ahead(const Candidate& next, const std::vector<Candidate>& others,
                    const auto& is_later, std::int64_t n_more) const
      requires Sums::kKeeps
    {
      if (!tree.growth_.ranks || tree.divided_.contains(next.node.index)) return;
      std::vector<const Candidate*> all{&next};
      for (const Candidate& one : others)
        if (one.split_info.gain >= kWorthAhead * next.split_info.gain) all.push_back(&one);
      const auto n = std::min(std::ssize(all), n_more / kShareAhead + 1);
      std::ranges::partial_sort(all, all.begin() + n, [&](const Candidate* a, const Candidate* b) {
        return is_later(*b, *a);
      });
      for (const Candidate* const one : std::span(all).first(static_cast<std::size_t>(n))) {
        const std::int32_t index = one->node.index;
        if (tree.divided_.contains(index)) continue;
        Divided& made = tree.divided_[index];
        tree.divide(one->node, one->split_info, made.split, made.left, made.right);
      }
    }
    bool split(const Node& node, Split& split, Node& left, Node& right) const {
      return tree.split(node, split, left, right);
    }
  };

  struct RowRanges {
    std::int64_t begin, end, others_begin, others_end;
  };
  // What a node has been divided into before its turn.
  struct Divided {
    Split split;
    Node left, right;
  };

  template <class Some>
  static std::span<Some> part_of(std::span<Some> rows, std::int64_t begin, std::int64_t end) {
    return rows.subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin));
  }

  bool may_be_split(const Node& node) const {
    return node.depth < growth_.max_depth && node.size() >= growth_.min_split &&
           node.size() / 2 >= growth_.min_rows;
  }

  // -- best splits

  SplitInfo search(const Node& node) {
    if constexpr (Sums::kKeeps) {
      if (node.index != 0) return sums_.search_child(node.index);
      return may_be_split(node) ? sums_.search_root(node, allowed(node, sums_.features()))
                                : SplitInfo();
    } else {
      SplitInfo split_info;
      Node own = node;
      search(own, split_info);
      return split_info;
    }
  }
  void search(Node& node, SplitInfo& split_info) {
    split_info.restart();
    if (may_be_split(node))
      sums_.search(
          node, bounds_of(node.index), [&](std::int32_t j) { return is_allowed(node, j); },
          split_info);
  }
  bool split(const Node& given, Split& split, Node& left, Node& right) {
    Node node = given;
    search(node, split_info_);
    if (!split_info_.is_made()) return false;
    divide(node, split_info_, split, left, right);
    return true;
  }

  // -- partitioning rows

  // Divides a node whose turn has come, unless that has been done before.
  void take_divided(const Node& node, const SplitInfo& split_info, Split& split, Node& left,
                    Node& right) {
    if (const auto before = divided_.extract(node.index)) {
      split = std::move(before.mapped().split);
      left = before.mapped().left;
      right = before.mapped().right;
    } else {
      divide(node, split_info, split, left, right);
    }
    if constexpr (Sums::kKeeps) lefts_.push_back(left.index);
  }

  void divide(const Node& node, const SplitInfo& split_info, Split& split, Node& left,
              Node& right) {
    GoesLeft goes_left = route_bins(split_info, split);
    const auto& codes = sums_.codes(node, split_info.feature);
    const std::int64_t n_left =
        send(part_of(rows_.growing, node.begin, node.end), codes, goes_left, rows_.growing_room);
    std::int64_t n_left_of_all = n_left;
    if constexpr (Sums::kKeeps) n_left_of_all = split_info.sums.back();
    split.feature = split_info.feature;
    split.missing_left =
        split_info.has_missing ? split_info.missing_left : 2 * n_left_of_all >= node.size();
    goes_left[kMissingBin] = split.missing_left;
    if (!split_info.child_of_bin.empty()) collect_categories(node, split_info, split, goes_left);
    const auto index = static_cast<std::int32_t>(totals_.size());
    const std::int64_t middle = node.begin + n_left;
    const std::int64_t left_elsewhere = n_left_of_all - n_left;
    left = {node.begin,          middle,    node.depth + 1, index,
            key_of(node.key, 0), node.copy, left_elsewhere};
    right = {middle,
             node.end,
             node.depth + 1,
             index + 1,
             key_of(node.key, 1),
             node.copy,
             node.n_elsewhere - left_elsewhere};
    keep_bounds(node, split_info);
    keep_groups(node, split_info.feature);
    totals_.add_parts(node.index, split_info.sums, Sums::kSparse);
    if constexpr (Sums::kKeeps) {
      send_others(ranges_[static_cast<std::size_t>(node.index)], middle, codes, goes_left);
      sums_.open(split_info, {.nodes = {left, right},
                              .bounds = {bounds_of(index), bounds_of(index + 1)},
                              .may_be_split = {may_be_split(left), may_be_split(right)},
                              .features = allowed(left, split_info.varying)});
    }
  }

  // Partitions the other rows of a node, and appends its two children to ranges_.
  template <class Codes>
  void send_others(const RowRanges above, std::int64_t middle, const Codes& codes,
                   const GoesLeft& goes_left) {
    const auto others = part_of(rows_.others, above.others_begin, above.others_end);
    const std::int64_t others_middle =
        above.others_begin + send(others, codes, goes_left, rows_.others_room);
    ranges_.push_back({above.begin, middle, above.others_begin, others_middle});
    ranges_.push_back({middle, above.end, others_middle, above.others_end});
  }

  // Returns which bins of the node go left, and writes the threshold.
  GoesLeft route_bins(const SplitInfo& split_info, Split& split) const {
    GoesLeft goes_left{};
    if (split_info.child_of_bin.empty()) {
      const BinThreshold threshold =
          split_info.is_drawn ? split_info.threshold
                              : threshold_behind(bins_, split_info.feature,
                                                 split_info.threshold.bin, split_info.next);
      split.threshold = threshold.value;
      std::fill_n(goes_left.begin(), threshold.bin + 1, std::uint8_t{1});
    } else {
      for (std::size_t b = 0; b < goes_left.size(); ++b)
        goes_left[b] = split_info.child_of_bin[b] == Child::left;
    }
    goes_left[kMissingBin] = split_info.missing_left;
    return goes_left;
  }

  // Writes the set of a node, whose categories go to the other child than those without rows in the
  // node. The latter go to the child with the greater weight, the left one on ties.
  void collect_categories(const Node& node, const SplitInfo& split_info, Split& split,
                          GoesLeft& goes_left) const {
    const std::span<const std::int64_t> total = totals_.of(node.index).sum;
    // The sums of the left child may be followed by its number of rows.
    const auto left = std::span<const std::int64_t>(split_info.sums).first(total.size());
    const std::int64_t weight = sums_.split_search().weight(total);
    const std::int64_t left_weight = sums_.split_search().weight(left);
    split.unseen_left = left_weight >= weight - left_weight;
    for (std::size_t b = 0; b < kMissingBin; ++b)
      if (split_info.child_of_bin[b] == Child::unseen) goes_left[b] = split.unseen_left;
    split.categories =
        categories_against_unseen(bins_, split_info.feature, goes_left, split.unseen_left);
    split.replace_empty_set();
  }

  // -- constraints on the nodes below

  Bounds bounds_of(std::int32_t index) const {
    return bounds_.empty() ? Bounds() : bounds_[static_cast<std::size_t>(index)];
  }

  // Appends the bounds of two children by monotonic constraints: the middle between their responses
  // bounds all responses below either of them.
  void keep_bounds(const Node& node, const SplitInfo& split_info) {
    if (growth_.monotonic.empty()) return;
    Bounds left = bounds_of(node.index), right = left;
    const int constraint = growth_.monotonic[static_cast<std::size_t>(split_info.feature)];
    if (constraint != 0) {
      const auto [a, b] =
          sums_.split_search().responses(totals_.of(node.index).sum, split_info.sums.data());
      (constraint > 0 ? left.upper : left.lower) = (a + b) / 2.0;
      (constraint > 0 ? right.lower : right.upper) = (a + b) / 2.0;
    }
    bounds_.push_back(left);
    bounds_.push_back(right);
  }

  // Appends, for both children, which interaction groups contain all features that were split on at
  // or above the node.
  void keep_groups(const Node& node, std::int32_t feature) {
    const std::size_t n = static_cast<std::size_t>(growth_.groups.n_rows);
    const std::size_t above = static_cast<std::size_t>(node.index) * n;
    for (std::size_t k = 0; k < 2 * n; ++k)
      groups_.push_back(groups_[above + k % n] & growth_.groups.row(k % n)[feature]);
  }
  // Returns whether some remaining interaction group of the node contains a feature.
  bool is_allowed(const Node& node, std::int32_t feature) const {
    const std::size_t n = static_cast<std::size_t>(growth_.groups.n_rows);
    if (n == 0) return true;
    for (std::size_t k = 0; k < n; ++k)
      if (groups_[static_cast<std::size_t>(node.index) * n + k] && growth_.groups.row(k)[feature])
        return true;
    return false;
  }
  std::vector<std::int32_t> allowed(const Node& node,
                                    std::span<const std::int32_t> features) const {
    std::vector<std::int32_t> some(features.begin(), features.end());
    if (!growth_.groups.n_rows) return some;
    std::erase_if(some, [&](std::int32_t j) { return !is_allowed(node, j); });
    return some;
  }

  const KeptBins& bins_;
  MovedRows<Row> rows_;
  const BinnedGrowth& growth_;
  NodeTotals& totals_;
  Sums& sums_;
  SplitInfo split_info_;                               // scratch memory of split()
  std::unordered_map<std::int32_t, Divided> divided_;  // by index
  std::vector<std::int32_t> lefts_;  // (m - 1) / 2 indices of left children, if Sums::kKeeps
  // The following have an entry for each node, in the order in which nodes were made.
  std::vector<RowRanges> ranges_;     // (m,) ranges of rows, if Sums::kKeeps
  std::vector<Bounds> bounds_;        // (m,) with monotonic constraints
  std::vector<std::uint8_t> groups_;  // (m, k) whether group k has all features split on above
};

}  // namespace
}  // namespace certree
