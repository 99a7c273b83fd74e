// Each thread takes the next task from a shared counter until none is left.

#include "parallel.hpp"

#include <condition_variable>
#include <mutex>

namespace certree {

void parallel_for(std::int64_t n_tasks, int n_threads, Task task) {
  const auto workers = std::min<std::int64_t>(std::max(n_threads, 1), n_tasks);
  if (workers <= 1) {
    for (std::int64_t i = 0; i < n_tasks; ++i) task(i);
    return;
  }
  Call* const call = thread_work.call;
  std::atomic<std::int64_t> next{0};
  std::exception_ptr failure;
  std::int64_t n_running = workers;
  std::mutex lock;  // guards failure and n_running
  std::condition_variable all_ended;
  const auto run = [&] {
    std::exception_ptr caught;
    try {
      for (std::int64_t i = next++; i < n_tasks; i = next++) task(i);
    } catch (...) {
      caught = std::current_exception();
      next = n_tasks;  // the other threads take no further task
    }
    const std::lock_guard<std::mutex> hold(lock);
    if (!failure) failure = caught;
    if (--n_running == 0) all_ended.notify_one();
  };
  std::vector<std::thread> threads;
  threads.reserve(static_cast<std::size_t>(workers - 1));
  try {
    while (std::ssize(threads) < workers - 1)
      threads.emplace_back([&] {
        const CallScope scope(call);
        run();
      });
  } catch (...) {
    // The system started fewer threads than requested: those that run and this one do all tasks.
    const std::lock_guard<std::mutex> hold(lock);
    n_running -= workers - 1 - std::ssize(threads);
  }
  run();
  // Only the caller's thread can poll for signals, so it goes on polling while the others work.
  std::unique_lock<std::mutex> hold(lock);
  while (!all_ended.wait_for(hold, Call::kPollInterval, [&] { return n_running == 0; })) {
    hold.unlock();
    if (call) call->poll();
    hold.lock();
  }
  hold.unlock();
  for (auto& thread : threads) thread.join();
  if (failure) std::rethrow_exception(failure);
}

}  // namespace certree
