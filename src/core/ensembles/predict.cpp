// Trees walk over blocks of rows, so that a block stays in the cache while all trees pass.
#include "ensembles/predict.hpp"

#include "ensembles/coded.hpp"
#include "parallel.hpp"
#include "walk.hpp"

namespace certree {
namespace {

// Bytes of the rows of a block: they stay in the nearest cache beside a tree.
constexpr std::int64_t kBlockBytes = 1 << 14;
constexpr std::int64_t kBlocksOfThread = 4;
// From so many rows on codes pay what it takes to prepare them.
constexpr std::int64_t kCodedRows = 512;

// The leaves of a tree, (width,), that some rows reach.
template <class Real, class Router>
CERTREE_INLINE void walk_rows(const TreesView& trees, const Router& router,
                              const Table<const Real>& X, std::size_t t, std::int64_t first,
                              std::int64_t width, std::int32_t* node, StepCounter& counter) {
  std::fill_n(node, width, static_cast<std::int32_t>(trees.root[t]));
  walk_to_leaves(
      trees.packed.data(), router, [&](std::int64_t w) { return X.row(first + w); }, width, node,
      counter);
}

// Calls take(t, i, width, node) with the leaves that rows i, ..., i + width - 1 reach in tree t,
// for the trees first, ..., last - 1 in turn. Trees that are larger than blocks would be read anew
// for each: a block has as many rows as a tree nodes, unless threads would then lack work.
template <class Real, class Take>
void take_walked(const TreesView& trees, std::size_t first, std::size_t last,
                 const Table<const Real>& X, int n_threads, const Take& take) {
  const auto row_bytes =
      std::max<std::int64_t>(X.width, 1) * static_cast<std::int64_t>(sizeof(Real));
  const std::int64_t most = X.n_rows / kWalksAtOnce / kBlocksOfThread / std::max(n_threads, 1);
  const auto n_nodes =
      static_cast<std::int64_t>(trees.packed.size() / std::max<std::size_t>(trees.root.size(), 1));
  const std::int64_t block = std::max({kBlockBytes / row_bytes / kWalksAtOnce, std::int64_t{4},
                                       std::min(most, n_nodes / kWalksAtOnce)}) *
                             kWalksAtOnce;
  with_packed_router(trees.nodes, [&](const auto& router) {
    parallel_for((X.n_rows + block - 1) / block, n_threads, [&](std::int64_t b) {
      StepCounter counter;
      const std::int64_t end = std::min(X.n_rows, (b + 1) * block);
      for (std::size_t t = first; t < last; ++t)
        for (std::int64_t i = b * block; i < end; i += kWalksAtOnce) {
          const std::int64_t width = std::min(kWalksAtOnce, end - i);
          std::int32_t node[kWalksAtOnce];
          walk_rows(trees, router, X, t, i, width, node, counter);
          take(t, i, width, node);
        }
      counter.flush();
    });
  });
}

// Calls take(t, i, width, leaves) for the same trees, with the leaves of a block as `CodedLeaves`.
template <class Real, class Take>
void take_coded(const CodedTrees& coded, std::size_t first, std::size_t last,
                const Table<const Real>& X, int n_threads, const Take& take) {
  parallel_for((X.n_rows + kLanes - 1) / kLanes, n_threads, [&](std::int64_t b) {
    StepCounter counter;
    const std::int64_t begin = b * kLanes, width = std::min(kLanes, X.n_rows - begin);
    const auto codes = make_buffer<std::uint8_t>(coded.n_codes());
    coded.code(X, begin, width, codes.get(), counter);
    std::array<std::uint8_t, kLanes> position;
    for (std::size_t t = first; t < last; ++t)
      take(t, begin, width, coded.find(t, codes.get(), position, counter));
    counter.flush();
  });
}

// Does the one or the other, whichever takes less time: codes of many rows for small trees, else
// walks.
template <class Real, class Take>
void take_leaves(const TreesView& trees, std::size_t first, std::size_t last,
                 const Table<const Real>& X, int n_threads, const Take& take) {
  if (X.n_rows < kCodedRows) return take_walked(trees, first, last, X, n_threads, take);
  std::size_t most = last;  // trees that may have few enough thresholds together
  while (first < last) {
    const bool is_small = CodedTrees::is_small(trees, first);
    const std::size_t limit = is_small ? std::min(last, first + most) : last;
    std::size_t end = first + 1;
    while (end < limit && CodedTrees::is_small(trees, end) == is_small) ++end;
    std::optional<CodedTrees> coded;
    while (is_small && !(coded = CodedTrees::of(trees, first, end))) {
      end -= (end - first) / 2;
      most = 2 * (end - first);
    }
    if (coded && coded->pay())
      take_coded(*coded, first, end, X, n_threads, take);
    else
      take_walked(trees, first, end, X, n_threads, take);
    first = end;
  }
}

// The same for a row that many trees walk with at a time.
template <class Real, class Router, class Take>
void take_row(const TreesView& trees, std::size_t first, std::size_t last, const Router& router,
              const Real* x, std::int64_t i, const Take& take, StepCounter& counter) {
  for (std::size_t t = first; t < last; t += kWalksAtOnce) {
    const auto width = std::min<std::int64_t>(kWalksAtOnce, static_cast<std::int64_t>(last - t));
    std::int32_t node[kWalksAtOnce];
    for (std::int64_t w = 0; w < width; ++w)
      node[w] = static_cast<std::int32_t>(trees.root[t + static_cast<std::size_t>(w)]);
    walk_to_leaves(
        trees.packed.data(), router, [&](std::int64_t) { return x; }, width, node, counter);
    for (std::int64_t w = 0; w < width; ++w) take(t + static_cast<std::size_t>(w), i, 1, node + w);
  }
}

// Adds what the values of a tree change along the paths of a row from where it waits, (n_outputs,
// p).
template <class Real, class Router>
CERTREE_INLINE void attribute_row(const TreesView& trees, const Router& router,
                                  const MissingRouting& missing, const Real* x, std::int64_t p,
                                  std::vector<RowFraction>& waiting, double* part) {
  while (!waiting.empty()) {
    const RowFraction at = waiting.back();
    waiting.pop_back();
    const auto v = static_cast<std::size_t>(at.node);
    if (trees.nodes.left[v] == kLeaf) continue;
    const double* const before = trees.value.row(at.node);
    double* const own = part + trees.nodes.feature[v];
    for_each_child_reached(trees.nodes, router, missing, x, at, [&](const RowFraction& next) {
      const double* const after = trees.value.row(next.node);
      for (std::int64_t k = 0; k < trees.value.width; ++k)
        own[k * p] += next.fraction * (after[k] - before[k]);
      waiting.push_back(next);
    });
  }
}

}  // namespace

namespace {

// Adds the values of leaves to the scores of rows, stage by stage.
class AddLeaves {
 public:
  AddLeaves(const TreesView& trees, std::size_t first, std::size_t per_stage, Table<double> total)
      : trees_(trees), first_(first), per_stage_(per_stage), total_(total) {}

