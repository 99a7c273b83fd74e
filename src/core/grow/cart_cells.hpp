// What the parts of the greedy grower hand to each other: its rows, its cells and their cuts.
//
// These headers belong to cart.cpp alone, and say so by namespaces without a name: what nothing
// else can call is inlined where it is called once, which makes the grower a tenth faster.
#pragma once

#include <variant>

#include "grow/features.hpp"
#include "grow/growth.hpp"

namespace certree {
namespace {

struct CartCell : Cell {
  bool is_leaf;
  std::uint64_t key;          // decides what is drawn in the cell
  double lower = -kInfinity;  // bounds of the means below the cell
  double upper = kInfinity;
};

struct Cut {
  double value = -HUGE_VAL;  // of the criterion
  double gain = 0.0;         // decrease in impurity
  std::int64_t feature = -1;
  bool heuristic = false;  // whether a better one may have been missed
  double middle = 0.0;     // of the means left and right; known where slopes are constrained
  // Of numbers: how many rows with a value go left, the threshold, and where missing values go.
  std::int64_t n_left = 0;
  double threshold = 0.0;
  bool missing_left = false;
  // Of categories: the codes that go left and those that go right, ascending.
  std::vector<std::uint32_t> left, right;

  bool is_made() const { return feature >= 0; }
};

// The numbers of a table. Cells know their rows by rank, and read numbers for thresholds alone; so
// growth is compiled once for both kinds of tables.
class Values {
 public:
  template <class Real>
  explicit Values(const Table<const Real>& X) : X_(X) {}

  std::int64_t width() const {
    return std::visit([](const auto& X) { return X.width; }, X_);
  }
  double at(std::uint32_t row, std::int64_t j) const {
    return std::visit([&](const auto& X) { return static_cast<double>(X.row(row)[j]); }, X_);
  }

 private:
  std::variant<Table<const float>, Table<const double>> X_;
};

// The rows of a grower: all of them, or those of a part under numbers of its own.
template <class Y_>
struct CartRows {
  using Y = Y_;

  Values X;
  const Features* features;
  const FewValues* few;
  const std::uint32_t* original;  // (n,) row of X, null if it is the same
  Table<const Y> y;               // (number of responses, n)
  const double* weight;           // (n,) in units of 2^weight_unit; or null
  int weight_unit;
  bool counts_rows;  // whether cuts ask how many rows lie on a side, beside what these weigh
  std::int32_t n_classes;
  Table<RankedRow> lists;      // (features.n_lists(), n)
  Table<std::uint32_t> codes;  // (number of features of categories, n)

  std::int64_t size() const { return lists.width; }
  static std::span<RankedRow> part(RankedRow* list, const Cell& cell) {
    return {list + cell.begin, list + cell.end};
  }
  // The rows of a cell in the order of a feature of numbers.
  std::span<RankedRow> list(std::int64_t j, const Cell& cell) const {
    return part(lists.row(features->index(j)), cell);
  }
  // Every list says which rows a cell has; the last one does even where there are no numbers.
  std::span<RankedRow> members(const Cell& cell) const {
    return part(lists.row(lists.n_rows - 1), cell);
  }
  const std::uint32_t* codes_of(std::int64_t j) const { return codes.row(features->index(j)); }
  std::uint32_t row_of_X(const RankedRow& e) const { return original ? original[e.row] : e.row; }
  double x(const RankedRow& e, std::int64_t j) const { return X.at(row_of_X(e), j); }
  // Weight of a row, as it was given.
  double weight_of(const RankedRow& e) const {
    return weight ? std::ldexp(weight[e.row], weight_unit) : 1.0;
  }

  // Not asked of features with few values.
  bool varies(const Cell& cell, std::int64_t j) const {
    if (!features->is_categorical(j))
      return list(j, cell).front().rank != list(j, cell).back().rank;
    const std::uint32_t* const code = codes_of(j);
    const auto rows = members(cell);
    const std::uint32_t head = code[rows.front().row];
    return !all_of(rows, [&](const RankedRow& e) { return code[e.row] == head; });
  }
};

// Starting threads takes as long as sweeping some ten thousand rows.
inline int threads_for(const Cell& cell, int n_threads) {
  return cell.end - cell.begin >= 16384 ? n_threads : 1;
}

}  // namespace
}  // namespace certree
