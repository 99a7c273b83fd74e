// The search for the best splits of two siblings, whose sums add up to those of their parent.
//
// Of the two children the sums of the smaller one are added up from its rows; the sums of the other
// are those of the parent minus these, if the parent's were kept.
#pragma once

#include "grow/decide.hpp"
#include "grow/split_words.hpp"
#include "parallel.hpp"

namespace certree {
namespace {

// What is the same wherever sums lie. Own says where that is:
//   prepare(which)                  makes ready to add up the rows of a node
//   n_parts(features)               how many parts of the features are searched by themselves
//   part_of(features, i, n_parts)   those of the i-th, in a row
//   n_threads(features)             that are worth starting
//   search_by(features, found)      does what tasks say, and finds the best splits of both nodes
//   keeps(which), drop(split_info)  whether sums are worth keeping, and what forgets them
//   reduce(squares, features)       collects what ranks have added up, if it can work for several
template <class Target, class Own>
class SiblingPair {
 public:
  using Row = std::int32_t;
  static constexpr bool kKeeps = true, kSparse = Target::kSparse;

  SiblingPair(const SiblingPair&) = delete;
  SiblingPair& operator=(const SiblingPair&) = delete;

  const Decider<Target>& decider() const { return decider_; }
  std::span<const std::int32_t> features() const { return features_; }

  SplitInfo search_root(const BinnedNode& node, const std::vector<std::int32_t>& features) {
    nodes_[0] = node;
    if (has_categories_) squares_[0] = squares_of(0);
    added_up_ = 0;
    add_up(0);
    tasks_[0].search = true;
    search_nodes(features);
    return std::move(splits_[0]);
  }

  // The children of a node, whether they may be split, and by which features.
  void open(const SplitInfo& above, const std::array<BinnedNode, 2>& children,
            const std::array<Bounds, 2>& bounds, std::array<bool, 2> may_be_split,
            std::vector<std::int32_t>&& features) {
    above_ = above.place;
    nodes_ = children;
    may_ = may_be_split;
    features_ = std::move(features);
    bounds_ = bounds;
    squares_.fill(above.squares);  // until they are searched
  }
  // They are searched together, when the left one is asked for.
  SplitInfo search_child(std::int32_t index) {
    if (index == nodes_[1].index) return std::move(splits_[1]);
    splits_ = {};
    search_pair();
    return std::move(splits_[0]);
  }

 protected:
  // What is done for one of two nodes.
  struct Task {
    bool add_up = false;    // its sums, from its rows
    bool subtract = false;  // those of the other from what the node above left in its place
    bool search = false;
  };
  using NodeEvaluator = typename Target::NodeEvaluator;

  // rows: growing ones, as nodes have them; sums: of the nodes; items: by number of row.
  SiblingPair(const BinnedTable& table, std::span<const std::int32_t> rows, const NodeTotals& sums,
              std::span<const std::int32_t> features, const BinnedGrowth& growth,
              const Target& target, const typename Target::Item* items)
      : table_(table),
        rows_(rows),
        sums_(sums),
        features_(features.begin(), features.end()),
        growth_(growth),
        target_(target),
        decider_(target, table, growth),
        has_categories_(std::ranges::any_of(
            features,
            [&](std::int32_t j) { return table.category[static_cast<std::size_t>(j)] != 0; })),
        items_(items) {}
  ~SiblingPair() = default;

  std::span<const std::int32_t> rows_of(std::size_t which) const {
    const BinnedNode& node = nodes_[which];
    return rows_.subspan(static_cast<std::size_t>(node.begin),
                         static_cast<std::size_t>(node.end - node.begin));
  }
  NodeEvaluator evaluator(std::size_t which) const {
    return {target_, sums_.of(nodes_[which].index), squares_[which]};
  }
  Undecided<Target> undecided(std::size_t which, NodeEvaluator& of) const {
    const BinnedNode& node = nodes_[which];
    return {of, sums_.of(node.index).sum, node.size(), bounds_[which], node.key};
  }