  CERTREE_INLINE void operator()(std::size_t t, std::int64_t i, std::int64_t width,
                                 const std::int32_t* node) const {
    for (std::int64_t k = 0; k < trees_.value.width; ++k) {
      double* const own = scores(t, k, i, width);
      for (std::int64_t w = 0; w < width; ++w) own[w] += trees_.value.row(node[w])[k];
    }
  }

  CERTREE_INLINE void operator()(std::size_t t, std::int64_t i, std::int64_t width,
                                 const CodedLeaves& leaves) const {
    // The values of the few leaves of a tree side by side, instead of one search for each row.
    std::array<double, kMostLeaves> value;
    for (std::int64_t k = 0; k < trees_.value.width; ++k) {
      for (std::size_t l = 0; l < leaves.node.size(); ++l)
        value[l] = trees_.value.row(leaves.node[l])[k];
      double* const own = scores(t, k, i, width);
      for (std::int64_t w = 0; w < width; ++w)
        own[w] += value[leaves.position[static_cast<std::size_t>(w)]];
    }
  }

 private:
  // Returns the scores of output k in the stage of tree t, from row i on. At the first tree of a
  // later stage, those of width rows are copied from the stage before.
  CERTREE_INLINE double* scores(std::size_t t, std::int64_t k, std::int64_t i,
                                std::int64_t width) const {
    const std::int64_t n_outputs = trees_.value.width;
    const auto stage = static_cast<std::int64_t>((t - first_) / per_stage_);
    double* const own = total_.row(stage * n_outputs + k) + i;
    if (stage > 0 && (t - first_) % per_stage_ == 0)
      std::copy_n(total_.row((stage - 1) * n_outputs + k) + i, width, own);
    return own;
  }

