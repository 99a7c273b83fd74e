// Cuts of cells by features that are drawn in each, whose sums are forgotten.
#pragma once

#include "grow/add_up.hpp"
#include "grow/draws.hpp"

namespace certree {
namespace {

template <class Target>
class DrawnSums {
 public:
  using Item = typename Target::Item;
  using Row = typename Target::Row;
  static constexpr bool kKeeps = false, kSparse = Target::kSparse;

  // items: growing rows, as cells have them; sums: of the nodes.
  DrawnSums(const DrawnRows& rows, std::span<Item> items, const CellSums& sums,
            std::vector<std::int32_t>&& features, const BinnedGrowth& growth, const Target& target)
      : bins_(rows.bins),
        items_(items),
        sums_(sums),
        growth_(growth),
        decider_(target, rows.bins, growth),
        of_(target),
        few_(target),
        draws_(std::move(features), growth.max_features == 0) {
    copies_.push_back({rows.codes, rows.codes.n_rows, {}});
  }

  const Decider<Target>& decider() const { return decider_; }
  CodesByRow codes(const BinnedCell& cell, std::int32_t feature) const {
    const Table<const std::uint8_t>& codes = copies_[cell.copy].codes;
    return {codes.data + feature, codes.width};
  }

  // Finds the cut of a cell among features that are allowed.
  template <class Allowed>
  void search(BinnedCell& cell, const Bounds& bounds, const Allowed& allowed, Cut& cut) {
    const CellSums::One total = sums_.of(cell.node);
    of_.open(items_of(cell), total);
    if (cell.depth == 0) least_ = growth_.min_gain * of_.weight();
    if (of_.is_pure()) return;
    if (growth_.order == Order::depth) shrink(cell);
    const Undecided<Target> known{of_, total.sum, cell.size(), bounds, cell.key};
    draws_.restart(cell.key);
    std::size_t left =
        growth_.max_features > 0 ? static_cast<std::size_t>(growth_.max_features) : draws_.n_left();
    while (left > 0 && draws_.n_left() > 0) {
      draw(std::min(left, few_.together(of_)), allowed);
      few_.add_up(
          of_, {items_of(cell), nullptr}, [&](std::int32_t j) { return codes(cell, j); }, drawn_);
      for (std::size_t f = 0; f < drawn_.size(); ++f) {
        const auto n_bins =
            static_cast<std::size_t>(bins_.n_bins[static_cast<std::size_t>(drawn_[f])]);
        const FewBins<Target> bins = few_.take(of_, f, n_bins);
        left -= decider_.look(known, drawn_[f], bins, memory_, cut) ? 1 : 0;
      }
    }
    decider_.settle(of_, least_, cut);
  }

 private:
  struct Copy {
    Table<const std::uint8_t> codes;
    std::int64_t most_rows;
    Buffer<std::uint8_t> memory;
  };
  // A copy pays where it shrinks to an eighth what is more than the nearest cache holds.
  static constexpr std::int64_t kShrinks = 8, kNear = 1 << 14;

  std::span<Item> items_of(const BinnedCell& cell) const {
    return items_.subspan(static_cast<std::size_t>(cell.begin),
                          static_cast<std::size_t>(cell.size()));
  }

  template <class Allowed>
  void draw(std::size_t most, const Allowed& allowed) {
    std::size_t n = 0;
    drawn_.resize(most);
    while (n < most && draws_.n_left() > 0) {
      drawn_[n] = draws_.next();
      n += allowed(drawn_[n]) ? 1 : 0;
    }
    drawn_.resize(n);
  }

  // Where cells are grown depth first, one copy of codes for each size is enough.
  void shrink(BinnedCell& cell) {
    const Table<const std::uint8_t> from = copies_[cell.copy].codes;
    const std::int64_t n = cell.size();
    if (n * kShrinks > from.n_rows || from.n_rows * from.width <= kNear) return;
    if (++cell.copy == copies_.size()) {
      const std::int64_t most = copies_.back().most_rows / kShrinks;
      copies_.push_back({{}, most, make_buffer<std::uint8_t>(most, from.width)});
    }
    Copy& copy = copies_[cell.copy];
    copy.codes = {copy.memory.get(), n, from.width};
    std::uint8_t* to = copy.memory.get();
    std::uint32_t row = 0;
    for (const auto part : stretches(items_of(cell)))
      for (Item& item : part) {
        spend(from.width / 16);
        to = std::copy_n(from.row(item.row), from.width, to);
        item.row = row++;
      }
  }

  const KeptBins& bins_;
  std::span<Item> items_;
  const CellSums& sums_;
  const BinnedGrowth& growth_;
  Decider<Target> decider_;
  typename Target::OfCell of_;
  FewSums<Target> few_;
  typename Decider<Target>::Memory memory_;
  FeatureDraws draws_;
  std::vector<std::int32_t> drawn_;
  std::vector<Copy> copies_;
  double least_ = 0.0;  // that a cut must gain
};

}  // namespace
}  // namespace certree
