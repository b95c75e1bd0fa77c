"""Reads a GPU's clocks, power, temperature and throttle reasons while something is measured on it, through the driver's
own library (NVML) and with nothing else installed: the fields and names of wan_bench's rows (benchmarks/card_watch.h)."""
import ctypes
import threading

# The names are those of ThrottleReasonNames in engine/monitor/nvml.cc. An idle GPU, and clocks that somebody has set, do not count as reasons.
REASONS = {0x4: "power cap", 0x8: "hardware slowdown", 0x10: "sync boost", 0x20: "temperature",
           0x40: "hardware temperature slowdown", 0x80: "power brake", 0x200: "board limit", 0x400: "reliability limit"}
NO_REASONS = 0x1 | 0x2 | 0x100
SM_CLOCK, GPU_TEMPERATURE, SUCCESS = 1, 0, 0
INTERVAL_SECONDS = 0.05


def reason_names(bits):
    names = [name for bit, name in REASONS.items() if bits & bit]
    unknown = bits & ~NO_REASONS & ~sum(REASONS)
    return names + ([f"reason 0x{unknown:x}"] if unknown else [])


class Nvml:
    """One GPU, by its UUID ("GPU-..."). Raises OSError if there is no driver or no such GPU."""

    def __init__(self, uuid):
        self.nvml = ctypes.CDLL("libnvidia-ml.so.1")
        self.device = ctypes.c_void_p()
        if self.nvml.nvmlInit_v2() != SUCCESS:
            raise OSError("NVML does not start")
        if self.nvml.nvmlDeviceGetHandleByUUID(uuid.encode(), ctypes.byref(self.device)) != SUCCESS:
            raise OSError(f"NVML has no {uuid}")

    def _get(self, name, number, *arguments):
        function = getattr(self.nvml, name, None)
        done = function is not None and function(self.device, *arguments, ctypes.byref(number)) == SUCCESS
        return number.value if done else None

    def read(self):
        """Returns (SM clock in MHz, power in W, temperature in degrees Celsius, bits of throttle reasons); None: could not be read."""
        milliwatts = self._get("nvmlDeviceGetPowerUsage", ctypes.c_uint())
        # The function was renamed in driver 535; later drivers still have the old name.
        reasons = self._get("nvmlDeviceGetCurrentClocksThrottleReasons", ctypes.c_ulonglong())
        return (self._get("nvmlDeviceGetClockInfo", ctypes.c_uint(), SM_CLOCK),
                None if milliwatts is None else milliwatts / 1000,
                self._get("nvmlDeviceGetTemperature", ctypes.c_uint(), GPU_TEMPERATURE), reasons)


class CardWatch:
    """with CardWatch(gpu.read) as watch: ...; afterwards watch.state has the fields of a row.

    A thread reads at once and then 20 times a second. `read` returns what Nvml.read does; None: no field is there.
    """

    def __init__(self, read):
        self.read = read
        self.readings = []
        self.state = {}
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self._watch)

    def _watch(self):
        while True:
            self.readings.append(self.read())
            if self.ended.wait(INTERVAL_SECONDS):
                return

    def __enter__(self):
        if self.read is not None:
            self.thread.start()
        return self

    def __exit__(self, *exception):
        if self.read is None:
            return
        self.ended.set()
        self.thread.join()
        clocks, watts, degrees, bits = ([v for v in values if v is not None] for values in zip(*self.readings))
        if clocks:
            self.state["sm_clock_mhz"] = sum(clocks) / len(clocks)
        if watts:
            self.state["power_watts"] = sum(watts) / len(watts)
        if degrees:
            self.state["temperature_celsius"] = max(degrees)
        if bits:
            self.state["throttle_reasons"] = sorted({name for one in bits for name in reason_names(one)})
