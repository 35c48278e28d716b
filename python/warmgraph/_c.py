"""The C interface, for ctypes. Made by python/generate_c_interface.py from warmgraph.h and python.h: do not edit."""
# mypy: disable-error-code="valid-type, misc"
import ctypes

wg_ok = 0
wg_invalid_argument = 1
wg_not_recordable = 2
wg_compile_failed = 3
wg_miss_forbidden = 4
wg_corrupt = 5
wg_stale = 6
wg_not_found = 7
wg_io_failed = 8
wg_no_space = 9
wg_permission_denied = 10
wg_driver_failed = 11
wg_out_of_memory = 12
wg_unsupported = 13
wg_verification_failed = 14
wg_internal = 15
wg_partly_launched = 16
wg_untrusted = 17
wg_status_values = {'wg_ok': wg_ok, 'wg_invalid_argument': wg_invalid_argument, 'wg_not_recordable': wg_not_recordable,
    'wg_compile_failed': wg_compile_failed, 'wg_miss_forbidden': wg_miss_forbidden, 'wg_corrupt': wg_corrupt,
    'wg_stale': wg_stale, 'wg_not_found': wg_not_found, 'wg_io_failed': wg_io_failed, 'wg_no_space': wg_no_space,
    'wg_permission_denied': wg_permission_denied, 'wg_driver_failed': wg_driver_failed, 'wg_out_of_memory':
    wg_out_of_memory, 'wg_unsupported': wg_unsupported, 'wg_verification_failed': wg_verification_failed, 'wg_internal':
    wg_internal, 'wg_partly_launched': wg_partly_launched, 'wg_untrusted': wg_untrusted}

wg_u8 = 0
wg_i8 = 1
wg_u16 = 2
wg_i16 = 3
wg_u32 = 4
wg_i32 = 5
wg_u64 = 6
wg_i64 = 7
wg_f16 = 8
wg_bf16 = 9
wg_f32 = 10
wg_f64 = 11
wg_boolean = 12
wg_dtype_values = {'wg_u8': wg_u8, 'wg_i8': wg_i8, 'wg_u16': wg_u16, 'wg_i16': wg_i16, 'wg_u32': wg_u32, 'wg_i32':
    wg_i32, 'wg_u64': wg_u64, 'wg_i64': wg_i64, 'wg_f16': wg_f16, 'wg_bf16': wg_bf16, 'wg_f32': wg_f32, 'wg_f64':
    wg_f64, 'wg_boolean': wg_boolean}

wg_outcome_recorded = 0
wg_outcome_replayed = 1
wg_outcome_eager = 2
wg_outcome_refused = 3
wg_outcome_values = {'wg_outcome_recorded': wg_outcome_recorded, 'wg_outcome_replayed': wg_outcome_replayed,
    'wg_outcome_eager': wg_outcome_eager, 'wg_outcome_refused': wg_outcome_refused}

wg_policy_default = 0
wg_policy_read_write = 1
wg_policy_read_only = 2
wg_policy_refresh = 3
wg_policy_off = 4
wg_policy_require_hit = 5
wg_policy_no_compile = 6
wg_policy_values = {'wg_policy_default': wg_policy_default, 'wg_policy_read_write': wg_policy_read_write,
    'wg_policy_read_only': wg_policy_read_only, 'wg_policy_refresh': wg_policy_refresh, 'wg_policy_off': wg_policy_off,
    'wg_policy_require_hit': wg_policy_require_hit, 'wg_policy_no_compile': wg_policy_no_compile}

wg_access_read_write = 0
wg_access_read_only = 1
wg_access_values = {'wg_access_read_write': wg_access_read_write, 'wg_access_read_only': wg_access_read_only}

wg_log_trace = 0
wg_log_debug = 1
wg_log_info = 2
wg_log_warning = 3
wg_log_error = 4
wg_log_level_values = {'wg_log_trace': wg_log_trace, 'wg_log_debug': wg_log_debug, 'wg_log_info': wg_log_info,
    'wg_log_warning': wg_log_warning, 'wg_log_error': wg_log_error}

wg_kernel_arg_memory = 0
wg_kernel_arg_value = 1
wg_kernel_arg_local = 2
wg_kernel_arg_kind_values = {'wg_kernel_arg_memory': wg_kernel_arg_memory, 'wg_kernel_arg_value': wg_kernel_arg_value,
    'wg_kernel_arg_local': wg_kernel_arg_local}

wg_buckets_fixed = 0
wg_buckets_given = 1
wg_buckets_learnt = 2
wg_bucket_rule_values = {'wg_buckets_fixed': wg_buckets_fixed, 'wg_buckets_given': wg_buckets_given,
    'wg_buckets_learnt': wg_buckets_learnt}

wg_arg_memory = 0
wg_arg_tensor = 1
wg_arg_number = 2
wg_arg_kind_values = {'wg_arg_memory': wg_arg_memory, 'wg_arg_tensor': wg_arg_tensor, 'wg_arg_number': wg_arg_number}

wg_pair_forward_half = 0
wg_pair_backward_half = 1
wg_pair_half_values = {'wg_pair_forward_half': wg_pair_forward_half, 'wg_pair_backward_half': wg_pair_backward_half}

wg_open_wait_first = 0
wg_open_wait_all = 1
wg_open_wait_values = {'wg_open_wait_first': wg_open_wait_first, 'wg_open_wait_all': wg_open_wait_all}

wg_test_items = 0
wg_test_named = 1
wg_test_attributes = 2
wg_test_call = 3
wg_test_type = 4
wg_test_is = 5
wg_test_equals = 6
wg_test_number = 7
wg_test_bits = 8
wg_test_empty = 9
wg_test_apart = 10
wg_test_tensor = 11
wg_test_code = 12
wg_test_code_null = 13
wg_test_code_empty = 14
wg_test_code_numbers = 15
wg_test_kind_values = {'wg_test_items': wg_test_items, 'wg_test_named': wg_test_named, 'wg_test_attributes':
    wg_test_attributes, 'wg_test_call': wg_test_call, 'wg_test_type': wg_test_type, 'wg_test_is': wg_test_is,
    'wg_test_equals': wg_test_equals, 'wg_test_number': wg_test_number, 'wg_test_bits': wg_test_bits, 'wg_test_empty':
    wg_test_empty, 'wg_test_apart': wg_test_apart, 'wg_test_tensor': wg_test_tensor, 'wg_test_code': wg_test_code,
    'wg_test_code_null': wg_test_code_null, 'wg_test_code_empty': wg_test_code_empty, 'wg_test_code_numbers':
    wg_test_code_numbers}

