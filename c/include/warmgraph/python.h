// What a binding of Python's looks at natively, without Python's headers. For the package `warmgraph`, whose version is the
// library's: other than in warmgraph.h these functions and structs change with it, and null pointers are not looked for.
//
// Threads: call them with Python's lock held.
#pragma once

#include <stdint.h>

#include "warmgraph/warmgraph.h"

#ifdef __cplusplus
extern "C" {
#endif

// --- what is as it was ----------------------------------------------------------------------------------------------

// These own nothing, and objects must live meanwhile.

/// DLPack's dltensor_from_py_object_no_sync (dlpack.h, DLPackExchangeAPI): fills the DLTensor, and is 0 then.
typedef int (*wg_dltensor_reader)(void* object, void* dltensor);

/// What a tensor looked like, and where its address is kept.
typedef struct wg_tensor_look {
    const int64_t* sizes;   ///< `rank` of them, in elements
    const int64_t* strides; ///< `rank` of them, in elements
    int32_t rank;
    int32_t device_type; ///< DLDeviceType
    int32_t device_id;
    uint8_t code; ///< DLDataTypeCode
    uint8_t bits;
    uint16_t lanes;
    uint64_t alignment; ///< bytes, which its address must be a multiple of; 0: any
    uint64_t* address;
} wg_tensor_look;

/// What tensors look like now, each with any alignment and its address in `own` at its index. How many
/// `numbers` their sizes and strides are in all: where there is room for fewer, it is called again with as many. Less than
/// 0: one of them cannot be described, and the framework's exception is set where it has one.
WARMGRAPH_API int64_t wg_look_at_tensors(wg_dltensor_reader read, void* const* tensors, uint64_t count,
                                         wg_tensor_look* looks, uint64_t* own, int64_t* numbers, uint64_t room);
/// 1: each tensor looks as it did, and lies at its address. 0: one does not, or cannot be described.
WARMGRAPH_API int wg_tensors_are_there(wg_dltensor_reader read, void* const* tensors, const wg_tensor_look* looks,
                                       uint64_t count);

/// How DLPack calls a type of elements; `bits` 0: nothing is known of it.
typedef struct wg_torch_type {
    uint8_t code; ///< DLDataTypeCode
    uint8_t bits;
} wg_torch_type;

/// PyTorch's own C functions of a tensor, which it keeps from version to version (torch/csrc/inductor/aoti_torch/c/shim.h).
/// Each takes an at::Tensor*, sets what it found, and is 0; else it is another number.
typedef struct wg_torch_tensors {
    uint64_t at;                  ///< bytes from a Python object to its at::Tensor
    void* kinds[2];               ///< classes: objects of others go to `otherwise`
    wg_dltensor_reader otherwise; ///< DLPack's, for what is not on the host or a CUDA device, or has no strides
    int32_t (*get_data_ptr)(void*, void**);
    int32_t (*get_dim)(void*, int64_t*);
    int32_t (*get_sizes)(void*, int64_t**);
    int32_t (*get_strides)(void*, int64_t**);
    int32_t (*get_dtype)(void*, int32_t*);
    int32_t (*get_device_type)(void*, int32_t*);
    int32_t (*get_device_index)(void*, int32_t*);
    int32_t (*get_layout)(void*, int32_t*);
    uint8_t (*requires_grad)(const void*); ///< c10::TensorImpl::requires_grad
    int32_t strided;                       ///< of layouts
    int32_t cpu;                           ///< of device types
    int32_t cuda;
    wg_torch_type types[64]; ///< by PyTorch's number
} wg_torch_tensors;

/// What wg_read_torch_tensor goes by from now on, in this process. It is copied. Is 0.
WARMGRAPH_API int wg_use_torch_tensors(const wg_torch_tensors* tensors);
/// A wg_dltensor_reader for PyTorch's tensors, past DLPack's exchange where it can.
WARMGRAPH_API int wg_read_torch_tensor(void* object, void* dltensor);

/// A dictionary and what it held: `count` pairs of a key and a value, in its order.
typedef struct wg_dict_look {
    void* dict;
    void* const* pairs;
    uint64_t count;
} wg_dict_look;

/// One item of a dictionary; `value` is NULL where there was none.
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

/// An object, the dictionary of its attributes (NULL: any) and its class.
typedef struct wg_object_look {
    void* object;
    void* dict;
    void* kind;
    void** place; ///< set by wg_snapshot_is_same: where it has `dict`. NULL: Python is asked
} wg_object_look;

/// What getattr gives of an object by a name that is a text; `value` is NULL where there was nothing.
typedef struct wg_attribute_look {
    void* object;
    void* name;
    void* value;
} wg_attribute_look;

/// What was there, by identity.
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
    int32_t is_told;  ///< nonzero: Python tells of each change of the dictionaries (wg_note_dict_event)
    int32_t has_seen; ///< nonzero: they held the same after `seen` events
    uint64_t seen;    ///< set by wg_snapshot_is_same
} wg_snapshot;

