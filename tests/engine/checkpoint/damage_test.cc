// Damaged checkpoints, made by seeded mutations of sound ones. Every one must give an error that
// names the damaged file (and the tensor, where one is damaged), or else be the sound checkpoint
// still: a changed time stamp in a zip header harms nobody. Run it with
// -DWAN_SANITIZE=address,undefined, too.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <random>

#include "engine/checkpoint/checkpoint.h"
#include "engine/checkpoint/expected_tensors.h"
#include "engine/checkpoint/synthetic_models.h"
#include "engine/formats/zip_directory.h"
#include "tests/engine/checkpoint/state_dict.h"
#include "tests/engine/formats/files.h"

namespace wan {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::StateDict;
namespace pickle = testing::pickle;

constexpr const char kT5[] = "models_t5_umt5-xxl-enc-bf16.pth";
constexpr const char kVae[] = "Wan2.2_VAE.pth";
constexpr const char kIndex[] = "diffusion_pytorch_model.safetensors.index.json";
constexpr const char kShard1[] = "diffusion_pytorch_model-00001-of-00002.safetensors";
constexpr const char kShard2[] = "diffusion_pytorch_model-00002-of-00002.safetensors";
constexpr const char kDiffusersT5[] = "text_encoder/model.safetensors";
constexpr const char kDiffusersVae[] = "vae/diffusion_pytorch_model.safetensors";

bool IsSame(const WeightSource& a, const WeightSource& b) {
  if (a.Tensors().size() != b.Tensors().size()) return false;
  for (size_t i = 0; i < a.Tensors().size(); ++i) {
    const TensorInfo& left = a.Tensors()[i];
    const TensorInfo& right = b.Tensors()[i];
    if (left.name != right.name || left.dtype != right.dtype || left.shape != right.shape) {
      return false;
    }
    if (!std::ranges::equal(a.Read(left)->bytes, b.Read(right)->bytes)) return false;
  }
  return true;
}

bool IsSame(const Checkpoint& a, const Checkpoint& b) {
  return a.transformer_config() == b.transformer_config() &&
         a.text_encoder_config() == b.text_encoder_config() && a.vae_config() == b.vae_config() &&
         IsSame(a.transformer(), b.transformer()) && IsSame(a.text_encoder(), b.text_encoder()) &&
         IsSame(a.vae(), b.vae());
}

class DamageTest : public ::testing::Test {
 protected:
  // Position below `end`, the same on every machine.
  size_t Pick(size_t end) { return random_() % end; }

  // Makes the folder a copy of ti2v-5b in one layout.
  void Use(const std::string& layout) {
    golden_ = std::string(WAN_CHECKPOINT_DIR "/ti2v-5b/") + layout;
    root_ = (folder_ / layout).string();
    testing::LinkFolder(golden_, root_);
    sound_ = Checkpoint::Open(golden_).value();
  }

  std::string Sound(const std::string& file) { return testing::ReadFile(fs::path(golden_) / file); }
  std::string PathOf(const std::string& file) { return (fs::path(root_) / file).string(); }

  // Opens the checkpoint with another content of one file, and restores the file.
  absl::StatusOr<std::unique_ptr<Checkpoint>> OpenWith(const std::string& file,
                                                       std::string_view bytes) {
    ++cases_;
    testing::ReplaceFile(PathOf(file), bytes);
    auto checkpoint = Checkpoint::Open(root_);
    if (!checkpoint.ok()) ++refused_;
    fs::remove(PathOf(file));
    fs::create_symlink(fs::path(golden_) / file, PathOf(file));
    return checkpoint;
  }

  // Must be refused, by a message with all of `parts`.
  void ExpectRefused(const std::string& file, std::string_view bytes,
                     const std::vector<std::string>& parts = {}) {
    const absl::Status status = OpenWith(file, bytes).status();
    ASSERT_FALSE(status.ok()) << file;
    EXPECT_THAT(std::string(status.message()), HasSubstr(PathOf(file)));
    for (const std::string& part : parts) {
      EXPECT_THAT(std::string(status.message()), HasSubstr(part));
    }
  }

