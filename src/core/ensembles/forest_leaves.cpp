// Trees are independent while their leaves are summed, rows while they are scored; of each
// row the trees are added up in their order, so that no bit depends on the threads.
#include "ensembles/forest_leaves.hpp"

#include "parallel.hpp"
#include "walk.hpp"

namespace certree {
namespace {

// Rows that a task scores: their sums stay in the cache.
constexpr std::int64_t kBlock = 256;

std::int32_t first_of(std::span<const std::int64_t> root, std::int64_t t) {
  return static_cast<std::int32_t>(root[static_cast<std::size_t>(t)]);
}

std::int32_t end_of(std::span<const std::int64_t> root, std::int64_t t, std::size_t n_nodes) {
  const auto next = static_cast<std::size_t>(t) + 1;
  return static_cast<std::int32_t>(next < root.size() ? root[next]
                                                      : static_cast<std::int64_t>(n_nodes));
}

// Adds a row, so many times, to what a node sums up.
void add_row(const LeafTargets& targets, std::size_t i, double weight, double* sums) {
  *sums++ += weight;
  const double* y = targets.y.row(i);
  for (const std::int64_t n : targets.n_lanes) {
    if (n == 1)
      sums[0] += weight * *y;
    else
      sums[static_cast<std::size_t>(*y)] += weight;
    sums += n;
    ++y;
  }
}

std::vector<std::int32_t> out_of_bag(const Drawing& drawing, std::int64_t t, std::int64_t n) {
  std::vector<std::int32_t> count(static_cast<std::size_t>(n));
  draw_rows(drawing, t, count);
  std::vector<std::int32_t> out;
  for (const std::size_t i : indices(count.size()))
    if (count[i] == 0) out.push_back(static_cast<std::int32_t>(i));
  return out;
}

void add_children(const Arrivals& arrivals, std::int64_t t, Table<double> sums) {
  const std::int32_t first = first_of(arrivals.root, t);
  for (std::int32_t v = end_of(arrivals.root, t, arrivals.left.size()) - 1; v >= first; --v) {
    const std::int32_t left = arrivals.left[static_cast<std::size_t>(v)];
    if (left == kLeaf) continue;
    for (std::int64_t k = 0; k < sums.width; ++k)
      sums.row(v)[k] = sums.row(left)[k] + sums.row(left + 1)[k];
  }
}

std::vector<std::int32_t> parents(std::span<const std::int32_t> left) {
  std::vector<std::int32_t> parent(left.size(), kLeaf);
  for (const std::size_t v : indices(left.size()))
    if (left[v] != kLeaf)
      parent[static_cast<std::size_t>(left[v])] = parent[static_cast<std::size_t>(left[v]) + 1] =
          static_cast<std::int32_t>(v);
  return parent;
}

// What a tree says of a row once the row is taken out of all the nodes that hold it.
class WithoutItself {
 public:
  WithoutItself(const LeafTargets& targets, Table<const double> sums, double rows,
                std::span<const std::int32_t> parent)
      : targets_(targets),
        sums_(sums),
        rows_(rows),
        parent_(parent),
        own_(static_cast<std::size_t>(sums.width)),
        said_(static_cast<std::size_t>(sums.width - 1)) {}

  // Adds it to the total; false if the tree holds no other row.
  bool add(std::size_t i, std::int32_t leaf, double* total, StepCounter& counter) {
    std::ranges::fill(own_, 0.0);
    add_row(targets_, i, targets_.weight_of(i), own_.data());
    if (rows_ == 0.0 && left_in(leaf) > 0.0) {
      step(leaf, 0.0);
    } else {
      path_.clear();
      for (std::int32_t v = leaf; v != kLeaf; v = parent_[static_cast<std::size_t>(v)])
        path_.push_back(v);
      counter.add(std::ssize(path_));
      if (!(left_in(path_.back()) > 0.0)) return false;
      step(path_.back(), 0.0);
      for (std::size_t above = path_.size() - 1; above-- > 0;) step(path_[above], rows_);
    }
    for (std::size_t k = 0; k < said_.size(); ++k) total[k] += said_[k];
    return true;
  }

 private:
  double left_in(std::int32_t v) const { return sums_.row(v)[0] - own_[0]; }

  // From what a node's parent says to what the node does.
  void step(std::int32_t v, double rows) {
    const double whole = left_in(v) + rows;
    if (!(whole > 0.0)) return;
    const double* const sums = sums_.row(v) + 1;
    for (std::size_t k = 0; k < said_.size(); ++k)
      said_[k] = (sums[k] - own_[k + 1] + rows * said_[k]) / whole;
  }

  const LeafTargets& targets_;
  Table<const double> sums_;
  double rows_;
  std::span<const std::int32_t> parent_;
  std::vector<double> own_, said_;
  std::vector<std::int32_t> path_;
};

// What trees say of rows that their leaves do not know.
class AsTheyAre {
 public:
  explicit AsTheyAre(Table<const double> value) : value_(value) {}

  bool add(std::size_t, std::int32_t leaf, double* total, StepCounter&) const {
    for (std::int64_t k = 0; k < value_.width; ++k) total[k] += value_.row(leaf)[k];
    return true;
  }

