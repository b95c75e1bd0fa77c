#include "benchmarks/measure_ceilings.h"

#include <ATen/Context.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/randn.h>
#include <c10/core/InferenceMode.h>
#include <torch/version.h>

#include <functional>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "benchmarks/session.h"
#include "engine/checkpoint/synthetic_models.h"
#include "engine/device/pinned_memory.h"
#include "engine/device/plugin_loader.h"
#include "engine/ops/attention.h"

namespace wan {
namespace {

struct Product {
  const char* name;
  int64_t in;
  int64_t out;
  int count;  // how often a block computes this product
};

std::vector<Product> ProductsOf(const BlockShape& shape) {
  return {{"queries, keys, values", shape.dim, 3 * shape.dim, 1},
          {"outputs and queries of the text", shape.dim, shape.dim, 3},
          {"feed-forward in", shape.dim, shape.ffn_dim, 1},
          {"feed-forward out", shape.ffn_dim, shape.dim, 1}};
}

at::ScalarType DtypeOf(const std::string& precision) {
  if (precision == "bf16") return at::kBFloat16;
  return precision == "fp16" ? at::kHalf : at::kFloat;
}

// While an object of this class lives, fp32 products round their inputs to TF32.
class TensorFloat {
 public:
  explicit TensorFloat(bool on) : on_(on) {
    if (on_) at::globalContext().setAllowTF32CuBLAS(true);
  }
  ~TensorFloat() {
    if (on_) at::globalContext().setAllowTF32CuBLAS(false);
  }
  TensorFloat(const TensorFloat&) = delete;
  TensorFloat& operator=(const TensorFloat&) = delete;

 private:
  const bool on_;
};

// The amount of work for one ceiling, and the seconds that it took.
struct Sum {
  double amount = 0;
  double seconds = 0;
  double rate() const { return seconds > 0 ? amount / seconds : 0; }
};

class Measurement {
 public:
  Measurement(Session& session, const CeilingPlan& plan) : session_(session), plan_(plan) {}

  absl::StatusOr<MeasuredCeilings> Run() {
    const c10::InferenceMode inference;
    std::map<std::string, Sum> products;
    for (const BlockShape& shape : plan_.shapes) {
      for (const Product& product : ProductsOf(shape)) {
        AddTo(products[plan_.precision], MeasureProduct(shape, product, plan_.precision),
              product.count);
      }
    }
    for (const std::string& precision : plan_.further_precisions) {
      const BlockShape& shape = plan_.shapes.front();
      AddTo(products[precision], MeasureProduct(shape, ProductsOf(shape)[2], precision), 1);
    }
    Sum attention;
    for (const BlockShape& shape : plan_.shapes) AddTo(attention, MeasureAttention(shape), 1);
    const double memory = MeasureCopy().rate();
    for (const auto& [precision, sum] : products) result_.ceilings.products[precision] = sum.rate();
    result_.ceilings.attention[plan_.precision] = attention.rate();
    result_.ceilings.memory = memory;
    if (!session_.device().is_cpu()) MeasureHostCopies();
    Describe();
    if (!status_.ok()) return status_;
    return std::move(result_);
  }

 private:
  static void AddTo(Sum& sum, const Sum& one, int count) {
    sum.amount += one.amount * count;
    sum.seconds += one.seconds * count;
  }

  // Measures a call and stores its row. Returns the amount of work and the seconds.
  Sum Measure(const std::string& name, Work work, const std::function<void()>& call) {
    BenchRow row = session_.Sustain(name, plan_.seconds, call);
    const double amount = work.flop() + work.bytes + work.upload_bytes + work.download_bytes;
    const double seconds = row.timing->seconds;
    row.work = std::move(work);
    if (plan_.prints) status_.Update(session_.Add(row));
    row.command = "ceilings";
    row.device = session_.device_name();
    result_.rows.push_back(std::move(row));
    return {amount, seconds};
  }

  at::Tensor Random(at::IntArrayRef sizes, at::ScalarType dtype) const {
    return at::randn(sizes, at::TensorOptions(session_.device()).dtype(dtype));
  }

