"""Calls warmgraph's C interface through ctypes: the part of warmgraph.h that an adoption and a replay need."""
import ctypes as c

BF16 = 9
# Numbers of the C interface, by PyTorch's names.
DTYPES = {"uint8": 0, "int8": 1, "uint16": 2, "int16": 3, "uint32": 4, "int32": 5, "uint64": 6, "int64": 7, "float16": 8,
          "bfloat16": BF16, "float32": 10, "float64": 11, "bool": 12}
READ_WRITE, READ_ONLY = 0, 1
OUTCOMES = {0: "recorded", 1: "replayed", 2: "eager", 3: "refused"}


class Address(c.Structure):
    _fields_ = [("base", c.c_uint64), ("offset", c.c_uint64)]


class Memory(c.Structure):
    _fields_ = [("address", Address), ("size", c.c_uint64)]

    @staticmethod
    def at(pointer, size):
        return Memory(Address(256, pointer - 256), size)


class TensorDecl(c.Structure):
    _fields_ = [("name", c.c_char_p), ("dtype", c.c_int32), ("rank", c.c_uint32), ("sizes", c.POINTER(c.c_int64))]


class StateDecl(c.Structure):
    _fields_ = [("name", c.c_char_p), ("memory", Memory), ("access", c.c_int32)]


class Layout(c.Structure):
    _fields_ = [("name", c.c_char_p), ("dtype", c.c_int32), ("rank", c.c_uint32), ("sizes", c.POINTER(c.c_int64)),
                ("strides", c.POINTER(c.c_int64))]


class FunctionSpec(c.Structure):
    _fields_ = [
        ("size", c.c_uint64), ("name", c.c_char_p),
        ("inputs", c.POINTER(TensorDecl)), ("input_count", c.c_uint64),
        ("outputs", c.POINTER(TensorDecl)), ("output_count", c.c_uint64),
        ("states", c.POINTER(StateDecl)), ("state_count", c.c_uint64),
        ("scalars", c.c_void_p), ("scalar_count", c.c_uint64),
        ("values", c.c_void_p), ("value_count", c.c_uint64),
        ("code", c.c_void_p), ("code_count", c.c_uint64),
        ("config", c.c_void_p), ("config_count", c.c_uint64),
        ("environment", c.c_void_p), ("environment_count", c.c_uint64),
        ("version", c.c_char_p), ("policy", c.c_int32),
        ("events", c.c_void_p), ("event_count", c.c_uint64),
        ("semaphores", c.c_void_p), ("semaphore_count", c.c_uint64),
        ("frozen_variables", c.c_void_p), ("frozen_variable_count", c.c_uint64),
        ("no_addresses", c.c_void_p), ("no_address_count", c.c_uint64), ("strict", c.c_int32),
        ("layouts", c.POINTER(Layout)), ("layout_count", c.c_uint64),
        ("constants", c.c_void_p), ("constant_count", c.c_uint64),
        ("max_constant_bytes", c.c_uint64), ("undeclared_constants", c.c_int32),
    ]


class Arg(c.Structure):
    _fields_ = [
        ("name", c.c_char_p), ("kind", c.c_int32), ("dtype", c.c_int32), ("memory", Memory),
        ("sizes", c.c_void_p), ("strides", c.c_void_p), ("rank", c.c_uint64), ("bits", c.c_uint64),
    ]


class CacheOptions(c.Structure):
    _fields_ = [
        ("size", c.c_uint64), ("model", c.c_char_p), ("config", c.c_void_p), ("config_count", c.c_uint64),
        ("cache_dir", c.c_char_p), ("dynamic", c.c_int32), ("world_size", c.c_int32), ("global_rank", c.c_int32),
        ("tp_rank", c.c_int32), ("pp_rank", c.c_int32), ("policy", c.c_int32), ("accept_newer_driver", c.c_int32),
        ("share_with_group", c.c_int32), ("max_variants", c.c_uint32), ("record_wait_ms", c.c_uint32),
        ("verify_on_load", c.c_int32), ("record_on_demand", c.c_int32), ("probing_ms", c.c_uint32),
    ]


class PreloadOptions(c.Structure):
    _fields_ = [
        ("size", c.c_uint64), ("urgency", c.c_void_p), ("progress", c.c_void_p), ("user", c.c_void_p), ("wait", c.c_int32),
        ("threads", c.c_uint32), ("first", c.c_char_p), ("functions", c.POINTER(c.c_char_p)), ("function_count", c.c_uint64),
        ("device", c.c_void_p),
    ]


class NamedMemory(c.Structure):
    _fields_ = [("name", c.c_char_p), ("pointer", c.c_uint64), ("size", c.c_uint64)]


