// Measures how fast weights are copied from the page cache to a device. The command stores a
// transformer's tensors in one file, and loads that file several times.
//
//   wan_bench load --model synthetic:t2v-a14b --file /tmp/weights --device cuda:0
//   wan_bench load --threads 1 --threads 8 --threads 16 --chunk 512 --chunk 1024 --repeats 1
//
// With --threads or --chunk, the command also uploads the bytes of the file unchanged to memory
// that exists already, once for each combination. The result shows which combination is best, and
// whether reading or converting takes the time.
//
// The file is sparse, so it takes no disk space; after the first load its pages are in the page
// cache.
#include <ATen/ops/empty.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "benchmarks/bench_flags.h"
#include "benchmarks/card_watch.h"
#include "benchmarks/commands.h"
#include "c10/core/InferenceMode.h"
#include "engine/checkpoint/checkpoint.h"
#include "engine/formats/mapped_file.h"
#include "engine/models/wan/transformer.h"
#include "engine/weights/staged_upload.h"

namespace wan {
namespace {

struct LoadSettings {
  std::string model = "synthetic:t2v-a14b";
  std::string file = "/tmp/wan_bench_load";
  std::string device = "cuda:0";
  std::string dtype = "bf16";
  std::string home = "device";
  int repeats = 3;
  std::vector<int> threads;
  std::vector<int64_t> chunk_kib;
};

// A weight source that has all its tensors in one file.
class FileOfTensors final : public WeightSource {
 public:
  FileOfTensors(const WeightSource& like, std::shared_ptr<const MappedFile> file)
      : tensors_(like.Tensors()), file_(std::move(file)) {
    uint64_t begin = 0;
    for (const TensorInfo& tensor : tensors_) {
      begins_[tensor.name] = begin;
      begin += Padded(tensor.bytes);
    }
  }

  static uint64_t Bytes(const WeightSource& like) {
    uint64_t bytes = 0;
    for (const TensorInfo& tensor : like.Tensors()) bytes += Padded(tensor.bytes);
    return bytes;
  }

  const std::vector<TensorInfo>& Tensors() const override { return tensors_; }
  const TensorInfo* Find(std::string_view name) const override {
    for (const TensorInfo& tensor : tensors_) {
      if (tensor.name == name) return &tensor;
    }
    return nullptr;
  }
  absl::StatusOr<TensorBytes> Read(const TensorInfo& tensor) const override {
    return TensorBytes{file_->bytes().subspan(begins_.at(tensor.name), tensor.bytes), file_,
                       file_.get()};
  }

 private:
  static uint64_t Padded(uint64_t bytes) { return (bytes + 63) / 64 * 64; }

