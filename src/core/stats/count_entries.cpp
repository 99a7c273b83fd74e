// Sparse class counts: every leaf lists its classes, and parents merge the lists of their children.

#include "stats/stats.hpp"

namespace certree {
namespace {

struct Entry {
  std::int32_t class_number;
  double weight;
};

// Rows sorted by leaf, and within a leaf by their number: leaf v has the rows order[first[v]], ...,
// order[first[v + 1] - 1].
struct RowsByLeaf {
  std::vector<std::size_t> first, order;

  RowsByLeaf(std::size_t n_nodes, const RoutedRows& rows) : first(n_nodes + 1), order(rows.size()) {
    for (const std::size_t i : indices(rows.size())) ++first[rows.leaf_of(i) + 1];
    for (const std::size_t v : indices(n_nodes)) first[v + 1] += first[v];
    std::vector<std::size_t> next(first.begin(), first.end() - 1);
    for (const std::size_t i : indices(rows.size())) order[next[rows.leaf_of(i)]++] = i;
  }
};

// Merges the entries of each class in a list that is sorted by class, and drops weights of 0.
void merge_classes(std::vector<Entry>& list) {
  std::size_t n = 0;
  for (const Entry& entry : list) {
    if (entry.weight == 0.0) continue;
    if (n > 0 && list[n - 1].class_number == entry.class_number)
      list[n - 1].weight += entry.weight;
    else
      list[n++] = entry;
  }
  list.resize(n);
}

}  // namespace

CountedEntries count_entries(Shape tree, const RoutedRows& rows, std::span<const std::int32_t> y) {
  const std::size_t m = tree.size();
  const RowsByLeaf by_leaf(m, rows);
  const auto by_class = [](const Entry& a, const Entry& b) {
    return a.class_number < b.class_number;
  };
  CountedEntries counted;
  counted.begin.assign(m + 1, 0);
  std::vector<std::vector<Entry>> lists(m);  // freed once the parent has merged them
  // Nodes are visited from the last one down, so the columns are filled backwards and reversed at
  // the end.
  for (const std::size_t v : indices_down(m)) {
    std::vector<Entry>& list = lists[v];
    if (tree.is_leaf(v)) {
      for (std::size_t i = by_leaf.first[v]; i < by_leaf.first[v + 1]; ++i)
        list.push_back({y[by_leaf.order[i]], rows.weight_of(by_leaf.order[i])});
      std::ranges::stable_sort(list, by_class);
    } else {
      auto &l = lists[tree.left(v)], &r = lists[tree.left(v) + 1];
      list.resize(l.size() + r.size());
      std::ranges::merge(l, r, list.begin(), by_class);
      l = {}, r = {};
    }
    merge_classes(list);
    count_steps(list.size());
    counted.begin[v + 1] = std::ssize(list);
    for (auto entry = list.rbegin(); entry != list.rend(); ++entry) {
      counted.classes.push_back(entry->class_number);
      counted.weight.push_back(entry->weight);
    }
  }
  std::ranges::reverse(counted.classes);
  std::ranges::reverse(counted.weight);
  std::partial_sum(counted.begin.begin(), counted.begin.end(), counted.begin.begin());
  return counted;
}

}  // namespace certree
