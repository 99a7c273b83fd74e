// Small trees that compare bytes instead of numbers, of many rows at a time.
//
// What a node asks of a number is answered by how many thresholds of the feature lie below it, so a
// block of rows is coded once for many trees. Leaves are numbered from left to right. The position
// of a row is the leftmost leaf of its node; going right adds the number of leaves of the left
// child. All rows ask all nodes, parents first and without branches, so that one instruction serves
// 16 to 64 rows, by processor. A plane is a byte for each row of a block: codes of one feature, or
// bits of eight categories. QuickScorer (Lucchese and others, SIGIR
// 2015) keeps a mask of leaves for each row instead.
#pragma once

#include <optional>

#include "ensembles/predict.hpp"

namespace certree {

// Rows of a block.
inline constexpr std::int64_t kLanes = 256;
// Largest number of leaves of a coded tree, whose leaves are numbered by a byte.
inline constexpr std::size_t kMostLeaves = 255;

// A feature and its codes: one byte a row if nodes compare it with thresholds, one bit a category
// if they compare it with sets.
struct CodedFeature {
  std::uint32_t feature;
  std::uint32_t plane;             // the first of its planes of codes, (kLanes,) each
  std::uint32_t n_planes;          // 1 for thresholds; for sets one for each eight categories
  std::vector<double> thresholds;  // ascending, and then infinity; empty: sets
};

struct CodedSplit {
  std::uint32_t plane;     // of the codes that are compared; not used with a set
  std::uint32_t has_set;   // the code is then made of the parts of the set: 0 for rows not in it
  std::uint8_t low, more;  // codes low, ..., low + more, modulo 256, go left
  std::uint8_t first;      // the first leaf of its node
  std::uint8_t n_left;     // leaves on its left; 0 ends the splits of a tree
};

// Those categories of a set that share a plane.
struct SetPart {
  std::uint32_t plane;
  std::uint8_t bits;  // 0 ends the parts of a set
};

// The leaves of a tree that the rows of a block reach.
struct CodedLeaves {
  std::span<const std::int32_t> leaf_node;    // node of each leaf of the tree, from left to right
  std::span<const std::uint8_t> leaf_of_row;  // (kLanes,) number of each row's leaf in leaf_node
};

class CodedTrees {
 public:
  // Returns whether a tree has few enough leaves and categories to be coded. It then has few enough
  // thresholds, too, if it is coded without other trees.
  static bool is_small(const TreesView& trees, std::size_t t);
  // Codes the trees first, ..., last - 1, which are small; none if a feature has too many
  // thresholds in all of them.
  static std::optional<CodedTrees> of(const TreesView& trees, std::size_t first, std::size_t last);

  // Returns whether predictions by codes take less time than walks of rows from node to node.
  bool pays_off() const;
  std::size_t n_codes() const { return n_planes_ * static_cast<std::size_t>(kLanes); }
  // codes: (n_codes(),) of the rows begin, ..., begin + width - 1, at most kLanes.
  template <class Real>
  void code(const Table<const Real>& X, std::int64_t begin, std::int64_t width, std::uint8_t* codes,
            StepCounter& counter) const;
  // Returns the leaves that rows with these codes reach in tree t. leaf_of_row: (kLanes,) is
  // written to, and the result refers to it.
  CodedLeaves find_leaves(std::size_t t, const std::uint8_t* codes,
                          std::span<std::uint8_t> leaf_of_row, StepCounter& counter) const;

 private:
  // Indices of the first split, set part and leaf of a tree.
  struct Begin {
    std::size_t split, part, leaf;
  };

  void add_tree(const TreesView& trees, std::size_t begin, std::size_t end);
  void add_split(const TreesView& trees, std::size_t v, std::uint8_t first, std::uint8_t n_left);
  const CodedFeature& feature(std::uint32_t number, bool has_sets) const;

  std::vector<CodedFeature> features_;
  std::size_t n_planes_ = 0, first_ = 0;
  std::int64_t n_steps_ = 0;  // about how many steps walks of a row would take
  std::vector<Begin> trees_;
  std::vector<CodedSplit> splits_;
  std::vector<SetPart> parts_;
  std::vector<std::int32_t> leaves_;
};

}  // namespace certree
