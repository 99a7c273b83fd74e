// The rows, nodes and splits of the CART grower.
//
// The headers cart_*.hpp are included by cart.cpp alone, so they use unnamed namespaces: compilers
// inline functions that are called once and cannot be called from elsewhere, which makes the grower
// 10 % faster.
#pragma once

#include <variant>

#include "grow/features.hpp"
#include "grow/growth.hpp"

namespace certree {
namespace {

// A node that is being grown.
struct CartNode : GrowingNode {
  bool is_leaf;
  std::uint64_t key;          // of the random draws at the node
  double lower = -kInfinity;  // bounds of the means below the node, by monotonic constraints
  double upper = kInfinity;
};

// The best split of a node so far.
struct SplitInfo {
  double value = -HUGE_VAL;  // of the criterion, which is maximised
  double gain = 0.0;         // decrease in impurity
  std::int64_t feature = -1;
  bool heuristic = false;  // whether a better split may have been missed
  double middle = 0.0;     // between the means of both children; only with monotonic constraints
  // Of a numeric feature: number of rows with a value that go left, threshold, whether missing
  // values go left.
  std::int64_t n_left = 0;
  double threshold = 0.0;
  bool missing_left = false;
  // Of a categorical feature: codes that go left and that go right, ascending.
  std::vector<std::uint32_t> left, right;

  bool is_made() const { return feature >= 0; }
};

// The values of a table of float32 or float64. Nodes compare rows by rank, and read values only for
// thresholds, so growth is compiled once for both types.
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

// The rows of a grower: all rows, or those of a subtree, renumbered.
template <class Y_>
struct CartRows {
  using Y = Y_;

  Values X;
  const Features* features;
  const FewValues* few;
  const std::uint32_t* original;  // (n,) row of X; null: rows are not renumbered
  Table<const Y> y;               // (number of responses, n)
  const double* weight;           // (n,) in units of 2^weight_unit; or null
  int weight_unit;
  bool counts_rows;  // whether splits also need the number of rows in each child, not only the
                     // weight
  std::int32_t n_classes;
  Table<RankedRow> lists;      // (features.n_lists(), n)
  Table<std::uint32_t> codes;  // (number of categorical features, n)

  std::int64_t size() const { return lists.width; }
  static std::span<RankedRow> part(RankedRow* list, const GrowingNode& node) {
    return {list + node.begin, list + node.end};
  }
  // Returns the rows of a node, sorted by a numeric feature.
  std::span<RankedRow> list(std::int64_t j, const GrowingNode& node) const {
    return part(lists.row(features->index(j)), node);
  }
  // Returns the rows of a node in any order: the last list exists even without numeric features.
  std::span<RankedRow> members(const GrowingNode& node) const {
    return part(lists.row(lists.n_rows - 1), node);
  }
  const std::uint32_t* codes_of(std::int64_t j) const { return codes.row(features->index(j)); }
  std::uint32_t row_of_X(const RankedRow& e) const { return original ? original[e.row] : e.row; }
  double x(const RankedRow& e, std::int64_t j) const { return X.at(row_of_X(e), j); }
  // Returns the weight of a row in its original unit.
  double weight_of(const RankedRow& e) const {
    return weight ? std::ldexp(weight[e.row], weight_unit) : 1.0;
  }

  // Returns whether a feature varies in a node. Not for features with few values.
  bool varies(const GrowingNode& node, std::int64_t j) const {
    if (!features->is_categorical(j))
      return list(j, node).front().rank != list(j, node).back().rank;
    const std::uint32_t* const code = codes_of(j);
    const auto rows = members(node);
    const std::uint32_t head = code[rows.front().row];
    return !all_of(rows, [&](const RankedRow& e) { return code[e.row] == head; });
  }
};

// Returns the number of threads for a node: starting threads takes as long as a pass over about
// 10,000 rows.
inline int threads_for(const GrowingNode& node, int n_threads) {
  return node.end - node.begin >= 16384 ? n_threads : 1;
}

}  // namespace
}  // namespace certree