wg_tensor_test_not_lazy = 1
wg_tensor_test_no_attributes = 2
wg_tensor_test_values = {'wg_tensor_test_not_lazy': wg_tensor_test_not_lazy, 'wg_tensor_test_no_attributes':
    wg_tensor_test_no_attributes}

wg_callback = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)

wg_make_arguments = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)

wg_dltensor_reader = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)

wg_dict_watch = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.c_void_p)


class wg_address(ctypes.Structure):
    _fields_ = [
        ("base", ctypes.c_uint64),
        ("offset", ctypes.c_uint64),
    ]


class wg_memory(ctypes.Structure):
    _fields_ = [
        ("address", wg_address),
        ("size", ctypes.c_uint64),
    ]


class wg_key_value(ctypes.Structure):
    _fields_ = [
        ("key", ctypes.c_char_p),
        ("value", ctypes.c_char_p),
    ]


class wg_kernel_arg(ctypes.Structure):
    _fields_ = [
        ("kind", ctypes.c_int32),
        ("address", wg_address),
        ("value", ctypes.c_void_p),
        ("bytes", ctypes.c_uint64),
    ]


class wg_launch_options(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_uint64),
        ("grid", ctypes.c_uint32 * 3),
        ("block", ctypes.c_uint32 * 3),
        ("cluster", ctypes.c_uint32 * 3),
        ("shared_bytes", ctypes.c_uint32),
        ("cooperative", ctypes.c_int32),
        ("dependent", ctypes.c_int32),
    ]


class wg_cache_options(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_uint64),
        ("model", ctypes.c_char_p),
        ("config", ctypes.POINTER(wg_key_value)),
        ("config_count", ctypes.c_uint64),
        ("cache_dir", ctypes.c_char_p),
        ("dynamic", ctypes.c_int32),
        ("world_size", ctypes.c_int32),
        ("global_rank", ctypes.c_int32),
        ("tp_rank", ctypes.c_int32),
        ("pp_rank", ctypes.c_int32),
        ("policy", ctypes.c_int32),
        ("accept_newer_driver", ctypes.c_int32),
        ("share_with_group", ctypes.c_int32),
        ("max_variants", ctypes.c_uint32),
        ("record_wait_ms", ctypes.c_uint32),
        ("verify_on_load", ctypes.c_int32),
        ("record_on_demand", ctypes.c_int32),
        ("probing_ms", ctypes.c_uint32),
        ("sign_with", ctypes.c_char_p),
        ("sign_with_file", ctypes.c_char_p),
        ("accept_keys", ctypes.POINTER(ctypes.c_char_p)),
        ("accept_key_count", ctypes.c_uint64),
        ("accept_file", ctypes.c_char_p),
        ("require_signed", ctypes.c_int32),
        ("trusted_owners", ctypes.POINTER(ctypes.c_uint32)),
        ("trusted_owner_count", ctypes.c_uint64),
        ("max_bytes", ctypes.c_uint64),
        ("max_files", ctypes.c_uint64),
        ("bundles", ctypes.POINTER(ctypes.c_char_p)),
        ("bundle_count", ctypes.c_uint64),
        ("profile", ctypes.c_int32),
        ("pauses_recording", ctypes.c_int32),
        ("kinds", ctypes.c_char_p),
        ("max_bytes_by_kind", ctypes.c_char_p),
    ]


class wg_refusal(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_uint64),
        ("word", ctypes.c_char_p),
        ("text", ctypes.c_char_p),
        ("calls", ctypes.c_uint64),
    ]


class wg_artifact_options(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_uint64),
        ("torch", ctypes.c_int32),
    ]


class wg_statistics(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_uint64),
        ("hits", ctypes.c_uint64),
        ("misses", ctypes.c_uint64),
        ("recordings", ctypes.c_uint64),
        ("refusals", ctypes.c_uint64),
        ("cache_faults", ctypes.c_uint64),
        ("images_loaded", ctypes.c_uint64),
        ("load_ms", ctypes.c_double),
        ("saved_ms", ctypes.c_double),
        ("untrusted", ctypes.c_uint64),
        ("programs_compiled", ctypes.c_uint64),
        ("programs_loaded", ctypes.c_uint64),
        ("programs_refused", ctypes.c_uint64),
        ("compile_ms", ctypes.c_double),
        ("compile_saved_ms", ctypes.c_double),
        ("captures_written", ctypes.c_uint64),
        ("captures_paired", ctypes.c_uint64),
        ("captures_ignored", ctypes.c_uint64),
        ("tuned_hits", ctypes.c_uint64),
        ("tuned_misses", ctypes.c_uint64),
        ("kernels_tuned", ctypes.c_uint64),
        ("tuning_ms", ctypes.c_double),
        ("tuning_saved_ms", ctypes.c_double),
        ("profile_hits", ctypes.c_uint64),
        ("profile_misses", ctypes.c_uint64),
    ]


class wg_tensor_decl(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char_p),
        ("dtype", ctypes.c_int32),
        ("rank", ctypes.c_uint32),
        ("sizes", ctypes.POINTER(ctypes.c_int64)),
    ]


class wg_state_decl(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char_p),
        ("memory", wg_memory),
        ("access", ctypes.c_int32),
    ]


class wg_constant_decl(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char_p),
        ("memory", wg_memory),
    ]


class wg_layout(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char_p),
        ("dtype", ctypes.c_int32),
        ("rank", ctypes.c_uint32),
        ("sizes", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
    ]


class wg_scalar_decl(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char_p),
        ("dtype", ctypes.c_int32),
        ("has_range", ctypes.c_int32),
        ("low", ctypes.c_double),
        ("high", ctypes.c_double),
    ]


class wg_named_event(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char_p),
        ("event", ctypes.c_void_p),
    ]


class wg_named_semaphore(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char_p),
        ("semaphore", ctypes.c_void_p),
    ]


class wg_padded_dimension(ctypes.Structure):
    _fields_ = [
        ("argument", ctypes.c_char_p),
        ("dimension", ctypes.c_uint64),
        ("value", ctypes.c_double),
    ]


