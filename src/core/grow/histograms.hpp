// Histograms: sums over rows by feature and bin.
//
// The sums are integers, so histograms of blocks of rows add up exactly to that of all rows.
#pragma once

#include <cstring>

#include "grow/send.hpp"
#include "grow/split_search.hpp"
#include "numbers.hpp"

namespace certree {
namespace {

// A range of rows with their items, which may be the rows themselves.
template <class Target>
struct Part {
  using Row = typename Target::Row;
  using Item = typename Target::Item;

  std::span<const Row> rows;
  const Item* items;  // of these rows, in the same order

  const Item& item(std::size_t i) const {
    if constexpr (std::is_same_v<Row, Item>)
      return rows[i];
    else
      return items[i];
  }
  Part block(std::size_t first, std::size_t most) const {
    return {rows.subspan(first, std::min(most, rows.size() - first)), items + first};
  }
};

// -- histograms with all bins of each feature

// Returns the row to prefetch while the i-th is used.
inline std::int32_t row_ahead(std::span<const std::int32_t> rows, std::size_t i) {
  constexpr std::size_t kAhead = 16;
  return rows[std::min(i + kAhead, rows.size() - 1)];
}

// A copy of the bins of a block of rows for kWidth adjacent features. If the rows are far apart,
// this needs one memory access for each row, instead of one for each row and feature.
template <std::size_t kRows>
class Strip {
 public:
  static constexpr std::size_t kWidth = 32;

  // Returns whether rows are so far apart, and features so many, that copying bins pays.
  static bool is_worth_it(const CodesBothWays& codes, std::span<const std::int32_t> rows,
                          std::size_t n_features) {
    return codes.of_rows.n_rows > 0 && n_features >= kFewest &&
           rows.back() - rows.front() >= kFar * std::ssize(rows);
  }

  void copy(Table<const std::uint8_t> of_rows, std::span<const std::int32_t> rows,
            std::int64_t first) {
    first_ = first;
    const std::int64_t end = of_rows.n_rows * of_rows.width;
    std::uint8_t* to = codes_.data();
    for (const std::int32_t row : rows) {
      const std::int64_t from = row * of_rows.width + first;
      if (end - from >= std::int64_t{kWidth})
        std::memcpy(to, of_rows.data + from, kWidth);
      else
        std::copy(of_rows.data + from, of_rows.data + end, to);
      to += kWidth;
    }
  }
  bool holds(std::int64_t first, std::int64_t last) const {
    return first >= first_ && last < first_ + std::int64_t{kWidth};
  }
  const std::uint8_t* code(std::int64_t feature) const { return codes_.data() + feature - first_; }

 private:
  static constexpr std::int64_t kFar = 6;
  static constexpr std::size_t kFewest = 8;

