// Trees walk over blocks of rows, so that a block stays in the cache while all trees pass.
#include "ensembles/predict.hpp"

#include "parallel.hpp"
#include "walk.hpp"

namespace certree {
namespace {

// Bytes of the rows of a block: they stay in the nearest cache beside a tree.
constexpr std::int64_t kBlockBytes = 1 << 14;
constexpr std::int64_t kBlocksOfThread = 4;

// The leaves of a tree, (width,), that some rows reach.
template <class Real, class Steps>
CERTREE_INLINE void walk_rows(const TreesView& trees, const Steps& steps,
                              const Table<const Real>& X, std::size_t t, std::int64_t first,
                              std::int64_t width, std::int32_t* node, Tally& tally) {
  std::fill_n(node, width, static_cast<std::int32_t>(trees.root[t]));
  walk_group(
      trees.packed.data(), steps, [&](std::int64_t w) { return X.row(first + w); }, width, node,
      tally);
}

// Calls task(begin, end, tally) for blocks of rows. Trees that are larger than blocks would be read
// anew for each: a block has as many rows as a tree nodes, unless threads would then lack work.
template <class Real, class Task>
void in_blocks(const TreesView& trees, const Table<const Real>& X, int n_threads,
               const Task& task) {
  const auto row_bytes =
      std::max<std::int64_t>(X.width, 1) * static_cast<std::int64_t>(sizeof(Real));
  const std::int64_t most = X.n_rows / kGroup / kBlocksOfThread / std::max(n_threads, 1);
  const auto n_nodes =
      static_cast<std::int64_t>(trees.packed.size() / std::max<std::size_t>(trees.root.size(), 1));
  const std::int64_t block = std::max({kBlockBytes / row_bytes / kGroup, std::int64_t{4},
                                       std::min(most, n_nodes / kGroup)}) *
                             kGroup;
  parallel_for((X.n_rows + block - 1) / block, n_threads, [&](std::int64_t b) {
    Tally tally;
    task(b * block, std::min(X.n_rows, (b + 1) * block), tally);
    tally.pay();
  });
}

template <class Real, class Steps>
class Adding {
 public:
  Adding(const TreesView& trees, const Steps& steps, const Table<const Real>& X,
         Table<double> total)
      : trees_(trees), steps_(steps), X_(X), total_(total) {}

  // By one tree.
  void add_rows(std::size_t t, std::int64_t begin, std::int64_t end, Tally& tally) const {
    for (std::int64_t i = begin; i < end; i += kGroup) {
      const std::int64_t width = std::min(kGroup, end - i);
      std::int32_t node[kGroup];
      walk_rows(trees_, steps_, X_, t, i, width, node, tally);
      for (std::int64_t w = 0; w < width; ++w) add(i + w, node[w]);
    }
  }

  // By many trees, whose walks go on side by side instead.
  void add_row(std::int64_t i, std::size_t first, std::size_t last, Tally& tally) const {
    const Real* const x = X_.row(i);
    while (first < last) {
      const auto width = std::min<std::int64_t>(kGroup, static_cast<std::int64_t>(last - first));
      std::int32_t node[kGroup];
      for (std::int64_t w = 0; w < width; ++w) node[w] = root(first++);
      walk_group(trees_.packed.data(), steps_, [&](std::int64_t) { return x; }, width, node, tally);
      for (std::int64_t w = 0; w < width; ++w) add(i, node[w]);
    }
  }

 private:
  std::int32_t root(std::size_t t) const { return static_cast<std::int32_t>(trees_.root[t]); }

  CERTREE_INLINE void add(std::int64_t i, std::int32_t leaf) const {
    const double* const value = trees_.value.row(leaf);
    for (std::int64_t k = 0; k < trees_.value.width; ++k) total_.row(k)[i] += value[k];
  }

  const TreesView& trees_;
  const Steps& steps_;
  const Table<const Real>& X_;
  Table<double> total_;
};

// Adds what the values of a tree change along the paths of a row from where it waits, (n_outputs,
// p).
template <class Real, class Steps>
CERTREE_INLINE void attribute_row(const TreesView& trees, const Steps& steps,
                                  const Branches& branches, const Real* x, std::int64_t p,
                                  std::vector<Arrival>& waiting, double* part) {
  while (!waiting.empty()) {
    const Arrival at = waiting.back();
    waiting.pop_back();
    const auto v = static_cast<std::size_t>(at.node);
    if (trees.nodes.left[v] == kLeaf) continue;
    const double* const before = trees.value.row(at.node);
    double* const own = part + trees.nodes.feature[v];
    go_on(trees.nodes, steps, branches, x, at, [&](const Arrival& next) {
      const double* const after = trees.value.row(next.node);
      for (std::int64_t k = 0; k < trees.value.width; ++k)
        own[k * p] += next.part * (after[k] - before[k]);
      waiting.push_back(next);
    });
  }
}

}  // namespace

template <class Real>
void add_trees(const TreesView& trees, std::size_t first, std::size_t last, Table<const Real> X,
               int n_threads, Table<double> total) {
  with_packed_steps(trees.nodes, [&](const auto& steps) {
    const Adding adding(trees, steps, X, total);
    if (X.n_rows < kGroup) {
      Tally tally;
      for (std::int64_t i = 0; i < X.n_rows; ++i) adding.add_row(i, first, last, tally);
      tally.pay();
      return;
    }
    in_blocks(trees, X, n_threads, [&](std::int64_t begin, std::int64_t end, Tally& tally) {
      for (std::size_t t = first; t < last; ++t) adding.add_rows(t, begin, end, tally);
    });
  });
}

template <class Real>
void find_leaves(const TreesView& trees, Table<const Real> X, int n_threads,
                 Table<std::int32_t> leaf) {
  with_packed_steps(trees.nodes, [&](const auto& steps) {
    in_blocks(trees, X, n_threads, [&](std::int64_t begin, std::int64_t end, Tally& tally) {
      for (std::size_t t = 0; t < trees.root.size(); ++t)
        for (std::int64_t i = begin; i < end; i += kGroup)
          walk_rows(trees, steps, X, t, i, std::min(kGroup, end - i), leaf.row(t) + i, tally);
    });
  });
}

template <class Real>
void attribute(const TreesView& trees, const Branches& branches, Table<const Real> X, int n_threads,
               Table<double> part) {
  fill(part.values(), 0.0);
  with_steps(trees.nodes, [&](const auto& steps) {
    parallel_for(X.n_rows, n_threads, [&](std::int64_t i) {
      std::vector<Arrival> waiting;
      for (const std::size_t t : turns(trees.root.size(), 32 * trees.value.width)) {
        waiting.assign(1, {static_cast<std::int32_t>(trees.root[t]), 1.0});
        attribute_row(trees, steps, branches, X.row(i), X.width, waiting, part.row(i));
      }
    });
  });
}

template void attribute(const TreesView&, const Branches&, Table<const float>, int, Table<double>);
template void attribute(const TreesView&, const Branches&, Table<const double>, int, Table<double>);
template void find_leaves(const TreesView&, Table<const float>, int, Table<std::int32_t>);
template void find_leaves(const TreesView&, Table<const double>, int, Table<std::int32_t>);
template void add_trees(const TreesView&, std::size_t, std::size_t, Table<const float>, int,
                        Table<double>);
template void add_trees(const TreesView&, std::size_t, std::size_t, Table<const double>, int,
                        Table<double>);

}  // namespace certree
