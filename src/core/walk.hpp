// How rows walk down a tree, or one of several trees whose nodes are stored one after the other.
//
// A router computes the child that a row goes to, router.child(test, v, x): x is the row, v the
// node, and test the node's test. Trees without category sets have a router without the code for
// sets. The test is a NodeTest, made from the columns of the tree, or a PackedNode.
#pragma once

#include <array>
#include <bit>

#include "numbers.hpp"
#include "tree.hpp"

namespace certree {
namespace {

// The test of a node that compares with a threshold; of a node with a set, all but the set.
struct NodeTest {
  double threshold;
  std::int32_t feature;  // its complement if NaN goes left
  std::int32_t left;

  NodeTest() = default;
  NodeTest(const TreeView& tree, std::size_t v)
      : threshold(tree.threshold[v]),
        feature(tree.default_left[v] & kMissingLeft ? ~tree.feature[v] : tree.feature[v]),
        left(tree.left[v]) {}

  bool missing_left() const { return feature < 0; }

  // Returns the row's value of the tested feature.
  template <class Real>
  double value(const Real* x) const {
    return static_cast<double>(x[feature ^ (feature >> 31)]);
  }

  // Returns the child that x goes to by the threshold.
  template <class Real>
  std::int32_t child(const Real* x) const {
    const double here = value(x);
    // | instead of ||: a branch here would be mispredicted half of the time.
    const int is_missing = static_cast<int>(here != here);
    return left +
           (static_cast<int>(here > threshold) | (is_missing & static_cast<int>(!missing_left())));
  }
};

// Router of trees in which no node has a set.
struct ThresholdRouter {
  template <class Real>
  std::int32_t child(const NodeTest& test, std::int32_t, const Real* x) const {
    return test.child(x);
  }
};

// Router of trees in which some nodes have a set.
struct CategoryRouter {
  const std::int64_t* start;  // the columns category_start, categories and default_left
  const std::int32_t* categories;
  const std::uint8_t* default_left;  // not used for packed trees

  template <class Real>
  std::int32_t child(const NodeTest& test, std::int32_t v, const Real* x) const {
    const std::int32_t* const first = categories + start[v];
    const std::int32_t* const last = categories + start[v + 1];
    if (first == last) return test.child(x);
    const double value = test.value(x);
    if (std::isnan(value)) return test.left + !test.missing_left();
    const bool is_unseen_left = (default_left[v] & kUnseenLeft) != 0;
    return test.left + (contains(first, last, value) == is_unseen_left);
  }

  // Returns whether the set of node v contains a value.
  bool has_category(std::int32_t v, double value) const {
    return contains(categories + start[v], categories + start[v + 1], value);
  }

  static bool contains(const std::int32_t* first, const std::int32_t* last, double value) {
    if (!(value >= 0.0 && value <= std::numeric_limits<std::int32_t>::max())) return false;
    const auto category = static_cast<std::int32_t>(value);
    return category == value && std::binary_search(first, last, category);
  }
};

// Returns the row's value of the feature that a packed node tests.
template <class Real>
double tested_value(const PackedNode& node, const Real* x) {
  return static_cast<double>(x[node.feature_and_missing >> 1]);
}

// Returns 1 if a value goes right by the node's threshold, which is never NaN, else 0. Without
// short-circuit operators: a branch here would be mispredicted half of the time.
CERTREE_INLINE int is_right(const PackedNode& node, double value) {
  const int is_missing = static_cast<int>(value != value);
  return static_cast<int>(value > std::bit_cast<double>(node.threshold_or_set)) |
         (is_missing & static_cast<int>(~node.feature_and_missing));
}

// Router of packed trees in which no node has a set.
struct PackedThresholdRouter {
  template <class Real>
  CERTREE_INLINE std::int32_t child(const PackedNode& node, std::int32_t, const Real* x) const {
    return node.left + is_right(node, tested_value(node, x));
  }
};

// The masks of packed sets: the number of their categories, and the bit for unseen ones.
inline constexpr std::int32_t kMaskBits = 63;
inline constexpr std::uint64_t kUnseenLeftInMask = std::uint64_t{1} << kMaskBits;

// Router of packed trees in which some nodes have a set. Both tests are computed and one is
// selected, without a branch.
struct PackedCategoryRouter {
  CategoryRouter sets;

  template <class Real>
  CERTREE_INLINE std::int32_t child(const PackedNode& node, std::int32_t v, const Real* x) const {
    const double value = tested_value(node, x);
    const std::int32_t has_set = node.left >> 31;  // all bits set, or none
    const std::uint64_t mask = node.threshold_or_set;
    int in_set = mask_contains(mask, value);
    if (((mask & ~kUnseenLeftInMask) == 0) & (has_set != 0)) [[unlikely]]
      in_set = sets.has_category(v, value);
    const int is_missing = static_cast<int>(value != value);
    const int is_category_right = in_set == static_cast<int>(mask >> kMaskBits);
    const int is_right_by_set = (is_category_right & ~is_missing) |
                                (is_missing & static_cast<int>(~node.feature_and_missing));
    return (node.left ^ has_set) +
           ((is_right_by_set & has_set) | (is_right(node, value) & ~has_set));
  }