class wg_buckets(ctypes.Structure):
    _fields_ = [
        ("dimensions", ctypes.POINTER(wg_padded_dimension)),
        ("dimension_count", ctypes.c_uint64),
        ("rule", ctypes.c_int32),
        ("most", ctypes.c_uint32),
        ("sizes", ctypes.POINTER(ctypes.c_int64)),
        ("size_count", ctypes.c_uint64),
        ("multiple_of", ctypes.c_int64),
    ]


class wg_function_spec(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_uint64),
        ("name", ctypes.c_char_p),
        ("inputs", ctypes.POINTER(wg_tensor_decl)),
        ("input_count", ctypes.c_uint64),
        ("outputs", ctypes.POINTER(wg_tensor_decl)),
        ("output_count", ctypes.c_uint64),
        ("states", ctypes.POINTER(wg_state_decl)),
        ("state_count", ctypes.c_uint64),
        ("scalars", ctypes.POINTER(wg_scalar_decl)),
        ("scalar_count", ctypes.c_uint64),
        ("values", ctypes.POINTER(wg_scalar_decl)),
        ("value_count", ctypes.c_uint64),
        ("code", ctypes.POINTER(ctypes.c_void_p)),
        ("code_count", ctypes.c_uint64),
        ("config", ctypes.POINTER(wg_key_value)),
        ("config_count", ctypes.c_uint64),
        ("environment", ctypes.POINTER(ctypes.c_char_p)),
        ("environment_count", ctypes.c_uint64),
        ("version", ctypes.c_char_p),
        ("policy", ctypes.c_int32),
        ("events", ctypes.POINTER(wg_named_event)),
        ("event_count", ctypes.c_uint64),
        ("semaphores", ctypes.POINTER(wg_named_semaphore)),
        ("semaphore_count", ctypes.c_uint64),
        ("frozen_variables", ctypes.POINTER(ctypes.c_char_p)),
        ("frozen_variable_count", ctypes.c_uint64),
        ("no_addresses", ctypes.POINTER(ctypes.c_char_p)),
        ("no_address_count", ctypes.c_uint64),
        ("strict", ctypes.c_int32),
        ("layouts", ctypes.POINTER(wg_layout)),
        ("layout_count", ctypes.c_uint64),
        ("constants", ctypes.POINTER(wg_constant_decl)),
        ("constant_count", ctypes.c_uint64),
        ("max_constant_bytes", ctypes.c_uint64),
        ("undeclared_constants", ctypes.c_int32),
        ("metadata", ctypes.c_char_p),
        ("recorded_code", ctypes.POINTER(wg_key_value)),
        ("recorded_code_count", ctypes.c_uint64),
        ("buckets", ctypes.POINTER(wg_buckets)),
        ("bucket_count", ctypes.c_uint64),
    ]


class wg_arg(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char_p),
        ("kind", ctypes.c_int32),
        ("dtype", ctypes.c_int32),
        ("memory", wg_memory),
        ("sizes", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("rank", ctypes.c_uint64),
        ("bits", ctypes.c_uint64),
    ]


class wg_pair_spec(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_uint64),
        ("forward", ctypes.POINTER(wg_function_spec)),
        ("backward", ctypes.POINTER(wg_function_spec)),
        ("saved", ctypes.POINTER(wg_tensor_decl)),
        ("saved_count", ctypes.c_uint64),
        ("gradients", ctypes.POINTER(wg_key_value)),
        ("gradient_count", ctypes.c_uint64),
    ]


class wg_named_memory(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char_p),
        ("pointer", ctypes.c_uint64),
        ("size", ctypes.c_uint64),
    ]


class wg_named_number(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char_p),
        ("dtype", ctypes.c_int32),
        ("bits", ctypes.c_uint64),
    ]


class wg_native_capture(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_uint64),
        ("graph", ctypes.c_void_p),
        ("regions", ctypes.POINTER(wg_named_memory)),
        ("region_count", ctypes.c_uint64),
        ("scratch", ctypes.POINTER(wg_named_memory)),
        ("scratch_count", ctypes.c_uint64),
        ("events", ctypes.POINTER(wg_named_event)),
        ("event_count", ctypes.c_uint64),
        ("semaphores", ctypes.POINTER(wg_named_semaphore)),
        ("semaphore_count", ctypes.c_uint64),
        ("scalars", ctypes.POINTER(wg_named_number)),
        ("scalar_count", ctypes.c_uint64),
        ("free_blocks", ctypes.POINTER(wg_memory)),
        ("free_block_count", ctypes.c_uint64),
    ]


class wg_adopted_part(ctypes.Structure):
    _fields_ = [
        ("high", ctypes.c_uint64),
        ("low", ctypes.c_uint64),
        ("half", ctypes.c_int32),
    ]


class wg_adoption(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_uint64),
        ("first", ctypes.POINTER(wg_native_capture)),
        ("second", ctypes.POINTER(wg_native_capture)),
        ("allow_unproven", ctypes.c_int32),
        ("values", ctypes.POINTER(wg_named_number)),
        ("value_count", ctypes.c_uint64),
        ("captures", ctypes.c_char_p),
        ("answer", ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_int32, ctypes.c_char_p, ctypes.c_uint64)),
        ("answer_user", ctypes.c_void_p),
        ("part", ctypes.POINTER(wg_adopted_part)),
    ]


class wg_open_progress(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_uint64),
        ("opened", ctypes.c_uint64),
        ("failed", ctypes.c_uint64),
        ("total", ctypes.c_uint64),
        ("elapsed_ms", ctypes.c_double),
    ]


class wg_open_options(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_uint64),
        ("urgency", ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_char_p, ctypes.POINTER(wg_tensor_decl), ctypes.c_uint64, ctypes.c_void_p)),
        ("progress", ctypes.CFUNCTYPE(None, ctypes.POINTER(wg_open_progress), ctypes.c_char_p, ctypes.c_void_p)),
        ("user", ctypes.c_void_p),
        ("wait", ctypes.c_int32),
        ("threads", ctypes.c_uint32),
        ("first", ctypes.c_char_p),
    ]


