// The growers of single trees, and the limits and rules that they follow.
#pragma once

#include "grow/feature_order.hpp"
#include "tree.hpp"

namespace certree {

// When a node is not split any further, whatever the grower.
struct Stopping {
  double min_samples_split;         // a node of fewer rows is a leaf
  std::int32_t max_depth;           // nodes at this depth are leaves
  std::span<const std::int32_t> y;  // (n,) class of each row: one-class nodes are leaves; or empty
  std::span<const double> weight;   // (n,) positive weight of each row; empty: 1 each

  // Whether rows are too few; each counts once, whatever its weight.
  bool too_few(std::int64_t n_rows) const {
    return static_cast<double>(n_rows) < min_samples_split;
  }
  // Whether the rows of a node are too few, or of one class. Row has a class y.
  template <class Row>
  bool holds(const Row* first, const Row* last) const {
    if (too_few(last - first)) return true;
    const auto same = [&](const Row& row) { return row.y == first->y; };
    return !y.empty() && all_of(std::span(first, last), same);
  }
  // 0 where there are none.
  std::int32_t class_of(std::int64_t i) const {
    return y.empty() ? 0 : y[static_cast<std::size_t>(i)];
  }
};

// X is (n_rows, n_features). The region of a node is halved, in the box that the rows span, along
// one coordinate after the other; expand stores the halves without rows, too.
template <class Real>
TreeColumns grow_dyadic(Table<const Real> X, const Stopping& stopping, bool expand, int n_threads);

enum class Axis { cycle, spread };

template <class Real>
TreeColumns grow_kd(Table<const Real> X, const Stopping& stopping, Axis axis, int n_threads);

// What a greedy split maximises the decrease of.
enum class Criterion { gini, entropy, misclassification, squared, absolute, poisson };

// Whether a criterion is one of numbers; others are of classes.
inline bool is_of_numbers(Criterion criterion) {
  return criterion == Criterion::squared || criterion == Criterion::absolute ||
         criterion == Criterion::poisson;
}

// Classes y in 0 .. n_classes - 1, or numbers target; of several responses the criterion is the
// sum, for gini, entropy and squared.
struct Response {
  Criterion criterion;
  Table<const std::int32_t> y;  // (number of responses, n); or empty
  std::int32_t n_classes;
  Table<const double> target;  // likewise

  std::int64_t n_responses() const { return std::max(y.n_rows, target.n_rows); }
  bool is_summed() const {
    return criterion == Criterion::gini || criterion == Criterion::entropy ||
           criterion == Criterion::squared;
  }
};

// A row in a feature's list; equal values have equal ranks, missing ones the largest of all.
struct RankedRow {
  std::uint32_t rank;
  std::uint32_t row;
};

// order: (number of features of numbers, n_rows), the rows in the order of each one's values;
// category: (n_features,) whether a feature holds categories, or empty.
template <class Real>
void rank_rows(Table<const Real> X, std::span<const std::uint8_t> category, int n_threads,
               Table<RankedRow> order);

// Rows ranked beforehand, of which a tree grows on some. Without a place the grower ranks its own.
struct Ranked {
  Table<const RankedRow> order;         // (number of features of numbers, n_rows)
  std::span<const std::int32_t> place;  // (n_rows,) ascending, -1: not among the grower's rows
};

// Which splits a greedy grower compares, and which of them it makes.
struct Greedy {
  double min_gain;       // a split whose decrease, rows times impurity (nats), is below is not made
  double min_leaf_rows;  // in either child of a split, each row counted once
  double min_leaf_weight;                  // sum of weights in either child of a split
  std::int64_t max_leaves;                 // 0: no limit; else the best leaf is split first
  std::int64_t max_features;               // non-constant features compared in a node, drawn
  bool random_splits;                      // one random split of each feature instead of all
  std::uint64_t key;                       // decides what is drawn
  std::span<const std::uint8_t> category;  // (p,) whether a feature holds categories; or empty
  std::span<const std::int8_t> monotonic;  // (p,) 1: rising, -1: falling, 0: free; or empty
  const FeatureOrder& feature_order;       // in which features are compared, and drawn of
};

template <class Real>
TreeColumns grow_cart(Table<const Real> X, const Ranked& ranked, const Response& response,
                      const Stopping& stopping, const Greedy& greedy, int n_threads);

}  // namespace certree
