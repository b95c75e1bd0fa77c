#include "engine/formats/pickle.h"

#include <algorithm>
#include <bit>
#include <unordered_map>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "engine/formats/byte_reader.h"
#include "engine/formats/file_errors.h"

namespace wan {
namespace {

using Kind = PickleValue::Kind;

// The names are those of CPython's pickletools.
enum class Opcode : uint8_t {
  kMark = '(',
  kStop = '.',
  kBinFloat = 'G',
  kBinInt = 'J',
  kBinInt1 = 'K',
  kBinInt2 = 'M',
  kNone = 'N',
  kBinPersId = 'Q',
  kReduce = 'R',
  kBinUnicode = 'X',
  kBuild = 'b',
  kGlobal = 'c',
  kBinGet = 'h',
  kLongBinGet = 'j',
  kBinPut = 'q',
  kLongBinPut = 'r',
  kSetItem = 's',
  kTuple = 't',
  kSetItems = 'u',
  kEmptyTuple = ')',
  kEmptyDict = '}',
  kProto = 0x80,
  kTuple1 = 0x85,
  kTuple2 = 0x86,
  kTuple3 = 0x87,
  kNewTrue = 0x88,
  kNewFalse = 0x89,
  kLong1 = 0x8a,
};

constexpr int kProtocol = 2;

constexpr std::string_view kOrderedDict = "collections OrderedDict";

// Types of elements have names such as "torch FloatStorage"; torch_archive.cc knows all of them.
bool IsStorageType(std::string_view global) {
  constexpr std::string_view kModule = "torch ";
  if (!global.starts_with(kModule) || !global.ends_with("Storage")) return false;
  global.remove_prefix(kModule.size());
  return std::all_of(global.begin(), global.end(), absl::ascii_isalnum);
}

// The names, for messages, of opcodes that do not occur in state dicts.
std::string_view UnsupportedName(uint8_t opcode) {
  switch (opcode) {
    case 'i':
      return "INST";
    case 'o':
      return "OBJ";
    case 'P':
      return "PERSID";
    case 'a':
      return "APPEND";
    case 'e':
      return "APPENDS";
    case ']':
      return "EMPTY_LIST";
    case 'l':
      return "LIST";
    case 'd':
      return "DICT";
    case '0':
      return "POP";
    case '2':
      return "DUP";
    case 0x81:
      return "NEWOBJ";
    case 0x82:
    case 0x83:
    case 0x84:
      return "EXT";
    case 0x8b:
      return "LONG4";
    case 0x92:
      return "NEWOBJ_EX";
    case 0x93:
      return "STACK_GLOBAL";
    case 0x94:
      return "MEMOIZE";
    case 0x95:
      return "FRAME";
    default:
      return "unknown";
  }
}

bool IsFunction(std::string_view global) {
  return global == "torch._utils _rebuild_tensor_v2" || global == "torch._utils _rebuild_parameter";
}

class Machine {
  using Values = std::vector<const PickleValue*>;

 public:
  Machine(std::span<const std::byte> bytes, std::string_view where)
      : reader_(bytes), where_(where) {}

  absl::StatusOr<Pickle> Run() {
    if (reader_.Read<uint8_t>() != static_cast<uint8_t>(Opcode::kProto)) {
      return Damaged(where_, "does not begin like a pickle");
    }
    if (const auto protocol = reader_.Read<uint8_t>(); protocol != kProtocol) {
      return Damaged(where_, absl::StrCat("pickle protocol ", protocol, ", expected ", kProtocol));
    }
    while (true) {
      position_ = reader_.position();
      const auto opcode = reader_.Read<uint8_t>();
      if (!reader_.failed() && opcode == static_cast<uint8_t>(Opcode::kStop)) break;
      absl::Status status = reader_.failed() ? absl::OkStatus() : Execute(opcode);
      // Check this first, because operands that are cut off read as zeros.
      if (reader_.failed()) return Wrong("the pickle ends in the middle");
      if (!status.ok()) return status;
    }
    if (!reader_.AtEnd()) return Wrong("there is data after the end of the pickle");
    if (stack_.size() != 1 || stack_.front() == nullptr) {
      return Wrong(absl::StrCat("the pickle leaves ", stack_.size(), " values, expected one"));
    }
    pickle_.root = stack_.front();
    return std::move(pickle_);
  }

 private:
  absl::Status Wrong(std::string_view what) const {
    return Damaged(where_, absl::StrCat("byte ", position_, ": ", std::string(what)));
  }

  PickleValue& Push(Kind kind) {
    PickleValue& value = pickle_.values.emplace_back();
    value.kind = kind;
    stack_.push_back(&value);
    return value;
  }

