// Best splits of nodes of a sparse table, most of whose values are 0.
//
// A slot is a bin of a feature, or its missing values. Only rows that have a value in another bin
// than 0 are added up by it, row by row; what a node has more than they have lies in the bin of 0.
// As sums are whole numbers, these are those of the dense table. Slots that nothing was added to
// are passed over, so that a node of few rows costs no more than what is stored of them.
#pragma once

#include <bit>

#include "grow/histograms.hpp"
#include "grow/send.hpp"
#include "grow/sibling_search.hpp"

namespace certree {
namespace {

// So many bytes stay for the next tree.
constexpr std::size_t kKeptBytes = std::size_t{1} << 26;

// Sums by slot, all 0 where no slot is marked.
template <std::size_t n_lanes>
class SlotPool {
 public:
  using Place = HistogramPool::Place;
  using Sum = std::array<std::int64_t, n_lanes>;
  struct Slots {
    std::vector<Sum> sum;
    std::vector<std::uint64_t> occupied;  // a bit for each slot
  };

  // Forgets all sums, those of a call that was interrupted, too.
  void restart(std::size_t n_slots) {
    n_slots_ = n_slots;
    for (Slots& one : places_) clear(one);
    free_.resize(places_.size());
    std::iota(free_.rbegin(), free_.rend(), Place{0});
  }
  Place take() {
    if (free_.empty()) {
      places_.emplace_back();
      free_.reserve(places_.size());
      free_.push_back(static_cast<Place>(places_.size() - 1));
    }
    const Place place = free_.back();
    Slots& one = at(place);
    if (one.sum.size() < n_slots_) {
      one.sum.resize(n_slots_);
      one.occupied.resize((n_slots_ + 63) / 64);
    }
    free_.pop_back();
    return place;
  }
  void give_back(Place place) {
    if (place == HistogramPool::kNone) return;
    clear(at(place));
    free_.push_back(place);
  }
  Slots& at(Place place) { return places_[static_cast<std::size_t>(place)]; }
  std::size_t n_taken() const { return places_.size() - free_.size(); }
  // Memory beyond what many trees will want goes back.
  void end() {
    std::size_t n = 0;
    for (const Slots& one : places_) n += one.sum.size();
    if (n * sizeof(Sum) <= kKeptBytes) return;
    places_.clear();
    free_.clear();
  }

 private:
  static void clear(Slots& slots) {
    for (std::size_t word = 0; word < slots.occupied.size(); ++word)
      for (std::uint64_t bits = std::exchange(slots.occupied[word], 0); bits != 0; bits &= bits - 1)
        slots.sum[64 * word + static_cast<std::size_t>(std::countr_zero(bits))] = {};
  }

  std::size_t n_slots_ = 0;
  std::vector<Slots> places_;
  std::vector<Place> free_;
};

// The slots of the growing rows, row by row, by some features in a row.
struct SlotsOfRows {
  std::int32_t first, last;         // features
  std::vector<std::int64_t> begin;  // (n + 1,)
  std::vector<std::uint32_t> slot;

  std::span<const std::uint32_t> of(std::int32_t row) const {
    const auto i = static_cast<std::size_t>(row);
    return {slot.data() + begin[i], static_cast<std::size_t>(begin[i + 1] - begin[i])};
  }
};

template <class Target>
struct SparseMemory {
  SlotPool<Target::kLanes> pool;
  std::vector<SlotsOfRows> parts;
  std::vector<std::uint32_t> slot_of_place;
  std::vector<std::uint8_t> grows;      // whether a row does
  std::vector<std::uint8_t> scattered;  // codes by row, all 0 in between
};

// The codes of one feature by row, as long as this lives: how they differ from that of 0.
class ScatteredCodes {
 public:
  ScatteredCodes(const BinnedTable& table, std::int32_t feature, std::uint8_t* scattered)
      : zero_(table.stored.zero[static_cast<std::size_t>(feature)]), scattered_(scattered) {
    const auto j = static_cast<std::size_t>(feature);
    const StoredCodes& stored = table.stored;
    const auto begin = static_cast<std::size_t>(stored.start[j]);
    const auto n = static_cast<std::size_t>(stored.start[j + 1]) - begin;
    rows_ = stored.row.subspan(begin, n);
    for (std::size_t i = 0; i < n; ++i)
      scattered_[rows_[i]] = table.code_now(feature, stored.code[begin + i]) ^ zero_;
  }
  ~ScatteredCodes() {
    for (const std::int32_t row : rows_) scattered_[row] = 0;
  }
  ScatteredCodes(const ScatteredCodes&) = delete;
  ScatteredCodes& operator=(const ScatteredCodes&) = delete;

