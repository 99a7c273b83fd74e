// The order in which growers make their nodes.
//
// A grower owns an array of rows and a rule that splits a cell, a range of that array, in two.
// Cells larger than a fixed share of the rows are split first, one after the other; the cells below
// them are then grown independently, each into columns of its own, and appended in order. Growth up
// to a number of leaves divides the best leaf first instead. The result does not depend on the
// number of threads.
#pragma once

#include <stdexcept>

#include "grow/grow.hpp"
#include "grow/thresholds.hpp"
#include "parallel.hpp"

namespace certree {

// The rows of the cell are the grower's rows [begin, end). A grower whose cells need more of what
// happened above them has a type of its own.
struct Cell {
  std::int64_t begin;
  std::int64_t end;
  std::int32_t depth;
};

// How a cell is cut, as the columns of a tree say it.
struct Split {
  std::int32_t feature = 0;
  double threshold = 0.0;
  std::int32_t chain = 1;
  bool missing_left = false;
  bool heuristic = false;
  std::vector<std::int32_t> categories;  // ascending; empty: the threshold is compared
};

// The nodes of a tree that is being grown.
class Nodes {
 public:
  std::int32_t add() {
    expect_room(nodes_.size());
    nodes_.emplace_back();
    return static_cast<std::int32_t>(nodes_.size() - 1);
  }

  void stop(std::int32_t node, const Split& split) { at(node).chain = split.chain; }

  // Returns the left one of two new children.
  std::int32_t divide(std::int32_t node, Split&& split) {
    const std::int32_t child = add();
    add();
    at(node) = {split.threshold, split.feature, child, split.chain, split.missing_left};
    heuristic_ |= split.heuristic;
    if (!split.categories.empty()) sets_.push_back({node, std::move(split.categories)});
    return child;
  }

  // Puts a part in the place of the node that waited for it.
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
    take(columns.missing_left, &Node::missing_left);
    columns.heuristic = heuristic_;
    if (!sets_.empty()) line_up_sets(columns);
    return columns;
  }

 private:
  struct Node {
    double threshold = 0.0;
    std::int32_t feature = 0;
    std::int32_t left = kLeaf;
    std::int32_t chain = 1;
    std::uint8_t missing_left = 0;
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

  // Sets come in the order in which nodes were divided; the columns have them in that of the nodes.
  void line_up_sets(TreeColumns& columns) {
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

// So many parts keep any sensible number of threads busy.
inline constexpr std::int64_t kParts = 64;

// Grows every cell, one below the other.
//
// Rule: a type Cell; bool split(const Cell& cell, Split& split, Cell& left, Cell& right), false for
// a leaf, which may still set split.chain. It is called from several threads on disjoint cells.
template <class Rule>
class Growth {
 public:
  using Cell = typename Rule::Cell;

  Growth(const Rule& rule, std::int64_t grain) : rule_(rule), grain_(grain) {}

  static TreeColumns run(const Rule& rule, const Cell& root, int n_threads) {
    const auto grow_part = [&](const Cell& cell) { return whole(rule, cell); };
    return run(rule, root, n_threads, grow_part);
  }

  // grow_part(cell) grows a whole subtree; it is called from several threads.
  template <class GrowPart>
  static TreeColumns run(const Rule& rule, const Cell& root, int n_threads,
                         const GrowPart& grow_part) {
    // Smaller parts than 4096 rows do not pay for their bookkeeping.
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

  static Nodes whole(const Rule& rule, const Cell& cell) {
    Growth growth(rule, 0);
    growth.grow(cell);
    return std::move(growth.nodes_);
  }

 private:
  using Waiting = std::pair<std::int32_t, Cell>;

  // Cells of at most grain_ rows are put off to pending_, unless grain_ is 0.
  void grow(const Cell& root) {
    std::vector<Waiting> stack{{nodes_.add(), root}};
    while (!stack.empty()) {
      const auto [node, cell] = stack.back();
      stack.pop_back();
      count_steps(cell.end - cell.begin);
      if (cell.end - cell.begin <= grain_) {
        pending_.push_back({node, cell});
        continue;
      }
      Split split;
      Cell left{}, right{};
      if (!rule_.split(cell, split, left, right)) {
        nodes_.stop(node, split);
        continue;
      }
      const std::int32_t child = nodes_.divide(node, std::move(split));
      stack.push_back({child + 1, right});
      stack.push_back({child, left});
    }
  }

  const Rule& rule_;
  std::int64_t grain_;
  Nodes nodes_;
  std::vector<Waiting> pending_;
};

// Always divides the leaf whose cut gains most, of equal ones that which was made first, until
// there are max_leaves leaves.
//
// Rule: types Cell and Cut; Cut search(const Cell& cell), with a gain and is_made(), false for a
// leaf; void divide(const Cell& cell, const Cut& cut, Split& split, Cell& left, Cell& right).
template <class Rule>
TreeColumns grow_best_first(const Rule& rule, const typename Rule::Cell& root,
                            std::int64_t max_leaves) {
  struct Waiting {
    std::int32_t node;
    typename Rule::Cell cell;
    typename Rule::Cut cut;
  };
  const auto is_later = [](const Waiting& a, const Waiting& b) {
    return a.cut.gain < b.cut.gain || (a.cut.gain == b.cut.gain && a.node > b.node);
  };
  Nodes nodes;
  std::vector<Waiting> heap;
  const auto wait = [&](std::int32_t node, const auto& cell) {
    auto cut = rule.search(cell);
    if (!cut.is_made()) return;
    heap.push_back({node, cell, std::move(cut)});
    std::push_heap(heap.begin(), heap.end(), is_later);
  };
  const std::int32_t first = nodes.add();
  if (max_leaves > 1) wait(first, root);
  for (std::int64_t n_leaves = 2; !heap.empty(); ++n_leaves) {
    std::pop_heap(heap.begin(), heap.end(), is_later);
    const Waiting next = std::move(heap.back());
    heap.pop_back();
    Split split;
    typename Rule::Cell left{}, right{};
    rule.divide(next.cell, next.cut, split, left, right);
    const std::int32_t child = nodes.divide(next.node, std::move(split));
    if (n_leaves == max_leaves) break;
    wait(child, left);
    wait(child + 1, right);
  }
  return std::move(nodes).columns();
}

// The smallest box that holds the rows: (p,) each; low is above high where all values are missing.
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
