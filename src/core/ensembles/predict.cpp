// Trees walk over blocks of rows, so that a block stays in the cache while all trees pass.
#include "ensembles/predict.hpp"

#include <cstring>

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

// Calls take.start_block(first, begin, end) for each block of rows begin, ..., end - 1, and the
// result, say block, as block(t, i, width, node) with the leaves that rows i, ..., i + width - 1 of
// the block reach in tree t, for the trees first, ..., last - 1 in turn; at last block.finish().
// Trees that are larger than blocks would be read anew
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
      auto taken = take.start_block(first, b * block, end);
      for (std::size_t t = first; t < last; ++t)
        for (std::int64_t i = b * block; i < end; i += kWalksAtOnce) {
          const std::int64_t width = std::min(kWalksAtOnce, end - i);
          std::int32_t node[kWalksAtOnce];
          walk_rows(trees, router, X, t, i, width, node, counter);
          taken(t, i, width, node);
        }
      taken.finish();
      counter.flush();
    });
  });
}

// The same with the leaves of all rows of a block as `CodedLeaves`.
template <class Real, class Take>
void take_coded(const CodedTrees& coded, std::size_t first, std::size_t last,
                const Table<const Real>& X, int n_threads, const Take& take) {
  parallel_for((X.n_rows + kLanes - 1) / kLanes, n_threads, [&](std::int64_t b) {
    StepCounter counter;
    const std::int64_t begin = b * kLanes, width = std::min(kLanes, X.n_rows - begin);
    const auto codes = make_buffer<std::uint8_t>(coded.n_codes());
    coded.code(X, begin, width, codes.get(), counter);
    std::array<std::uint8_t, kLanes> position;
    auto taken = take.start_block(first, begin, begin + width);
    for (std::size_t t = first; t < last; ++t)
      taken(t, begin, width, coded.find(t, codes.get(), position, counter));
    taken.finish();
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

// The same for a block of one row, with which many trees walk at a time.
template <class Real, class Router, class Take>
void take_row(const TreesView& trees, std::size_t first, std::size_t last, const Router& router,
              const Real* x, std::int64_t i, const Take& take, StepCounter& counter) {
  auto taken = take.start_block(first, i, i + 1);
  for (std::size_t t = first; t < last; t += kWalksAtOnce) {
    const auto width = std::min<std::int64_t>(kWalksAtOnce, static_cast<std::int64_t>(last - t));
    std::int32_t node[kWalksAtOnce];
    for (std::int64_t w = 0; w < width; ++w)
      node[w] = static_cast<std::int32_t>(trees.root[t + static_cast<std::size_t>(w)]);
    walk_to_leaves(
        trees.packed.data(), router, [&](std::int64_t) { return x; }, width, node, counter);
    for (std::int64_t w = 0; w < width; ++w) taken(t + static_cast<std::size_t>(w), i, 1, node + w);
  }
  taken.finish();
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

// The scores or leaf values of a group of outputs, which are added together. The last group of
// several outputs may have unused ones, which are 0 in leaf values.
#if defined(__GNUC__)
using Group [[gnu::vector_size(32)]] = double;
#else
struct Group {
  std::array<double, 4> number;

  void operator+=(const Group& other) {
    for (std::size_t k = 0; k < number.size(); ++k) number[k] += other.number[k];
  }
};
#endif
constexpr std::int64_t kOutputsOfGroup = sizeof(Group) / sizeof(double);

// Adds group position[w] of the values to the group of each row w of the scores.
CERTREE_SIMD_CLONES void add_groups(const double* value, const std::uint8_t* position,
                                    std::int64_t width, double* score) noexcept {
  for (std::int64_t w = 0; w < width; ++w, score += kOutputsOfGroup) {
    Group sum, own;
    std::memcpy(&sum, score, sizeof(Group));
    std::memcpy(&own, value + position[w] * kOutputsOfGroup, sizeof(Group));
    sum += own;
    std::memcpy(score, &sum, sizeof(Group));
  }
}

// Adds the values of leaves to the scores of rows, stage by stage.
class AddLeaves {
 public:
  AddLeaves(const TreesView& trees, std::size_t first, std::size_t per_stage, Table<double> total)
      : trees_(trees), first_(first), per_stage_(per_stage), total_(total) {}

  // The scores of a block of rows, as groups if there are several outputs, else as numbers.
  class Block {
   public:
    Block(const AddLeaves& all, std::size_t t, std::int64_t begin, std::int64_t end)
        : all_(all),
          begin_(begin),
          n_(end - begin),
          stage_(all.stage_of(t)),
          score_(make_buffer<double>(n_groups(), n_, n_lanes())) {
      const std::int64_t from = stage_ > 0 && all_.starts_stage(t) ? stage_ - 1 : stage_;
      std::fill_n(score_.get(), n_groups() * n_ * n_lanes(), 0.0);
      for_each_output(from, [](double& own, double& total) { own = total; });
    }

    CERTREE_INLINE void operator()(std::size_t t, std::int64_t i, std::int64_t width,
                                   const std::int32_t* node) {
      enter_stage(t);
      const std::int64_t n_outputs = all_.trees_.value.width, step = n_lanes();
      for (std::int64_t k = 0; k < n_outputs; ++k) {
        double* const own = output(k) + (i - begin_) * step;
        for (std::int64_t w = 0; w < width; ++w) own[w * step] += all_.trees_.value.row(node[w])[k];
      }
    }

    CERTREE_INLINE void operator()(std::size_t t, std::int64_t i, std::int64_t width,
                                   const CodedLeaves& leaves) {
      enter_stage(t);
      if (n_groups() > 1 || n_lanes() > 1) {
        for (std::int64_t g = 0; g < n_groups(); ++g) add_group(g, i, width, leaves);
        return;
      }
      // The values of the few leaves of a tree side by side, instead of one search for each row.
      std::array<double, kMostLeaves> value;
      for (std::size_t l = 0; l < leaves.node.size(); ++l)
        value[l] = *all_.trees_.value.row(leaves.node[l]);
      double* const own = score_.get() + (i - begin_);
      for (std::int64_t w = 0; w < width; ++w)
        own[w] += value[leaves.position[static_cast<std::size_t>(w)]];
    }

    // Writes the scores of the last stage.
    void finish() {
      for_each_output(stage_, [](const double& own, double& total) { total = own; });
    }

   private:
    std::int64_t n_lanes() const { return all_.trees_.value.width > 1 ? kOutputsOfGroup : 1; }
    std::int64_t n_groups() const { return (all_.trees_.value.width + n_lanes() - 1) / n_lanes(); }
    // Returns the score of the first row for output k; that of the next row is n_lanes() further
    // on.
    double* output(std::int64_t k) const {
      return score_.get() + k / n_lanes() * n_ * n_lanes() + k % n_lanes();
    }

    void add_group(std::int64_t g, std::int64_t i, std::int64_t width, const CodedLeaves& leaves) {
      const std::int64_t first = g * kOutputsOfGroup;
      const std::int64_t n_used = std::min(kOutputsOfGroup, all_.trees_.value.width - first);
      std::array<double, kMostLeaves * kOutputsOfGroup> value;
      double* next = value.data();
      for (const std::int32_t node : leaves.node) {
        const double* const own = all_.trees_.value.row(node) + first;
        if (n_used == kOutputsOfGroup)  // A known number of bytes takes no loop.
          std::memcpy(next, own, sizeof(Group));
        else
          for (std::int64_t k = 0; k < kOutputsOfGroup; ++k) next[k] = k < n_used ? own[k] : 0.0;
        next += kOutputsOfGroup;
      }
      double* const score = output(first) + (i - begin_) * kOutputsOfGroup;
      add_groups(value.data(), leaves.position.data(), width, score);
    }

    // Calls visit(score in this block, score in the table of all rows) for all scores of a stage.
    template <class Visit>
    void for_each_output(std::int64_t stage, const Visit& visit) {
      const std::int64_t n_outputs = all_.trees_.value.width, step = n_lanes();
      for (std::int64_t k = 0; k < n_outputs; ++k) {
        double* const own = output(k);
        double* const total = all_.total_.row(stage * n_outputs + k) + begin_;
        for (std::int64_t i = 0; i < n_; ++i) visit(own[i * step], total[i]);
      }
    }

    // Writes the scores of the stage before if tree t is of a later one.
    CERTREE_INLINE void enter_stage(std::size_t t) {
      if (all_.stage_of(t) == stage_) return;
      finish();
      stage_ = all_.stage_of(t);
    }

    const AddLeaves& all_;
    std::int64_t begin_, n_, stage_;
    Buffer<double> score_;  // (n_groups(), n_, n_lanes())
  };

  Block start_block(std::size_t t, std::int64_t begin, std::int64_t end) const {
    return {*this, t, begin, end};
  }

 private:
  std::int64_t stage_of(std::size_t t) const {
    return static_cast<std::int64_t>((t - first_) / per_stage_);
  }
  bool starts_stage(std::size_t t) const { return (t - first_) % per_stage_ == 0; }

  const TreesView& trees_;
  std::size_t first_, per_stage_;
  Table<double> total_;
};

// Stores the leaf of each row in each tree.
struct StoreLeaves {
  Table<std::int32_t> leaf;

  StoreLeaves start_block(std::size_t, std::int64_t, std::int64_t) const { return *this; }
  void finish() const {}

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

// Does what take_row() does for each row; rows are made dense one by one.
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
