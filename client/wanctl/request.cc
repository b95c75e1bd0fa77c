#include "client/wanctl/request.h"

#include <sys/stat.h>

#include <cerrno>
#include <cstdio>
#include <memory>
#include <optional>
#include <random>
#include <system_error>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "client/reports/ceilings_file.h"
#include "client/sha256.h"
#include "client/wanctl/text.h"

namespace wan::client {
namespace {

// The limit is far above what a server accepts, but below protobuf's limit of 2 GiB for a message.
constexpr size_t kMostInputBytes = 1 << 30;

constexpr char kImage[] = "a PNG, JPEG or WebP file";
constexpr char kLatents[] = "a safetensors file";

// Returns the bytes of a file. `kind` says what the file must be.
absl::StatusOr<std::string> ReadInput(const std::string& path, const std::string& kind) {
  const auto error = [&path](const std::string& why) {
    return absl::InvalidArgumentError(absl::StrCat(path, " ", why));
  };
  const auto failed = [&error] {
    return error(absl::StrCat("cannot be read: ", std::generic_category().message(errno)));
  };
  // Refuse pipes and devices before opening them, because reading them may never end.
  struct stat facts = {};
  if (stat(path.c_str(), &facts) != 0) return failed();
  if (S_ISDIR(facts.st_mode)) return error("is a folder; must be " + kind);
  if (!S_ISREG(facts.st_mode)) return error("is a pipe or a device; must be " + kind);
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rb"),
                                                             &std::fclose);
  if (!file) return failed();
  std::string bytes, chunk(1 << 20, '\0');
  while (const size_t got = std::fread(chunk.data(), 1, chunk.size(), file.get())) {
    bytes.append(chunk, 0, got);
    if (bytes.size() > kMostInputBytes) return error("is greater than 1 GiB");
  }
  if (std::ferror(file.get())) return failed();
  // An empty image would make the server generate a video from the text alone.
  if (bytes.empty()) return error("is empty; must be " + kind);
  return bytes;
}

absl::StatusOr<std::string> ReadFlag(const std::string& flag, const std::string& path,
                                     const std::string& kind) {
  absl::StatusOr<std::string> bytes = ReadInput(path, kind);
  if (bytes.ok()) return bytes;
  return absl::InvalidArgumentError(absl::StrCat(flag, ": ", bytes.status().message()));
}

absl::Status SetLatents(const std::string& flag, const JobOrFile& from,
                        wan::v1::LatentsSource& source) {
  if (!from.file) {
    source.set_job(from.name);
    return absl::OkStatus();
  }
  absl::StatusOr<std::string> bytes = ReadFlag(flag, from.name, kLatents);
  if (!bytes.ok()) return bytes.status();
  source.set_data(*std::move(bytes));
  return absl::OkStatus();
}

// Puts the file at `path` (empty: no file) into a receipt's latents (null: the request has none).
absl::Status ReplayLatents(const std::string& flag, const std::string& path,
                           wan::v1::LatentsSource* source) {
  if (source == nullptr) {
    if (path.empty()) return absl::OkStatus();
    return absl::InvalidArgumentError(flag + ": the job was made without such latents");
  }
  if (!path.empty()) return SetLatents(flag, {path, /*file=*/true}, *source);
  if (!source->job().empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("the job was made with latents, which the server does not keep; ", flag,
                   " must name the file with the SHA-256 ", Printable(source->sha256())));
}

absl::StatusOr<std::string> ReadPrompt(const std::string& path) {
  std::optional<std::string> prompt = reports::ReadFile(path);
  if (!prompt.has_value()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--prompt-file: ", path, " cannot be read: ", std::generic_category().message(errno)));
  }
  absl::StripAsciiWhitespace(&*prompt);
  if (!prompt->empty()) return *std::move(prompt);
  return absl::InvalidArgumentError(absl::StrCat("--prompt-file: ", path, " is empty"));
}

}  // namespace

std::string NewRequestId(std::string_view prefix) {
  std::random_device device;
  std::string id(prefix);
  id += '-';
  for (int i = 0; i < 4; ++i) {
    absl::StrAppend(&id, absl::Hex(static_cast<uint32_t>(device()), absl::kZeroPad8));
  }
  return id;
}

absl::StatusOr<std::string> ReadImage(const std::string& path) { return ReadInput(path, kImage); }

absl::StatusOr<wan::v1::GenerationRequest> CompleteRequest(const RequestFlags& flags,
                                                           absl::Time now) {
  wan::v1::GenerationRequest request = flags.request;
  if (!flags.prompt_path.empty()) {
    absl::StatusOr<std::string> prompt = ReadPrompt(flags.prompt_path);
    if (!prompt.ok()) return prompt.status();
    request.set_prompt(*std::move(prompt));
  }
  if (!flags.image_path.empty()) {
    absl::StatusOr<std::string> image = ReadFlag("--image", flags.image_path, kImage);
    if (!image.ok()) return image.status();
    request.set_image(*std::move(image));
  }
  absl::Status latents;
  if (flags.initial_latents) {
    latents.Update(SetLatents("--initial-latents", *flags.initial_latents,
                              *request.mutable_initial_latents()));
  }
  if (flags.latents) {
    latents.Update(SetLatents("--latents", *flags.latents, *request.mutable_latents()));
  }
  if (!latents.ok()) return latents;
  if (flags.deadline) {
    const absl::Time deadline = now + *flags.deadline;
    const int64_t seconds = absl::ToUnixSeconds(deadline);
    request.mutable_deadline()->set_seconds(seconds);
    request.mutable_deadline()->set_nanos(
        static_cast<int32_t>(absl::ToInt64Nanoseconds(deadline - absl::FromUnixSeconds(seconds))));
  }
  return request;
}

absl::StatusOr<wan::v1::GenerationRequest> ReplayRequest(const wan::v1::Receipt& receipt,
                                                         const ReplayCommand& command) {
  const std::string& image_path = command.image_path;
  wan::v1::GenerationRequest request = receipt.request();
  request.set_request_id(NewRequestId("replay"));
  request.clear_deadline();
  request.clear_webhook_url();
  request.clear_preview_interval();
  request.clear_progressive();
  absl::Status latents =
      ReplayLatents("--initial-latents", command.initial_latents_path,
                    request.has_initial_latents() ? request.mutable_initial_latents() : nullptr);
  latents.Update(ReplayLatents("--latents", command.latents_path,
                               request.has_latents() ? request.mutable_latents() : nullptr));
  if (!latents.ok()) return latents;
  const std::string& wanted = receipt.image_sha256();
  if (wanted.empty() && !image_path.empty()) {
    return absl::InvalidArgumentError("--image: the job was made without an image");
  }
  if (wanted.empty()) return request;
  if (image_path.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the job was made with an image, which the server does not keep; --image must name the "
        "file with the SHA-256 ",
        Printable(wanted)));
  }
  absl::StatusOr<std::string> image = ReadFlag("--image", image_path, kImage);
  if (!image.ok()) return image.status();
  Sha256 hash;
  hash.Update(*image);
  const std::string digest = hash.Finish();
  if (digest != wanted) {
    return absl::InvalidArgumentError(absl::StrCat("--image: ", image_path, " has the SHA-256 ",
                                                   digest, ", but the job's image has ",
                                                   Printable(wanted)));
  }
  request.set_image(*std::move(image));
  return request;
}

}  // namespace wan::client
