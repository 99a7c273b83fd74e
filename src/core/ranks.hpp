// Ranks: processes that boost together, each with some of the rows.
//
// They add up integers, so that a model does not depend on how rows are divided. Rank 0 makes all
// decisions and shares them, as machines of other ranks may round numbers in another way. All ranks
// make the same calls in the same order: whatever decides a branch is the same in all of them.
#pragma once

#include <bit>
#include <cstring>
#include <vector>

#include "arrays.hpp"

namespace certree {

// The links of this process to the other ranks. A null pointer stands for a single process.
class Ranks {
 public:
  virtual ~Ranks() = default;

  // Whether this is rank 0.
  virtual bool is_rank_0() const = 0;
  // Replaces the words of rank 0: the first n_sums become their sums over all ranks, the others the
  // largest of all ranks. Words of other ranks are undefined afterwards.
  virtual void reduce(std::span<std::int64_t> words, std::size_t n_sums) = 0;
  // Replaces the words of all other ranks by those of rank 0.
  virtual void share(std::span<std::int64_t> words) = 0;
};

// Replaces integers by their sums over all ranks, on all ranks.
inline void sum_over(Ranks* ranks, std::span<std::int64_t> sums) {
  if (!ranks) return;
  ranks->reduce(sums, sums.size());
  ranks->share(sums);
}

// Replaces integers by their sums, and numbers >= 0 by the largest, over all ranks, on all ranks.
inline void reduce_over(Ranks* ranks, std::span<std::int64_t> sums, std::span<double> largest) {
  if (!ranks) return;
  // The bits of numbers >= 0 have the order of the numbers.
  std::vector<std::int64_t> words(sums.begin(), sums.end());
  for (const double one : largest) words.push_back(std::bit_cast<std::int64_t>(one));
  ranks->reduce(words, sums.size());
  ranks->share(words);
  const auto middle = words.begin() + std::ssize(sums);
  std::copy(words.begin(), middle, sums.begin());
  std::transform(middle, words.end(), largest.begin(),
                 [](std::int64_t word) { return std::bit_cast<double>(word); });
}

// Replaces a key by the least of all ranks, on all ranks.
inline void least_over(Ranks* ranks, std::uint64_t& key) {
  if (!ranks) return;
  constexpr std::uint64_t kSign = std::uint64_t{1} << 63;
  auto word = static_cast<std::int64_t>(~key ^ kSign);  // in the opposite order of the keys
  ranks->reduce({&word, 1}, 0);
  ranks->share({&word, 1});
  key = ~(static_cast<std::uint64_t>(word) ^ kSign);
}

// Replaces numbers by those of rank 0.
inline void share_over(Ranks* ranks, std::span<double> numbers) {
  if (!ranks) return;
  std::vector<std::int64_t> words(numbers.size());
  std::memcpy(words.data(), numbers.data(), numbers.size_bytes());
  ranks->share(words);
  std::memcpy(numbers.data(), words.data(), numbers.size_bytes());
}

}  // namespace certree
