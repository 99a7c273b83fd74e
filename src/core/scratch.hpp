// Large arrays in files, so that a fit may need more memory than the machine has.
//
// A call that names a folder maps its large buffers to files there. The files are deleted at once:
// their space is free again when the buffer is, whatever happens. Space is allocated before it is
// used, as a write to a mapped file on a full disk would end the process.
#pragma once

#include <stdexcept>

#include "interrupt.hpp"

namespace certree {

// Thrown when a file for an array cannot be made.
class ScratchError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace certree