  std::size_t operator[](std::size_t row) const {
    return static_cast<std::size_t>(scattered_[row] ^ zero_);
  }

 private:
  std::uint8_t zero_;
  std::span<const std::int32_t> rows_;
  std::uint8_t* scattered_;
};

// The sums of a node by the bins alone of a feature that its rows have.
struct OccupiedBins : AllBins {
  const std::uint8_t* bins;  // (n_bins,) which these are, ascending

  bool is_constant(std::int64_t) const { return n_bins + has_missing < 2; }
  static bool is_empty(std::size_t) { return false; }
  std::size_t bin(std::size_t i) const { return bins[i]; }
};

template <class Target>
class SparseHistograms : public SiblingSearch<Target, SparseHistograms<Target>> {
  using Search = SiblingSearch<Target, SparseHistograms<Target>>;
  friend Search;
  static constexpr bool kHasRanks = false;

 public:
  SparseHistograms(const BinnedTable& table, std::span<const std::int32_t> rows,
                   const NodeTotals& sums, std::span<const std::int32_t> features,
                   const BinnedGrowth& growth, const Target& target,
                   const typename Target::Item* items, SparseMemory<Target>& memory)
      : Search(table, rows, sums, features, growth, target, items), memory_(memory) {
    lay_out(features);
    memory_.pool.restart(n_slots_);
    auto& grows = memory_.grows;
    grows.assign(static_cast<std::size_t>(table.n_rows()), 0);
    for (const auto part : chunks(rows))
      for (const std::int32_t row : part) grows[static_cast<std::size_t>(row)] = 1;
    if (std::ssize(memory_.scattered) < table.n_rows())
      memory_.scattered.resize(static_cast<std::size_t>(table.n_rows()));
    number_slots(features);
    parallel_for(std::ssize(memory_.parts), growth.n_threads, [&](std::int64_t i) {
      SlotsOfRows& part = memory_.parts[static_cast<std::size_t>(i)];
      list_slots(part_of(features, i, 0), part);
    });
  }
  ~SparseHistograms() {
    memory_.pool.end();
    for (SlotsOfRows& part : memory_.parts)
      if (part.slot.capacity() * sizeof(std::uint32_t) > kKeptBytes) part = {};
  }

  ScatteredCodes codes(const BinnedNode&, std::int32_t feature) const {
    return {table_, feature, memory_.scattered.data()};
  }

 private:
  using Search::split_search_, Search::growth_, Search::items_, Search::pair_, Search::table_;
  using typename Search::NodeEvaluator;
  using Slots = typename SlotPool<Target::kLanes>::Slots;
  using Sum = typename SlotPool<Target::kLanes>::Sum;

  // Sums are kept of nodes of which so much is stored: at least an eighth of the slots.
  static constexpr std::size_t kWorthKeeping = 8, kMostBytes = std::size_t{1} << 28;
  // Starting threads takes as long as so many steps.
  static constexpr std::int64_t kWorthThreads = 1 << 17, kStepsOfFeature = 16;

  static constexpr std::uint32_t kNoSlot = std::numeric_limits<std::uint32_t>::max();

  struct Work {
    typename SplitSearch<Target>::Memory split_search;
    std::array<std::int64_t, 257 * Target::kLanes> lanes;
    std::array<std::uint16_t, 256> place;
    std::array<std::uint8_t, 257> bins;
  };

  std::size_t n_bins(std::int32_t j) const {
    return static_cast<std::size_t>(table_.n_bins[static_cast<std::size_t>(j)]);
  }
  std::size_t start(std::int32_t j) const { return slot_start_[static_cast<std::size_t>(j)]; }
  // How many values of a feature are stored.
  std::size_t n_values(std::int32_t j) const {
    const auto at = static_cast<std::size_t>(j);
    return static_cast<std::size_t>(table_.stored.start[at + 1] - table_.stored.start[at]);
  }

  // -- before the tree

