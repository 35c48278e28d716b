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

// --- before each call -----------------------------------------------------------------------------------------------

// Python's functions are handed in. These own nothing, allocate nothing and never fail; objects must live meanwhile.

/// DLPack's dltensor_from_py_object_no_sync (dlpack.h, DLPackExchangeAPI): fills the DLTensor, and is 0 then.
typedef int (*wg_dltensor_reader)(void* object, void* dltensor);
/// PyDict_Next.
typedef int (*wg_dict_reader)(void* dict, int64_t* position, void** key, void** value);
/// PyDict_GetItem.
typedef void* (*wg_dict_item_reader)(void* dict, void* key);

/// What a tensor looked like, and where its address goes.
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
    uint64_t* address;  ///< set to its device pointer less `base`
} wg_tensor_look;

/// A dictionary and what it held: `count` pairs of a key and a value, in its order.
typedef struct wg_dict_look {
    void* dict;
    void* const* pairs;
    uint64_t count;
} wg_dict_look;

/// PyObject_GenericGetDict: the caller owns what it gives.
typedef void* (*wg_attributes_reader)(void* object, void* context);
/// Py_DecRef.
typedef void (*wg_object_releaser)(void* object);

/// An object and the dictionary of its attributes.
typedef struct wg_attributes_look {
    void* object;
    void* dict;
} wg_attributes_look;

/// One item of a dictionary; `value` is NULL where there was none.
typedef struct wg_dict_item_look {
    void* dict;
    void* key;
    void* value;
} wg_dict_item_look;

/// What tensors look like now, each with `own` + its index as where its address goes, and any alignment. How many
/// `numbers` their sizes and strides are in all: where there is room for fewer, it is called again with as many. Less than
/// 0: one of them cannot be described, and the framework's exception is set where it has one.
WARMGRAPH_API int64_t wg_look_at_tensors(wg_dltensor_reader read, void* const* tensors, uint64_t count,
                                         wg_tensor_look* looks, uint64_t* own, int64_t* numbers, uint64_t room);
/// Reads the addresses of tensors. The first that looks otherwise than it did, or `count`. `moved` is set to nonzero
/// where an address is another one than `address` held; it may be NULL.
WARMGRAPH_API uint64_t wg_read_tensors(wg_dltensor_reader read, void* const* tensors, const wg_tensor_look* looks,
                                       uint64_t count, uint64_t base, int32_t* moved);
/// The first dictionary that holds other objects than it did, or `count`.
WARMGRAPH_API uint64_t wg_compare_dicts(wg_dict_reader read, const wg_dict_look* looks, uint64_t count);
/// The first item that is another object than it was, or `count`.
WARMGRAPH_API uint64_t wg_compare_dict_items(wg_dict_item_reader read, const wg_dict_item_look* looks, uint64_t count);
/// The first object whose attributes are in another dictionary than they were, or `count`.
WARMGRAPH_API uint64_t wg_compare_attributes(wg_attributes_reader read, wg_object_releaser release,
                                             const wg_attributes_look* looks, uint64_t count);
/// For PyDict_AddWatcher (Python 3.12): counts the events of all dictionaries that are watched by it. Is 0.
WARMGRAPH_API int wg_note_dict_event(int event, void* dict, void* key, void* new_value);
/// Where the count is, for as long as the library is loaded. Another number: some of them may have changed.
WARMGRAPH_API const uint64_t* wg_dict_events(void);

// --- modules of PyTorch ---------------------------------------------------------------------------------------------

/// What modules of PyTorch held when they were read. It owns none of it: `kept` of the walk does.
typedef struct wg_modules wg_modules;
/// PyDict_Watch.
typedef int (*wg_dict_watch)(int watcher, void* dict);

/// A walk that meets a module: Python's objects, borrowed. Those that are called take (path, object), if not said
/// otherwise, and read it as the walk does.
typedef struct wg_module_walk {
    wg_dltensor_reader read_tensor; ///< NULL: all tensors go to `tensor_reader`
    int32_t device_type;            ///< DLDeviceType of tensors whose memory is followed
    int32_t reads_children;         ///< 0: modules in the module go to `value`
    int32_t watches_tensors;        ///< nonzero: what tensors have in their own dictionaries is held as well
    uint64_t most_facts;            ///< more of them, or deeper modules, go to `value`
    uint64_t deepest;
    uint64_t longest; ///< letters of a fact; longer ones go to `fact`
    uint64_t longest_of_module;
    void* facts;          ///< dict: a path's text
    void* objects;        ///< dict: a path's object
    void* read;           ///< dict: by id of an object, a tuple that begins with its path
    void* tensors;        ///< dict: by id of a tensor, its path
    void* opened;         ///< list: ids of the objects that are being read
    void* places;         ///< list: gets a `place` of each tensor
    void* kept;           ///< list: gets what is held
    void* module_type;    ///< torch.nn.Module
    void* tensor;         ///< torch.Tensor
    void* parameter;      ///< torch.nn.Parameter
    void* ordered_dict;   ///< collections.OrderedDict
    void* via;            ///< the last argument of `place`
    void* is_negated;     ///< (tensor): torch.Tensor.is_neg
    void* place;          ///< (path, tensor, via)
    void* kind;           ///< (type): (how a fact begins, values of its classes by name); None: it is read by `module`
    void* names;          ///< (attributes, values of classes): list of (name, whether it is the module's own), in order
    void* text;           ///< (value): a plain value's text; None for others
    void* fact;           ///< (path, text)
    void* fact_of_module; ///< (path, text)
    void* value;
    void* module;
    void* tensor_reader;
    void* members;    ///< (path, dict by name): what a module has that is not plain
    void* attributes; ///< (path, dict by name): what a tensor has in a dictionary of its own
} wg_module_walk;

/// For one read, in a fifth of the time that Python takes. walk_size: sizeof(wg_module_walk). wg_unsupported where that is
/// another version's, or where the process exports no Python. Not thread-safe.
WARMGRAPH_API wg_status wg_modules_create(uint64_t walk_size, wg_modules** modules);
WARMGRAPH_API void wg_modules_destroy(wg_modules* modules);
/// Once. Is 0, or -1 with an exception of Python's set: what was read before it stays in the walk.
WARMGRAPH_API int wg_modules_read(wg_modules* modules, const wg_module_walk* walk, void* path, void* module);
/// 1: each dictionary holds the same objects in the same order.
WARMGRAPH_API int wg_modules_hold_the_same(const wg_modules* modules);
/// 1: each module is of the same class, and its attributes are in the same dictionary.
WARMGRAPH_API int wg_modules_are_the_same(const wg_modules* modules);
/// Has Python tell a watcher (wg_note_dict_event) of changes of the dictionaries. Is 0.
WARMGRAPH_API int wg_modules_watch(const wg_modules* modules, wg_dict_watch watch, int32_t watcher);

#ifdef __cplusplus
} // extern "C"
#endif
