// matmul: Y = op(A) op(B) (+ bias, ReLU), batched. m, n, k: rows and columns of Y, and the depth summed over.
#include "gemm/packing.h"
#include "gemm/tasks.h"
#include "registration.h"

namespace magmadnn::cpu {
namespace {

/// Element offset of each matrix of a broadcast batch within a tensor, in the order of the output's batch.
std::vector<int64_t> batch_offsets(const Shape& shape, const Shape& output) {
    const size_t batch_rank = output.size() - 2;
    std::vector<int64_t> offsets = {0};
    int64_t stride = element_count(shape) == 0 ? 0 : shape[shape.size() - 1] * shape[shape.size() - 2];
    for (size_t axis = 1; axis <= batch_rank; axis++) {
        const int64_t extent = output[batch_rank - axis];
        const int64_t own = axis + 2 <= shape.size() ? shape[shape.size() - 2 - axis] : 1;
        std::vector<int64_t> outer;
        for (int64_t i = 0; i < extent; i++)
            for (int64_t offset : offsets) outer.push_back(offset + (own == 1 ? 0 : i * stride));
        offsets = std::move(outer);
        stride *= own;
    }
    return offsets;
}

template <class T>
class MatMul : public Kernel {
  public:
    explicit MatMul(const Signature& s);
    size_t workspace_bytes() const override {
        return sizeof(T) * static_cast<size_t>(shared_elements_ + threads_ * worker_elements_);
    }
    void run(const Arguments& arguments, ThreadPool& pool) override;

  private:
    struct Operands {
        const T* a;
        const T* b;
        const T* bias;
        T* y;
        const T* strips;  // of the task's rows, or null
    };
    void choose_blocks();
    void choose_tasks();
    void fill_tables();
    Cut row_blocks(int64_t row_task) const {
        return Cut::by_length(row_tasks_.begin(row_task + 1) - row_tasks_.begin(row_task), row_block_);
    }
    /// Where A(i, 0) of a block of the depth lies.
    const T* first_of(const T* a, int64_t i, int64_t block) const {
        return transpose_a_ ? a + i + depth_.begin(block) * m_ : a + i * k_ + depth_.begin(block);
    }
    void pack_shared(const T* a, int64_t slot, T* shared) const;
    void run_task(const Operands& matrices, int64_t task, T* packed) const;
    void multiply_block(const Operands& matrices, Cut rows, int64_t block, int64_t first_panel,
                        int64_t end_panel, T* packed) const;
    bool in_place(int64_t panel) const {
        return b_in_place_ && panels_.columns_of(panel) == panels_.packed_lanes(panel);
    }

