// The order in which growers make their nodes.
//
// A grower owns an array of rows and a rule that splits a cell, a range of that array, in two.
// Cells larger than a fixed share of the rows are split first, one after the other; the cells below
// them are then grown independently, each into columns of its own, and appended in order. Growth up
// to a number of leaves divides the best leaf first instead. The result does not depend on the
// number of threads.
#pragma once

#include <algorithm>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <utility>
#include <vector>

#include "parallel.hpp"
#include "tree.hpp"

namespace certree {

// The rows of the cell are the grower's rows [begin, end).
struct Cell {
  std::int64_t begin;
  std::int64_t end;
  std::int32_t depth;
  std::int32_t cursor;    // the grower's own: the next coordinate of a cycle
  std::uint64_t key = 0;  // decides what is drawn in the cell
  double lower = -std::numeric_limits<double>::infinity();  // bounds of the means below the cell
  double upper = std::numeric_limits<double>::infinity();
};

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
    const std::size_t v = columns_.left.size();
    expect_room(v);
    columns_.feature.push_back(0);
    columns_.threshold.push_back(0.0);
    columns_.left.push_back(kLeaf);
    columns_.chain.push_back(1);
    columns_.missing_left.push_back(0);
    return static_cast<std::int32_t>(v);
  }

  void stop(std::int32_t node, const Split& split) {
    columns_.chain[static_cast<std::size_t>(node)] = split.chain;
  }

  // Returns the left one of two new children.
  std::int32_t divide(std::int32_t node, Split&& split) {
    const auto v = static_cast<std::size_t>(node);
    columns_.chain[v] = split.chain;
    columns_.feature[v] = split.feature;
    columns_.threshold[v] = split.threshold;
    columns_.missing_left[v] = split.missing_left;
    columns_.heuristic |= split.heuristic;
    if (!split.categories.empty()) sets_.push_back({node, std::move(split.categories)});
    const std::int32_t child = add();
    add();
    columns_.left[v] = child;
    return child;
  }

  // Puts a part in the place of the node that waited for it.
  void append(std::int32_t node, Nodes&& part) {
    const TreeColumns& from = part.columns_;
    expect_room(columns_.left.size() + from.left.size() - 1);
    const auto shift = static_cast<std::int32_t>(columns_.left.size()) - 1;
    const auto moved = [shift](std::int32_t child) {
      return child == kLeaf ? kLeaf : child + shift;
    };
    const auto v = static_cast<std::size_t>(node);
    columns_.left[v] = moved(from.left[0]);
    for (std::size_t u = 1; u < from.left.size(); ++u) columns_.left.push_back(moved(from.left[u]));
    const auto take = [v](auto& column, const auto& values) {
      column[v] = values[0];
      column.insert(column.end(), values.begin() + 1, values.end());
    };
    take(columns_.feature, from.feature);
    take(columns_.threshold, from.threshold);
    take(columns_.chain, from.chain);
    take(columns_.missing_left, from.missing_left);
    columns_.heuristic |= from.heuristic;
    for (Set& set : part.sets_)
      sets_.push_back({set.node == 0 ? node : set.node + shift, std::move(set.categories)});
    part = Nodes();
  }

  TreeColumns columns() && {
    if (!sets_.empty()) line_up_sets();
    return std::move(columns_);
  }

 private:
  struct Set {
    std::int32_t node;
    std::vector<std::int32_t> categories;
  };

  static void expect_room(std::size_t n_nodes) {
    if (n_nodes >= static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max()))
      throw std::invalid_argument("the tree would need more than 2147483647 nodes");
  }

  // Sets come in the order in which nodes were divided; the columns have them in that of the nodes.
  void line_up_sets() {
    std::sort(sets_.begin(), sets_.end(),
              [](const Set& a, const Set& b) { return a.node < b.node; });
    columns_.category_start.assign(columns_.left.size() + 1, 0);
    for (const Set& set : sets_) {
      columns_.category_start[static_cast<std::size_t>(set.node) + 1] =
          static_cast<std::int64_t>(set.categories.size());
      columns_.categories.insert(columns_.categories.end(), set.categories.begin(),
                                 set.categories.end());
    }
    std::partial_sum(columns_.category_start.begin(), columns_.category_start.end(),
                     columns_.category_start.begin());
  }

  TreeColumns columns_;
  std::vector<Set> sets_;
};

