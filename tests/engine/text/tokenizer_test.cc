#include "engine/text/tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sentencepiece_model.pb.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "tests/engine/text/sentencepiece_oracle.h"
#include "tests/engine/text/text_cases.h"

namespace wan {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

using Ids = std::vector<int64_t>;

const Tokenizer& GoldenTokenizer() {
  static const Tokenizer* tokenizer = [] {
    auto loaded = Tokenizer::Load(GoldenTokenizerPath());
    if (!loaded.ok()) {
      ADD_FAILURE() << loaded.status();
      std::abort();
    }
    return loaded->release();
  }();
  return *tokenizer;
}

std::vector<nlohmann::json> Probes() {
  std::ifstream file(WAN_GOLDEN_DIR "/tokenizer/probes.json");
  return nlohmann::json::parse(file).get<std::vector<nlohmann::json>>();
}

TEST(TokenizerGolden, EveryProbeIsEqual) {
  const std::vector<nlohmann::json> probes = Probes();
  EXPECT_EQ(probes.size(), 57U);
  for (const auto& probe : probes) {
    EXPECT_EQ(GoldenTokenizer().Encode(probe["cleaned"].get<std::string>()),
              probe["ids"].get<Ids>())
        << probe["text"].dump(-1, ' ', true);
  }
}

TEST(TokenizerGolden, BothLayoutsHoldTheSameTokenizer) {
  const auto other =
      Tokenizer::Load(WAN_CHECKPOINT_DIR "/ti2v-5b/diffusers/tokenizer/spiece.model");
  ASSERT_TRUE(other.ok()) << other.status();
  for (const auto& probe : Probes()) {
    EXPECT_EQ((*other)->Encode(probe["cleaned"].get<std::string>()), probe["ids"].get<Ids>());
  }
}

TEST(TokenizerReference, RandomPromptsAreEqual) {
  for (const auto& reference : RandomReference()) {
    EXPECT_EQ(GoldenTokenizer().Encode(reference["cleaned"].get<std::string>()),
              reference["ids"].get<Ids>())
        << reference["cleaned"].dump(-1, ' ', true);
  }
}

TEST(Tokenizer, VocabularyIsPiecesAndExtraIds) {
  EXPECT_EQ(GoldenTokenizer().vocabulary_size(), 900);
  EXPECT_EQ(GoldenTokenizer().Encode("<extra_id_0>"), (Ids{899, Tokenizer::kEndId}));
  EXPECT_EQ(GoldenTokenizer().Encode("<extra_id_299>"), (Ids{600, Tokenizer::kEndId}));
}

TEST(Tokenizer, OnlyExactMarksAreMarks) {
  const Tokenizer& tokenizer = GoldenTokenizer();
  EXPECT_EQ(tokenizer.Encode("<<pad>>"),
            (Ids{261, Tokenizer::kUnknownId, Tokenizer::kPadId, 261, Tokenizer::kUnknownId, 1}));
  for (const char* text :
       {"<extra_id_300>", "<extra_id_01>", "<PAD>", "</s", "< pad>", "<extra_id_>"}) {
    const Ids ids = tokenizer.Encode(text);
    EXPECT_EQ(std::count_if(ids.begin(), ids.end() - 1,
                            [](int64_t id) {
                              return id == Tokenizer::kPadId || id == Tokenizer::kEndId ||
                                     id >= 600;
                            }),
              0)
        << text;
  }
}

TEST(Tokenizer, CutsAtTheLimitAndSaysSo) {
  const Tokenizer& tokenizer = GoldenTokenizer();
  const std::string text = "a red cat runs on the beach";
  const Ids all = tokenizer.Encode(text);
  const auto count = static_cast<int>(all.size());
  EXPECT_EQ(tokenizer.CountTokens(text), count);
  EXPECT_EQ(tokenizer.Encode(text, count), all);

  Ids cut(all.begin(), all.begin() + count - 2);
  cut.push_back(Tokenizer::kEndId);
  EXPECT_EQ(tokenizer.Encode(text, count - 1), cut);
  EXPECT_EQ(tokenizer.Encode(text, 1), Ids{Tokenizer::kEndId});

  std::string words;
  for (int i = 0; i < 600; ++i) words += "word ";
  EXPECT_EQ(tokenizer.Encode(words).size(), static_cast<size_t>(Tokenizer::kMaxTokens));
  EXPECT_EQ(tokenizer.Encode(words).back(), Tokenizer::kEndId);
  EXPECT_GT(tokenizer.CountTokens(words), Tokenizer::kMaxTokens);
  EXPECT_EQ(tokenizer.CountTokens(""), 1);
}

TEST(Tokenizer, ThreadsShareOne) {
  const std::vector<nlohmann::json> probes = Probes();
  const Tokenizer& tokenizer = GoldenTokenizer();
  std::vector<int> different(4);
  std::vector<std::thread> threads;
  for (int& count : different) {
    threads.emplace_back([&] {
      for (const auto& probe : probes) {
        count += tokenizer.Encode(probe["cleaned"].get<std::string>()) != probe["ids"].get<Ids>();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(different, std::vector<int>(4, 0));
}

// SentencePiece with its byte pieces read as unknown runs, and the end mark: what DIFFERENCES.md,
// item 25, says of the two. Words of the golden prompts and foreign ones, in random order.
TEST(Tokenizer, AgreesWithSentencePieceButForBytes) {
  const SentencePieceOracle oracle(GoldenTokenizerPath());
  ASSERT_TRUE(oracle.ok());
  const std::vector<std::string> words = {"a",
                                          "red",
                                          "cat",
                                          "runs",
                                          "LIGHTHOUSE",
                                          "35mm",
                                          "3.14,",
                                          "caf\u00E9",
                                          "\u732B",
                                          "\u5750\u5728",
                                          "\u672A\u767B",
                                          "\u041F\u0440",
                                          "\uD55C\uAD6D",
                                          "\U0001F999",
                                          "x_y",
                                          "#7",
                                          "\u2122",
                                          "\uFF26",
                                          "(a+b)"};
  std::mt19937 random(7);
  for (int round = 0; round < 500; ++round) {
    std::string text;
    for (int n = 1 + static_cast<int>(random() % 20); n > 0; --n) {
      text += words[random() % words.size()] + (random() % 4 == 0 ? "" : " ");
    }
    Ids expected;
    bool in_bytes = false;
    for (const int id : oracle.Encode(text)) {
      const bool byte = oracle.IsByte(id);
      if (!byte) expected.push_back(id);
      if (byte && !in_bytes) expected.push_back(Tokenizer::kUnknownId);
      in_bytes = byte;
    }
    expected.push_back(Tokenizer::kEndId);
    EXPECT_EQ(GoldenTokenizer().Encode(text), expected) << text;
  }
}

// --- Files ---------------------------------------------------------------------------------------

class TokenizerFile : public ::testing::Test {
 protected:
  void SetUp() override {
    std::ifstream file(GoldenTokenizerPath(), std::ios::binary);
    golden_.assign(std::istreambuf_iterator<char>(file), {});
    ASSERT_EQ(golden_.size(), 248510U);
    path_ = ::testing::TempDir() + "/tokenizer_test_" +
            ::testing::UnitTest::GetInstance()->current_test_info()->name() + ".model";
  }
  void TearDown() override { std::filesystem::remove(path_); }

  absl::StatusOr<std::unique_ptr<Tokenizer>> LoadBytes(const std::string& bytes) {
    std::ofstream(path_, std::ios::binary) << bytes;
    return Tokenizer::Load(path_);
  }
  absl::StatusOr<std::unique_ptr<Tokenizer>> LoadModel(const sentencepiece::ModelProto& model) {
    return LoadBytes(model.SerializeAsString());
  }
  sentencepiece::ModelProto GoldenModel() {
    sentencepiece::ModelProto model;
    EXPECT_TRUE(model.ParseFromString(golden_));
    return model;
  }
  // An error of this code whose message names the file and what is wrong.
  void ExpectError(const absl::Status& status, absl::StatusCode code, const std::string& what) {
    EXPECT_EQ(status.code(), code) << status;
    EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr(path_), HasSubstr(what)));
  }

  std::string golden_;
  std::string path_;
};

TEST_F(TokenizerFile, MissingFileAndFolder) {
  ExpectError(Tokenizer::Load(path_).status(), absl::StatusCode::kNotFound, "does not exist");
  path_ = ::testing::TempDir();
  ExpectError(Tokenizer::Load(path_).status(), absl::StatusCode::kFailedPrecondition,
              "is a folder; must be a file");
  path_ += "/none";
}

TEST_F(TokenizerFile, NotAModel) {
  ExpectError(LoadBytes("").status(), absl::StatusCode::kDataLoss, "0 bytes");
  ExpectError(LoadBytes("{\"version\": \"1.0\"}").status(), absl::StatusCode::kDataLoss,
              "is a JSON text");
  ExpectError(LoadBytes("version https://git-lfs.github.com/spec/v1\n").status(),
              absl::StatusCode::kDataLoss, "is a Git LFS pointer, not the file: run git lfs pull");
  ExpectError(LoadBytes(std::string(1000, '\xFF')).status(), absl::StatusCode::kDataLoss,
              "damaged");
}

// Inside a field a cut file does not parse; between two it lacks what follows.
TEST_F(TokenizerFile, CutAnywhere) {
  for (size_t size = 1; size < golden_.size(); size += size < 9000 ? 13 : 5000) {
    const absl::Status status = LoadBytes(golden_.substr(0, size)).status();
    ExpectError(status, absl::StatusCode::kDataLoss, std::to_string(size) + " bytes");
  }
  sentencepiece::ModelProto pieces;
  *pieces.mutable_pieces() = GoldenModel().pieces();
  ExpectError(LoadModel(pieces).status(), absl::StatusCode::kDataLoss, "ends before");
}

TEST_F(TokenizerFile, AnotherKindOfModel) {
  sentencepiece::ModelProto model = GoldenModel();
  model.mutable_trainer_spec()->set_model_type(sentencepiece::TrainerSpec::BPE);
  ExpectError(LoadModel(model).status(), absl::StatusCode::kInvalidArgument, "not a unigram model");
}

TEST_F(TokenizerFile, PiecesThatNoUmt5Has) {
  constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
  sentencepiece::ModelProto model = GoldenModel();
  model.mutable_pieces(1)->set_piece("<s>");
  ExpectError(LoadModel(model).status(), kInvalid, "piece 1 should be </s>");

  model = GoldenModel();
  model.mutable_pieces()->DeleteSubrange(2, model.pieces_size() - 2);
  ExpectError(LoadModel(model).status(), kInvalid, "piece 2 should be <unk>");

  model = GoldenModel();
  model.mutable_pieces(300)->set_piece(model.pieces(299).piece());
  ExpectError(LoadModel(model).status(), kInvalid, "piece 300");

  model = GoldenModel();
  model.mutable_pieces(400)->clear_piece();
  ExpectError(LoadModel(model).status(), kInvalid, "piece 400 is empty");

  model = GoldenModel();
  model.mutable_pieces(500)->set_score(std::numeric_limits<float>::quiet_NaN());
  ExpectError(LoadModel(model).status(), kInvalid, "piece 500 has no finite score");
}

TEST_F(TokenizerFile, SentinelInTheFileIsNotAppendedAgain) {
  sentencepiece::ModelProto model = GoldenModel();
  model.mutable_pieces(599)->set_piece("<extra_id_5>");
  const auto loaded = LoadModel(model);
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_EQ((*loaded)->vocabulary_size(), 899);
  EXPECT_EQ((*loaded)->Encode("<extra_id_5>"), (Ids{599, 1}));
  EXPECT_EQ((*loaded)->Encode("<extra_id_0>"), (Ids{898, 1}));
}

TEST_F(TokenizerFile, DamagedNormalizationRules) {
  sentencepiece::ModelProto model = GoldenModel();
  model.mutable_normalizer_spec()->mutable_precompiled_charsmap()->resize(1000);
  ExpectError(LoadModel(model).status(), absl::StatusCode::kDataLoss, "normalization rules");
}

TEST_F(TokenizerFile, WithoutNormalizationRules) {
  sentencepiece::ModelProto model = GoldenModel();
  model.mutable_normalizer_spec()->clear_precompiled_charsmap();
  const auto loaded = LoadModel(model);
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  // A word start in the text begins a word of its own.
  EXPECT_EQ((*loaded)->Encode("a\u2581red cat"), GoldenTokenizer().Encode("a red cat"));
  EXPECT_EQ((*loaded)->Encode("\u2581a\u2581\u2581"), (Ids{264, 261, 261, 1}));
}

// A flipped bit gives an error that names the file, or a tokenizer whose ids are in range.
TEST_F(TokenizerFile, FlippedBits) {
  std::mt19937 random(11);
  int refused = 0;
  for (int round = 0; round < 150; ++round) {
    std::string damaged = golden_;
    for (int flips = 0; flips < 3; ++flips) {
      damaged[random() % damaged.size()] ^= static_cast<char>(1 << random() % 8);
    }
    // Half of the rounds spare the normalization rules, which are most of the file.
    if (round % 2 == 0) damaged[random() % 8000] ^= static_cast<char>(1 << random() % 8);
    const auto loaded = LoadBytes(damaged);
    if (!loaded.ok()) {
      ++refused;
      EXPECT_THAT(std::string(loaded.status().message()), HasSubstr(path_));
      continue;
    }
    for (const auto& probe : Probes()) {
      for (const int64_t id : (*loaded)->Encode(probe["text"].get<std::string>())) {
        ASSERT_GE(id, 0);
        ASSERT_LT(id, (*loaded)->vocabulary_size());
      }
    }
  }
  EXPECT_GT(refused, 0);
}

}  // namespace
}  // namespace wan