 private:
  Table<const double> value_;
};

template <class Made>
void score_rows(const Arrivals& arrivals, int n_threads, Table<double> total,
                std::span<std::int32_t> n_trees, const Made& made) {
  fill(total.values(), 0.0);
  fill(n_trees, 0);
  parallel_for((total.n_rows + kBlock - 1) / kBlock, n_threads, [&](std::int64_t block) {
    auto says = made();
    StepCounter counter;
    const std::int64_t end = std::min(total.n_rows, (block + 1) * kBlock);
    for (std::int64_t t = 0; t < arrivals.leaf.n_rows; ++t) {
      const std::int32_t* const leaf = arrivals.leaf.row(t);
      counter.add(kBlock * total.width);
      for (std::int64_t i = block * kBlock; i < end; ++i)
        if (leaf[i] < 0)
          n_trees[static_cast<std::size_t>(i)] +=
              says.add(static_cast<std::size_t>(i), ~leaf[i], total.row(i), counter);
    }
    counter.flush();
  });
}

}  // namespace

template <class Real>
void find_out_of_bag(const TreesView& trees, const Drawing& drawing, Table<const Real> X,
                     int n_threads, Table<std::int32_t> leaf) {
  fill(leaf.values(), 0);
  with_packed_router(trees.nodes, [&](const auto& router) {
    // Rows pass a tree that stays in the cache, as trees are larger than rows.
    parallel_for(leaf.n_rows, n_threads, [&](std::int64_t t) {
      const std::vector<std::int32_t> out = out_of_bag(drawing, t, leaf.width);
      StepCounter counter;
      for (std::size_t first = 0; first < out.size(); first += kWalksAtOnce) {
        const std::int64_t width =
            std::min(kWalksAtOnce, std::ssize(out) - static_cast<std::int64_t>(first));
        const std::int32_t* const row = out.data() + first;
        std::int32_t node[kWalksAtOnce];
        std::fill_n(node, width, first_of(trees.root, t));
        walk_to_leaves(
            trees.packed.data(), router, [&](std::int64_t w) { return X.row(row[w]); }, width, node,
            counter);
        for (std::int64_t w = 0; w < width; ++w) leaf.row(t)[row[w]] = ~node[w];
      }
      counter.flush();
    });
  });
}

void sum_leaves(const Arrivals& arrivals, const LeafTargets& targets, int n_threads,
                Table<double> sums) {
  fill(sums.values(), 0.0);
  parallel_for(arrivals.leaf.n_rows, n_threads, [&](std::int64_t t) {
    const std::int32_t* const leaf = arrivals.leaf.row(t);
    for (const std::size_t i : indices(targets.y.n_rows, targets.y.width))
      if (leaf[i] < 0) add_row(targets, i, targets.weight_of(i), sums.row(~leaf[i]));
    add_children(arrivals, t, sums);
  });
}

void shrink_leaves(std::span<const std::int32_t> left, std::span<const std::int64_t> root,
                   Table<const double> sums, double rows, int n_threads, Table<double> value) {
  const auto set = [&](std::int32_t v, const double* parent, double drawn) {
    const double* const own = sums.row(v);
    const double whole = own[0] + drawn;
    for (std::int64_t k = 0; k < value.width; ++k)
      value.row(v)[k] = whole > 0.0 ? (own[k + 1] + drawn * parent[k]) / whole : parent[k];
  };
  const std::vector<double> nothing(static_cast<std::size_t>(value.width));
  parallel_for(std::ssize(root), n_threads, [&](std::int64_t t) {
    const std::int32_t first = first_of(root, t);
    set(first, nothing.data(), 0.0);
    for (const std::size_t n : indices(end_of(root, t, left.size()) - first, value.width)) {
      const std::int32_t v = first + static_cast<std::int32_t>(n);
      const std::int32_t child = left[static_cast<std::size_t>(v)];
      if (child == kLeaf) continue;
      set(child, value.row(v), rows);
      set(child + 1, value.row(v), rows);
    }
  });
}

void average_leaves(std::span<const std::int32_t> left, std::span<const double> rows,
                    Table<const double> value, Table<double> mean) {
  const auto below = make_buffer<double>(left.size());  // how many rows
  for (const std::size_t v : indices_down(left.size())) {
    double* const own = mean.row(v);
    if (left[v] == kLeaf) {
      below[v] = rows[v];
      std::copy_n(value.row(v), mean.width, own);
      continue;
    }
    const auto child = static_cast<std::size_t>(left[v]);
    below[v] = below[child] + below[child + 1];
    const double fraction = below[v] > 0.0 ? below[child + 1] / below[v] : 0.5;
    const double *const first = mean.row(child), *const second = mean.row(child + 1);
    for (std::int64_t k = 0; k < mean.width; ++k)
      own[k] = first[k] * (1.0 - fraction) + second[k] * fraction;
  }
}

void sum_out_of_bag_predictions(const Arrivals& arrivals, const LeafTargets& targets,
                                Table<const double> sums, bool knows, double rows, int n_threads,
                                Table<double> total, std::span<std::int32_t> n_trees) {
  if (knows) {
    const std::vector<std::int32_t> parent = parents(arrivals.left);
    score_rows(arrivals, n_threads, total, n_trees,
               [&] { return WithoutItself(targets, sums, rows, parent); });
    return;
  }
  const auto value = make_buffer<double>(sums.n_rows, total.width);
  const Table<double> said{value.get(), sums.n_rows, total.width};
  shrink_leaves(arrivals.left, arrivals.root, sums, rows, n_threads, said);
  score_rows(arrivals, n_threads, total, n_trees, [&] { return AsTheyAre(said); });
}

template void find_out_of_bag(const TreesView&, const Drawing&, Table<const float>, int,
                              Table<std::int32_t>);
template void find_out_of_bag(const TreesView&, const Drawing&, Table<const double>, int,
                              Table<std::int32_t>);

}  // namespace certree
