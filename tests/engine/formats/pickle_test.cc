#include "engine/formats/pickle.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/engine/formats/files.h"

namespace wan {
namespace {

using ::testing::HasSubstr;
using Kind = PickleValue::Kind;
namespace pickle = testing::pickle;

absl::StatusOr<Pickle> Read(const std::string& bytes) {
  return ReadPickle(std::as_bytes(std::span(bytes)), "a.pth: data.pkl");
}

std::string ErrorOf(const std::string& value) {
  const absl::Status status = Read(pickle::Whole(value)).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(status.message()), HasSubstr("a.pth: data.pkl: "));
  return std::string(status.message());
}

PickleValue ValueOf(const std::string& value) {
  const absl::StatusOr<Pickle> read = Read(pickle::Whole(value));
  EXPECT_TRUE(read.ok()) << read.status();
  return read.ok() ? *read->root : PickleValue{};
}

TEST(PickleTest, ReadsPlainValues) {
  EXPECT_EQ(ValueOf("N").kind, Kind::kNone);
  EXPECT_EQ(ValueOf("\x88").integer, 1);
  EXPECT_EQ(ValueOf("\x89").kind, Kind::kBool);
  EXPECT_EQ(ValueOf("\x89").integer, 0);
  EXPECT_EQ(ValueOf("K\xff").integer, 255);
  EXPECT_EQ(ValueOf("M\xfe\xff").integer, 65534);
  EXPECT_EQ(ValueOf(pickle::Integer(-5)).integer, -5);
  EXPECT_EQ(ValueOf(std::string("\x8a\x00", 2)).integer, 0);
  EXPECT_EQ(ValueOf("\x8a\x01\xff").integer, -1);
  EXPECT_EQ(ValueOf(std::string("\x8a\x05\x00\x00\x00\x00\x01", 7)).integer, int64_t{1} << 32);
  EXPECT_EQ(ValueOf("\x8a\x08" + testing::LittleEndian(uint64_t{1} << 63, 8)).integer, INT64_MIN);
  EXPECT_EQ(ValueOf(std::string("G\xbf\xf8\0\0\0\0\0\0", 9)).real, -1.5);
  EXPECT_EQ(ValueOf(pickle::Text("caf\xc3\xa9")).text, "caf\xc3\xa9");
}

TEST(PickleTest, ReadsContainersAndMemo) {
  const PickleValue none = ValueOf(")");
  EXPECT_EQ(none.kind, Kind::kTuple);
  EXPECT_TRUE(none.items.empty());
  const absl::StatusOr<Pickle> nested =
      Read(pickle::Whole("(K\x01q\x05K\x02\x86K\x03\x85h\x05K\x04K\x05\x87t"));
  ASSERT_TRUE(nested.ok()) << nested.status();
  ASSERT_EQ(nested->root->items.size(), 3u);
  EXPECT_EQ(nested->root->items[0]->items.size(), 2u);
  EXPECT_EQ(nested->root->items[1]->items.size(), 1u);
  EXPECT_EQ(nested->root->items[2]->items.size(), 3u);
  EXPECT_EQ(nested->root->items[2]->items[0], nested->root->items[0]->items[0]);

  const absl::StatusOr<Pickle> dict =
      Read(pickle::Whole("}r" + testing::LittleEndian(70000, 4) + "K\x01K\x02s(K\x03j" +
                         testing::LittleEndian(70000, 4) + "u"));
  ASSERT_TRUE(dict.ok()) << dict.status();
  ASSERT_EQ(dict->root->entries.size(), 2u);
  EXPECT_EQ(dict->root->entries[0].second->integer, 2);
  EXPECT_EQ(dict->root->entries[1].second, dict->root) << "a dict may hold itself";
}

TEST(PickleTest, ReadsWhatStateDictsAreMadeOf) {
  const absl::StatusOr<Pickle> read = Read(
      pickle::Whole(pickle::EmptyOrderedDict() + "(" + pickle::Text("w") +
                    pickle::Tensor(pickle::Storage("FloatStorage", "0", 6), 0, {2, 3}, {3, 1}) +
                    "u" + pickle::Dict({{"_metadata", pickle::EmptyOrderedDict()}}) + "b"));
  ASSERT_TRUE(read.ok()) << read.status();
  ASSERT_EQ(read->root->kind, Kind::kDict);
  ASSERT_EQ(read->root->entries.size(), 1u) << "attributes are not entries";
  const PickleValue& call = *read->root->entries[0].second;
  EXPECT_EQ(call.kind, Kind::kCall);
  EXPECT_EQ(call.text, "torch._utils _rebuild_tensor_v2");
  ASSERT_EQ(call.items.size(), 1u);
  ASSERT_EQ(call.items[0]->items.size(), 6u);
  const PickleValue& storage = *call.items[0]->items[0];
  EXPECT_EQ(storage.kind, Kind::kPersistentId);
  EXPECT_EQ(storage.items[0]->items[1]->text, "torch FloatStorage");
}

TEST(PickleTest, RefusesEveryOtherGlobal) {
  for (const auto& [module, name] :
       {std::pair("os", "system"), std::pair("builtins", "eval"), std::pair("posix", "system"),
        std::pair("torch", "load"), std::pair("torch", "os.systemStorage"),
        std::pair("torch._utils", "_rebuild_tensor"), std::pair("torch.hub", "FloatStorage"),
        std::pair("collections", "OrderedDict.update")}) {
    const std::string global = pickle::Global(module, name);
    const std::string expected =
        std::string("byte 2: global \"") + module + " " + name + "\" has no place";
    EXPECT_THAT(ErrorOf(global), HasSubstr(expected));
    EXPECT_THAT(ErrorOf(global + pickle::Tuple({pickle::Text("x")}) + "R"), HasSubstr(expected));
  }
}

TEST(PickleTest, RefusesEveryOtherOpcode) {
  EXPECT_THAT(ErrorOf("]"), HasSubstr("byte 2: opcode 0x5d (EMPTY_LIST) has no place"));
  EXPECT_THAT(ErrorOf("N)\x81"), HasSubstr("(NEWOBJ)"));
  EXPECT_THAT(ErrorOf("N)}\x92"), HasSubstr("(NEWOBJ_EX)"));
  EXPECT_THAT(ErrorOf("\x93"), HasSubstr("(STACK_GLOBAL)"));
  EXPECT_THAT(ErrorOf("(ios\nsystem\n"), HasSubstr("(INST)"));
  EXPECT_THAT(ErrorOf("(o"), HasSubstr("(OBJ)"));
  EXPECT_THAT(ErrorOf("P0\n"), HasSubstr("(PERSID)"));
  EXPECT_THAT(ErrorOf("\x82\x01"), HasSubstr("(EXT)"));
  EXPECT_THAT(ErrorOf("\x80\x02"), HasSubstr("0x80"));
  EXPECT_THAT(ErrorOf("\xff"), HasSubstr("0xff (unknown)"));
}

TEST(PickleTest, CallsNothingThatIsNoFunctionOfOurs) {
  EXPECT_THAT(ErrorOf("K\x01)R"), HasSubstr("calls a value of kind integer"));
  EXPECT_THAT(ErrorOf(pickle::Global("torch", "FloatStorage") + ")R"),
              HasSubstr("calls \"torch FloatStorage\""));
  EXPECT_THAT(ErrorOf(pickle::Global("collections", "OrderedDict") + "N\x85R"),
              HasSubstr("calls \"collections OrderedDict\" with 1 arguments"));
  EXPECT_THAT(ErrorOf(pickle::Global("collections", "OrderedDict") + "NR"), HasSubstr("calls a"));
  EXPECT_THAT(ErrorOf("N}b"), HasSubstr("sets attributes of something other than a dict"));
  EXPECT_THAT(ErrorOf("}Nb"), HasSubstr("sets attributes of something other than a dict"));
}

TEST(PickleTest, RefusesStacksThatDoNotAddUp) {
  EXPECT_THAT(ErrorOf(""), HasSubstr("leaves 0 values"));
  EXPECT_THAT(ErrorOf("NN"), HasSubstr("leaves 2 values"));
  EXPECT_THAT(ErrorOf("("), HasSubstr("leaves 1 values"));
  EXPECT_THAT(ErrorOf("\x85"), HasSubstr("takes more values than the stack has"));
  EXPECT_THAT(ErrorOf("(\x85"), HasSubstr("takes a mark as a value"));
  EXPECT_THAT(ErrorOf("Nt"), HasSubstr("there is no mark"));
  EXPECT_THAT(ErrorOf("R"), HasSubstr("takes more values"));
  EXPECT_THAT(ErrorOf("Q"), HasSubstr("takes more values"));
  EXPECT_THAT(ErrorOf("b"), HasSubstr("takes more values"));
  EXPECT_THAT(ErrorOf("Nb"), HasSubstr("sets attributes"));
  EXPECT_THAT(ErrorOf("}(Nu"), HasSubstr("a key has no value"));
  EXPECT_THAT(ErrorOf("NNs"), HasSubstr("there is no dict"));
  EXPECT_THAT(ErrorOf("N(NNu"), HasSubstr("there is no dict"));
  EXPECT_THAT(ErrorOf("((NNu"), HasSubstr("there is no dict"));
  EXPECT_THAT(ErrorOf("q\x01"), HasSubstr("no value to remember"));
  EXPECT_THAT(ErrorOf("(q\x01"), HasSubstr("no value to remember"));
  EXPECT_THAT(ErrorOf("h\x07"), HasSubstr("nothing is remembered as 7"));
}

TEST(PickleTest, RefusesOtherProtocolsAndBadEnds) {
  EXPECT_THAT(std::string(Read("").status().message()), HasSubstr("does not begin like a pickle"));
  EXPECT_THAT(std::string(Read("N.").status().message()),
              HasSubstr("does not begin like a pickle"));
  EXPECT_THAT(std::string(Read("\x80\x04N.").status().message()),
              HasSubstr("protocol 4, expected 2"));
  EXPECT_THAT(std::string(Read("\x80\x02N..").status().message()),
              HasSubstr("there is data after the end of the pickle"));
  EXPECT_THAT(ErrorOf("\x8a\x09" + std::string(9, '\1')), HasSubstr("more than 64 bits"));
  const std::string whole = pickle::Whole(
      pickle::Dict({{"w", pickle::Tensor(pickle::Storage("HalfStorage", "0", 1), 0, {1}, {1})}}));
  ASSERT_TRUE(Read(whole).ok());
  for (size_t size = 0; size < whole.size(); ++size) {
    EXPECT_FALSE(Read(whole.substr(0, size)).ok()) << size;
  }
}

}  // namespace
}  // namespace wan
