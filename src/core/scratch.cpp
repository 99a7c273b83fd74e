#include "scratch.hpp"

#if defined(__linux__)
#include <cstring>

#include <fcntl.h>
#include <unistd.h>
#endif

namespace certree {

#if defined(__linux__)
namespace {

// A file descriptor that is closed at the end of its scope.
struct File {
  int descriptor;
  explicit File(int open) : descriptor(open) {}
  ~File() {
    if (descriptor >= 0) close(descriptor);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
};

[[noreturn]] void fail(std::size_t bytes, int error, const std::string& folder) {
  throw ScratchError(std::to_string(bytes) + " more bytes of scratch are needed (" +
                     std::strerror(error) +
                     "); the variable TMPDIR names another folder: " + folder);
}

}  // namespace

void* map_scratch(std::size_t bytes) {
  const Call* const call = thread_work.call;
  if (!call || call->scratch_folder().empty()) return nullptr;
  const std::string& folder = call->scratch_folder();
  std::string name = folder + "/array-XXXXXX";
  const File file(mkostemp(name.data(), O_CLOEXEC));
  if (file.descriptor < 0) fail(bytes, errno, folder);
  unlink(name.c_str());
  const int full = posix_fallocate(file.descriptor, 0, static_cast<off_t>(bytes));
  if (full != 0) fail(bytes, full, folder);
  void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.descriptor, 0);
  if (memory == MAP_FAILED) fail(bytes, errno, folder);
  return memory;
}

void unmap_scratch(void* memory, std::size_t bytes) noexcept { munmap(memory, bytes); }
#else
void* map_scratch(std::size_t) { return nullptr; }
void unmap_scratch(void*, std::size_t) noexcept {}
#endif

}  // namespace certree
