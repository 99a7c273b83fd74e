// Sums over the rows of a cell by feature and bin, and the memory they lie in.
#pragma once

#include "grow/bins.hpp"

namespace certree {

// What rows of cells sum up to, cell after cell: numbers in lanes, which ascend in a cell.
class CellSums {
 public:
  struct One {
    std::span<const std::int32_t> lane;
    std::span<const std::int64_t> sum;
  };

  // To the cell that comes next.
  void add(std::int32_t lane, std::int64_t sum) {
    lane_.push_back(lane);
    sum_.push_back(sum);
  }
  void end_cell() { begin_.push_back(sum_.size()); }
  // The two parts of a cell, of which the sums of one are given; zeros may be left out.
  void add_parts(std::integral auto cell, std::span<const std::int64_t> part, bool without_zeros) {
    const std::size_t begin = begin_[static_cast<std::size_t>(cell)];
    const std::size_t n = begin_[static_cast<std::size_t>(cell) + 1] - begin;
    std::size_t end = sum_.size();
    lane_.resize(end + 2 * n);
    sum_.resize(end + 2 * n);
    for (const bool rest : {false, true}) {
      for (std::size_t i = 0; i < n; ++i) {
        lane_[end] = lane_[begin + i];
        sum_[end] = rest ? sum_[begin + i] - part[i] : part[i];
        end += sum_[end] != 0 || !without_zeros;
      }
      begin_.push_back(end);
    }
    lane_.resize(end);
    sum_.resize(end);
  }
  std::size_t size() const { return begin_.size() - 1; }
  // Until the next is added.
  One of(std::integral auto cell) const {
    const auto v = static_cast<std::size_t>(cell);
    const std::size_t begin = begin_[v], n = begin_[v + 1] - begin;
    return {std::span(lane_).subspan(begin, n), std::span(sum_).subspan(begin, n)};
  }

 private:
  std::vector<std::size_t> begin_{0};
  std::vector<std::int32_t> lane_;
  std::vector<std::int64_t> sum_;
};

// Where the sums of each of some features lie. A feature has so many lanes, one after the other,
// each with an entry for each bin and one for missing values behind them.
class SumsLayout {
 public:
  SumsLayout(std::span<const std::int32_t> features, std::span<const std::int32_t> n_bins,
             std::size_t n_lanes)
      : n_bins_(n_bins), n_lanes_(n_lanes), start_(n_bins.size()) {
    for (const std::int32_t j : features) {
      start_[static_cast<std::size_t>(j)] = size_;
      size_ += checked_size(n_lanes, width(j));
    }
  }
  std::size_t size() const { return size_; }
  std::size_t n_bins(std::int32_t j) const {
    return static_cast<std::size_t>(n_bins_[static_cast<std::size_t>(j)]);
  }
  std::size_t width(std::int32_t j) const { return n_bins(j) + 1; }
  std::size_t start(std::int32_t j) const { return start_[static_cast<std::size_t>(j)]; }
  std::size_t length(std::int32_t j) const { return n_lanes_ * width(j); }

 private:
  std::span<const std::int32_t> n_bins_;
  std::size_t n_lanes_;
  std::vector<std::size_t> start_;
  std::size_t size_ = 0;
};

// The sums of cells that wait. Memory stays for the next tree: its first touch takes longer than
// what is done with it.
class SumsPool {
 public:
  using Place = std::int32_t;
  static constexpr Place kNone = -1;

  // Forgets all sums; size: int64 of a cell.
  void restart(std::size_t size) {
    if (size > size_) {
      places_.clear();
      size_ = size;
    }
    free_.resize(places_.size());
    std::iota(free_.rbegin(), free_.rend(), Place{0});
  }
  Place take() {
    if (free_.empty()) {
      places_.push_back(make_buffer<std::int64_t>(size_));
      free_.reserve(places_.size());
      return static_cast<Place>(places_.size() - 1);
    }
    const Place place = free_.back();
    free_.pop_back();
    return place;
  }
  void give_back(Place place) {
    if (place != kNone) free_.push_back(place);
  }
  std::int64_t* at(Place place) const { return places_[static_cast<std::size_t>(place)].get(); }
  // Whether so many bytes are taken that no cell should keep its sums.
  bool is_full() const { return (places_.size() - free_.size()) * size_ * 8 > kMostBytes; }
  // Memory beyond what many trees will want goes back.
  void end() {
    if (places_.size() * size_ * 8 > kMostBytes / 4) {
      places_.clear();
      free_.clear();
      size_ = 0;
    }
  }

 private:
  static constexpr std::size_t kMostBytes = std::size_t{1} << 28;

  std::size_t size_ = 0;
  std::vector<Buffer<std::int64_t>> places_;
  std::vector<Place> free_;
};

}  // namespace certree
