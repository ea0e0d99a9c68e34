#include "thread_count.h"

#include <sched.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>

namespace magmadnn {

namespace {

namespace fs = std::filesystem;
constexpr double unlimited = std::numeric_limits<double>::infinity();

int cores_of_affinity_mask() {
    // The kernel refuses a mask smaller than its own.
    for (int capacity = 1024; capacity <= (1 << 20); capacity *= 2) {
        cpu_set_t* mask = CPU_ALLOC(capacity);
        if (!mask) break;
        const size_t bytes = CPU_ALLOC_SIZE(capacity);
        const bool known = sched_getaffinity(0, bytes, mask) == 0;
        const int cores = known ? CPU_COUNT_S(bytes, mask) : 0;
        const bool too_small = !known && errno == EINVAL;
        CPU_FREE(mask);
        if (cores > 0) return cores;
        if (!too_small) break;
    }
    return static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
}

/// The quota that one control group sets, in cores. Version 2 writes "max" and version 1 -1 for none; a file
/// that is missing or unreadable sets none.
double quota_of_group(const fs::path& group) {
    double quota = 0, period = 0;
    if (std::ifstream file(group / "cpu.max"); file >> quota >> period) {
    } else {
        std::ifstream quota_file(group / "cpu.cfs_quota_us"), period_file(group / "cpu.cfs_period_us");
        if (!(quota_file >> quota) || !(period_file >> period)) return unlimited;
    }
    return quota > 0 && period > 0 ? quota / period : unlimited;
}

/// The tightest quota of a group and those around it, up to the root of the hierarchy.
double quota_up_to(const fs::path& root, const std::string& group) {
    double quota = quota_of_group(root);
    fs::path folder = root;
    for (const fs::path& part : fs::path(group).relative_path()) {
        folder /= part;
        quota = std::min(quota, quota_of_group(folder));
    }
    return quota;
}

double cpu_quota() {
    double quota = unlimited;
    std::ifstream groups("/proc/self/cgroup");
    for (std::string line; std::getline(groups, line);) {
        // id:controllers:path, without controllers in version 2
        std::istringstream fields(line);
        std::string id, controllers, group;
        std::getline(fields, id, ':');
        std::getline(fields, controllers, ':');
        std::getline(fields, group);
        const fs::path root = "/sys/fs/cgroup";
        if (controllers.empty())
            quota = std::min(quota, quota_up_to(root, group));
        else if (("," + controllers + ",").find(",cpu,") != std::string::npos)
            quota = std::min(quota, quota_up_to(root / controllers, group));
    }
    return quota;
}

}  // namespace

int available_cores() {
    const int cores = std::min(cores_of_affinity_mask(), max_threads);
    const double quota = std::ceil(cpu_quota());
    return quota < cores ? std::max(1, static_cast<int>(quota)) : cores;
}

int default_threads() {
    const char* text = std::getenv("MAGMADNN_THREADS");
    if (!text || !*text) return available_cores();
    const std::string value = text;
    int threads = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), threads);
    if (error != std::errc() || end != value.data() + value.size() || threads < 1 || threads > max_threads)
        throw std::invalid_argument("MAGMADNN_THREADS: got '" + value +
                                    "', wanted a whole number from 1 to " + std::to_string(max_threads));
    return threads;
}

}  // namespace magmadnn
