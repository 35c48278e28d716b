"""Measures the memory that a piece of work takes: memory of the whole device with NVML, and of this process with /proc."""
import contextlib
import ctypes as c
import threading


class _Memory(c.Structure):
    _fields_ = [("total", c.c_ulonglong), ("free", c.c_ulonglong), ("used", c.c_ulonglong)]


class DeviceMemory:
    """The bytes of CUDA's device 0 that all processes use. `reason` is empty, or says why the number is not known."""

    def __init__(self):
        self.reason = ""
        try:
            self._nvml = c.CDLL("libnvidia-ml.so.1")
            self._call("nvmlInit_v2")
            self._device = c.c_void_p()
            self._call("nvmlDeviceGetHandleByPciBusId_v2", self._bus_id(), c.byref(self._device))
        except (OSError, RuntimeError, AttributeError) as error:
            self.reason = str(error)

    def _call(self, name, *arguments):
        status = getattr(self._nvml, name)(*arguments)
        if status != 0:
            raise RuntimeError(f"{name} gave {status}")

    @staticmethod
    def _bus_id():
        """The bus id of CUDA's device 0. CUDA_VISIBLE_DEVICES changes the numbers that CUDA gives to devices, but not those of NVML."""
        cuda, text, device = c.CDLL("libcuda.so.1"), c.create_string_buffer(32), c.c_int()
        for status in (cuda.cuInit(0), cuda.cuDeviceGet(c.byref(device), 0), cuda.cuDeviceGetPCIBusId(text, 32, device)):
            if status != 0:
                raise RuntimeError(f"CUDA names no device 0 (status {status})")
        return text

    def used(self):
        """The bytes that are in use. None when the number is not known."""
        if self.reason:
            return None
        memory = _Memory()
        try:
            self._call("nvmlDeviceGetMemoryInfo", self._device, c.byref(memory))
        except RuntimeError as error:
            self.reason = str(error)
            return None
        return memory.used


def host_memory():
    """Returns {"VmRSS": the process's bytes now, "VmHWM": the most bytes so far}."""
    found = {}
    with open("/proc/self/status") as status:
        for line in status:
            name, _, rest = line.partition(":")
            if name in ("VmRSS", "VmHWM"):
                found[name] = int(rest.split()[0]) * 1024
    return found


def reset_host_peak():
    """Resets VmHWM to the bytes that are resident now. Without the right to do so, VmHWM is still the peak of the whole process."""
    with contextlib.suppress(OSError), open("/proc/self/clear_refs", "w") as control:
        control.write("5")


class Watch:
    """A context manager that samples the memory every 2 ms. Afterwards, `report` has the bytes before, the most bytes, and the bytes after."""

    def __init__(self, device_memory):
        self._device_memory, self._stop = device_memory, threading.Event()
        self._thread, self._peak, self.report = None, 0, {}

    def _look(self):
        while not self._stop.wait(0.002):
            self._peak = max(self._peak, self._device_memory.used() or 0)

    def __enter__(self):
        reset_host_peak()
        host, device = host_memory(), self._device_memory.used()
        self.report = {"host_before": host.get("VmRSS"), "device_before": device}
        self._peak = device or 0
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._stop.set()
        self._thread.join()
        host, device = host_memory(), self._device_memory.used()
        self.report |= {"host_peak": host.get("VmHWM"), "host_after": host.get("VmRSS"),
                        "device_peak": None if device is None else max(self._peak, device), "device_after": device}
