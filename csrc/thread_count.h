// How many threads this process should use.
#pragma once

namespace magmadnn {

inline constexpr int max_threads = 1024;

/// Cores that the process may run on: its affinity mask, further limited by the CPU quota of its control
/// groups.
int available_cores();

/// MAGMADNN_THREADS if it is set, else available_cores(). Throws std::invalid_argument for a bad value.
int default_threads();

}  // namespace magmadnn
