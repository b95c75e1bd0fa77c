// Counters for one device.
#pragma once

#include <memory>

#include "engine/api/exchange_meter.h"
#include "engine/api/held_bytes.h"

namespace wan {

// A null counter counts nothing.
struct DeviceCounters {
  std::shared_ptr<HeldBytes> weights;        // counts bytes of weights on a GPU
  std::shared_ptr<ExchangeMeter> exchanges;  // counts exchanges with other devices of the group
};

}  // namespace wan
