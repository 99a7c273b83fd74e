// One tree on rows that lie in parts: what these add up to in cells, how cells are cut by that, and
// the tree that all cuts make.
//
// A cell is cut by its own sums alone, so that all that wait can be cut together; which cuts a tree
// has, and in which order, is told in the end. A part changes nothing of what it is given: it may
// be asked twice.
#pragma once

#include "grow/binned_growth.hpp"

namespace certree {

// What trees are grown on; weights are whole numbers.
struct PartTarget {
  std::int32_t n_classes;  // 0: numbers
  Criterion criterion;     // gini or entropy of classes, squared or poisson of numbers
  bool counts_rows;        // beside their weights, which are not all 1
  bool has_sets;           // whether a feature holds categories
  std::int64_t bits;       // what is enough for a whole number
  int unit;                // exponent of the power of two that numbers count
};

// Rows of a part: (n, 2) weight, and class or whole number.
using PartNumbers = Table<const std::int64_t>;

// Sums of cells in lanes, as NodeTotals has them.
struct LanesOfCells {
  std::span<const std::int64_t> begin;  // (c + 1,)
  std::span<const std::int32_t> lane;   // ascending in a cell: classes, or weight and sum
  std::span<const std::int64_t> sum;

  std::size_t size() const { return begin.size() - 1; }
  std::span<const std::int32_t> of(std::integral auto cell) const {
    const auto c = static_cast<std::size_t>(cell);
    return lane.subspan(static_cast<std::size_t>(begin[c]),
                        static_cast<std::size_t>(begin[c + 1] - begin[c]));
  }
};

// What rows of cells add up to by those bins of each feature that they have, and what else is told
// of these cells, and of d - c more.
struct CellTables {
  std::vector<std::int32_t> n_bins;  // (c, p)
  std::vector<std::uint8_t> bin;     // ascending in a cell and feature
  std::vector<std::int64_t> sum;  // of each of these the lanes of the cell, and the number of rows
                                  // if they are counted
  std::vector<std::int64_t> about;  // (d, 4) of the cells: smallest and largest number, squares of
                                    // numbers beyond the mean, and squares of weights
};
struct GivenTables {
  std::span<const std::int32_t> n_bins;
  std::span<const std::uint8_t> bin;
  std::span<const std::int64_t> sum, about;
};

// order: (n,) numbers of the rows; cells: (d, 2) where those of each cell begin and end in it, of
// which the first c are added up.
CellTables tables_of_part(Table<const std::uint8_t> codes, std::span<const std::int32_t> order,
                          PartNumbers rows, Table<const std::int64_t> cells, std::size_t n_added,
                          const LanesOfCells& totals, const PartTarget& target);

// Those of both; width: (c,) numbers of each bin.
CellTables added(const GivenTables& one, const GivenTables& other,
                 std::span<const std::int32_t> width);

// Tables of cells, and the lanes of their sums.
struct CellsInTables {
  GivenTables tables;
  LanesOfCells lanes;
};

// Tables of some cells, with lanes of their own. places: (s, 3) of each among those that are told;
// of the one above it among those, whose rows are its own and the told ones: -1, it is told itself;
// and of what is told about it, or -1 if nothing is.
CellTables tables_of_some(const CellsInTables& told, const CellsInTables& above,
                          const LanesOfCells& lanes, Table<const std::int32_t> places,
                          bool counts_rows);

// Cells that wait.
struct WaitingCells {
  std::span<const std::int64_t> n_rows;  // (c,)
  std::span<const std::int32_t> depth;   // (c,)
  std::span<const std::uint64_t> key;    // (c,) of what is drawn
  Table<const double> bounds;  // (c, 2) of what is said below; or no rows, without gradients
  LanesOfCells totals;
};

// The key of the root of the first tree of a seed.
std::uint64_t key_of_root(std::uint64_t seed);

// What the root decides for all cells below.
struct OfRoot {
  std::vector<std::int32_t> features;  // in the order in which they are looked at
  double least;                        // that a cut must gain
};

// Those of some cells that are cut, d of them, and their children, two for each.
struct CutCells {
  std::vector<std::uint8_t> is_cut;  // (c,) of all
  std::vector<double> gain, threshold;
  std::vector<std::int32_t> feature;
  std::vector<std::uint8_t> default_left, has_missing;
  std::vector<std::uint8_t> goes_left;          // (d, 256) by code
  std::vector<std::int64_t> category_start{0};  // (d + 1,)
  std::vector<std::int32_t> categories;
  std::vector<std::int64_t> n_rows;    // (2 d,)
  std::vector<std::uint64_t> key;      // (2 d,)
  std::vector<double> bounds;          // (2 d, 2)
  std::vector<std::int64_t> begin{0};  // (2 d + 1,) of their sums
  std::vector<std::int32_t> lane;
  std::vector<std::int64_t> sum;
};

// Cuts cells by what all their rows add up to. of_root: is decided where a cell is the root.
CutCells cut_cells(const KeptBins& bins, const BinnedGrowth& growth, const PartTarget& target,
                   const WaitingCells& cells, const GivenTables& tables, OfRoot& of_root);

// All cells, children after parents.
struct DecidedCells {
  std::span<const std::int32_t> child;  // (c,) the left one of two; kLeaf: the cell is not cut
  std::span<const std::int32_t> feature;
  std::span<const double> gain, threshold;
  std::span<const std::uint8_t> default_left;
  std::span<const std::int64_t> category_start;  // (c + 1,)
  std::span<const std::int32_t> categories;
};

// A tree, and the cell that each of its nodes is.
struct TreeOfCells {
  TreeColumns columns;
  std::vector<std::int32_t> cell;
};

TreeOfCells tree_of_cells(const DecidedCells& cells, Order order, std::int64_t max_leaves);

// Cells of a part, (any, 2): where their rows begin and end in an order.
using PartCells = Table<const std::int64_t>;

// How cells are cut, one after the other.
struct PartCuts {
  std::span<const std::int32_t> cell;     // (d,) those given, then two for each cut before
  std::span<const std::int32_t> feature;  // (d,)
  Table<const std::uint8_t> goes_left;    // (d, 256)
};
// order: those of the cells are moved. below: (2 * d, 2) the cells that the cuts make.
void part_divide(Table<const std::uint8_t> codes, PartCells cells, const PartCuts& cuts,
                 std::span<std::int32_t> order, Table<std::int64_t> below);

}  // namespace certree
