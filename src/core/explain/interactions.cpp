#include "explain/interactions.hpp"

#include <unordered_map>

#include "explain/paths.hpp"

namespace certree {
namespace {

// Consecutive cells that a leaf accepts, all with the same part of their rows.
struct Run {
  std::int32_t begin, end;
  double part;
};

// What a leaf asks of one feature of its path.
struct Asked {
  std::int32_t feature;
  double chance;  // probability of the cells that it accepts
  std::size_t first_run, last_run;
};

// A leaf that has a chance.
struct Box {
  std::size_t node;  // among all nodes
  double chance;
  std::size_t first, last;  // of what it asks, by feature
};

struct Boxes {
  std::vector<Box> boxes;
  std::vector<Asked> asked;
  std::vector<Run> runs;

  std::span<const Asked> of(const Box& box) const {
    return {asked.data() + box.first, box.last - box.first};
  }
  std::span<const Run> of(const Asked& one) const {
    return {runs.data() + one.first_run, one.last_run - one.first_run};
  }

  void append(const Boxes& others) {
    for (Box box : others.boxes) {
      box.first += asked.size();
      box.last += asked.size();
      boxes.push_back(box);
    }
    for (Asked one : others.asked) {
      one.first_run += runs.size();
      one.last_run += runs.size();
      asked.push_back(one);
    }
    runs.insert(runs.end(), others.runs.begin(), others.runs.end());
  }
};

// Which cells have a mass, and the masses of each feature in a row.
struct Masses {
  explicit Masses(const Cells& cells)
      : n_cells(static_cast<std::size_t>(cells.mass.width), 0),
        most(static_cast<std::size_t>(cells.mass.n_rows)),
        mass(n_cells.size() * most) {
    for (std::size_t c = 0; c < most; ++c)
      for (std::size_t j = 0; j < n_cells.size(); ++j) {
        const double own = cells.mass.row(c)[j];
        mass[j * most + c] = own;
        if (own > 0.0) n_cells[j] = c + 1;
      }
  }
  const double* of(std::int32_t j) const { return &mass[static_cast<std::size_t>(j) * most]; }
  std::size_t size(std::int32_t j) const { return n_cells[static_cast<std::size_t>(j)]; }

  std::vector<std::size_t> n_cells;
  std::size_t most;
  std::vector<double> mass;
};

template <class Steps>
class Boxing {
 public:
  Boxing(const TreesView& trees, const Steps& steps, const MissingRouting& missing,
         const Cells& cells, const Masses& masses)
      : trees_(trees), steps_(steps), branches_(branches), cells_(cells), masses_(masses) {}

  // The leaves of a tree as boxes. Parts of cells that go on to each node come from the root down.
  Boxes of(const Paths& paths) {
    accepted_.assign(paths.size() * masses_.most, 0.0);
    range_.assign(paths.size(), {0, 0});
    Boxes found;
    StepCounter counter;
    for (std::size_t v = 0; v < paths.size(); ++v) {
      if (paths.is_leaf(v)) {
        add_leaf(paths, v, found);
        continue;
      }
      const auto left = static_cast<std::size_t>(paths.left[v]);
      const std::int32_t e = paths.before[left];
      const auto above = static_cast<std::size_t>(std::max(e, 0));
      const Range cells = e < 0 ? Range{0, masses_.size(paths.compared[left])} : range_[above];
      counter.add(static_cast<std::int64_t>(cells.end - cells.begin));
      for (std::size_t c = cells.begin; c < cells.end; ++c) {
        const double whole = e < 0 ? 1.0 : accepted(above)[c];
        if (whole == 0.0) continue;
        go_from(trees_, steps_, branches_, paths, v, cells_.value.row(c),
                [&](std::size_t side, double part) { accept(left + side, c, whole * part); });
      }
    }
    counter.flush();
    return found;
  }

 private:
  struct Range {
    std::size_t begin, end;
  };

  double* accepted(std::size_t v) { return &accepted_[v * masses_.most]; }

  void accept(std::size_t v, std::size_t c, double part) {
    accepted(v)[c] = part;
    if (range_[v].end == 0) range_[v].begin = c;
    range_[v].end = c + 1;
  }

  void add_leaf(const Paths& paths, std::size_t v, Boxes& found) {
    paths.last_nodes(v, nodes_);
    std::ranges::sort(nodes_, {},
                      [&](std::int32_t u) { return paths.compared[static_cast<std::size_t>(u)]; });
    Box box{paths.root + v, 1.0, found.asked.size(), 0};
    const std::size_t n_runs = found.runs.size();
    for (const std::int32_t u : nodes_) {
      const auto node = static_cast<std::size_t>(u);
      const Asked own = asked(paths.compared[node], accepted(node), range_[node], found.runs);
      found.asked.push_back(own);
      box.chance *= own.chance;
    }
    box.last = found.asked.size();
    if (box.chance > 0.0) {
      found.boxes.push_back(box);
      return;
    }
    // No row comes here.
    found.asked.resize(box.first);
    found.runs.resize(n_runs);
  }

