// Cuts of cells whose sums are kept.
//
// Of the two children of a cell the sums of the smaller one are added up from its rows; what the
// cell has more than these are those of the other. The sums of a small cell are of no use to those
// below it: they are made, looked at and forgotten a few features at a time.
#pragma once

#include "grow/add_up.hpp"
#include "parallel.hpp"

namespace certree {
namespace {

// Memory that serves one tree after the other.
template <class Target>
struct KeptMemory {
  SumsPool pool;
  std::vector<typename Target::Item> items;     // by number of row
  std::vector<typename Target::Item> gathered;  // of the rows of two cells, one behind the other
};

template <class Target>
class KeptSums {
 public:
  using Row = std::int32_t;
  static constexpr bool kKeeps = true, kSparse = Target::kSparse;

  // rows: growing ones, as cells have them; sums: of the nodes.
  KeptSums(const BinnedTable& table, std::span<const std::int32_t> rows, const CellSums& sums,
           std::span<const std::int32_t> features, const BinnedGrowth& growth, const Target& target,
           KeptMemory<Target>& memory)
      : table_(table),
        rows_(rows),
        sums_(sums),
        features_(features.begin(), features.end()),
        growth_(growth),
        target_(target),
        decider_(target, table, growth),
        layout_(features, table.n_bins, Target::kLanes),
        has_categories_(std::ranges::any_of(
            features,
            [&](std::int32_t j) { return table.category[static_cast<std::size_t>(j)] != 0; })),
        memory_(memory) {
    memory_.pool.restart(layout_.size());
  }
  ~KeptSums() { memory_.pool.end(); }
  KeptSums(const KeptSums&) = delete;
  KeptSums& operator=(const KeptSums&) = delete;

  const Decider<Target>& decider() const { return decider_; }
  std::span<const std::int32_t> features() const { return features_; }
  CodesOfFeature codes(const BinnedCell&, std::int32_t feature) const {
    return {table_.codes.row(feature)};
  }

  Cut search_root(const BinnedCell& cell, const std::vector<std::int32_t>& features) {
    cells_[0] = cell;
    if (has_categories_) squares_[0] = squares_of(0);
    add_up(0);
    tasks_[0].search = true;
    search_cells(features);
    return std::move(cuts_[0]);
  }

  // The children of a cell, whether they may be cut, and by which features.
  void open(const Cut& above, const std::array<BinnedCell, 2>& children,
            const std::array<Bounds, 2>& bounds, std::array<bool, 2> may_be_cut,
            std::vector<std::int32_t>&& features) {
    above_ = above.place;
    cells_ = children;
    may_ = may_be_cut;
    features_ = std::move(features);
    bounds_ = bounds;
    squares_.fill(above.squares);  // until they are searched
  }
  // They are searched together, when the left one is asked for.
  Cut search_child(std::int32_t node) {
    if (node == cells_[1].node) return std::move(cuts_[1]);
    cuts_ = {};
    search_pair();
    return std::move(cuts_[0]);
  }

 private:
  // Below so many rows it is quicker to add them up than to keep the sums of the cell above.
  static constexpr std::int64_t kWorthKeeping = 256;
  // Starting threads takes as long as adding up some hundred thousand rows by one feature.
  static constexpr std::int64_t kWorthThreads = 1 << 17;

  // What is done for one of two cells.
  struct Task {
    bool add_up = false;    // its sums, from its rows
    bool subtract = false;  // those of the other from what the cell above left in its place
    bool search = false;
  };
  struct Work {
    typename Decider<Target>::Memory decider;
    FewSums<Target> few;
  };
  using OfCell = typename Target::OfCell;

  Part<Target> part(std::size_t which) const {
    const BinnedCell& cell = cells_[which];
    return {
        rows_.subspan(static_cast<std::size_t>(cell.begin), static_cast<std::size_t>(cell.size())),
        memory_.gathered.data() + gathered_at_[which]};
  }
  std::int64_t squares_of(std::size_t which) const {
    return target_.squares(part(which).rows, memory_.items.data());
  }

  void search_pair() {
    const std::size_t small = cells_[1].size() < cells_[0].size() ? 1 : 0, large = 1 - small;
    tasks_ = {};
    n_gathered_ = 0;
    tasks_[0].search = may_[0];
    tasks_[1].search = may_[1];
    cuts_[large].place = above_;
    const bool subtract = may_[large] && above_ != SumsPool::kNone;
    tasks_[large].subtract = subtract;
    if (may_[small] || subtract) add_up(small);
    if (may_[large] && !subtract) add_up(large);
    if (!may_[0] && !may_[1]) return drop(cuts_[large]);
    if (has_categories_) {
      squares_[small] = squares_of(small);
      squares_[large] -= squares_[small];
    }
    search_cells(features_);
  }

  // Prepares to add up the rows of a cell.
  void add_up(std::size_t which) {
    tasks_[which].add_up = true;
    if (!is_small(which) && cuts_[which].place == SumsPool::kNone)
      cuts_[which].place = memory_.pool.take();
    const auto rows = part(which).rows;
    gathered_at_[which] = n_gathered_;
    n_gathered_ += rows.size();
    auto& gathered = memory_.gathered;
    if (gathered.size() < n_gathered_) gathered.resize(n_gathered_);
    auto* to = gathered.data() + gathered_at_[which];
    for (const auto some : stretches(rows))
      for (const std::int32_t row : some) *to++ = memory_.items[static_cast<std::size_t>(row)];
  }

