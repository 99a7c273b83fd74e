#include "grow/cells_of_parts.hpp"

#include "grow/send.hpp"

#include "grow/tree_growth.hpp"
#include "grow/weighted.hpp"

namespace certree {
namespace {

using Numbers2 = PairTarget<WidePairItem>;
using Classes3 = ClassTarget<WideClassItem>;

NodeTotals::One one_of(const LanesOfCells& lanes, std::size_t c) {
  const auto begin = static_cast<std::size_t>(lanes.begin[c]);
  const auto n = static_cast<std::size_t>(lanes.begin[c + 1]) - begin;
  return {lanes.lane.subspan(begin, n), lanes.sum.subspan(begin, n)};
}

// Calls f with the target that grows trees in memory.
template <class F>
auto with_target(const PartTarget& given, std::int64_t min_rows, std::int64_t weight, const F& f) {
  const RowLimits limits{0, min_rows};
  if (given.n_classes > 2) return f(Classes3({{}, given.n_classes, given.criterion}, limits));
  std::vector<double> logs;
  if (given.criterion == Criterion::entropy) logs = logs_up_to(weight);
  const bool are_classes = given.n_classes > 0;
  const PairResponse response{
      are_classes, given.criterion == Criterion::poisson, logs, {}, given.bits, given.unit};
  return f(Numbers2(response, limits));
}

template <class Target>
typename Target::Item item_of(std::int32_t row, const std::int64_t* of_row) {
  const auto i = static_cast<std::uint32_t>(row);
  if constexpr (Target::kSparse)
    return {of_row[0], i, static_cast<std::uint32_t>(of_row[1])};
  else
    return {i, of_row[0], of_row[1]};
}

// Numbers that a bin of a cell has in tables.
template <class Target>
std::size_t width_of(const typename Target::NodeEvaluator& of) {
  static_assert(sizeof(typename Target::Sum) % sizeof(std::int64_t) == 0);
  return of.n_sums() * sizeof(typename Target::Sum) / sizeof(std::int64_t);
}

// -- what a part adds up

template <class Target>
class PartOfCells {
 public:
  using Item = typename Target::Item;

  PartOfCells(const Table<const std::uint8_t>& codes, const Target& target,
              const PartTarget& wanted, CellTables& made)
      : codes_(codes), wanted_(wanted), of_(target), few_(target), made_(made) {
    features_.resize(static_cast<std::size_t>(codes.n_rows));
    std::iota(features_.begin(), features_.end(), 0);
  }

  void add(std::span<const std::int32_t> order, const PartNumbers& rows,
           const NodeTotals::One& total, bool by_bin) {
    items_.clear();
    for (const std::int32_t row : order) items_.push_back(item_of<Target>(row, rows.row(row)));
    rows_.n = std::ssize(items_);
    of_.open(rows_, total);
    describe(order, rows);
    if (!by_bin) return;
    const auto codes_of = [&](std::int32_t j) { return CodesOfFeature{codes_.row(j)}; };
    const std::size_t together = few_.together(of_);
    for (std::size_t first = 0; first < features_.size(); first += together) {
      const auto some = std::span(std::as_const(features_))
                            .subspan(first, std::min(together, features_.size() - first));
      few_.add_up(of_, {items_, nullptr}, codes_of, some);
      for (std::size_t f = 0; f < some.size(); ++f) tell(few_.take(of_, f, kMissingBin));
    }
  }

 private:
  void tell(const FewBins<Target>& bins) {
    const std::size_t n = bins.n_bins + bins.has_missing, width = width_of<Target>(of_);
    made_.n_bins.push_back(static_cast<std::int32_t>(n));
    made_.bin.insert(made_.bin.end(), bins.bins, bins.bins + n);
    for (std::size_t i = 0; i < n; ++i) {
      const auto* const from = reinterpret_cast<const std::int64_t*>(bins.at(i));
      made_.sum.insert(made_.sum.end(), from, from + width);
      if (wanted_.counts_rows) made_.sum.push_back(bins.rows[i]);
    }
  }
  void describe(std::span<const std::int32_t> order, const PartNumbers& rows) {
    std::array<std::int64_t, 4> about{std::numeric_limits<std::int64_t>::max(),
                                      std::numeric_limits<std::int64_t>::min(), 0, 0};
    for (const std::int32_t row : order) {
      const std::int64_t *const of_row = rows.row(row), weight = of_row[0];
      about[0] = std::min(about[0], of_row[1]);
      about[1] = std::max(about[1], of_row[1]);
      about[3] += weight * weight;
    }
    if constexpr (!Target::kSparse)
      if (wanted_.has_sets && wanted_.n_classes == 0) about[2] = of_.squares_beyond_mean(items_);
    made_.about.insert(made_.about.end(), about.begin(), about.end());
  }