class NativeCapture(c.Structure):
    _fields_ = [
        ("size", c.c_uint64), ("graph", c.c_void_p),
        ("regions", c.POINTER(NamedMemory)), ("region_count", c.c_uint64),
        ("scratch", c.POINTER(NamedMemory)), ("scratch_count", c.c_uint64),
        ("events", c.c_void_p), ("event_count", c.c_uint64),
        ("semaphores", c.c_void_p), ("semaphore_count", c.c_uint64),
        ("scalars", c.c_void_p), ("scalar_count", c.c_uint64),
        ("free_blocks", c.POINTER(Memory)), ("free_block_count", c.c_uint64),
    ]


class Adoption(c.Structure):
    _fields_ = [
        ("size", c.c_uint64), ("first", c.POINTER(NativeCapture)), ("second", c.POINTER(NativeCapture)),
        ("allow_unproven", c.c_int32), ("values", c.c_void_p), ("value_count", c.c_uint64),
    ]


class Failure(RuntimeError):
    pass


class Library:
    """Calls functions by name. If a status is not ok, raises Failure with the library's text."""

    def __init__(self, path):
        self._library = c.CDLL(path)
        self._library.wg_last_error.restype = c.c_char_p
        self._library.wg_status_name.restype = c.c_char_p
        self._library.wg_report_reason.restype = c.c_char_p
        self._library.wg_device_stream.restype = c.c_void_p
        self._library.wg_device_stream.argtypes = [c.c_void_p]
        self._library.wg_cache_disabled_reason.restype = c.c_char_p
        self._library.wg_buffer_pointer.restype = c.c_uint64
        self._library.wg_report_outcome.restype = c.c_int32
        self._library.wg_report_first_call_ms.restype = c.c_double
        self._library.wg_report_phase_count.restype = c.c_uint64
        self._library.wg_report_phase_name.restype = c.c_char_p
        self._library.wg_report_phase_ms.restype = c.c_double
        self.raw = self._library

    def call(self, name, *arguments):
        status = getattr(self._library, name)(*arguments)
        if status != 0:
            code = self._library.wg_status_name(status).decode()
            raise Failure(f"{name}: {code}: {self._library.wg_last_error().decode()}")

    def made(self, name, *arguments):
        """Calls a function whose last argument returns a handle, and returns the handle."""
        handle = c.c_void_p()
        self.call(name, *arguments, c.byref(handle))
        return handle

    def opened_cache(self, model, folder):
        """Opens a cache in `folder` with the policy of $WARMGRAPH_POLICY."""
        options = CacheOptions()
        self.call("wg_cache_options_init", c.byref(options), c.c_uint64(c.sizeof(options)))
        options.model, options.cache_dir = model.encode(), str(folder).encode()
        options.world_size, options.global_rank = 1, 0
        return self.made("wg_cache_open", c.byref(options))

    def report(self, function):
        """The function's report about its first call or its adoption: outcome, reason, first_call_ms, and the milliseconds of the phases in
        order."""
        report, raw = self.made("wg_function_report", function), self._library
        indices = [c.c_uint64(i) for i in range(raw.wg_report_phase_count(report))]
        result = {
            "outcome": OUTCOMES.get(raw.wg_report_outcome(report), "unknown"),
            "reason": (raw.wg_report_reason(report) or b"").decode(),
            "first_call_ms": raw.wg_report_first_call_ms(report),
            "phases": [((raw.wg_report_phase_name(report, i) or b"").decode(), raw.wg_report_phase_ms(report, i)) for i in indices],
        }
        self.call("wg_report_destroy", report)
        return result


def array(kind, items):
    return (kind * len(items))(*items)


def memory_arg(name, pointer, size):
    """Makes the argument for an input, output or state of a call."""
    return Arg(name.encode(), 0, 0, Memory.at(pointer, size), None, None, 0, 0)


def named(ranges):
    return array(NamedMemory, [NamedMemory(r.name.encode(), r.pointer, r.size) for r in ranges])


def native_capture(captured):
    """Makes a wg_native_capture. `captured` has a graph, regions and scratch (name, pointer, size), and perhaps free_blocks (pointer,
    size). The result keeps the objects alive to which it points."""
    regions, scratch = named(captured.regions), named(captured.scratch)
    native = NativeCapture(c.sizeof(NativeCapture), captured.native, regions, len(regions), scratch, len(scratch))
    free = array(Memory, [Memory.at(pointer, size) for pointer, size in getattr(captured, "free_blocks", [])])
    native.free_blocks, native.free_block_count = free, len(free)
    native.keep = (regions, scratch, free)
    return native


def free_blocks(snapshot):
    """Returns {pointer: end} of the free blocks in PyTorch's allocator, from torch.cuda.memory_snapshot(). A snapshot before the capture contains no
    block of the graph's own pool, if that pool is new."""
    return {block["address"]: block["address"] + block["size"] for segment in snapshot
            for block in segment["blocks"] if block["state"] == "inactive"}


def free_throughout(before, after):
    """Returns [(pointer, size)] of the memory that is free both before and after."""
    result, ends = [], sorted(after.items())
    for start, end in sorted(before.items()):
        result += [(max(start, a), min(end, b) - max(start, a)) for a, b in ends if a < end and start < b]
    return result
