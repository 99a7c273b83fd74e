// The best split of a node as words that rank 0 shares with the others.
#pragma once

#include <stdexcept>

#include "grow/split_search.hpp"
#include "ranks.hpp"

namespace certree {
namespace {

// Words of a split: gain, feature, flags, last bin on the left, first bin on the right, sums of
// the left child, the child of each bin if a feature is categorical, and which features vary.
template <class Target>
class SplitWords {
 public:
  // features: those of the search, ascending.
  SplitWords(std::span<const std::int32_t> features, bool has_categories)
      : features_(features), n_child_(has_categories ? kChildWords : 0) {}

  std::size_t size() const { return kHead + Target::kLanes + n_child_ + n_varying(); }

  // words: (size,) zeros.
  void write(const SplitInfo& split, std::span<std::int64_t> words) const {
    words[0] = std::bit_cast<std::int64_t>(split.gain);
    words[1] = split.feature;
    words[2] = (split.has_missing ? kHasMissing : 0) | (split.missing_left ? kMissingLeft : 0) |
               (split.child_of_bin.empty() ? 0 : kHasSet);
    words[3] = static_cast<std::int64_t>(split.threshold.bin);
    words[4] = static_cast<std::int64_t>(split.next);
    if (split.is_made()) std::ranges::copy(split.sums, words.begin() + kHead);
    const auto child = words.subspan(kHead + Target::kLanes, n_child_);
    if (split.is_made() && !split.child_of_bin.empty())
      std::memcpy(child.data(), split.child_of_bin.data(), child.size_bytes());
    const auto varying = words.last(n_varying());
    auto next = features_.begin();
    for (const std::int32_t j : split.varying) {
      next = std::find(next, features_.end(), j);
      const auto i = static_cast<std::size_t>(next - features_.begin());
      varying[i / 64] |= static_cast<std::int64_t>(std::uint64_t{1} << i % 64);
    }
  }

  // The place of the sums of `split` stays as it is.
  void read(std::span<const std::int64_t> words, SplitInfo& split) const {
    const auto is_bin = [](std::int64_t bin) { return bin >= 0 && bin < kMostBins; };
    split.gain = std::bit_cast<double>(words[0]);
    split.feature = static_cast<std::int32_t>(words[1]);
    const bool is_known = !split.is_made() || std::ranges::binary_search(features_, split.feature);
    if (!is_known || !is_bin(words[3]) || !is_bin(words[4]))
      throw std::invalid_argument("rank 0 has shared something else than a split");
    split.has_missing = (words[2] & kHasMissing) != 0;
    split.missing_left = (words[2] & kMissingLeft) != 0;
    split.threshold.bin = static_cast<std::size_t>(words[3]);
    split.next = static_cast<std::size_t>(words[4]);
    const auto sums = words.subspan(kHead, Target::kLanes);
    split.sums.assign(sums.begin(), sums.end());
    split.child_of_bin.clear();
    if (n_child_ > 0 && (words[2] & kHasSet) != 0) {
      split.child_of_bin.resize(256);
      std::memcpy(split.child_of_bin.data(), &words[kHead + Target::kLanes], 256);
    }
    split.varying.clear();
    const auto varying = words.last(n_varying());
    for (std::size_t i = 0; i < features_.size(); ++i)
      if (static_cast<std::uint64_t>(varying[i / 64]) >> i % 64 & 1)
        split.varying.push_back(features_[i]);
  }

 private:
  static constexpr std::size_t kHead = 5, kChildWords = 256 / sizeof(std::int64_t);
  static constexpr std::int64_t kHasMissing = 1, kMissingLeft = 2, kHasSet = 4;

  std::size_t n_varying() const { return (features_.size() + 63) / 64; }

  std::span<const std::int32_t> features_;
  std::size_t n_child_;
};

}  // namespace
}  // namespace certree