  Table<const std::uint8_t> codes_;
  const PartTarget& wanted_;
  typename Target::NodeEvaluator of_;
  FewSums<Target> few_;
  CellTables& made_;
  std::vector<std::int32_t> features_;
  std::vector<Item> items_;
  GivenRows rows_;
};

// -- tables of cells by those of others

class StartsOfCells {
 public:
  StartsOfCells(const CellsInTables& cells, std::size_t p, bool counts_rows)
      : cells_(cells), p_(p), counts_rows_(counts_rows) {
    for (std::size_t c = 0; c < cells.lanes.size(); ++c) {
      const auto own = cells.tables.n_bins.subspan(c * p, p);
      const std::int64_t n = std::accumulate(own.begin(), own.end(), std::int64_t{0});
      bin_.push_back(bin_.back() + static_cast<std::size_t>(n));
      sum_.push_back(sum_.back() + static_cast<std::size_t>(n) * width(c));
    }
  }

  // How many bins and sums a cell has.
  std::pair<std::size_t, std::size_t> size(std::int32_t cell) const {
    const auto c = static_cast<std::size_t>(cell);
    return {bin_[c + 1] - bin_[c], sum_[c + 1] - sum_[c]};
  }
  void copy(std::size_t c, CellTables& made) const {
    const auto append = [](auto& to, const auto& from, std::size_t begin, std::size_t end) {
      const auto some = from.subspan(begin, end - begin);
      to.insert(to.end(), some.begin(), some.end());
    };
    append(made.n_bins, cells_.tables.n_bins, c * p_, (c + 1) * p_);
    append(made.bin, cells_.tables.bin, bin_[c], bin_[c + 1]);
    append(made.sum, cells_.tables.sum, sum_[c], sum_[c + 1]);
    append(made.about, cells_.tables.about, 4 * c, 4 * c + 4);
  }

  // The sums of a cell without those of another one, whose rows are among its own. Each bin that is
  // left has some weight, as each row has. lanes: those of what is left.
  void copy_rest(std::size_t c, const StartsOfCells& others, std::size_t other,
                 std::span<const std::int32_t> lanes, CellTables& made) const {
    const std::vector<std::size_t> kept = places_of(lanes, cells_.lanes.of(c));
    const std::vector<std::size_t> taken =
        places_of(others.cells_.lanes.of(other), cells_.lanes.of(c));
    const std::size_t n = width(c), n_taken = others.width(other);
    std::vector<std::int64_t> rest(n);
    const std::int64_t* sum = cells_.tables.sum.data() + sum_[c];
    const std::int64_t* less = others.cells_.tables.sum.data() + others.sum_[other];
    const std::uint8_t* bin = cells_.tables.bin.data() + bin_[c];
    const std::uint8_t* next = others.cells_.tables.bin.data() + others.bin_[other];
    for (std::size_t j = 0; j < p_; ++j) {
      const std::uint8_t* const end = bin + cells_.tables.n_bins[c * p_ + j];
      const std::uint8_t* const last = next + others.cells_.tables.n_bins[other * p_ + j];
      const std::size_t before = made.bin.size();
      for (; bin < end; ++bin, sum += n) {
        std::copy_n(sum, n, rest.begin());
        if (next < last && *next == *bin) {
          for (std::size_t l = 0; l < taken.size(); ++l) rest[taken[l]] -= less[l];
          if (counts_rows_) rest[n - 1] -= less[n_taken - 1];
          less += n_taken;
          ++next;
        }
        if (std::ranges::all_of(rest, [](std::int64_t one) { return one == 0; })) continue;
        made.bin.push_back(*bin);
        for (const std::size_t l : kept) made.sum.push_back(rest[l]);
        if (counts_rows_) made.sum.push_back(rest[n - 1]);
      }
      if (next != last) throw std::invalid_argument("a cell has the bins of the one above it");
      made.n_bins.push_back(static_cast<std::int32_t>(made.bin.size() - before));
    }
  }

