// What is drawn for a tree: its rows, its features, and the features of each node.
//
// Belongs to what grows trees on drawn rows and features.
#pragma once

#include "grow/binned_growth.hpp"
#include "grow/random.hpp"

namespace certree {
namespace {

// Keys of what is drawn for a tree descend from the tree's.
enum class Draw : std::uint64_t { rows, features, nodes };

inline std::uint64_t key_of_tree(std::uint64_t seed, std::int64_t tree, Draw draw) {
  return key_of(key_of(seed, static_cast<std::uint64_t>(tree)), static_cast<std::uint64_t>(draw));
}

inline void draw_some(Random& random, std::int64_t n_draws, std::span<std::int32_t> count) {
  std::int64_t n = std::ssize(count), wanted = n_draws;
  for (const auto part : chunks(count))
    for (std::int32_t& one : part) {
      one = random.below(n--) < wanted ? 1 : 0;
      wanted -= one;
    }
}

inline void draw_repeatedly(Random& random, std::int64_t n_draws, std::span<std::int32_t> count) {
  fill(count, 0);
  const std::int64_t n = std::ssize(count);
  for (std::int64_t left = n_draws; left > 0; left -= kStepsAtOnce) {
    const std::int64_t now = std::min(left, kStepsAtOnce);
    count_steps(now);
    for (std::int64_t i = 0; i < now; ++i) ++count[static_cast<std::size_t>(random.below(n))];
  }
}

// Features one by one, in random order or as they are given.
class FeatureDraws {
 public:
  FeatureDraws(std::vector<std::int32_t> features, bool in_order)
      : features_(std::move(features)), in_order_(in_order) {}

  // Puts all features back.
  void restart(std::uint64_t key) {
    for (; !swapped_.empty(); swapped_.pop_back())
      std::swap(features_[swapped_.back()], features_[features_.size() - swapped_.size()]);
    n_drawn_ = 0;
    random_ = Random(key);
  }
  // Those that come first, in their own order, from now on: of the larger values.
  void reorder(const std::vector<double>& value) {
    std::ranges::stable_sort(features_, std::greater<>(),
                             [&](std::int32_t j) { return value[static_cast<std::size_t>(j)]; });
  }
  std::size_t n_left() const { return features_.size() - n_drawn_; }
  std::int32_t next() {
    if (in_order_) return features_[n_drawn_++];
    const std::size_t n = n_left();
    const auto i = static_cast<std::size_t>(random_.below(static_cast<std::int64_t>(n)));
    std::swap(features_[i], features_[n - 1]);
    swapped_.push_back(i);
    ++n_drawn_;
    return features_[n - 1];
  }

 private:
  std::vector<std::int32_t> features_;
  bool in_order_;
  std::size_t n_drawn_ = 0;
  std::vector<std::size_t> swapped_;  // with the last of those that were left then
  Random random_{0};
};

// In the order in which they are compared.
inline std::vector<std::int32_t> features_of_tree(const FeatureOrder& order, std::int64_t most,
                                                  std::uint64_t key) {
  if (most >= std::ssize(order.features)) return order.features;
  FeatureDraws draws(order.features, false);
  draws.restart(key);
  std::vector<std::int32_t> drawn(static_cast<std::size_t>(most));
  for (std::int32_t& one : drawn) one = draws.next();
  std::ranges::sort(drawn, [&](auto a, auto b) { return order.is_before(a, b); });
  return drawn;
}

}  // namespace
}  // namespace certree
