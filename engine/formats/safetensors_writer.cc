#include "engine/formats/safetensors_writer.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <optional>
#include <string_view>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_join.h"
#include "engine/api/storage_error.h"
#include "nlohmann/json.hpp"

namespace wan {
namespace {

using Json = nlohmann::ordered_json;

constexpr char kMetadataKey[] = "__metadata__";
// The header is padded to a multiple of this many bytes, so that the tensors of a mapped file are
// aligned.
constexpr size_t kAlignment = 8;

std::optional<size_t> ElementSize(std::string_view dtype) {
  constexpr std::pair<std::string_view, size_t> kSizes[] = {
      {"F64", 8}, {"F32", 4}, {"F16", 2}, {"BF16", 2}, {"I64", 8},
      {"I32", 4}, {"I16", 2}, {"I8", 1},  {"U8", 1},   {"BOOL", 1}};
  for (const auto& [name, size] : kSizes) {
    if (name == dtype) return size;
  }
  return std::nullopt;
}

absl::Status CheckTensor(const SafetensorsTensor& tensor) {
  if (tensor.name.empty() || tensor.name == kMetadataKey) {
    return absl::InvalidArgumentError(
        absl::StrCat("a tensor cannot be called '", tensor.name, "'"));
  }
  const std::optional<size_t> element = ElementSize(tensor.dtype);
  if (!element) {
    return absl::InvalidArgumentError(absl::StrCat(
        "tensor ", tensor.name, " has dtype ", tensor.dtype, ", which the format does not know"));
  }
  size_t expected = *element;
  for (const int64_t side : tensor.shape) {
    if (side < 0 || __builtin_mul_overflow(expected, static_cast<size_t>(side), &expected)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "tensor ", tensor.name, " has an impossible shape: ", absl::StrJoin(tensor.shape, ", ")));
    }
  }
  if (tensor.bytes.size() != expected) {
    return absl::InvalidArgumentError(absl::StrCat("tensor ", tensor.name, " has ",
                                                   tensor.bytes.size(), " bytes; its shape needs ",
                                                   expected));
  }
  return absl::OkStatus();
}

// Returns the bytes before the tensors: the length of the header, then the padded header in JSON.
absl::StatusOr<std::string> MakeHeader(const std::vector<SafetensorsTensor>& tensors,
                                       const std::map<std::string, std::string>& metadata) {
  Json header = Json::object();
  if (!metadata.empty()) header[kMetadataKey] = metadata;
  uint64_t offset = 0;
  for (const SafetensorsTensor& tensor : tensors) {
    if (absl::Status status = CheckTensor(tensor); !status.ok()) return status;
    if (header.contains(tensor.name)) {
      return absl::InvalidArgumentError(absl::StrCat("tensor ", tensor.name, " occurs twice"));
    }
    header[tensor.name] = {{"dtype", tensor.dtype},
                           {"shape", tensor.shape},
                           {"data_offsets", {offset, offset + tensor.bytes.size()}}};
    offset += tensor.bytes.size();
  }
  std::string json;
  try {
    json = header.dump();
  } catch (const Json::exception& error) {
    return absl::InvalidArgumentError(absl::StrCat("a name is not UTF-8: ", error.what()));
  }
  json.append((kAlignment - json.size() % kAlignment) % kAlignment, ' ');
  std::string result;
  for (size_t i = 0; i < sizeof(uint64_t); ++i) {
    result.push_back(static_cast<char>(static_cast<uint64_t>(json.size()) >> (8 * i)));
  }
  return result + json;
}

// A file that is being written. The destructor closes the file but does not remove it.
class OutputFileDescriptor {
 public:
  explicit OutputFileDescriptor(const std::string& path)
      : path_(path), fd_(open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666)) {}
  ~OutputFileDescriptor() {
    if (fd_ >= 0) close(fd_);
  }
  OutputFileDescriptor(const OutputFileDescriptor&) = delete;
  OutputFileDescriptor& operator=(const OutputFileDescriptor&) = delete;

  absl::Status Opened() const { return fd_ < 0 ? Error("create") : absl::OkStatus(); }

  absl::Status Write(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      const ssize_t written = write(fd_, bytes.data(), bytes.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) return Error("write");
      bytes = bytes.subspan(static_cast<size_t>(written));
    }
    return absl::OkStatus();
  }

  absl::Status Close() {
    const int result = close(fd_);
    fd_ = -1;
    return result != 0 ? Error("close") : absl::OkStatus();
  }

 private:
  absl::Status Error(const char* doing) const {
    const int error = errno;
    return WithStorageReason(absl::ErrnoToStatus(error, absl::StrCat("cannot ", doing, " ", path_)),
                             error);
  }

  const std::string path_;
  int fd_;
};

}  // namespace

absl::Status WriteSafetensors(const std::string& path,
                              const std::vector<SafetensorsTensor>& tensors,
                              const std::map<std::string, std::string>& metadata) {
  const absl::StatusOr<std::string> header = MakeHeader(tensors, metadata);
  if (!header.ok()) return header.status();
  OutputFileDescriptor file(path);
  if (absl::Status status = file.Opened(); !status.ok()) return status;
  absl::Status status = file.Write(std::as_bytes(std::span(*header)));
  for (const SafetensorsTensor& tensor : tensors) {
    if (status.ok()) status = file.Write(tensor.bytes);
  }
  return status.ok() ? file.Close() : status;
}

}  // namespace wan
