// A closed reader of Python pickles. It knows only the opcodes and names that state dicts consist
// of, and builds plain data from them. It never imports or calls anything, whatever the pickle asks
// for.
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

// One value. The comment of each kind names the members that hold it.
struct PickleValue {
  enum class Kind {
    kNone,
    kBool,          // integer: 0 or 1
    kInteger,       // integer
    kFloat,         // real
    kString,        // text
    kTuple,         // items
    kDict,          // entries; also for an OrderedDict
    kName,          // text: an allowed global, "module name"
    kPersistentId,  // items: one item, the id
    kCall,  // text: the allowed function, "module name"; items: one item, the tuple of arguments
  };

  Kind kind = Kind::kNone;
  int64_t integer = 0;
  double real = 0;
  std::string text;
  std::vector<const PickleValue*> items;
  // Keys and values in the order of the pickle. A key may occur twice.
  std::vector<std::pair<const PickleValue*, const PickleValue*>> entries;
};

// Returns the name that messages use: "none", "tuple" and so on. Thread-safe.
std::string_view PickleKindName(PickleValue::Kind kind);

// The result of ReadPickle. It owns all values. Values are shared as they are in the pickle, and a
// dict may contain itself.
struct Pickle {
  std::deque<PickleValue> values;
  const PickleValue* root = nullptr;
};

// Reads a pickle of protocol 2, which torch.save writes. It may hold None, bools, integers of up to
// 64 bits, floats, strings, tuples, dicts, memo entries and persistent ids;
// collections.OrderedDict, whose attributes are dropped; torch._utils._rebuild_tensor_v2 and
// _rebuild_parameter, which become kCall; and the storage types of torch, which become kName.
// Anything else is DATA_LOSS; the message names the opcode or global and its position. Messages
// begin with `where`. Thread-safe.
absl::StatusOr<Pickle> ReadPickle(std::span<const std::byte> bytes, std::string_view where);

}  // namespace wan
