// Searching the two children of a cell together, whose sums add up to those of the cell.
//
// Of the two children the sums of the smaller one are added up from its rows; what the cell has
// more than these are those of the other, if those of the cell were kept.
#pragma once

#include "grow/decide.hpp"
#include "parallel.hpp"

namespace certree {
namespace {

// What is the same wherever sums lie. Own says where that is:
//   prepare(which)                  makes ready to add up the rows of a cell
//   n_parts(features)               how many parts of the features are searched by themselves
//   part_of(features, i, n_parts)   those of the i-th, in a row
//   n_threads(features)             that are worth starting
//   search_by(features, found)      does what tasks say, and finds the best cuts of both cells
//   keeps(which), drop(cut)         whether sums are worth keeping, and what forgets them
template <class Target, class Own>
class CellPair {
 public:
  using Row = std::int32_t;
  static constexpr bool kKeeps = true, kSparse = Target::kSparse;

  CellPair(const CellPair&) = delete;
  CellPair& operator=(const CellPair&) = delete;

  const Decider<Target>& decider() const { return decider_; }
  std::span<const std::int32_t> features() const { return features_; }

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

 protected:
  // What is done for one of two cells.
  struct Task {
    bool add_up = false;    // its sums, from its rows
    bool subtract = false;  // those of the other from what the cell above left in its place
    bool search = false;
  };
  using OfCell = typename Target::OfCell;

  // rows: growing ones, as cells have them; sums: of the nodes; items: by number of row.
  CellPair(const BinnedTable& table, std::span<const std::int32_t> rows, const CellSums& sums,
           std::span<const std::int32_t> features, const BinnedGrowth& growth, const Target& target,
           const typename Target::Item* items)
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
  ~CellPair() = default;

  std::span<const std::int32_t> rows_of(std::size_t which) const {
    const BinnedCell& cell = cells_[which];
    return rows_.subspan(static_cast<std::size_t>(cell.begin),
                         static_cast<std::size_t>(cell.size()));
  }
  OfCell of_cell(std::size_t which) const {
    return {target_, sums_.of(cells_[which].node), squares_[which]};
  }
  Undecided<Target> undecided(std::size_t which, OfCell& of) const {
    const BinnedCell& cell = cells_[which];
    return {of, sums_.of(cell.node).sum, cell.size(), bounds_[which], cell.key};
  }

  const BinnedTable& table_;
  std::span<const std::int32_t> rows_;
  const CellSums& sums_;
  std::vector<std::int32_t> features_;  // of the tree, or those that varied in the cell above
  const BinnedGrowth& growth_;
  const Target& target_;
  Decider<Target> decider_;
  bool has_categories_;
  const typename Target::Item* items_;
  // The two cells that are searched, or the root alone, and what is found.
  std::array<BinnedCell, 2> cells_{};
  std::array<Bounds, 2> bounds_{};
  std::array<std::int64_t, 2> squares_{};  // what the target adds up for their scatter
  std::array<bool, 2> may_{};
  std::array<Task, 2> tasks_{};
  std::array<Cut, 2> cuts_{};
  SumsPool::Place above_ = SumsPool::kNone;  // where the sums of the cell above lie

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
    const std::size_t small = cells_[1].size() < cells_[0].size() ? 1 : 0, large = 1 - small;
    tasks_ = {};
    tasks_[0].search = may_[0];
    tasks_[1].search = may_[1];
    cuts_[large].place = above_;
    const bool subtract = may_[large] && above_ != SumsPool::kNone;
    tasks_[large].subtract = subtract;
    if (may_[small] || subtract) add_up(small);
    if (may_[large] && !subtract) add_up(large);
    if (!may_[0] && !may_[1]) return own().drop(cuts_[large]);
    if (has_categories_) {
      squares_[small] = squares_of(small);
      squares_[large] -= squares_[small];
    }
    search_cells(features_);
  }

  // Finds the cuts of the two cells as their tasks say, each thread by some of the features.
  void search_cells(const std::vector<std::int32_t>& features) {
    const std::int64_t n_parts = own().n_parts(features);
    std::vector<std::array<Cut, 2>> found(static_cast<std::size_t>(n_parts));
    parallel_for(n_parts, own().n_threads(features), [&](std::int64_t i) {
      own().search_by(own().part_of(features, i, n_parts), found[static_cast<std::size_t>(i)]);
    });
    for (const std::size_t which : {0, 1}) {
      Cut& cut = cuts_[which];
      cut.squares = squares_[which];
      for (auto& one : found) cut.challenge(std::move(one[which]), growth_.feature_order);
      const bool keeps =
          tasks_[which].search && decider_.settle(of_cell(which), 0.0, cut) && own().keeps(which);
      if (!keeps) own().drop(cut);
    }
  }
};

}  // namespace
}  // namespace certree