class wg_tensor_look(ctypes.Structure):
    _fields_ = [
        ("sizes", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("rank", ctypes.c_int32),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("alignment", ctypes.c_uint64),
        ("address", ctypes.POINTER(ctypes.c_uint64)),
    ]


class wg_torch_type(ctypes.Structure):
    _fields_ = [
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
    ]


class wg_torch_tensors(ctypes.Structure):
    _fields_ = [
        ("at", ctypes.c_uint64),
        ("kinds", ctypes.c_void_p * 2),
        ("otherwise", wg_dltensor_reader),
        ("get_data_ptr", ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.POINTER(ctypes.c_void_p))),
        ("get_dim", ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.POINTER(ctypes.c_int64))),
        ("get_sizes", ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.POINTER(ctypes.POINTER(ctypes.c_int64)))),
        ("get_strides", ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.POINTER(ctypes.POINTER(ctypes.c_int64)))),
        ("get_dtype", ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.POINTER(ctypes.c_int32))),
        ("get_device_type", ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.POINTER(ctypes.c_int32))),
        ("get_device_index", ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.POINTER(ctypes.c_int32))),
        ("get_layout", ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.POINTER(ctypes.c_int32))),
        ("requires_grad", ctypes.CFUNCTYPE(ctypes.c_uint8, ctypes.c_void_p)),
        ("strided", ctypes.c_int32),
        ("cpu", ctypes.c_int32),
        ("cuda", ctypes.c_int32),
        ("types", wg_torch_type * 64),
    ]


class wg_dict_look(ctypes.Structure):
    _fields_ = [
        ("dict", ctypes.c_void_p),
        ("pairs", ctypes.POINTER(ctypes.c_void_p)),
        ("count", ctypes.c_uint64),
    ]


class wg_dict_item_look(ctypes.Structure):
    _fields_ = [
        ("dict", ctypes.c_void_p),
        ("key", ctypes.c_void_p),
        ("value", ctypes.c_void_p),
    ]


class wg_list_look(ctypes.Structure):
    _fields_ = [
        ("list", ctypes.c_void_p),
        ("items", ctypes.POINTER(ctypes.c_void_p)),
        ("count", ctypes.c_uint64),
    ]


class wg_object_look(ctypes.Structure):
    _fields_ = [
        ("object", ctypes.c_void_p),
        ("dict", ctypes.c_void_p),
        ("kind", ctypes.c_void_p),
    ]


class wg_attribute_look(ctypes.Structure):
    _fields_ = [
        ("object", ctypes.c_void_p),
        ("name", ctypes.c_void_p),
        ("value", ctypes.c_void_p),
    ]


class wg_snapshot(ctypes.Structure):
    _fields_ = [
        ("dicts", ctypes.POINTER(wg_dict_look)),
        ("dict_count", ctypes.c_uint64),
        ("modules", ctypes.POINTER(ctypes.c_void_p)),
        ("module_count", ctypes.c_uint64),
        ("items", ctypes.POINTER(wg_dict_item_look)),
        ("item_count", ctypes.c_uint64),
        ("lists", ctypes.POINTER(wg_list_look)),
        ("list_count", ctypes.c_uint64),
        ("objects", ctypes.POINTER(wg_object_look)),
        ("object_count", ctypes.c_uint64),
        ("attributes", ctypes.POINTER(wg_attribute_look)),
        ("attribute_count", ctypes.c_uint64),
        ("is_told", ctypes.c_int32),
        ("has_seen", ctypes.c_int32),
        ("seen", ctypes.c_uint64),
    ]


class wg_test(ctypes.Structure):
    _fields_ = [
        ("kind", ctypes.c_int32),
        ("from", ctypes.c_uint32),
        ("to", ctypes.c_uint32),
        ("number", ctypes.c_uint64),
        ("object", ctypes.c_void_p),
        ("other", ctypes.c_void_p),
    ]


class wg_weight(ctypes.Structure):
    _fields_ = [
        ("tensor", ctypes.c_void_p),
        ("look", wg_tensor_look),
        ("requires_grad", ctypes.c_int32),
        ("can_be_lazy", ctypes.c_int32),
        ("near", ctypes.c_void_p * 3),
    ]


class wg_result_maker(ctypes.Structure):
    _fields_ = [
        ("make", ctypes.c_void_p),
        ("arguments", ctypes.c_void_p),
        ("address", ctypes.POINTER(ctypes.c_uint64)),
    ]


class wg_memory_range(ctypes.Structure):
    _fields_ = [
        ("first", ctypes.c_uint64),
        ("end", ctypes.c_uint64),
    ]


class wg_steady_call(ctypes.Structure):
    _fields_ = [
        ("kept", ctypes.c_void_p),
        ("tests", ctypes.POINTER(wg_test)),
        ("test_count", ctypes.c_uint64),
        ("register_count", ctypes.c_uint64),
        ("around", ctypes.POINTER(ctypes.c_uint64)),
        ("around_count", ctypes.c_uint64),
        ("is_frozen", ctypes.POINTER(ctypes.c_int32)),
        ("surroundings", ctypes.POINTER(wg_snapshot)),
        ("rest", ctypes.POINTER(ctypes.c_void_p)),
        ("rest_count", ctypes.c_uint64),
        ("weights", ctypes.POINTER(wg_weight)),
        ("weight_count", ctypes.c_uint64),
        ("weight_bytes", ctypes.c_uint64),
        ("always", ctypes.POINTER(wg_snapshot)),
        ("read_tensor", wg_dltensor_reader),
        ("base", ctypes.c_uint64),
        ("inputs", ctypes.POINTER(ctypes.c_uint32)),
        ("input_looks", ctypes.POINTER(wg_tensor_look)),
        ("input_count", ctypes.c_uint64),
        ("extents", ctypes.POINTER(ctypes.c_uint64)),
        ("states", ctypes.POINTER(wg_memory_range)),
        ("state_count", ctypes.c_uint64),
        ("requires_grad", ctypes.c_void_p),
        ("is_negated", ctypes.c_void_p),
        ("is_conjugated", ctypes.c_void_p),
        ("values", ctypes.POINTER(ctypes.c_uint32)),
        ("value_count", ctypes.c_uint64),
        ("outputs", ctypes.POINTER(wg_result_maker)),
        ("output_count", ctypes.c_uint64),
        ("moves", ctypes.POINTER(ctypes.c_uint64)),
        ("acquire", ctypes.c_void_p),
        ("release", ctypes.c_void_p),
        ("native_stream", ctypes.c_void_p),
        ("device_index", ctypes.c_void_p),
        ("stream", ctypes.c_void_p),
        ("replays", ctypes.POINTER(ctypes.c_uint64)),
        ("often", ctypes.c_uint64),
        ("replayed", ctypes.c_void_p),
        ("is_capturing", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)),
        ("enqueue", ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p, ctypes.POINTER(wg_arg), ctypes.c_uint64, ctypes.POINTER(ctypes.c_int32))),
        ("function", ctypes.c_void_p),
        ("args", ctypes.POINTER(wg_arg)),
        ("arg_count", ctypes.c_uint64),
        ("failed", ctypes.c_void_p),
        ("result", ctypes.c_void_p),
        ("output", ctypes.c_uint64),
        ("otherwise", ctypes.c_void_p),
    ]


