// Growth from sums over bins.
//
// Of the two children of a cell the sums of the smaller one are added up from its rows; what the
// cell has more than these are those of the other. Rows of a cell lie together, in the order in
// which they were given. The sums of a small cell are of no use to those below it: they are made,
// looked at and forgotten a few features at a time, by the bins alone that its rows have.

#include "grow/counted.hpp"

#include <functional>

#include "grow/class_weights.hpp"
#include "grow/counted_search.hpp"
#include "grow/gradients.hpp"
#include "grow/growth.hpp"

namespace certree {
namespace {

// Memory that serves one tree after the other.
template <class Item>
struct CountedMemory {
  SumsPool pool;
  std::vector<Item> items;                    // by number of row
  std::array<std::vector<Item>, 2> gathered;  // of the rows of two cells, in their order
  std::vector<std::int32_t> growing, others, right;
};

// What happens to the cells of one tree.
template <class Target>
class CountedGrowth {
 public:
  using Cell = CountedCell;
  using Cut = CountedCut;
  using Item = typename Target::Item;
  using Memory = CountedMemory<Item>;

  CountedGrowth(const BinnedTable& table, const CountedRows& rows, const Counting& counting,
                const Target& target, Memory& memory)
      : table_(table),
        counting_(counting),
        target_(target),
        layout_(counting.features, table.n_bins, target.n_lanes()),
        search_(target, layout_, counting, table.category),
        memory_(memory) {
    memory_.pool.restart(layout_.size());
    copy(rows.growing, memory_.growing);
    copy(rows.others, memory_.others);
    fit(memory_.items, static_cast<std::size_t>(table.codes.width));
    fit(memory_.right, std::max(rows.growing.size(), rows.others.size()) + 1);
    target_.itemise(rows.growing, memory_.items.data());
  }

  Cell root() {
    Cell cell{};
    cell.end = std::ssize(memory_.growing);
    cell.others_end = std::ssize(memory_.others);
    cell.lower = -kInfinity;
    cell.upper = kInfinity;
    cell.sums = target_.total(memory_.growing, memory_.items.data());
    if (has_categories()) cell.squares = target_.squares(memory_.growing, memory_.items.data());
    cell.groups.assign(static_cast<std::size_t>(counting_.groups.n_rows), 1);
    note(cell);
    return cell;
  }

  // The children of a cell are searched together, when the left one is asked for.
  Cut search(const Cell& cell) {
    if (cell.side == 2) return std::move(cuts_[1]);
    cuts_ = {};
    if (cell.side == 1) {
      search_pair();
    } else if (may_be_cut(cell)) {
      std::vector<std::int32_t> all(layout_.n_features());
      std::iota(all.begin(), all.end(), 0);
      keep_allowed(cell, all);
      cells_[0] = cell;
      tasks_ = {};
      add_up(0);
      tasks_[0].search = true;
      search_cells(all);
    }
    return std::move(cuts_[0]);
  }

  void divide(const Cell& cell, const Cut& cut, Split& split, Cell& left, Cell& right) {
    const GoesLeft goes_left = sides_of(cell, cut, split);
    const std::uint8_t* const code = table_.codes.row(split.feature);
    left = right = cell;
    left.depth = right.depth = cell.depth + 1;
    left.side = 1;
    right.side = 2;
    left.end = right.begin = send(memory_.growing, cell.begin, cell.end, code, goes_left);
    left.others_end = right.others_begin =
        send(memory_.others, cell.others_begin, cell.others_end, code, goes_left);
    left.sums = cut.sums;
    left.squares = right.squares = cut.squares;  // until they are searched
    for (std::size_t l = 0; l < left.sums.size(); ++l) right.sums[l] -= left.sums[l];
    keep_bounds(cell, cut, left, right);
    keep_groups(split.feature, left);
    right.groups = left.groups;
    above_ = cut.place;
    features_ = cut.varying;
    keep_allowed(left, features_);
    cells_ = {left, right};
    note(left);
    note(right);
  }