  const BinnedTable& table_;
  std::span<const std::int32_t> rows_;
  const NodeTotals& sums_;
  std::vector<std::int32_t> features_;  // of the tree, or those that varied in the node above
  const BinnedGrowth& growth_;
  const Target& target_;
  Decider<Target> decider_;
  bool has_categories_;
  const typename Target::Item* items_;
  // The two nodes that are searched, or the root alone, and what is found.
  std::array<BinnedNode, 2> nodes_{};
  std::array<Bounds, 2> bounds_{};
  std::array<std::int64_t, 2> squares_{};  // what the target adds up for their scatter
  std::array<bool, 2> may_{};
  std::array<Task, 2> tasks_{};
  std::array<SplitInfo, 2> splits_{};
  std::size_t added_up_ = 0;                 // which node's squares are added up from its rows
  SumsPool::Place above_ = SumsPool::kNone;  // where the sums of the node above lie

 private:
  Own& own() { return static_cast<Own&>(*this); }

  std::int64_t squares_of(std::size_t which) const {
    return target_.squares(rows_of(which), items_);
  }

  void add_up(std::size_t which) {
    tasks_[which].add_up = true;
    own().prepare(which);
  }

  void search_pair() {
    const std::size_t small = nodes_[1].size() < nodes_[0].size() ? 1 : 0, large = 1 - small;
    added_up_ = small;
    tasks_ = {};
    tasks_[0].search = may_[0];
    tasks_[1].search = may_[1];
    splits_[large].place = above_;
    const bool subtract = may_[large] && above_ != SumsPool::kNone;
    tasks_[large].subtract = subtract;
    if (may_[small] || subtract) add_up(small);
    if (may_[large] && !subtract) add_up(large);
    if (!may_[0] && !may_[1]) return own().drop(splits_[large]);
    if (has_categories_) {
      squares_[small] = squares_of(small);
      squares_[large] -= squares_[small];
    }
    search_nodes(features_);
  }

  // Finds the splits of the two nodes as their tasks say.
  void search_nodes(const std::vector<std::int32_t>& features) {
    if (growth_.ranks)
      search_over_ranks(features);
    else
      settle_splits(do_tasks(features));
    for (const std::size_t which : {0, 1})
      if (!splits_[which].is_made() || !own().keeps(which)) own().drop(splits_[which]);
  }

  // Ranks add up their rows; rank 0 searches, and shares what it has found.
  void search_over_ranks(const std::vector<std::int32_t>& features) {
    if constexpr (Own::kHasRanks) {
      const std::array<Task, 2> wanted = tasks_;
      for (Task& task : tasks_) task.subtract = task.search = false;
      do_tasks(features);
      const std::int64_t of_all = own().reduce(squares_[added_up_], features);
      // What remains for the sibling has been computed by the rows of this rank alone.
      squares_[1 - added_up_] -= of_all - squares_[added_up_];
      squares_[added_up_] = of_all;
      tasks_ = wanted;
      for (Task& task : tasks_) task.add_up = false;
      if (growth_.ranks->decides()) settle_splits(do_tasks(features));
      const SplitWords<Target> words(features, has_categories_);
      words.share(*growth_.ranks, splits_);
    } else {
      throw std::invalid_argument("several ranks cannot share a sparse table");
    }
  }

  // Does what tasks say, each thread by some of the features. Returns the best splits of both nodes
  // by each part of the features.
  std::vector<std::array<SplitInfo, 2>> do_tasks(const std::vector<std::int32_t>& features) {
    const std::int64_t n_parts = own().n_parts(features);
    std::vector<std::array<SplitInfo, 2>> found(static_cast<std::size_t>(n_parts));
    parallel_for(n_parts, own().n_threads(features), [&](std::int64_t i) {
      own().search_by(own().part_of(features, i, n_parts), found[static_cast<std::size_t>(i)]);
    });
    return found;
  }

  // Chooses the best splits of both nodes, if they gain enough.
  void settle_splits(std::vector<std::array<SplitInfo, 2>>&& found) {
    for (const std::size_t which : {0, 1}) {
      SplitInfo& split_info = splits_[which];
      split_info.squares = squares_[which];
      for (auto& one : found) split_info.challenge(std::move(one[which]), growth_.feature_order);
      if (tasks_[which].search) decider_.settle(evaluator(which), 0.0, split_info);
    }
  }
};

}  // namespace
}  // namespace certree
