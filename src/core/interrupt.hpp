// Cooperative interruption: how Ctrl-C stops a call of the core in the middle of its loops.
//
// Loops count their steps. After every kStepsBetweenChecks steps a thread checks whether its call
// is interrupted, and throws Interrupted if so. Steps are counted instead of seconds, so that the
// checks of a loop come at the same places on every machine, and tests can stop it at each of them.
#pragma once

#include <atomic>
#include <chrono>
#include <exception>
#include <iterator>
#include <string>
#include <thread>

#include "arrays.hpp"

namespace certree {

// Thrown by a check when the call is interrupted.
class Interrupted : public std::exception {
 public:
  const char* what() const noexcept override { return "interrupted"; }
};

// Steps between two checks of a thread: about a tenth of a millisecond to a millisecond of work.
inline constexpr std::int64_t kStepsBetweenChecks = std::int64_t{1} << 17;

// When the threads of a call check. Tests set interrupt_at, the number of the check that
// interrupts.
inline constexpr std::int64_t kNeverInterrupts = std::numeric_limits<std::int64_t>::max();
struct CheckSchedule {
  std::int64_t steps_between_checks = kStepsBetweenChecks;
  std::int64_t interrupt_at = kNeverInterrupts;
};

// One call of the core from outside, which may run on several threads.
class Call {
 public:
  static constexpr std::chrono::milliseconds kPollInterval{50};

  virtual ~Call() = default;
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  // Counts one check; throws Interrupted if the call is to stop.
  void check();
  // Returns whether the call is to stop. On the thread that made the call it first polls for
  // signals, at most once per kPollInterval. Counts no check.
  bool poll();
  std::int64_t n_checks() const { return n_checks_; }
  std::int64_t steps_between_checks() const { return schedule_.steps_between_checks; }
  // Folder for files that hold the large arrays of the call; empty: they are in memory.
  const std::string& scratch_folder() const { return scratch_folder_; }

 protected:
  Call(CheckSchedule schedule, std::string scratch_folder)
      : schedule_(schedule), scratch_folder_(std::move(scratch_folder)) {}
  // Whether the caller wants to stop the call. Only the thread that made the call asks.
  virtual bool has_stop_request() = 0;

 private:
  using Clock = std::chrono::steady_clock;

  const CheckSchedule schedule_;
  const std::string scratch_folder_;
  const std::thread::id caller_ = std::this_thread::get_id();
  Clock::time_point next_poll_ = Clock::now() + kPollInterval;
  std::atomic<bool> is_stopped_ = false;
  std::atomic<std::int64_t> n_checks_ = 0;
};

// The call that a thread works for (or null), and the steps it may take before its next check.
struct ThreadWork {
  Call* call;
  std::int64_t steps_left;
};
inline constinit thread_local ThreadWork thread_work{nullptr, kStepsBetweenChecks};

// Assigns the current thread to a call for the lifetime of this object.
class CallScope {
 public:
  explicit CallScope(Call* call)
      : before_(std::exchange(thread_work, ThreadWork{call, call ? call->steps_between_checks()
                                                                 : kStepsBetweenChecks})) {}
  ~CallScope() { thread_work = before_; }
  CallScope(const CallScope&) = delete;
  CallScope& operator=(const CallScope&) = delete;

 private:
  ThreadWork before_;
};

// Checks whether the call of this thread is interrupted, and starts to count steps anew.
void check_interrupt();

// Counts steps of this thread, and checks for an interrupt when enough have been counted.
inline void count_steps(std::integral auto steps) {
  if ((thread_work.steps_left -= static_cast<std::int64_t>(steps)) < 0) check_interrupt();
}

// The same, but never inlined: for loops that count many steps at once, so seldom.
void count_steps_out_of_line(std::int64_t steps);
inline constexpr std::int64_t kStepsAtOnce = kStepsBetweenChecks / 4;

// Number of iterations, out of n of so many steps each, that are counted together.
inline std::int64_t iterations_at_once(std::int64_t n, std::int64_t steps) {
  if (steps <= kStepsAtOnce && n * steps <= kStepsAtOnce) [[likely]]
    return n;
  return std::max<std::int64_t>(kStepsAtOnce / steps, 1);
}

// Collects the steps of a loop whose number is not known beforehand, such as those of a search, and
// counts them kStepsAtOnce at a time. The owner calls flush() when the loop has ended.
class StepCounter {
 public:
  void add(std::int64_t steps = 1) {
    if ((steps_ += steps) >= kStepsAtOnce) [[unlikely]]
      flush();
  }
  void flush() { count_steps_out_of_line(std::exchange(steps_, 0)); }