  const std::vector<TensorInfo> tensors_;
  const std::shared_ptr<const MappedFile> file_;
  std::map<std::string, uint64_t, std::less<>> begins_;
};

absl::Status MakeFile(const std::string& path, uint64_t bytes) {
  const int file = open(path.c_str(), O_CREAT | O_RDWR | O_TRUNC, 0600);
  const bool made = file >= 0 && ftruncate(file, static_cast<off_t>(bytes)) == 0;
  struct statfs system {};
  const bool in_memory = made && fstatfs(file, &system) == 0 && system.f_type == TMPFS_MAGIC;
  if (file >= 0) close(file);
  if (in_memory) {
    unlink(path.c_str());
    return absl::InvalidArgumentError(
        absl::StrCat(path, " would lie in a tmpfs, which reads holes from no memory at all"));
  }
  return made ? absl::OkStatus() : absl::UnavailableError(absl::StrCat("cannot make ", path));
}

BenchRow RowOf(std::string name, double seconds, uint64_t bytes, at::Device device,
               CardState card) {
  BenchRow row{.name = std::move(name),
               .timing = Timing{seconds, seconds, seconds, 1},
               .card = std::move(card)};
  row.work = Work();
  (device.is_cpu() ? row.work->bytes : row.work->upload_bytes) = static_cast<double>(bytes);
  return row;
}

// Copies only bytes: it allocates no device memory and converts nothing.
absl::Status MeasureUploads(const LoadSettings& settings, const WeightSource& source,
                            Session& session) {
  const at::Device device = session.device();
  const std::vector<int> threads =
      settings.threads.empty() ? std::vector{UploadSettings().threads} : settings.threads;
  const std::vector<int64_t> chunks = settings.chunk_kib.empty()
                                          ? std::vector{UploadSettings().chunk_bytes >> 10}
                                          : settings.chunk_kib;
  uint64_t bytes = 0;
  uint64_t largest = 0;
  for (const TensorInfo& tensor : source.Tensors()) {
    bytes += tensor.bytes;
    largest = std::max(largest, tensor.bytes);
  }
  const std::unique_ptr<WeightMover> mover = MakeWeightMover(device);
  const at::Tensor memory = mover->AllocateDevice(static_cast<int64_t>(largest));
  for (const int count : threads) {
    for (const int64_t chunk : chunks) {
      Synchronize(device);
      CardWatch watch(session.card());
      const auto begin = std::chrono::steady_clock::now();
      StagedUpload upload(*mover, {.threads = count, .chunk_bytes = chunk << 10});
      const double prepared = SecondsSince(begin);
      for (const TensorInfo& tensor : source.Tensors()) {
        absl::StatusOr<TensorBytes> data = source.Read(tensor);
        if (!data.ok()) return data.status();
        upload.Copy(*std::move(data), memory.narrow(0, 0, static_cast<int64_t>(tensor.bytes)));
      }
      if (absl::Status status = upload.Arrive(); !status.ok()) return status;
      Synchronize(device);
      const double seconds = SecondsSince(begin);
      const UploadTimes times = upload.times();
      BenchRow row = RowOf(absl::StrCat("upload, ", count, " threads, ", chunk, " KiB"), seconds,
                           bytes, device, watch.Finish());
      row.figures = {{"buffers_seconds", prepared},
                     {"thread_reads_seconds", times.reading / count},
                     {"thread_queues_seconds", times.queueing / count},
                     {"thread_waits_seconds", times.waiting / count}};
      if (absl::Status status = session.Add(std::move(row)); !status.ok()) return status;
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> Run(const LoadSettings& settings, Session& session) {
  const c10::InferenceMode inference;
  const absl::StatusOr<at::Device> device = session.Open(settings.device);
  if (!device.ok()) return device.status();
  if (absl::Status status = session.FindCeilings(); !status.ok()) return status;
  const auto checkpoint = Checkpoint::Open(settings.model);
  if (!checkpoint.ok()) return checkpoint.status();
  const WeightSource& like = (*checkpoint)->transformer();
  const uint64_t bytes = FileOfTensors::Bytes(like);
  if (absl::Status status = MakeFile(settings.file, bytes); !status.ok()) return status;
  auto mapped = MappedFile::Open(settings.file);
  if (!mapped.ok()) return mapped.status();
  const FileOfTensors source(like, *std::move(mapped));

  const at::ScalarType dtype = settings.dtype == "fp32" ? at::kFloat : at::kBFloat16;
  const auto home =
      settings.home == "host" ? ComponentWeights::Home::kHost : ComponentWeights::Home::kDevice;
  for (int i = 0; i < settings.repeats; ++i) {
    CardWatch watch(session.card());
    const auto begin = std::chrono::steady_clock::now();
    const auto transformer = LoadWanTransformer(
        source, (*checkpoint)->transformer_config(),
        {.device = *device,
         .dtype = dtype,
         .weights = std::make_shared<ComponentWeights>(MakeWeightMover(*device), home)});
    if (!transformer.ok()) return transformer.status();
    Synchronize(*device);
    const double seconds = SecondsSince(begin);
    BenchRow row = RowOf(absl::StrCat(settings.model, " to ", settings.home, ", load ", i + 1),
                         seconds, bytes, *device, watch.Finish());
    row.figures = {{"pages_may_be_cold", i == 0}};
    if (absl::Status status = session.Add(std::move(row)); !status.ok()) return status;
  }
  absl::Status status;
  if (!settings.threads.empty() || !settings.chunk_kib.empty()) {
    status = MeasureUploads(settings, source, session);
  }
  unlink(settings.file.c_str());
  if (!status.ok()) return status;
  return true;
}

}  // namespace

BenchCommand AddLoad(CLI::App& app) {
  const auto settings = std::make_shared<LoadSettings>();
  AddModelFlag(app, settings->model, "checkpoint, or synthetic:NAME, whose tensors the file gets");
  app.add_option("--file", settings->file, "file that the benchmark writes and removes")
      ->capture_default_str();
  AddDeviceFlag(app, settings->device);
  AddDtypeFlag(app, settings->dtype, "dtype of the loaded weights");
  app.add_option("--home", settings->home, "memory that receives the weights")
      ->check(CLI::IsMember({"device", "host"}))
      ->capture_default_str();
  AddRepeatsFlag(app, settings->repeats);
  app.add_option("--threads", settings->threads,
                 "reading threads of a plain upload; give it several times to compare")
      ->check(CLI::PositiveNumber);
  app.add_option("--chunk", settings->chunk_kib,
                 "KiB per read of a plain upload; give it several times to compare")
      ->check(CLI::PositiveNumber);
  return [settings](Session& session) { return Run(*settings, session); };
}

}  // namespace wan
