// The order in which every grower makes its nodes.
//
// A grower owns an array of rows and a rule that splits a cell, a range of that array, in two.
// Cells larger than a fixed share of the rows are split first, one after the other; the cells below
// them are then grown independently, each into columns of its own, and appended in order. The
// result does not depend on the number of threads.
#pragma once

#include <limits>
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
  std::int32_t cursor;  // the grower's own: the next coordinate of a cycle
};

struct Split {
  std::int32_t feature = 0;
  double threshold = 0.0;
  std::int32_t chain = 1;
  bool missing_left = false;
};

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
    std::vector<TreeColumns> parts(top.pending_.size());
    parallel_for(static_cast<std::int64_t>(parts.size()), n_threads, [&](std::int64_t i) {
      const auto k = static_cast<std::size_t>(i);
      parts[k] = grow_part(top.pending_[k].second);
    });
    for (std::size_t k = 0; k < parts.size(); ++k) {
      top.append(top.pending_[k].first, parts[k]);
      parts[k] = TreeColumns();
    }
    return std::move(top.columns_);
  }

  static TreeColumns whole(const Rule& rule, const Cell& cell) {
    Growth growth(rule, 0);
    growth.grow(cell);
    return std::move(growth.columns_);
  }

 private:
  using Waiting = std::pair<std::int32_t, Cell>;

  // Cells of at most grain_ rows are put off to pending_, unless grain_ is 0.
  void grow(const Cell& root) {
    std::vector<Waiting> stack{{add(), root}};
    while (!stack.empty()) {
      const auto [node, cell] = stack.back();
      stack.pop_back();
      if (cell.end - cell.begin <= grain_) {
        pending_.push_back({node, cell});
        continue;
      }
      Split split;
      Cell left{}, right{};
      const bool divided = rule_.split(cell, split, left, right);
      const auto v = static_cast<std::size_t>(node);
      columns_.chain[v] = split.chain;
      if (!divided) continue;
      columns_.feature[v] = split.feature;
      columns_.threshold[v] = split.threshold;
      columns_.missing_left[v] = split.missing_left;
      const std::int32_t child = add();
      add();
      columns_.left[v] = child;
      stack.push_back({child + 1, right});
      stack.push_back({child, left});
    }
  }

  std::int32_t add() {
    const std::size_t v = columns_.left.size();
    if (v >= static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max()))
      throw std::invalid_argument("the tree would need more than 2147483647 nodes");
    columns_.feature.push_back(0);
    columns_.threshold.push_back(0.0);
    columns_.left.push_back(kLeaf);
    columns_.chain.push_back(1);
    columns_.missing_left.push_back(0);
    return static_cast<std::int32_t>(v);
  }

  // Puts a part in the place of the node that waited for it.
  void append(std::int32_t node, const TreeColumns& part) {
    const std::size_t total = columns_.left.size() + part.left.size() - 1;
    if (total >= static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max()))
      throw std::invalid_argument("the tree would need more than 2147483647 nodes");
    const auto shift = static_cast<std::int32_t>(columns_.left.size()) - 1;
    const auto moved = [shift](std::int32_t child) {
      return child == kLeaf ? kLeaf : child + shift;
    };
    const auto v = static_cast<std::size_t>(node);
    columns_.left[v] = moved(part.left[0]);
    for (std::size_t u = 1; u < part.left.size(); ++u) columns_.left.push_back(moved(part.left[u]));
    const auto take = [v](auto& column, const auto& from) {
      column[v] = from[0];
      column.insert(column.end(), from.begin() + 1, from.end());
    };
    take(columns_.feature, part.feature);
    take(columns_.threshold, part.threshold);
    take(columns_.chain, part.chain);
    take(columns_.missing_left, part.missing_left);
  }

  const Rule& rule_;
  std::int64_t grain_;
  TreeColumns columns_;
  std::vector<Waiting> pending_;
};

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
