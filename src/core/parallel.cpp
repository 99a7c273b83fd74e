// Threads, each of which takes the next task until there is none.

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
  std::mutex lock;  // of the two
  std::condition_variable ended;
  const auto run = [&] {
    std::exception_ptr own;
    try {
      for (std::int64_t i = next++; i < n_tasks; i = next++) task(i);
    } catch (...) {
      own = std::current_exception();
      next = n_tasks;
    }
    const std::lock_guard<std::mutex> hold(lock);
    if (!failure) failure = own;
    if (--n_running == 0) ended.notify_one();
  };
  std::vector<std::thread> threads;
  threads.reserve(static_cast<std::size_t>(workers - 1));
  try {
    while (std::ssize(threads) < workers - 1)
      threads.emplace_back([&] {
        const CallScope here(call);
        run();
      });
  } catch (...) {
    // The system gave fewer threads than asked for; those that run, and this one, do the work.
    const std::lock_guard<std::mutex> hold(lock);
    n_running -= workers - 1 - std::ssize(threads);
  }
  run();
  // Only this thread can ask whether the call is to stop, so it does while others work.
  std::unique_lock<std::mutex> hold(lock);
  while (!ended.wait_for(hold, Call::kBetweenQuestions, [&] { return n_running == 0; })) {
    hold.unlock();
    if (call) call->is_to_stop();
    hold.lock();
  }
  hold.unlock();
  for (auto& thread : threads) thread.join();
  if (failure) std::rethrow_exception(failure);
}

}  // namespace certree
