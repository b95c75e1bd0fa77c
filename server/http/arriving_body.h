// Stores the body of a request while Boost.Beast's parser reads it. The body type of Beast reserves
// the announced size at once; this one uses at most twice the bytes that have arrived.
#pragma once

#include <algorithm>
#include <boost/beast/core/buffers_range.hpp>
#include <boost/beast/http/error.hpp>
#include <boost/beast/http/message.hpp>
#include <boost/optional.hpp>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>

namespace wan::server {

struct ArrivingBody {
  using value_type = std::string;

  // Implements the BodyReader that Beast requires. Accepts a body of any size, because
  // HttpEntry::arrived limits the bytes.
  class reader {
   public:
    template <bool isRequest, class Fields>
    reader(boost::beast::http::header<isRequest, Fields>&, value_type& body) : body_(body) {}

    void init(const boost::optional<uint64_t>& announced, boost::system::error_code& error) {
      announced_ = announced.value_or(std::numeric_limits<uint64_t>::max());
      error = {};
    }

    template <class Buffers>
    size_t put(const Buffers& buffers, boost::system::error_code& error) {
      const size_t bytes = boost::beast::buffer_bytes(buffers);
      const size_t size = body_.size() + bytes;
      if (size > body_.capacity()) {
        body_.reserve(static_cast<size_t>(std::min<uint64_t>(2 * size, announced_)));
      }
      for (const auto piece : boost::beast::buffers_range_ref(buffers)) {
        body_.append(static_cast<const char*>(piece.data()), piece.size());
      }
      error = {};
      return bytes;
    }

    void finish(boost::system::error_code& error) { error = {}; }

   private:
    value_type& body_;
    uint64_t announced_ = 0;
  };
};

}  // namespace wan::server
