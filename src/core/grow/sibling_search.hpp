// The search for the best splits of two siblings, whose sums add up to those of their parent.
//
// Of the two children the sums of the smaller one are added up from its rows; the sums of the other
// are those of the parent minus these, if the parent's were kept. Ranks search several pairs at a
// time, as a message takes about as long for many pairs as for one.
#pragma once

#include <unordered_map>

#include "grow/split_search.hpp"
#include "grow/split_words.hpp"
#include "parallel.hpp"

namespace certree {
namespace {

// What the search does for one of two nodes.
struct SearchTask {
  bool compute_histogram = false;  // add up its histogram from its rows
  bool subtract =
      false;            // subtract the other's histogram from that of the node above, in its place
  bool search = false;  // find its best split
};

// Two nodes that are searched together, or the root alone, and what is found.
struct Siblings {
  std::array<BinnedNode, 2> nodes{};
  std::array<Bounds, 2> bounds{};
  std::array<bool, 2> may_be_split{};
  std::vector<std::int32_t> features{};               // that may split them
  std::array<std::int64_t, 2> squares{};              // what the target adds up for their scatter
  HistogramPool::Place above = HistogramPool::kNone;  // where the sums of the node above lie
  std::array<SearchTask, 2> tasks{};
  std::size_t added_up = 0;  // which node's squares are added up from its rows
  std::array<SplitInfo, 2> splits{};
};

// What is the same wherever sums lie. Own says where that is, and works on `pair_`:
//   prepare(which)                  makes ready to add up the rows of a node
//   n_parts(features)               how many parts of the features are searched by themselves
//   part_of(features, i, n_parts)   those of the i-th, in a row
//   n_threads(features)             that are worth starting
//   search_by(features, found)      does what tasks say, and finds the best splits of both nodes
//   keeps(which), drop(split_info)  whether sums are worth keeping, and what forgets them
//   each_sum(f)                     calls f with what has been added up, if several ranks can
template <class Target, class Own>
class SiblingSearch {
 public:
  using Row = std::int32_t;
  static constexpr bool kKeeps = true, kSparse = Target::kSparse;

  SiblingSearch(const SiblingSearch&) = delete;
  SiblingSearch& operator=(const SiblingSearch&) = delete;

  const SplitSearch<Target>& split_search() const { return split_search_; }
  std::span<const std::int32_t> features() const { return features_; }

  SplitInfo search_root(const BinnedNode& node, std::vector<std::int32_t>&& features) {
    Siblings root;
    root.nodes[0] = node;
    root.features = std::move(features);
    pair_ = &root;
    if (has_categories_) root.squares[0] = squares_of(0);
    compute_histogram(0);
    root.tasks[0].search = true;
    search_pairs({&pair_, 1});
    return std::move(root.splits[0]);
  }

  // Takes the children of a node, which have the indices i and i + 1; they are searched when the
  // first of all children that wait is asked for.
  void open(const SplitInfo& above, Siblings&& children) {
    children.above = above.place;
    children.squares.fill(above.squares);  // until they are searched
    waiting_.push_back(children.nodes[0].index);
    pairs_[children.nodes[0].index] = std::move(children);
  }
  // Returns the best split of a child. The left one is asked for first.
  SplitInfo search_child(std::int32_t index) {
    search_waiting();
    const auto as_left = pairs_.find(index);
    if (as_left != pairs_.end()) return std::move(as_left->second.splits[0]);
    return std::move(pairs_.extract(index - 1).mapped().splits[1]);
  }

 protected:
  using NodeEvaluator = typename Target::NodeEvaluator;

  // rows: growing ones, as nodes have them; sums: of the nodes; items: by number of row.
  SiblingSearch(const BinnedTable& table, std::span<const std::int32_t> rows,
                const NodeTotals& sums, std::span<const std::int32_t> features,
                const BinnedGrowth& growth, const Target& target,
                const typename Target::Item* items)
      : table_(table),
        rows_(rows),
        sums_(sums),
        features_(features),
        growth_(growth),
        target_(target),
        split_search_(target, table, growth),
        has_categories_(std::ranges::any_of(
            features,
            [&](std::int32_t j) { return table.category[static_cast<std::size_t>(j)] != 0; })),
        items_(items) {}
  ~SiblingSearch() = default;

  std::span<const std::int32_t> rows_of(std::size_t which) const {
    const BinnedNode& node = pair_->nodes[which];
    return rows_.subspan(static_cast<std::size_t>(node.begin),
                         static_cast<std::size_t>(node.end - node.begin));
  }
  NodeEvaluator evaluator(std::size_t which) const {
    return {target_, sums_.of(pair_->nodes[which].index), pair_->squares[which]};
  }
  SearchedNode<Target> undecided(std::size_t which, NodeEvaluator& of) const {
    const BinnedNode& node = pair_->nodes[which];
    return {of, sums_.of(node.index).sum, node.size(), pair_->bounds[which], node.key};
  }

  const BinnedTable& table_;
  std::span<const std::int32_t> rows_;
  const NodeTotals& sums_;
  std::span<const std::int32_t> features_;  // of the tree
  const BinnedGrowth& growth_;
  const Target& target_;
  SplitSearch<Target> split_search_;
  bool has_categories_;
  const typename Target::Item* items_;
  Siblings* pair_ = nullptr;  // which is worked on

 private:
  Own& own() { return static_cast<Own&>(*this); }

  std::int64_t squares_of(std::size_t which) const {
    return target_.squares(rows_of(which), items_);
  }

  void compute_histogram(std::size_t which) {
    pair_->tasks[which].compute_histogram = true;
    own().prepare(which);
  }

