// What trees compute over bits, as polynomials: sums of characters, which are products of features.
//
// A bit b stands for x = (-1)^b, and a character for the set of its bits. Features are independent
// with means that are given, and phi = (x - mean) / deviation takes the place of x: over fair bits
// it is x itself. A node that asks for a bit is
//
//   f = Pr[b = 0] f0 + Pr[b = 1] f1 + deviation / 2 (f0 - f1) phi
//
// with what its children are for either value, so trees are gone through from the leaves up.
#pragma once

#include "tree.hpp"

namespace certree {

// Sets of bits in ascending order (by their last word first), and the coefficients of each.
struct Polynomial {
  std::int64_t n_words;
  std::int64_t n_outputs;
  std::vector<std::uint64_t> masks;  // (k, n_words)
  std::vector<double> coefficients;  // (k, n_outputs)

  std::int64_t size() const { return std::ssize(masks) / n_words; }
  const std::uint64_t* mask(std::int64_t i) const { return masks.data() + i * n_words; }
  const double* row(std::int64_t i) const { return coefficients.data() + i * n_outputs; }
};

// Trees one behind the other.
struct BitTrees {
  std::span<const std::int32_t> bit;   // (all nodes,) that a node asks for; 0 at leaves
  std::span<const std::int32_t> left;  // (all nodes,)
  std::span<const std::int64_t> root;  // (n_trees,)
  Table<const double> value;           // (all nodes, K) what a node adds for all that it contains
  bool left_is_one;                    // the value of the bit that leads to the left
  std::span<const double> mean;        // (n_bits,) of x
};

// What is enumerated: sets of at most so many bits, and no more terms than a limit.
struct Enumeration {
  std::int64_t degree;
  std::int64_t most_terms;
};

// The sum of the trees. Throws std::invalid_argument where there are more terms than the limit.
Polynomial spectrum_of(const BitTrees& trees, const Enumeration& limits, int n_threads);

}  // namespace certree
