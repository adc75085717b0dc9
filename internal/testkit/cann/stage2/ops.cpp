// The operators of batch_invariant_ops for NPU tensors. Each makes its result
// and hands all to an aclnn function of libcust_opapi.so, which is looked up at
// the first call: by torch_npu's own macro, or by vllm-ascend's header.
#include <torch/extension.h>
#include <torch/library.h>

#ifdef OWN_HEADER
#include "op_api_common.h"
#define CALL EXEC_NPU_CMD
#elif defined(OLD_MACRO)
#include "op_plugin/utils/op_api_common.h"
#include "torch_npu/csrc/framework/utils/OpPreparation.h"
#define CALL EXEC_NPU_CMD
#else
#include "op_plugin/utils/op_api_common_base.h"
#include "torch_npu/csrc/framework/utils/OpPreparation.h"
#define CALL EXEC_NPU_CMD_EXT
#endif

// Named, and used by its name: the header says "using namespace at".
namespace ops {

using at::Tensor;
using Preparation = at_npu::native::OpPreparation;

Tensor result(at::IntArrayRef sizes, const Tensor &like) {
  return Preparation::apply_tensor_without_format(sizes, like.options());
}

int64_t wrap(int64_t dim, const Tensor &x) { return dim < 0 ? dim + x.dim() : dim; }

std::vector<int64_t> reduced(const Tensor &x, int64_t dim, bool keep) {
  auto sizes = x.sizes().vec();
  if (keep)
    sizes[dim] = 1;
  else
    sizes.erase(sizes.begin() + dim);
  return sizes;
}

Tensor mm(const Tensor &a, const Tensor &b) {
  TORCH_CHECK(a.dim() == 2 && b.dim() == 2 && a.size(1) == b.size(0), "mm of ", a.sizes(), " and ", b.sizes());
  auto out = result({a.size(0), b.size(1)}, a);
  CALL(aclnnMmBatchInvariant, a, b, out);
  return out;
}

Tensor matmul(const Tensor &a, const Tensor &b) {
  TORCH_CHECK(b.dim() == 2 && a.size(-1) == b.size(0), "matmul of ", a.sizes(), " and ", b.sizes());
  auto sizes = a.sizes().vec();
  sizes.back() = b.size(1);
  auto out = result(sizes, a);
  CALL(aclnnMatmulBatchInvariant, a, b, out);
  return out;
}

Tensor reduce_sum(const Tensor &x, at::IntArrayRef dims, bool keep) {
  TORCH_CHECK(dims.size() == 1, "one dimension at a time");
  int64_t dim[] = {wrap(dims[0], x)};
  at::IntArrayRef one(dim, 1);
  auto out = result(reduced(x, dim[0], keep), x);
  CALL(aclnnReduceSumBatchInvariant, x, one, keep, out);
  return out;
}

Tensor reduce_mean(const Tensor &x, at::IntArrayRef dims, bool keep) {
  TORCH_CHECK(dims.size() == 1, "one dimension at a time");
  int64_t dim[] = {wrap(dims[0], x)};
  at::IntArrayRef one(dim, 1);
  auto out = result(reduced(x, dim[0], keep), x);
  CALL(aclnnReduceMeanBatchInvariant, x, one, keep, out);
  return out;
}

Tensor log_softmax(const Tensor &x, int64_t dim) {
  int64_t which = wrap(dim, x);
  auto out = result(x.sizes(), x);
  CALL(aclnnLogSoftmaxBatchInvariant, x, which, out);
  return out;
}

using MaybeTensor = const std::optional<Tensor> &;
using MaybeInts = at::OptionalSymIntArrayRef;

// The parameters of torch_npu.npu_fused_infer_attention_score, which it replaces.
#define ATTENTION                                                                                                     \
  const Tensor &query, const Tensor &key, const Tensor &value, MaybeTensor pse_shift, MaybeTensor atten_mask,         \
      MaybeInts actual_seq_lengths, MaybeInts actual_seq_lengths_kv, MaybeTensor dequant_scale1,                      \
      MaybeTensor quant_scale1, MaybeTensor dequant_scale2, MaybeTensor quant_scale2, MaybeTensor quant_offset2,      \
      MaybeTensor antiquant_scale, MaybeTensor antiquant_offset, MaybeTensor key_antiquant_scale,                     \
      MaybeTensor key_antiquant_offset, MaybeTensor value_antiquant_scale, MaybeTensor value_antiquant_offset,        \
      MaybeTensor block_table, MaybeTensor query_padding_size, MaybeTensor kv_padding_size,                           \
      MaybeTensor key_shared_prefix, MaybeTensor value_shared_prefix, MaybeInts actual_shared_prefix_len,             \
      MaybeTensor query_rope, MaybeTensor key_rope, MaybeTensor key_rope_antiquant_scale, int64_t num_heads,          \
      double scale, int64_t pre_tokens, int64_t next_tokens, c10::string_view input_layout,                           \
      int64_t num_key_value_heads, int64_t sparse_mode, int64_t inner_precise, int64_t block_size,                    \
      int64_t antiquant_mode, int64_t key_antiquant_mode, int64_t value_antiquant_mode, bool softmax_lse_flag

void run_attention(const Tensor &query, const Tensor &key, const Tensor &value, int64_t heads, int64_t kv_heads, double scale,
                   c10::string_view layout, Tensor &out) {
  TORCH_CHECK(layout == "BSH", "the layout ", layout, " is not simulated; want BSH");
  CALL(aclnnFusedInferAttentionScoreBatchInvariantV3, query, key, value, heads, kv_heads, scale, out);
}

std::tuple<Tensor, Tensor> attention(ATTENTION) {
  auto out = result(query.sizes(), query);
  run_attention(query, key, value, num_heads, num_key_value_heads, scale, input_layout, out);
  return {out, result({1}, query)};
}

std::tuple<Tensor &, Tensor &> attention_out(ATTENTION, MaybeTensor workspace, Tensor &out, Tensor &lse) {
  run_attention(query, key, value, num_heads, num_key_value_heads, scale, input_layout, out);
  return {out, lse};
}

Tensor attention_workspace(ATTENTION) { return result({4096}, query); }

}  // namespace ops

