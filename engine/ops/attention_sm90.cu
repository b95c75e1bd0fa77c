// AttentionInto (attention.h) in bf16 for heads of 128 channels on compute capability 9.0.
#include "engine/ops/attention_sm90.cuh"

namespace wan {
namespace {

using namespace sm90;

int ComputeCapability(int device) {
  int major = 0;
  int minor = 0;
  C10_CUDA_CHECK(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device));
  C10_CUDA_CHECK(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device));
  return 10 * major + minor;
}

bool AttentionCuda(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                   at::Tensor& out) {
  const auto fits = [](const at::Tensor& t) { return HasRowsOfHeads(t, at::kBFloat16); };
  const bool supported = fits(query) && fits(key) && fits(value) && fits(out) &&
                         out.is_contiguous() && out.sizes() == query.sizes() &&
                         key.sizes() == value.sizes() && key.size(0) == query.size(0) &&
                         key.size(2) == query.size(2) &&
                         ComputeCapability(query.get_device()) == 90;
  Problem problem = {};
  if (!supported || !DescribeTensor(query, kGroupRows, problem.query) ||
      !DescribeTensor(key, Bf16Form::kKeys, problem.key) ||
      !DescribeTensor(value, Bf16Form::kKeys, problem.value) ||
      !FillProblem<Bf16Form>(query, key, out, problem)) {
    return false;
  }
  problem.scale = static_cast<float>(std::log2(std::exp(1.0)) / std::sqrt(double{kHeadDim}));
  LaunchAttention<Bf16Form>(out, problem);
  return true;
}

const bool kRegistered = (GetCudaOps().attention = &AttentionCuda,
                          GetCudaOps().compute_capability = &ComputeCapability, true);

}  // namespace
}  // namespace wan
