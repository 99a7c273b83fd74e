// Class counts where there are many classes: leaves list those that they hold, and parents merge
// the lists of their children.

#include "stats/stats.hpp"

namespace certree {
namespace {

struct Entry {
  std::int32_t of_class;
  double weight;
};

// Rows by their leaves, in their own order: those of leaf v are order[first[v]], ...,
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

// Entries of one class become one; they are ascending already.
void add_up(std::vector<Entry>& list) {
  std::size_t n = 0;
  for (const Entry& entry : list) {
    if (entry.weight == 0.0) continue;
    if (n > 0 && list[n - 1].of_class == entry.of_class)
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
  const auto lower = [](const Entry& a, const Entry& b) { return a.of_class < b.of_class; };
  CountedEntries counted;
  counted.begin.assign(m + 1, 0);
  std::vector<std::vector<Entry>> lists(m);  // of nodes whose parents have not merged them yet
  // From the last node down, so the columns are filled backwards and turned around in the end.
  for (const std::size_t v : indices_down(m)) {
    std::vector<Entry>& list = lists[v];
    if (tree.is_leaf(v)) {
      for (std::size_t i = by_leaf.first[v]; i < by_leaf.first[v + 1]; ++i)
        list.push_back({y[by_leaf.order[i]], rows.weight_of(by_leaf.order[i])});
      std::ranges::stable_sort(list, lower);
    } else {
      auto &l = lists[tree.left(v)], &r = lists[tree.left(v) + 1];
      list.resize(l.size() + r.size());
      std::ranges::merge(l, r, list.begin(), lower);
      l = {}, r = {};
    }
    add_up(list);
    count_steps(list.size());
    counted.begin[v + 1] = std::ssize(list);
    for (auto entry = list.rbegin(); entry != list.rend(); ++entry) {
      counted.classes.push_back(entry->of_class);
      counted.weight.push_back(entry->weight);
    }
  }
  std::ranges::reverse(counted.classes);
  std::ranges::reverse(counted.weight);
  std::partial_sum(counted.begin.begin(), counted.begin.end(), counted.begin.begin());
  return counted;
}

}  // namespace certree
