// Rows walk down a tree, and cells are counted up to its root.
#include "tree.hpp"

#include "parallel.hpp"

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

template <class Real, class Steps>
void apply_packed(const Step* packed, const Steps& steps, const Table<const Real>& X,
                  std::int64_t begin, std::int64_t end, std::int32_t* leaf) {
  Tally tally;
  for (std::int64_t i = begin; i < end; i += kGroup) {
    const std::int64_t width = std::min(kGroup, end - i);
    std::int32_t node[kGroup] = {};
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
    std::copy(node, node + width, leaf + i);
  }
  tally.pay();
}

template <class Real, class Steps>
std::int32_t walk(const TreeView& tree, const Steps& steps, const Real* x, Tally& tally) {
  std::int32_t v = 0;
  const std::int32_t* const left = tree.left.data();
  for (; left[v] != kLeaf; tally.add())
    v = steps.next(Step(tree, static_cast<std::size_t>(v)), v, x);
  return v;
}

template <class Real, class Steps>
void apply_with(const TreeView& tree, const Steps& steps, const Table<const Real>& X, int n_threads,
                std::int32_t* leaf) {
  const std::size_t m = tree.left.size();
  if (X.n_rows <
      static_cast<std::int64_t>(m / 8 + 32)) {  // packing the nodes would cost more than it saves
    Tally tally;
    for (std::int64_t i = 0; i < X.n_rows; ++i) leaf[i] = walk(tree, steps, X.row(i), tally);
    tally.pay();
    return;
  }
  const auto packed = make_buffer<Step>(m);
  for (const std::size_t v : turns(m)) packed[v] = {tree, v};
  constexpr std::int64_t kBlock = 1 << 14;
  parallel_for((X.n_rows + kBlock - 1) / kBlock, n_threads, [&](std::int64_t block) {
    const std::int64_t begin = block * kBlock, end = std::min(X.n_rows, begin + kBlock);
    apply_packed(packed.get(), steps, X, begin, end, leaf);
  });
}

}  // namespace

template <class Real>
void apply(const TreeView& tree, Table<const Real> X, int n_threads, std::span<std::int32_t> leaf) {
  if (tree.category_start.empty())
    apply_with(tree, Thresholds{}, X, n_threads, leaf.data());
  else
    apply_with(tree, Sets{tree.category_start.data(), tree.categories.data()}, X, n_threads,
               leaf.data());
}

template void apply(const TreeView&, Table<const float>, int, std::span<std::int32_t>);
template void apply(const TreeView&, Table<const double>, int, std::span<std::int32_t>);

void depths(Shape tree, std::span<const std::int32_t> chain, std::span<std::int64_t> depth) {
  depth[0] = 0;
  for (const std::size_t v : turns(tree.size())) {
    if (tree.is_leaf(v)) continue;
    const std::size_t l = tree.left(v);
    depth[l] = depth[l + 1] = depth[v] + chain[v];
  }
}

}  // namespace certree
