// Partitioning the rows of a CART node into those of its children.
#pragma once

#include "grow/cart_cells.hpp"

namespace certree {
namespace {

// Partitions all lists of rows by a split.
template <class Rows>
class Sender {
 public:
  explicit Sender(const Rows& rows)
      : rows_(rows), goes_left_(make_buffer<std::uint8_t>(rows.size())) {}

  // Marks which rows of the node go left, writes the split, and returns how many rows go left.
  std::int64_t mark(const Cell& cell, const Cut& cut, Split& split) const {
    split.feature = static_cast<std::int32_t>(cut.feature);
    split.heuristic = cut.heuristic;
    if (rows_.features->is_categorical(cut.feature)) return mark_by_set(cell, cut, split);
    return rows_.few->holds(cut.feature) ? mark_by_threshold(cell, cut, split)
                                         : mark_by_order(cell, cut, split);
  }

  // Partitions the list of members(), all that a leaf needs; then move_others() does the other
  // lists.
  void move_members(const Cell& cell, std::int64_t middle) const {
    partition(rows_.lists.n_rows - 1, cell, middle);
  }
  void move_others(const Cell& cell, std::int64_t middle, int n_threads) const {
    parallel_for(rows_.lists.n_rows - 1, threads_for(cell, n_threads),
                 [&](std::int64_t i) { partition(i, cell, middle); });
  }

 private:
  std::int64_t mark_by_order(const Cell& cell, const Cut& cut, Split& split) const {
    const auto list = rows_.list(cut.feature, cell);
    const RankedRow* const edge = list.data() + cut.n_left;
    std::int64_t n_missing = 0;
    double balance = 0.0;
    for (const auto part : chunks(list))
      for (const RankedRow& e : part) {
        const bool missing = e.rank == kMissing;
        const bool left = missing ? cut.missing_left : &e < edge;
        goes_left_[e.row] = left;
        n_missing += missing;
        balance += left ? rows_.weight_of(e) : -rows_.weight_of(e);
      }
    split.threshold = cut.threshold;
    split.missing_left = n_missing > 0 ? cut.missing_left : balance > 0.0;
    return cut.n_left + (cut.missing_left ? n_missing : 0);
  }

  // For features with few values, which have no missing values.
  std::int64_t mark_by_threshold(const Cell& cell, const Cut& cut, Split& split) const {
    const auto [n_left, balance] = mark_members(
        cell, [&](const RankedRow& e) { return rows_.x(e, cut.feature) <= cut.threshold; });
    split.threshold = cut.threshold;
    split.missing_left = balance > 0.0;
    return n_left;
  }

  // Marks the rows of a node. Returns how many go left, and their weight minus that of the others.
  template <class IsLeft>
  std::pair<std::int64_t, double> mark_members(const Cell& cell, const IsLeft& is_left) const {
    std::int64_t n_left = 0;
    double balance = 0.0;
    for (const auto part : chunks(rows_.members(cell)))
      for (const RankedRow& e : part) {
        const bool left = is_left(e);
        goes_left_[e.row] = left;
        n_left += left;
        balance += left ? rows_.weight_of(e) : -rows_.weight_of(e);
      }
    return {n_left, balance};
  }

  std::int64_t mark_by_set(const Cell& cell, const Cut& cut, Split& split) const {
    const auto& categories = rows_.features->categories_of(cut.feature);
    const std::uint32_t missing = rows_.features->missing_code(cut.feature);
    const std::uint32_t* const codes = rows_.codes_of(cut.feature);
    thread_local std::vector<std::uint8_t> in_left;
    if (in_left.size() <= missing) in_left.resize(missing + 1);
    for (const std::uint32_t code : cut.left) in_left[code] = 1;
    for (const std::uint32_t code : cut.right) in_left[code] = 0;
    const auto [n_left, balance] =
        mark_members(cell, [&](const RankedRow& e) { return in_left[codes[e.row]] != 0; });
    if (cut.left.back() == missing || cut.right.back() == missing)
      split.missing_left = cut.left.back() == missing;
    else
      split.missing_left = balance > 0.0;
    for (const std::uint32_t code : split.missing_left ? cut.right : cut.left)
      split.categories.push_back(categories[code]);
    return n_left;
  }

  // Moves the rows that go left to the front of the i-th list; both sides keep their order.
  void partition(std::int64_t i, const Cell& cell, std::int64_t middle) const {
    thread_local std::vector<RankedRow> right;
    const auto size = static_cast<std::size_t>(cell.end - middle) + 1;  // one past is written
    if (right.size() < size) right.resize(size);
    RankedRow* const list = rows_.lists.row(i);
    RankedRow* to_left = list + cell.begin;
    RankedRow* to_right = right.data();
    for (const auto part : chunks(list + cell.begin, list + cell.end))
      for (const RankedRow entry : part) {
        const std::size_t left = goes_left_[entry.row];
        *to_left = *to_right = entry;  // no branch: it would often be mispredicted
        to_left += left;
        to_right += 1 - left;
      }
    std::copy(right.data(), to_right, to_left);
  }

  Rows rows_;
  Buffer<std::uint8_t> goes_left_;  // (n,) of nodes that are being split, whose rows are disjoint
};

}  // namespace
}  // namespace certree