    bool transpose_a_, transpose_b_, bias_, relu_, serial_ = false;
    int64_t m_, n_, k_;
    int threads_;
    std::vector<int64_t> a_offsets_, b_offsets_;
    Panels<T> panels_;
    // Few rows do not repay packing: the product then reads B where it is, but for a narrow last panel.
    bool b_in_place_;
    int64_t group_;  // panels packed at a time
    Cut row_tasks_, column_tasks_, depth_;
    // Whether A is packed too: for few columns it is read in place. Shared: all of it first, for all tasks.
    bool strips_, share_strips_;
    int64_t row_block_, row_parts_;    // blocks of a row task, at most
    int64_t a_elements_, b_elements_;  // of one packed block
    int64_t shared_elements_, worker_elements_;
    std::vector<int32_t> a_rows_, y_rows_;
};

template <class T>
MatMul<T>::MatMul(const Signature& s)
    : transpose_a_(s.attributes.flag("transpose_a")),
      transpose_b_(s.attributes.flag("transpose_b")),
      bias_(s.attributes.flag("bias")),
      relu_(s.attributes.text("activation") == "relu"),
      threads_(s.threads) {
    const Shape& a = s.inputs[0].shape;
    const Shape& y = s.outputs[0].shape;
    m_ = y[y.size() - 2];
    n_ = y[y.size() - 1];
    k_ = a[a.size() - (transpose_a_ ? 2 : 1)];
    a_offsets_ = batch_offsets(a, y);
    b_offsets_ = batch_offsets(s.inputs[1].shape, y);
    if (!transpose_a_ && s.inputs[1].shape.size() == 2) {
        // Samples of a batch are further rows of one matrix.
        m_ *= static_cast<int64_t>(a_offsets_.size());
        a_offsets_ = b_offsets_ = {0};
    }
    panels_ = Panels<T>(n_);
    choose_blocks();
    fill_tables();
}

template <class T>
void MatMul<T>::choose_blocks() {
    constexpr int64_t reach = INT32_MAX;  // index tables hold 32 bits
    constexpr int64_t element_bytes = sizeof(T);
    b_in_place_ = !transpose_b_ && (m_ <= 2 * strip_rows || n_ <= panel_lanes<T>);
    strips_ = !b_in_place_ && panels_.count() >= few_panels;
    share_strips_ = strips_ && a_offsets_.size() == 1 && m_ * k_ * element_bytes <= shared_bytes;
    depth_ = Cut::by_length(k_, b_in_place_ && n_ > panel_lanes<T> ? in_place_depth : block_depth);
    const int64_t depth = std::max<int64_t>(depth_.longest(), 1);
    choose_tasks();
    // A large Y is written along its rows, a few at a time, where the second operand stays in the level-2
    // cache.
    const int64_t b_bytes = column_tasks_.longest() * panel_lanes<T> * depth * element_bytes;
    const bool along_rows = strips_ && depth_.parts == 1 && b_bytes <= level_2_bytes / 2 &&
                            m_ * n_ * element_bytes >= large_result_bytes;
    row_block_ = std::min<int64_t>(along_rows ? 2 * strip_rows : block_rows,
                                   reach / std::max<int64_t>({n_, transpose_a_ ? 1 : k_, 1}));
    row_block_ = std::clamp<int64_t>(row_tasks_.longest(), 1, row_block_);
    row_parts_ = Cut::by_length(row_tasks_.longest(), row_block_).parts;
    // Panels that serve a single block of rows are used while they are fresh.
    const int64_t group_bytes = share_strips_ && row_parts_ == 1 ? level_2_bytes / 2 : packed_bytes;
    group_ = std::clamp<int64_t>(group_bytes / (depth * panel_lanes<T> * element_bytes), 1,
                                 column_tasks_.longest());
    b_elements_ = round_up(group_ * panel_lanes<T> * depth, 16);
    a_elements_ = strips_ ? round_up(strip_elements<T>(row_block_, depth), 16) : 0;
    shared_elements_ = share_strips_ ? row_tasks_.parts * row_parts_ * depth_.parts * a_elements_ : 0;
    worker_elements_ = b_elements_ + (share_strips_ ? 0 : a_elements_);
}

/// Cuts rows and columns of Y into tasks so that packing, repeated by each task, and writing rows of Y in
/// pieces cost least.
template <class T>
void MatMul<T>::choose_tasks() {
    const int64_t batch = static_cast<int64_t>(a_offsets_.size());
    serial_ = batch * m_ * n_ * k_ <= serial_work;
    row_tasks_ = {m_, 1};
    column_tasks_ = {panels_.count(), 1};
    if (serial_) return;
    constexpr int64_t piece_cost = 16;  // in elements packed
    const int64_t wanted = (tasks_wanted(serial_, threads_) + batch - 1) / batch;
    int64_t best_tasks = 0, best_cost = 0;
    for (int64_t columns = 1; columns <= std::clamp<int64_t>(panels_.count(), 1, wanted); columns++) {
        const int64_t rows = std::clamp<int64_t>(m_ / chunk_rows, 1, (wanted + columns - 1) / columns);
        const int64_t tasks = std::min(rows * columns, wanted);
        const int64_t cost = (strips_ && !share_strips_ ? m_ * k_ * columns : 0) +
                             (b_in_place_ ? 0 : n_ * k_ * rows) + piece_cost * m_ * columns;
        if (tasks < best_tasks || (tasks == best_tasks && cost >= best_cost)) continue;
        best_tasks = tasks;
        best_cost = cost;
        row_tasks_.parts = rows;
        column_tasks_.parts = columns;
    }
}

template <class T>
void MatMul<T>::fill_tables() {
    for (int64_t i = 0; i < row_block_; i++) {
        a_rows_.push_back(static_cast<int32_t>(i * (transpose_a_ ? 1 : k_)));
        y_rows_.push_back(static_cast<int32_t>(i * n_));
    }
}

template <class T>
void MatMul<T>::run(const Arguments& arguments, ThreadPool& pool) {
    const int64_t tasks = static_cast<int64_t>(a_offsets_.size()) * row_tasks_.parts * column_tasks_.parts;
    const Operands matrices = {arguments.input<T>(0), arguments.input<T>(1),
                               bias_ ? arguments.input<T>(2) : nullptr, arguments.output<T>(0),
                               static_cast<T*>(arguments.workspace)};
    T* shared = static_cast<T*>(arguments.workspace);
    if (m_ == 0 || n_ == 0) return;
    const bool pack_alone = serial_ || m_ * k_ <= serial_work / 4;
    const Cut slots = {row_tasks_.parts * row_parts_ * depth_.parts, tasks_wanted(pack_alone, threads_)};
    if (share_strips_)
        run_tasks(pool, pack_alone, slots.parts, [&](int64_t task, int) {
            for (int64_t slot = slots.begin(task); slot < slots.begin(task + 1); slot++)
                pack_shared(matrices.a, slot, shared);
        });
    run_tasks(pool, serial_, tasks, [&](int64_t task, int worker) {
        run_task(matrices, task, shared + shared_elements_ + worker * worker_elements_);
    });
}

/// Packs one (row task, block of its rows, block of the depth).
template <class T>
void MatMul<T>::pack_shared(const T* a, int64_t slot, T* shared) const {
    const int64_t block = slot % depth_.parts;
    const int64_t part = slot / depth_.parts % row_parts_;
    const int64_t row_task = slot / depth_.parts / row_parts_;
    const Cut rows = row_blocks(row_task);
    if (part >= rows.parts) return;
    const int64_t begin = rows.begin(part);
    pack_strips(first_of(a, row_tasks_.begin(row_task) + begin, block), transpose_a_ ? m_ : k_, transpose_a_,
                rows.begin(part + 1) - begin, depth_.begin(block + 1) - depth_.begin(block),
                shared + slot * a_elements_);
}

template <class T>
void MatMul<T>::run_task(const Operands& all, int64_t task, T* packed) const {
    const int64_t column_task = task % column_tasks_.parts;
    task /= column_tasks_.parts;
    const int64_t row_task = task % row_tasks_.parts;
    const int64_t batch = task / row_tasks_.parts;

    const int64_t row = row_tasks_.begin(row_task);
    const Operands own = {
        first_of(all.a + a_offsets_[batch], row, 0), all.b + b_offsets_[batch], all.bias,
        all.y + (batch * m_ + row) * n_,
        share_strips_ ? all.strips + row_task * row_parts_ * depth_.parts * a_elements_ : nullptr};
    const int64_t first = column_tasks_.begin(column_task), end = column_tasks_.begin(column_task + 1);
    for (int64_t block = 0; block < depth_.parts; block++)
        for (int64_t panel = first; panel < end; panel += group_)
            multiply_block(own, row_blocks(row_task), block, panel, std::min(panel + group_, end), packed);
}

/// One group of panels times one block of the depth: the panels are packed once and serve all rows.
template <class T>
void MatMul<T>::multiply_block(const Operands& own, Cut rows, int64_t block, int64_t first_panel,
                               int64_t end_panel, T* packed) const {
    const int64_t k = depth_.begin(block);
    const int64_t depth = depth_.begin(block + 1) - k;
    const bool last = block + 1 == depth_.parts;
    const auto packed_panel = [&](int64_t panel) {
        return packed + (panels_.first(panel) - panels_.first(first_panel)) * depth;
    };
    if (transpose_b_) {
        for (int64_t p = first_panel; p < end_panel; p++)
            pack_transposed(own.b + panels_.first(p) * k_ + k, k_, depth, panels_.columns_of(p),
                            panels_.packed_lanes(p), packed_panel(p));
    } else if (!b_in_place_) {
        pack_panels(panels_, first_panel, end_panel, own.b + k * n_, n_, depth, packed);
    } else if (!in_place(end_panel - 1)) {  // the last panel alone may end within a vector
        pack_panels(panels_, end_panel - 1, end_panel, own.b + k * n_, n_, depth,
                    packed_panel(end_panel - 1));
    }
    for (int64_t part = 0; part < rows.parts; part++) {
        const int64_t m = rows.begin(part);
        Product<T> product;
        product.a = first_of(own.a, m, block);
        product.a_rows = strips_ ? nullptr : a_rows_.data();
        product.a_columns = &no_offset;
        product.c_rows = y_rows_.data();
        product.rows = rows.begin(part + 1) - m;
        product.depth = depth;
        product.runs = {depth, transpose_a_ ? m_ : 1};
        product.accumulate = block > 0;
        product.relu = last && relu_;
        if (share_strips_) {
            product.a = own.strips + (part * depth_.parts + block) * a_elements_;
        } else if (strips_) {
            T* strips = packed + b_elements_;
            pack_strips(product.a, transpose_a_ ? m_ : k_, transpose_a_, product.rows, depth, strips);
            product.a = strips;
        }
        for (int64_t p = first_panel; p < end_panel; p++) {
            const int64_t n = panels_.first(p);
            product.b = in_place(p) ? own.b + k * n_ + n : packed_panel(p);
            product.b_stride = in_place(p) ? n_ : panels_.packed_lanes(p);
            product.c = own.y + m * n_ + n;
            product.columns = panels_.columns_of(p);
            product.bias = last && own.bias ? own.bias + n : nullptr;
            multiply(product);
        }
    }
}

template <class T>
bool supports(const Signature& s) {
    const std::string& activation = s.attributes.text("activation");
    return all_of_type<T>(s) && s.inputs[0].rank() >= 2 && s.inputs[1].rank() >= 2 &&
           (activation == "linear" || activation == "relu");
}

const Registration float_entry("matmul", "gemm", 10, supports<float>, create_kernel<MatMul<float>>);
const Registration double_entry("matmul", "gemm", 10, supports<double>, create_kernel<MatMul<double>>);

}  // namespace
}  // namespace magmadnn::cpu
