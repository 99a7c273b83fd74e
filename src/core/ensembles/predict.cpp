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
constexpr std::int64_t kBlocksPerThread = 4;
// Smallest number of rows that are predicted by codes. For fewer rows, coding the trees takes
// longer than it saves.
constexpr std::int64_t kCodedRows = 512;

// Writes to node, (width,), the leaves that rows first, first + 1, ... reach in tree t.
template <class Real, class Router>
CERTREE_INLINE void walk_rows(const TreesView& trees, const Router& router,
                              const Table<const Real>& X, std::size_t t, std::int64_t first,
                              std::int64_t width, std::int32_t* node, StepCounter& counter) {
  std::fill_n(node, width, static_cast<std::int32_t>(trees.root[t]));
  walk_to_leaves(
      trees.packed.data(), router, [&](std::int64_t w) { return X.row(first + w); }, width, node,
      counter);
}

// Finds the leaves of all rows in the trees first, ..., last - 1 by walks, and passes them to a
// sink.
//
// For each block of rows begin, ..., end - 1 it makes block = sink.start_block(first, begin, end),
// calls block(t, i, width, node) for each tree t and some rows i, ..., i + width - 1 at a time,
// whose leaves node holds, and then block.finish(). Large trees are read anew for each block, so a
// block has about as many rows as a tree has nodes, but fewer if threads would lack work.
template <class Real, class Sink>
void pass_walked_leaves(const TreesView& trees, std::size_t first, std::size_t last,
                        const Table<const Real>& X, int n_threads, const Sink& sink) {
  const auto row_bytes =
      std::max<std::int64_t>(X.width, 1) * static_cast<std::int64_t>(sizeof(Real));
  const std::int64_t most = X.n_rows / kWalksAtOnce / kBlocksPerThread / std::max(n_threads, 1);
  const auto n_nodes =
      static_cast<std::int64_t>(trees.packed.size() / std::max<std::size_t>(trees.root.size(), 1));
  const std::int64_t block = std::max({kBlockBytes / row_bytes / kWalksAtOnce, std::int64_t{4},
                                       std::min(most, n_nodes / kWalksAtOnce)}) *
                             kWalksAtOnce;
  with_packed_router(trees.nodes, [&](const auto& router) {
    parallel_for((X.n_rows + block - 1) / block, n_threads, [&](std::int64_t b) {
      StepCounter counter;
      const std::int64_t end = std::min(X.n_rows, (b + 1) * block);
      auto sink_block = sink.start_block(first, b * block, end);
      for (std::size_t t = first; t < last; ++t)
        for (std::int64_t i = b * block; i < end; i += kWalksAtOnce) {
          const std::int64_t width = std::min(kWalksAtOnce, end - i);
          std::int32_t node[kWalksAtOnce];
          walk_rows(trees, router, X, t, i, width, node, counter);
          sink_block(t, i, width, node);
        }
      sink_block.finish();
      counter.flush();
    });
  });
}

// Finds the leaves of all rows in the trees first, ..., last - 1 by codes, and passes them to a
// sink as pass_walked_leaves() does. Blocks have kLanes rows, and block(t, begin, width, leaves) is
// called with the leaves of all of them as CodedLeaves.
template <class Real, class Sink>
void pass_coded_leaves(const CodedTrees& coded, std::size_t first, std::size_t last,
                       const Table<const Real>& X, int n_threads, const Sink& sink) {
  parallel_for((X.n_rows + kLanes - 1) / kLanes, n_threads, [&](std::int64_t b) {
    StepCounter counter;
    const std::int64_t begin = b * kLanes, width = std::min(kLanes, X.n_rows - begin);
    const auto codes = make_buffer<std::uint8_t>(coded.n_codes());
    coded.code(X, begin, width, codes.get(), counter);
    std::array<std::uint8_t, kLanes> leaf_of_row;
    auto sink_block = sink.start_block(first, begin, begin + width);
    for (std::size_t t = first; t < last; ++t)
      sink_block(t, begin, width, coded.find_leaves(t, codes.get(), leaf_of_row, counter));
    sink_block.finish();
    counter.flush();
  });
}

// Passes the leaves of all rows to a sink: those in small trees by codes if there are many rows,
// all others by walks.
template <class Real, class Sink>
void pass_leaves(const TreesView& trees, std::size_t first, std::size_t last,
                 const Table<const Real>& X, int n_threads, const Sink& sink) {
  if (X.n_rows < kCodedRows) return pass_walked_leaves(trees, first, last, X, n_threads, sink);
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
    if (coded && coded->pays_off())
      pass_coded_leaves(*coded, first, end, X, n_threads, sink);
    else
      pass_walked_leaves(trees, first, end, X, n_threads, sink);
    first = end;
  }
}