  std::array<std::uint8_t, kRows * kWidth> codes_;
  std::int64_t first_ = 0;
};

// Places of the bins of rows in a strip.
struct InStrip {
  std::size_t operator[](std::size_t i) const { return i * Strip<1>::kWidth; }
};

// Copies the items of rows to adjacent memory, as each is read once for every feature.
template <class Item>
void gather(std::span<const std::int32_t> rows, const Item* items, Item* to) {
  for (std::size_t i = 0; i < rows.size(); ++i) {
    prefetch(items + row_ahead(rows, i), 1);
    to[i] = items[rows[i]];
  }
}

// Computes the histogram of rows. Rows are added up block by block, so that the items of a block
// are in the cache for all features but the first. items: by number of row; sums: result,
// overwritten.
template <class Target>
void compute_histogram(std::span<const std::int32_t> rows, const typename Target::Item* items,
                       const CodesBothWays& codes, std::span<const std::int32_t> features,
                       const HistogramLayout& layout, std::int64_t* sums) {
  constexpr std::size_t kTogether = Target::kTogether;
  thread_local Strip<Target::kBlock> strip;
  thread_local std::array<typename Target::Item, Target::kBlock> gathered;
  const std::size_t n_groups = (features.size() + kTogether - 1) / kTogether;
  std::array<const std::uint8_t*, kTogether> code{};
  std::array<std::size_t, kTogether> n_bins{};
  std::array<std::int64_t*, kTogether> lanes{};
  if (rows.empty())  // one of several ranks has none
    for (const std::int32_t j : features)
      std::fill_n(sums + layout.start(j), layout.length(j), std::int64_t{0});
  for (std::size_t first = 0; first < rows.size(); first += Target::kBlock) {
    const auto block = rows.subspan(first, std::min(Target::kBlock, rows.size() - first));
    gather(block, items, gathered.data());
    count_steps(block.size() * features.size());
    const bool by_strips = strip.is_worth_it(codes, block, features.size());
    bool is_copied = false;
    for (std::size_t i = 0; i < n_groups; ++i) {
      const std::size_t begin = features.size() * i / n_groups;
      const auto some = features.subspan(begin, features.size() * (i + 1) / n_groups - begin);
      const bool in_strip = by_strips && some.back() - some.front() < std::int32_t{strip.kWidth};
      if (in_strip && !(is_copied && strip.holds(some.front(), some.back()))) {
        strip.copy(codes.of_rows, block, some.front());
        is_copied = true;
      }
      for (std::size_t f = 0; f < some.size(); ++f) {
        code[f] = in_strip ? strip.code(some[f]) : codes.of_features.row(some[f]);
        n_bins[f] = layout.n_bins(some[f]);
        lanes[f] = sums + layout.start(some[f]);
      }
      const auto tally = [&](const auto& places) {
        Target::tally(std::span(code).first(some.size()), places, gathered.data(), block.size(),
                      n_bins.data(), first == 0, lanes.data());
      };
      if (in_strip)
        tally(InStrip{});
      else
        tally(block);
    }
  }
}

// Subtracts the histogram of some rows, `part`, from that of all, for some features.
inline void take_away(const std::int64_t* part, std::span<const std::int32_t> features,
                      const HistogramLayout& layout, std::int64_t* all) {
  for (const std::int32_t j : features) {
    const std::int64_t* const less = part + layout.start(j);
    std::int64_t* const sums = all + layout.start(j);
    const std::size_t length = layout.length(j);
    for (std::size_t i = 0; i < length; ++i) sums[i] -= less[i];
  }
}

// The same for one feature. all: its lanes, with all bins.
template <class Target>
void take_away(const FewBins<Target>& part, std::size_t n_bins, std::int64_t* all) {
  for (std::size_t i = 0; i < part.n_bins + part.has_missing; ++i)
    Target::NodeEvaluator::take_away(*part.at(i), all + (i < part.n_bins ? part.bin(i) : n_bins),
                                     n_bins + 1);
}

// -- histograms with only those bins that have rows

// A stored bin of a sparse feature.
struct StoredCode {
  std::uint32_t item;
  std::uint8_t code;
};

// Computes the histograms of a few features at a time. Between uses all sums are 0, so that small
// nodes clear only the bins that they filled.
template <class Target>
class FewHistograms {
  // Whether the target adds up, and moves, the bins of a block together.
  static constexpr bool kByBlocks =
      requires(const typename Target::NodeEvaluator& of, const std::uint8_t* bin,
               Target::Sum* sums) { of.move(bin, 0, sums, sums); };

 public:
  using Sum = typename Target::Sum;
  using NodeEvaluator = typename Target::NodeEvaluator;

  explicit FewHistograms(const Target& target)
      : sums_(std::max(kCache, 256 * target.most_sums())),
        rows_(target.counts_rows() ? kMostTogether * 256 : 0),
        taken_(257 * target.most_sums()) {}

  // Returns the number of features whose histograms fit into the cache.
  static std::size_t together(const NodeEvaluator& of) {
    return std::clamp<std::size_t>(kCache / (256 * of.n_sums()), 1, kMostTogether);
  }

  // Adds up rows for at most together() features. codes(j): the bins of feature j.
  template <class CodesOf>
  void compute_histogram(const NodeEvaluator& of, const Part<Target>& part, const CodesOf& codes,
                         std::span<const std::int32_t> features) {
    restart(features.size());
    count_steps(part.rows.size() * features.size());
    few_ = part.rows.size() <= kFew;
    for (std::size_t first = 0; first < part.rows.size(); first += kBlock) {
      const auto block = part.block(first, kBlock);
      for (std::size_t f = 0; f < features.size(); ++f)
        few_ ? add_block<true>(of, block, codes(features[f]), f)
             : add_block<false>(of, block, codes(features[f]), f);
    }
  }

  // Prepares for n_features features.
  void restart(std::size_t n_features) {
    if (waiting_ > 0) clear();
    waiting_ = n_features;
    few_ = true;
  }

  // Adds up items for the f-th of these features, which is sparse: items without a stored bin are
  // in bin `zero`, and no others are. all: the sums over all items.
  template <class Item>
  void add_stored(const NodeEvaluator& of, std::span<const Item> items, const Sum* all,
                  std::span<const StoredCode> stored, std::size_t zero, std::size_t f) {
    Sum *const sums = at(of, f, 0), *const rest = at(of, f, zero);
    std::array<std::uint64_t, 4>& seen = seen_[f];
    count_steps(stored.size());
    for (const auto [i, code] : stored) {
      of.add(items[i], sums + code * of.n_sums());
      if (!rows_.empty()) ++rows_[256 * f + code];
      mark(code, seen);
    }
    if (stored.size() == items.size()) return;
    for (std::size_t l = 0; l < of.n_sums(); ++l) rest[l] += all[l];
    for (std::size_t word = 0; word < 4; ++word)
      for (std::uint64_t bits = seen[word]; bits != 0; bits &= bits - 1) {
        const std::size_t bin = 64 * word + static_cast<std::size_t>(std::countr_zero(bits));
        for (std::size_t l = 0; l < of.n_sums(); ++l) rest[l] -= sums[bin * of.n_sums() + l];
      }
    if (!rows_.empty())
      rows_[256 * f + zero] = static_cast<std::int64_t>(items.size() - stored.size());
    mark(zero, seen);
  }