  // Finds the cuts of the two cells as their tasks say, each thread by some of the features.
  void search_cells(const std::vector<std::int32_t>& features) {
    const std::int64_t work = std::max(cells_[0].size(), cells_[1].size()) * std::ssize(features);
    const std::int64_t n_parts = work >= kWorthThreads ? std::max(growth_.n_threads, 1) : 1;
    std::vector<std::array<Cut, 2>> found(static_cast<std::size_t>(n_parts));
    parallel_for(n_parts, growth_.n_threads, [&](std::int64_t i) {
      const auto begin = static_cast<std::size_t>(std::ssize(features) * i / n_parts);
      const auto end = static_cast<std::size_t>(std::ssize(features) * (i + 1) / n_parts);
      search_by(std::span(features).subspan(begin, end - begin),
                found[static_cast<std::size_t>(i)]);
    });
    for (const std::size_t which : {0, 1}) {
      Cut& cut = cuts_[which];
      cut.squares = squares_[which];
      for (auto& one : found) cut.challenge(std::move(one[which]));
      const bool keeps = tasks_[which].search && decider_.settle(of_cell(which), 0.0, cut) &&
                         !is_small(which) && !memory_.pool.is_full();
      if (!keeps) drop(cut);
    }
  }

  bool is_small(std::size_t which) const { return cells_[which].size() < kWorthKeeping; }
  OfCell of_cell(std::size_t which) const {
    return {target_, sums_.of(cells_[which].node), squares_[which]};
  }

  std::int64_t* sums_at(std::size_t which) const { return memory_.pool.at(cuts_[which].place); }

  void search_by(std::span<const std::int32_t> features, std::array<Cut, 2>& found) const {
    thread_local Work work{{}, FewSums<Target>(target_)};
    for (const std::size_t which : {0, 1})
      if (tasks_[which].add_up && !is_small(which))
        certree::add_up(part(which), table_.codes, features, layout_, sums_at(which));
    for (const std::size_t which : {0, 1}) {
      if (tasks_[which].add_up && is_small(which)) pass(which, features, work, found[which]);
      if (tasks_[which].subtract && !is_small(1 - which))
        take_away(sums_at(1 - which), features, layout_, sums_at(which));
    }
    for (const std::size_t which : {0, 1})
      if (tasks_[which].search && !(tasks_[which].add_up && is_small(which)))
        look(which, features, work, found[which]);
  }

  void look(std::size_t which, std::span<const std::int32_t> features, Work& work,
            Cut& found) const {
    OfCell of = of_cell(which);
    const Undecided<Target> cell = undecided(which, of);
    for (const std::int32_t j : features) {
      const std::int64_t* const lanes = sums_at(which) + layout_.start(j);
      AllBins bins{lanes, Target::kLanes, layout_.width(j), layout_.n_bins(j), false};
      bins.has_missing = !bins.is_empty(bins.n_bins);
      if (decider_.look(cell, j, bins, work.decider, found)) found.varying.push_back(j);
    }
  }
  Undecided<Target> undecided(std::size_t which, OfCell& of) const {
    const BinnedCell& cell = cells_[which];
    return {of, sums_.of(cell.node).sum, cell.size(), bounds_[which], cell.key};
  }

  // Adds up a small cell by a few features at a time, and does with the sums what there is to do.
  void pass(std::size_t which, std::span<const std::int32_t> features, Work& work,
            Cut& found) const {
    OfCell of = of_cell(which);
    const Undecided<Target> cell = undecided(which, of);
    const auto codes = [&](std::int32_t j) { return CodesOfFeature{table_.codes.row(j)}; };
    const std::size_t together = FewSums<Target>::together(of);
    for (std::size_t first = 0; first < features.size(); first += together) {
      const auto some = features.subspan(first, std::min(together, features.size() - first));
      work.few.add_up(of, part(which), codes, some);
      for (std::size_t i = 0; i < some.size(); ++i) {
        const std::int32_t j = some[i];
        const FewBins<Target> bins = work.few.take(of, i, layout_.n_bins(j));
        if (tasks_[1 - which].subtract)
          take_away(bins, layout_.n_bins(j), sums_at(1 - which) + layout_.start(j));
        if (tasks_[which].search && decider_.look(cell, j, bins, work.decider, found))
          found.varying.push_back(j);
      }
    }
  }

  void drop(Cut& cut) {
    memory_.pool.give_back(cut.place);
    cut.place = SumsPool::kNone;
  }

  const BinnedTable& table_;
  std::span<const std::int32_t> rows_;
  const CellSums& sums_;
  std::vector<std::int32_t> features_;  // of the tree, or those that varied in the cell above
  const BinnedGrowth& growth_;
  const Target& target_;
  Decider<Target> decider_;
  SumsLayout layout_;
  bool has_categories_;
  KeptMemory<Target>& memory_;
  // The two cells that are searched, or the root alone, and what is found.
  std::array<BinnedCell, 2> cells_{};
  std::array<Bounds, 2> bounds_{};
  std::array<std::int64_t, 2> squares_{};  // what the target adds up for their scatter
  std::array<bool, 2> may_{};
  std::array<Task, 2> tasks_{};
  std::array<std::size_t, 2> gathered_at_{};  // where the items of each begin
  std::size_t n_gathered_ = 0;
  std::array<Cut, 2> cuts_{};
  SumsPool::Place above_ = SumsPool::kNone;  // where the sums of the cell above lie
};

}  // namespace
}  // namespace certree
