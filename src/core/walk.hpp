// How rows walk down a tree, or many trees whose nodes stand one after the other.
#pragma once

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
    const int beyond = !(here <= threshold);
    const int exempt = static_cast<int>(missing_left()) & static_cast<int>(here != here);
    return left + (beyond & ~exempt);
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

  static bool holds(const std::int32_t* first, const std::int32_t* last, double value) {
    if (!(value >= 0.0 && value <= std::numeric_limits<std::int32_t>::max())) return false;
    const auto category = static_cast<std::int32_t>(value);
    return category == value && std::binary_search(first, last, category);
  }
};

// Rows are walked in groups, so that the memory accesses of one hide behind those of the others.
constexpr std::int64_t kGroup = 16;

// Rows i, ..., i + width - 1 go on from their nodes, (width,), to leaves.
template <class Real, class Steps>
CERTREE_INLINE void walk_group(const Step* packed, const Steps& steps, const Table<const Real>& X,
                               std::int64_t i, std::int64_t width, std::int32_t* node,
                               Tally& tally) {
  for (bool walking = true; walking;) {
    walking = false;
    tally.add(width);
    for (std::int64_t w = 0; w < width; ++w) {
      const Step& step = packed[node[w]];
      if (step.left == kLeaf) continue;
      node[w] = steps.next(step, node[w], X.row(i + w));
      walking = true;
    }
  }
}

// The leaf that a row reaches from node v; nothing has to be packed for it.
template <class Real, class Steps>
std::int32_t walk(const TreeView& tree, const Steps& steps, const Real* x, std::int32_t v,
                  Tally& tally) {
  const std::int32_t* const left = tree.left.data();
  for (; left[v] != kLeaf; tally.add())
    v = steps.next(Step(tree, static_cast<std::size_t>(v)), v, x);
  return v;
}

// Calls with the steps of a tree.
template <class Call>
void with_steps(const TreeView& tree, const Call& call) {
  if (tree.category_start.empty())
    call(Thresholds{});
  else
    call(Sets{tree.category_start.data(), tree.categories.data()});
}

}  // namespace
}  // namespace certree
