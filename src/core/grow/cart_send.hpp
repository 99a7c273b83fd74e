// Partitioning the rows of a CART node into those of its children.
#pragma once

#include "grow/cart_nodes.hpp"

namespace certree {
namespace {

// Partitions all lists of rows by a split.
template <class Rows>
class Sender {
 public:
  explicit Sender(const Rows& rows)
      : rows_(rows), goes_left_(make_buffer<std::uint8_t>(rows.size())) {}

  // Marks which rows of the node go left, writes the split, and returns how many rows go left.
  std::int64_t mark(const GrowingNode& node, const SplitInfo& split_info, Split& split) const {
    split.feature = static_cast<std::int32_t>(split_info.feature);
    split.heuristic = split_info.heuristic;
    if (rows_.features->is_categorical(split_info.feature))
      return mark_by_set(node, split_info, split);
    return rows_.few->holds(split_info.feature) ? mark_by_threshold(node, split_info, split)
                                                : mark_by_order(node, split_info, split);
  }

  // Partitions the list of members(), all that a leaf needs; then move_others() does the other
  // lists.
  void move_members(const GrowingNode& node, std::int64_t middle) const {
    partition(rows_.lists.n_rows - 1, node, middle);
  }
  void move_others(const GrowingNode& node, std::int64_t middle, int n_threads) const {
    parallel_for(rows_.lists.n_rows - 1, threads_for(node, n_threads),
                 [&](std::int64_t i) { partition(i, node, middle); });
  }

 private:
  std::int64_t mark_by_order(const GrowingNode& node, const SplitInfo& split_info,
                             Split& split) const {
    const auto list = rows_.list(split_info.feature, node);
    const RankedRow* const edge = list.data() + split_info.n_left;
    std::int64_t n_missing = 0;
    double balance = 0.0;
    for (const auto part : chunks(list))
      for (const RankedRow& e : part) {
        const bool missing = e.rank == kMissing;
        const bool left = missing ? split_info.missing_left : &e < edge;
        goes_left_[e.row] = left;
        n_missing += missing;
        balance += left ? rows_.weight_of(e) : -rows_.weight_of(e);
      }
    split.threshold = split_info.threshold;
    split.missing_left = n_missing > 0 ? split_info.missing_left : balance > 0.0;
    return split_info.n_left + (split_info.missing_left ? n_missing : 0);
  }

  // For features with few values, which have no missing values.
  std::int64_t mark_by_threshold(const GrowingNode& node, const SplitInfo& split_info,
                                 Split& split) const {
    const Marked marked = mark_members(node, [&](const RankedRow& e) {
      return rows_.x(e, split_info.feature) <= split_info.threshold;
    });
    split.threshold = split_info.threshold;
    split.missing_left = marked.balance > 0.0;
    return marked.n_left;
  }

  // How many rows go left, their weight minus that of the others, and the weight of all.
  struct Marked {
    std::int64_t n_left = 0;
    double balance = 0.0, weight = 0.0;

    // Returns whether the left child has the greater weight, or both are equal up to rounding.
    bool is_left_heavier() const { return balance >= -kRounding * weight; }

    static constexpr double kRounding = 1e-12;
  };

  // Marks the rows of a node.
  template <class IsLeft>
  Marked mark_members(const GrowingNode& node, const IsLeft& is_left) const {
    Marked marked;
    for (const auto part : chunks(rows_.members(node)))
      for (const RankedRow& e : part) {
        const bool left = is_left(e);
        goes_left_[e.row] = left;
        marked.n_left += left;
        marked.balance += left ? rows_.weight_of(e) : -rows_.weight_of(e);
        marked.weight += rows_.weight_of(e);
      }
    return marked;
  }

  std::int64_t mark_by_set(const GrowingNode& node, const SplitInfo& split_info,
                           Split& split) const {
    const auto& categories = rows_.features->categories_of(split_info.feature);
    const std::uint32_t missing = rows_.features->missing_code(split_info.feature);
    const std::uint32_t* const codes = rows_.codes_of(split_info.feature);
    thread_local std::vector<std::uint8_t> in_left;
    if (in_left.size() <= missing) in_left.resize(missing + 1);
    for (const std::uint32_t code : split_info.left) in_left[code] = 1;
    for (const std::uint32_t code : split_info.right) in_left[code] = 0;
    const Marked marked =
        mark_members(node, [&](const RankedRow& e) { return in_left[codes[e.row]] != 0; });
    if (split_info.left.back() == missing || split_info.right.back() == missing)
      split.missing_left = split_info.left.back() == missing;
    else
      split.missing_left = marked.balance > 0.0;
    split.unseen_left = marked.is_left_heavier();
    for (const std::uint32_t code : split.unseen_left ? split_info.right : split_info.left)
      if (code != missing) split.categories.push_back(categories[code]);
    split.replace_empty_set();
    return marked.n_left;
  }

  // Moves the rows that go left to the front of the i-th list; the rows of both children keep their
  // order.
  void partition(std::int64_t i, const GrowingNode& node, std::int64_t middle) const {
    thread_local std::vector<RankedRow> right;
    const auto size = static_cast<std::size_t>(node.end - middle) + 1;  // one past is written
    if (right.size() < size) right.resize(size);
    RankedRow* const list = rows_.lists.row(i);
    RankedRow* to_left = list + node.begin;
    RankedRow* to_right = right.data();
    for (const auto part : chunks(list + node.begin, list + node.end))
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