/// 1: it is all there. 0: something is another object. -1: this process exports no Python. No exception stays set.
WARMGRAPH_API int wg_snapshot_is_same(wg_snapshot* snapshot);
/// For PyDict_AddWatcher (Python 3.12): counts the events of all dictionaries that are watched by it. Is 0.
WARMGRAPH_API int wg_note_dict_event(int event, void* dict, void* key, void* new_value);
/// Where the count is, for as long as the library is loaded. Another number: some of them may have changed.
WARMGRAPH_API const uint64_t* wg_dict_events(void);

// --- calls that are like one before ---------------------------------------------------------------------------------

/// What a test looks at lies in a register. Register 0 is the tuple of arguments, 1 the dict of those by name; each of
/// the others is set by one test, before it is looked at.
typedef int32_t wg_test_kind;
enum wg_test_kind_values {
    wg_test_items = 0,      ///< `from`, a tuple or list, has `number` items: they go into `to` and those behind it
    wg_test_named = 1,      ///< `from`, a dict, has the keys of the tuple `object`, in its order: its values do so
    wg_test_attributes = 2, ///< the dict of its own attributes goes into `to`
    wg_test_call = 3,       ///< what `object` returns goes into `to`; `other`, where it is not NULL, is its argument
    wg_test_type = 4,       ///< `from` is of the class `object`, and of none below it
    wg_test_is = 5,         ///< `from` is `object`
    wg_test_equals = 6,     ///< `from` == `object`
    wg_test_number = 7,     ///< int(`from`) == `number`, of a signed number
    wg_test_bits = 8,       ///< `from`, a float, has the bits `number`
    wg_test_empty = 9,      ///< len(`object`) == 0
    wg_test_apart = 10,     ///< `from` is no other register's that is tested so, and is none of `around`
    wg_test_tensor = 11,    ///< `from`, a tensor, requires no grad; and what wg_tensor_test_values in `number` say
    wg_test_code = 12, ///< what the C function `object` gives of the pointer `other` has the byte `number` at `from`
    wg_test_code_null = 13,   ///< it gives a pointer to a null pointer (an empty std::shared_ptr)
    wg_test_code_empty = 14,  ///< it gives a pointer to two equal pointers (an empty std::vector)
    wg_test_code_numbers = 15 ///< it fills its first argument, up to 64 bytes, with 32-bit numbers: the first `from` of
                              ///< them (at most 8) have the bytes of `number`, the lowest first
};

typedef int32_t wg_tensor_test;
enum wg_tensor_test_values {
    wg_tensor_test_not_lazy = 1,     ///< it is not lazily negated or conjugated
    wg_tensor_test_no_attributes = 2 ///< it has no attributes of its own
};

typedef struct wg_test {
    wg_test_kind kind;
    uint32_t from;
    uint32_t to;
    uint64_t number;
    void* object;
    void* other;
} wg_test;

/// A tensor that stays where it was: one of a call's states.
typedef struct wg_weight {
    void* tensor;
    wg_tensor_look look;
    int32_t requires_grad;
    int32_t can_be_lazy; ///< nonzero: whether it is has to be asked
    const void* near[3]; ///< where the framework keeps what it says of the tensor: fetched ahead, and never read
} wg_weight;

/// Memory that a call gets for a result.
typedef struct wg_result_maker {
    void* make;        ///< a callable
    void* arguments;   ///< a tuple
    uint64_t* address; ///< set to where it lies, less `base`; NULL: it has no elements
} wg_result_maker;

typedef struct wg_memory_range {
    uint64_t first;
    uint64_t end;
} wg_memory_range;

