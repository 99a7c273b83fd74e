// parallel_for: the one place where the core starts threads.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace certree {

// Calls task(i) for i = 0 .. n_tasks - 1 on at most n_threads threads. Tasks must not share what
// they write: then the result does not depend on n_threads. The first exception is thrown to the
// caller.
template <class Task>
void parallel_for(std::int64_t n_tasks, int n_threads, const Task& task) {
  const auto workers = std::min<std::int64_t>(std::max(n_threads, 1), n_tasks);
  if (workers <= 1) {
    for (std::int64_t i = 0; i < n_tasks; ++i) task(i);
    return;
  }
  std::atomic<std::int64_t> next{0};
  std::exception_ptr failure;
  std::mutex failure_lock;
  const auto work = [&] {
    try {
      for (std::int64_t i = next++; i < n_tasks; i = next++) task(i);
    } catch (...) {
      const std::lock_guard<std::mutex> hold(failure_lock);
      if (!failure) failure = std::current_exception();
      next = n_tasks;
    }
  };
  std::vector<std::thread> threads;
  threads.reserve(static_cast<std::size_t>(workers - 1));
  try {
    for (std::int64_t t = 1; t < workers; ++t) threads.emplace_back(work);
  } catch (...) {
    // The system gave fewer threads than asked for; those that run, and this one, do the work.
  }
  work();
  for (auto& thread : threads) thread.join();
  if (failure) std::rethrow_exception(failure);
}

}  // namespace certree