 private:
  // Where some lanes are among others.
  static std::vector<std::size_t> places_of(std::span<const std::int32_t> some,
                                            std::span<const std::int32_t> among) {
    std::vector<std::size_t> places;
    for (const std::int32_t lane : some) {
      const auto at = std::ranges::lower_bound(among, lane);
      if (at == among.end() || *at != lane)
        throw std::invalid_argument("a cell has the lanes of the one above it");
      places.push_back(static_cast<std::size_t>(at - among.begin()));
    }
    return places;
  }
  std::size_t width(std::size_t c) const { return cells_.lanes.of(c).size() + counts_rows_; }

  const CellsInTables& cells_;
  std::size_t p_;
  bool counts_rows_;
  std::vector<std::size_t> bin_{0}, sum_{0};  // (c + 1,) where those of each cell begin
};

// -- cuts of cells by what parts have added up

// Sums that are looked up, in the place of rows.
template <class Target>
class GivenCells {
 public:
  using Item = typename Target::Item;
  using NodeEvaluator = typename Target::NodeEvaluator;

  GivenCells(const GivenTables& tables, std::size_t n_features, bool counts_rows)
      : tables_(&tables), p_(n_features), counts_rows_(counts_rows), bin_(n_features + 1) {}

  // Goes on to the cell that comes next; width: numbers of each of its bins, without rows.
  void next(std::size_t cell, std::int64_t n_rows, std::size_t width) {
    first_sum_ += (bin_.back() - bin_.front()) * width_;
    width_ = width + counts_rows_;
    bin_[0] = bin_.back();
    for (std::size_t j = 0; j < p_; ++j)
      bin_[j + 1] = bin_[j] + static_cast<std::size_t>(tables_->n_bins[cell * p_ + j]);
    const std::int64_t* const about = tables_->about.data() + 4 * cell;
    rows_ = {n_rows, about[0] == about[1], static_cast<double>(about[3]), about[2]};
  }
  const GivenRows& rows() const { return rows_; }

  void open(BinnedNode&, std::span<Item>, const NodeEvaluator&, bool) {}
  static bool may_vary(std::int32_t) { return true; }
  void add_up(const BinnedNode&, std::span<Item>, const NodeEvaluator& of,
              std::span<const std::int32_t> features, FewSums<Target>& few) const {
    few.restart(features.size());
    for (std::size_t f = 0; f < features.size(); ++f)
      each(features[f], [&](std::uint8_t bin, const std::int64_t* sums) {
        few.put(of, f, bin, reinterpret_cast<const typename Target::Sum*>(sums), n_rows(sums));
      });
  }
  std::int64_t n_left(std::int32_t feature, const GoesLeft& goes_left) const {
    std::int64_t n = 0;
    each(feature, [&](std::uint8_t bin, const std::int64_t* sums) {
      if (goes_left[bin]) n += n_rows(sums);
    });
    return n;
  }

 private:
  template <class F>
  void each(std::int32_t feature, const F& f) const {
    const auto j = static_cast<std::size_t>(feature);
    const std::int64_t* sums = tables_->sum.data() + first_sum_ + (bin_[j] - bin_[0]) * width_;
    for (std::size_t i = bin_[j]; i < bin_[j + 1]; ++i, sums += width_) f(tables_->bin[i], sums);
  }
  std::int64_t n_rows(const std::int64_t* sums) const {
    if (counts_rows_) return sums[width_ - 1];
    return Target::kSparse ? std::accumulate(sums, sums + width_, std::int64_t{0}) : sums[0];
  }

