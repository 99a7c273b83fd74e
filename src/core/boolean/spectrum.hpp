// Fourier spectra of trees whose features are bits: the trees as polynomials, that is, sums of
// characters with coefficients.
//
// A bit b stands for x = (-1)^b. Bits are independent, and x has a given mean. The character of a
// set of bits is the product of phi = (x - mean) / deviation over the set; for fair bits phi = x. A
// node that tests a bit is the polynomial
//
//   f = Pr[b = 0] f0 + Pr[b = 1] f1 + deviation / 2 (f0 - f1) phi
//
// of its children f0, reached if the bit is 0, and f1, so spectra are computed from the leaves up.
#pragma once

#include "tree.hpp"

namespace certree {

// k sets of bits in ascending order as integers (the last word is the most significant), and the
// coefficients of their characters. A mask has a bit set for each bit of its set.
struct Polynomial {
  std::int64_t n_words;
  std::int64_t n_outputs;
  std::vector<std::uint64_t> masks;  // (k, n_words)
  std::vector<double> coefficients;  // (k, n_outputs)

  std::int64_t size() const { return std::ssize(masks) / n_words; }
  const std::uint64_t* mask(std::int64_t i) const { return masks.data() + i * n_words; }
  const double* coefficient(std::int64_t i) const { return coefficients.data() + i * n_outputs; }
};

// Trees whose features are bits, with their nodes stored one tree after the other.
struct BitTrees {
  std::span<const std::int32_t> bit;   // (m,) bit that a node tests; 0 at leaves
  std::span<const std::int32_t> left;  // (m,)
  std::span<const std::int64_t> root;  // (n_trees,) first node of each tree
  Table<const double> value;  // (m, n_outputs) added to the outputs of all inputs that reach a node
  bool left_is_one;           // whether an input goes left if the bit is 1
  std::span<const double> mean;  // (n_bits,) mean of x = (-1)^b, inside (-1, 1)
};

// Limits of a spectrum.
struct SpectrumLimits {
  std::int64_t degree;      // largest number of bits in a set; larger sets are left out
  std::int64_t most_terms;  // largest number of sets; more are an error
};

// Returns the spectrum of the sum of the trees. Throws std::invalid_argument if it, or a spectrum
// on the way to it, has more than most_terms terms.
Polynomial compute_spectrum(const BitTrees& trees, const SpectrumLimits& limits, int n_threads);

}  // namespace certree
