// Nested paths of prunings, each whole in one pass: by weakest links, and by siblings.
//
// Each node keeps the bends below it in a heap, largest price first. Leftist heaps merge in
// O(log m), so the path of weakest links takes O(m log m).
//
// Siblings merge one pair at a time. A merge touches no other pair and may make one more mergeable,
// that of its parent, so that every pair enters and leaves one heap: O(m log m) again.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <queue>
#include <utility>
#include <vector>

#include "core.hpp"
#include "links.hpp"

namespace certree {
namespace {

class BendHeaps {
 public:
  explicit BendHeaps(std::int32_t n_nodes) : heaps_(static_cast<std::size_t>(n_nodes), kNone) {}

  bool empty(std::int32_t v) { return heap(v) == kNone; }
  const Bend& top(std::int32_t v) { return at(heap(v)).bend; }
  void join(std::int32_t v, std::int32_t l) { heap(v) = merge(heap(l), heap(l + 1)); }
  void pop(std::int32_t v) { heap(v) = merge(at(heap(v)).left, at(heap(v)).right); }
  void push(std::int32_t v, const Bend& bend) {
    entries_.push_back({bend, kNone, kNone, 1});
    heap(v) = merge(heap(v), static_cast<std::int32_t>(entries_.size()) - 1);
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

  std::int32_t& heap(std::int32_t v) { return heaps_[static_cast<std::size_t>(v)]; }
  Entry& at(std::int32_t entry) { return entries_[static_cast<std::size_t>(entry)]; }
  std::int32_t rank(std::int32_t entry) { return entry == kNone ? 0 : at(entry).rank; }

  std::vector<std::int32_t> heaps_;
  std::vector<Entry> entries_;
};

}  // namespace

void critical_prices(const std::int32_t* left, std::int32_t n_nodes, const double* cost_gain,
                     const double* leaf_gain, double* critical) {
  BendHeaps bends(n_nodes);
  const auto nothing = [](std::int32_t, const Excess&) {};
  weakest_links(left, n_nodes, cost_gain, leaf_gain, bends, nothing, critical);
  for (std::int32_t v = 0; v < n_nodes; ++v) {
    if (left[v] == kLeaf) continue;
    critical[v] = std::fmax(critical[v], 0.0);
    for (const std::int32_t child : {left[v], left[v] + 1})
      if (left[child] != kLeaf) critical[child] = std::fmin(critical[child], critical[v]);
  }
}

void merge_order(const std::int32_t* left, std::int32_t n_nodes, const double* rise,
                 std::int32_t* step) {
  using Merge = std::pair<double, std::int32_t>;
  std::priority_queue<Merge, std::vector<Merge>, std::greater<>> cheapest;
  std::vector<std::int32_t> parent(static_cast<std::size_t>(n_nodes), -1);
  std::fill(step, step + n_nodes, -1);
  const auto is_leaf = [&](std::int32_t v) { return left[v] == kLeaf || step[v] >= 0; };
  const auto offer = [&](std::int32_t v) {
    if (is_leaf(left[v]) && is_leaf(left[v] + 1)) cheapest.emplace(rise[v], v);
  };
  for (std::int32_t v = 0; v < n_nodes; ++v) {
    if (left[v] == kLeaf) continue;
    for (const std::int32_t child : {left[v], left[v] + 1})
      parent[static_cast<std::size_t>(child)] = v;
    offer(v);
  }
  for (std::int32_t n_merges = 0; !cheapest.empty(); ++n_merges) {
    const std::int32_t v = cheapest.top().second;
    cheapest.pop();
    step[v] = n_merges;
    if (v != 0) offer(parent[static_cast<std::size_t>(v)]);
  }
}

}  // namespace certree