  Asked asked(std::int32_t feature, const double* part, const Range& cells,
              std::vector<Run>& runs) const {
    Asked own{feature, 0.0, runs.size(), 0};
    const double* const mass = masses_.of(feature);
    for (std::size_t place = cells.begin; place < cells.end; ++place) {
      if (part[place] == 0.0) continue;
      own.chance += mass[place] * part[place];
      const auto c = static_cast<std::int32_t>(place);
      if (runs.size() > own.first_run && runs.back().end == c && runs.back().part == part[place])
        ++runs.back().end;
      else
        runs.push_back({c, c + 1, part[place]});
    }
    own.last_run = runs.size();
    return own;
  }

  const TreesView& trees_;
  const Steps& steps_;
  const MissingRouting& branches_;
  const Cells& cells_;
  const Masses& masses_;
  std::vector<double> accepted_;  // parts of the cells that go on to each node
  std::vector<Range> range_;      // of those that are not 0
  std::vector<std::int32_t> nodes_;
};

Boxes boxes_of(const TreesView& trees, const MissingRouting& missing, const Cells& cells,
               const Masses& masses, int n_threads) {
  const std::vector<Paths> paths = paths_of_all(trees, n_threads);
  std::vector<Boxes> parts(paths.size());
  with_router(trees.nodes, [&](const auto& steps) {
    parallel_for(std::ssize(paths), n_threads, [&](std::int64_t t) {
      Boxing boxing(trees, steps, branches, cells, masses);
      parts[static_cast<std::size_t>(t)] = boxing.of(paths[static_cast<std::size_t>(t)]);
    });
  });
  Boxes all;
  for (const Boxes& part : parts) all.append(part);
  return all;
}

// -- parts of one order, as tables over cells

// What a leaf adds to the table of one feature, or of two.
struct Entry {
  std::size_t box, first, second;  // the latter among all that is asked
};

// Entries by the features that they belong to.
struct Entries {
  std::vector<std::int32_t> first, second;  // the features of each group
  std::vector<std::size_t> begin;
  std::vector<Entry> entries;

  std::span<const Entry> of(std::size_t group) const {
    return {entries.data() + begin[group], begin[group + 1] - begin[group]};
  }
};

// Calls say(box, first, second) for every two features of every box; for each one where single.
template <class Say>
void each_pair(const Boxes& all, bool single, const Say& say) {
  StepCounter counter;
  for (std::size_t b = 0; b < all.boxes.size(); ++b) {
    const Box& box = all.boxes[b];
    for (std::size_t i = box.first; i < box.last; ++i) {
      counter.add(static_cast<std::int64_t>(box.last - i));
      if (single)
        say(b, i, i);
      else
        for (std::size_t j = i + 1; j < box.last; ++j) say(b, i, j);
    }
  }
  counter.flush();
}

Entries sorted(const Boxes& all, bool single) {
  // Groups are numbered as they come, and counted; then in the order of their features.
  std::unordered_map<std::uint64_t, std::uint32_t> number;
  std::vector<std::uint32_t> group;
  std::vector<std::size_t> count;
  each_pair(all, single, [&](std::size_t, std::size_t i, std::size_t j) {
    const std::uint64_t key = (static_cast<std::uint64_t>(all.asked[i].feature) << 32) |
                              static_cast<std::uint64_t>(all.asked[j].feature);
    const auto next = static_cast<std::uint32_t>(count.size());
    const auto [place, is_new] = number.try_emplace(key, next);
    if (is_new) count.push_back(0);
    ++count[place->second];
    group.push_back(place->second);
  });
  std::vector<std::pair<std::uint64_t, std::uint32_t>> ordered(number.begin(), number.end());
  std::ranges::sort(ordered);
  Entries found;
  found.begin.assign(1, 0);
  for (const auto& [key, own] : ordered) {
    found.first.push_back(static_cast<std::int32_t>(key >> 32));
    found.second.push_back(static_cast<std::int32_t>(key & 0xffffffffu));
    const std::size_t begin = found.begin.back();
    found.begin.push_back(begin + std::exchange(count[own], begin));
  }
  found.entries.resize(group.size());
  std::size_t at = 0;
  each_pair(all, single, [&](std::size_t b, std::size_t i, std::size_t j) {
    found.entries[count[group[at++]]++] = {b, i, j};
  });
  return found;
}

// The sums of a table of differences along both of its sides; the last row and column are dropped.
void add_up(std::size_t n, std::size_t m, std::vector<double>& table) {
  for (std::size_t c = 0; c < n; ++c) {
    double* const row = &table[c * (m + 1)];
    for (std::size_t d = 1; d < m; ++d) row[d] += row[d - 1];
    if (c > 0)
      for (std::size_t d = 0; d < m; ++d) row[d] += row[d - (m + 1)];
  }
}

// The part of the variance that one group of features makes together.
class Part {
 public:
  Part(const TreesView& trees, const Boxes& all, const Masses& masses)
      : trees_(trees), all_(all), masses_(masses) {}

