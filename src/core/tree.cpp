// Routes rows down a tree, singly or many at a time.
#include "tree.hpp"

#include <stdexcept>

#include "parallel.hpp"
#include "walk.hpp"

namespace certree {
namespace {

// +inf sends all numbers to `left`, and the missing flag sends NaN there: to the leaf itself.
PackedNode pack_leaf(std::size_t v) {
  return {std::bit_cast<std::uint64_t>(kInfinity), 1, static_cast<std::int32_t>(v)};
}

PackedNode pack_inner(const TreeView& tree, std::size_t v) {
  const auto feature_and_missing =
      2 * static_cast<std::uint32_t>(tree.feature[v]) + (tree.default_left[v] & kMissingLeft);
  if (!tree.has_set(v))
    return {std::bit_cast<std::uint64_t>(tree.threshold[v]), feature_and_missing, tree.left[v]};
  const auto begin = static_cast<std::size_t>(tree.category_start[v]);
  const auto set =
      tree.categories.subspan(begin, static_cast<std::size_t>(tree.category_start[v + 1]) - begin);
  std::uint64_t mask = tree.default_left[v] & kUnseenLeft ? kUnseenLeftInMask : 0;
  if (set.back() < kMaskBits)
    for (const std::int32_t category : set) mask |= std::uint64_t{1} << category;
  return {mask, feature_and_missing, ~tree.left[v]};
}

// Writes the leaves of rows begin, ..., end - 1 to leaf, (n_rows,).
template <class Real, class Router>
void apply_packed(const PackedNode* packed, const Router& router, const Table<const Real>& X,
                  std::int64_t begin, std::int64_t end, std::int32_t* leaf) {
  StepCounter counter;
  for (std::int64_t i = begin; i < end; i += kWalksAtOnce) {
    const std::int64_t width = std::min(kWalksAtOnce, end - i);
    std::fill_n(leaf + i, width, 0);
    const auto row = [&](std::int64_t w) { return X.row(i + w); };
    walk_to_leaves(packed, router, row, width, leaf + i, counter);
  }
  counter.flush();
}

template <class Real>
void apply_one_by_one(const TreeView& tree, const Table<const Real>& X, std::int32_t* leaf) {
  with_router(tree, [&](const auto& router) {
    StepCounter counter;
    for (std::int64_t i = 0; i < X.n_rows; ++i)
      leaf[i] = walk_to_leaf(tree, router, X.row(i), 0, counter);
    counter.flush();
  });
}

// Adds the scores of the leaves that fractions of a row reach to out, (K,). queue: scratch memory.
template <class Real, class Router>
void blend_row(const TreeView& tree, const Router& router, const MissingRouting& missing,
               const Real* x, Table<const double> score, double* out,
               std::vector<RowFraction>& queue, StepCounter& counter) {
  queue.assign(1, {0, 1.0});
  while (!queue.empty()) {
    const RowFraction current = queue.back();
    queue.pop_back();
    counter.add();
    if (tree.left[static_cast<std::size_t>(current.node)] == kLeaf) {
      const double* const leaf_score = score.row(current.node);
      for (std::int64_t k = 0; k < score.width; ++k) out[k] += current.fraction * leaf_score[k];
      counter.add(score.width);
    } else {
      for_each_child_reached(tree, router, missing, x, current,
                             [&](const RowFraction& next) { queue.push_back(next); });
    }
  }
}

template <class Real, class Router>
void blend_with(const TreeView& tree, const Router& router, const MissingRouting& missing,
                const Table<const Real>& X, Table<const double> score, int n_threads,
                Table<double> out) {
  constexpr std::int64_t kBlock = 64;
  parallel_for((X.n_rows + kBlock - 1) / kBlock, n_threads, [&](std::int64_t block) {
    StepCounter counter;
    std::vector<RowFraction> queue;
    for (std::int64_t i = block * kBlock; i < std::min(X.n_rows, (block + 1) * kBlock); ++i) {
      double* const to = out.row(i);
      std::fill_n(to, score.width, 0.0);
      blend_row(tree, router, missing, X.row(i), score, to, queue, counter);
    }
    counter.flush();
  });
}

template <class Real, class Router>
void mark_with(const TreeView& tree, const Router& router, const Table<const Real>& X,
               std::uint8_t* lacks) {
  StepCounter counter;
  for (std::int64_t i = 0; i < X.n_rows; ++i) {
    const Real* const x = X.row(i);
    std::int32_t v = 0;
    for (; tree.left[static_cast<std::size_t>(v)] != kLeaf; counter.add()) {
      const NodeTest test(tree, static_cast<std::size_t>(v));
      if (std::isnan(test.value(x))) lacks[v] = 1;
      v = router.child(test, v, x);
    }
  }
  counter.flush();
}

}  // namespace

void pack(const TreeView& tree, std::span<PackedNode> packed) {
  for (const std::size_t v : indices(packed.size()))
    packed[v] = tree.left[v] == kLeaf ? pack_leaf(v) : pack_inner(tree, v);
}

void append(const TreeColumns& tree, TreeColumns& all) {
  const std::size_t m = tree.left.size(), before = all.left.size();
  if (before + m > static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max()))
    throw std::invalid_argument("the trees would need more than 2147483647 nodes");
  append(tree.feature, all.feature);
  append(tree.threshold, all.threshold);
  append(tree.default_left, all.default_left);
  for (const auto chunk : chunks(std::span(tree.left)))
    for (const std::int32_t child : chunk)
      all.left.push_back(child == kLeaf ? kLeaf : child + static_cast<std::int32_t>(before));
  const auto n_before = static_cast<std::int64_t>(std::ssize(all.categories));
  for (const std::size_t v : indices(m))
    all.category_start.push_back(n_before +
                                 (tree.category_start.empty() ? 0 : tree.category_start[v]));
  append(tree.categories, all.categories);
}

