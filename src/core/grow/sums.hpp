// Sums over the rows of a cell by feature and bin, and the memory they lie in.
#pragma once

#include "grow/bins.hpp"

namespace certree {

// Where the sums of each feature lie. A feature has so many lanes, one after the other, each with
// an entry for each bin and one for missing values behind them.
class SumsLayout {
 public:
  SumsLayout(std::span<const std::int32_t> features, std::span<const std::int32_t> n_bins,
             std::size_t n_lanes)
      : n_lanes_(n_lanes) {
    for (const std::int32_t j : features) {
      n_bins_.push_back(static_cast<std::size_t>(n_bins[static_cast<std::size_t>(j)]));
      start_.push_back(size_);
      size_ += checked_size(n_lanes, width(n_bins_.size() - 1));
    }
  }
  std::size_t size() const { return size_; }
  std::size_t n_features() const { return n_bins_.size(); }
  std::size_t n_lanes() const { return n_lanes_; }
  std::size_t n_bins(std::size_t f) const { return n_bins_[f]; }
  std::size_t width(std::size_t f) const { return n_bins_[f] + 1; }
  std::size_t start(std::size_t f) const { return start_[f]; }
  std::size_t length(std::size_t f) const { return n_lanes_ * width(f); }

 private:
  std::size_t n_lanes_;
  std::vector<std::size_t> n_bins_, start_;
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
