// How rows walk down a tree, or many trees whose nodes stand one after the other.
#pragma once

#include <array>
#include <bit>

#include "numbers.hpp"
#include "tree.hpp"

namespace certree {
namespace {

// What one step of a walk reads, in one piece of memory.
struct Step {
  double threshold;
  std::int32_t feature;  // its complement where NaN goes left
  std::int32_t left;

  Step() = default;
  Step(const TreeView& tree, std::size_t v)
      : threshold(tree.threshold[v]),
        feature(tree.missing_left[v] ? ~tree.feature[v] : tree.feature[v]),
        left(tree.left[v]) {}

  bool missing_left() const { return feature < 0; }

  template <class Real>
  double value(const Real* x) const {
    return static_cast<double>(x[feature ^ (feature >> 31)]);
  }

  template <class Real>
  std::int32_t next(const Real* x) const {
    const double here = value(x);
    // No short cuts: a branch here would be guessed wrong half of the time.
    const int lacks = static_cast<int>(here != here);
    return left +
           (static_cast<int>(here > threshold) | (lacks & static_cast<int>(!missing_left())));
  }
};

// Steps of a tree in which no node compares categories.
struct Thresholds {
  template <class Real>
  std::int32_t next(const Step& step, std::int32_t, const Real* x) const {
    return step.next(x);
  }
};

// Steps of a tree in which some do.
struct Sets {
  const std::int64_t* start;
  const std::int32_t* categories;

  template <class Real>
  std::int32_t next(const Step& step, std::int32_t v, const Real* x) const {
    const std::int32_t* const first = categories + start[v];
    const std::int32_t* const last = categories + start[v + 1];
    if (first == last) return step.next(x);
    return step.left + (holds(first, last, step.value(x)) == step.missing_left());
  }

  bool has(std::int32_t v, double value) const {
    return holds(categories + start[v], categories + start[v + 1], value);
  }

  static bool holds(const std::int32_t* first, const std::int32_t* last, double value) {
    if (!(value >= 0.0 && value <= std::numeric_limits<std::int32_t>::max())) return false;
    const auto category = static_cast<std::int32_t>(value);
    return category == value && std::binary_search(first, last, category);
  }
};

template <class Real>
double value(const PackedNode& node, const Real* x) {
  return static_cast<double>(x[node.compared >> 1]);
}

// Whether a value goes right that is compared with the threshold, which is never NaN. No short
// cuts: a branch here would be guessed wrong half of the time.
CERTREE_INLINE int is_beyond(const PackedNode& node, double here) {
  const int lacks = static_cast<int>(here != here);
  return static_cast<int>(here > std::bit_cast<double>(node.bits)) |
         (lacks & static_cast<int>(~node.compared));
}

// Steps of packed nodes none of which compares categories.
struct PackedThresholds {
  template <class Real>
  CERTREE_INLINE std::int32_t next(const PackedNode& node, std::int32_t, const Real* x) const {
    return node.left + is_beyond(node, value(node, x));
  }
};

// Steps of packed nodes some of which do: both comparisons are made, and one counts.
struct PackedSets {
  Sets sets;

  template <class Real>
  CERTREE_INLINE std::int32_t next(const PackedNode& node, std::int32_t v, const Real* x) const {
    const double here = value(node, x);
    const std::int32_t is_set = node.left >> 31;
    int held = has_bit(node.bits, here);
    if ((node.bits == 0) & (is_set != 0)) [[unlikely]]
      held = sets.has(v, here);
    const int by_set = held == static_cast<int>(node.compared & 1);
    return (node.left ^ is_set) + ((by_set & is_set) | (is_beyond(node, here) & ~is_set));
  }

  // A whole number that is added to 2^52 stands in the last bits of the sum.
  static CERTREE_INLINE int has_bit(std::uint64_t bits, double here) {
    constexpr double kWhole = 0x1p52;
    const double sum = here + kWhole;
    const std::uint64_t place =
        std::bit_cast<std::uint64_t>(sum) - std::bit_cast<std::uint64_t>(kWhole);
    const int is_place = static_cast<int>(place < 64) & static_cast<int>(sum - kWhole == here);
    return is_place & static_cast<int>(bits >> (place & 63));
  }
};

// So many walks go on side by side, so that the memory accesses of one hide behind those of others.
constexpr std::int64_t kWalksAtOnce = 64;

// Walks go on from their nodes, (width,) and at most kWalksAtOnce, to leaves; row(w) is what walk w
// looks at. Those that have arrived are left out soon: paths are of very different lengths.
template <class Steps, class Rows>
CERTREE_INLINE void walk_to_leaves(const PackedNode* packed, const Steps& steps, const Rows& row,
                                   std::int64_t width, std::int32_t* node, StepCounter& counter) {
  std::array<std::uint8_t, kWalksAtOnce> walking;
  std::iota(walking.begin(), walking.end(), std::uint8_t{0});
  for (std::int64_t n = width; n > 0;) {
    counter.add(2 * n);
    std::int64_t n_left = 0;
    for (std::int64_t i = 0; i < n; ++i) {
      const std::uint8_t w = walking[static_cast<std::size_t>(i)];
      const auto* const x = row(w);
      const std::int32_t first = steps.next(packed[node[w]], node[w], x);
      const std::int32_t second = steps.next(packed[first], first, x);
      node[w] = second;
      walking[static_cast<std::size_t>(n_left)] = w;
      n_left += second != first;
    }
    n = n_left;
  }
}

// The leaf that a row reaches from node v; nothing has to be packed for it.
template <class Real, class Steps>
std::int32_t walk(const TreeView& tree, const Steps& steps, const Real* x, std::int32_t v,
                  StepCounter& counter) {
  const std::int32_t* const left = tree.left.data();
  for (; left[v] != kLeaf; counter.add())
    v = steps.next(Step(tree, static_cast<std::size_t>(v)), v, x);
  return v;
}

// A node that a row reaches, with the part of the row that does.
struct RowFraction {
  std::int32_t node;
  double part;
};

// Calls go(arrival) for the child of an inner node that a row goes on to, or for both, the right
// one first, where it lacks the value that they share it by.
template <class Real, class Steps, class Go>
CERTREE_INLINE void go_on(const TreeView& tree, const Steps& steps, const MissingRouting& missing,
                          const Real* x, const RowFraction& at, const Go& go) {
  const auto v = static_cast<std::size_t>(at.node);
  const Step step(tree, v);
  if (branches.both.empty() || !branches.both[v] || !std::isnan(step.value(x))) {
    go(RowFraction{steps.next(step, at.node, x), at.part});
    return;
  }
  const auto left = static_cast<std::size_t>(step.left);
  // Halves: the sum of both may be beyond float64.
  const double first = branches.rows[left] / 2, whole = first + branches.rows[left + 1] / 2;
  const double share = whole > 0.0 ? first / whole : 0.5;
  go(RowFraction{step.left + 1, at.part * (1.0 - share)});
  go(RowFraction{step.left, at.part * share});
}

// Calls with the steps of a tree.
template <class Call>
void with_router(const TreeView& tree, const Call& call) {
  if (tree.category_start.empty())
    call(Thresholds{});
  else
    call(Sets{tree.category_start.data(), tree.categories.data()});
}
template <class Call>
void with_packed_router(const TreeView& tree, const Call& call) {
  with_router(tree, [&]<class Steps>(const Steps& steps) {
    if constexpr (std::is_same_v<Steps, Sets>)
      call(PackedSets{steps});
    else
      call(PackedThresholds{});
  });
}

}  // namespace
}  // namespace certree