  void search_waiting() {
    std::vector<Siblings*> pairs;
    for (const std::int32_t index : waiting_) {
      pair_ = &pairs_.at(index);
      if (plan_tasks()) pairs.push_back(pair_);
    }
    waiting_.clear();
    if (!pairs.empty()) search_pairs(pairs);
  }

  // Sets the tasks of the pair. Returns whether there are any.
  bool plan_tasks() {
    Siblings& pair = *pair_;
    const auto& may = pair.may_be_split;
    const std::size_t small = pair.nodes[1].size() < pair.nodes[0].size() ? 1 : 0;
    const std::size_t large = 1 - small;
    pair.splits[large].place = pair.above;
    if (!may[0] && !may[1]) {
      own().drop(pair.splits[large]);
      return false;
    }
    pair.added_up = small;
    for (const std::size_t which : {0, 1}) pair.tasks[which].search = may[which];
    const bool subtract = may[large] && pair.above != HistogramPool::kNone;
    pair.tasks[large].subtract = subtract;
    if (may[small] || subtract) compute_histogram(small);
    if (may[large] && !subtract) compute_histogram(large);
    if (has_categories_) pair.squares[small] = squares_of(small);
    return true;
  }

  // Finds the splits of the nodes of pairs as their tasks say.
  void search_pairs(std::span<Siblings* const> pairs) {
    if (growth_.ranks)
      search_over_ranks(pairs);
    else
      for (Siblings* const pair : pairs) search_pair(*pair);
    for (Siblings* const pair : pairs) {
      pair_ = pair;
      for (const std::size_t which : {0, 1})
        if (!pair->splits[which].is_made() || !own().keeps(which)) own().drop(pair->splits[which]);
    }
  }

  // `squares` of the node whose rows were not added up are still those of the node above.
  void search_pair(Siblings& pair) {
    pair_ = &pair;
    pair.squares[1 - pair.added_up] -= pair.squares[pair.added_up];
    settle_splits(do_tasks());
  }

  // Ranks add up their rows; rank 0 searches, and shares what it has found.
  void search_over_ranks(std::span<Siblings* const> pairs) {
    if constexpr (Own::kHasRanks) {
      Ranks& ranks = *growth_.ranks;
      for (Siblings* const pair : pairs) {
        pair_ = pair;
        const std::array<SearchTask, 2> wanted = pair->tasks;
        for (SearchTask& task : pair->tasks) task.subtract = task.search = false;
        do_tasks();
        pair->tasks = wanted;
      }
      reduce_sums(pairs);
      if (ranks.is_rank_0())
        for (Siblings* const pair : pairs) {
          for (SearchTask& task : pair->tasks) task.compute_histogram = false;
          search_pair(*pair);
        }
      share_splits(pairs);
    } else {
      throw std::invalid_argument("several ranks cannot share a sparse table");
    }
  }

  // Collects what ranks have added up: at rank 0 it becomes the sums over all of them.
  void reduce_sums(std::span<Siblings* const> pairs) {
    words_.clear();
    each_sum_of(pairs, [&](std::int64_t* sums, std::ptrdiff_t n) {
      words_.insert(words_.end(), sums, sums + n);
    });
    growth_.ranks->reduce(words_, words_.size());
    if (!growth_.ranks->is_rank_0()) return;
    each_sum_of(pairs, [from = words_.begin()](std::int64_t* sums, std::ptrdiff_t n) mutable {
      std::copy_n(from, n, sums);
      from += n;
    });
  }
  template <class F>
  void each_sum_of(std::span<Siblings* const> pairs, F&& f) {
    for (Siblings* const pair : pairs) {
      pair_ = pair;
      f(&pair->squares[pair->added_up], 1);
      own().each_sum(f);
    }
  }

  // Replaces the splits of other ranks by those of rank 0.
  void share_splits(std::span<Siblings* const> pairs) {
    std::vector<SplitWords<Target>> forms;
    std::size_t size = 0;
    for (const Siblings* const pair : pairs) {
      forms.emplace_back(pair->features, has_categories_);
      size += 2 * forms.back().size();
    }
    words_.assign(size, 0);
    const auto each_split = [&](const auto& copy) {
      std::span<std::int64_t> rest = words_;
      for (std::size_t k = 0; k < pairs.size(); ++k)
        for (SplitInfo& split : pairs[k]->splits) {
          copy(forms[k], rest.first(forms[k].size()), split);
          rest = rest.subspan(forms[k].size());
        }
    };
    const bool decides = growth_.ranks->is_rank_0();
    if (decides)
      each_split([](const auto& form, auto words, auto& split) { form.write(split, words); });
    growth_.ranks->share(words_);
    if (!decides)
      each_split([](const auto& form, auto words, auto& split) { form.read(words, split); });
  }

  // Does what tasks say, each thread by some of the features. Returns the best splits of both nodes
  // by each part of the features.
  std::vector<std::array<SplitInfo, 2>> do_tasks() {
    const std::vector<std::int32_t>& features = pair_->features;
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
      SplitInfo& split_info = pair_->splits[which];
      split_info.squares = pair_->squares[which];
      for (auto& one : found) split_info.challenge(std::move(one[which]), growth_.feature_order);
      if (pair_->tasks[which].search) split_search_.settle(evaluator(which), 0.0, split_info);
    }
  }

  std::unordered_map<std::int32_t, Siblings> pairs_;  // by the index of the left one
  std::vector<std::int32_t> waiting_;                 // those that have not been searched
  std::vector<std::int64_t> words_;                   // of a message
};

}  // namespace
}  // namespace certree