  // The sums of all nodes, and the leaf of each row.
  std::vector<double> finish(std::span<const std::int32_t> children, std::span<std::int32_t> leaf) {
    std::vector<double> numbers;
    for (const std::size_t v : turns(children.size(), target_.n_lanes())) {
      target_.add_numbers(sums_.data() + v * target_.n_lanes(), numbers);
      if (children[v] != kLeaf) continue;
      const auto settle = [&](std::span<const std::int32_t> rows) {
        for (const auto part : stretches(rows))
          for (const std::int32_t i : part)
            leaf[static_cast<std::size_t>(i)] = static_cast<std::int32_t>(v);
      };
      settle(part_of(memory_.growing, nodes_[v].begin, nodes_[v].end));
      settle(part_of(memory_.others, nodes_[v].others_begin, nodes_[v].others_end));
    }
    memory_.pool.end();
    return numbers;
  }

 private:
  // Below so many rows it is quicker to add them up than to keep the sums of the cell above.
  static constexpr std::int64_t kWorthKeeping = 256;
  // Starting threads takes as long as adding up some hundred thousand rows by one feature.
  static constexpr std::int64_t kWorthThreads = 1 << 17;

  struct Node {
    std::int64_t begin, end, others_begin, others_end;
  };
  // The codes of the rows of a small cell by one feature, and their sums.
  struct FewBins {
    std::array<std::uint8_t, kWorthKeeping> codes;
    std::array<std::uint8_t, 256> bins;
    std::size_t n_bins = 0;
    bool numbered = false;  // whether codes are places among the bins that occur
    std::vector<std::int64_t> lanes;

    BinSums sums() const { return {lanes.data(), n_bins, numbered ? bins.data() : nullptr}; }

    void gather(const std::uint8_t* code, std::span<const std::int32_t> rows, std::size_t n_all) {
      for (std::size_t i = 0; i < rows.size(); ++i) codes[i] = code[rows[i]];
      n_bins = n_all;
      // To tell the bins apart that occur costs as much for a row as to look through two of them.
      numbered = rows.size() < n_all / 2;
      if (numbered) number(rows.size());
    }

   private:
    void number(std::size_t n_rows) {
      std::array<std::uint64_t, 4> occurs{};
      for (std::size_t i = 0; i < n_rows; ++i)
        occurs[codes[i] / 64] |= std::uint64_t{1} << (codes[i] % 64);
      occurs[kMissingBin / 64] &= ~(std::uint64_t{1} << (kMissingBin % 64));
      std::array<std::uint8_t, 256> place;
      place[kMissingBin] = kMissingBin;
      n_bins = 0;
      for (std::size_t w = 0; w < occurs.size(); ++w)
        for (std::uint64_t left = occurs[w]; left != 0; left &= left - 1) {
          const std::size_t b = 64 * w + static_cast<std::size_t>(std::countr_zero(left));
          place[b] = static_cast<std::uint8_t>(n_bins);
          bins[n_bins++] = static_cast<std::uint8_t>(b);
        }
      for (std::size_t i = 0; i < n_rows; ++i) codes[i] = place[codes[i]];
    }
  };
  struct Work {
    typename CountedSearch<Target>::Work search;
    std::array<FewBins, Target::kTogether> few;
  };
  // Rows whose codes and items lie one after the other.
  static constexpr auto kInTurn = [] {
    std::array<std::int32_t, kWorthKeeping> numbers{};
    std::iota(numbers.begin(), numbers.end(), 0);
    return numbers;
  }();
  // What is done for one of two cells.
  struct Task {
    bool add_up = false;    // its sums, from its rows
    bool subtract = false;  // those of the other from what the cell above left in its place
    bool search = false;
  };

