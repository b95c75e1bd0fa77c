#include "tests/engine/formats/files.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <fstream>
#include <sstream>

#include "absl/strings/str_cat.h"

namespace wan::testing {

namespace fs = std::filesystem;

TempFolder::TempFolder() {
  std::string pattern = (fs::temp_directory_path() / "wan_checkpoint_XXXXXX").string();
  path_ = ::mkdtemp(pattern.data());
}

TempFolder::~TempFolder() {
  std::error_code error;
  fs::remove_all(path_, error);
}

std::string ReadFile(const fs::path& path) {
  std::ifstream stream(path, std::ios::binary);
  EXPECT_TRUE(stream.good()) << path;
  std::ostringstream bytes;
  bytes << stream.rdbuf();
  return bytes.str();
}

void WriteFile(const fs::path& path, std::string_view bytes) {
  fs::create_directories(path.parent_path());
  std::ofstream stream(path, std::ios::binary | std::ios::trunc);
  stream.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  stream.close();
  EXPECT_TRUE(stream.good()) << path;
}

void LinkFolder(const fs::path& from, const fs::path& to) {
  fs::create_directories(to);
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(from)) {
    // Not fs::relative, which would follow links.
    const fs::path target = to / entry.path().lexically_relative(from);
    if (entry.is_directory()) {
      fs::create_directories(target);
    } else {
      fs::create_symlink(entry.path(), target);
    }
  }
}

void ReplaceFile(const fs::path& path, std::string_view bytes) {
  fs::remove(path);
  WriteFile(path, bytes);
}

std::string LittleEndian(uint64_t value, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i) text += static_cast<char>(i < 8 ? value >> (8 * i) : 0);
  return text;
}

std::string SafetensorsBytes(std::string_view header, std::string_view data) {
  return LittleEndian(header.size(), 8).append(header).append(data);
}

std::string ZipBytes(const std::vector<ZipEntry>& entries, bool end64) {
  std::string archive;
  std::string directory;
  for (const ZipEntry& entry : entries) {
    const uint64_t offset = archive.size();
    const uint64_t size = entry.bytes.size();
    const std::string extra64 =
        entry.sizes_in_extra64 ? LittleEndian(1, 2) + LittleEndian(24, 2) + LittleEndian(size, 8) +
                                     LittleEndian(size, 8) + LittleEndian(offset, 8)
                               : "";
    const auto field = [&](uint64_t value) {
      return LittleEndian(entry.sizes_in_extra64 ? 0xffffffff : value, 4);
    };
    archive += LittleEndian(0x04034b50, 4) + LittleEndian(0, 2) + LittleEndian(entry.flags, 2) +
               LittleEndian(entry.method, 2) + LittleEndian(0, 4) + LittleEndian(0, 12) +
               LittleEndian(entry.name.size(), 2) + LittleEndian(0, 2) + entry.name + entry.bytes;
    directory += LittleEndian(0x02014b50, 4) + LittleEndian(0, 4) + LittleEndian(entry.flags, 2) +
                 LittleEndian(entry.method, 2) + LittleEndian(0, 4) + LittleEndian(0, 4) +
                 field(size) + field(size) + LittleEndian(entry.name.size(), 2) +
                 LittleEndian(extra64.size(), 2) + LittleEndian(0, 2) + LittleEndian(0, 2) +
                 LittleEndian(0, 6) + field(offset) + entry.name + extra64;
  }
  const uint64_t directory_offset = archive.size();
  const uint64_t count = entries.size();
  archive += directory;
  const uint64_t end_offset = archive.size();
  if (end64) {
    archive += LittleEndian(0x06064b50, 4) + LittleEndian(44, 8) + LittleEndian(0, 4) +
               LittleEndian(0, 8) + LittleEndian(count, 8) + LittleEndian(count, 8) +
               LittleEndian(directory.size(), 8) + LittleEndian(directory_offset, 8) +
               LittleEndian(0x07064b50, 4) + LittleEndian(0, 4) + LittleEndian(end_offset, 8) +
               LittleEndian(1, 4);
  }
  archive += LittleEndian(0x06054b50, 4) + LittleEndian(0, 4) + LittleEndian(count, 2) +
             LittleEndian(count, 2) + LittleEndian(directory.size(), 4) +
             LittleEndian(directory_offset, 4) + LittleEndian(0, 2);
  return archive;
}

namespace pickle {

std::string Text(std::string_view text) {
  return absl::StrCat("X", LittleEndian(text.size(), 4), std::string(text));
}

std::string Integer(int32_t value) {
  return absl::StrCat("J", LittleEndian(static_cast<uint32_t>(value), 4));
}

std::string Global(std::string_view module, std::string_view name) {
  return std::string("c").append(module).append("\n").append(name).append("\n");
}

std::string Tuple(const std::vector<std::string>& items) {
  std::string tuple = "(";
  for (const std::string& item : items) tuple += item;
  return tuple + "t";
}

std::string Integers(const std::vector<int32_t>& values) {
  std::vector<std::string> items;
  for (const int32_t value : values) items.push_back(Integer(value));
  return Tuple(items);
}

std::string Call(std::string_view function, const std::vector<std::string>& arguments) {
  return Global("torch._utils", function) + Tuple(arguments) + "R";
}

std::string EmptyOrderedDict() { return Global("collections", "OrderedDict") + ")R"; }

std::string Storage(std::string_view type, std::string_view record, int32_t elements) {
  return Tuple({Text("storage"), Global("torch", type), Text(record), Text("cpu"),
                Integer(elements)}) +
         "Q";
}

std::string Tensor(std::string_view storage, int32_t offset, const std::vector<int32_t>& shape,
                   const std::vector<int32_t>& stride) {
  return Call("_rebuild_tensor_v2", {std::string(storage), Integer(offset), Integers(shape),
                                     Integers(stride), "\x89", EmptyOrderedDict()});
}

std::string Dict(const std::vector<std::pair<std::string, std::string>>& entries) {
  std::string dict = "}(";
  for (const auto& [key, value] : entries) dict += Text(key) + value;
  return dict + "u";
}

std::string Whole(std::string_view value) {
  return std::string("\x80\x02").append(value).append(".");
}

}  // namespace pickle

std::string TorchArchiveBytes(std::string_view pickle, const std::vector<std::string>& storages,
                              std::string_view byteorder) {
  std::vector<ZipEntry> entries = {{.name = "model/data.pkl", .bytes = std::string(pickle)},
                                   {.name = "model/byteorder", .bytes = std::string(byteorder)}};
  for (size_t i = 0; i < storages.size(); ++i) {
    entries.push_back({.name = "model/data/" + std::to_string(i), .bytes = storages[i]});
  }
  return ZipBytes(entries);
}

}  // namespace wan::testing
