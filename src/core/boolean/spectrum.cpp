// Spectra of trees are computed independently, and added in pairs in a fixed order, so that results
// do not depend on the number of threads.
#include "boolean/spectrum.hpp"

#include <bit>
#include <stdexcept>
#include <string>

#include "parallel.hpp"

namespace certree {
namespace {

constexpr std::int32_t kUnreached = -1;

// Returns -1, 0 or 1 if mask a is below, equal to or above mask b.
int compare(const std::uint64_t* a, const std::uint64_t* b, std::int64_t n_words) {
  for (std::int64_t w = n_words; w-- > 0;)
    if (a[w] != b[w]) return a[w] < b[w] ? -1 : 1;
  return 0;
}

// Calls visit(mask, coefficients of a, coefficients of b) for the masks of either polynomial,
// ascending; coefficients of a mask that one of them lacks are zeros.
template <class Visit>
void for_each_term(const Polynomial& a, const Polynomial& b, const Visit& visit) {
  const std::vector<double> zero(static_cast<std::size_t>(a.n_outputs));
  std::int64_t i = 0, j = 0;
  count_steps(a.size() + b.size());
  while (i < a.size() || j < b.size()) {
    const int order = i == a.size()   ? 1
                      : j == b.size() ? -1
                                      : compare(a.mask(i), b.mask(j), a.n_words);
    const std::uint64_t* const mask = order <= 0 ? a.mask(i) : b.mask(j);
    const double* const first = order <= 0 ? a.coefficient(i++) : zero.data();
    const double* const second = order >= 0 ? b.coefficient(j++) : zero.data();
    visit(mask, first, second);
  }
}

// Appends a term with the coefficients a * first + b * second, unless all are 0.
void append(Polynomial& to, const std::uint64_t* mask, double a, const double* first, double b,
            const double* second) {
  bool is_zero = true;
  for (std::int64_t k = 0; k < to.n_outputs; ++k) {
    to.coefficients.push_back(a * first[k] + b * second[k]);
    is_zero &= to.coefficients.back() == 0.0;
  }
  if (is_zero)
    to.coefficients.resize(to.coefficients.size() - static_cast<std::size_t>(to.n_outputs));
  else
    to.masks.insert(to.masks.end(), mask, mask + to.n_words);
}

// Returns the zero polynomial with memory for `size` terms, of the widths of another polynomial.
Polynomial reserve_like(const Polynomial& other, std::int64_t size) {
  Polynomial zero{other.n_words, other.n_outputs, {}, {}};
  zero.masks.reserve(static_cast<std::size_t>(size * other.n_words));
  zero.coefficients.reserve(static_cast<std::size_t>(size * other.n_outputs));
  return zero;
}

void expect_most_terms(const Polynomial& polynomial, const SpectrumLimits& limits) {
  if (polynomial.size() > limits.most_terms)
    throw std::invalid_argument("the spectrum has more than " + std::to_string(limits.most_terms) +
                                " terms: limit its degree");
}

Polynomial add(const Polynomial& a, const Polynomial& b, const SpectrumLimits& limits) {
  Polynomial total = reserve_like(a, a.size() + b.size());
  for_each_term(a, b, [&](const std::uint64_t* mask, const double* first, const double* second) {
    append(total, mask, 1.0, first, 1.0, second);
  });
  expect_most_terms(total, limits);
  return total;
}

// Returns the polynomial that equals f0 if a bit is 0 and f1 if it is 1. Neither may depend on the
// bit. Terms of more than limits.degree bits are left out.
Polynomial select_by_bit(std::int32_t bit, double mean, const Polynomial& f0, const Polynomial& f1,
                         const SpectrumLimits& limits) {
  const double q0 = (1.0 + mean) / 2.0, q1 = (1.0 - mean) / 2.0;
  const double half = std::sqrt((1.0 - mean) * (1.0 + mean)) / 2.0;
  const std::int64_t word = bit / 64;
  Polynomial without = reserve_like(f0, f0.size() + f1.size());  // terms without the bit
  Polynomial with = without;
  std::vector<std::uint64_t> with_bit(static_cast<std::size_t>(f0.n_words));
  for_each_term(f0, f1, [&](const std::uint64_t* mask, const double* zero, const double* one) {
    append(without, mask, q0, zero, q1, one);
    std::int64_t size = 0;
    for (std::int64_t w = 0; w < f0.n_words; ++w) size += std::popcount(mask[w]);
    if (size >= limits.degree) return;
    std::copy_n(mask, f0.n_words, with_bit.begin());
    with_bit[static_cast<std::size_t>(word)] |= std::uint64_t{1} << (bit % 64);
    append(with, with_bit.data(), half, zero, -half, one);
  });
  return add(without, with, limits);
}

// The nodes of one tree that some input reaches. If the path to a node has already tested the bit
// of the node, all its inputs go to the same child.
class ReachableNodes {
 public:
  // The nodes of the tree are first, ..., end - 1.
  ReachableNodes(const BitTrees& trees, std::int64_t first, std::int64_t end)
      : trees_(trees),
        first_(first),
        parent_(static_cast<std::size_t>(end - first), kUnreached),
        only_child_(parent_.size(), kUnreached) {
    for (const std::size_t i : indices(end - first))
      mark_children(first + static_cast<std::int64_t>(i));
  }

