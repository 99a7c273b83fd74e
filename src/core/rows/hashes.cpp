#include "rows/hashes.hpp"

#include "grow/random.hpp"
#include "parallel.hpp"

namespace certree {
namespace {

// The hash of no value.
constexpr std::uint64_t start_of(bool rounded) { return rounded ? kGoldenGamma : 0; }
CERTREE_INLINE std::uint64_t with_word(std::uint64_t hash, std::uint64_t word) {
  return mixed((hash ^ word) + kGoldenGamma);
}

// Computes the hash of a row, whose values are added from left to right.
class Hash {
 public:
  explicit Hash(bool rounded) : rounded_(rounded), mixed_(start_of(rounded)) {}

  CERTREE_INLINE void add(double value) {
    if (rounded_) value = static_cast<double>(static_cast<float>(value));
    if (value == 0.0) return add_zeros(1);
    end_run();
    mix(bits_of(value));
  }
  void add_zeros(std::int64_t n) { n_zeros_ += n; }
  std::uint64_t end() {
    end_run();
    return mixed_;
  }

 private:
  CERTREE_INLINE void mix(std::uint64_t word) { mixed_ = with_word(mixed_, word); }
  CERTREE_INLINE void end_run() {
    if (n_zeros_ >= kLongRun) {
      mix(~static_cast<std::uint64_t>(n_zeros_));  // bits of a NaN that no value is given
      n_zeros_ = 0;
    }
    for (; n_zeros_ > 0; --n_zeros_) mix(0);
  }

  bool rounded_;
  std::uint64_t mixed_;
  std::int64_t n_zeros_ = 0;  // length of the current run of zeros, not yet mixed in
};

// Adds the values of a column to the hashes of its rows, of fewer than kLongRun values each.
template <class Real>
CERTREE_SIMD_CLONES void add_column(const Real* value, std::int64_t stride, std::size_t n,
                                    bool rounded, std::uint64_t* hash) noexcept {
  for (std::size_t i = 0; i < n; ++i) {
    const Real given = value[static_cast<std::int64_t>(i) * stride];
    const auto x = static_cast<double>(rounded ? static_cast<float>(given) : given);
    hash[i] = with_word(hash[i], bits_of(x));
  }
}

// Calls hash_block(first, n) for blocks of rows that are large enough for a thread.
template <class HashBlock>
void hash_blocks(std::size_t n_rows, std::size_t block_size, std::size_t width, int n_threads,
                 const HashBlock& hash_block) {
  const std::size_t n_blocks = (n_rows + block_size - 1) / block_size;
  parallel_for(static_cast<std::int64_t>(n_blocks), n_threads, [&](std::int64_t block) {
    const std::size_t first = static_cast<std::size_t>(block) * block_size;
    const std::size_t n = std::min(block_size, n_rows - first);
    count_steps(n * (width + 1));
    hash_block(first, n);
  });
}

}  // namespace

template <class Real>
void hash_rows(const SparseRows<Real>& rows, bool rounded, int n_threads,
               std::span<std::uint64_t> hash) {
  constexpr std::size_t kBlock = 1024;
  const auto n_rows = static_cast<std::size_t>(rows.n_rows());
  const std::size_t width = rows.value.size() / std::max<std::size_t>(n_rows, 1);
  hash_blocks(n_rows, kBlock, width, n_threads, [&](std::size_t first, std::size_t n) {
    for (std::size_t i = first; i < first + n; ++i) {
      Hash row_hash(rounded);
      std::int64_t next_feature = 0;
      const auto end = static_cast<std::size_t>(rows.start[i + 1]);
      for (auto k = static_cast<std::size_t>(rows.start[i]); k < end; ++k) {
        row_hash.add_zeros(rows.feature[k] - next_feature);
        row_hash.add(static_cast<double>(rows.value[k]));
        next_feature = rows.feature[k] + 1;
      }
      row_hash.add_zeros(rows.width - next_feature);
      hash[i] = row_hash.end();
    }
  });
}

void hash_rows(std::span<const FeatureValues> columns, bool rounded, int n_threads,
               std::span<std::uint64_t> hash) {
  // Numbers in a block, so that it stays in the processor's cache, and rows in it.
  constexpr std::size_t kCached = std::size_t{1} << 13, kLeast = 16, kMost = 1024;
  const std::size_t width = columns.size();
  const bool has_long_runs = std::cmp_greater_equal(width, kLongRun);
  const std::size_t block_size = std::clamp(kCached / width, kLeast, kMost);
  hash_blocks(hash.size(), block_size, width, n_threads, [&](std::size_t first, std::size_t n) {
    const auto begin = static_cast<std::int64_t>(first);
    if (!has_long_runs) {
      std::uint64_t* const to = hash.data() + first;
      std::fill_n(to, n, start_of(rounded));
      for (const FeatureValues& column : columns)
        std::visit(
            [&](const auto& some) {
              add_column(some.data + begin * some.stride, some.stride, n, rounded, to);
            },
            column);
      return;
    }
    std::vector<Hash> rows(n, Hash(rounded));
    for (const FeatureValues& column : columns)
      std::visit(
          [&](const auto& some) {
            const auto* value = some.data + begin * some.stride;
            for (Hash& row : rows) {
              row.add(static_cast<double>(*value));
              value += some.stride;
            }
          },
          column);
    std::ranges::transform(rows, hash.begin() + begin, [](Hash& row) { return row.end(); });
  });
}

template void hash_rows(const SparseRows<float>&, bool, int, std::span<std::uint64_t>);
template void hash_rows(const SparseRows<double>&, bool, int, std::span<std::uint64_t>);

}  // namespace certree