  // Must be refused by a message with `where`, or be no damage.
  void ExpectRefusedOrSame(const std::string& file, std::string_view bytes,
                           const std::string& where, const std::string& mutation) {
    const auto checkpoint = OpenWith(file, bytes);
    if (checkpoint.ok()) {
      EXPECT_TRUE(IsSame(**checkpoint, *sound_)) << file << ": " << mutation;
    } else {
      EXPECT_THAT(std::string(checkpoint.status().message()), HasSubstr(where)) << mutation;
    }
  }

  // Flips `count` single bits in [begin, end).
  void FlipBits(const std::string& file, const std::string& sound, size_t begin, size_t end,
                int count, const std::string& where) {
    for (int i = 0; i < count; ++i) {
      std::string bytes = sound;
      const size_t position = begin + Pick(end - begin);
      const int bit = static_cast<int>(Pick(8));
      bytes[position] = static_cast<char>(bytes[position] ^ (1 << bit));
      ExpectRefusedOrSame(file, bytes, where,
                          "bit " + std::to_string(bit) + " of byte " + std::to_string(position));
    }
  }

  // So that random flips cannot pass by hitting nothing.
  void ExpectMostWereRefused() const { EXPECT_GT(refused_, cases_ / 2) << "of " << cases_; }

  testing::TempFolder folder_;
  std::string golden_;
  std::string root_;
  std::unique_ptr<Checkpoint> sound_;
  std::mt19937_64 random_{20250101};
  int cases_ = 0;
  int refused_ = 0;
};

TEST_F(DamageTest, CutFiles) {
  for (const auto& [layout, files] :
       {std::pair("original", std::vector{kT5, kVae, kIndex, kShard1, kShard2, "config.json"}),
        std::pair("diffusers", std::vector{kDiffusersT5, kDiffusersVae, "model_index.json",
                                           "vae/config.json"})}) {
    Use(layout);
    for (const char* file : files) {
      const std::string sound = Sound(file);
      // A text without its last newline is whole.
      std::vector<size_t> lengths = {0, 1, 7, 8, 9, sound.size() - 2};
      for (int i = 0; i < 6; ++i) lengths.push_back(Pick(sound.size() - 1));
      for (const size_t length : lengths) ExpectRefused(file, sound.substr(0, length));
    }
  }
}

TEST_F(DamageTest, AppendedBytes) {
  Use("original");
  for (const char* file : {kT5, kVae, kShard1, kShard2, kIndex}) {
    ExpectRefused(file, Sound(file) + std::string(1 + Pick(100), 'x'));
  }
}

TEST_F(DamageTest, BitFlipsInSafetensorsHeaders) {
  for (const auto& [layout, files] :
       {std::pair("original", std::vector{kShard1, kShard2}),
        std::pair("diffusers", std::vector{kDiffusersT5, kDiffusersVae})}) {
    Use(layout);
    for (const char* file : files) {
      const std::string sound = Sound(file);
      const size_t header =
          8 + static_cast<uint8_t>(sound[0]) + 256 * static_cast<uint8_t>(sound[1]);
      FlipBits(file, sound, 0, 8, 10, PathOf(file));
      FlipBits(file, sound, 8, header, 40, PathOf(file));
    }
  }
  ExpectMostWereRefused();
}

TEST_F(DamageTest, BitFlipsInIndexes) {
  Use("original");
  FlipBits(kIndex, Sound(kIndex), 0, Sound(kIndex).size(), 50, root_);
  ExpectMostWereRefused();
}

// The pickle has a checksum; without it (the archive may say that there is none) the pickle's own
// reader must hold.
TEST_F(DamageTest, BitFlipsInPickles) {
  Use("original");
  for (const char* file : {kT5, kVae}) {
    std::string archive = Sound(file);
    const std::string name = fs::path(file).stem().string() + "/data.pkl";
    const ZipDirectory records =
        ReadZipDirectory(std::as_bytes(std::span(archive)), file,
                         [](std::span<const std::byte> part, std::byte* out) {
                           std::copy(part.begin(), part.end(), out);
                           return absl::OkStatus();
                         })
            .value();
    const ZipRecord& record = records.at(name);
    const size_t begin = record.bytes.data() - std::as_bytes(std::span(archive)).data();
    const size_t end = begin + record.bytes.size();
    for (int i = 0; i < 10; ++i) {
      std::string flipped = archive;
      flipped[begin + Pick(end - begin)] ^= static_cast<char>(1 << Pick(8));
      ExpectRefused(file, flipped, {"record data.pkl has another checksum"});
    }
    const size_t directory_entry = archive.rfind(name) - 46;
    archive.replace(directory_entry + 16, 4, std::string(4, '\0'));
    FlipBits(file, archive, begin, end, 120, PathOf(file));
  }
  ExpectMostWereRefused();
}

TEST_F(DamageTest, BitFlipsInZipRecords) {
  Use("original");
  for (const char* file : {kT5, kVae}) {
    const std::string sound = Sound(file);
    const size_t directory = sound.find("PK\x01\x02");
    FlipBits(file, sound, directory, sound.size(), 60, PathOf(file));
    // End records, where nearly every bit counts.
    FlipBits(file, sound, sound.size() - 98, sound.size(), 40, PathOf(file));
    // Headers of records.
    size_t header = 0;
    for (int i = 0; i < 5; ++i) {
      header = sound.find("PK\x03\x04", header);
      FlipBits(file, sound, header, header + 30, 6, PathOf(file));
      header += 4;
    }
  }
  ExpectMostWereRefused();
}

// No statement about what comes out: a flipped digit can make another valid config. It must not
// crash, and what is refused must be refused by a message about this checkpoint.
TEST_F(DamageTest, BitFlipsInConfigs) {
  for (const auto& [layout, files] :
       {std::pair("original", std::vector{"config.json"}),
        std::pair("diffusers", std::vector{"model_index.json", "transformer/config.json",
                                           "text_encoder/config.json", "vae/config.json"})}) {
    Use(layout);
    for (const char* file : files) {
      for (int i = 0; i < 30; ++i) {
        std::string bytes = Sound(file);
        bytes[Pick(bytes.size())] ^= static_cast<char>(1 << Pick(8));
        const absl::Status status = OpenWith(file, bytes).status();
        if (status.ok()) continue;
        EXPECT_THAT(std::string(status.message()), HasSubstr(root_));
      }
    }
  }
}

// A safetensors file taken apart.
struct Parts {
  json header;
  std::string data;

