#include "rows/column_sums.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

#include "grow/random.hpp"
#include "numbers.hpp"
#include "parallel.hpp"

namespace certree {
namespace {

CERTREE_INLINE std::uint64_t word_of(double value) {
  constexpr auto nan = std::bit_cast<std::uint64_t>(std::numeric_limits<double>::quiet_NaN());
  const auto bits = std::bit_cast<std::uint64_t>(value + 0.0);
  return mixed(value == value ? bits : nan);
}

// Words of n values, which are added to those of their rows.
template <class Real>
CERTREE_SIMD_CLONES void take_words(const Real* value, std::int64_t stride, std::size_t n,
                                    std::uint64_t* word, std::uint64_t* of_row) noexcept {
  for (std::size_t i = 0; i < n; ++i) {
    word[i] = word_of(static_cast<double>(value[static_cast<std::int64_t>(i) * stride]));
    of_row[i] += word[i];
  }
}
CERTREE_SIMD_CLONES void mix_words(const std::uint64_t* target, std::size_t n,
                                   std::uint64_t* of_row) noexcept {
  for (std::size_t i = 0; i < n; ++i) of_row[i] = mixed(of_row[i] + target[i]);
}
CERTREE_SIMD_CLONES std::uint64_t sum_of_products(const std::uint64_t* one,
                                                  const std::uint64_t* other,
                                                  std::size_t n) noexcept {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < n; ++i) sum += one[i] * other[i];
  return sum;
}

ColumnSums no_sums(std::span<const std::int32_t> n_levels) {
  ColumnSums sums{std::vector<std::uint64_t>(n_levels.size()), {0}, {}, {}};
  for (const std::int32_t n : n_levels) sums.level_start.push_back(sums.level_start.back() + n);
  sums.n_rows.resize(static_cast<std::size_t>(sums.level_start.back()));
  sums.words.resize(sums.n_rows.size());
  return sums;
}

// Adds blocks of rows up, one after the other.
class Blocks {
 public:
  // Numbers of a block stay in the processor's cache.
  static constexpr std::size_t kCached = std::size_t{1} << 13, kLeast = 16, kMost = 1024;

  Blocks(std::span<const FeatureValues> columns, std::span<const std::int32_t> n_levels)
      : columns_(columns),
        n_levels_(n_levels),
        n_together_(std::clamp(kCached / columns.size(), kLeast, kMost)),
        words_(make_buffer<std::uint64_t>(static_cast<std::int64_t>(columns.size() * n_together_))),
        of_row_(n_together_) {}

  void add(std::span<const std::uint64_t> targets, std::size_t begin, std::size_t end,
           ColumnSums& sums) {
    for (std::size_t first = begin; first < end; first += n_together_) {
      const std::size_t n = std::min(n_together_, end - first);
      count_steps(n * columns_.size());
      std::ranges::fill(of_row_, 0);
      for (std::size_t j = 0; j < columns_.size(); ++j)
        if (n_levels_[j] == 0)
          std::visit([&](const auto& one) { take(one, first, n, words_of(j)); }, columns_[j]);
      mix_words(targets.data() + first, n, of_row_.data());
      for (std::size_t j = 0; j < columns_.size(); ++j) {
        if (n_levels_[j] == 0)
          sums.numbers[j] += sum_of_products(words_of(j), of_row_.data(), n);
        else
          std::visit([&](const auto& one) { count(one, j, first, n, sums); }, columns_[j]);
      }
    }
  }

 private:
  std::uint64_t* words_of(std::size_t j) const { return words_.get() + j * n_together_; }

  template <class Real>
  static const Real* at(const Strided<Real>& column, std::size_t row) {
    return column.data + static_cast<std::int64_t>(row) * column.stride;
  }
  template <class Real>
  void take(const Strided<Real>& column, std::size_t first, std::size_t n, std::uint64_t* word) {
    take_words(at(column, first), column.stride, n, word, of_row_.data());
  }
  template <class Real>
  void count(const Strided<Real>& column, std::size_t j, std::size_t first, std::size_t n,
             ColumnSums& sums) const {
    const auto start = static_cast<std::size_t>(sums.level_start[j]);
    const std::int32_t missing = n_levels_[j] - 1;
    for (std::size_t i = 0; i < n; ++i) {
      const auto code = static_cast<double>(*at(column, first + i));
      const bool is_level = code >= 0.0 && code < missing && code == std::floor(code);
      const std::size_t level =
          start + static_cast<std::size_t>(is_level ? static_cast<std::int32_t>(code) : missing);
      ++sums.n_rows[level];
      sums.words[level] += of_row_[i];
    }
  }

  std::span<const FeatureValues> columns_;
  std::span<const std::int32_t> n_levels_;
  std::size_t n_together_;
  Buffer<std::uint64_t> words_;  // (p, n_together)
  std::vector<std::uint64_t> of_row_;
};

void add(const std::vector<std::uint64_t>& from, std::vector<std::uint64_t>& to) {
  for (std::size_t i = 0; i < to.size(); ++i) to[i] += from[i];
}

}  // namespace

ColumnSums column_sums(std::span<const FeatureValues> columns,
                       std::span<const std::int32_t> n_levels,
                       std::span<const std::uint64_t> targets, int n_threads) {
  // Fewer values are not worth a thread.
  constexpr std::size_t kWorthThreads = std::size_t{1} << 18;
  const std::size_t n = targets.size(),
                    most = std::max<std::size_t>(1, n * columns.size() / kWorthThreads);
  const std::size_t n_parts = std::min(most, static_cast<std::size_t>(std::max(n_threads, 1)));
  std::vector<ColumnSums> parts(n_parts, no_sums(n_levels));
  parallel_for(std::ssize(parts), n_threads, [&](std::int64_t i) {
    const auto part = static_cast<std::size_t>(i);
    Blocks(columns, n_levels)
        .add(targets, n * part / n_parts, n * (part + 1) / n_parts, parts[part]);
  });
  ColumnSums& all = parts[0];
  for (std::size_t part = 1; part < n_parts; ++part) {
    add(parts[part].numbers, all.numbers);
    add(parts[part].n_rows, all.n_rows);
    add(parts[part].words, all.words);
  }
  return std::move(all);
}

std::vector<std::int32_t> order_of_columns(const ColumnSums& sums) {
  std::vector<std::uint64_t> key = sums.numbers;
  for (std::size_t j = 0; j < key.size(); ++j) {
    const auto begin = static_cast<std::size_t>(sums.level_start[j]);
    const auto end = static_cast<std::size_t>(sums.level_start[j + 1]);
    for (std::size_t level = begin; level < end; ++level) {
      const bool is_missing = level + 1 == end;
      if (sums.n_rows[level] > 0)
        key[j] += mixed(sums.words[level] + mixed(2 * sums.n_rows[level] + is_missing));
    }
  }
  std::vector<std::int32_t> order(key.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, std::less(),
                           [&](std::int32_t j) { return key[static_cast<std::size_t>(j)]; });
  return order;
}

std::vector<std::int32_t> numbers_of_levels(std::span<const std::uint64_t> n_rows,
                                            std::span<const std::uint64_t> words) {
  std::vector<std::size_t> order(n_rows.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) {
    return n_rows[a] > n_rows[b] || (n_rows[a] == n_rows[b] && words[a] < words[b]);
  });
  std::vector<std::int32_t> number(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) number[order[i]] = static_cast<std::int32_t>(i);
  return number;
}

}  // namespace certree
