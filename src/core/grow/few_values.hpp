// Numeric features with few distinct values, such as flags, or counts that are mostly 0.
//
// For these features a node counts its rows by value, and needs no sorted list of them. For each
// row, only values that differ from the usual value of their feature are stored, so that columns
// whose values are mostly equal take little time and memory.
#pragma once

#include <array>

#include "parallel.hpp"

namespace certree {

inline constexpr std::size_t kFewValues = 16;

// The distinct values of a feature, and the number of rows with each; size is 0 if there are more
// than kFewValues, or a missing value.
struct DistinctValues {
  std::array<double, kFewValues> values;
  std::array<std::int64_t, kFewValues> n_rows;
  std::size_t size = 0;

  // Adds a value; returns false if there are now too many.
  bool add(double x) {
    for (std::size_t k = 0; k < size; ++k)
      if (values[k] == x) {
        ++n_rows[k];
        return true;
      }
    if (size == kFewValues || std::isnan(x)) {
      size = 0;
      return false;
    }
    values[size] = x;
    n_rows[size++] = 1;
    return true;
  }
};

// Returns the distinct values of each feature, (p,); none for categorical features.
template <class Real>
std::vector<DistinctValues> distinct_values(const Table<const Real>& X,
                                            std::span<const std::uint8_t> is_categorical,
                                            int n_threads) {
  constexpr std::int64_t kBlock = 64;
  std::vector<DistinctValues> found(static_cast<std::size_t>(X.width));
  parallel_for((X.width + kBlock - 1) / kBlock, n_threads, [&](std::int64_t block) {
    std::vector<std::size_t> open;  // features of the block with few values so far
    for (auto j = block * kBlock; j < std::min(X.width, (block + 1) * kBlock); ++j)
      if (is_categorical.empty() || !is_categorical[static_cast<std::size_t>(j)])
        open.push_back(static_cast<std::size_t>(j));
    for (const std::size_t i : indices(X.n_rows, kBlock)) {
      if (open.empty()) return;
      const Real* const x = X.row(i);
      std::erase_if(open, [&](std::size_t j) { return !found[j].add(static_cast<double>(x[j])); });
    }
  });
  return found;
}

// The features with few values, and the unusual values of each row. Every value of these features
// but the usual one has a number among those of all features, its slot.
class FewValues {
 public:
  struct Feature {
    std::int64_t j;
    std::vector<double> values;  // ascending
    std::size_t usual;           // index of the most frequent value
    std::size_t first_slot;      // slot of the first value; the others follow in order

    std::size_t n_slots() const { return values.size() - 1; }
  };

  FewValues() = default;

  // width: number of sums by value. Features whose sums would take more memory than a sorted list
  // of the rows are left out.
  template <class Real>
  FewValues(const Table<const Real>& X, std::span<const std::uint8_t> is_categorical,
            std::size_t width, int n_threads)
      : place_(static_cast<std::size_t>(X.width), -1) {
    const auto distinct = distinct_values(X, is_categorical, n_threads);
    std::int64_t n_entries = 0;
    for (std::size_t j = 0; j < distinct.size(); ++j)
      if (std::cmp_less_equal(distinct[j].size * width, X.n_rows / 2) && distinct[j].size > 0)
        n_entries += X.n_rows - add(static_cast<std::int64_t>(j), distinct[j]);
    if (features_.empty()) return;
    starts_ = make_buffer<std::int64_t>(X.n_rows + 1);
    slots_ = make_buffer<std::uint32_t>(n_entries);
    std::vector<double> usual;  // contiguous, as nearly all values are compared with them
    for (const Feature& feature : features_) usual.push_back(feature.values[feature.usual]);
    std::uint32_t* to = slots_.get();
    for (const std::size_t i : indices(X.n_rows, features_.size())) {
      starts_[i] = to - slots_.get();
      for (std::size_t f = 0; f < features_.size(); ++f) {
        const auto x = static_cast<double>(X.row(i)[features_[f].j]);
        if (x != usual[f]) *to++ = slot_of(features_[f], x);
      }
    }
    starts_[static_cast<std::size_t>(X.n_rows)] = to - slots_.get();
  }

  bool empty() const { return features_.empty(); }
  bool holds(std::int64_t j) const { return !empty() && place_[static_cast<std::size_t>(j)] >= 0; }
  const Feature& feature(std::int64_t j) const {
    return features_[static_cast<std::size_t>(place_[static_cast<std::size_t>(j)])];
  }
  std::size_t n_slots() const { return n_slots_; }
  // Returns the slots of the unusual values of a row.
  std::span<const std::uint32_t> of_row(std::uint32_t row) const {
    return {slots_.get() + starts_[row], slots_.get() + starts_[row + 1]};
  }

 private:
  // Adds a feature; returns how many rows have the usual value.
  std::int64_t add(std::int64_t j, const DistinctValues& distinct) {
    const auto most =
        std::max_element(distinct.n_rows.begin(),
                         distinct.n_rows.begin() + static_cast<std::ptrdiff_t>(distinct.size));
    const double usual = distinct.values[static_cast<std::size_t>(most - distinct.n_rows.begin())];
    Feature feature{j,
                    {distinct.values.begin(),
                     distinct.values.begin() + static_cast<std::ptrdiff_t>(distinct.size)},
                    0,
                    n_slots_};
    std::ranges::sort(feature.values);
    while (feature.values[feature.usual] != usual) ++feature.usual;
    n_slots_ += feature.n_slots();
    place_[static_cast<std::size_t>(j)] = static_cast<std::int64_t>(features_.size());
    features_.push_back(std::move(feature));
    return *most;
  }

  static std::uint32_t slot_of(const Feature& feature, double x) {
    std::size_t v = 0;
    while (feature.values[v] != x) ++v;
    return static_cast<std::uint32_t>(feature.first_slot + v - (v > feature.usual));
  }

  std::vector<Feature> features_;
  std::vector<std::int64_t> place_;  // (p,) index in features_, or -1
  std::size_t n_slots_ = 0;
  Buffer<std::int64_t> starts_;  // (n + 1,) where the slots of each row begin
  Buffer<std::uint32_t> slots_;
};

}  // namespace certree