/// A call like one that was replayed. Objects are Python's, borrowed: `kept` keeps them alive.
typedef struct wg_steady_call {
    void* kept;
    const wg_test* tests;
    uint64_t test_count;
    uint64_t register_count;
    const uint64_t* around; ///< ids of objects that no argument is, ascending
    uint64_t around_count;
    const int32_t* is_frozen; ///< where it is nonzero, `surroundings`, `rest` and `weights` are not looked at
    wg_snapshot* surroundings;
    void* const* rest; ///< callables that say whether what they look at is the same
    uint64_t rest_count;
    const wg_weight* weights;
    uint64_t weight_count;
    /// Bytes of what a weight's at::Tensor points to (c10::TensorImpl): as long as these are the same, so is all that the
    /// functions of wg_use_torch_tensors say of it but its address, which is asked. 0: they are asked at each call.
    uint64_t weight_bytes;
    wg_snapshot* always; ///< looked at whatever is frozen
    wg_dltensor_reader read_tensor;
    uint64_t base;
    const uint32_t* inputs;            ///< registers of tensors
    const wg_tensor_look* input_looks; ///< `address` is set to the device pointer less `base`
    uint64_t input_count;
    const uint64_t* extents;       ///< bytes of each input, 0 for those that lie nowhere
    const wg_memory_range* states; ///< where no input may lie, ascending and apart
    uint64_t state_count;
    void* requires_grad;    ///< torch.Tensor.requires_grad, the descriptor. NULL: wg_use_torch_tensors said how to ask
    void* is_negated;       ///< torch.Tensor.is_neg
    void* is_conjugated;    ///< torch.Tensor.is_conj
    const uint32_t* values; ///< registers that are given to `result`
    uint64_t value_count;
    const wg_result_maker* outputs;
    uint64_t output_count;
    const uint64_t* moves; ///< odd while tensors are elsewhere, and counted at each change: it is another call then
    void* acquire;         ///< of the lock that is held from the first test to the launch, callables without arguments
    void* release;
    void* native_stream; ///< a callable that gives the framework's current stream, as a number, of `device_index`
    void* device_index;
    void* stream;      ///< a callable that gives the library's handle for such a number
    uint64_t* replays; ///< counts launches
    uint64_t often;
    void* replayed;                        ///< called before each launch that makes `replays` a multiple of `often`
    int (*is_capturing)(const wg_stream*); ///< wg_stream_is_capturing: whether it is another call. NULL: a test asked
    wg_status (*enqueue)(wg_function*, wg_stream*, const wg_arg*, uint64_t, wg_outcome*); ///< wg_call_uncaptured
    wg_function* function;
    const wg_arg* args;
    uint64_t arg_count;
    void* failed; ///< (status): the result, or an exception, where `enqueue` fails
    void* result; ///< (outputs, values), two tuples: the result. NULL: it is the output `output`
    uint64_t output;
    void* otherwise; ///< the result of a call that is another one
} wg_steady_call;

/// A callable of Python's that takes (args, kwargs) and replays a call that is like it, or gives `otherwise`. Without
/// `enqueue` it launches nothing and gives the tuples that `result` takes, under a lock of the caller's. It copies the
/// struct and keeps `kept`. call_size: sizeof(wg_steady_call); wg_unsupported where that is another version's, or where the
/// process exports no Python.
WARMGRAPH_API wg_status wg_steady_call_create(uint64_t call_size, const wg_steady_call* call, void** callable);

// --- facts ------------------------------------------------------------------------------------------------------------

/// Of `facts`, a dict of texts, those whose name is in `known` or begins with `beginning`: a new text with a line of each, its
/// name, a tab and its value, in the order of their names' bytes. The others go into the dict `apart`. An empty text where it
/// would not be read as these facts: a value has a line's end, a name that or a tab, or there are none. NULL with an
/// exception of Python's set. REQUIRES: this process exports Python (wg_snapshot_is_same).
WARMGRAPH_API void* wg_list_facts(void* facts, void* known, const char* beginning, void* apart);
/// Facts that are too many for an entry go into the dict `into`, so that names and values have at most `most` letters: those
/// below one path as one fact, with how many they are and a digest, for paths of at most `deepest` steps that are as long as
/// there is room for. Is 0, or -1 with an exception of Python's set. REQUIRES: as for wg_list_facts.
WARMGRAPH_API int wg_fold_facts(void* facts, uint64_t most, uint64_t deepest, void* into);

// --- recording --------------------------------------------------------------------------------------------------------

/// Stops keeping device code, for the whole process, until the next miss or wg_prepare_recording. The functions of these caches
/// must be settled. wg_unsupported: it goes on, and wg_last_error says why (a function that was not called yet, code that keeps
/// state, a profiler, a recording).
WARMGRAPH_API wg_status wg_pause_recording(const wg_cache* const* caches, uint64_t count);

// --- texts ------------------------------------------------------------------------------------------------------------

/// Where each text of a list is, in UTF-8 with a zero behind it, for as long as the text lives: Python copies none. Is 0, or
/// -1 with an exception of Python's set. REQUIRES: as for wg_list_facts; `addresses` has room for all of them.
WARMGRAPH_API int wg_text_addresses(void* texts, uint64_t* addresses);

#ifdef __cplusplus
} // extern "C"
#endif