  // Deals the features to parts of about as many values and slots, which share no word of marks.
  void lay_out(std::span<const std::int32_t> features) {
    const auto size = [&](std::int32_t j) {
      return static_cast<std::int64_t>(n_values(j) + n_bins(j) + 1);
    };
    std::int64_t total = 0, dealt = 0;
    for (const std::int32_t j : features) total += size(j);
    const std::int64_t n_parts = total >= kWorthThreads ? std::max(growth_.n_threads, 1) : 1;
    memory_.parts.resize(static_cast<std::size_t>(n_parts));
    slot_start_.resize(table_.n_bins.size());
    std::int64_t part = -1;
    for (const std::int32_t j : features) {
      if (part < dealt * n_parts / total) {
        const std::int64_t next = dealt * n_parts / total;
        while (part < next) {
          if (part >= 0) memory_.parts[static_cast<std::size_t>(part)].last = j;
          memory_.parts[static_cast<std::size_t>(++part)].first = j;
        }
        n_slots_ = (n_slots_ + 63) / 64 * 64;
      }
      slot_start_[static_cast<std::size_t>(j)] = static_cast<std::uint32_t>(n_slots_);
      n_slots_ += n_bins(j) + 1;
      if (n_slots_ > std::numeric_limits<std::uint32_t>::max()) throw OutOfMemory();
      dealt += size(j);
    }
    const std::int32_t end = features.empty() ? 0 : features.back() + 1;
    for (; part < n_parts; ++part) {
      if (part >= 0) memory_.parts[static_cast<std::size_t>(part)].last = end;
      if (part + 1 < n_parts) memory_.parts[static_cast<std::size_t>(part + 1)].first = end;
    }
  }

  // Writes the slot of each place; kNoSlot where nothing is added up: by other features, and where
  // the bin has become that of 0.
  void number_slots(std::span<const std::int32_t> features) const {
    memory_.slot_of_place.assign(table_.first_place(table_.n_bins.size()), kNoSlot);
    for (const std::int32_t j : features) {
      const std::size_t first = table_.first_place(j);
      const std::size_t missing = table_.first_place(std::int64_t{j} + 1) - 1;
      const std::uint8_t zero = table_.stored.zero[static_cast<std::size_t>(j)];
      std::uint32_t* const slot = memory_.slot_of_place.data();
      for (std::size_t bin = 0; first + bin < missing; ++bin) {
        const std::uint8_t code = table_.code_now(j, static_cast<std::uint8_t>(bin));
        if (code != zero) slot[first + bin] = static_cast<std::uint32_t>(start(j) + code);
      }
      slot[missing] = static_cast<std::uint32_t>(start(j) + n_bins(j));
    }
  }
  // Lists for each growing row the slots of its stored values in the features of a part: the
  // places in a histogram where they are added up.
  void list_slots(std::span<const std::int32_t> features, SlotsOfRows& part) const {
    const auto n_rows = static_cast<std::size_t>(table_.n_rows());
    std::size_t most = 1;  // a slot that is none is written, too, and then overwritten
    for (const std::int32_t j : features) most += n_values(j);
    part.begin.resize(n_rows + 1);
    if (part.slot.size() < most) part.slot.resize(most);
    const std::size_t first = features.empty() ? 0 : table_.first_place(features.front());
    const std::size_t last =
        features.empty() ? 0 : table_.first_place(std::int64_t{features.back()} + 1);
    const std::uint32_t* const slot = memory_.slot_of_place.data();
    std::uint32_t* to = part.slot.data();
    StepCounter counter;
    for (std::size_t row = 0; row < n_rows; ++row) {
      part.begin[row] = to - part.slot.data();
      if (!memory_.grows[row]) continue;
      const std::span<const std::uint32_t> places = table_.stored.by_row->of(row);
      counter.add(std::ssize(places) + 1);
      auto at = std::ranges::lower_bound(places, first);
      for (; at != places.end() && *at < last; ++at) {
        *to = slot[*at];
        to += *to != kNoSlot ? 1 : 0;
      }
    }
    counter.flush();
    part.begin[n_rows] = to - part.slot.data();
  }

  // -- two nodes

