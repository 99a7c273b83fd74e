#include "rows/hashes.hpp"

#include <bit>

#include "numbers.hpp"
#include "parallel.hpp"

namespace certree {
namespace {

constexpr std::uint64_t kStep = 0x9E3779B97F4A7C15;

class Hash {
 public:
  explicit Hash(bool rounded) : rounded_(rounded), mixed_(rounded ? kStep : 0) {}

  CERTREE_INLINE void add(double value) {
    if (rounded_) value = static_cast<double>(static_cast<float>(value));
    if (value == 0.0) return add_zeros(1);
    end_run();
    mix(std::bit_cast<std::uint64_t>(std::isnan(value) ? std::numeric_limits<double>::quiet_NaN()
                                                       : value));
  }
  void add_zeros(std::int64_t n) { n_zeros_ += n; }
  std::uint64_t end() {
    end_run();
    return mixed_;
  }

 private:
  CERTREE_INLINE void mix(std::uint64_t word) {
    mixed_ = (mixed_ ^ word) + kStep;
    mixed_ = (mixed_ ^ mixed_ >> 30) * 0xBF58476D1CE4E5B9;
    mixed_ = (mixed_ ^ mixed_ >> 27) * 0x94D049BB133111EB;
    mixed_ ^= mixed_ >> 31;
  }
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

// Calls hash_of(row) for each row, in blocks that are large enough for a thread.
template <class HashOf>
void hash_blocks(std::int64_t n_rows, std::int64_t steps, int n_threads,
                 std::span<std::uint64_t> hash, const HashOf& hash_of) {
  constexpr std::int64_t kBlock = 1024;
  parallel_for((n_rows + kBlock - 1) / kBlock, n_threads, [&](std::int64_t block) {
    const std::int64_t begin = block * kBlock, end = std::min(n_rows, begin + kBlock);
    for (const std::size_t i : indices(end - begin, steps)) {
      const std::size_t row = static_cast<std::size_t>(begin) + i;
      hash[row] = hash_of(row);
    }
  });
}

}  // namespace

template <class Real>
void hash_rows(const SparseRows<Real>& rows, bool rounded, int n_threads,
               std::span<std::uint64_t> hash) {
  const std::int64_t n = rows.n_rows();
  const std::int64_t steps = std::ssize(rows.value) / std::max<std::int64_t>(n, 1) + 1;
  hash_blocks(n, steps, n_threads, hash, [&](std::size_t i) {
    Hash row_hash(rounded);
    std::int64_t next_feature = 0;
    const auto end = static_cast<std::size_t>(rows.start[i + 1]);
    for (auto k = static_cast<std::size_t>(rows.start[i]); k < end; ++k) {
      row_hash.add_zeros(rows.feature[k] - next_feature);
      row_hash.add(static_cast<double>(rows.value[k]));
      next_feature = rows.feature[k] + 1;
    }
    row_hash.add_zeros(rows.width - next_feature);
    return row_hash.end();
  });
}

template <class Real>
void hash_rows(Table<const Real> rows, bool rounded, int n_threads, std::span<std::uint64_t> hash) {
  hash_blocks(rows.n_rows, rows.width + 1, n_threads, hash, [&](std::size_t i) {
    Hash row_hash(rounded);
    const Real* const x = rows.row(i);
    for (std::int64_t j = 0; j < rows.width; ++j) row_hash.add(static_cast<double>(x[j]));
    return row_hash.end();
  });
}

template void hash_rows(const SparseRows<float>&, bool, int, std::span<std::uint64_t>);
template void hash_rows(const SparseRows<double>&, bool, int, std::span<std::uint64_t>);
template void hash_rows(Table<const double>, bool, int, std::span<std::uint64_t>);

}  // namespace certree
