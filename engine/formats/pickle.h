// A closed reader of Python pickles: it knows the few opcodes and names that state dicts are made
// of and builds plain data. Nothing is imported and nothing is called, whatever the pickle asks
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

struct PickleValue {
  enum class Kind {
    kNone,
    kBool,          // integer: 0 or 1
    kInteger,       // integer
    kFloat,         // real
    kString,        // text
    kTuple,         // items
    kDict,          // entries; an OrderedDict, too
    kName,          // text: an allowed global, "module name"
    kPersistentId,  // items: one, the id
    kCall,          // text: the allowed function, "module name"; items: one, its arguments' tuple
  };

  Kind kind = Kind::kNone;
  int64_t integer = 0;
  double real = 0;
  std::string text;
  std::vector<const PickleValue*> items;
  // In the pickle's order; a key may occur twice.
  std::vector<std::pair<const PickleValue*, const PickleValue*>> entries;
};

// "none", "tuple", ...: for messages.
std::string_view PickleKindName(PickleValue::Kind kind);

// A read pickle. Values are shared as in the pickle, and a dict may contain itself.
struct Pickle {
  std::deque<PickleValue> values;
  const PickleValue* root = nullptr;
};

// Protocol 2, which is torch.save's, with: None, bools, ints to 64 bits, floats, strings, tuples,
// dicts, memo, persistent ids; collections.OrderedDict (whose attributes are dropped),
// torch._utils._rebuild_tensor_v2 and _rebuild_parameter as kCall, and torch's storage types as
// kName. DATA_LOSS, naming opcode or global and its position, for anything else. `where` is for
// messages.
absl::StatusOr<Pickle> ReadPickle(std::span<const std::byte> bytes, std::string_view where);

}  // namespace wan