  void prepare(std::size_t which) {
    if (pair_->splits[which].place == HistogramPool::kNone)
      pair_->splits[which].place = memory_.pool.take();
  }
  std::int64_t n_parts(const std::vector<std::int32_t>&) const { return std::ssize(memory_.parts); }
  int n_threads(const std::vector<std::int32_t>& features) const {
    const std::size_t n = n_stored(0) + n_stored(1) + kStepsOfFeature * features.size();
    return std::cmp_less(n, kWorthThreads) ? 1 : growth_.n_threads;
  }
  std::span<const std::int32_t> part_of(std::span<const std::int32_t> features, std::int64_t i,
                                        std::int64_t) const {
    const SlotsOfRows& part = memory_.parts[static_cast<std::size_t>(i)];
    const auto begin = std::ranges::lower_bound(features, part.first);
    return {begin, std::lower_bound(begin, features.end(), part.last)};
  }
  // How many values of a node's rows are stored.
  std::size_t n_stored(std::size_t which) const {
    std::size_t n = 0;
    for (const SlotsOfRows& part : memory_.parts)
      for (const auto some : chunks(this->rows_of(which)))
        for (const std::int32_t row : some) n += part.of(row).size();
    return n;
  }
  bool keeps(std::size_t which) const {
    return n_stored(which) * kWorthKeeping >= n_slots_ &&
           memory_.pool.n_taken() * n_slots_ * sizeof(Sum) <= kMostBytes;
  }
  void drop(SplitInfo& split_info) {
    memory_.pool.give_back(split_info.place);
    split_info.place = HistogramPool::kNone;
  }
  Slots& slots(std::size_t which) const { return memory_.pool.at(pair_->splits[which].place); }

  void search_by(std::span<const std::int32_t> features, std::array<SplitInfo, 2>& found) const {
    if (features.empty()) return;
    thread_local Work work{};
    const SlotsOfRows& part = *std::ranges::find_if(
        memory_.parts, [&](const SlotsOfRows& one) { return features[0] < one.last; });
    for (const std::size_t which : {0, 1})
      if (pair_->tasks[which].compute_histogram) compute_histogram(which, part);
    for (const std::size_t which : {0, 1})
      if (pair_->tasks[which].subtract) take_away(features, slots(1 - which), slots(which));
    for (const std::size_t which : {0, 1})
      if (pair_->tasks[which].search) search_features(which, features, work, found[which]);
  }

  void compute_histogram(std::size_t which, const SlotsOfRows& part) const {
    Slots& to = slots(which);
    StepCounter counter;
    const std::span<const std::int32_t> rows = this->rows_of(which);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const std::int32_t row = rows[i], ahead = row_ahead(rows, i);
      prefetch(items_ + ahead, 1);
      prefetch(part.of(ahead).data(), 32);
      const auto lanes = Target::lanes_of(items_[static_cast<std::size_t>(row)]);
      const std::span<const std::uint32_t> of_row = part.of(row);
      counter.add(std::ssize(of_row) + 1);
      for (const std::uint32_t slot : of_row) {
        to.occupied[slot / 64] |= std::uint64_t{1} << slot % 64;
        for (std::size_t l = 0; l < lanes.size(); ++l) to.sum[slot][l] += lanes[l];
      }
    }
    counter.flush();
  }

  // Calls with the marked slots of some features, which lie in a row.
  template <class Visit>
  static void visit(const Slots& slots, std::size_t begin, std::size_t end, const Visit& take) {
    for (std::size_t word = begin / 64; 64 * word < end; ++word) {
      std::uint64_t bits = slots.occupied[word];
      if (64 * word < begin) bits &= ~std::uint64_t{0} << begin % 64;
      if (end < 64 * word + 64) bits &= ~(~std::uint64_t{0} << end % 64);
      for (; bits != 0; bits &= bits - 1)
        take(64 * word + static_cast<std::size_t>(std::countr_zero(bits)));
    }
  }

  // The same from the last to the first.
  template <class Visit>
  static void visit_down(const Slots& slots, std::size_t begin, std::size_t end,
                         const Visit& take) {
    if (begin >= end) return;
    for (std::size_t word = (end - 1) / 64 + 1; word-- > begin / 64;) {
      std::uint64_t bits = slots.occupied[word];
      if (64 * word < begin) bits &= ~std::uint64_t{0} << begin % 64;
      if (end < 64 * word + 64) bits &= ~(~std::uint64_t{0} << end % 64);
      while (bits != 0) {
        const auto last = static_cast<std::size_t>(63 - std::countl_zero(bits));
        take(64 * word + last);
        bits ^= std::uint64_t{1} << last;
      }
    }
  }