  template <class T>
  static void fit(std::vector<T>& memory, std::size_t size) {
    if (memory.size() < size) memory.resize(size);
  }
  static void copy(std::span<const std::int32_t> from, std::vector<std::int32_t>& to) {
    to.resize(from.size());
    auto at = to.begin();
    for (const auto part : stretches(from)) at = std::ranges::copy(part, at).out;
  }
  static std::span<const std::int32_t> part_of(const std::vector<std::int32_t>& rows,
                                               std::int64_t begin, std::int64_t end) {
    return std::span(rows).subspan(static_cast<std::size_t>(begin),
                                   static_cast<std::size_t>(end - begin));
  }
  std::span<const std::int32_t> rows_of(const Cell& cell) const {
    return part_of(memory_.growing, cell.begin, cell.end);
  }

  void note(const Cell& cell) {
    nodes_.push_back({cell.begin, cell.end, cell.others_begin, cell.others_end});
    sums_.insert(sums_.end(), cell.sums.begin(), cell.sums.end());
  }

  bool may_be_cut(const Cell& cell) const {
    return cell.depth < counting_.max_depth && cell.size() / 2 >= counting_.min_rows &&
           cell.size() >= 2;
  }

  // -- sending rows on

  using GoesLeft = std::array<std::uint8_t, 256>;  // by code

  // How rows go, and the cut as the tree has it.
  GoesLeft sides_of(const Cell& cell, const Cut& cut, Split& split) const {
    const auto f = static_cast<std::size_t>(cut.feature);
    split.feature = counting_.features[f];
    split.missing_left = cut.has_missing ? cut.missing_left : 2 * cut.sums.back() >= cell.size();
    GoesLeft goes_left{};
    goes_left[kMissingBin] = split.missing_left;
    if (cut.sides.empty())
      set_threshold(cut, split, goes_left);
    else
      collect_levels(cut, layout_.n_bins(f), split, goes_left);
    return goes_left;
  }

  void set_threshold(const Cut& cut, Split& split, GoesLeft& goes_left) const {
    const BinThreshold threshold = threshold_behind(table_, split.feature, cut.bin, cut.next);
    split.threshold = threshold.value;
    std::fill_n(goes_left.begin(), threshold.bin + 1, std::uint8_t{1});
  }

  // The set of a node goes against missing values; categories that the cell has not seen go along.
  void collect_levels(const Cut& cut, std::size_t n_bins, Split& split, GoesLeft& goes_left) const {
    const Side missing = split.missing_left ? Side::left : Side::right;
    for (std::size_t b = 0; b < n_bins; ++b)
      goes_left[b] = (cut.sides[b] == Side::unseen ? missing : cut.sides[b]) == Side::left;
    split.categories = levels_against_missing(table_, split.feature, goes_left);
  }

  // -- what the cells below may do

  // All responses below the left child stay on one side of the middle, those below the right child
  // on the other.
  void keep_bounds(const Cell& cell, const Cut& cut, Cell& left, Cell& right) const {
    if (counting_.monotonic.empty()) return;
    const int slope = counting_.monotonic[static_cast<std::size_t>(
        counting_.features[static_cast<std::size_t>(cut.feature)])];
    if (slope == 0) return;
    const auto [a, b] = search_.responses(cell, cut.sums);
    (slope > 0 ? left.upper : left.lower) = (a + b) / 2.0;
    (slope > 0 ? right.lower : right.upper) = (a + b) / 2.0;
  }

  // Only groups that hold all features compared above count.
  void keep_groups(std::int32_t feature, Cell& cell) const {
    for (std::size_t k = 0; k < cell.groups.size(); ++k)
      cell.groups[k] &= counting_.groups.row(k)[feature];
  }

  void keep_allowed(const Cell& cell, std::vector<std::int32_t>& features) const {
    if (cell.groups.empty()) return;
    std::erase_if(features, [&](std::int32_t f) {
      const std::int32_t j = counting_.features[static_cast<std::size_t>(f)];
      for (std::size_t k = 0; k < cell.groups.size(); ++k)
        if (cell.groups[k] && counting_.groups.row(k)[j]) return false;
      return true;
    });
  }

