// Trees are independent; their sums are paired in one order, so that no bit depends on the threads.
#include "boolean/spectrum.hpp"

#include <bit>
#include <stdexcept>
#include <string>

#include "parallel.hpp"

namespace certree {
namespace {

constexpr std::int32_t kUnreached = -1;

// -1, 0 or 1 as the first mask is below, equal to or above the second.
int compare(const std::uint64_t* a, const std::uint64_t* b, std::int64_t n_words) {
  for (std::int64_t w = n_words; w-- > 0;)
    if (a[w] != b[w]) return a[w] < b[w] ? -1 : 1;
  return 0;
}

// Calls found(mask, row of a, row of b) for all masks of either in their order; a row that one of
// them lacks is zero.
template <class Found>
void for_union(const Polynomial& a, const Polynomial& b, const Found& found) {
  const std::vector<double> zero(static_cast<std::size_t>(a.n_outputs));
  std::int64_t i = 0, j = 0;
  count_steps(a.size() + b.size());
  while (i < a.size() || j < b.size()) {
    const int order = i == a.size()   ? 1
                      : j == b.size() ? -1
                                      : compare(a.mask(i), b.mask(j), a.n_words);
    const std::uint64_t* const mask = order <= 0 ? a.mask(i) : b.mask(j);
    const double* const first = order <= 0 ? a.row(i++) : zero.data();
    const double* const second = order >= 0 ? b.row(j++) : zero.data();
    found(mask, first, second);
  }
}

// Appends a term, a * first + b * second, unless it is zero.
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

Polynomial empty_like(const Polynomial& one, std::int64_t size) {
  Polynomial made{one.n_words, one.n_outputs, {}, {}};
  made.masks.reserve(static_cast<std::size_t>(size * one.n_words));
  made.coefficients.reserve(static_cast<std::size_t>(size * one.n_outputs));
  return made;
}

void expect_few(const Polynomial& one, const Enumeration& limits) {
  if (one.size() > limits.most_terms)
    throw std::invalid_argument("the spectrum has more than " + std::to_string(limits.most_terms) +
                                " terms: limit its degree");
}

Polynomial sum(const Polynomial& a, const Polynomial& b, const Enumeration& limits) {
  Polynomial total = empty_like(a, a.size() + b.size());
  for_union(a, b, [&](const std::uint64_t* mask, const double* first, const double* second) {
    append(total, mask, 1.0, first, 1.0, second);
  });
  expect_few(total, limits);
  return total;
}

// f0 where a bit that neither has is 0, f1 where it is 1.
Polynomial chosen_by(std::int32_t bit, double mean, const Polynomial& f0, const Polynomial& f1,
                     const Enumeration& limits) {
  const double q0 = (1.0 + mean) / 2.0, q1 = (1.0 - mean) / 2.0;
  const double half = std::sqrt((1.0 - mean) * (1.0 + mean)) / 2.0;
  const std::int64_t word = bit / 64;
  Polynomial without = empty_like(f0, f0.size() + f1.size());
  Polynomial with = without;
  std::vector<std::uint64_t> larger(static_cast<std::size_t>(f0.n_words));
  for_union(f0, f1, [&](const std::uint64_t* mask, const double* zero, const double* one) {
    append(without, mask, q0, zero, q1, one);
    std::int64_t size = 0;
    for (std::int64_t w = 0; w < f0.n_words; ++w) size += std::popcount(mask[w]);
    if (size >= limits.degree) return;
    std::copy_n(mask, f0.n_words, larger.begin());
    larger[static_cast<std::size_t>(word)] |= std::uint64_t{1} << (bit % 64);
    append(with, larger.data(), half, zero, -half, one);
  });
  return sum(without, with, limits);
}

// One tree: which of its nodes are reached, and from which of them the way goes one side only, as
// the path has asked for the bit before.
class Paths {
 public:
  Paths(const BitTrees& trees, std::int64_t first, std::int64_t end)
      : trees_(trees),
        first_(first),
        parent_(static_cast<std::size_t>(end - first), kUnreached),
        only_(parent_.size(), kUnreached) {
    for (const std::size_t i : indices(end - first)) visit(first + static_cast<std::int64_t>(i));
  }

  bool is_reached(std::int64_t v) const { return v == first_ || at(parent_, v) != kUnreached; }
  // The only child that is reached, or -1.
  std::int32_t only(std::int64_t v) const { return at(only_, v); }