// Passes the leaves of one row x to a sink as pass_walked_leaves() does, as a block of its own. The
// row has index i. Many trees are walked at the same time.
template <class Real, class Router, class Sink>
void pass_row_leaves(const TreesView& trees, std::size_t first, std::size_t last,
                     const Router& router, const Real* x, std::int64_t i, const Sink& sink,
                     StepCounter& counter) {
  auto sink_block = sink.start_block(first, i, i + 1);
  for (std::size_t t = first; t < last; t += kWalksAtOnce) {
    const auto width = std::min<std::int64_t>(kWalksAtOnce, static_cast<std::int64_t>(last - t));
    std::int32_t node[kWalksAtOnce];
    for (std::int64_t w = 0; w < width; ++w)
      node[w] = static_cast<std::int32_t>(trees.root[t + static_cast<std::size_t>(w)]);
    walk_to_leaves(
        trees.packed.data(), router, [&](std::int64_t) { return x; }, width, node, counter);
    for (std::int64_t w = 0; w < width; ++w)
      sink_block(t + static_cast<std::size_t>(w), i, 1, node + w);
  }
  sink_block.finish();
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

// Scores or leaf values of four outputs, which one instruction adds to four others. The last group
// may have unused outputs, whose leaf values are 0.
#if defined(__GNUC__)
using OutputGroup [[gnu::vector_size(32)]] = double;
#else
struct OutputGroup {
  std::array<double, 4> number;

  void operator+=(const OutputGroup& other) {
    for (std::size_t k = 0; k < number.size(); ++k) number[k] += other.number[k];
  }
};
#endif
constexpr std::int64_t kOutputsPerGroup = sizeof(OutputGroup) / sizeof(double);

// Adds the values of the row's leaf to the scores of each row. value: (n_leaves, kOutputsPerGroup);
// leaf_of_row: (width,); score: (width, kOutputsPerGroup).
CERTREE_SIMD_CLONES void add_group_to_rows(const double* value, const std::uint8_t* leaf_of_row,
                                           std::int64_t width, double* score) noexcept {
  for (std::int64_t w = 0; w < width; ++w, score += kOutputsPerGroup) {
    OutputGroup sum, own;
    std::memcpy(&sum, score, sizeof(OutputGroup));
    std::memcpy(&own, value + leaf_of_row[w] * kOutputsPerGroup, sizeof(OutputGroup));
    sum += own;
    std::memcpy(score, &sum, sizeof(OutputGroup));
  }
}

// A sink that adds the values of leaves to the scores of rows. Each stage goes on from the scores
// of the stage before.
class AddLeaves {
 public:
  AddLeaves(const TreesView& trees, std::size_t first, std::size_t per_stage, Table<double> total)
      : trees_(trees), first_(first), per_stage_(per_stage), total_(total) {}

  // The scores of a block of rows: in groups of outputs, unless there is only one output.
  class Block {
   public:
    Block(const AddLeaves& all, std::size_t t, std::int64_t begin, std::int64_t end)
        : all_(all),
          begin_(begin),
          n_(end - begin),
          stage_(all.stage_of(t)),
          score_(make_buffer<double>(n_groups(), n_, group_size())) {
      const std::int64_t from = stage_ > 0 && all_.starts_stage(t) ? stage_ - 1 : stage_;
      std::fill_n(score_.get(), n_groups() * n_ * group_size(), 0.0);
      for_each_score(from, [](double& own, double& total) { own = total; });
    }

    CERTREE_INLINE void operator()(std::size_t t, std::int64_t i, std::int64_t width,
                                   const std::int32_t* node) {
      finish_stage_before(t);
      const std::int64_t n_outputs = all_.trees_.value.width, step = group_size();
      for (std::int64_t k = 0; k < n_outputs; ++k) {
        double* const own = scores_of(k) + (i - begin_) * step;
        for (std::int64_t w = 0; w < width; ++w) own[w * step] += all_.trees_.value.row(node[w])[k];
      }
    }

    CERTREE_INLINE void operator()(std::size_t t, std::int64_t i, std::int64_t width,
                                   const CodedLeaves& leaves) {
      finish_stage_before(t);
      if (all_.trees_.value.width > 1) {
        for (std::int64_t g = 0; g < n_groups(); ++g) add_group(g, i, width, leaves);
        return;
      }
      // The values of the leaves are copied to a small array, in which those of rows are found
      // sooner.
      std::array<double, kMostLeaves> value;
      for (std::size_t l = 0; l < leaves.leaf_node.size(); ++l)
        value[l] = *all_.trees_.value.row(leaves.leaf_node[l]);
      double* const own = score_.get() + (i - begin_);
      for (std::int64_t w = 0; w < width; ++w)
        own[w] += value[leaves.leaf_of_row[static_cast<std::size_t>(w)]];
    }

    // Writes the scores of the last stage.
    void finish() {
      for_each_score(stage_, [](const double& own, double& total) { total = own; });
    }

   private:
    std::int64_t group_size() const { return all_.trees_.value.width > 1 ? kOutputsPerGroup : 1; }
    std::int64_t n_groups() const {
      return (all_.trees_.value.width + group_size() - 1) / group_size();
    }
    // Returns the score of the first row for output k; that of the next row is group_size() further
    // on.
    double* scores_of(std::int64_t k) const {
      return score_.get() + k / group_size() * n_ * group_size() + k % group_size();
    }

    // Adds the values of a tree's leaves for the outputs of group g.
    void add_group(std::int64_t g, std::int64_t i, std::int64_t width, const CodedLeaves& leaves) {
      const std::int64_t first = g * kOutputsPerGroup;
      const std::int64_t n_used = std::min(kOutputsPerGroup, all_.trees_.value.width - first);
      std::array<double, kMostLeaves * kOutputsPerGroup> value;
      double* next = value.data();
      for (const std::int32_t node : leaves.leaf_node) {
        const double* const own = all_.trees_.value.row(node) + first;
        if (n_used == kOutputsPerGroup)  // A known number of bytes takes no loop.
          std::memcpy(next, own, sizeof(OutputGroup));
        else
          for (std::int64_t k = 0; k < kOutputsPerGroup; ++k) next[k] = k < n_used ? own[k] : 0.0;
        next += kOutputsPerGroup;
      }
      double* const score = scores_of(first) + (i - begin_) * kOutputsPerGroup;
      add_group_to_rows(value.data(), leaves.leaf_of_row.data(), width, score);
    }

    // Calls visit(score in this block, score in the table of all rows) for all scores of a stage.
    template <class Visit>
    void for_each_score(std::int64_t stage, const Visit& visit) {
      const std::int64_t n_outputs = all_.trees_.value.width, step = group_size();
      for (std::int64_t k = 0; k < n_outputs; ++k) {
        double* const own = scores_of(k);
        double* const total = all_.total_.row(stage * n_outputs + k) + begin_;
        for (std::int64_t i = 0; i < n_; ++i) visit(own[i * step], total[i]);
      }
    }

    // Writes the scores of the trees so far if they end a stage, as tree t belongs to a later one.
    CERTREE_INLINE void finish_stage_before(std::size_t t) {
      if (all_.stage_of(t) == stage_) return;
      finish();
      stage_ = all_.stage_of(t);
    }

    const AddLeaves& all_;
    std::int64_t begin_, n_, stage_;
    Buffer<double> score_;  // (n_groups(), n_, group_size())
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

// A sink that stores the node of each row's leaf in each tree.
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
    const auto first = leaves.leaf_of_row.begin();
    std::transform(first, first + width, leaf.row(t) + i,
                   [&](std::uint8_t number) { return leaves.leaf_node[number]; });
  }
};

// Passes the leaves of sparse rows to a sink, row by row. Rows are made dense one by one, and walk.
template <class Real, class Sink>
void pass_sparse_leaves(const TreesView& trees, std::size_t first, std::size_t last,
                        const SparseRows<Real>& X, int n_threads, const Sink& sink) {
  with_packed_router(trees.nodes, [&](const auto& router) {
    for_each_dense_row(X, n_threads, [&](std::int64_t i, const Real* x, StepCounter& counter) {
      pass_row_leaves(trees, first, last, router, x, i, sink, counter);
    });
  });
}

}  // namespace

