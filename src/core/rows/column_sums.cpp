#include "rows/column_sums.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "grow/random.hpp"
#include "parallel.hpp"
#include "rows/hashes.hpp"

namespace certree {
namespace {

// Hashes n values of a column, and adds each hash to the sum of its row.
template <class Real>
CERTREE_SIMD_CLONES void hash_values(const Real* value, std::int64_t stride, std::size_t n,
                                     std::uint64_t* word, std::uint64_t* row_hash) noexcept {
  for (std::size_t i = 0; i < n; ++i) {
    word[i] = mixed(bits_of(static_cast<double>(value[static_cast<std::int64_t>(i) * stride])));
    row_hash[i] += word[i];
  }
}
// Mixes the sum of each row with the hash of its target.
CERTREE_SIMD_CLONES void mix_rows(const std::uint64_t* target, std::size_t n,
                                  std::uint64_t* row_hash) noexcept {
  for (std::size_t i = 0; i < n; ++i) row_hash[i] = mixed(row_hash[i] + target[i]);
}
CERTREE_SIMD_CLONES std::uint64_t dot_product(const std::uint64_t* left, const std::uint64_t* right,
                                              std::size_t n) noexcept {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < n; ++i) sum += left[i] * right[i];
  return sum;
}

ColumnSums make_zero_sums(std::span<const std::int32_t> n_categories) {
  ColumnSums sums{std::vector<std::uint64_t>(n_categories.size()), {0}, {}, {}};
  for (const std::int32_t n : n_categories)
    sums.category_start.push_back(sums.category_start.back() + n);
  sums.n_rows.resize(static_cast<std::size_t>(sums.category_start.back()));
  sums.words.resize(sums.n_rows.size());
  return sums;
}

// Sums up rows, one block after the other.
class BlockSummer {
 public:
  // Numbers in a block, so that it stays in the processor's cache, and rows in it.
  static constexpr std::size_t kCached = std::size_t{1} << 13, kLeast = 16, kMost = 1024;

  BlockSummer(std::span<const FeatureValues> columns, std::span<const std::int32_t> n_categories)
      : columns_(columns),
        n_categories_(n_categories),
        block_size_(std::clamp(kCached / columns.size(), kLeast, kMost)),
        words_(make_buffer<std::uint64_t>(static_cast<std::int64_t>(columns.size() * block_size_))),
        row_hash_(block_size_) {}

  void add(std::span<const std::uint64_t> targets, std::size_t begin, std::size_t end,
           ColumnSums& sums) {
    for (std::size_t first = begin; first < end; first += block_size_) {
      const std::size_t n = std::min(block_size_, end - first);
      count_steps(n * columns_.size());
      std::ranges::fill(row_hash_, 0);
      for (std::size_t j = 0; j < columns_.size(); ++j)
        if (n_categories_[j] == 0)
          std::visit([&](const auto& column) { hash_column(column, first, n, column_hashes(j)); },
                     columns_[j]);
      mix_rows(targets.data() + first, n, row_hash_.data());
      for (std::size_t j = 0; j < columns_.size(); ++j) {
        if (n_categories_[j] == 0)
          sums.numbers[j] += dot_product(column_hashes(j), row_hash_.data(), n);
        else
          std::visit([&](const auto& column) { count(column, j, first, n, sums); }, columns_[j]);
      }
    }
  }

 private:
  std::uint64_t* column_hashes(std::size_t j) const { return words_.get() + j * block_size_; }

  template <class Real>
  static const Real* value_at(const Strided<Real>& column, std::size_t row) {
    return column.data + static_cast<std::int64_t>(row) * column.stride;
  }
  template <class Real>
  void hash_column(const Strided<Real>& column, std::size_t first, std::size_t n,
                   std::uint64_t* word) {
    hash_values(value_at(column, first), column.stride, n, word, row_hash_.data());
  }
  template <class Real>
  void count(const Strided<Real>& column, std::size_t j, std::size_t first, std::size_t n,
             ColumnSums& sums) const {
    const auto start = static_cast<std::size_t>(sums.category_start[j]);
    const std::int32_t missing = n_categories_[j] - 1;
    for (std::size_t i = 0; i < n; ++i) {
      const auto code = static_cast<double>(*value_at(column, first + i));
      const bool is_category = code >= 0.0 && code < missing && code == std::floor(code);
      const std::size_t category =
          start + static_cast<std::size_t>(is_category ? static_cast<std::int32_t>(code) : missing);
      ++sums.n_rows[category];
      sums.words[category] += row_hash_[i];
    }
  }

  std::span<const FeatureValues> columns_;
  std::span<const std::int32_t> n_categories_;
  std::size_t block_size_;
  Buffer<std::uint64_t> words_;  // (p, block_size)
  std::vector<std::uint64_t> row_hash_;
};

void add(const std::vector<std::uint64_t>& from, std::vector<std::uint64_t>& to) {
  for (std::size_t i = 0; i < to.size(); ++i) to[i] += from[i];
}

}  // namespace

ColumnSums column_sums(std::span<const FeatureValues> columns,
                       std::span<const std::int32_t> n_categories,
                       std::span<const std::uint64_t> targets, int n_threads) {
  // A thread for fewer values would cost more than it saves.
  constexpr std::size_t kWorthThreads = std::size_t{1} << 18;
  const std::size_t n = targets.size(),
                    most = std::max<std::size_t>(1, n * columns.size() / kWorthThreads);
  const std::size_t n_blocks = std::min(most, static_cast<std::size_t>(std::max(n_threads, 1)));
  std::vector<ColumnSums> block_sums(n_blocks, make_zero_sums(n_categories));
  parallel_for(std::ssize(block_sums), n_threads, [&](std::int64_t i) {
    const auto block = static_cast<std::size_t>(i);
    BlockSummer(columns, n_categories)
        .add(targets, n * block / n_blocks, n * (block + 1) / n_blocks, block_sums[block]);
  });
  ColumnSums& total = block_sums[0];
  for (std::size_t block = 1; block < n_blocks; ++block) {
    add(block_sums[block].numbers, total.numbers);
    add(block_sums[block].n_rows, total.n_rows);
    add(block_sums[block].words, total.words);
  }
  return std::move(total);
}

std::vector<std::int32_t> order_of_columns(const ColumnSums& sums) {
  std::vector<std::uint64_t> key = sums.numbers;
  for (std::size_t j = 0; j < key.size(); ++j) {
    const auto begin = static_cast<std::size_t>(sums.category_start[j]);
    const auto end = static_cast<std::size_t>(sums.category_start[j + 1]);
    for (std::size_t code = begin; code < end; ++code) {
      const bool is_missing = code + 1 == end;
      if (sums.n_rows[code] > 0)
        key[j] += mixed(sums.words[code] + mixed(2 * sums.n_rows[code] + is_missing));
    }
  }
  std::vector<std::int32_t> order(key.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, std::less(),
                           [&](std::int32_t j) { return key[static_cast<std::size_t>(j)]; });
  return order;
}

std::vector<std::int32_t> number_categories_by_rows(std::span<const std::uint64_t> n_rows,
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