  void PushInteger(int64_t integer) { Push(Kind::kInteger).integer = integer; }
  void PushBool(bool value) { Push(Kind::kBool).integer = value ? 1 : 0; }

  // Returns the topmost `count` values of the stack, oldest first.
  absl::StatusOr<Values> Pop(size_t count) {
    if (stack_.size() < count) return Wrong("takes more values than the stack has");
    Values values(stack_.end() - static_cast<std::ptrdiff_t>(count), stack_.end());
    stack_.resize(stack_.size() - count);
    if (std::find(values.begin(), values.end(), nullptr) != values.end()) {
      return Wrong("takes a mark as a value");
    }
    return values;
  }

  // Removes the topmost mark and the values above it from the stack, and returns the values.
  absl::StatusOr<Values> PopToMark() {
    const auto mark = std::find(stack_.rbegin(), stack_.rend(), nullptr);
    if (mark == stack_.rend()) return Wrong("there is no mark");
    absl::StatusOr<Values> values = Pop(static_cast<size_t>(mark - stack_.rbegin()));
    stack_.pop_back();
    return values;
  }

  // Returns the dict that is on top of the stack; nullptr if the top is not a dict.
  PickleValue* TopDict() {
    const bool dict =
        !stack_.empty() && stack_.back() != nullptr && stack_.back()->kind == Kind::kDict;
    return dict ? stack_.back() : nullptr;
  }

  // Pushes a value of `kind` whose items are the values above the topmost mark.
  absl::Status Wrap(Kind kind, absl::StatusOr<Values> items) {
    if (!items.ok()) return items.status();
    Push(kind).items = *std::move(items);
    return absl::OkStatus();
  }

  // NOLINTNEXTLINE(readability-function-size)
  absl::Status Execute(uint8_t opcode) {
    switch (static_cast<Opcode>(opcode)) {
      case Opcode::kMark:
        stack_.push_back(nullptr);
        return absl::OkStatus();
      case Opcode::kNone:
        Push(Kind::kNone);
        return absl::OkStatus();
      case Opcode::kNewTrue:
        PushBool(true);
        return absl::OkStatus();
      case Opcode::kNewFalse:
        PushBool(false);
        return absl::OkStatus();
      case Opcode::kBinInt:
        PushInteger(reader_.Read<int32_t>());
        return absl::OkStatus();
      case Opcode::kBinInt1:
        PushInteger(reader_.Read<uint8_t>());
        return absl::OkStatus();
      case Opcode::kBinInt2:
        PushInteger(reader_.Read<uint16_t>());
        return absl::OkStatus();
      case Opcode::kLong1:
        return ReadLong();
      case Opcode::kBinFloat:
        // This is the only number in the format that is big-endian.
        Push(Kind::kFloat).real =
            std::bit_cast<double>(__builtin_bswap64(reader_.Read<uint64_t>()));
        return absl::OkStatus();
      case Opcode::kBinUnicode:
        Push(Kind::kString).text = std::string(reader_.ReadText(reader_.Read<uint32_t>()));
        return absl::OkStatus();
      case Opcode::kEmptyTuple:
        return Wrap(Kind::kTuple, Pop(0));
      case Opcode::kTuple1:
        return Wrap(Kind::kTuple, Pop(1));
      case Opcode::kTuple2:
        return Wrap(Kind::kTuple, Pop(2));
      case Opcode::kTuple3:
        return Wrap(Kind::kTuple, Pop(3));
      case Opcode::kTuple:
        return Wrap(Kind::kTuple, PopToMark());
      case Opcode::kBinPersId:
        return Wrap(Kind::kPersistentId, Pop(1));
      case Opcode::kEmptyDict:
        Push(Kind::kDict);
        return absl::OkStatus();
      case Opcode::kSetItem:
        return SetItems(Pop(2));
      case Opcode::kSetItems:
        return SetItems(PopToMark());
      case Opcode::kBinPut:
        return Put(reader_.Read<uint8_t>());
      case Opcode::kLongBinPut:
        return Put(reader_.Read<uint32_t>());
      case Opcode::kBinGet:
        return Get(reader_.Read<uint8_t>());
      case Opcode::kLongBinGet:
        return Get(reader_.Read<uint32_t>());
      case Opcode::kGlobal:
        return ReadGlobal();
      case Opcode::kReduce:
        return Reduce();
      case Opcode::kBuild:
        return Build();
      case Opcode::kStop:
      case Opcode::kProto:
        break;
    }
    return Wrong(absl::StrFormat("opcode 0x%02x (%s) has no place in a state dict", opcode,
                                 std::string(UnsupportedName(opcode))));
  }

