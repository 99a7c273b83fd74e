// Small trees that compare bytes instead of numbers, of many rows at a time.
//
// What a node asks of a number is answered by how many thresholds of the feature lie below it, so a
// block of rows is coded once for many trees. Leaves are numbered from left to right: a row stands
// at the first leaf of the node that it has come to, and a node that sends it right moves it by the
// leaves on its left. All rows ask all nodes, parents first and without branches, so that 16 to 64
// rows share an instruction. Categories are one bit each. QuickScorer (Lucchese and others, SIGIR
// 2015) keeps a mask of leaves for each row instead.
#pragma once

#include <optional>

#include "ensembles/predict.hpp"

namespace certree {

// Rows of a block.
inline constexpr std::int64_t kLanes = 256;
// Largest number of leaves of a tree: positions of leaves fit in a byte.
inline constexpr std::size_t kMostLeaves = 255;

// A feature that nodes compare with thresholds, by one byte a row, or with sets, by one bit a
// category.
struct CodedFeature {
  std::uint32_t feature;
  std::uint32_t plane;             // the first of its planes of codes, (kLanes,) each
  std::uint32_t n_planes;          // 1, or of eight categories each
  std::vector<double> thresholds;  // ascending, and then infinity; empty: sets
};

struct CodedSplit {
  std::uint32_t plane;     // of the codes that are compared, unless it has a set
  std::uint32_t has_set;   // whose rows have codes above 0
  std::uint8_t low, more;  // codes low, ..., low + more go left, and 0 comes after 255
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
  std::span<const std::int32_t> node;      // of each leaf of the tree, from left to right
  std::span<const std::uint8_t> position;  // (kLanes,) of each row's leaf among these
};

class CodedTrees {
 public:
  // Whether a tree has few enough leaves and categories; alone, it has few enough thresholds then.
  static bool is_small(const TreesView& trees, std::size_t t);
  // Of trees first, ..., last - 1, which are small; none if a feature has too many thresholds.
  static std::optional<CodedTrees> of(const TreesView& trees, std::size_t first, std::size_t last);

  // Whether they take less time than walks: codes cost as much as some steps.
  bool pay() const;
  std::size_t n_codes() const { return n_planes_ * static_cast<std::size_t>(kLanes); }
  // codes: (n_codes(),) of the rows begin, ..., begin + width - 1, at most kLanes.
  template <class Real>
  void code(const Table<const Real>& X, std::int64_t begin, std::int64_t width, std::uint8_t* codes,
            StepCounter& counter) const;
  // Returns the leaves that rows with these codes reach in tree t. position: (kLanes,) is written
  // to, and the result refers to it.
  CodedLeaves find(std::size_t t, const std::uint8_t* codes, std::span<std::uint8_t> position,
                   StepCounter& counter) const;

 private:
  // Where what belongs to a tree begins.
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