class wg_module_walk(ctypes.Structure):
    _fields_ = [
        ("read_tensor", wg_dltensor_reader),
        ("device_type", ctypes.c_int32),
        ("reads_children", ctypes.c_int32),
        ("watches", ctypes.c_int32),
        ("most_facts", ctypes.c_uint64),
        ("deepest", ctypes.c_uint64),
        ("longest", ctypes.c_uint64),
        ("longest_of_module", ctypes.c_uint64),
        ("facts", ctypes.c_void_p),
        ("objects", ctypes.c_void_p),
        ("read", ctypes.c_void_p),
        ("tensors", ctypes.c_void_p),
        ("opened", ctypes.c_void_p),
        ("places", ctypes.c_void_p),
        ("watched", ctypes.c_void_p),
        ("kept", ctypes.c_void_p),
        ("named", ctypes.c_void_p),
        ("module_type", ctypes.c_void_p),
        ("tensor", ctypes.c_void_p),
        ("parameter", ctypes.c_void_p),
        ("ordered_dict", ctypes.c_void_p),
        ("refusal", ctypes.c_void_p),
        ("via", ctypes.c_void_p),
        ("is_negated", ctypes.c_void_p),
        ("place", ctypes.c_void_p),
        ("kind", ctypes.c_void_p),
        ("object_kind", ctypes.c_void_p),
        ("names", ctypes.c_void_p),
        ("text", ctypes.c_void_p),
        ("fact", ctypes.c_void_p),
        ("fact_of_module", ctypes.c_void_p),
        ("value", ctypes.c_void_p),
        ("module", ctypes.c_void_p),
        ("tensor_reader", ctypes.c_void_p),
        ("attributes", ctypes.c_void_p),
        ("undone", ctypes.c_void_p),
    ]


STRUCTS = [
    wg_address,
    wg_memory,
    wg_key_value,
    wg_kernel_arg,
    wg_launch_options,
    wg_cache_options,
    wg_refusal,
    wg_artifact_options,
    wg_statistics,
    wg_tensor_decl,
    wg_state_decl,
    wg_constant_decl,
    wg_layout,
    wg_scalar_decl,
    wg_named_event,
    wg_named_semaphore,
    wg_padded_dimension,
    wg_buckets,
    wg_function_spec,
    wg_arg,
    wg_pair_spec,
    wg_named_memory,
    wg_named_number,
    wg_native_capture,
    wg_adopted_part,
    wg_adoption,
    wg_open_progress,
    wg_open_options,
    wg_tensor_look,
    wg_torch_type,
    wg_torch_tensors,
    wg_dict_look,
    wg_dict_item_look,
    wg_list_look,
    wg_object_look,
    wg_attribute_look,
    wg_snapshot,
    wg_test,
    wg_weight,
    wg_result_maker,
    wg_memory_range,
    wg_steady_call,
    wg_module_walk,
]