  const TreesView& trees_;
  std::size_t first_, per_stage_;
  Table<double> total_;
};

// Stores the leaf of each row in each tree.
struct StoreLeaves {
  Table<std::int32_t> leaf;

  void operator()(std::size_t t, std::int64_t i, std::int64_t width,
                  const std::int32_t* node) const {
    std::copy_n(node, width, leaf.row(t) + i);
  }

  void operator()(std::size_t t, std::int64_t i, std::int64_t width,
                  const CodedLeaves& leaves) const {
    std::transform(leaves.position.begin(), leaves.position.begin() + width, leaf.row(t) + i,
                   [&](std::uint8_t position) { return leaves.node[position]; });
  }
};

// Calls take(t, i, 1, node) with the leaves of the rows, which are made dense one by one.
template <class Real, class Take>
void take_sparse(const TreesView& trees, std::size_t first, std::size_t last,
                 const SparseRows<Real>& X, int n_threads, const Take& take) {
  with_packed_router(trees.nodes, [&](const auto& router) {
    for_each_dense_row(X, n_threads, [&](std::int64_t i, const Real* x, StepCounter& counter) {
      take_row(trees, first, last, router, x, i, take, counter);
    });
  });
}

}  // namespace

template <class Real>
void add_trees(const TreesView& trees, std::size_t first, std::size_t last, std::size_t per_stage,
               Table<const Real> X, int n_threads, Table<double> total) {
  const AddLeaves add(trees, first, per_stage, total);
  if (X.n_rows >= kWalksAtOnce) {
    take_leaves(trees, first, last, X, n_threads, add);
    return;
  }
  with_packed_router(trees.nodes, [&](const auto& router) {
    StepCounter counter;
    for (std::int64_t i = 0; i < X.n_rows; ++i)
      take_row(trees, first, last, router, X.row(i), i, add, counter);
    counter.flush();
  });
}

template <class Real>
void add_trees(const TreesView& trees, std::size_t first, std::size_t last, std::size_t per_stage,
               const SparseRows<Real>& X, int n_threads, Table<double> total) {
  take_sparse(trees, first, last, X, n_threads, AddLeaves(trees, first, per_stage, total));
}

template <class Real>
void find_leaves(const TreesView& trees, Table<const Real> X, int n_threads,
                 Table<std::int32_t> leaf) {
  take_leaves(trees, 0, trees.root.size(), X, n_threads, StoreLeaves{leaf});
}

template <class Real>
void find_leaves(const TreesView& trees, const SparseRows<Real>& X, int n_threads,
                 Table<std::int32_t> leaf) {
  take_sparse(trees, 0, trees.root.size(), X, n_threads, StoreLeaves{leaf});
}

template <class Real>
void attribute(const TreesView& trees, const MissingRouting& missing, Table<const Real> X,
               int n_threads, Table<double> part) {
  fill(part.values(), 0.0);
  with_router(trees.nodes, [&](const auto& router) {
    parallel_for(X.n_rows, n_threads, [&](std::int64_t i) {
      std::vector<RowFraction> waiting;
      for (const std::size_t t : indices(trees.root.size(), 32 * trees.value.width)) {
        waiting.assign(1, {static_cast<std::int32_t>(trees.root[t]), 1.0});
        attribute_row(trees, router, missing, X.row(i), X.width, waiting, part.row(i));
      }
    });
  });
}

template void attribute(const TreesView&, const MissingRouting&, Table<const float>, int,
                        Table<double>);
template void attribute(const TreesView&, const MissingRouting&, Table<const double>, int,
                        Table<double>);
template void find_leaves(const TreesView&, Table<const float>, int, Table<std::int32_t>);
template void find_leaves(const TreesView&, Table<const double>, int, Table<std::int32_t>);
template void add_trees(const TreesView&, std::size_t, std::size_t, std::size_t, Table<const float>,
                        int, Table<double>);
template void add_trees(const TreesView&, std::size_t, std::size_t, std::size_t,
                        Table<const double>, int, Table<double>);
template void find_leaves(const TreesView&, const SparseRows<float>&, int, Table<std::int32_t>);
template void find_leaves(const TreesView&, const SparseRows<double>&, int, Table<std::int32_t>);
template void add_trees(const TreesView&, std::size_t, std::size_t, std::size_t,
                        const SparseRows<float>&, int, Table<double>);
template void add_trees(const TreesView&, std::size_t, std::size_t, std::size_t,
                        const SparseRows<double>&, int, Table<double>);

}  // namespace certree