  bool has_categories() const {
    return std::ranges::any_of(counting_.features, [&](std::int32_t j) {
      return table_.category[static_cast<std::size_t>(j)] != 0;
    });
  }

  // Rows that go left move to the front; both sides keep their order. Returns where the right side
  // begins.
  std::int64_t send(std::vector<std::int32_t>& rows, std::int64_t begin, std::int64_t end,
                    const std::uint8_t* code, const GoesLeft& goes_left) {
    std::int32_t* const first = rows.data() + begin;
    std::int32_t* to_left = first;
    std::int32_t* to_right = memory_.right.data();
    for (const auto part : stretches(first, rows.data() + end))
      for (const std::int32_t row : part) {
        const std::size_t left = goes_left[code[row]];
        *to_left = *to_right = row;  // no branch: it would be guessed wrong too often
        to_left += left;
        to_right += 1 - left;
      }
    std::copy(memory_.right.data(), to_right, to_left);
    return begin + (to_left - first);
  }

  // -- sums and cuts

  void search_pair() {
    const std::array<bool, 2> may{may_be_cut(cells_[0]), may_be_cut(cells_[1])};
    const std::size_t small = cells_[1].size() < cells_[0].size() ? 1 : 0, large = 1 - small;
    tasks_ = {};
    tasks_[0].search = may[0];
    tasks_[1].search = may[1];
    cuts_[large].place = above_;
    const bool subtract = may[large] && above_ != SumsPool::kNone;
    tasks_[large].subtract = subtract;
    if (may[small] || subtract) add_up(small);
    if (may[large] && !subtract) add_up(large);
    if (!may[0] && !may[1]) return drop(cuts_[large]);
    if (has_categories()) {
      cells_[small].squares = target_.squares(rows_of(cells_[small]), memory_.items.data());
      cells_[large].squares -= cells_[small].squares;
    }
    search_cells(features_);
  }

  // Prepares to add up the rows of a cell.
  void add_up(std::size_t which) {
    tasks_[which].add_up = true;
    if (!is_small(which) && cuts_[which].place == SumsPool::kNone)
      cuts_[which].place = memory_.pool.take();
    const auto rows = rows_of(cells_[which]);
    fit(memory_.gathered[which], rows.size());
    Item* to = memory_.gathered[which].data();
    for (const auto part : stretches(rows))
      for (const std::int32_t row : part) *to++ = memory_.items[static_cast<std::size_t>(row)];
  }

  // Finds the cuts of the two cells as their tasks say, each thread by some of the features.
  void search_cells(const std::vector<std::int32_t>& features) {
    const std::int64_t work = std::max(cells_[0].size(), cells_[1].size()) * std::ssize(features);
    const std::int64_t n_parts = work >= kWorthThreads ? std::max(counting_.n_threads, 1) : 1;
    std::vector<std::array<Cut, 2>> found(static_cast<std::size_t>(n_parts));
    parallel_for(n_parts, counting_.n_threads, [&](std::int64_t i) {
      const auto begin = static_cast<std::size_t>(std::ssize(features) * i / n_parts);
      const auto end = static_cast<std::size_t>(std::ssize(features) * (i + 1) / n_parts);
      search_by(std::span(features).subspan(begin, end - begin),
                found[static_cast<std::size_t>(i)]);
    });
    for (const std::size_t which : {0, 1}) {
      Cut& cut = cuts_[which];
      cut.squares = cells_[which].squares;
      for (auto& part : found) cut.challenge(std::move(part[which]));
      const bool keeps = tasks_[which].search && search_.settle(cells_[which], cut) &&
                         !is_small(which) && !memory_.pool.is_full();
      if (!keeps) drop(cut);
    }
  }

  bool is_small(std::size_t which) const { return cells_[which].size() < kWorthKeeping; }

