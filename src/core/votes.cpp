// Passes from the roots down: every node hands its summed votes, or the bounds of its values, on to
// its children.
#include "votes.hpp"

namespace certree {

void push_down(Shape tree, std::span<const double> weight, const Votes& votes,
               Table<double> score) {
  const std::int64_t n_classes = score.width;
  const double* const frequency = votes.frequency.data;
  RootFinder roots(tree);
  for (const std::size_t v : indices(tree.size(), n_classes)) {
    const double node_weight = weight[v];
    double* row = score.row(v);  // so far the parent's score
    if (roots.is_root(v)) std::fill_n(row, n_classes, 0.0);
    if (frequency) {
      const double* vote = frequency + static_cast<std::int64_t>(v) * n_classes;
      for (std::int64_t k = 0; k < n_classes; ++k) row[k] += node_weight * vote[k];
    } else {
      row[votes.label[v]] += node_weight;
    }
    if (tree.is_leaf(v)) continue;
    double* child = score.row(tree.left(v));
    std::copy_n(row, n_classes, child);
    std::copy_n(row, n_classes, child + n_classes);
  }
}

void push_down_to(Shape tree, std::span<const double> weight, std::span<const double> rest,
                  const Votes& votes, std::span<const std::int32_t> nodes, Table<double> score) {
  const std::int64_t n_classes = votes.n_classes;
  // Number of wanted nodes at or below each node: subtrees without any are skipped.
  const auto n_wanted = make_buffer<std::int32_t>(tree.size());
  std::fill_n(n_wanted.get(), tree.size(), 0);
  for (const std::int32_t v : nodes) n_wanted[static_cast<std::size_t>(v)] = 1;
  for (const std::size_t v : indices_down(tree.size()))
    if (!tree.is_leaf(v)) n_wanted[v] += n_wanted[tree.left(v)] + n_wanted[tree.left(v) + 1];

  // The vote and score of a parent are in a slot. The child with fewer wanted nodes is visited
  // first, with a copy in the next slot; then the other child takes over the slot of the parent. So
  // there are at most about log2(number of nodes) slots.
  struct Pending {
    std::size_t node, slot;
  };
  struct Slot {
    std::vector<double> vote, sum;
  };
  std::vector<Pending> stack;
  std::vector<Slot> slots(1);
  VoteReader reader(votes);
  RootFinder roots(tree);
  for (const std::size_t root : indices(tree.size())) {
    if (!roots.is_root(root) || n_wanted[root] == 0) continue;
    slots[0].vote.assign(static_cast<std::size_t>(n_classes), 1.0 / static_cast<double>(n_classes));
    slots[0].sum.assign(static_cast<std::size_t>(n_classes), 0.0);
    stack.push_back({root, 0});
    while (!stack.empty()) {
      const auto [v, slot] = stack.back();
      stack.pop_back();
      if (n_wanted[v] == 0) continue;
      count_steps(3 * n_classes);
      double* const vote = slots[slot].vote.data();
      double* const sum = slots[slot].sum.data();
      reader.move_to(v);
      reader.update(vote);
      for (std::int64_t k = 0; k < n_classes; ++k) sum[k] += weight[v] * vote[k];
      const auto found = std::ranges::lower_bound(nodes, static_cast<std::int32_t>(v));
      if (found != nodes.end() && *found == static_cast<std::int32_t>(v)) {
        double* const row = score.row(found - nodes.begin());
        const double further_weight = rest.empty() ? 0.0 : rest[v];
        for (std::int64_t k = 0; k < n_classes; ++k) row[k] = sum[k] + further_weight * vote[k];
      }
      if (tree.is_leaf(v)) continue;
      const std::size_t left = tree.left(v);
      const bool more_left = n_wanted[left] >= n_wanted[left + 1];
      const std::size_t smaller = left + more_left, larger = left + !more_left;
      stack.push_back({larger, slot});
      if (n_wanted[smaller] == 0) continue;
      if (slots.size() == slot + 1) slots.emplace_back();
      slots[slot + 1] = slots[slot];
      stack.push_back({smaller, slot + 1});
    }
  }
}

void make_monotone(Shape tree, std::span<const std::int32_t> feature,
                   std::span<const std::int8_t> monotonic_cst, std::span<const double> value,
                   std::span<double> result) {
  struct Bounds {
    double low, high;
  };
  std::ranges::copy(value, result.begin());
  const auto bounds = make_buffer<Bounds>(tree.size());
  RootFinder roots(tree);
  for (const std::size_t v : indices(tree.size())) {
    if (roots.is_root(v)) bounds[v] = {-kInfinity, kInfinity};
    if (tree.is_leaf(v)) continue;
    const Bounds node_bounds = bounds[v];
    const std::int8_t sign = monotonic_cst[static_cast<std::size_t>(feature[v])];
    const std::size_t lower = tree.left(v) + (sign < 0), upper = tree.left(v) + (sign >= 0);
    for (const std::size_t child : {lower, upper})
      result[child] = std::clamp(result[child], node_bounds.low, node_bounds.high);
    const double middle = result[lower] * 0.5 + result[upper] * 0.5;
    if (sign != 0 && result[lower] > result[upper]) result[lower] = result[upper] = middle;
    bounds[lower] = {node_bounds.low, sign != 0 ? middle : node_bounds.high};
    bounds[upper] = {sign != 0 ? middle : node_bounds.low, node_bounds.high};
  }
}

}  // namespace certree