  const GivenTables* tables_;
  std::size_t p_;
  bool counts_rows_;
  std::vector<std::size_t> bin_;  // (p + 1,) where those of each feature begin
  std::size_t first_sum_ = 0, width_ = 0;
  GivenRows rows_;
};

template <class Target>
class SumsOfParts : public DrawnSums<Target, GivenCells<Target>> {
 public:
  static constexpr bool kElsewhere = true;

  SumsOfParts(const KeptBins& bins, GivenCells<Target>&& cells, const NodeTotals& totals,
              std::vector<std::int32_t>&& features, const BinnedGrowth& growth,
              const Target& target, CutCells& made)
      : DrawnSums<Target, GivenCells<Target>>(bins, std::move(cells), {}, totals,
                                              std::move(features), growth, target),
        made_(made) {}

  void next(std::size_t cell, std::int64_t n_rows, std::size_t width) {
    this->node_bins().next(cell, n_rows, width);
  }
  std::int64_t n_left(const SplitInfo& cut, const GoesLeft& goes_left) {
    return this->node_bins().n_left(cut.feature, goes_left);
  }
  void note(const BinnedNode&, const SplitInfo& cut, const GoesLeft& goes_left) {
    made_.gain.push_back(cut.gain);
    made_.has_missing.push_back(cut.has_missing);
    made_.goes_left.insert(made_.goes_left.end(), goes_left.begin(), goes_left.end());
  }

 private:
  CutCells& made_;
};

void write(const Split& split, CutCells& made) {
  made.threshold.push_back(split.threshold);
  made.feature.push_back(split.feature);
  made.default_left.push_back(split.default_left());
  made.categories.insert(made.categories.end(), split.categories.begin(), split.categories.end());
  made.category_start.push_back(std::ssize(made.categories));
}

void write(const BinnedNode& child, const Bounds& bounds, const NodeTotals::One& total,
           CutCells& made) {
  made.n_rows.push_back(child.size());
  made.key.push_back(child.key);
  made.bounds.push_back(bounds.lower);
  made.bounds.push_back(bounds.upper);
  made.lane.insert(made.lane.end(), total.lane.begin(), total.lane.end());
  made.sum.insert(made.sum.end(), total.sum.begin(), total.sum.end());
  made.begin.push_back(std::ssize(made.sum));
}

template <class Target>
CutCells cut_by(const KeptBins& bins, const BinnedGrowth& growth, const Target& target,
                const WaitingCells& cells, const GivenTables& tables, bool counts_rows,
                OfRoot& of_root) {
  CutCells made;
  NodeTotals totals;
  const bool are_sparse = Target::kSparse;
  SumsOfParts<Target> sums(bins, {tables, bins.n_bins.size(), counts_rows}, totals,
                           std::vector(of_root.features), growth, target, made);
  sums.go_on(of_root.least);
  for (const std::size_t c : indices(cells.n_rows.size(), 64)) {
    const NodeTotals::One total = one_of(cells.totals, c);
    totals = NodeTotals();
    for (std::size_t l = 0; l < total.lane.size(); ++l) totals.add(total.lane[l], total.sum[l]);
    totals.end_node();
    sums.next(c, cells.n_rows[c], are_sparse ? total.lane.size() : 2);
    TreeGrowth tree(bins, MovedRows<typename Target::Item>{}, growth, totals, sums);
    const BinnedNode cell{0, cells.n_rows[c], cells.depth[c], 0, cells.key[c], 0};
    Bounds bounds;
    if (cells.bounds.n_rows > 0) bounds = {cells.bounds.row(c)[0], cells.bounds.row(c)[1]};
    Split split;
    std::array<BinnedNode, 2> children{};
    made.is_cut.push_back(tree.split_alone(cell, bounds, split, children));
    if (!made.is_cut.back()) continue;
    write(split, made);
    for (const BinnedNode& child : children)
      write(child, tree.bounds_of(child.index), totals.of(child.index), made);
  }
  if (growth.ties_by_root) of_root.features = sums.features();
  of_root.least = sums.least();
  return made;
}

// -- the tree of all cuts

// Looks up how cells are cut, and notes which cell each node is.
struct LookedUp {
  using Node = BinnedNode;
  struct SplitInfo {
    double gain;
    bool is_cut;
    bool is_made() const { return is_cut; }
  };

