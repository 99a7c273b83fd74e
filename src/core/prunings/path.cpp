// Nested paths of prunings, each computed in one pass.
//
// critical_prices() holds the breakpoints below each node in a heap, largest price first. Leftist
// heaps merge in O(log m), so the path takes O(m log m).
//
// merge_order() holds the pairs of siblings that can be merged in one heap. A merge changes no
// other pair, and at most makes that of the parent ready to be merged. So every pair enters and
// leaves the heap once: O(m log m) again.
#include <functional>
#include <queue>

#include "prunings/weakest_links.hpp"

namespace certree {
namespace {

// One leftist heap of breakpoints for each node, as weakest_links() needs them. The entries of all
// heaps share one vector.
class BreakpointHeaps {
 public:
  explicit BreakpointHeaps(std::size_t n_nodes) : heaps_(n_nodes, kNone) {}

  bool empty(std::size_t v) const { return heaps_[v] == kNone; }
  const Breakpoint& top(std::size_t v) { return at(heaps_[v]).breakpoint; }
  void join(std::size_t v, std::size_t l) { heaps_[v] = merge(heaps_[l], heaps_[l + 1]); }
  void pop(std::size_t v) { heaps_[v] = merge(at(heaps_[v]).left, at(heaps_[v]).right); }
  void push(std::size_t v, const Breakpoint& breakpoint) {
    entries_.push_back({breakpoint, kNone, kNone, 1});
    heaps_[v] = merge(heaps_[v], static_cast<std::int32_t>(entries_.size()) - 1);
  }

 private:
  static constexpr std::int32_t kNone = -1;
  struct Entry {
    Breakpoint breakpoint;
    std::int32_t left, right;  // entries below, or kNone
    std::int32_t rank;         // length of the right spine
  };

  // Merges two heaps and returns the root of the result. The recursion follows right spines, which
  // are at most log2(m) long.
  std::int32_t merge(std::int32_t a, std::int32_t b) {
    if (a == kNone) return b;
    if (b == kNone) return a;
    if (at(a).breakpoint.price < at(b).breakpoint.price) std::swap(a, b);
    const std::int32_t right = merge(at(a).right, b);
    Entry& top = at(a);
    top.right = right;
    if (rank(top.left) < rank(top.right)) std::swap(top.left, top.right);
    top.rank = rank(top.right) + 1;
    return a;
  }

  Entry& at(std::int32_t entry) { return entries_[static_cast<std::size_t>(entry)]; }
  std::int32_t rank(std::int32_t entry) { return entry == kNone ? 0 : at(entry).rank; }

  std::vector<std::int32_t> heaps_;  // root of the heap of each node, or kNone
  std::vector<Entry> entries_;
};

}  // namespace

void critical_prices(Shape tree, const SplitGains& gains, std::span<double> critical) {
  BreakpointHeaps breakpoints(tree.size());
  const auto ignore = [](std::size_t, const Excess&) {};
  weakest_links(tree, gains, breakpoints, ignore, critical);
  for (const std::size_t v : indices(tree.size())) {
    if (tree.is_leaf(v)) continue;
    critical[v] = std::fmax(critical[v], 0.0);
    for (const std::size_t child : {tree.left(v), tree.left(v) + 1})
      if (!tree.is_leaf(child)) critical[child] = std::fmin(critical[child], critical[v]);
  }
}

void merge_order(Shape tree, std::span<const double> rise, std::span<std::int32_t> step) {
  using Merge = std::pair<double, std::size_t>;
  std::priority_queue<Merge, std::vector<Merge>, std::greater<>> cheapest;
  std::vector<std::size_t> parent(tree.size(), 0);
  std::ranges::fill(step, -1);
  const auto is_leaf = [&](std::size_t v) { return tree.is_leaf(v) || step[v] >= 0; };
  const auto push_if_mergeable = [&](std::size_t v) {
    if (is_leaf(tree.left(v)) && is_leaf(tree.left(v) + 1)) cheapest.emplace(rise[v], v);
  };
  for (const std::size_t v : indices(tree.size())) {
    if (tree.is_leaf(v)) continue;
    parent[tree.left(v)] = parent[tree.left(v) + 1] = v;
    push_if_mergeable(v);
  }
  for (std::int32_t n_merges = 0; !cheapest.empty(); ++n_merges) {
    count_steps(1);
    const std::size_t v = cheapest.top().second;
    cheapest.pop();
    step[v] = n_merges;
    if (v != 0) push_if_mergeable(parent[v]);
  }
}

}  // namespace certree
