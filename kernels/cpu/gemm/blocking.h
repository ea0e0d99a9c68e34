// Block sizes of the matrix-product engine, one row per instruction set. Porting to a new one means a new row
// here.
#pragma once
#include <cstdint>

#include "simd.h"

namespace magmadnn::cpu {

/// The register tile: `rows[v]` rows of `v` vectors, for v = 1 .. max_vectors.
struct RegisterTile {
    int max_vectors;
    int rows[4];
};

// An offset per row is held too, which limits the height where vector registers would not.
#if MAGMADNN_VECTOR_BYTES == 64 || defined(__aarch64__)
inline constexpr RegisterTile register_tile = {3, {0, 8, 8, 8}};  // of 32 registers
#else
inline constexpr RegisterTile register_tile = {2, {0, 8, 6, 0}};  // of 16
#endif

/// Bytes of one worker's share of the level-2 cache that a block of the first operand may fill.
inline constexpr int64_t level_2_bytes = 256 << 10;

/// Rows (pixels, samples) that share one pass over the packed second operand.
inline constexpr int64_t block_rows = 192;

/// Depth of a block of a dense product: the panel it makes of the second operand stays in the level-1 cache.
inline constexpr int64_t block_depth = 256;

/// The same where it is read in place, its rows far apart: as many streams as the prefetchers follow.
inline constexpr int64_t in_place_depth = 16;

/// Pixels of a block of a weight gradient, the depth of its products.
inline constexpr int64_t weight_gradient_depth = 224;

/// Rows of a product with a transposed first operand that are packed at a time, where its lines lie at least
/// `far_bytes` apart: such lines share a few sets of the level-1 cache and would drive each other out.
inline constexpr int64_t chunk_rows = MAGMADNN_VECTOR_BYTES == 64 ? 32 : 24;
inline constexpr int64_t far_bytes = 1024;

/// Columns of a first operand that lie evenly and repay a loop of their own.
inline constexpr int64_t long_run = 12;

/// Bytes of one worker's packed panels of a dense product, in the level-3 cache: each panel in turn moves up
/// to the first level and serves a block of rows.
inline constexpr int64_t packed_bytes = 1 << 20;

/// Bytes of a first operand that is packed as a whole, once for all tasks.
inline constexpr int64_t shared_bytes = 16 << 20;

/// Bytes of a result that hardly stay in any cache.
inline constexpr int64_t large_result_bytes = 4 << 20;

/// Panels of a product that do not repay packing its first operand.
inline constexpr int64_t few_panels = 4;

/// Rows of a product that do not repay packing its second operand.
inline constexpr int64_t few_rows = 64;

/// Panels of the second operand packed at a time.
inline constexpr int64_t panel_group = 16;

/// Multiply-adds below which waking the other threads costs more than it saves.
inline constexpr int64_t serial_work = 1 << 16;

}  // namespace magmadnn::cpu