  void search_by(std::span<const std::int32_t> features, std::array<Cut, 2>& found) const {
    thread_local Work work;
    for (const std::size_t which : {0, 1})
      if (tasks_[which].add_up && !is_small(which)) tally(which, features);
    for (const std::size_t which : {0, 1}) {
      if (tasks_[which].add_up && is_small(which)) pass(which, features, work, found[which]);
      if (tasks_[which].subtract && !is_small(1 - which)) take_away(1 - which, which, features);
    }
    for (const std::size_t which : {0, 1}) {
      if (!tasks_[which].search || (tasks_[which].add_up && is_small(which))) continue;
      for (const std::int32_t f : features) {
        const BinSums sums{sums_of(which, f), layout_.n_bins(static_cast<std::size_t>(f)), nullptr};
        search_.look(cells_[which], f, sums, work.search, found[which]);
      }
    }
  }

  std::int64_t* sums_of(std::size_t which, std::int32_t f) const {
    return memory_.pool.at(cuts_[which].place) + layout_.start(static_cast<std::size_t>(f));
  }

  // Adds up a small cell by a few features at a time, and does with the sums what there is to do.
  void pass(std::size_t which, std::span<const std::int32_t> features, Work& work,
            Cut& found) const {
    const auto rows = rows_of(cells_[which]);
    spend(rows.size() * features.size());
    for (std::size_t first = 0; first < features.size(); first += Target::kTogether) {
      const auto some =
          features.subspan(first, std::min(Target::kTogether, features.size() - first));
      tally_few(which, rows, some, work);
      for (std::size_t i = 0; i < some.size(); ++i) {
        const BinSums sums = work.few[i].sums();
        if (tasks_[1 - which].subtract) take_away_few(sums, 1 - which, some[i]);
        if (tasks_[which].search) search_.look(cells_[which], some[i], sums, work.search, found);
      }
    }
  }

  void tally_few(std::size_t which, std::span<const std::int32_t> rows,
                 std::span<const std::int32_t> features, Work& work) const {
    std::array<const std::uint8_t*, Target::kTogether> codes{};
    std::array<std::size_t, Target::kTogether> n_bins{};
    std::array<std::int64_t*, Target::kTogether> lanes{};
    for (std::size_t i = 0; i < features.size(); ++i) {
      const auto f = static_cast<std::size_t>(features[i]);
      FewBins& few = work.few[i];
      few.gather(table_.codes.row(counting_.features[f]), rows, layout_.n_bins(f));
      fit(few.lanes, target_.n_lanes() * 256);
      codes[i] = few.codes.data();
      n_bins[i] = few.n_bins;
      lanes[i] = few.lanes.data();
    }
    target_.tally(std::span(codes).first(features.size()), std::span(kInTurn).first(rows.size()),
                  memory_.gathered[which].data(), n_bins.data(), true, lanes.data());
  }

  void take_away_few(const BinSums& less, std::size_t whole, std::int32_t f) const {
    std::int64_t* const sums = sums_of(whole, f);
    const std::size_t n_bins = layout_.n_bins(static_cast<std::size_t>(f)), width = n_bins + 1;
    for (std::size_t l = 0; l < target_.n_lanes(); ++l) {
      const std::int64_t* const from = less.lanes + l * less.width();
      std::int64_t* const to = sums + l * width;
      for (std::size_t i = 0; i < less.n_bins; ++i) to[less.bin(i)] -= from[i];
      to[n_bins] -= from[less.n_bins];
    }
  }

  // Block by block, so that the items of a block are read from the cache for all features but one.
  void tally(std::size_t which, std::span<const std::int32_t> features) const {
    const auto rows = rows_of(cells_[which]);
    const std::size_t n_groups = (features.size() + Target::kTogether - 1) / Target::kTogether;
    for (std::size_t first = 0; first < rows.size(); first += Target::kBlock) {
      const auto block = rows.subspan(first, std::min(Target::kBlock, rows.size() - first));
      spend(block.size() * features.size());
      for (std::size_t i = 0; i < n_groups; ++i) {
        const std::size_t begin = features.size() * i / n_groups;
        const std::size_t end = features.size() * (i + 1) / n_groups;
        tally_block(which, block, first, features.subspan(begin, end - begin));
      }
    }
  }

