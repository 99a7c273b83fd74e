// The features as the greedy grower reads them: numbers in the order of their values, categories as
// codes.
#pragma once

#include <array>
#include <bit>
#include <stdexcept>
#include <string>

#include "grow/few_values.hpp"
#include "grow/grow.hpp"
#include "parallel.hpp"

namespace certree {

inline constexpr std::uint32_t kMissing = 0xFFFFFFFFu;

// A number whose order as an unsigned integer is that of the values; missing ones come last.
template <class Real>
auto ordered_bits(Real x) {
  using Bits = std::conditional_t<sizeof(Real) == 8, std::uint64_t, std::uint32_t>;
  constexpr Bits sign = Bits{1} << (8 * sizeof(Real) - 1);
  if (std::isnan(x)) return ~Bits{0};
  const Bits bits = std::bit_cast<Bits>(x == Real{0} ? Real{0} : x);  // -0.0 equals 0.0
  return static_cast<Bits>(bits & sign ? ~bits : bits | sign);
}

template <class Bits>
struct Key {
  Bits bits;
  std::uint32_t row;
};

// Sorts n keys by radix, so many bits at a time, passes in which all keys agree left out. Stable,
// so equal values stand in the order of the rows. `others` is scratch of the same length.
template <int kDigit, class Bits>
void sort_by_radix(Buffer<Key<Bits>>& keys, Buffer<Key<Bits>>& others, std::int64_t n) {
  constexpr std::size_t kSize = std::size_t{1} << kDigit;
  constexpr int kPasses = (8 * static_cast<int>(sizeof(Bits)) + kDigit - 1) / kDigit;
  const auto digit = [](Bits bits, int pass) { return (bits >> (pass * kDigit)) & (kSize - 1); };
  std::array<std::uint32_t, kSize * kPasses> starts{};
  for (const auto part : chunks(keys.get(), keys.get() + n))
    for (const Key<Bits>& key : part)
      for (int pass = 0; pass < kPasses; ++pass)
        ++starts[static_cast<std::size_t>(pass) * kSize + digit(key.bits, pass)];
  for (int pass = 0; pass < kPasses; ++pass) {
    std::uint32_t* start = starts.data() + static_cast<std::size_t>(pass) * kSize;
    if (start[digit(keys[0].bits, pass)] == n) continue;
    std::exclusive_scan(start, start + kSize, start, std::uint32_t{0});
    for (const auto part : chunks(keys.get(), keys.get() + n))
      for (const Key<Bits> key : part) others[start[digit(key.bits, pass)]++] = key;
    std::swap(keys, others);
  }
}

// Sorts the rows of one feature into `list`, equal values in the order of the rows.
template <class Real>
void sort_feature(const Table<const Real>& X, std::int64_t j, RankedRow* list) {
  using Bits = decltype(ordered_bits(Real{}));
  const std::int64_t n = X.n_rows;
  auto keys = make_buffer<Key<Bits>>(n), others = make_buffer<Key<Bits>>(n);
  for (const std::size_t i : indices(n))
    keys[i] = {ordered_bits(X.row(i)[j]), static_cast<std::uint32_t>(i)};
  if (n < 128)
    std::sort(keys.get(), keys.get() + n, [](const auto& a, const auto& b) {
      return a.bits < b.bits || (a.bits == b.bits && a.row < b.row);
    });
  else if (n < 16384)  // counting a digit takes as long as moving so many rows
    sort_by_radix<8>(keys, others, n);
  else
    sort_by_radix<11>(keys, others, n);
  std::uint32_t rank = 0;
  for (const std::size_t i : indices(n)) {
    if (i > 0 && keys[i].bits != keys[i - 1].bits) ++rank;
    list[i] = {keys[i].bits == ~Bits{0} ? kMissing : rank, keys[i].row};
  }
}

// Which features are categories and which are numbers in an order; numbers with few values are
// neither.
struct Features {
  std::vector<std::int64_t> numbers;    // their features, one list each
  std::vector<std::int64_t> ranked_at;  // which of the features without categories each of them is
  std::vector<std::int64_t> sets;       // the features of categories, one column of codes each
  std::vector<std::int64_t> place;      // (p,) index in numbers, or the complement of that in sets
  // The distinct categories of each feature of categories, ascending. A row's code is the index of
  // its category in them; a missing one has the code behind the last.
  std::vector<std::vector<std::int32_t>> categories;

  // feature_order: sums over the rows of a node are rounded in the order of one of the lists.
  Features(const FeatureOrder& feature_order, std::span<const std::uint8_t> is_categorical,
           const FewValues& few = FewValues())
      : place(feature_order.features.size()) {
    const auto is_set = [&](std::size_t j) { return !is_categorical.empty() && is_categorical[j]; };
    std::vector<std::int64_t> n_ranked{0};  // of the features before each
    for (std::size_t j = 0; j < place.size(); ++j)
      n_ranked.push_back(n_ranked.back() + (is_set(j) ? 0 : 1));
    for (const std::int32_t feature : feature_order.features) {
      const auto j = static_cast<std::size_t>(feature);
      if (few.holds(feature)) continue;
      if (!is_set(j)) ranked_at.push_back(n_ranked[j]);
      auto& kind = is_set(j) ? sets : numbers;
      const auto index = static_cast<std::int64_t>(kind.size());
      place[j] = is_set(j) ? ~index : index;
      kind.push_back(feature);
    }
    categories.resize(sets.size());
  }