  Sum MeasureProduct(const BlockShape& shape, const Product& product,
                     const std::string& precision) {
    const at::ScalarType dtype = DtypeOf(precision);
    const TensorFloat tensor_float(precision == "tf32");
    const at::Tensor x = Random({shape.tokens, product.in}, dtype);
    const at::Tensor weight = Random({product.out, product.in}, dtype).t();
    const at::Tensor bias = Random({product.out}, dtype);
    at::Tensor out = at::empty({shape.tokens, product.out}, x.options());
    Work work{.precision = precision};
    work.product_flop = 2.0 * static_cast<double>(shape.tokens) * static_cast<double>(product.in) *
                        static_cast<double>(product.out);
    return Measure(absl::StrCat(precision, " product, ", shape.name, ": ", product.name),
                   std::move(work), [&] { at::addmm_out(out, bias, x, weight); });
  }

  // The attention reads the three parts of one packed product, as in the model.
  Sum MeasureAttention(const BlockShape& shape) {
    const at::Tensor packed = Random({1, shape.tokens, 3, shape.heads, shape.dim / shape.heads},
                                     DtypeOf(plan_.precision));
    Work work{.precision = plan_.precision};
    work.attention_flop = 4.0 * static_cast<double>(shape.tokens) *
                          static_cast<double>(shape.tokens) * static_cast<double>(shape.dim);
    return Measure(absl::StrCat(plan_.precision, " attention, ", shape.name), std::move(work), [&] {
      Attention(packed.select(2, 0), packed.select(2, 1), packed.select(2, 2));
    });
  }

  Sum MeasureCopy() {
    const auto bytes = at::TensorOptions(session_.device()).dtype(at::kByte);
    const at::Tensor source = at::empty({plan_.copy_bytes}, bytes).fill_(7);
    const at::Tensor target = at::empty_like(source);
    return Measure("memory, copy", {.bytes = 2.0 * static_cast<double>(plan_.copy_bytes)},
                   [&] { target.copy_(source); });
  }

  void MeasureHostCopies() {
    const at::Tensor host = AllocateHostMemory(plan_.host_copy_bytes, session_.device()).fill_(7);
    const at::Tensor there = at::empty_like(host, host.options().device(session_.device()));
    const auto bytes = static_cast<double>(plan_.host_copy_bytes);
    result_.ceilings.upload =
        Measure("host to device, locked memory", {.upload_bytes = bytes}, [&] {
          there.copy_(host, /*non_blocking=*/true);
        }).rate();
    result_.ceilings.download =
        Measure("device to host, locked memory", {.download_bytes = bytes}, [&] {
          host.copy_(there, /*non_blocking=*/true);
        }).rate();
  }

  void Describe() {
    Ceilings& ceilings = result_.ceilings;
    ceilings.device = session_.device_name();
    ceilings.software = absl::StrCat("LibTorch ", TORCH_VERSION);
    if (!session_.device().is_cpu()) {
      absl::StrAppend(&ceilings.software, ", cuDNN ", at::detail::getCUDAHooks().versionCuDNN());
    }
    ceilings.measured_at = absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", absl::Now(), absl::UTCTimeZone());
    ceilings.seconds_each = plan_.seconds;
  }

  Session& session_;
  const CeilingPlan& plan_;
  MeasuredCeilings result_;
  absl::Status status_;
};

}  // namespace

absl::StatusOr<CeilingPlan> MakeCeilingPlan(const Session& session,
                                            const std::vector<std::string>& models,
                                            int64_t tokens) {
  const bool cpu = session.device().is_cpu();
  CeilingPlan plan;
  for (const std::string& name : models) {
    const absl::StatusOr<SyntheticModel> model = FindSyntheticModel(name);
    if (!model.ok()) return model.status();
    const TransformerConfig& config = model->transformer;
    // The numbers of tokens of 1280x704x121 and 832x480x81, which are the videos of the other rows.
    int64_t published = model->vae.kind == VaeKind::kWan22 ? 27280 : 32760;
    if (cpu) published = 512;
    plan.shapes.push_back(
        {name, tokens > 0 ? tokens : published, config.dim, config.ffn_dim, config.num_heads});
  }
  if (cpu) {
    plan.precision = "fp32";
    plan.copy_bytes = int64_t{1} << 28;
  } else {
    plan.further_precisions = {"fp16", "tf32", "fp32"};
  }
  return plan;
}

absl::StatusOr<MeasuredCeilings> MeasureCeilings(Session& session, const CeilingPlan& plan) {
  return Measurement(session, plan).Run();
}

Ceilings MeasureMainCeilings(Session& session) {
  CeilingPlan plan = MakeCeilingPlan(session, {"ti2v-5b"}, 0).value();
  plan.further_precisions = {"fp16", "tf32", "fp32"};
  plan.seconds = 0.4;
  plan.prints = false;
  return MeasureCeilings(session, plan).value().ceilings;
}

}  // namespace wan
