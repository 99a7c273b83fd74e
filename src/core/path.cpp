// Nested paths of prunings, each whole in one pass: by weakest links, and by siblings.
//
// As a function of the price of a leaf, the cost of the best pruning below a node is concave and
// piecewise linear; it bends where a subtree collapses. Each node keeps the bends below it in a
// heap, largest price first, and meets its own line (its errors plus one price) with the sum of its
// children's from the right: bends above the crossing are gone for good, as the node has collapsed
// there. Leftist heaps merge in O(log m), so the path takes O(m log m).
//
// Siblings merge one pair at a time. A merge touches no other pair and may make one more mergeable,
// that of its parent, so that every pair enters and leaves one heap: O(m log m) again.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <queue>
#include <utility>
#include <vector>

#include "core.hpp"

namespace certree {
namespace {

// At `price` and above, a subtree collapses: `errors` more, `leaves` fewer.
struct Bend {
  double price, errors, leaves;
  std::int32_t left, right, rank;
};

class Bends {
 public:
  static constexpr std::int32_t kNone = -1;

  std::int32_t push(std::int32_t heap, double price, double errors, double leaves) {
    bends_.push_back({price, errors, leaves, kNone, kNone, 1});
    return merge(heap, static_cast<std::int32_t>(bends_.size()) - 1);
  }

  // The recursion follows right spines, which are at most log2(m) long.
  std::int32_t merge(std::int32_t a, std::int32_t b) {
    if (a == kNone) return b;
    if (b == kNone) return a;
    if (at(a).price < at(b).price) std::swap(a, b);
    const std::int32_t right = merge(at(a).right, b);
    Bend& top = at(a);
    top.right = right;
    if (rank(top.left) < rank(top.right)) std::swap(top.left, top.right);
    top.rank = rank(top.right) + 1;
    return a;
  }

  std::int32_t pop(std::int32_t heap) { return merge(at(heap).left, at(heap).right); }
  Bend& at(std::int32_t heap) { return bends_[static_cast<std::size_t>(heap)]; }

 private:
  std::int32_t rank(std::int32_t heap) { return heap == kNone ? 0 : at(heap).rank; }
  std::vector<Bend> bends_;
};

}  // namespace

void critical_prices(const std::int32_t* left, std::int32_t n_nodes, const double* errors,
                     const double* occupied, double* critical) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  Bends bends;
  std::vector<std::int32_t> heap(static_cast<std::size_t>(n_nodes), Bends::kNone);
  // The part of a node's line that holds above its largest bend: where it never collapses, that of
  // its children together, else its own.
  std::vector<double> error(errors, errors + n_nodes), leaves(occupied, occupied + n_nodes);
  for (std::int32_t v = n_nodes - 1; v >= 0; --v) {
    const auto u = static_cast<std::size_t>(v);
    critical[u] = -1.0;
    if (left[u] == kLeaf) continue;
    const auto l = static_cast<std::size_t>(left[u]);
    heap[u] = bends.merge(heap[l], heap[l + 1]);
    double below_errors = error[l] + error[l + 1];
    double below_leaves = leaves[l] + leaves[l + 1];
    const auto crossing = [&] {
      const double saved = errors[u] - below_errors;
      const double extra = below_leaves - occupied[u];
      if (extra > 0.0) return saved / extra;
      return saved > 0.0 ? kInfinity : -kInfinity;
    };
    double price = crossing();
    while (heap[u] != Bends::kNone && price < bends.at(heap[u]).price) {
      below_errors -= bends.at(heap[u]).errors;
      below_leaves += bends.at(heap[u]).leaves;
      heap[u] = bends.pop(heap[u]);
      price = crossing();
    }
    critical[u] = std::fmax(price, 0.0);
    if (price == kInfinity) {
      error[u] = below_errors;
      leaves[u] = below_leaves;
    } else if (price > 0.0) {
      heap[u] = bends.push(heap[u], price, errors[u] - below_errors, below_leaves - occupied[u]);
    }
  }
  for (std::int32_t v = 0; v < n_nodes; ++v) {
    if (left[v] == kLeaf) continue;
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
