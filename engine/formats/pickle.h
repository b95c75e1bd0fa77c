// A restricted reader of Python pickles. It supports only the opcodes and names of state dicts, and
// builds plain data from them. It never imports or calls anything.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

namespace wan {

// One value. The comment of each kind names the members that are used.
struct PickleValue {
  enum class Kind {
    kNone,
    kBool,          // held in `integer`: 0 or 1
    kInteger,       // held in `integer`
    kFloat,         // held in `real`
    kString,        // held in `text`
    kTuple,         // held in `items`
    kDict,          // held in `entries`; also for an OrderedDict
    kName,          // held in `text`: an allowed global, "module name"
    kPersistentId,  // held in `items`: the id alone
    kCall,          // text: allowed function, "module name"; items: argument tuple
  };

  Kind kind = Kind::kNone;
  int64_t integer = 0;
  double real = 0;
  std::string text;
  std::vector<const PickleValue*> items;
  // Keys and values in the pickle's order; keys may repeat.
  std::vector<std::pair<const PickleValue*, const PickleValue*>> entries;
};

// Returns the kind as messages spell it: "none", "tuple" and so on. Thread-safe.
std::string_view PickleKindName(PickleValue::Kind kind);

// The result of ReadPickle. It owns all values. Values may be shared, and a dict may contain
// itself, as in the pickle.
struct Pickle {
  std::deque<PickleValue> values;
  const PickleValue* root = nullptr;
};

// Reads a pickle of protocol 2, which torch.save writes. Supported are None, bools, integers of up
// to 64 bits, floats, strings, tuples, dicts, memo entries and persistent ids;
// collections.OrderedDict, whose attributes are dropped; torch._utils._rebuild_tensor_v2 and
// _rebuild_parameter, which become kCall; and torch's storage types, which become kName. Anything
// else is DATA_LOSS, naming the opcode or global and its position. Messages begin with `where`.
// Thread-safe.
absl::StatusOr<Pickle> ReadPickle(std::span<const std::byte> bytes, std::string_view where);

}  // namespace wan
