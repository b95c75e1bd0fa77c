// Reads JSON from files that may be damaged or hostile.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace wan {

// Parses `text` as JSON. DATA_LOSS, with the position, if the text is not JSON, if an object has
// the same key twice, or if it is nested more than 64 levels deep. Messages call the text's file
// `file`.
absl::StatusOr<nlohmann::json> ParseJson(std::string_view text, std::string_view file);

// Reads a file and parses it as ParseJson does. DATA_LOSS also if the root is not an object, or if
// somebody truncates the file meanwhile. If the file cannot be opened, returns the error of
// MappedFile::Open.
absl::StatusOr<nlohmann::json> ReadJsonObject(const std::string& path);

// Reads typed fields of an object and collects all problems, so that one pass over the object finds
// all of them. A field that is absent, null, of another type or out of range adds a problem. A
// field with a problem has the zero value of its type. Not thread-safe.
class JsonFields {
 public:
  // Messages call the object's file `file`. Both arguments must outlive the reader.
  JsonFields(const nlohmann::json& object, const std::string& file);

  // Returns the keys of all fields, sorted.
  std::vector<std::string> Keys() const;

  // Returns whether the field is present and not null.
  bool Has(std::string_view key) const;

  // `min` and `max` are the least and the greatest value that is accepted.
  int64_t Integer(std::string_view key, int64_t min, int64_t max);
  double Number(std::string_view key);
  bool Bool(std::string_view key);
  std::string Text(std::string_view key);
  std::vector<int64_t> Integers(std::string_view key, int64_t min, int64_t max);
  std::vector<double> Numbers(std::string_view key);
  std::vector<bool> Bools(std::string_view key);

  // Adds a DATA_LOSS problem that the caller has found: fields contradict each other or the format.
  void AddProblem(std::string_view what);
  // Adds an UNIMPLEMENTED problem that the caller has found: the engine does not support a value.
  void Refuse(std::string_view what);

  const std::vector<absl::Status>& problems() const { return problems_; }

 private:
  template <typename T, typename Accepts>
  T Scalar(std::string_view key, std::string_view expected, Accepts accepts);
  template <typename T, typename Accepts>
  std::vector<T> Array(std::string_view key, std::string_view expected, Accepts accepts);
  const nlohmann::json* Find(std::string_view key);
  void Wrong(std::string_view key, std::string_view expected, const nlohmann::json& found);

  const nlohmann::json& object_;
  const std::string& file_;
  std::vector<absl::Status> problems_;
};

}  // namespace wan
