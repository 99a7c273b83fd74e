// One pass down: every node hands its vote, or the bounds of its values, on to its children.
#include "votes.hpp"

namespace certree {

void push_down(Shape tree, std::span<const double> weight, const Values& values,
               Table<double> score) {
  const std::int64_t n_classes = score.width;
  const double* const frequency = values.frequency.data;
  RootFinder roots(tree);
  for (const std::size_t v : indices(tree.size(), n_classes)) {
    const double own = weight[v];
    double* row = score.row(v);  // holds what comes from above
    if (roots.is_root(v)) std::fill_n(row, n_classes, 0.0);
    if (frequency) {
      const double* value = frequency + static_cast<std::int64_t>(v) * n_classes;
      for (std::int64_t k = 0; k < n_classes; ++k) row[k] += own * value[k];
    } else {
      row[values.label[v]] += own;
    }
    if (tree.is_leaf(v)) continue;
    double* child = score.row(tree.left(v));
    std::copy_n(row, n_classes, child);
    std::copy_n(row, n_classes, child + n_classes);
  }
}

void push_down_to(Shape tree, std::span<const double> weight, std::span<const double> rest,
                  const Values& values, std::span<const std::int32_t> nodes, Table<double> score) {
  const std::int64_t n_classes = values.n_classes;
  // How many of the nodes lie at or below each: a walk passes only where there are some.
  const auto below = make_buffer<std::int32_t>(tree.size());
  std::fill_n(below.get(), tree.size(), 0);
  for (const std::int32_t v : nodes) below[static_cast<std::size_t>(v)] = 1;
  for (const std::size_t v : indices_down(tree.size()))
    if (!tree.is_leaf(v)) below[v] += below[tree.left(v)] + below[tree.left(v) + 1];

  // What comes to a node from above lies in a slot. The child with fewer nodes below goes first,
  // with a copy in the next slot, the other one takes the slot over: so slots are few.
  struct Waiting {
    std::size_t node, slot;
  };
  struct Slot {
    std::vector<double> value, sum;
  };
  std::vector<Waiting> stack;
  std::vector<Slot> slots(1);
  NodeValues values_at(values);
  RootFinder roots(tree);
  for (const std::size_t root : indices(tree.size())) {
    if (!roots.is_root(root) || below[root] == 0) continue;
    slots[0].value.assign(static_cast<std::size_t>(n_classes),
                          1.0 / static_cast<double>(n_classes));
    slots[0].sum.assign(static_cast<std::size_t>(n_classes), 0.0);
    stack.push_back({root, 0});
    while (!stack.empty()) {
      const auto [v, at] = stack.back();
      stack.pop_back();
      if (below[v] == 0) continue;
      count_steps(3 * n_classes);
      double* const value = slots[at].value.data();
      double* const sum = slots[at].sum.data();
      values_at.see(v);
      values_at.replace(value);
      for (std::int64_t k = 0; k < n_classes; ++k) sum[k] += weight[v] * value[k];
      const auto found = std::ranges::lower_bound(nodes, static_cast<std::int32_t>(v));
      if (found != nodes.end() && *found == static_cast<std::int32_t>(v)) {
        double* const own = score.row(found - nodes.begin());
        const double more = rest.empty() ? 0.0 : rest[v];
        for (std::int64_t k = 0; k < n_classes; ++k) own[k] = sum[k] + more * value[k];
      }
      if (tree.is_leaf(v)) continue;
      const std::size_t left = tree.left(v);
      const bool more_left = below[left] >= below[left + 1];
      const std::size_t few = left + more_left, many = left + !more_left;
      stack.push_back({many, at});
      if (below[few] == 0) continue;
      if (slots.size() == at + 1) slots.emplace_back();
      slots[at + 1] = slots[at];
      stack.push_back({few, at + 1});
    }
  }
}

void make_monotone(Shape tree, std::span<const std::int32_t> feature,
                   std::span<const std::int8_t> slope, std::span<const double> value,
                   std::span<double> moved) {
  struct Bounds {
    double low, high;
  };
  std::ranges::copy(value, moved.begin());
  const auto bounds = make_buffer<Bounds>(tree.size());
  RootFinder roots(tree);
  for (const std::size_t v : indices(tree.size())) {
    if (roots.is_root(v)) bounds[v] = {-kInfinity, kInfinity};
    if (tree.is_leaf(v)) continue;
    const Bounds own = bounds[v];
    const std::int8_t sign = slope[static_cast<std::size_t>(feature[v])];
    const std::size_t lower = tree.left(v) + (sign < 0), upper = tree.left(v) + (sign >= 0);
    for (const std::size_t child : {lower, upper})
      moved[child] = std::clamp(moved[child], own.low, own.high);
    const double middle = moved[lower] * 0.5 + moved[upper] * 0.5;
    if (sign != 0 && moved[lower] > moved[upper]) moved[lower] = moved[upper] = middle;
    bounds[lower] = {own.low, sign != 0 ? middle : own.high};
    bounds[upper] = {sign != 0 ? middle : own.low, own.high};
  }
}

}  // namespace certree