void finish_columns(TreeColumns& all) { all.category_start.push_back(std::ssize(all.categories)); }

template <class Real>
void apply(const TreeView& tree, Table<const Real> X, int n_threads, std::span<std::int32_t> leaf) {
  const std::size_t m = tree.left.size();
  // For few rows packing all nodes would cost more than it saves.
  if (X.n_rows < static_cast<std::int64_t>(m / 8 + 32))
    return apply_one_by_one(tree, X, leaf.data());
  const auto packed = make_buffer<PackedNode>(m);
  pack(tree, {packed.get(), m});
  constexpr std::int64_t kBlock = 1 << 14;
  with_packed_router(tree, [&](const auto& router) {
    parallel_for((X.n_rows + kBlock - 1) / kBlock, n_threads, [&](std::int64_t block) {
      const std::int64_t begin = block * kBlock, end = std::min(X.n_rows, begin + kBlock);
      apply_packed(packed.get(), router, X, begin, end, leaf.data());
    });
  });
}

template <class Real>
void apply(const TreeView& tree, const SparseRows<Real>& X, int n_threads,
           std::span<std::int32_t> leaf) {
  with_router(tree, [&](const auto& router) {
    for_each_dense_row(X, n_threads, [&](std::int64_t i, const Real* x, StepCounter& counter) {
      leaf[static_cast<std::size_t>(i)] = walk_to_leaf(tree, router, x, 0, counter);
    });
  });
}

template <class Real>
void blend(const TreeView& tree, const MissingRouting& missing, Table<const Real> X,
           Table<const double> score, int n_threads, Table<double> out) {
  with_router(tree, [&](const auto& router) {
    blend_with(tree, router, missing, X, score, n_threads, out);
  });
}

template <class Real>
void mark_lacking(const TreeView& tree, Table<const Real> X, std::span<std::uint8_t> lacks) {
  std::ranges::fill(lacks, std::uint8_t{0});
  with_router(tree, [&](const auto& router) { mark_with(tree, router, X, lacks.data()); });
}

template void apply(const TreeView&, Table<const float>, int, std::span<std::int32_t>);
template void apply(const TreeView&, Table<const double>, int, std::span<std::int32_t>);
template void apply(const TreeView&, const SparseRows<double>&, int, std::span<std::int32_t>);
template void blend(const TreeView&, const MissingRouting&, Table<const float>, Table<const double>,
                    int, Table<double>);
template void blend(const TreeView&, const MissingRouting&, Table<const double>,
                    Table<const double>, int, Table<double>);
template void mark_lacking(const TreeView&, Table<const float>, std::span<std::uint8_t>);
template void mark_lacking(const TreeView&, Table<const double>, std::span<std::uint8_t>);

void depths(Shape tree, std::span<const std::int32_t> chain, std::span<std::int64_t> depth) {
  RootFinder roots(tree);
  for (const std::size_t v : indices(tree.size())) {
    if (roots.is_root(v)) depth[v] = 0;
    if (tree.is_leaf(v)) continue;
    const std::size_t l = tree.left(v);
    depth[l] = depth[l + 1] = depth[v] + chain[v];
  }
}

}  // namespace certree