  // The variance of one output. Afterwards at() is the part itself.
  double variance_of(const Entries& entries, std::size_t group, std::int64_t k, bool single) {
    const std::int32_t a = entries.first[group], b = entries.second[group];
    n_ = masses_.size(a);
    m_ = single ? 1 : masses_.size(b);
    table_.assign((n_ + 1) * (m_ + 1), 0.0);
    for (const Entry& entry : entries.of(group)) add(entry, k, single);
    add_up(n_, m_, table_);
    const double* const rows = masses_.of(a);
    if (!single) center_rows(masses_.of(b));
    center_columns(rows);
    double variance = 0.0;
    for (std::size_t c = 0; c < n_; ++c)
      for (std::size_t d = 0; d < m_; ++d) {
        const double own = at(c, d);
        variance += rows[c] * (single ? 1.0 : masses_.of(b)[d]) * own * own;
      }
    return variance;
  }

  double at(std::size_t c, std::size_t d) const { return table_[c * (m_ + 1) + d]; }

 private:
  // Differences at the corners of the cells that a leaf accepts.
  void add(const Entry& entry, std::int64_t k, bool single) {
    const Box& box = all_.boxes[entry.box];
    const Asked &first = all_.asked[entry.first], &second = all_.asked[entry.second];
    const double others = box.chance / (first.chance * (single ? 1.0 : second.chance));
    const double said = trees_.value.row(box.node)[k] * others;
    for (const Run& down : all_.of(first)) {
      if (single) {
        add_rows(down, 0, 1, said * down.part);
        continue;
      }
      for (const Run& along : all_.of(second))
        add_rows(down, static_cast<std::size_t>(along.begin), static_cast<std::size_t>(along.end),
                 said * down.part * along.part);
    }
  }
  void add_rows(const Run& down, std::size_t begin, std::size_t end, double said) {
    double* const first = &table_[static_cast<std::size_t>(down.begin) * (m_ + 1)];
    double* const last = &table_[static_cast<std::size_t>(down.end) * (m_ + 1)];
    first[begin] += said;
    first[end] -= said;
    last[begin] -= said;
    last[end] += said;
  }

  // Take means away, by the masses of the cells.
  void center_rows(const double* mass) {
    for (std::size_t c = 0; c < n_; ++c) {
      double* const row = &table_[c * (m_ + 1)];
      const double mean = std::inner_product(row, row + m_, mass, 0.0);
      for (std::size_t d = 0; d < m_; ++d) row[d] -= mean;
    }
  }
  void center_columns(const double* mass) {
    mean_.assign(m_, 0.0);
    for (std::size_t c = 0; c < n_; ++c)
      for (std::size_t d = 0; d < m_; ++d) mean_[d] += mass[c] * at(c, d);
    for (std::size_t c = 0; c < n_; ++c)
      for (std::size_t d = 0; d < m_; ++d) table_[c * (m_ + 1) + d] -= mean_[d];
  }