  // Returns 1 if value is an integer in 0, ..., 62 whose bit is set in the mask, else 0. An integer
  // added to 2^52 is in the last bits of the sum.
  static CERTREE_INLINE int mask_contains(std::uint64_t mask, double value) {
    constexpr double kShift = 0x1p52;
    const double sum = value + kShift;
    const std::uint64_t bit =
        std::bit_cast<std::uint64_t>(sum) - std::bit_cast<std::uint64_t>(kShift);
    const int is_bit = static_cast<int>(bit < kMaskBits) & static_cast<int>(sum - kShift == value);
    return is_bit & static_cast<int>(mask >> (bit & 63));
  }
};

// Walks that advance together, so that the processor loads the nodes of several at the same time.
constexpr std::int64_t kWalksAtOnce = 64;

// Advances walks w = 0, ..., width - 1 to leaves, width <= kWalksAtOnce. node: (width,) where they
// start, overwritten with the leaves; row(w) returns the row of walk w. Walks that have arrived are
// dropped every two steps, as paths differ much in length.
template <class Router, class Rows>
CERTREE_INLINE void walk_to_leaves(const PackedNode* packed, const Router& router, const Rows& row,
                                   std::int64_t width, std::int32_t* node, StepCounter& counter) {
  std::array<std::uint8_t, kWalksAtOnce> walking;
  std::iota(walking.begin(), walking.end(), std::uint8_t{0});
  for (std::int64_t n = width; n > 0;) {
    counter.add(2 * n);
    std::int64_t n_left = 0;
    for (std::int64_t i = 0; i < n; ++i) {
      const std::uint8_t w = walking[static_cast<std::size_t>(i)];
      const auto* const x = row(w);
      const std::int32_t first = router.child(packed[node[w]], node[w], x);
      const std::int32_t second = router.child(packed[first], first, x);
      node[w] = second;
      walking[static_cast<std::size_t>(n_left)] = w;
      n_left += second != first;
    }
    n = n_left;
  }
}

// Returns the leaf that row x reaches from node v. The nodes need not be packed.
template <class Real, class Router>
std::int32_t walk_to_leaf(const TreeView& tree, const Router& router, const Real* x, std::int32_t v,
                          StepCounter& counter) {
  const std::int32_t* const left = tree.left.data();
  for (; left[v] != kLeaf; counter.add())
    v = router.child(NodeTest(tree, static_cast<std::size_t>(v)), v, x);
  return v;
}

// A node, and the fraction of a row that reaches it: below 1 if the row lacked values above.
struct RowFraction {
  std::int32_t node;
  double fraction;
};

// Calls visit(next) for the child of an inner node that a row goes to or, if it goes both ways, for
// the right and then the left child, with the fraction of the row that reaches it.
template <class Real, class Router, class Visit>
CERTREE_INLINE void for_each_child_reached(const TreeView& tree, const Router& router,
                                           const MissingRouting& missing, const Real* x,
                                           const RowFraction& current, const Visit& visit) {
  const auto v = static_cast<std::size_t>(current.node);
  const NodeTest test(tree, v);
  if (missing.both_ways.empty() || !missing.both_ways[v] || !std::isnan(test.value(x))) {
    visit(RowFraction{router.child(test, current.node, x), current.fraction});
    return;
  }
  const auto left = static_cast<std::size_t>(test.left);
  // Weights are halved, as the sum of both may exceed the largest float64.
  const double half_left = missing.node_weight[left] / 2;
  const double half_sum = half_left + missing.node_weight[left + 1] / 2;
  const double left_fraction = half_sum > 0.0 ? half_left / half_sum : 0.5;
  visit(RowFraction{test.left + 1, current.fraction * (1.0 - left_fraction)});
  visit(RowFraction{test.left, current.fraction * left_fraction});
}

// Calls call(router) with the router of a tree whose nodes are not packed, or are.
template <class Call>
void with_router(const TreeView& tree, const Call& call) {
  if (tree.category_start.empty())
    call(ThresholdRouter{});
  else
    call(CategoryRouter{tree.category_start.data(), tree.categories.data(),
                        tree.default_left.data()});
}
template <class Call>
void with_packed_router(const TreeView& tree, const Call& call) {
  with_router(tree, [&]<class Router>(const Router& router) {
    if constexpr (std::is_same_v<Router, CategoryRouter>)
      call(PackedCategoryRouter{router});
    else
      call(PackedThresholdRouter{});
  });
}

}  // namespace
}  // namespace certree
