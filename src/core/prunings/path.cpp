// Nested paths of prunings, each whole in one pass: by weakest links, and by siblings.
//
// Each node keeps the bends below it in a heap, largest price first. Leftist heaps merge in
// O(log m), so the path of weakest links takes O(m log m).
//
// Siblings merge one pair at a time. A merge touches no other pair and may make one more mergeable,
// that of its parent, so that every pair enters and leaves one heap: O(m log m) again.
#include <functional>
#include <queue>

#include "prunings/weakest_links.hpp"

namespace certree {
namespace {

class BendHeaps {
 public:
  explicit BendHeaps(std::size_t n_nodes) : heaps_(n_nodes, kNone) {}

  bool empty(std::size_t v) const { return heaps_[v] == kNone; }
  const Bend& top(std::size_t v) { return at(heaps_[v]).bend; }
  void join(std::size_t v, std::size_t l) { heaps_[v] = merge(heaps_[l], heaps_[l + 1]); }
  void pop(std::size_t v) { heaps_[v] = merge(at(heaps_[v]).left, at(heaps_[v]).right); }
  void push(std::size_t v, const Bend& bend) {
    entries_.push_back({bend, kNone, kNone, 1});
    heaps_[v] = merge(heaps_[v], static_cast<std::int32_t>(entries_.size()) - 1);
  }

 private:
  static constexpr std::int32_t kNone = -1;
  struct Entry {
    Bend bend;
    std::int32_t left, right, rank;
  };

  // The recursion follows right spines, which are at most log2(m) long.
  std::int32_t merge(std::int32_t a, std::int32_t b) {
    if (a == kNone) return b;
    if (b == kNone) return a;
    if (at(a).bend.price < at(b).bend.price) std::swap(a, b);
    const std::int32_t right = merge(at(a).right, b);
    Entry& top = at(a);
    top.right = right;
    if (rank(top.left) < rank(top.right)) std::swap(top.left, top.right);
    top.rank = rank(top.right) + 1;
    return a;
  }

  Entry& at(std::int32_t entry) { return entries_[static_cast<std::size_t>(entry)]; }
  std::int32_t rank(std::int32_t entry) { return entry == kNone ? 0 : at(entry).rank; }

  std::vector<std::int32_t> heaps_;
  std::vector<Entry> entries_;
};

}  // namespace

void critical_prices(Shape tree, const SplitGains& gains, std::span<double> critical) {
  BendHeaps bends(tree.size());
  const auto nothing = [](std::size_t, const Excess&) {};
  weakest_links(tree, gains, bends, nothing, critical);
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
  const auto offer = [&](std::size_t v) {
    if (is_leaf(tree.left(v)) && is_leaf(tree.left(v) + 1)) cheapest.emplace(rise[v], v);
  };
  for (const std::size_t v : indices(tree.size())) {
    if (tree.is_leaf(v)) continue;
    parent[tree.left(v)] = parent[tree.left(v) + 1] = v;
    offer(v);
  }
  for (std::int32_t n_merges = 0; !cheapest.empty(); ++n_merges) {
    count_steps(1);
    const std::size_t v = cheapest.top().second;
    cheapest.pop();
    step[v] = n_merges;
    if (v != 0) offer(parent[v]);
  }
}

}  // namespace certree