#define ATTENTION_SCHEMA                                                                                             \
  "(Tensor query, Tensor key, Tensor value, *, Tensor? pse_shift=None, Tensor? atten_mask=None, "                    \
  "SymInt[]? actual_seq_lengths=None, SymInt[]? actual_seq_lengths_kv=None, Tensor? dequant_scale1=None, "           \
  "Tensor? quant_scale1=None, Tensor? dequant_scale2=None, Tensor? quant_scale2=None, Tensor? quant_offset2=None, "  \
  "Tensor? antiquant_scale=None, Tensor? antiquant_offset=None, Tensor? key_antiquant_scale=None, "                  \
  "Tensor? key_antiquant_offset=None, Tensor? value_antiquant_scale=None, Tensor? value_antiquant_offset=None, "     \
  "Tensor? block_table=None, Tensor? query_padding_size=None, Tensor? kv_padding_size=None, "                        \
  "Tensor? key_shared_prefix=None, Tensor? value_shared_prefix=None, SymInt[]? actual_shared_prefix_len=None, "      \
  "Tensor? query_rope=None, Tensor? key_rope=None, Tensor? key_rope_antiquant_scale=None, int num_heads=1, "         \
  "float scale=1.0, int pre_tokens=2147483647, int next_tokens=2147483647, str input_layout=\"BSH\", "               \
  "int num_key_value_heads=0, int sparse_mode=0, int inner_precise=0, int block_size=0, int antiquant_mode=0, "      \
  "int key_antiquant_mode=0, int value_antiquant_mode=0, bool softmax_lse_flag=False"

TORCH_LIBRARY(batch_invariant_ops, m) {
  m.def("npu_mm_batch_invariant(Tensor a, Tensor b) -> Tensor");
  m.def("npu_matmul_batch_invariant(Tensor a, Tensor b) -> Tensor");
  m.def("npu_reduce_sum_batch_invariant(Tensor x, int[1] dim, bool keepdim=False) -> Tensor");
  m.def("npu_reduce_mean_batch_invariant(Tensor x, int[1] dim, bool keepdim=False) -> Tensor");
  m.def("npu_log_softmax_batch_invariant(Tensor x, int dim) -> Tensor");
  m.def("npu_fused_infer_attention_score_batch_invariant" ATTENTION_SCHEMA ") -> (Tensor, Tensor)");
  m.def("npu_fused_infer_attention_score_batch_invariant.out" ATTENTION_SCHEMA
        ", Tensor? workspace=None, Tensor(a!) attention_out, Tensor(b!) softmax_lse) -> (Tensor(a!), Tensor(b!))");
  m.def("_npu_fused_infer_attention_score_batch_invariant_get_max_workspace" ATTENTION_SCHEMA ") -> Tensor");
}

TORCH_LIBRARY_IMPL(batch_invariant_ops, PrivateUse1, m) {
  m.impl("npu_mm_batch_invariant", &ops::mm);
  m.impl("npu_matmul_batch_invariant", &ops::matmul);
  m.impl("npu_reduce_sum_batch_invariant", &ops::reduce_sum);
  m.impl("npu_reduce_mean_batch_invariant", &ops::reduce_mean);
  m.impl("npu_log_softmax_batch_invariant", &ops::log_softmax);
  m.impl("npu_fused_infer_attention_score_batch_invariant", &ops::attention);
  m.impl("npu_fused_infer_attention_score_batch_invariant.out", &ops::attention_out);
  m.impl("_npu_fused_infer_attention_score_batch_invariant_get_max_workspace", &ops::attention_workspace);
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {}