  // Moves out the histogram of the f-th feature. It is valid until the next call.
  FewBins<Target> take(const NodeEvaluator& of, std::size_t f, std::size_t n_bins) {
    --waiting_;
    return rows_.empty() ? take<false>(of, f, n_bins) : take<true>(of, f, n_bins);
  }

 private:
  static constexpr std::size_t kCache = (1 << 15) / sizeof(Sum), kMostTogether = 8;
  static constexpr std::size_t kBlock = 256, kFew = 160;

  Sum* at(const NodeEvaluator& of, std::size_t f, std::size_t bin) {
    return sums_.data() + (256 * f + bin) * of.n_sums();
  }

  static void mark(std::size_t bin, std::array<std::uint64_t, 4>& seen) {
    seen[bin / 64] |= std::uint64_t{1} << bin % 64;
  }

  // Clears what an interrupted call has left.
  void clear() {
    std::ranges::fill(sums_, Sum{});
    std::ranges::fill(rows_, 0);
    seen_ = {};
  }

  template <bool few, class Codes>
  void add_block(const NodeEvaluator& of, const Part<Target> block, const Codes code,
                 std::size_t f) {
    Sum* const sums = at(of, f, 0);
    const std::size_t n = block.rows.size();  // a copy, as adding to sums could change it
    // Collects the occupied bins in a register, as memory would be read right after each write. If
    // some bin is 64 or above, a second loop sets the bits in memory.
    std::uint64_t occupied = 0, or_of_bins = 0;
    for (std::size_t i = 0; i < n; ++i) {
      const std::size_t bin = code[row_of(block.rows[i])];
      if constexpr (kByBlocks)
        bins_[i] = static_cast<std::uint8_t>(bin);
      else
        of.add(block.item(i), sums + bin * of.n_sums());
      if constexpr (few) {
        occupied |= std::uint64_t{1} << bin % 64;
        or_of_bins |= bin;
      }
    }
    if constexpr (few) {
      if (or_of_bins < 64)
        seen_[f][0] |= occupied;
      else
        for (const auto& row : block.rows) mark(code[row_of(row)], seen_[f]);
    }
    if constexpr (kByBlocks) of.add_block(block.rows, bins_.data(), sums);
    if (rows_.empty()) return;
    for (const auto& row : block.rows) ++rows_[256 * f + code[row_of(row)]];
  }

  template <bool counts_rows>
  FewBins<Target> take(const NodeEvaluator& of, std::size_t f, std::size_t n_bins) {
    const std::size_t n_sums = of.n_sums();  // a copy, as writing could change it
    Sum* const from = at(of, f, 0);
    Sum* const to = taken_.data();
    std::uint8_t* const bins = bins_.data();
    std::size_t n = 0;
    const auto take_bin = [&](std::size_t bin) {
      if constexpr (!kByBlocks)
        for (std::size_t l = 0; l < n_sums; ++l)
          to[n * n_sums + l] = std::exchange(from[bin * n_sums + l], Sum{});
      if constexpr (counts_rows) taken_rows_[n] = std::exchange(rows_[256 * f + bin], 0);
      bins[n++] = static_cast<std::uint8_t>(bin);
    };
    // Without a branch, which would often be mispredicted.
    const auto take_if_any = [&](std::size_t bin) {
      const bool is_empty = of.is_empty(from + bin * n_sums);
      take_bin(bin);
      n -= is_empty;
    };
    if (few_) {
      for (std::size_t word = 0; word < 4; ++word)
        for (std::uint64_t& bits = seen_[f][word]; bits != 0; bits &= bits - 1)
          take_bin(64 * word + static_cast<std::size_t>(std::countr_zero(bits)));
    } else {
      for (std::size_t bin = 0; bin < n_bins; ++bin) take_if_any(bin);
      take_if_any(kMissingBin);
    }
    if constexpr (kByBlocks) of.move(bins, n, from, to);
    const bool has_missing = n > 0 && bins[n - 1] == kMissingBin;
    return {to,         n_sums, n - has_missing, bins, counts_rows ? taken_rows_.data() : nullptr,
            has_missing};
  }

  std::vector<Sum> sums_;                                           // (together, 256, n_sums)
  std::array<std::array<std::uint64_t, 4>, kMostTogether> seen_{};  // bins, of few rows
  std::vector<std::int64_t> rows_;                                  // (together, 256) or empty
  bool few_ = false;
  std::size_t waiting_ = 0;  // features whose histograms have not been taken
  // The histogram that was taken.
  std::vector<Sum> taken_;
  std::array<std::int64_t, 257> taken_rows_;
  std::array<std::uint8_t, 257> bins_;
};

}  // namespace
}  // namespace certree
