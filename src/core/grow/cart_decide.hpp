// What is decided about the cells of the greedy grower: which are leaves, which features they look
// at, and which cuts are allowed.
#pragma once

#include "grow/cart_cells.hpp"
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

  CartCell root() const {
    CartCell cell{{0, rows_.size(), 0}, false, greedy_.key};
    cell.is_leaf = is_leaf(cell);
    return cell;
  }

  // The rows of the cell that go to one side, 0 or 1, are those of [begin, end).
  CartCell child(const CartCell& cell, const Cut& cut, std::uint64_t side, std::int64_t begin,
                 std::int64_t end) const {
    CartCell part = cell;
    part.begin = begin;
    part.end = end;
    part.depth = cell.depth + 1;
    part.key = key_of(cell.key, side);
    const int sign = monotonic_sign(cut.feature);
    // All means below the left child stay on one side of the middle, those below the right child on
    // the other.
    if (sign != 0) ((sign > 0) == (side == 0) ? part.upper : part.lower) = cut.middle;
    part.is_leaf = is_leaf(part);
    return part;
  }

  // Whether there are cuts that are not allowed.
  bool forbids() const { return forbids_; }
  // Whether the cut that the sweep stands at leaves enough on both sides, and keeps to the
  // monotonic constraints and to the bounds of the cell.
  template <class Sweep>
  bool is_allowed(const Sweep& sweep, const CartCell& cell, std::int64_t j) const {
    if (!forbids_) return true;
    if (sweep.weights().least() < greedy_.min_leaf_weight) return false;
    if (rows_.counts_rows && sweep.rows().least() < greedy_.min_leaf_rows) return false;
    if (greedy_.monotonic.empty()) return true;
    const double left = sweep.mean_left(), right = sweep.mean_right();
    return std::min(left, right) >= cell.lower && std::max(left, right) <= cell.upper &&
           monotonic_sign(j) * (right - left) >= 0.0;
  }

  // Features in a random order, constant ones left out, until there are max_features: these as they
  // are looked at.
  std::vector<std::int64_t> drawn_features(const CartCell& cell) const {
    std::vector<std::int64_t> features(greedy_.feature_order.features.begin(),
                                       greedy_.feature_order.features.end());
    std::vector<std::int64_t> drawn;
    Random random(cell.key);
    for (auto n = static_cast<std::int64_t>(features.size());
         n > 0 && static_cast<std::int64_t>(drawn.size()) < greedy_.max_features; --n) {
      std::swap(features[static_cast<std::size_t>(random.below(n))],
                features[static_cast<std::size_t>(n - 1)]);
      const std::int64_t j = features[static_cast<std::size_t>(n - 1)];
      if (rows_.varies(cell, j)) drawn.push_back(j);
    }
    std::ranges::sort(drawn, std::less(),
                      [&](std::int64_t j) { return greedy_.feature_order.of(j); });
    return drawn;
  }

 private:
  bool is_leaf(const Cell& cell) const {
    if (cell.depth >= stopping_.max_depth) return true;
    const auto rows = rows_.members(cell);
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