  const DecidedCells& cells;
  std::vector<std::int32_t>& cell_of_node;

  static Node cell_of(std::int32_t number) {
    Node cell{};
    cell.end = 1;
    cell.index = number;
    return cell;
  }
  SplitInfo search(const Node& cell) const {
    const auto c = static_cast<std::size_t>(cell.index);
    return {cells.gain[c], cells.child[c] != kLeaf};
  }
  void divide(const Node& cell, const SplitInfo&, Split& split, Node& left, Node& right) const {
    const auto c = static_cast<std::size_t>(cell.index);
    split.feature = cells.feature[c];
    split.threshold = cells.threshold[c];
    split.set_default_left(cells.default_left[c]);
    const auto begin = static_cast<std::size_t>(cells.category_start[c]);
    const auto some = cells.categories.subspan(
        begin, static_cast<std::size_t>(cells.category_start[c + 1]) - begin);
    split.categories.assign(some.begin(), some.end());
    left = cell_of(cells.child[c]);
    right = cell_of(cells.child[c] + 1);
    cell_of_node.push_back(left.index);
    cell_of_node.push_back(right.index);
  }
  bool split(const Node& cell, Split& split, Node& left, Node& right) const {
    const SplitInfo cut = search(cell);
    if (cut.is_made()) divide(cell, cut, split, left, right);
    return cut.is_made();
  }
};

}  // namespace

CellTables tables_of_part(Table<const std::uint8_t> codes, std::span<const std::int32_t> order,
                          PartNumbers rows, Table<const std::int64_t> cells, std::size_t n_added,
                          const LanesOfCells& totals, const PartTarget& wanted) {
  CellTables made;
  with_target(wanted, wanted.counts_rows ? 2 : 1, 0, [&]<class Target>(const Target& target) {
    PartOfCells<Target> part(codes, target, wanted, made);
    for (const std::size_t c : indices(totals.size(), 64)) {
      const std::int64_t* const range = cells.row(c);
      part.add(order.subspan(static_cast<std::size_t>(range[0]),
                             static_cast<std::size_t>(range[1] - range[0])),
               rows, one_of(totals, c), c < n_added);
    }
  });
  return made;
}

CellTables added(const GivenTables& one, const GivenTables& other,
                 std::span<const std::int32_t> width) {
  CellTables made;
  made.n_bins.reserve(one.n_bins.size());
  made.bin.reserve(one.bin.size() + other.bin.size());
  made.sum.reserve(one.sum.size() + other.sum.size());
  made.about.assign(one.about.begin(), one.about.end());
  const std::size_t p = width.empty() ? 0 : one.n_bins.size() / width.size();
  const std::int64_t *from = one.sum.data(), *more = other.sum.data();
  const std::uint8_t *bin = one.bin.data(), *next = other.bin.data();
  for (const std::size_t c : indices(width.size(), 64 * p)) {
    const auto n_numbers = static_cast<std::size_t>(width[c]);
    const auto take = [&](const std::int64_t*& sums, const std::uint8_t*& at) {
      made.bin.push_back(*at++);
      made.sum.insert(made.sum.end(), sums, sums + n_numbers);
      sums += n_numbers;
    };
    for (std::size_t i = c * p; i < (c + 1) * p; ++i) {
      const std::uint8_t *const end = bin + one.n_bins[i], *const last = next + other.n_bins[i];
      const std::size_t before = made.bin.size();
      while (bin < end || next < last) {
        if (next == last || (bin < end && *bin < *next)) {
          take(from, bin);
        } else if (bin == end || *next < *bin) {
          take(more, next);
        } else {
          take(from, bin);
          ++next;
          std::int64_t* const sums = &*(made.sum.end() - static_cast<std::ptrdiff_t>(n_numbers));
          for (std::size_t l = 0; l < n_numbers; ++l) sums[l] += *more++;
        }
      }
      made.n_bins.push_back(static_cast<std::int32_t>(made.bin.size() - before));
    }
  }
  for (std::size_t d = 0; d < made.about.size(); d += 4) {
    std::int64_t* const about = made.about.data() + d;
    const std::int64_t* const beside = other.about.data() + d;
    about[0] = std::min(about[0], beside[0]);
    about[1] = std::max(about[1], beside[1]);
    about[2] += beside[2];
    about[3] += beside[3];
  }
  return made;
}

CellTables tables_of_some(const CellsInTables& told, const CellsInTables& above,
                          const LanesOfCells& lanes, Table<const std::int32_t> places,
                          bool counts_rows) {
  CellTables made;
  const std::size_t p = told.tables.n_bins.size() / std::max<std::size_t>(told.lanes.size(), 1);
  const StartsOfCells in_told(told, p, counts_rows), in_above(above, p, counts_rows);
  std::size_t n_bins = 0, n_sums = 0;  // at most
  for (std::size_t c = 0; c < lanes.size(); ++c) {
    const std::int32_t* const at = places.row(c);
    const auto [bins, sums] = at[1] < 0 ? in_told.size(at[0]) : in_above.size(at[1]);
    n_bins += bins;
    n_sums += sums;
  }
  made.bin.reserve(n_bins);
  made.sum.reserve(n_sums);
  for (const std::size_t c : indices(lanes.size(), 64 * p)) {
    const std::int32_t* const at = places.row(c);
    const auto own = static_cast<std::size_t>(at[0]);
    if (at[1] < 0) {
      in_told.copy(own, made);
      continue;
    }
    const auto up = static_cast<std::size_t>(at[1]);
    in_above.copy_rest(up, in_told, own, lanes.of(c), made);
    const std::span<const std::int64_t> about = told.tables.about;
    for (std::size_t k = 0; k < 3; ++k)
      made.about.push_back(at[2] < 0 ? 0 : about[4 * static_cast<std::size_t>(at[2]) + k]);
    made.about.push_back(above.tables.about[4 * up + 3] - about[4 * own + 3]);
  }
  return made;
}

std::uint64_t key_of_root(std::uint64_t seed) { return key_of_tree(seed, 0, Draw::nodes); }

CutCells cut_cells(const KeptBins& bins, const BinnedGrowth& growth, const PartTarget& wanted,
                   const WaitingCells& cells, const GivenTables& tables, OfRoot& of_root) {
  constexpr std::int64_t kLogs = 1 << 12;
  return with_target(wanted, growth.min_rows, kLogs, [&]<class Target>(const Target& target) {
    return cut_by(bins, growth, target, cells, tables, wanted.counts_rows, of_root);
  });
}

TreeOfCells tree_of_cells(const DecidedCells& cells, Order order, std::int64_t max_leaves) {
  TreeOfCells made;
  made.cell.push_back(0);
  const LookedUp rule{cells, made.cell};
  const BinnedNode root = LookedUp::cell_of(0);
  made.columns = order == Order::depth ? Growth<LookedUp>::whole(rule, root).columns()
                                       : grow_best_first(rule, root, max_leaves);
  return made;
}

void part_divide(Table<const std::uint8_t> codes, PartCells cells, const PartCuts& cuts,
                 std::span<std::int32_t> order, Table<std::int64_t> below) {
  const auto room = make_buffer<std::int32_t>(order.size());
  for (const std::size_t d : indices(cuts.cell.size())) {
    const std::int64_t cell = cuts.cell[d];
    const std::int64_t* const range =
        cell < cells.n_rows ? cells.row(cell) : below.row(cell - cells.n_rows);
    const auto begin = range[0], end = range[1];
    GoesLeft goes_left;
    std::copy_n(cuts.goes_left.row(d), goes_left.size(), goes_left.begin());
    const std::int64_t n_left =
        send(order.subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin)),
             CodesOfFeature{codes.row(cuts.feature[d])}, goes_left, room.get());
    std::int64_t* const to = below.row(2 * d);
    to[0] = begin;
    to[1] = to[2] = begin + n_left;
    to[3] = end;
  }
}

}  // namespace certree
