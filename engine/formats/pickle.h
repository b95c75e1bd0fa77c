// Reads Python pickles of a restricted kind. The reader supports only the opcodes and the names
// that state dicts use, and builds plain data from them. The reader never imports or calls anything
// that the pickle names.
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

// One value of a pickle. The comment of each kind says which members hold the value.
struct PickleValue {
  enum class Kind {
    kNone,
    kBool,          // held in `integer`: 0 or 1
    kInteger,       // held in `integer`
    kFloat,         // held in `real`, in double precision
    kString,        // held in `text`, as UTF-8
    kTuple,         // held in `items`
    kDict,          // held in `entries`; an OrderedDict is a kDict as well
    kName,          // held in `text`: a global name that is allowed, "module name"
    kPersistentId,  // held in `items`: the id is the only item
    kCall,          // `text`: allowed function, "module name"; `items`: its arguments
  };

  Kind kind = Kind::kNone;
  int64_t integer = 0;
  double real = 0;
  std::string text;
  std::vector<const PickleValue*> items;
  // Keys and values in the order of the pickle; a key may occur more than once.
  std::vector<std::pair<const PickleValue*, const PickleValue*>> entries;
};

// Returns the word for the kind in messages: "none", "tuple" and so on. Thread-safe.
std::string_view PickleKindName(PickleValue::Kind kind);

// The result of ReadPickle. The object owns all values of the pickle. Several values may contain
// the same value, and a dict may contain itself, if the pickle says so.
struct Pickle {
  std::deque<PickleValue> values;
  const PickleValue* root = nullptr;
};

// Reads a pickle of protocol 2, the protocol that torch.save uses. The reader supports None, bools,
// integers of up to 64 bits, floats, strings, tuples, dicts, memo entries and persistent ids. The
// reader also supports collections.OrderedDict, whose attributes are dropped;
// torch._utils._rebuild_tensor_v2 and _rebuild_parameter, which become kCall; and torch's storage
// types, which become kName. DATA_LOSS for any other opcode or global name; the message names it
// and its position. Messages begin with `where`. Thread-safe.
absl::StatusOr<Pickle> ReadPickle(std::span<const std::byte> bytes, std::string_view where);

}  // namespace wan
