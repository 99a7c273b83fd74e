// A part of the rows of a boosted model, others of which lie elsewhere.
//
// What a round has to know of all rows are the largest numbers of parts and whole sums over their
// rows, which add up to the same bits however rows are divided. Rows are taken block by block, so
// that their gradients are made anew in the cache and never kept.
#pragma once

#include "ensembles/losses.hpp"
#include "ensembles/round.hpp"
#include "grow/binned.hpp"

namespace certree {

// What some outputs are for, as those of a run are.
struct PartGoal {
  ScaledLoss loss;                // in the scale of all rows
  std::int64_t first, n_outputs;  // which outputs
  std::int64_t target;            // which row of the targets
};

struct PartRows {
  std::span<const PartGoal> goals;      // in the order in which they are added up
  Table<const double> y;                // (n_targets, n)
  std::span<const double> weight;       // (n,), or none
  std::span<const std::uint64_t> keys;  // (n,)
  Table<const double> scores;           // (n_outputs, n)
};

// Which rows grow the tree of a round, and what it grows on.
struct PartDraws {
  std::uint64_t odd, other_odd;
  double subsample;
  std::span<const double> factors;  // of the outputs of these goals, where they have several
  bool least_grows;                 // those alone grow whose mixed key is the least of all
  std::uint64_t least;
  std::size_t first_goal, n_goals;  // that the tree grows for
};

// The largest numbers of a part.
struct PartLargest {
  std::vector<double> largest;  // of the tree: gradient, Hessian; of each goal two terms of the
                                // dispersion; then gradients of growing rows, (n_outputs, 2), and
                                // of others
  std::int64_t n_growing;
  std::uint64_t least;  // mixed key
};
PartLargest part_largest(const PartRows& rows, const PartDraws& draws);

// The largest numbers of all rows, and how many these are.
struct LargestOfAll {
  double gradient, hessian;  // of the tree
  std::int64_t n_growing;
  std::span<const double> of_dispersion;  // two terms of each goal
  std::int64_t n;
};

// Rows as they are added up.
struct PartItems {
  std::int64_t n_growing;
  std::array<std::int64_t, 3> total;
  std::vector<std::int64_t> of_dispersion;  // two terms of each goal
};
// order: (n,) numbers of growing rows, then of others; items: (n, 2) of growing rows, by number.
PartItems part_items(const PartRows& rows, const PartDraws& draws, const LargestOfAll& largest,
                     std::span<std::int32_t> order, Table<std::int64_t> items);

// Cells of a part, (any, 2): where their rows begin and end in an order.
using PartCells = Table<const std::int64_t>;

// By what rows are added up. Codes of a feature that have one place are added up together.
struct PartLayout {
  std::span<const std::int32_t> features;  // (k,)
  std::span<const std::int32_t> n_bins;    // (p,)
  Table<const std::uint8_t> place;         // (k, 256) of each code
  std::span<const std::int32_t> n_places;  // (k,)

  // Numbers of a cell: by feature three lanes, with an entry for each place.
  std::size_t size() const {
    return 3 * static_cast<std::size_t>(
                   std::accumulate(n_places.begin(), n_places.end(), std::int64_t{0}));
  }
};
// sums: (c, layout.size()) of each cell. squares: (c,), or empty.
void part_sums(const CodesBothWays& codes, const PartLayout& layout,
               std::span<const std::int32_t> order, Table<const std::int64_t> items,
               PartCells cells, Table<std::int64_t> sums, std::span<std::int64_t> squares);

// What all parts tell of the smaller ones of cells that cuts make, and what both add up to by bin.
struct ToldSums {
  Table<const std::int64_t> told;  // (c, k) by place
  std::span<const std::int64_t>
      columns;                      // (k,) where places are among all bins; none: these are all
  Table<const std::int64_t> above;  // (any, width) of the cells that are cut
  Table<const std::int32_t> rows;   // (c, 3) where the sums of the cell that is cut are; and where
                                    // those of its smaller and its larger child go; -1: nowhere
};
// sums: (any, width), each row of which some child has.
void sums_by_bin(const ToldSums& given, Table<std::int64_t> sums);

// How cells are cut, one after the other.
struct PartCuts {
  std::span<const std::int32_t> cell;     // (d,) those given, then two for each cut before
  std::span<const std::int32_t> feature;  // (d,)
  Table<const std::uint8_t> goes_left;    // (d, 256)
};
// order: those of the cells are moved. below: (2 * d, 2) the cells that the cuts make.
void part_divide(Table<const std::uint8_t> codes, PartCells cells, const PartCuts& cuts,
                 std::span<std::int32_t> order, Table<std::int64_t> below);

// Where the rows of leaves are: of growing rows, and of others.
struct PartLeaves {
  std::span<const std::int32_t> order;  // (n,) growing rows first
  std::int64_t n_growing;
  PartCells cells;                     // (any, 2)
  std::span<const std::int32_t> node;  // (any,) the leaf that each of these is
};
// Finds the leaf of each row, (n,), and adds up what leaves step by, in the units of all rows.
// sums: 0 before.
void part_leaves(const PartRows& rows, const PartLeaves& leaves, std::span<std::int32_t> leaf,
                 RoundSums& sums);

// Adds the steps of leaves, (m, n_outputs), to scores before, (n_outputs, n), which may be those
// that are written. leaf: (n,).
void part_add_steps(Table<const double> before, std::span<const std::int32_t> leaf,
                    Table<const double> steps, Table<double> scores);

}  // namespace certree