  absl::Status ReadLong() {
    const auto size = reader_.Read<uint8_t>();
    if (size > sizeof(int64_t)) return Wrong("an integer has more than 64 bits");
    uint64_t bits = 0;
    uint8_t last = 0;
    for (int i = 0; i < size; ++i) {
      last = reader_.Read<uint8_t>();
      bits |= static_cast<uint64_t>(last) << (8 * i);
    }
    const bool negative = (last & 0x80) != 0;
    if (negative && size < sizeof(int64_t)) bits |= ~uint64_t{0} << (8 * size);
    PushInteger(std::bit_cast<int64_t>(bits));
    return absl::OkStatus();
  }

  absl::Status ReadGlobal() {
    std::string name(reader_.ReadLine());
    name += ' ';
    name += reader_.ReadLine();
    if (reader_.failed()) return absl::OkStatus();  // Run() reports the error
    if (name != kOrderedDict && !IsFunction(name) && !IsStorageType(name)) {
      return Wrong(absl::StrCat("global \"", Printable(name), "\" has no place in a state dict"));
    }
    Push(Kind::kName).text = std::move(name);
    return absl::OkStatus();
  }

  absl::Status Put(uint32_t index) {
    if (stack_.empty() || stack_.back() == nullptr) return Wrong("there is no value to remember");
    memo_[index] = stack_.back();
    return absl::OkStatus();
  }

  absl::Status Get(uint32_t index) {
    const auto found = memo_.find(index);
    if (found == memo_.end()) return Wrong(absl::StrCat("nothing is remembered as ", index));
    stack_.push_back(found->second);
    return absl::OkStatus();
  }

  absl::Status SetItems(const absl::StatusOr<Values>& items) {
    if (!items.ok()) return items.status();
    PickleValue* const dict = TopDict();
    if (dict == nullptr) return Wrong("there is no dict to put entries into");
    if (items->size() % 2 != 0) return Wrong("a key has no value");
    for (size_t i = 0; i < items->size(); i += 2) {
      dict->entries.emplace_back((*items)[i], (*items)[i + 1]);
    }
    return absl::OkStatus();
  }

  absl::Status Reduce() {
    const absl::StatusOr<Values> call = Pop(2);
    if (!call.ok()) return call.status();
    const PickleValue& callee = *(*call)[0];
    const PickleValue& arguments = *(*call)[1];
    if (callee.kind != Kind::kName || arguments.kind != Kind::kTuple) {
      return Wrong(
          absl::StrCat("calls a value of kind ", std::string(PickleKindName(callee.kind))));
    }
    if (callee.text == kOrderedDict && arguments.items.empty()) {
      Push(Kind::kDict);
      return absl::OkStatus();
    }
    if (!IsFunction(callee.text)) {
      return Wrong(
          absl::StrCat("calls \"", callee.text, "\" with ", arguments.items.size(), " arguments"));
    }
    PickleValue& value = Push(Kind::kCall);
    value.text = callee.text;
    value.items = {&arguments};
    return absl::OkStatus();
  }

  // Drops the attribute "_metadata" with module versions, which torch gives state dicts.
  absl::Status Build() {
    const absl::StatusOr<Values> state = Pop(1);
    if (!state.ok()) return state.status();
    if (TopDict() == nullptr || state->front()->kind != Kind::kDict) {
      return Wrong("sets attributes of something other than a dict");
    }
    return absl::OkStatus();
  }

  ByteReader reader_;
  const std::string_view where_;
  uint64_t position_ = 0;  // position of the opcode that is being read
  Pickle pickle_;
  std::vector<PickleValue*> stack_;  // nullptr stands for a mark
  std::unordered_map<uint32_t, PickleValue*> memo_;
};

}  // namespace

std::string_view PickleKindName(PickleValue::Kind kind) {
  switch (kind) {
    case Kind::kNone:
      return "none";
    case Kind::kBool:
      return "bool";
    case Kind::kInteger:
      return "integer";
    case Kind::kFloat:
      return "float";
    case Kind::kString:
      return "string";
    case Kind::kTuple:
      return "tuple";
    case Kind::kDict:
      return "dict";
    case Kind::kName:
      return "global";
    case Kind::kPersistentId:
      return "persistent id";
    case Kind::kCall:
      return "tensor";
  }
  return "value";
}

absl::StatusOr<Pickle> ReadPickle(std::span<const std::byte> bytes, std::string_view where) {
  return Machine(bytes, where).Run();
}

}  // namespace wan
