// What is decided about the nodes of the greedy grower: which are leaves, which features they
// compare, and which splits are allowed.
#pragma once

#include "grow/cart_nodes.hpp"
#include "grow/random.hpp"

namespace certree {
namespace {

template <class Rows>
class Decisions {
 public:
  Decisions(const Rows& rows, const Stopping& stopping, const Greedy& greedy)
      : rows_(rows),
        stopping_(stopping),
        greedy_(greedy),
        forbids_(!greedy.monotonic.empty() || greedy.min_leaf_weight > 0.0 || rows.counts_rows) {}

  CartNode root() const {
    CartNode node{{0, rows_.size(), 0}, false, greedy_.key};
    node.is_leaf = is_leaf(node);
    return node;
  }

  // Returns the left (which = 0) or the right child (1) of a node, with the rows [begin, end).
  CartNode child(const CartNode& node, const SplitInfo& split_info, std::uint64_t which,
                 std::int64_t begin, std::int64_t end) const {
    CartNode part = node;
    part.begin = begin;
    part.end = end;
    part.depth = node.depth + 1;
    part.key = key_of(node.key, which);
    const int sign = monotonic_sign(split_info.feature);
    // The middle bounds all means below the left child from one direction, and those below the
    // right child from the other.
    if (sign != 0) ((sign > 0) == (which == 0) ? part.upper : part.lower) = split_info.middle;
    part.is_leaf = is_leaf(part);
    return part;
  }

  // Whether there are splits that are not allowed.
  bool forbids() const { return forbids_; }
  // Whether the split that the sweep stands at leaves enough in both children, and keeps to the
  // monotonic constraints and to the bounds of the node.
  template <class Sweep>
  bool is_allowed(const Sweep& sweep, const CartNode& node, std::int64_t j) const {
    if (!forbids_) return true;
    if (sweep.weights().least() < greedy_.min_leaf_weight) return false;
    if (rows_.counts_rows && sweep.rows().least() < greedy_.min_leaf_rows) return false;
    if (greedy_.monotonic.empty()) return true;
    const double left = sweep.mean_left(), right = sweep.mean_right();
    return std::min(left, right) >= node.lower && std::max(left, right) <= node.upper &&
           monotonic_sign(j) * (right - left) >= 0.0;
  }

  // Features in a random order, constant ones left out, until there are max_features: these in the
  // order in which they are compared.
  std::vector<std::int64_t> drawn_features(const CartNode& node) const {
    std::vector<std::int64_t> features(greedy_.feature_order.features.begin(),
                                       greedy_.feature_order.features.end());
    std::vector<std::int64_t> drawn;
    Random random(node.key);
    for (auto n = static_cast<std::int64_t>(features.size());
         n > 0 && static_cast<std::int64_t>(drawn.size()) < greedy_.max_features; --n) {
      std::swap(features[static_cast<std::size_t>(random.below(n))],
                features[static_cast<std::size_t>(n - 1)]);
      const std::int64_t j = features[static_cast<std::size_t>(n - 1)];
      if (rows_.varies(node, j)) drawn.push_back(j);
    }
    std::ranges::sort(drawn, std::less(),
                      [&](std::int64_t j) { return greedy_.feature_order.of(j); });
    return drawn;
  }

 private:
  bool is_leaf(const GrowingNode& node) const {
    if (node.depth >= stopping_.max_depth) return true;
    const auto rows = rows_.members(node);
    if (stopping_.too_few(std::ssize(rows))) return true;
    for (std::int64_t k = 0; k < rows_.y.n_rows; ++k) {
      const auto* const y = rows_.y.row(k);
      const auto head = y[rows.front().row];
      if (!all_of(rows, [&](const RankedRow& e) { return y[e.row] == head; })) return false;
    }
    return true;
  }

  int monotonic_sign(std::int64_t j) const {
    return greedy_.monotonic.empty() ? 0 : greedy_.monotonic[static_cast<std::size_t>(j)];
  }

  Rows rows_;
  Stopping stopping_;
  Greedy greedy_;
  bool forbids_;
};

}  // namespace
}  // namespace certree