  const TreesView& trees_;
  const Boxes& all_;
  const Masses& masses_;
  std::size_t n_ = 0, m_ = 0;
  std::vector<double> table_, mean_;
};

// So many tasks share the groups, whatever the number of threads: sums come out alike.
constexpr std::int64_t kTasks = 32;

// variance: (n_groups,). Adds the parts at the draws to what is fitted.
void analyse(const TreesView& trees, const Boxes& all, const Masses& masses, bool single,
             const Entries& entries, const Table<const std::int32_t>& draws, int n_threads,
             std::span<double> variance, const Table<double>& fitted) {
  const auto n_groups = static_cast<std::int64_t>(entries.first.size());
  std::vector<std::vector<double>> sums(static_cast<std::size_t>(kTasks));
  parallel_for(kTasks, n_threads, [&](std::int64_t task) {
    Part part(trees, all, masses);
    auto& sum = sums[static_cast<std::size_t>(task)];
    sum.assign(fitted.values().size(), 0.0);
    for (std::int64_t g = task; g < n_groups; g += kTasks) {
      const auto group = static_cast<std::size_t>(g);
      const std::int32_t a = entries.first[group], b = entries.second[group];
      variance[group] = 0.0;
      for (std::int64_t k = 0; k < trees.value.width; ++k) {
        count_steps_out_of_line(static_cast<std::int64_t>(
            entries.of(group).size() + masses.size(a) * (single ? 1 : masses.size(b))));
        variance[group] += part.variance_of(entries, group, k, single);
        for (std::int64_t i = 0; i < draws.n_rows; ++i) {
          const auto c = static_cast<std::size_t>(draws.row(i)[a]);
          const auto d = static_cast<std::size_t>(single ? 0 : draws.row(i)[b]);
          sum[static_cast<std::size_t>(i * fitted.width + k)] += part.at(c, d);
        }
      }
    }
  });
  for (const auto& sum : sums)
    for (std::size_t i = 0; i < sum.size(); ++i) fitted.data[i] += sum[i];
}

// -- all orders

// What is said on average, by output.
std::vector<double> mean_of(const TreesView& trees, const Boxes& all) {
  std::vector<double> mean(static_cast<std::size_t>(trees.value.width), 0.0);
  for (const Box& box : all.boxes)
    for (std::size_t k = 0; k < mean.size(); ++k)
      mean[k] += box.chance * trees.value.row(box.node)[k];
  return mean;
}

// Probability that both of two boxes hold a row, over the product of their own.
double together(const Boxes& all, const Masses& masses, const Box& one, const Box& other) {
  double ratio = 1.0;
  std::size_t i = one.first, j = other.first;
  while (i < one.last && j < other.last) {
    const Asked &a = all.asked[i], &b = all.asked[j];
    if (a.feature != b.feature) {
      a.feature < b.feature ? ++i : ++j;
      continue;
    }
    const double* const mass = masses.of(a.feature);
    double both = 0.0;
    for (const Run& x : all.of(a))
      for (const Run& y : all.of(b))
        for (std::int32_t c = std::max(x.begin, y.begin); c < std::min(x.end, y.end); ++c)
          both += mass[c] * x.part * y.part;
    if (both == 0.0) return 0.0;
    ratio *= both / (a.chance * b.chance);
    ++i, ++j;
  }
  return ratio;
}

double whole_variance(const TreesView& trees, const Boxes& all, const Masses& masses,
                      int n_threads) {
  std::vector<double> rows(all.boxes.size());
  parallel_for(std::ssize(rows), n_threads, [&](std::int64_t place) {
    const auto b = static_cast<std::size_t>(place);
    const Box& own = all.boxes[b];
    count_steps_out_of_line(16 * static_cast<std::int64_t>(b + 1));
    double sum = 0.0;
    for (std::size_t a = 0; a <= b; ++a) {
      const Box& other = all.boxes[a];
      double products = 0.0;
      for (std::int64_t k = 0; k < trees.value.width; ++k)
        products += trees.value.row(own.node)[k] * trees.value.row(other.node)[k];
      // Their covariance, once for each order of the two.
      const double covariance = together(all, masses, own, other) - 1.0;
      sum += (a < b ? 2.0 : 1.0) * products * other.chance * covariance;
    }
    rows[b] = own.chance * sum;
  });
  return std::accumulate(rows.begin(), rows.end(), 0.0);
}

}  // namespace

Interactions interactions(const TreesView& trees, const MissingRouting& missing, const Cells& cells,
                          Table<const std::int32_t> draws, bool wants_total, int n_threads,
                          std::span<double> single, Table<double> fitted) {
  const Masses masses(cells);
  const Boxes all = boxes_of(trees, branches, cells, masses, n_threads);
  const std::vector<double> mean = mean_of(trees, all);
  for (std::int64_t i = 0; i < fitted.n_rows; ++i) std::ranges::copy(mean, fitted.row(i));
  const Entries alone = sorted(all, true);
  std::vector<double> variance(alone.first.size());
  analyse(trees, all, masses, true, alone, draws, n_threads, variance, fitted);
  fill(single, 0.0);
  for (std::size_t g = 0; g < variance.size(); ++g)
    single[static_cast<std::size_t>(alone.first[g])] = variance[g];
  Entries pairs = sorted(all, false);
  Interactions found;
  found.variance.resize(pairs.first.size());
  analyse(trees, all, masses, false, pairs, draws, n_threads, found.variance, fitted);
  found.first = std::move(pairs.first);
  found.second = std::move(pairs.second);
  if (wants_total) found.total = whole_variance(trees, all, masses, n_threads);
  return found;
}

}  // namespace certree