  void take_away(std::span<const std::int32_t> features, const Slots& part, Slots& all) const {
    const std::size_t end = start(features.back()) + n_bins(features.back()) + 1;
    count_steps((end - start(features[0])) / 64);
    visit(part, start(features[0]), end, [&](std::size_t slot) {
      for (std::size_t l = 0; l < Target::kLanes; ++l) all.sum[slot][l] -= part.sum[slot][l];
    });
  }

  void search_features(std::size_t which, std::span<const std::int32_t> features, Work& work,
                       SplitInfo& found) const {
    NodeEvaluator of = this->evaluator(which);
    const SearchedNode<Target> node = this->undecided(which, of);
    const Slots& from = slots(which);
    StepCounter counter;
    for (const std::int32_t j : features) {
      counter.add(kStepsOfFeature);
      if (is_worse(j, from, of, split_search_.to_beat(j, found))) {
        found.varying.push_back(j);
        continue;
      }
      const OccupiedBins bins = bins_of(j, from, node, work);
      if (split_search_.search_splits(node, j, bins, work.split_search, found))
        found.varying.push_back(j);
    }
    counter.flush();
  }

  // Whether no split by a feature that varies is better than `most`: told by sums from both ends up
  // to the bin of 0, of which nothing has to be known. False where values are missing.
  bool is_worse(std::int32_t j, const Slots& from, const NodeEvaluator& of, double most) const {
    const std::size_t begin = start(j), end = begin + n_bins(j);
    const std::size_t zero = begin + table_.stored.zero[static_cast<std::size_t>(j)];
    if (from.occupied[end / 64] >> end % 64 & 1) return false;
    bool is_worse = true, is_any = false;
    const auto passes = [&](Sum& child, std::size_t slot) {
      for (std::size_t l = 0; l < child.size(); ++l) child[l] += from.sum[slot][l];
      is_any |= from.sum[slot].back() != 0;
      is_worse &= !(of.value(child) > most);
    };
    Sum below{}, above{};
    visit(from, begin, zero, [&](std::size_t slot) { passes(below, slot); });
    visit_down(from, zero + 1, end, [&](std::size_t slot) { passes(above, slot); });
    return is_worse && is_any;
  }

  OccupiedBins bins_of(std::int32_t j, const Slots& from, const SearchedNode<Target>& node,
                       Work& work) const {
    constexpr std::size_t kWidth = 257;
    const std::size_t begin = start(j), n_all = n_bins(j);
    const std::size_t zero = table_.stored.zero[static_cast<std::size_t>(j)];
    Sum rest;
    std::copy_n(node.total.begin(), rest.size(), rest.begin());
    std::size_t n = 0;
    visit(from, begin, begin + n_all + 1, [&](std::size_t slot) {
      if (from.sum[slot].back() == 0) return;  // those of the other node have been taken away
      work.place[n++] = static_cast<std::uint16_t>(slot - begin);
      for (std::size_t l = 0; l < rest.size(); ++l) rest[l] -= from.sum[slot][l];
    });
    std::size_t at = 0;
    const auto put = [&](std::size_t bin, const Sum& sum) {
      for (std::size_t l = 0; l < sum.size(); ++l) work.lanes[l * kWidth + at] = sum[l];
      work.bins[at++] = static_cast<std::uint8_t>(bin);
    };
    bool waits = rest.back() > 0;  // for its turn
    for (std::size_t i = 0; i < n; ++i) {
      if (waits && work.place[i] > zero) put(zero, rest);
      waits &= work.place[i] <= zero;
      put(work.place[i], from.sum[begin + work.place[i]]);
    }
    if (waits) put(zero, rest);
    const bool has_missing = n > 0 && work.place[n - 1] == n_all;
    return {{work.lanes.data(), Target::kLanes, kWidth, at - has_missing, has_missing},
            work.bins.data()};
  }

  std::vector<std::uint32_t> slot_start_;  // (p,) of features of the tree
  std::size_t n_slots_ = 0;
  SparseMemory<Target>& memory_;
};

}  // namespace
}  // namespace certree