// Grows every cell, one below the other.
//
// Rule: bool split(const Cell& cell, Split& split, Cell& left, Cell& right), false for a leaf,
// which may still set split.chain. It is called from several threads on disjoint cells.
template <class Rule>
class Growth {
 public:
  Growth(const Rule& rule, std::int64_t grain) : rule_(rule), grain_(grain) {}

  static TreeColumns run(const Rule& rule, const Cell& root, int n_threads) {
    const auto grow_part = [&](const Cell& cell) { return whole(rule, cell); };
    return run(rule, root, n_threads, grow_part);
  }

  // grow_part(cell) grows a whole subtree; it is called from several threads.
  template <class GrowPart>
  static TreeColumns run(const Rule& rule, const Cell& root, int n_threads,
                         const GrowPart& grow_part) {
    // Sixty-four parts keep any sensible number of threads busy; smaller parts than 4096 rows do
    // not pay for their bookkeeping.
    const std::int64_t grain = std::max<std::int64_t>(4096, (root.end - root.begin) / 64);
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
// Rule: Cut search(const Cell& cell), with a gain and is_made(), false for a leaf;
// void divide(const Cell& cell, const Cut& cut, Split& split, Cell& left, Cell& right).
template <class Rule>
TreeColumns grow_best_first(const Rule& rule, const Cell& root, std::int64_t max_leaves) {
  struct Waiting {
    std::int32_t node;
    Cell cell;
    typename Rule::Cut cut;
  };
  const auto is_later = [](const Waiting& a, const Waiting& b) {
    return a.cut.gain < b.cut.gain || (a.cut.gain == b.cut.gain && a.node > b.node);
  };
  Nodes nodes;
  std::vector<Waiting> heap;
  const auto wait = [&](std::int32_t node, const Cell& cell) {
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
    Cell left{}, right{};
    rule.divide(next.cell, next.cut, split, left, right);
    const std::int32_t child = nodes.divide(next.node, std::move(split));
    if (n_leaves == max_leaves) break;
    wait(child, left);
    wait(child + 1, right);
  }
  return std::move(nodes).columns();
}

// The threshold of a cut between two neighbouring values: the middle of the gap, or the lower value
// where the middle rounds to the upper one or that one is an infinity, which stands for NaN.
inline double between(double low, double high) {
  if (high == std::numeric_limits<double>::infinity()) return low;
  const double middle = low * 0.5 + high * 0.5;
  return middle >= low && middle < high ? middle : low;
}

// When a cell is not split any further, whatever the partition.
struct Stopping {
  double min_rows = 1.0;            // a cell of at most this many rows is a leaf
  std::int32_t max_depth = 0;       // cells at this depth are leaves
  const std::int32_t* y = nullptr;  // (n,) class of each row: one-class cells are leaves; or null
  const double* weight = nullptr;   // (n,) positive weight of each row; null: each counts once

  // Whether the rows of a cell are too few, or of one class. Row has an index and a class y; it
  // stands for as many rows as it weighs, and for itself at least.
  template <class Row>
  bool holds(const Row* first, const Row* last) const {
    double n = 0.0;
    for (const Row* row = first; row != last && n <= min_rows; ++row)
      n += weight ? std::max(weight[row->index], 1.0) : 1.0;
    if (n <= min_rows) return true;
    return y && std::all_of(first, last, [&](const Row& row) { return row.y == first->y; });
  }
};

}  // namespace certree