  bool is_categorical(std::int64_t j) const { return place[static_cast<std::size_t>(j)] < 0; }
  // Index of a feature's list, or of its column of codes.
  std::int64_t index(std::int64_t j) const {
    const std::int64_t at = place[static_cast<std::size_t>(j)];
    return at < 0 ? ~at : at;
  }
  const std::vector<std::int32_t>& categories_of(std::int64_t j) const {
    return categories[static_cast<std::size_t>(index(j))];
  }
  std::uint32_t missing_code(std::int64_t j) const {
    return static_cast<std::uint32_t>(categories_of(j).size());
  }
  std::int64_t n_numbers() const { return static_cast<std::int64_t>(numbers.size()); }
  std::int64_t n_sets() const { return static_cast<std::int64_t>(sets.size()); }
  // One per number and, if there are other features, one more that only says which rows a node has.
  bool has_others() const { return numbers.size() < place.size(); }
  std::int64_t n_lists() const { return n_numbers() + has_others(); }
};

inline constexpr std::uint32_t kMostCategories = 1u << 24;

template <class Real>
std::uint32_t category(Real x, std::int64_t j) {
  if (std::isnan(x)) return kMissing;
  const bool in_range = x >= Real{0} && x < static_cast<Real>(kMostCategories);
  const auto whole = in_range ? static_cast<std::uint32_t>(x) : 0u;
  if (!in_range || static_cast<Real>(whole) != x)
    throw std::invalid_argument("categories must be whole numbers in 0 .. " +
                                std::to_string(kMostCategories - 1) + " or NaN, got " +
                                std::to_string(x) + " in feature " + std::to_string(j));
  return whole;
}

// Replaces the categories (n,) of a feature by their codes; returns what the codes stand for.
inline std::vector<std::int32_t> encode(std::uint32_t* column, std::int64_t n) {
  std::uint32_t bound = 0;
  for (const std::size_t i : indices(n))
    if (column[i] != kMissing) bound = std::max(bound, column[i] + 1);
  std::vector<std::uint32_t> code(bound, 0);
  for (const std::size_t i : indices(n))
    if (column[i] != kMissing) code[column[i]] = 1;
  std::vector<std::int32_t> categories;
  for (std::uint32_t c = 0; c < bound; ++c)
    if (code[c] > 0) {
      code[c] = static_cast<std::uint32_t>(categories.size());
      categories.push_back(static_cast<std::int32_t>(c));
    }
  const auto missing = static_cast<std::uint32_t>(categories.size());
  const bool renumbered = missing < bound;  // else every code is its category
  for (const auto part : chunks(column, column + n))
    for (std::uint32_t& c : part) c = c == kMissing ? missing : renumbered ? code[c] : c;
  return categories;
}

// codes: (number of features of categories, n_rows).
template <class Real>
void encode_all(const Table<const Real>& X, Features& features, int n_threads,
                const Table<std::uint32_t>& codes) {
  const std::int64_t n_sets = features.n_sets();
  if (n_sets == 0) return;
  // Blocks of rows stay in the cache while their features are read one after the other.
  constexpr std::int64_t kBlock = 256;
  parallel_for((X.n_rows + kBlock - 1) / kBlock, n_threads, [&](std::int64_t block) {
    const std::int64_t begin = block * kBlock, end = std::min(X.n_rows, begin + kBlock);
    for (std::int64_t s = 0; s < n_sets; ++s) {
      const std::int64_t j = features.sets[static_cast<std::size_t>(s)];
      std::uint32_t* const column = codes.row(s);
      count_steps(end - begin);
      for (std::int64_t i = begin; i < end; ++i) column[i] = category(X.row(i)[j], j);
    }
  });
  parallel_for(n_sets, n_threads, [&](std::int64_t s) {
    features.categories[static_cast<std::size_t>(s)] = encode(codes.row(s), X.n_rows);
  });
}

template <class Real>
void rank_numbers(const Table<const Real>& X, const Features& features, int n_threads,
                  const Table<RankedRow>& lists) {
  parallel_for(features.n_numbers(), n_threads, [&](std::int64_t i) {
    sort_feature(X, features.numbers[static_cast<std::size_t>(i)], lists.row(i));
  });
}

// The n rows of the grower in the order of the i-th feature that was ranked, out of all rows.
inline void pick(const Ranked& ranked, std::int64_t i, std::int64_t n, RankedRow* list) {
  const std::int32_t* const place_of = ranked.place.data();
  const RankedRow* const end = ranked.order.row(i + 1);
  RankedRow* to = list;
  for (const auto part : chunks(ranked.order.row(i), end)) {
    for (const RankedRow& from : part) {
      if (to == list + n) return;
      const std::int32_t place = place_of[from.row];
      *to = {from.rank, static_cast<std::uint32_t>(place)};
      to += place >= 0;  // no branch: it would be guessed wrong too often
    }
  }
  if (to != list + n) throw std::invalid_argument("order must hold every row once");
}

// The same for all lists. Numbers with few values have been ranked, too.
inline void pick_numbers(const Ranked& ranked, const Features& features, int n_threads,
                         const Table<RankedRow>& lists) {
  parallel_for(features.n_numbers(), n_threads, [&](std::int64_t i) {
    pick(ranked, features.ranked_at[static_cast<std::size_t>(i)], lists.width, lists.row(i));
  });
}

}  // namespace certree