# By name: the result's type and the arguments'.
FUNCTIONS = {
    "wg_version": (ctypes.c_char_p, []),
    "wg_backends": (ctypes.c_char_p, []),
    "wg_last_error": (ctypes.c_char_p, []),
    "wg_status_name": (ctypes.c_char_p, [ctypes.c_int32]),
    "wg_outcome_name": (ctypes.c_char_p, [ctypes.c_int32]),
    "wg_receive_log": (ctypes.c_int32, [ctypes.CFUNCTYPE(None, ctypes.c_int32, ctypes.c_char_p, ctypes.c_void_p),
        ctypes.c_void_p]),
    "wg_limit_log": (ctypes.c_int32, [ctypes.c_int32]),
    "wg_device_open": (ctypes.c_int32, [ctypes.c_char_p, ctypes.POINTER(ctypes.c_void_p)]),
    "wg_device_close": (ctypes.c_int32, [ctypes.c_void_p]),
    "wg_device_synchronize": (ctypes.c_int32, [ctypes.c_void_p]),
    "wg_device_id": (ctypes.c_char_p, [ctypes.c_void_p]),
    "wg_device_name": (ctypes.c_char_p, [ctypes.c_void_p]),
    "wg_device_stream": (ctypes.c_void_p, [ctypes.c_void_p]),
    "wg_prepare_recording": (ctypes.c_int32, [ctypes.c_void_p]),
    "wg_prepare_recording_early": (ctypes.c_int32, []),
    "wg_device_warm_up": (ctypes.c_int32, [ctypes.c_void_p]),
    "wg_register_module": (ctypes.c_int32, [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint64]),
    "wg_register_host_function": (ctypes.c_int32, [ctypes.c_char_p, ctypes.CFUNCTYPE(None, ctypes.c_void_p),
        ctypes.c_void_p]),
    "wg_buffer_create": (ctypes.c_int32, [ctypes.c_void_p, ctypes.c_uint64, ctypes.POINTER(ctypes.c_void_p)]),
    "wg_buffer_create_host": (ctypes.c_int32, [ctypes.c_void_p, ctypes.c_uint64, ctypes.POINTER(ctypes.c_void_p)]),
    "wg_buffer_destroy": (ctypes.c_int32, [ctypes.c_void_p]),
    "wg_buffer_upload": (ctypes.c_int32, [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint64]),
    "wg_buffer_download": (ctypes.c_int32, [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint64]),
    "wg_buffer_memory": (wg_memory, [ctypes.c_void_p]),
    "wg_buffer_pointer": (ctypes.c_uint64, [ctypes.c_void_p]),
    "wg_memory_from_pointer": (wg_memory, [ctypes.c_uint64, ctypes.c_uint64]),
    "wg_program_create": (ctypes.c_int32, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_char_p,
        ctypes.POINTER(ctypes.c_void_p)]),
    "wg_program_destroy": (ctypes.c_int32, [ctypes.c_void_p]),
    "wg_stream_create": (ctypes.c_int32, [ctypes.c_void_p, ctypes.POINTER(ctypes.c_void_p)]),
    "wg_stream_view": (ctypes.c_int32, [ctypes.c_void_p, ctypes.c_void_p, ctypes.POINTER(ctypes.c_void_p)]),
    "wg_stream_destroy": (ctypes.c_int32, [ctypes.c_void_p]),
    "wg_stream_is_capturing": (ctypes.c_int, [ctypes.c_void_p]),
    "wg_stream_watch": (ctypes.c_int32, [ctypes.c_void_p, ctypes.POINTER(ctypes.c_void_p)]),
    "wg_watch_stray": (ctypes.c_int32, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_uint64,
        ctypes.POINTER(ctypes.c_uint64)]),
    "wg_watch_destroy": (ctypes.c_int32, [ctypes.c_void_p]),
    "wg_stream_synchronize": (ctypes.c_int32, [ctypes.c_void_p]),
    "wg_stream_native": (ctypes.c_void_p, [ctypes.c_void_p]),
    "wg_stream_record": (ctypes.c_int32, [ctypes.c_void_p, ctypes.POINTER(ctypes.c_void_p)]),
    "wg_stream_wait": (ctypes.c_int32, [ctypes.c_void_p, ctypes.c_void_p]),
    "wg_event_destroy": (ctypes.c_int32, [ctypes.c_void_p]),
    "wg_launch": (ctypes.c_int32, [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p, ctypes.POINTER(ctypes.c_uint32),
        ctypes.POINTER(ctypes.c_uint32), ctypes.POINTER(wg_kernel_arg), ctypes.c_uint64]),
    "wg_launch_with": (ctypes.c_int32, [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p,
        ctypes.POINTER(wg_launch_options), ctypes.POINTER(wg_kernel_arg), ctypes.c_uint64]),
    "wg_copy": (ctypes.c_int32, [ctypes.c_void_p, wg_address, wg_address, ctypes.c_uint64]),
    "wg_fill": (ctypes.c_int32, [ctypes.c_void_p, wg_address, ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint64]),
    "wg_cache_options_init": (ctypes.c_int32, [ctypes.POINTER(wg_cache_options), ctypes.c_uint64]),
    "wg_cache_folder": (ctypes.c_char_p, [ctypes.c_char_p]),
    "wg_cache_open": (ctypes.c_int32, [ctypes.POINTER(wg_cache_options), ctypes.POINTER(ctypes.c_void_p)]),
    "wg_cache_close": (ctypes.c_int32, [ctypes.c_void_p]),
    "wg_cache_directory": (ctypes.c_char_p, [ctypes.c_void_p]),
    "wg_cache_disabled_reason": (ctypes.c_char_p, [ctypes.c_void_p]),
    "wg_cache_summary": (ctypes.c_int32, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_uint64,
        ctypes.POINTER(ctypes.c_uint64)]),
    "wg_cache_readable": (ctypes.c_int32, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_uint64,
        ctypes.POINTER(ctypes.c_uint64)]),
    "wg_cache_miss_reasons": (ctypes.c_int32, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_uint64,
        ctypes.POINTER(ctypes.c_uint64)]),
    "wg_cache_note_refusal": (ctypes.c_int32, [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p,
        ctypes.POINTER(wg_refusal)]),
    "wg_record_pending": (ctypes.c_int32, [ctypes.c_void_p, ctypes.POINTER(ctypes.c_uint64)]),
    "wg_cache_clear": (ctypes.c_int32, [ctypes.c_void_p, ctypes.c_char_p, ctypes.POINTER(ctypes.c_uint64)]),
    "wg_cache_clear_kind": (ctypes.c_int32, [ctypes.c_void_p, ctypes.c_char_p, ctypes.POINTER(ctypes.c_uint64)]),
    "wg_save_cache_artifacts": (ctypes.c_int32, [ctypes.POINTER(ctypes.c_void_p), ctypes.c_uint64,
        ctypes.POINTER(ctypes.c_void_p)]),
    "wg_save_cache_artifacts_with": (ctypes.c_int32, [ctypes.POINTER(ctypes.c_void_p), ctypes.c_uint64,
        ctypes.POINTER(wg_artifact_options), ctypes.POINTER(ctypes.c_void_p)]),
    "wg_load_cache_artifacts": (ctypes.c_int32, [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint64,
        ctypes.POINTER(ctypes.c_void_p)]),
    "wg_artifacts_bytes": (ctypes.c_void_p, [ctypes.c_void_p, ctypes.POINTER(ctypes.c_uint64)]),
    "wg_artifacts_info": (ctypes.c_char_p, [ctypes.c_void_p]),
    "wg_artifacts_destroy": (ctypes.c_int32, [ctypes.c_void_p]),
    "wg_cache_put_torch_artifacts": (ctypes.c_int32, [ctypes.c_void_p, ctypes.POINTER(wg_key_value), ctypes.c_uint64,
        ctypes.c_void_p, ctypes.c_uint64]),
    "wg_cache_get_torch_artifacts": (ctypes.c_int32, [ctypes.c_void_p, ctypes.POINTER(wg_key_value), ctypes.c_uint64,
        ctypes.POINTER(ctypes.c_void_p)]),
    "wg_cache_check_bundle": (ctypes.c_int32, [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p,
        ctypes.c_uint64, ctypes.POINTER(ctypes.c_uint64)]),
    "wg_cache_statistics": (ctypes.c_int32, [ctypes.c_void_p, ctypes.POINTER(wg_statistics)]),
    "wg_wrap": (ctypes.c_int32, [ctypes.c_void_p, ctypes.c_void_p, ctypes.POINTER(wg_function_spec), wg_callback,
        ctypes.c_void_p, ctypes.POINTER(ctypes.c_void_p)]),
    "wg_cache_load": (ctypes.c_int32, [ctypes.c_void_p, ctypes.c_void_p, ctypes.POINTER(wg_function_spec),
        ctypes.POINTER(ctypes.c_void_p)]),
    "wg_cache_find": (ctypes.c_int32, [ctypes.c_void_p, ctypes.c_void_p, ctypes.POINTER(wg_function_spec),
        ctypes.c_char_p, ctypes.c_uint64, ctypes.POINTER(ctypes.c_uint64)]),
    "wg_cache_entries": (ctypes.c_int32, [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p,
        ctypes.c_uint64, ctypes.POINTER(ctypes.c_uint64)]),
    "wg_cache_prefetch": (ctypes.c_int32, [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p]),
    "wg_cache_pause_prefetch": (ctypes.c_int32, [ctypes.c_void_p]),
    "wg_cache_latest_metadata": (ctypes.c_int32, [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p,
        ctypes.c_uint64, ctypes.POINTER(ctypes.c_uint64)]),
    "wg_pause_recording": (ctypes.c_int32, [ctypes.POINTER(ctypes.c_void_p), ctypes.c_uint64]),
    "wg_function_destroy": (ctypes.c_int32, [ctypes.c_void_p]),
    "wg_bind": (ctypes.c_int32, [ctypes.c_void_p, ctypes.c_char_p, wg_memory]),
    "wg_call": (ctypes.c_int32, [ctypes.c_void_p, ctypes.c_void_p, ctypes.POINTER(wg_arg), ctypes.c_uint64,
        ctypes.POINTER(ctypes.c_int32)]),
    "wg_call_uncaptured": (ctypes.c_int32, [ctypes.c_void_p, ctypes.c_void_p, ctypes.POINTER(wg_arg), ctypes.c_uint64,
        ctypes.POINTER(ctypes.c_int32)]),
    "wg_profiled_call_sizes": (ctypes.c_int32, [ctypes.c_void_p, ctypes.c_char_p,
        ctypes.POINTER(ctypes.POINTER(ctypes.c_int64)), ctypes.POINTER(ctypes.c_uint64)]),
    "wg_profiled_call_args": (ctypes.c_int32, [ctypes.c_void_p, ctypes.POINTER(wg_arg), ctypes.c_uint64]),
    "wg_record_profile": (ctypes.c_int32, [ctypes.c_void_p, ctypes.c_void_p, wg_make_arguments, ctypes.c_void_p,
        ctypes.c_uint64, ctypes.POINTER(ctypes.c_uint64), ctypes.POINTER(ctypes.c_uint64), ctypes.c_char_p,
        ctypes.c_uint64, ctypes.POINTER(ctypes.c_uint64)]),
    "wg_function_shapes": (ctypes.c_int32, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_uint64,
        ctypes.POINTER(ctypes.c_uint64)]),
    "wg_function_misses": (ctypes.c_int32, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_uint64,
        ctypes.POINTER(ctypes.c_uint64)]),
    "wg_function_report": (ctypes.c_int32, [ctypes.c_void_p, ctypes.POINTER(ctypes.c_void_p)]),
    "wg_report_destroy": (ctypes.c_int32, [ctypes.c_void_p]),
    "wg_report_function": (ctypes.c_char_p, [ctypes.c_void_p]),
    "wg_report_outcome": (ctypes.c_int32, [ctypes.c_void_p]),
    "wg_report_reason": (ctypes.c_char_p, [ctypes.c_void_p]),
    "wg_report_entry": (ctypes.c_char_p, [ctypes.c_void_p]),
    "wg_report_first_call_ms": (ctypes.c_double, [ctypes.c_void_p]),
    "wg_report_phase_count": (ctypes.c_uint64, [ctypes.c_void_p]),
    "wg_report_phase_name": (ctypes.c_char_p, [ctypes.c_void_p, ctypes.c_uint64]),
    "wg_report_phase_ms": (ctypes.c_double, [ctypes.c_void_p, ctypes.c_uint64]),
    "wg_wrap_pair": (ctypes.c_int32, [ctypes.c_void_p, ctypes.c_void_p, ctypes.POINTER(wg_pair_spec), wg_callback,
        wg_callback, ctypes.c_void_p, ctypes.POINTER(ctypes.c_void_p)]),
    "wg_pair_destroy": (ctypes.c_int32, [ctypes.c_void_p]),
    "wg_pair_bind": (ctypes.c_int32, [ctypes.c_void_p, ctypes.c_char_p, wg_memory]),
    "wg_pair_forward": (ctypes.c_int32, [ctypes.c_void_p, ctypes.c_void_p, ctypes.POINTER(wg_arg), ctypes.c_uint64,
        ctypes.POINTER(ctypes.c_uint64), ctypes.POINTER(ctypes.c_int32)]),
    "wg_pair_backward": (ctypes.c_int32, [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint64, ctypes.POINTER(wg_arg),
        ctypes.c_uint64, ctypes.POINTER(ctypes.c_int32)]),
    "wg_pair_report": (ctypes.c_int32, [ctypes.c_void_p, ctypes.c_int32, ctypes.POINTER(ctypes.c_void_p)]),
    "wg_clear_stack": (None, []),
    "wg_cache_adopt": (ctypes.c_int32, [ctypes.c_void_p, ctypes.c_void_p, ctypes.POINTER(wg_function_spec),
        ctypes.POINTER(wg_adoption), ctypes.POINTER(ctypes.c_void_p)]),
    "wg_capture_write": (ctypes.c_int32, [ctypes.c_void_p, ctypes.c_void_p, ctypes.POINTER(wg_function_spec),
        ctypes.POINTER(wg_adoption)]),
    "wg_open_all": (ctypes.c_int32, [ctypes.c_void_p, ctypes.POINTER(wg_open_options),
        ctypes.POINTER(ctypes.c_void_p)]),
    "wg_opening_wait": (ctypes.c_int32, [ctypes.c_void_p]),
    "wg_opening_progress": (ctypes.c_int32, [ctypes.c_void_p, ctypes.POINTER(wg_open_progress)]),
    "wg_opening_destroy": (ctypes.c_int32, [ctypes.c_void_p]),
    "wg_recorder_stream": (ctypes.c_void_p, [ctypes.c_void_p]),
    "wg_recorder_fork": (ctypes.c_int32, [ctypes.c_void_p, ctypes.POINTER(ctypes.c_void_p)]),
    "wg_recorder_join": (ctypes.c_int32, [ctypes.c_void_p, ctypes.c_void_p]),
    "wg_recorder_address": (ctypes.c_int32, [ctypes.c_void_p, ctypes.c_char_p, ctypes.POINTER(wg_address)]),
    "wg_recorder_alloc": (ctypes.c_int32, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_uint64,
        ctypes.POINTER(wg_address)]),
    "wg_recorder_scalar": (ctypes.c_int32, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int32, ctypes.c_void_p]),
    "wg_recorder_sizes": (ctypes.c_int32, [ctypes.c_void_p, ctypes.c_char_p,
        ctypes.POINTER(ctypes.POINTER(ctypes.c_int64)), ctypes.POINTER(ctypes.c_uint64)]),
    "wg_recorder_dtype": (ctypes.c_int32, [ctypes.c_void_p, ctypes.c_char_p, ctypes.POINTER(ctypes.c_int32)]),
    "wg_recorder_fail": (ctypes.c_int32, [ctypes.c_void_p, ctypes.c_int32, ctypes.c_char_p]),
    "wg_look_at_tensors": (ctypes.c_int64, [wg_dltensor_reader, ctypes.POINTER(ctypes.c_void_p), ctypes.c_uint64,
        ctypes.POINTER(wg_tensor_look), ctypes.POINTER(ctypes.c_uint64), ctypes.POINTER(ctypes.c_int64),
        ctypes.c_uint64]),
    "wg_tensors_are_there": (ctypes.c_int, [wg_dltensor_reader, ctypes.POINTER(ctypes.c_void_p),
        ctypes.POINTER(wg_tensor_look), ctypes.c_uint64]),
    "wg_use_torch_tensors": (ctypes.c_int, [ctypes.POINTER(wg_torch_tensors)]),
    "wg_read_torch_tensor": (ctypes.c_int, [ctypes.c_void_p, ctypes.c_void_p]),
    "wg_snapshot_is_same": (ctypes.c_int, [ctypes.POINTER(wg_snapshot)]),
    "wg_note_dict_event": (ctypes.c_int, [ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p]),
    "wg_dict_events": (ctypes.POINTER(ctypes.c_uint64), []),
    "wg_steady_call_create": (ctypes.c_int32, [ctypes.c_uint64, ctypes.POINTER(wg_steady_call),
        ctypes.POINTER(ctypes.c_void_p)]),
    "wg_modules_create": (ctypes.c_int32, [ctypes.c_uint64, ctypes.POINTER(ctypes.c_void_p)]),
    "wg_modules_destroy": (None, [ctypes.c_void_p]),
    "wg_modules_read": (ctypes.c_int, [ctypes.c_void_p, ctypes.POINTER(wg_module_walk), ctypes.c_void_p,
        ctypes.c_void_p]),
    "wg_modules_read_value": (ctypes.c_int, [ctypes.c_void_p, ctypes.POINTER(wg_module_walk), ctypes.c_void_p,
        ctypes.c_void_p]),
    "wg_modules_hold_the_same": (ctypes.c_int, [ctypes.c_void_p]),
    "wg_modules_are_the_same": (ctypes.c_int, [ctypes.c_void_p]),
    "wg_modules_watch": (ctypes.c_int, [ctypes.c_void_p, wg_dict_watch, ctypes.c_int32]),
    "wg_list_facts": (ctypes.c_void_p, [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]),
    "wg_fold_facts": (ctypes.c_int, [ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint64, ctypes.c_void_p]),
    "wg_text_addresses": (ctypes.c_int, [ctypes.c_void_p, ctypes.POINTER(ctypes.c_uint64)]),
}

