// Best splits of nodes whose histograms are kept, so that those of the larger child can be computed
// by subtraction.
//
// The histogram of a small node is not kept, as its children do not need it: it is computed,
// searched and discarded for a few features at a time.
#pragma once

#include "grow/histograms.hpp"
#include "grow/sibling_search.hpp"

namespace certree {
namespace {

template <class Target>
class KeptHistograms : public SiblingSearch<Target, KeptHistograms<Target>> {
  using Search = SiblingSearch<Target, KeptHistograms<Target>>;
  friend Search;
  static constexpr bool kHasRanks = true;

 public:
  KeptHistograms(const BinnedTable& table, std::span<const std::int32_t> rows,
                 const NodeTotals& sums, std::span<const std::int32_t> features,
                 const BinnedGrowth& growth, const Target& target,
                 const typename Target::Item* items, HistogramPool& pool)
      : Search(table, rows, sums, features, growth, target, items),
        layout_(features, table.n_bins, Target::kLanes),
        pool_(pool) {
    pool_.restart(layout_.size());
  }
  ~KeptHistograms() { pool_.end(); }

  CodesOfFeature codes(const BinnedNode&, std::int32_t feature) const {
    return {table_.codes.of_features.row(feature)};
  }

 private:
  using Search::split_search_, Search::growth_, Search::items_, Search::pair_, Search::table_,
      Search::target_;
  using typename Search::NodeEvaluator;

  // Nodes with fewer rows compute their histograms from rows, which is faster than by subtraction.
  static constexpr std::int64_t kWorthKeeping = 256;
  // Rows times features from which on threads pay: starting them takes as long as adding up about
  // 100,000 rows by one feature.
  static constexpr std::int64_t kWorthThreads = 1 << 17;

  struct Work {
    typename SplitSearch<Target>::Memory split_search;
    FewHistograms<Target> few;
    std::array<typename Target::Item, kWorthKeeping> gathered;
  };

  void prepare(std::size_t which) {
    if (!is_small(which) && pair_->splits[which].place == HistogramPool::kNone)
      pair_->splits[which].place = pool_.take();
  }

  std::int64_t n_parts(const std::vector<std::int32_t>& features) const {
    const std::int64_t work =
        std::max(pair_->nodes[0].size(), pair_->nodes[1].size()) * std::ssize(features);
    return work >= kWorthThreads ? std::max(growth_.n_threads, 1) : 1;
  }
  int n_threads(const std::vector<std::int32_t>&) const { return growth_.n_threads; }
  static std::span<const std::int32_t> part_of(std::span<const std::int32_t> features,
                                               std::int64_t i, std::int64_t n_parts) {
    const auto begin = static_cast<std::size_t>(std::ssize(features) * i / n_parts);
    const auto end = static_cast<std::size_t>(std::ssize(features) * (i + 1) / n_parts);
    return features.subspan(begin, end - begin);
  }

  // Sums that ranks collect have all bins.
  bool is_small(std::size_t which) const {
    return !growth_.ranks && pair_->nodes[which].size() < kWorthKeeping;
  }
  bool keeps(std::size_t which) const { return !is_small(which) && !pool_.is_full(); }
  void drop(SplitInfo& split_info) {
    pool_.give_back(split_info.place);
    split_info.place = HistogramPool::kNone;
  }

  // Calls f(sums, n) with the sums of each feature that have been added up.
  template <class F>
  void each_sum(F&& f) const {
    for (const std::size_t which : {0, 1})
      if (pair_->tasks[which].compute_histogram)
        for (const std::int32_t j : pair_->features)
          f(sums_at(which) + layout_.start(j), static_cast<std::ptrdiff_t>(layout_.length(j)));
  }

  std::int64_t* sums_at(std::size_t which) const { return pool_.at(pair_->splits[which].place); }

  void search_by(std::span<const std::int32_t> features, std::array<SplitInfo, 2>& found) const {
    thread_local Work work{{}, FewHistograms<Target>(target_), {}};
    for (const std::size_t which : {0, 1}) {
      if (!pair_->tasks[which].compute_histogram || is_small(which)) continue;
      certree::compute_histogram<Target>(this->rows_of(which), items_, table_.codes, features,
                                         layout_, sums_at(which));
    }
    for (const std::size_t which : {0, 1}) {
      if (pair_->tasks[which].compute_histogram && is_small(which))
        pass(which, features, work, found[which]);
      if (pair_->tasks[which].subtract && !is_small(1 - which))
        take_away(sums_at(1 - which), features, layout_, sums_at(which));
    }
    for (const std::size_t which : {0, 1})
      if (pair_->tasks[which].search && !(pair_->tasks[which].compute_histogram && is_small(which)))
        search_features(which, features, work, found[which]);
  }

  void search_features(std::size_t which, std::span<const std::int32_t> features, Work& work,
                       SplitInfo& found) const {
    NodeEvaluator of = this->evaluator(which);
    const SearchedNode<Target> node = this->undecided(which, of);
    for (const std::int32_t j : features) {
      const std::int64_t* const lanes = sums_at(which) + layout_.start(j);
      AllBins bins{lanes, Target::kLanes, layout_.width(j), layout_.n_bins(j), false};
      bins.has_missing = !bins.is_empty(bins.n_bins);
      if (split_search_.search_splits(node, j, bins, work.split_search, found))
        found.varying.push_back(j);
    }
  }

  // Computes the histogram of a small node for a few features at a time, subtracts it from that of
  // its sibling, and searches it, as the tasks of the node say.
  void pass(std::size_t which, std::span<const std::int32_t> features, Work& work,
            SplitInfo& found) const {
    NodeEvaluator of = this->evaluator(which);
    const SearchedNode<Target> node = this->undecided(which, of);
    const auto codes = [&](std::int32_t j) {
      return CodesOfFeature{table_.codes.of_features.row(j)};
    };
    const std::span rows = this->rows_of(which);
    gather(rows, items_, work.gathered.data());
    const std::size_t together = FewHistograms<Target>::together(of);
    for (std::size_t first = 0; first < features.size(); first += together) {
      const auto some = features.subspan(first, std::min(together, features.size() - first));
      work.few.compute_histogram(of, {rows, work.gathered.data()}, codes, some);
      for (std::size_t i = 0; i < some.size(); ++i) {
        const std::int32_t j = some[i];
        const FewBins<Target> bins = work.few.take(of, i, layout_.n_bins(j));
        if (pair_->tasks[1 - which].subtract)
          take_away(bins, layout_.n_bins(j), sums_at(1 - which) + layout_.start(j));
        if (pair_->tasks[which].search &&
            split_search_.search_splits(node, j, bins, work.split_search, found))
          found.varying.push_back(j);
      }
    }
  }

  HistogramLayout layout_;
  HistogramPool& pool_;
};

}  // namespace
}  // namespace certree
