// Sums of nodes, and the memory of their histograms: sums by feature and bin.
#pragma once

#include "grow/bins.hpp"

namespace certree {

// Sums over the rows of nodes, in the order of the nodes. A sum belongs to a lane, such as a class
// or the gradients; lanes ascend within a node, and those of sum 0 may be left out.
class NodeTotals {
 public:
  struct One {
    std::span<const std::int32_t> lane;
    std::span<const std::int64_t> sum;
  };

  // Adds a sum to the node that is being written; end_node() ends it.
  void add(std::int32_t lane, std::int64_t sum) {
    lane_.push_back(lane);
    sum_.push_back(sum);
  }
  void end_node() { begin_.push_back(sum_.size()); }
  // Appends the two children of a node, given the sums of the left one, `part`, for each lane of
  // the node. without_zeros: leave out lanes of sum 0.
  void add_parts(std::integral auto node, std::span<const std::int64_t> part, bool without_zeros) {
    const std::size_t begin = begin_[static_cast<std::size_t>(node)];
    const std::size_t n = begin_[static_cast<std::size_t>(node) + 1] - begin;
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
  // Returns the sums of a node; valid until the next sum is added.
  One of(std::integral auto node) const {
    const auto v = static_cast<std::size_t>(node);
    const std::size_t begin = begin_[v], n = begin_[v + 1] - begin;
    return {std::span(lane_).subspan(begin, n), std::span(sum_).subspan(begin, n)};
  }

 private:
  std::vector<std::size_t> begin_{0};
  std::vector<std::int32_t> lane_;
  std::vector<std::int64_t> sum_;
};

// Layout of a histogram: where the sums of each feature begin. A feature has n_lanes lanes, one
// after the other, each with an entry for each bin and a last one for missing values.
class HistogramLayout {
 public:
  HistogramLayout(std::span<const std::int32_t> features, std::span<const std::int32_t> n_bins,
                  std::size_t n_lanes)
      : n_bins_(n_bins), n_lanes_(n_lanes), start_(n_bins.size()) {
    for (const std::int32_t j : features) {
      start_[static_cast<std::size_t>(j)] = size_;
      size_ += checked_size(n_lanes, width(j));
    }
  }
  // Number of entries of the histogram.
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

// Memory for the histograms of nodes in the queue. It is kept for the next tree, as the first
// access to new memory takes longer than the work on a histogram.
class HistogramPool {
 public:
  using Place = std::int32_t;
  static constexpr Place kNone = -1;

  // Frees all places; size: number of entries of one histogram.
  void restart(std::size_t size) {
    if (size > size_) {
      places_.clear();
      size_ = size;
    }
    free_.resize(places_.size());
    std::iota(free_.rbegin(), free_.rend(), Place{0});
  }
  // Returns a free place, allocating one if needed.
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
  // Whether the places in use exceed the memory limit, so that nodes should not keep histograms.
  bool is_full() const { return (places_.size() - free_.size()) * size_ * 8 > kMostBytes; }
  // Ends a tree: frees the memory if it is more than most trees need.
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
