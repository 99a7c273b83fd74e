// The order in which growers split nodes, and the nodes of a tree under construction.
//
// A grower has an array of rows, and a rule that splits a growing node, whose rows are a range of
// that array. Nodes with more than a fixed fraction of the rows are split first, one after the
// other. The subtrees below them are then grown independently, each with nodes of its own, and
// appended in order. With a limit on leaves, the best leaf is split first instead. The result does
// not depend on the number of threads.
#pragma once

#include <stdexcept>

#include "grow/grow.hpp"
#include "grow/thresholds.hpp"
#include "parallel.hpp"

namespace certree {

// A node that is being grown: it has the grower's rows [begin, end). Growers that need more data of
// a node derive from this type.
struct GrowingNode {
  std::int64_t begin;
  std::int64_t end;
  std::int32_t depth;
};

// The split of a node, as in the columns of a tree.
struct Split {
  std::int32_t feature = 0;
  double threshold = 0.0;
  std::int32_t chain = 1;
  bool missing_left = false;
  bool unseen_left = false;
  bool heuristic = false;
  std::vector<std::int32_t> categories;  // ascending; empty: split by the threshold

  // Returns both directions as one entry of the column default_left.
  std::uint8_t default_left() const {
    return static_cast<std::uint8_t>((missing_left ? kMissingLeft : 0) |
                                     (unseen_left ? kUnseenLeft : 0));
  }
  void set_default_left(std::uint8_t flags) {
    missing_left = (flags & kMissingLeft) != 0;
    unseen_left = (flags & kUnseenLeft) != 0;
  }
  // Makes a split on categories that has no set, as only NaN goes to the other child than unseen
  // categories, a split by a threshold.
  void replace_empty_set() {
    if (!categories.empty()) return;
    threshold = unseen_left ? kAllLeft : kAllRight;
    unseen_left = false;
  }
};

// The nodes of a tree that is being grown.
class Nodes {
 public:
  // Adds a leaf and returns its number.
  std::int32_t add() {
    expect_room(nodes_.size());
    nodes_.emplace_back();
    return static_cast<std::int32_t>(nodes_.size() - 1);
  }

  // Makes a node a leaf, which takes only the chain of the split.
  void stop(std::int32_t node, const Split& split) { at(node).chain = split.chain; }

  // Splits a node and returns its left child; the right one is the next number.
  std::int32_t divide(std::int32_t node, Split&& split) {
    const std::int32_t child = add();
    add();
    at(node) = {split.threshold, split.feature, child, split.chain, split.default_left()};
    heuristic_ |= split.heuristic;
    if (!split.categories.empty()) sets_.push_back({node, std::move(split.categories)});
    return child;
  }

  // Replaces a leaf by a subtree that was grown independently.
  void append(std::int32_t node, Nodes&& part) {
    expect_room(nodes_.size() + part.nodes_.size() - 1);
    const auto shift = static_cast<std::int32_t>(nodes_.size()) - 1;
    count_steps(part.nodes_.size());
    for (Node& from : part.nodes_)
      if (from.left != kLeaf) from.left += shift;
    at(node) = part.nodes_.front();
    nodes_.insert(nodes_.end(), part.nodes_.begin() + 1, part.nodes_.end());
    heuristic_ |= part.heuristic_;
    for (Set& set : part.sets_)
      sets_.push_back({set.node == 0 ? node : set.node + shift, std::move(set.categories)});
    part = Nodes();
  }

  // Converts the nodes to columns.
  TreeColumns columns() && {
    TreeColumns columns;
    const auto take = [&](auto& column, auto field) {
      column.reserve(nodes_.size());
      for (const auto part : chunks(std::span(std::as_const(nodes_))))
        for (const Node& node : part) column.push_back(node.*field);
    };
    take(columns.feature, &Node::feature);
    take(columns.threshold, &Node::threshold);
    take(columns.left, &Node::left);
    take(columns.chain, &Node::chain);
    take(columns.default_left, &Node::default_left);
    columns.heuristic = heuristic_;
    if (!sets_.empty()) write_sets(columns);
    return columns;
  }

 private:
  struct Node {
    double threshold = 0.0;
    std::int32_t feature = 0;
    std::int32_t left = kLeaf;
    std::int32_t chain = 1;
    std::uint8_t default_left = 0;
  };
  struct Set {
    std::int32_t node;
    std::vector<std::int32_t> categories;
  };

  Node& at(std::int32_t node) { return nodes_[static_cast<std::size_t>(node)]; }

  static void expect_room(std::size_t n_nodes) {
    if (n_nodes >= static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max()))
      throw std::invalid_argument("the tree would need more than 2147483647 nodes");
  }

  // Writes the sets of categories, sorted by node: so far they are in the order of the splits.
  void write_sets(TreeColumns& columns) {
    std::sort(sets_.begin(), sets_.end(),
              [](const Set& a, const Set& b) { return a.node < b.node; });
    columns.category_start.assign(nodes_.size() + 1, 0);
    for (const Set& set : sets_) {
      columns.category_start[static_cast<std::size_t>(set.node) + 1] =
          static_cast<std::int64_t>(set.categories.size());
      columns.categories.insert(columns.categories.end(), set.categories.begin(),
                                set.categories.end());
    }
    std::partial_sum(columns.category_start.begin(), columns.category_start.end(),
                     columns.category_start.begin());
  }

  std::vector<Node> nodes_;
  std::vector<Set> sets_;
  bool heuristic_ = false;
};

// About how many subtrees are grown independently: enough to keep many threads busy.
inline constexpr std::int64_t kParts = 64;