 private:
  std::int32_t at(const std::vector<std::int32_t>& column, std::int64_t v) const {
    return column[static_cast<std::size_t>(v - first_)];
  }

  void visit(std::int64_t v) {
    const std::int32_t left = trees_.left[static_cast<std::size_t>(v)];
    if (left == kLeaf || !is_reached(v)) return;
    const auto here = static_cast<std::int32_t>(v);
    const auto place = static_cast<std::size_t>(left - first_);
    const std::int32_t side = decided(v);
    if (side != kUnreached) only_[static_cast<std::size_t>(v - first_)] = left + side;
    if (side != 1) parent_[place] = here;
    if (side != 0) parent_[place + 1] = here;
  }

  // The side of its bit that a node lies on already, or -1.
  std::int32_t decided(std::int64_t v) const {
    const std::int32_t bit = trees_.bit[static_cast<std::size_t>(v)];
    StepCounter counter;
    for (std::int64_t child = v; child != first_;) {
      const std::int32_t above = at(parent_, child);
      const auto a = static_cast<std::size_t>(above);
      if (trees_.bit[a] == bit) return child == trees_.left[a] ? 0 : 1;
      child = above;
      counter.add();
    }
    counter.flush();
    return kUnreached;
  }

  const BitTrees& trees_;
  std::int64_t first_;
  std::vector<std::int32_t> parent_, only_;
};

Polynomial spectrum_of_tree(const BitTrees& trees, const Enumeration& limits, std::int64_t first,
                            std::int64_t end) {
  const auto n_words = (std::ssize(trees.mean) + 63) / 64;
  const Paths paths(trees, first, end);
  const Polynomial nothing{n_words, trees.value.width, {}, {}};
  const std::vector<std::uint64_t> no_bits(static_cast<std::size_t>(n_words));
  std::vector<Polynomial> below(static_cast<std::size_t>(end - first), nothing);
  const auto taken = [&](std::int64_t v) {
    return std::exchange(below[static_cast<std::size_t>(v - first)], nothing);
  };
  for (const std::size_t place : indices_down(end - first)) {
    const auto v = first + static_cast<std::int64_t>(place);
    if (!paths.is_reached(v)) continue;
    const std::int32_t left = trees.left[static_cast<std::size_t>(v)];
    Polynomial own = nothing;
    const double* const value = trees.value.row(v);
    append(own, no_bits.data(), 1.0, value, 0.0, value);
    if (left == kLeaf) {
      below[place] = std::move(own);
      continue;
    }
    const std::int32_t bit = trees.bit[static_cast<std::size_t>(v)];
    const std::int32_t zero = trees.left_is_one ? left + 1 : left;
    const std::int32_t one = trees.left_is_one ? left : left + 1;
    const Polynomial inner = paths.only(v) != kUnreached
                                 ? taken(paths.only(v))
                                 : chosen_by(bit, trees.mean[static_cast<std::size_t>(bit)],
                                             taken(zero), taken(one), limits);
    below[place] = sum(inner, own, limits);
  }
  return taken(first);
}

}  // namespace

Polynomial spectrum_of(const BitTrees& trees, const Enumeration& limits, int n_threads) {
  const std::int64_t n_trees = std::ssize(trees.root);
  const auto n_words = (std::ssize(trees.mean) + 63) / 64;
  std::vector<Polynomial> part(static_cast<std::size_t>(std::max<std::int64_t>(n_trees, 1)),
                               Polynomial{n_words, trees.value.width, {}, {}});
  parallel_for(n_trees, n_threads, [&](std::int64_t t) {
    const auto place = static_cast<std::size_t>(t);
    const std::int64_t end = t + 1 < n_trees ? trees.root[place + 1] : std::ssize(trees.left);
    part[place] = spectrum_of_tree(trees, limits, trees.root[place], end);
  });
  for (std::int64_t step = 1; step < n_trees; step *= 2)
    parallel_for((n_trees - step + 2 * step - 1) / (2 * step), n_threads, [&](std::int64_t pair) {
      const auto place = static_cast<std::size_t>(2 * step * pair);
      const auto other = place + static_cast<std::size_t>(step);
      part[place] = sum(part[place], part[other], limits);
      part[other] = Polynomial{n_words, trees.value.width, {}, {}};
    });
  return std::move(part.front());
}

}  // namespace certree