# Those whose result is a wg_status.
STATUS = frozenset({'wg_receive_log', 'wg_limit_log', 'wg_device_open', 'wg_device_close', 'wg_device_synchronize',
    'wg_prepare_recording', 'wg_prepare_recording_early', 'wg_device_warm_up', 'wg_register_module',
    'wg_register_host_function', 'wg_buffer_create', 'wg_buffer_create_host', 'wg_buffer_destroy', 'wg_buffer_upload',
    'wg_buffer_download', 'wg_program_create', 'wg_program_destroy', 'wg_stream_create', 'wg_stream_view',
    'wg_stream_destroy', 'wg_stream_watch', 'wg_watch_stray', 'wg_watch_destroy', 'wg_stream_synchronize',
    'wg_stream_record', 'wg_stream_wait', 'wg_event_destroy', 'wg_launch', 'wg_launch_with', 'wg_copy', 'wg_fill',
    'wg_cache_options_init', 'wg_cache_open', 'wg_cache_close', 'wg_cache_summary', 'wg_cache_readable',
    'wg_cache_miss_reasons', 'wg_cache_note_refusal', 'wg_record_pending', 'wg_cache_clear', 'wg_cache_clear_kind',
    'wg_save_cache_artifacts', 'wg_save_cache_artifacts_with', 'wg_load_cache_artifacts', 'wg_artifacts_destroy',
    'wg_cache_put_torch_artifacts', 'wg_cache_get_torch_artifacts', 'wg_cache_check_bundle', 'wg_cache_statistics',
    'wg_wrap', 'wg_cache_load', 'wg_cache_find', 'wg_cache_entries', 'wg_cache_prefetch', 'wg_cache_pause_prefetch',
    'wg_cache_latest_metadata', 'wg_pause_recording', 'wg_function_destroy', 'wg_bind', 'wg_call', 'wg_call_uncaptured',
    'wg_profiled_call_sizes', 'wg_profiled_call_args', 'wg_record_profile', 'wg_function_shapes', 'wg_function_misses',
    'wg_function_report', 'wg_report_destroy', 'wg_wrap_pair', 'wg_pair_destroy', 'wg_pair_bind', 'wg_pair_forward',
    'wg_pair_backward', 'wg_pair_report', 'wg_cache_adopt', 'wg_capture_write', 'wg_open_all', 'wg_opening_wait',
    'wg_opening_progress', 'wg_opening_destroy', 'wg_recorder_fork', 'wg_recorder_join', 'wg_recorder_address',
    'wg_recorder_alloc', 'wg_recorder_scalar', 'wg_recorder_sizes', 'wg_recorder_dtype', 'wg_recorder_fail',
    'wg_steady_call_create', 'wg_modules_create'})
