// Files for tests: a folder that goes away, and writers of the formats that can write them wrong.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace wan::testing {

class TempFolder {
 public:
  TempFolder();
  ~TempFolder();
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;

  std::filesystem::path operator/(std::string_view name) const { return path_ / name; }
  std::string string() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

std::string ReadFile(const std::filesystem::path& path);
void WriteFile(const std::filesystem::path& path, std::string_view bytes);

// The same tree, with links in place of files.
void LinkFolder(const std::filesystem::path& from, const std::filesystem::path& to);

// Replaces a link (or file) by a file of its own.
void ReplaceFile(const std::filesystem::path& path, std::string_view bytes);

std::string LittleEndian(uint64_t value, int bytes);

// Length, header, data.
std::string SafetensorsBytes(std::string_view header, std::string_view data);

struct ZipEntry {
  std::string name;
  std::string bytes;
  uint16_t method = 0;
  uint16_t flags = 0x0808;        // as torch.save: sizes follow, UTF-8
  bool sizes_in_extra64 = false;  // as beyond 4 GiB
};

// As torch.save writes it, with zip64 end records unless told otherwise. Checksums are zero.
std::string ZipBytes(const std::vector<ZipEntry>& entries, bool end64 = true);

// Pieces of a pickle of protocol 2.
namespace pickle {
std::string Text(std::string_view text);
std::string Integer(int32_t value);
std::string Global(std::string_view module, std::string_view name);
std::string Tuple(const std::vector<std::string>& items);
std::string Integers(const std::vector<int32_t>& values);
std::string Call(std::string_view function, const std::vector<std::string>& arguments);
std::string EmptyOrderedDict();
std::string Storage(std::string_view type, std::string_view record, int32_t elements);
std::string Tensor(std::string_view storage, int32_t offset, const std::vector<int32_t>& shape,
                   const std::vector<int32_t>& stride);
std::string Dict(const std::vector<std::pair<std::string, std::string>>& entries);
// A whole pickle of one value.
std::string Whole(std::string_view value);
}  // namespace pickle

// An archive of one folder with this pickle and these storages ("0", "1", ...).
std::string TorchArchiveBytes(std::string_view pickle, const std::vector<std::string>& storages,
                              std::string_view byteorder = "little");

}  // namespace wan::testing