  bool is_reached(std::int64_t v) const { return v == first_ || entry(parent_, v) != kUnreached; }
  // Returns the only child that is reached, or kUnreached if both or none are.
  std::int32_t only_child(std::int64_t v) const { return entry(only_child_, v); }

 private:
  std::int32_t entry(const std::vector<std::int32_t>& column, std::int64_t v) const {
    return column[static_cast<std::size_t>(v - first_)];
  }

  // Marks the children of v that are reached.
  void mark_children(std::int64_t v) {
    const std::int32_t left = trees_.left[static_cast<std::size_t>(v)];
    if (left == kLeaf || !is_reached(v)) return;
    const auto parent = static_cast<std::int32_t>(v);
    const auto child = static_cast<std::size_t>(left - first_);
    const std::int32_t which = decided_child(v);
    if (which != kUnreached) only_child_[static_cast<std::size_t>(v - first_)] = left + which;
    if (which != 1) parent_[child] = parent;
    if (which != 0) parent_[child + 1] = parent;
  }

  // Returns the child, 0 (left) or 1, to which all inputs of v go because an ancestor tests the
  // same bit; kUnreached if there is no such ancestor.
  std::int32_t decided_child(std::int64_t v) const {
    const std::int32_t bit = trees_.bit[static_cast<std::size_t>(v)];
    StepCounter counter;
    for (std::int64_t child = v; child != first_;) {
      const std::int32_t parent = entry(parent_, child);
      const auto u = static_cast<std::size_t>(parent);
      if (trees_.bit[u] == bit) return child == trees_.left[u] ? 0 : 1;
      child = parent;
      counter.add();
    }
    counter.flush();
    return kUnreached;
  }

  const BitTrees& trees_;
  std::int64_t first_;
  std::vector<std::int32_t> parent_, only_child_;  // by node of the tree, or kUnreached
};

// Returns the spectrum of the tree with the nodes first, ..., end - 1.
Polynomial spectrum_of_tree(const BitTrees& trees, const SpectrumLimits& limits, std::int64_t first,
                            std::int64_t end) {
  const auto n_words = (std::ssize(trees.mean) + 63) / 64;
  const ReachableNodes nodes(trees, first, end);
  const Polynomial zero{n_words, trees.value.width, {}, {}};
  const std::vector<std::uint64_t> no_bits(static_cast<std::size_t>(n_words));
  // Spectra of subtrees; that of a child is freed once its parent has taken it.
  std::vector<Polynomial> below(static_cast<std::size_t>(end - first), zero);
  const auto take = [&](std::int64_t v) {
    return std::exchange(below[static_cast<std::size_t>(v - first)], zero);
  };
  for (const std::size_t place : indices_down(end - first)) {
    const auto v = first + static_cast<std::int64_t>(place);
    if (!nodes.is_reached(v)) continue;
    const std::int32_t left = trees.left[static_cast<std::size_t>(v)];
    Polynomial constant = zero;
    const double* const value = trees.value.row(v);
    append(constant, no_bits.data(), 1.0, value, 0.0, value);
    if (left == kLeaf) {
      below[place] = std::move(constant);
      continue;
    }
    const std::int32_t bit = trees.bit[static_cast<std::size_t>(v)];
    const std::int32_t child0 = trees.left_is_one ? left + 1 : left;
    const std::int32_t child1 = trees.left_is_one ? left : left + 1;
    const Polynomial children = nodes.only_child(v) != kUnreached
                                    ? take(nodes.only_child(v))
                                    : select_by_bit(bit, trees.mean[static_cast<std::size_t>(bit)],
                                                    take(child0), take(child1), limits);
    below[place] = add(children, constant, limits);
  }
  return take(first);
}

}  // namespace

Polynomial compute_spectrum(const BitTrees& trees, const SpectrumLimits& limits, int n_threads) {
  const std::int64_t n_trees = std::ssize(trees.root);
  const auto n_words = (std::ssize(trees.mean) + 63) / 64;
  std::vector<Polynomial> spectrum(static_cast<std::size_t>(std::max<std::int64_t>(n_trees, 1)),
                                   Polynomial{n_words, trees.value.width, {}, {}});
  parallel_for(n_trees, n_threads, [&](std::int64_t t) {
    const auto place = static_cast<std::size_t>(t);
    const std::int64_t end = t + 1 < n_trees ? trees.root[place + 1] : std::ssize(trees.left);
    spectrum[place] = spectrum_of_tree(trees, limits, trees.root[place], end);
  });
  for (std::int64_t step = 1; step < n_trees; step *= 2)
    parallel_for((n_trees - step + 2 * step - 1) / (2 * step), n_threads, [&](std::int64_t pair) {
      const auto place = static_cast<std::size_t>(2 * step * pair);
      const auto other = place + static_cast<std::size_t>(step);
      spectrum[place] = add(spectrum[place], spectrum[other], limits);
      spectrum[other] = Polynomial{n_words, trees.value.width, {}, {}};
    });
  return std::move(spectrum.front());
}

}  // namespace certree