template <class Real>
void add_trees(const TreesView& trees, std::size_t first, std::size_t last, std::size_t per_stage,
               Table<const Real> X, int n_threads, Table<double> total) {
  const AddLeaves add(trees, first, per_stage, total);
  if (X.n_rows >= kWalksAtOnce) {
    pass_leaves(trees, first, last, X, n_threads, add);
    return;
  }
  with_packed_router(trees.nodes, [&](const auto& router) {
    StepCounter counter;
    for (std::int64_t i = 0; i < X.n_rows; ++i)
      pass_row_leaves(trees, first, last, router, X.row(i), i, add, counter);
    counter.flush();
  });
}

template <class Real>
void add_trees(const TreesView& trees, std::size_t first, std::size_t last, std::size_t per_stage,
               const SparseRows<Real>& X, int n_threads, Table<double> total) {
  pass_sparse_leaves(trees, first, last, X, n_threads, AddLeaves(trees, first, per_stage, total));
}

template <class Real>
void find_leaves(const TreesView& trees, Table<const Real> X, int n_threads,
                 Table<std::int32_t> leaf) {
  pass_leaves(trees, 0, trees.root.size(), X, n_threads, StoreLeaves{leaf});
}

template <class Real>
void find_leaves(const TreesView& trees, const SparseRows<Real>& X, int n_threads,
                 Table<std::int32_t> leaf) {
  pass_sparse_leaves(trees, 0, trees.root.size(), X, n_threads, StoreLeaves{leaf});
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
