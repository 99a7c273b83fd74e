// Weights of the classes in every node: a table or, where most of it would be zeros, its entries.
#pragma once

#include "numbers.hpp"
#include "tree.hpp"

namespace certree {

// Rows like those of its parent that are added to the rows of a node. The sums of a node are
// divided by the mean weight of a row first, so that no unit of weights matters.
struct Smoothing {
  double rows = 0.0;
  double weight_unit = 1.0;

  // Where no row is added the unit cancels out, and sums stay exact.
  double unit() const { return rows > 0.0 ? weight_unit : 1.0; }
};

// Entries begin[v], ..., begin[v + 1] - 1 are those of node v, by ascending class.
struct CountEntries {
  std::span<const std::int64_t> begin;  // (m + 1,)
  std::span<const std::int32_t> classes;
  std::span<const double> weight;
};

struct Counts {
  Table<const double> table;  // (m, n_classes), or without data: there are entries instead
  CountEntries entries;
  std::int64_t n_classes = 0;

  bool is_table() const { return table.data != nullptr; }

  // visit(k, weight) sees classes of a node, ascending; those without rows may be left out.
  template <class Visit>
  CERTREE_INLINE void each(std::size_t v, const Visit& visit) const {
    if (is_table()) {
      const double* row = table.row(v);
      for (std::int64_t k = 0; k < n_classes; ++k) visit(k, row[k]);
    } else {
      const auto end = static_cast<std::size_t>(entries.begin[v + 1]);
      for (auto e = static_cast<std::size_t>(entries.begin[v]); e < end; ++e)
        visit(static_cast<std::int64_t>(entries.classes[e]), entries.weight[e]);
    }
  }

  CERTREE_INLINE double total(std::size_t v) const {
    double sum = 0.0;
    each(v, [&](std::int64_t, double weight) { sum += weight; });
    return sum;
  }

  CERTREE_INLINE double of(std::size_t v, std::int64_t k) const {
    if (is_table()) return table.row(v)[k];
    const auto first = entries.classes.begin() + entries.begin[v];
    const auto last = entries.classes.begin() + entries.begin[v + 1];
    const auto found = std::lower_bound(first, last, static_cast<std::int32_t>(k));
    const bool is_there = found != last && *found == k;
    return is_there ? entries.weight[static_cast<std::size_t>(found - entries.classes.begin())]
                    : 0.0;
  }

  // About so many classes a node has here.
  std::int64_t width() const {
    return is_table() ? n_classes : 1 + std::ssize(entries.classes) / std::ssize(entries.begin);
  }
};

}  // namespace certree