 private:
  std::int64_t steps_ = 0;
};

// The range 0, ..., n - 1 of a loop that counts `steps` steps for each iteration; descending if
// is_reversed.
template <bool is_reversed>
class Indices {
 public:
  Indices(std::integral auto n, std::integral auto steps)
      : n_(static_cast<std::size_t>(n)), steps_(static_cast<std::int64_t>(steps)) {}

  class Iterator {
   public:
    explicit Iterator(const Indices& indices)
        : left_(static_cast<std::int64_t>(indices.n_)),
          steps_(indices.steps_),
          at_once_(iterations_at_once(left_, steps_)),
          index_(is_reversed ? indices.n_ - 1 : 0) {
      count();
    }
    std::size_t operator*() const { return index_; }
    void operator++() {
      index_ += is_reversed ? std::size_t(-1) : 1;
      --left_;
      if (--counted_ == 0) [[unlikely]]
        count();
    }
    bool operator!=(std::default_sentinel_t) const { return left_ != 0; }

   private:
    // Counts the steps of the next iterations before they run.
    void count() {
      counted_ = std::min(left_, at_once_);
      if (counted_ > 0) count_steps_out_of_line(counted_ * steps_);
    }

    std::int64_t left_, steps_, at_once_, counted_ = 0;
    std::size_t index_;
  };

  Iterator begin() const { return Iterator(*this); }
  std::default_sentinel_t end() const { return {}; }

 private:
  std::size_t n_;
  std::int64_t steps_;
};

// Loop over 0, ..., n - 1, upwards or downwards, that Ctrl-C can stop: for (auto i : indices(n)).
// steps: about how many steps one iteration takes.
inline auto indices(std::integral auto n, std::integral auto steps) {
  return Indices<false>(n, steps);
}
inline auto indices(std::integral auto n) { return Indices<false>(n, 1); }
inline auto indices_down(std::integral auto n, std::integral auto steps) {
  return Indices<true>(n, steps);
}
inline auto indices_down(std::integral auto n) { return Indices<true>(n, 1); }

// Divides a column into consecutive chunks and counts the steps of each, so that the inner loops
// over chunks can be plain ones. Columns of at most kShort entries are not counted: growers have
// millions of nodes with a few rows, and count the steps of those themselves.
template <class T>
class Chunks {
 public:
  explicit Chunks(std::span<T> column) : column_(column) {}

  class Iterator {
   public:
    explicit Iterator(std::span<T> rest) : rest_(rest) { count(); }
    std::span<T> operator*() const { return rest_.first(counted_); }
    void operator++() {
      rest_ = rest_.subspan(counted_);
      count();
    }
    bool operator!=(std::default_sentinel_t) const { return !rest_.empty(); }

   private:
    static constexpr std::size_t kShort = 32;

    void count() {
      counted_ = std::min(rest_.size(), static_cast<std::size_t>(kStepsAtOnce));
      if (counted_ > kShort) [[unlikely]]
        count_steps_out_of_line(static_cast<std::int64_t>(counted_));
    }

    std::span<T> rest_;
    std::size_t counted_ = 0;
  };

  Iterator begin() const { return Iterator(column_); }
  std::default_sentinel_t end() const { return {}; }

 private:
  std::span<T> column_;
};

template <class T>
auto chunks(std::span<T> column) {
  return Chunks<T>(column);
}
template <class T>
auto chunks(T* first, T* last) {
  return Chunks<T>(std::span<T>(first, static_cast<std::size_t>(last - first)));
}

// Calls algorithm(f), where a standard algorithm, such as std::sort of n items, calls f about once
// per item or comparison. Returns its result. For long inputs f also counts steps, so that the
// algorithm can be interrupted.
template <class F, class Algorithm>
auto with_interrupt_checks(std::integral auto n, const F& f, const Algorithm& algorithm) {
  count_steps(n);
  if (std::cmp_less(n, kStepsBetweenChecks)) return algorithm(f);
  StepCounter counter;
  return algorithm([&](const auto&... items) {
    counter.add();
    return f(items...);
  });
}

// -- algorithms of the standard library that can be interrupted

template <class T>
void fill(std::span<T> column, T value) {
  for (const auto chunk : chunks(column)) std::ranges::fill(chunk, value);
}

// Appends `from` to `to`.
template <class T>
void append(const std::vector<T>& from, std::vector<T>& to) {
  for (const auto chunk : chunks(std::span(from))) to.insert(to.end(), chunk.begin(), chunk.end());
}

// Appends every value of `from`, plus `shift`, to `to`.
template <class T>
void append_shifted(const std::vector<T>& from, T shift, std::vector<T>& to) {
  for (const auto chunk : chunks(std::span(from)))
    for (const T value : chunk) to.push_back(value + shift);
}

template <class T, class Predicate>
bool all_of(std::span<T> column, const Predicate& predicate) {
  for (const auto chunk : chunks(column))
    if (!std::ranges::all_of(chunk, predicate)) return false;
  return true;
}

}  // namespace certree