  // By a few features.
  void tally_block(std::size_t which, std::span<const std::int32_t> block, std::size_t first,
                   std::span<const std::int32_t> features) const {
    std::array<const std::uint8_t*, Target::kTogether> codes{};
    std::array<std::size_t, Target::kTogether> n_bins{};
    std::array<std::int64_t*, Target::kTogether> lanes{};
    for (std::size_t i = 0; i < features.size(); ++i) {
      const auto f = static_cast<std::size_t>(features[i]);
      codes[i] = table_.codes.row(counting_.features[f]);
      n_bins[i] = layout_.n_bins(f);
      lanes[i] = sums_of(which, features[i]);
    }
    target_.tally(std::span(codes).first(features.size()), block,
                  memory_.gathered[which].data() + first, n_bins.data(), first == 0, lanes.data());
  }

  void take_away(std::size_t part, std::size_t whole,
                 std::span<const std::int32_t> features) const {
    for (const std::int32_t f : features) {
      const std::int64_t* const less = sums_of(part, f);
      std::int64_t* const sums = sums_of(whole, f);
      const std::size_t length = layout_.length(static_cast<std::size_t>(f));
      for (std::size_t i = 0; i < length; ++i) sums[i] -= less[i];
    }
  }

  void drop(Cut& cut) {
    memory_.pool.give_back(cut.place);
    cut.place = SumsPool::kNone;
  }

  const BinnedTable& table_;
  const Counting& counting_;
  const Target& target_;
  SumsLayout layout_;
  CountedSearch<Target> search_;
  Memory& memory_;
  // The two cells that are searched, or the root alone, and what is found.
  std::array<Cell, 2> cells_{};
  std::array<Task, 2> tasks_{};
  std::array<Cut, 2> cuts_{};
  SumsPool::Place above_ = SumsPool::kNone;  // where the sums of the cell above lie
  std::vector<std::int32_t> features_;       // those that varied there
  std::vector<Node> nodes_;
  std::vector<std::int64_t> sums_;  // (m, lanes)
};

template <class Target>
struct CountedRule {
  using Cell = CountedCell;
  using Cut = CountedCut;
  CountedGrowth<Target>& growth;

  Cut search(const Cell& cell) const { return growth.search(cell); }
  void divide(const Cell& cell, const Cut& cut, Split& split, Cell& left, Cell& right) const {
    growth.divide(cell, cut, split, left, right);
  }
};

template <class Target>
CountedTree grow(const BinnedTable& table, const CountedRows& rows, const Counting& counting,
                 const Target& target, std::span<std::int32_t> leaf) {
  thread_local CountedMemory<typename Target::Item> memory;
  CountedGrowth<Target> growth(table, rows, counting, target, memory);
  CountedTree tree;
  tree.columns = grow_best_first(CountedRule<Target>{growth}, growth.root(), counting.max_leaves);
  tree.sums = growth.finish(tree.columns.left, leaf);
  return tree;
}

}  // namespace

CountedTree grow_gradients(const BinnedTable& table, const CountedRows& rows,
                           const Counting& counting, std::span<const double> gradient,
                           std::span<const double> hessian, std::span<std::int32_t> leaf) {
  const Gradients target(gradient, hessian, rows.growing, counting);
  return grow(table, rows, counting, target, leaf);
}

CountedTree grow_classes(const BinnedTable& table, const CountedRows& rows,
                         const Counting& counting, const ClassResponse& response,
                         std::span<std::int32_t> leaf) {
  return grow(table, rows, counting, ClassWeights(response, rows.growing, counting), leaf);
}

}  // namespace certree