  explicit Parts(const std::string& bytes) {
    const size_t length = static_cast<uint8_t>(bytes[0]) + 256 * static_cast<uint8_t>(bytes[1]);
    header = json::parse(bytes.substr(8, length));
    data = bytes.substr(8 + length);
  }

  std::string Bytes() const { return testing::SafetensorsBytes(header.dump(), data); }

  std::vector<std::string> Tensors() const {
    std::vector<std::string> names;
    for (const auto& [name, entry] : header.items()) {
      if (name != "__metadata__") names.push_back(name);
    }
    return names;
  }
};

// Each of these is done to five tensors.
struct SafetensorsMutation {
  const char* name;
  std::function<void(Parts&, const std::string& tensor)> apply;
};

TEST_F(DamageTest, ContradictorySafetensors) {
  const auto shift = [](Parts& parts, const std::string& tensor, int begin, int end) {
    json& offsets = parts.header[tensor]["data_offsets"];
    offsets[0] = offsets[0].get<int64_t>() + begin;
    offsets[1] = offsets[1].get<int64_t>() + end;
  };
  const std::vector<SafetensorsMutation> mutations = {
      {"overlap", [&](Parts& p, const std::string& t) { shift(p, t, -4, -4); }},
      {"overlap to the right", [&](Parts& p, const std::string& t) { shift(p, t, 4, 4); }},
      {"short", [&](Parts& p, const std::string& t) { shift(p, t, 0, -4); }},
      {"long", [&](Parts& p, const std::string& t) { shift(p, t, 0, 4); }},
      {"backwards", [&](Parts& p, const std::string& t) { shift(p, t, 1 << 20, 0); }},
      {"beyond", [&](Parts& p, const std::string& t) { shift(p, t, 1 << 24, 1 << 24); }},
      {"negative", [&](Parts& p, const std::string& t) { shift(p, t, -(1 << 24), 0); }},
      {"more rows", [](Parts& p, const std::string& t) { p.header[t]["shape"][0] = 61; }},
      {"other axes", [](Parts& p, const std::string& t) { p.header[t]["shape"].push_back(1); }},
      {"no shape", [](Parts& p, const std::string& t) { p.header[t].erase("shape"); }},
      {"no dtype", [](Parts& p, const std::string& t) { p.header[t]["dtype"] = nullptr; }},
      {"half dtype", [](Parts& p, const std::string& t) { p.header[t]["dtype"] = "F16"; }},
      {"integers", [](Parts& p, const std::string& t) { p.header[t]["dtype"] = "I32"; }},
      {"unknown dtype", [](Parts& p, const std::string& t) { p.header[t]["dtype"] = "F33"; }},
      {"renamed",
       [](Parts& p, const std::string& t) {
         p.header[t + "x"] = p.header[t];
         p.header.erase(t);
       }},
  };
  Use("diffusers");
  const std::string sound = Sound(kDiffusersT5);
  for (const SafetensorsMutation& mutation : mutations) {
    for (int i = 0; i < 5; ++i) {
      SCOPED_TRACE(mutation.name);
      Parts parts(sound);
      const std::vector<std::string> names = parts.Tensors();
      const std::string& tensor = names[Pick(names.size())];
      mutation.apply(parts, tensor);
      ExpectRefused(kDiffusersT5, parts.Bytes(), {tensor});
    }
  }
}

TEST_F(DamageTest, MissingAndForeignTensors) {
  Use("diffusers");
  const Parts sound(Sound(kDiffusersT5));
  const std::vector<std::string> names = sound.Tensors();
  for (int i = 0; i < 10; ++i) {
    // Taken out with its bytes: the file itself is sound.
    Parts parts = sound;
    const std::string& tensor = names[Pick(names.size())];
    const int64_t begin = parts.header[tensor]["data_offsets"][0];
    const int64_t size = parts.header[tensor]["data_offsets"][1].get<int64_t>() - begin;
    parts.header.erase(tensor);
    parts.data.erase(begin, size);
    for (auto& [name, entry] : parts.header.items()) {
      if (name == "__metadata__" || entry["data_offsets"][0] < begin) continue;
      for (json& offset : entry["data_offsets"]) offset = offset.get<int64_t>() - size;
    }
    ExpectRefused(kDiffusersT5, parts.Bytes(), {tensor, "is missing"});
  }
  Parts parts = sound;
  const size_t end = parts.data.size();
  parts.header["lora.weight"] = {
      {"dtype", "F32"}, {"shape", {1}}, {"data_offsets", {end, end + 4}}};
  parts.data += "1234";
  ExpectRefused(kDiffusersT5, parts.Bytes(), {"lora.weight is not a part of this model"});
}

TEST_F(DamageTest, ShardsThatTheIndexDoesNotFit) {
  Use("original");
  ExpectRefused(kShard1, Sound(kShard2), {"is missing, although"});
  ExpectRefused(kShard2, Sound(kShard1), {"is missing, although"});
  const json index = json::parse(Sound(kIndex));
  std::vector<std::string> names;
  for (const auto& [name, shard] : index["weight_map"].items()) names.push_back(name);
  for (int i = 0; i < 5; ++i) {
    const std::string& tensor = names[Pick(names.size())];
    json changed = index;
    changed["weight_map"].erase(tensor);
    ExpectRefused(kIndex, changed.dump(), {tensor});
    changed = index;
    json& shard = changed["weight_map"][tensor];
    shard = shard == kShard1 ? kShard2 : kShard1;
    ExpectRefused(kIndex, changed.dump(), {tensor});
    changed = index;
    changed["weight_map"][tensor] = "diffusion_pytorch_model-00003-of-00003.safetensors";
    EXPECT_THAT(std::string(OpenWith(kIndex, changed.dump()).status().message()),
                HasSubstr(PathOf("diffusion_pytorch_model-00003-of-00003.safetensors")));
    changed = index;
    changed["weight_map"][tensor] = "../elsewhere.safetensors";
    ExpectRefused(kIndex, changed.dump(), {tensor});
  }
}

TEST_F(DamageTest, ContradictoryStateDicts) {
  Use("original");
  // The golden text encoder's, with zeros.
  const StateDict dict(ExpectedTensors(FindSyntheticModel("ti2v-tiny").value().text_encoder));
  ASSERT_TRUE(OpenWith(kT5, dict.Bytes()).ok()) << "the dict itself is sound";
  using Mutation = std::function<std::string(size_t)>;
  const std::vector<std::pair<const char*, Mutation>> mutations = {
      {"other shape",
       [&](size_t i) {
         return pickle::Tensor(dict.Storage(i), 0, {dict.Elements(i), 1, 1}, {1, 1, 1});
       }},
      {"too large",
       [&](size_t i) { return pickle::Tensor(dict.Storage(i), 0, {dict.Elements(i) + 1}, {1}); }},
      {"behind the end",
       [&](size_t i) {
         return pickle::Tensor(dict.Storage(i), 1, dict.Shape(i), dict.Strides(dict.Shape(i)));
       }},
      {"not contiguous",
       [&](size_t i) {
         std::vector<int32_t> strides = dict.Strides(dict.Shape(i));
         strides.back() = 2;
         return pickle::Tensor(dict.Storage(i), 0, dict.Shape(i), strides);
       }},
      {"integers",
       [&](size_t i) {
         return pickle::Tensor(dict.Storage(i, "IntStorage"), 0, dict.Shape(i),
                               dict.Strides(dict.Shape(i)));
       }},
      {"half as wide",
       [&](size_t i) {
         return pickle::Tensor(dict.Storage(i, "HalfStorage"), 0, dict.Shape(i),
                               dict.Strides(dict.Shape(i)));
       }},
      {"no tensor", [](size_t) { return pickle::Text("weights"); }},
      {"no storage",
       [&](size_t i) {
         return pickle::Tensor("N", 0, dict.Shape(i), dict.Strides(dict.Shape(i)));
       }},
      {"missing record",
       [&](size_t i) {
         return pickle::Tensor(pickle::Storage("FloatStorage", "99", dict.Elements(i)), 0,
                               dict.Shape(i), dict.Strides(dict.Shape(i)));
       }},
  };
  for (const auto& [name, mutate] : mutations) {
    for (int i = 0; i < 5; ++i) {
      SCOPED_TRACE(name);
      const size_t tensor = Pick(dict.size());
      const std::string& tensor_name = dict.spec(tensor).name;
      ExpectRefused(kT5, dict.Bytes(tensor, tensor_name, mutate(tensor)), {tensor_name});
    }
  }
  for (int i = 0; i < 5; ++i) {
    const size_t tensor = Pick(dict.size());
    ExpectRefused(kT5, dict.Bytes(tensor, "foreign", dict.Tensor(tensor)),
                  {dict.spec(tensor).name, "is missing"});
    ExpectRefused(
        kT5, dict.Bytes(tensor, dict.spec((tensor + 1) % dict.size()).name, dict.Tensor(tensor)),
        {dict.spec((tensor + 1) % dict.size()).name, "occurs twice"});
    ExpectRefused(
        kT5,
        dict.Bytes(tensor, dict.spec(tensor).name,
                   pickle::Global("os", "system") + pickle::Tuple({pickle::Text("true")}) + "R"),
        {"data.pkl", "global \"os system\""});
  }
}

}  // namespace
}  // namespace wan