// Grows a tree by splitting every node until the rule returns leaves.
//
// Rule has a type Node and a function bool split(const Node& node, Split& split, Node& left, Node&
// right). It returns false for a leaf, and may then still set split.chain. It is called from
// several threads for different nodes.
template <class Rule>
class Growth {
 public:
  using Node = typename Rule::Node;

  Growth(const Rule& rule, std::int64_t grain) : rule_(rule), grain_(grain) {}

  static TreeColumns run(const Rule& rule, const Node& root, int n_threads) {
    const auto grow_part = [&](const Node& node) { return whole(rule, node); };
    return run(rule, root, n_threads, grow_part);
  }

  // grow_part(node) grows a subtree and returns its nodes; it is called from several threads.
  template <class GrowPart>
  static TreeColumns run(const Rule& rule, const Node& root, int n_threads,
                         const GrowPart& grow_part) {
    // The overhead of a subtree with fewer than 4096 rows would exceed its gain.
    const std::int64_t grain = std::max<std::int64_t>(4096, (root.end - root.begin) / kParts);
    Growth top(rule, grain);
    top.grow(root);
    std::vector<Nodes> parts(top.pending_.size());
    parallel_for(static_cast<std::int64_t>(parts.size()), n_threads, [&](std::int64_t i) {
      const auto k = static_cast<std::size_t>(i);
      parts[k] = grow_part(top.pending_[k].second);
    });
    for (std::size_t k = 0; k < parts.size(); ++k)
      top.nodes_.append(top.pending_[k].first, std::move(parts[k]));
    return std::move(top.nodes_).columns();
  }

  // Grows a subtree in this thread and returns its nodes.
  static Nodes whole(const Rule& rule, const Node& node) {
    Growth growth(rule, 0);
    growth.grow(node);
    return std::move(growth.nodes_);
  }

 private:
  using Pending = std::pair<std::int32_t, Node>;

  // Splits all nodes below the root with more than grain_ rows; the others are left to pending_.
  void grow(const Node& root) {
    std::vector<Pending> stack{{nodes_.add(), root}};
    while (!stack.empty()) {
      const auto [index, node] = stack.back();
      stack.pop_back();
      count_steps(node.end - node.begin);
      if (node.end - node.begin <= grain_) {
        pending_.push_back({index, node});
        continue;
      }
      Split split;
      Node left{}, right{};
      if (!rule_.split(node, split, left, right)) {
        nodes_.stop(index, split);
        continue;
      }
      const std::int32_t child = nodes_.divide(index, std::move(split));
      stack.push_back({child + 1, right});
      stack.push_back({child, left});
    }
  }

  const Rule& rule_;
  std::int64_t grain_;
  Nodes nodes_;
  std::vector<Pending> pending_;
};

// Grows a tree best first: always splits the leaf of the largest gain, on ties the oldest, until
// there are max_leaves leaves.
//
// Rule has types Node and SplitInfo, a function SplitInfo search(const Node& node), which returns
// the best split of a node (with a gain, and is_made(), false for a leaf), and void divide(const
// Node& node, const SplitInfo& split_info, Split& split, Node& left, Node& right), which performs
// it. A rule that searches several nodes at a time has a function void look_ahead(...), which is
// told before a division which leaves may be divided next.
template <class Rule>
TreeColumns grow_best_first(const Rule& rule, const typename Rule::Node& root,
                            std::int64_t max_leaves) {
  struct Candidate {
    std::int32_t index;
    typename Rule::Node node;
    typename Rule::SplitInfo split_info;
  };
  const auto is_later = [](const Candidate& a, const Candidate& b) {
    return a.split_info.gain < b.split_info.gain ||
           (a.split_info.gain == b.split_info.gain && a.index > b.index);
  };
  Nodes nodes;
  std::vector<Candidate> heap;  // the node queue
  const auto push = [&](std::int32_t index, const auto& node) {
    auto split_info = rule.search(node);
    if (!split_info.is_made()) return;
    heap.push_back({index, node, std::move(split_info)});
    std::push_heap(heap.begin(), heap.end(), is_later);
  };
  const std::int32_t first = nodes.add();
  if (max_leaves > 1) push(first, root);
  for (std::int64_t n_leaves = 2; !heap.empty(); ++n_leaves) {
    std::pop_heap(heap.begin(), heap.end(), is_later);
    const Candidate next = std::move(heap.back());
    heap.pop_back();
    if constexpr (requires { rule.look_ahead(next, heap, is_later, max_leaves); })
      rule.look_ahead(next, heap, is_later, max_leaves - n_leaves);
    Split split;
    typename Rule::Node left{}, right{};
    rule.divide(next.node, next.split_info, split, left, right);
    const std::int32_t child = nodes.divide(next.index, std::move(split));
    if (n_leaves == max_leaves) break;
    push(child, left);
    push(child + 1, right);
  }
  return std::move(nodes).columns();
}

// The bounding box of the rows: (p,) each; low > high if all values of a feature are missing.
struct Box {
  std::vector<double> low, high;

  template <class Real>
  explicit Box(const Table<const Real>& X)
      : low(static_cast<std::size_t>(X.width), kInfinity), high(low.size(), -kInfinity) {
    for (const std::size_t i : indices(X.n_rows, X.width))
      for (std::size_t j = 0; j < low.size(); ++j) {  // comparisons with NaN are false
        const double x = X.row(i)[j];
        low[j] = x < low[j] ? x : low[j];
        high[j] = x > high[j] ? x : high[j];
      }
  }
  double half_range(std::size_t j) const { return high[j] * 0.5 - low[j] * 0.5; }
};

}  // namespace certree
