// How the bins of the in-bag rows of a node are found: in a dense table, or in a sparse one.
//
// Included by drawn_histograms.hpp.
#pragma once

#include "grow/histograms.hpp"

namespace certree {
namespace {

// The bins of nodes in a dense table, stored by row. When a node has at most an eighth of the rows
// of the current copy of the table, the bins of its rows are copied to adjacent memory.
template <class Target>
class DenseNodeBins {
 public:
  using Item = typename Target::Item;
  using NodeEvaluator = typename Target::NodeEvaluator;

  explicit DenseNodeBins(const DrawnRows& rows) {
    copies_.push_back({rows.codes, rows.codes.n_rows, {}});
  }

  CodesByRow codes(const BinnedNode& node, std::int32_t feature) const {
    const Table<const std::uint8_t>& codes = copies_[node.copy].codes;
    return {codes.data + feature, codes.width};
  }

  // Starts a node. Copies are made only in depth-first growth, where one for each size is enough.
  void open(BinnedNode& node, std::span<Item> items, const NodeEvaluator&, bool depth_first) {
    if (depth_first) shrink(node, items);
  }
  static bool may_vary(std::int32_t) { return true; }
  void compute_histogram(const BinnedNode& node, std::span<const Item> items,
                         const NodeEvaluator& of, std::span<const std::int32_t> features,
                         FewHistograms<Target>& few) const {
    few.compute_histogram(
        of, {items, nullptr}, [&](std::int32_t j) { return codes(node, j); }, features);
  }

 private:
  struct Copy {
    Table<const std::uint8_t> codes;
    std::int64_t most_rows;
    Buffer<std::uint8_t> memory;
  };
  // A copy pays if the table is larger than the nearest cache, and shrinks to an eighth.
  static constexpr std::int64_t kShrinks = 8, kNear = 1 << 14;

  void shrink(BinnedNode& node, std::span<Item> items) {
    const Table<const std::uint8_t> from = copies_[node.copy].codes;
    const std::int64_t n = node.size();
    if (n * kShrinks > from.n_rows || from.n_rows * from.width <= kNear) return;
    if (++node.copy == copies_.size()) {
      const std::int64_t most = copies_.back().most_rows / kShrinks;
      copies_.push_back({{}, most, make_buffer<std::uint8_t>(most, from.width)});
    }
    Copy& copy = copies_[node.copy];
    copy.codes = {copy.memory.get(), n, from.width};
    std::uint8_t* to = copy.memory.get();
    std::uint32_t row = 0;
    for (const auto part : chunks(items))
      for (Item& item : part) {
        count_steps(from.width / 16);
        to = std::copy_n(from.row(item.row), from.width, to);
        item.row = row++;
      }
  }

  std::vector<Copy> copies_;
};

// The bins of a feature by row, found by binary search among the stored values of the row.
struct StoredCodesOfFeature {
  const StoredByRow& stored;
  std::int32_t feature;

  std::size_t operator[](std::size_t row) const {
    const auto begin = static_cast<std::size_t>(stored.start[row]);
    const auto end = static_cast<std::size_t>(stored.start[row + 1]);
    const std::span<const std::int32_t> of_row = stored.feature.subspan(begin, end - begin);
    const auto at = std::ranges::lower_bound(of_row, feature);
    if (at == of_row.end() || *at != feature) return stored.zero[static_cast<std::size_t>(feature)];
    return stored.code[begin + static_cast<std::size_t>(at - of_row.begin())];
  }
};

// The bins of nodes in a sparse table. The stored values of the rows of a node are sorted by
// feature before features are drawn: a feature without stored values is constant.
template <class Target>
class SparseNodeBins {
 public:
  using Item = typename Target::Item;
  using Sum = typename Target::Sum;
  using NodeEvaluator = typename Target::NodeEvaluator;

  explicit SparseNodeBins(const DrawnRows& rows)
      : stored_(rows.stored), begin_(rows.stored.zero.size()), n_(begin_.size()) {}

  StoredCodesOfFeature codes(const BinnedNode&, std::int32_t feature) const {
    return {stored_, feature};
  }

  void open(BinnedNode&, std::span<Item> items, const NodeEvaluator& of, bool) {
    for (const std::int32_t j : touched_) n_[static_cast<std::size_t>(j)] = 0;
    touched_.clear();
    for_stored(items, [&](std::uint32_t, std::size_t j, std::uint8_t) {
      if (n_[j]++ == 0) touched_.push_back(static_cast<std::int32_t>(j));
    });
    std::size_t begin = 0;
    for (const std::int32_t feature : touched_) {
      const auto j = static_cast<std::size_t>(feature);
      begin_[j] = begin;
      begin += std::exchange(n_[j], 0);
    }
    if (dealt_.size() < begin) dealt_.resize(begin);
    for_stored(items, [&](std::uint32_t i, std::size_t j, std::uint8_t code) {
      dealt_[begin_[j] + n_[j]++] = {i, code};
    });
    all_.assign(of.n_sums(), Sum{});
    for (const auto part : chunks(items))
      for (const Item& item : part) of.add(item, all_.data());
  }
  bool may_vary(std::int32_t feature) const { return n_[static_cast<std::size_t>(feature)] > 0; }
  void compute_histogram(const BinnedNode&, std::span<const Item> items, const NodeEvaluator& of,
                         std::span<const std::int32_t> features, FewHistograms<Target>& few) const {
    few.restart(features.size());
    for (std::size_t f = 0; f < features.size(); ++f) {
      const auto j = static_cast<std::size_t>(features[f]);
      const std::span stored(dealt_.data() + begin_[j], n_[j]);
      few.add_stored(of, items, all_.data(), stored, stored_.zero[j], f);
    }
  }

 private:
  template <class Take>
  void for_stored(std::span<const Item> items, const Take& take) const {
    StepCounter counter;
    for (std::uint32_t i = 0; i < items.size(); ++i) {
      const auto row = static_cast<std::size_t>(items[i].row);
      const auto end = static_cast<std::size_t>(stored_.start[row + 1]);
      for (auto k = static_cast<std::size_t>(stored_.start[row]); k < end; ++k)
        take(i, static_cast<std::size_t>(stored_.feature[k]), stored_.code[k]);
      counter.add(stored_.start[row + 1] - stored_.start[row] + 1);
    }
    counter.flush();
  }

  const StoredByRow& stored_;
  std::vector<std::size_t> begin_;     // (p,) where the values of a feature begin in dealt_
  std::vector<std::uint32_t> n_;       // (p,) how many values it has
  std::vector<std::int32_t> touched_;  // features with stored values in the node
  std::vector<StoredCode> dealt_;
  std::vector<Sum> all_;  // of all rows of the node
};

}  // namespace
}  // namespace certree
