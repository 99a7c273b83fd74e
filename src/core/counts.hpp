// Class counts of the nodes: a dense table or, for many classes, sparse entries.
#pragma once

#include "numbers.hpp"
#include "tree.hpp"

namespace certree {

// Additive smoothing towards the parent: each node gets `rows` further rows whose classes (or mean)
// are distributed as at its parent. The weights of a node are divided by weight_unit, the mean
// weight of a row, before `rows` is added, so that the unit of the weights does not matter.
struct Smoothing {
  double rows = 0.0;
  double weight_unit = 1.0;

  // What to divide weights by. Without smoothing it is 1: the unit would cancel out, but round.
  double unit() const { return rows > 0.0 ? weight_unit : 1.0; }
};

// Sparse class counts: node v has the entries begin[v], ..., begin[v + 1] - 1, by ascending class.
struct CountEntries {
  std::span<const std::int64_t> begin;    // (m + 1,)
  std::span<const std::int32_t> classes;  // (n_entries,)
  std::span<const double> weight;         // (n_entries,) summed row weight
};

// Summed row weight of each class in each of m nodes, as a table or as entries.
struct Counts {
  Table<const double> table;  // (m, n_classes); data is null when there are entries instead
  CountEntries entries;
  std::int64_t n_classes = 0;

  bool is_table() const { return table.data != nullptr; }

  // Calls visit(k, weight) for the classes k of node v, ascending. Entries leave out classes of
  // weight 0, a table does not.
  template <class Visit>
  CERTREE_INLINE void for_each_class(std::size_t v, const Visit& visit) const {
    if (is_table()) {
      const double* row = table.row(v);
      for (std::int64_t k = 0; k < n_classes; ++k) visit(k, row[k]);
    } else {
      const auto end = static_cast<std::size_t>(entries.begin[v + 1]);
      for (auto e = static_cast<std::size_t>(entries.begin[v]); e < end; ++e)
        visit(static_cast<std::int64_t>(entries.classes[e]), entries.weight[e]);
    }
  }

  // Returns the weight of all classes in node v.
  CERTREE_INLINE double total(std::size_t v) const {
    double sum = 0.0;
    for_each_class(v, [&](std::int64_t, double weight) { sum += weight; });
    return sum;
  }

  // Returns the weight of class k in node v.
  CERTREE_INLINE double weight_of(std::size_t v, std::int64_t k) const {
    if (is_table()) return table.row(v)[k];
    const auto first = entries.classes.begin() + entries.begin[v];
    const auto last = entries.classes.begin() + entries.begin[v + 1];
    const auto found = std::lower_bound(first, last, static_cast<std::int32_t>(k));
    const bool has_class = found != last && *found == k;
    return has_class ? entries.weight[static_cast<std::size_t>(found - entries.classes.begin())]
                     : 0.0;
  }

  // Returns about how many classes for_each_class() visits per node, to count the steps of loops.
  std::int64_t classes_per_node() const {
    return is_table() ? n_classes : 1 + std::ssize(entries.classes) / std::ssize(entries.begin);
  }
};

}  // namespace certree
