// The part of the C interface that only the Python package `warmgraph` calls; it is not installed. It reads Python's
// objects natively, without Python's headers. The package has the library's version, so these functions and structs may
// change with every version, and null pointers are not checked.
//
// Threads: the caller holds Python's lock.
#pragma once

#include <stdint.h>

#include "warmgraph/warmgraph.h"

#ifdef __cplusplus
extern "C" {
#endif

// --- memory of captures ---------------------------------------------------------------------------------------------

/// Opens a pool for the next capture in PyTorch, and closes the pool that was open. Its segments lie one behind the
/// other, in the order of the requests. `is_shared` nonzero: the segments share a little memory, for a capture that never
/// runs. wg_unsupported: the device cannot do this.
WARMGRAPH_API wg_status wg_capture_pool_open(const wg_device* device, int32_t is_shared);
/// Closes the pool. Its segments live until they are released.
WARMGRAPH_API void wg_capture_pool_close(void);
/// The functions of a torch.cuda.CUDAPluggableAllocator: allocate a segment of the open pool (NULL: there is no memory,
/// or no pool is open), and release one. Thread-safe, and called without Python's lock.
WARMGRAPH_API void* wg_capture_pool_allocate(int64_t bytes, int32_t device, void* stream);
WARMGRAPH_API void wg_capture_pool_release(void* segment, int64_t bytes, int32_t device, void* stream);

// --- objects that did not change ------------------------------------------------------------------------------------

// These structs own nothing. The objects must live as long as the structs are used.

/// DLPack's dltensor_from_py_object_no_sync (dlpack.h, DLPackExchangeAPI). It fills the DLTensor and returns 0; another
/// number means failure.
typedef int (*wg_dltensor_reader)(void* object, void* dltensor);

/// The description of a tensor, and the place that keeps its address.
typedef struct wg_tensor_look {
    const int64_t* sizes;   ///< `rank` of them, in elements
    const int64_t* strides; ///< `rank` of them, in elements
    int32_t rank;
    int32_t device_type; ///< DLDeviceType
    int32_t device_id;
    uint8_t code; ///< DLDataTypeCode
    uint8_t bits;
    uint16_t lanes;
    uint64_t alignment; ///< the address must be a multiple of this many bytes; 0: any address
    uint64_t* address;  ///< the place that keeps the tensor's address
} wg_tensor_look;

/// Describes tensors as they are now. Each description has the alignment 0, and its `address` points to the element of
/// `own` with the tensor's index. Returns how many elements of `numbers` the sizes and strides of all tensors need. If
/// `room` is less, the caller calls again with that many elements. Less than 0: a tensor cannot be described; the
/// framework's exception is set if it has one.
WARMGRAPH_API int64_t wg_look_at_tensors(wg_dltensor_reader read, void* const* tensors, uint64_t count,
                                         wg_tensor_look* looks, uint64_t* own, int64_t* numbers, uint64_t room);
/// Returns 1 if each tensor has its description and lies at its address. 0: a tensor differs, or cannot be described.
WARMGRAPH_API int wg_tensors_are_there(wg_dltensor_reader read, void* const* tensors, const wg_tensor_look* looks,
                                       uint64_t count);

/// DLPack's name for a type of elements. `bits` 0: the type is unknown.
typedef struct wg_torch_type {
    uint8_t code; ///< DLDataTypeCode
    uint8_t bits;
} wg_torch_type;

/// PyTorch's own C functions for a tensor, which stay the same from version to version
/// (torch/csrc/inductor/aoti_torch/c/shim.h). Each takes an at::Tensor*, sets its result, and returns 0, or another
/// number for a failure.
typedef struct wg_torch_tensors {
    uint64_t at;                  ///< bytes from a Python object to its at::Tensor
    void* kinds[2];               ///< the classes of tensors; objects of other classes go to `otherwise`
    wg_dltensor_reader otherwise; ///< DLPack's reader, for a tensor that is on another device or has no strides
    int32_t (*get_data_ptr)(void*, void**);
    int32_t (*get_dim)(void*, int64_t*);
    int32_t (*get_sizes)(void*, int64_t**);
    int32_t (*get_strides)(void*, int64_t**);
    int32_t (*get_dtype)(void*, int32_t*);
    int32_t (*get_device_type)(void*, int32_t*);
    int32_t (*get_device_index)(void*, int32_t*);
    int32_t (*get_layout)(void*, int32_t*);
    uint8_t (*requires_grad)(const void*); ///< c10::TensorImpl::requires_grad
    int32_t strided;                       ///< PyTorch's number of the strided layout
    int32_t cpu;                           ///< PyTorch's number of the device type CPU
    int32_t cuda;                          ///< PyTorch's number of the device type CUDA
    wg_torch_type types[64];               ///< types of elements, by PyTorch's number
} wg_torch_tensors;

/// Sets the functions that wg_read_torch_tensor uses from now on, in this process. The struct is copied. Returns 0.
WARMGRAPH_API int wg_use_torch_tensors(const wg_torch_tensors* tensors);
/// A wg_dltensor_reader for PyTorch's tensors. It calls PyTorch's functions where it can, which is quicker than
/// DLPack's exchange.
WARMGRAPH_API int wg_read_torch_tensor(void* object, void* dltensor);

/// A dictionary and its contents: `count` pairs of a key and a value, in the dictionary's order.
typedef struct wg_dict_look {
    void* dict;
    void* const* pairs;
    uint64_t count;
} wg_dict_look;

/// An item of a dictionary; `value` is NULL if the key was not there.
typedef struct wg_dict_item_look {
    void* dict;
    void* key;
    void* value;
} wg_dict_item_look;

/// A list and its items.
typedef struct wg_list_look {
    void* list;
    void* const* items;
    uint64_t count;
} wg_list_look;

/// An object, the dictionary of its attributes (NULL: it is not compared) and its class.
typedef struct wg_object_look {
    void* object;
    void* dict;
    void* kind;
    /// Set by wg_snapshot_is_same: where the object keeps `dict`. NULL: Python is asked for the dictionary
    void** place;
} wg_object_look;

/// An attribute that getattr gives for an object and a name; `value` is NULL if there was no such attribute.
typedef struct wg_attribute_look {
    void* object;
    void* name;
    void* value;
} wg_attribute_look;

/// Objects that were found earlier. wg_snapshot_is_same compares them by identity with the objects that are there now.
typedef struct wg_snapshot {
    const wg_dict_look* dicts;
    uint64_t dict_count;
    const wg_dict_item_look* items;
    uint64_t item_count;
    const wg_list_look* lists;
    uint64_t list_count;
    wg_object_look* objects;
    uint64_t object_count;
    const wg_attribute_look* attributes;
    uint64_t attribute_count;
    int32_t is_told;  ///< nonzero: Python reports each change of the dictionaries (wg_note_dict_event)
    int32_t has_seen; ///< nonzero: the dictionaries had the same contents after `seen` events
    uint64_t seen;    ///< set by wg_snapshot_is_same
} wg_snapshot;

/// Returns 1 if all objects are the same, 0 if an object is not the same, and -1 if this process does not export
/// Python's functions. No exception stays set.
WARMGRAPH_API int wg_snapshot_is_same(wg_snapshot* snapshot);
/// A callback for PyDict_AddWatcher (Python 3.12). It counts the events of all dictionaries that it watches. Returns 0.
WARMGRAPH_API int wg_note_dict_event(int event, void* dict, void* key, void* new_value);
/// Returns the address of the count of wg_note_dict_event, valid while the library is loaded. If the count has risen, a
/// dictionary may have changed.
WARMGRAPH_API const uint64_t* wg_dict_events(void);

// --- calls that repeat an earlier call ------------------------------------------------------------------------------

/// A test reads its object from a register. Register 0 has the tuple of arguments, register 1 the dict of keyword
/// arguments. Each other register is set by one test before it is read.
typedef int32_t wg_test_kind;
enum wg_test_kind_values {
    wg_test_items = 0, ///< `from`, a tuple or list, has `number` items; they go into `to` and the next registers
    wg_test_named = 1, ///< `from`, a dict, has the keys of the tuple `object` in this order; its values go into `to`
                       ///< and the next registers
    wg_test_attributes = 2, ///< the dict of the own attributes of `from` goes into `to`
    wg_test_call = 3,       ///< the result of calling `object` (with `other`, if it is not NULL) goes into `to`
    wg_test_type = 4,       ///< `from` is of the class `object`, and not of a derived class
    wg_test_is = 5,         ///< `from` is `object`
    wg_test_equals = 6,     ///< `from` == `object`
    wg_test_number = 7,     ///< int(`from`) == `number`, as signed numbers
    wg_test_bits = 8,       ///< `from`, a float, has the bits `number`
    wg_test_empty = 9,      ///< len(`object`) == 0
    wg_test_apart = 10,  ///< `from` is another object than those in all other registers with this test, and its id is
                         ///< not among the ids in wg_steady_call.around
    wg_test_tensor = 11, ///< `from`, a tensor, requires no grad, and has the wg_tensor_test_values in `number`
    wg_test_code = 12,   ///< the C function `object`, called with `other`, returns an integer; its byte with the index
                         ///< `from` equals `number`
    wg_test_code_null = 13,   ///< the C function returns a pointer to a null pointer (an empty std::shared_ptr)
    wg_test_code_empty = 14,  ///< the C function returns a pointer to two equal pointers (an empty std::vector)
    wg_test_code_numbers = 15 ///< the C function fills up to 64 bytes at its first argument with 32-bit numbers; the
                              ///< first `from` of them (at most 8) have the bytes of `number`, the lowest first
};

typedef int32_t wg_tensor_test;
enum wg_tensor_test_values {
    wg_tensor_test_not_lazy = 1,     ///< the tensor is not lazily negated or conjugated
    wg_tensor_test_no_attributes = 2 ///< the tensor has no attributes of its own
};

typedef struct wg_test {
    wg_test_kind kind;
    uint32_t from;
    uint32_t to;
    uint64_t number;
    void* object;
    void* other;
} wg_test;

/// A tensor that stays at its address: one of a call's states.
typedef struct wg_weight {
    void* tensor;
    wg_tensor_look look;
    int32_t requires_grad;
    int32_t can_be_lazy; ///< nonzero: each call asks whether the tensor is lazily negated or conjugated
    const void* near[3]; ///< addresses of the framework's records on the tensor: prefetched, and never read
} wg_weight;

/// Makes the memory for a result of a call.
typedef struct wg_result_maker {
    void* make;        ///< a callable
    void* arguments;   ///< a tuple
    uint64_t* address; ///< set to the result's address minus `base`; NULL: the result has no elements
} wg_result_maker;

typedef struct wg_memory_range {
    uint64_t first;
    uint64_t end;
} wg_memory_range;

/// The description of a call that was replayed, so that the same call is recognised natively. The objects are borrowed
/// from Python: `kept` keeps them alive.
typedef struct wg_steady_call {
    void* kept;
    const wg_test* tests;
    uint64_t test_count;
    uint64_t register_count;
    const uint64_t* around; ///< ids of objects that must not be arguments, ascending
    uint64_t around_count;
    const int32_t* is_frozen; ///< if it is nonzero, `surroundings`, `rest` and `weights` are not compared
    wg_snapshot* surroundings;
    void* const* rest; ///< callables that return whether the objects that they check are the same
    uint64_t rest_count;
    const wg_weight* weights;
    uint64_t weight_count;
    /// Size in bytes of the object that a weight's at::Tensor points to (c10::TensorImpl). While these bytes are the
    /// same, the functions of wg_use_torch_tensors return the same for the weight; then each call asks only for its
    /// address. 0: each call asks all functions.
    uint64_t weight_bytes;
    wg_snapshot* always; ///< compared at each call, also if `is_frozen` is nonzero
    wg_dltensor_reader read_tensor;
    uint64_t base;
    const uint32_t* inputs;            ///< registers of the input tensors
    const wg_tensor_look* input_looks; ///< `address` is set to the device pointer minus `base`
    uint64_t input_count;
    const uint64_t* extents;       ///< size of each input in bytes; 0 for an input without memory
    const wg_memory_range* states; ///< memory that no input may overlap; ascending, without overlaps
    uint64_t state_count;
    /// The descriptor torch.Tensor.requires_grad. NULL: the function of wg_use_torch_tensors is used
    void* requires_grad;
    void* is_negated;       ///< torch.Tensor.is_neg
    void* is_conjugated;    ///< torch.Tensor.is_conj
    const uint32_t* values; ///< registers whose objects `result` gets
    uint64_t value_count;
    const wg_result_maker* outputs;
    uint64_t output_count;
    /// A count that is odd while tensors are being moved; if it is odd, or changes during the tests, `otherwise` is
    /// returned
    const uint64_t* moves;
    void* acquire; ///< with `release`: callables for the lock that is held from the first test to the launch
    void* release;
    void* native_stream; ///< a callable that returns the framework's current stream of `device_index`, as a number
    void* device_index;
    void* stream;      ///< a callable that returns the library's handle for the number of a stream
    uint64_t* replays; ///< counts launches
    uint64_t often;
    void* replayed; ///< a callable; it is called before each launch that makes `replays` a multiple of `often`
    /// wg_stream_is_capturing: if it returns 1, `otherwise` is returned. NULL: a test has checked this
    int (*is_capturing)(const wg_stream*);
    wg_status (*enqueue)(wg_function*, wg_stream*, const wg_arg*, uint64_t, wg_outcome*); ///< wg_call_uncaptured
    wg_function* function;
    const wg_arg* args;
    uint64_t arg_count;
    void* failed; ///< a callable (status): returns the result, or raises, if `enqueue` fails
    void* result; ///< a callable (outputs, values), two tuples: returns the result. NULL: output `output` is the result
    uint64_t output;
    void* otherwise; ///< returned for a call that does not pass all tests
} wg_steady_call;

/// Makes a Python callable that takes (args, kwargs). It replays a call that passes all tests, and returns `otherwise`
/// for any other call. Without `enqueue` it launches nothing and returns the two tuples that `result` takes; the caller
/// must then hold the lock of `acquire` itself. It copies the struct and keeps `kept` alive. `call_size`:
/// sizeof(wg_steady_call). wg_unsupported: the size is the size of another version's struct, or the process does not
/// export Python's functions.
WARMGRAPH_API wg_status wg_steady_call_create(uint64_t call_size, const wg_steady_call* call, void** callable);

// --- facts -----------------------------------------------------------------------------------------------------------

/// Returns a new text with a line for each fact of `facts` (a dict of texts) whose name is in `known` or begins with
/// `beginning`: the name, a tab and the value. The lines are in the order of the names' bytes. The other facts go into
/// the dict `apart`. The text is empty if there are no facts, or if it could not be read back: a value has a line end,
/// or a name has a line end or a tab. NULL: an exception of Python is set. REQUIRES: this process exports Python
/// (wg_snapshot_is_same).
WARMGRAPH_API void* wg_list_facts(void* facts, void* known, const char* beginning, void* apart);
/// Folds facts that are too many for an entry into the dict `into`, so that names and values have at most `most`
/// letters together. All facts below one path become one fact: their number and a digest. The paths have at most
/// `deepest` steps, and are as long as the room allows. Returns 0, or -1 with an exception of Python set. REQUIRES: as
/// for wg_list_facts.
WARMGRAPH_API int wg_fold_facts(void* facts, uint64_t most, uint64_t deepest, void* into);

// --- recording -------------------------------------------------------------------------------------------------------

/// Stops keeping device code, for the whole process, until the next miss or wg_prepare_recording. The functions of
/// these caches must be settled: each was called, and the outcome of the call is known. wg_unsupported: device code is
/// still kept, and wg_last_error says why (a function that was not called yet, code that keeps state, a profiler, a
/// recording).
WARMGRAPH_API wg_status wg_pause_recording(const wg_cache* const* caches, uint64_t count);

// --- texts -----------------------------------------------------------------------------------------------------------

/// Gives the address of each text of a list, in UTF-8 with an ending 0, valid as long as the text lives. It copies
/// nothing. Returns 0, or -1 with an exception of Python set. REQUIRES: as for wg_list_facts; `addresses` has room for
/// all texts.
WARMGRAPH_API int wg_text_addresses(void* texts, uint64_t* addresses);

#ifdef __cplusplus
} // extern "C"
#endif
