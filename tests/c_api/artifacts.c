/* Takes the artifacts that a process made or used as bytes, which another folder loads, and as a bundle that is read in
 * place. */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "checks.h"

static void write_bundle(const char* path, const void* bytes, uint64_t size)
{
    FILE* file = fopen(path, "wb");
    CHECK(file != NULL && fwrite(bytes, 1, size, file) == size && fclose(file) == 0 && chmod(path, 0600) == 0);
}

static wg_cache* open_with_bundle(const char* folder, const char* bundle)
{
    wg_cache_options options = cache_options(folder, wg_policy_require_hit);
    options.bundles = &bundle;
    options.bundle_count = 1;
    return open_with(options);
}

/* No other test compiles this program, because a cache only saves programs that it compiled itself. */
static const char* const k_own_kernel = "__kernel void add_one(__global const float* x, __global float* y) { size_t i "
                                        "= get_global_id(0); y[i] = x[i] + 1; }";

void artifacts_are_carried_to_another_folder(void)
{
    wg_program* const shared = g_program;
    OK(wg_program_create(g_device, "own", k_own_kernel, NULL, &g_program));
    wg_cache* cache = open_cache("artifacts", wg_policy_read_write);
    const wg_cache* const caches[] = {cache, cache};
    wg_artifacts *saved = NULL, *loaded = NULL, *none = NULL;
    FAILS(wg_save_cache_artifacts(caches, 2, NULL, &saved), wg_not_found, "recorded nothing and hit nothing");
    CHECK(call_add_one(cache) == wg_outcome_recorded);
    OK(wg_save_cache_artifacts(caches, 2, NULL, &saved));
    uint64_t size = 0;
    const void* bytes = wg_artifacts_bytes(saved, &size);
    CHECK(bytes != NULL && size > 288);
    CHECK(contains(wg_artifacts_info(saved), "\"kind\":\"entries\"") &&
          contains(wg_artifacts_info(saved), "\"count\":1"));
    CHECK(contains(wg_artifacts_info(saved), "\"kind\":\"compiled\""));

    wg_cache* other = open_cache("artifacts_elsewhere", wg_policy_read_write);
    FAILS(wg_load_cache_artifacts(other, g_device, bytes, size - 1, &loaded), wg_corrupt, "truncated");
    CHECK(loaded == NULL);
    OK(wg_load_cache_artifacts(other, g_device, bytes, size, &loaded));
    CHECK(contains(wg_artifacts_info(loaded), "\"skipped\":[]"));
    CHECK(wg_artifacts_bytes(loaded, &size) == NULL && size == 0);
    CHECK(contains(wg_artifacts_info(loaded), "\"kind\":\"compiled\""));
    OK(wg_artifacts_destroy(loaded));
    CHECK(call_add_one(other) == wg_outcome_replayed);
    OK(wg_cache_close(other));

    char path[512], json[4096];
    uint64_t length = 0;
    snprintf(path, sizeof path, "%s/cache.wgb", g_folder);
    bytes = wg_artifacts_bytes(saved, &size);
    write_bundle(path, bytes, size);
    OK(wg_cache_check_bundle(cache, g_device, path, json, sizeof json, &length));
    CHECK(length == strlen(json) && contains(json, "\"verdict\":\"fits\""));
    CHECK(contains(json, "\"name\":\"compiled/"));
    CHECK(contains(json, "\"environment_key\":\"") && contains(json, "\"environment_here\":\""));
    FAILS(wg_cache_check_bundle(cache, g_device, g_folder, json, sizeof json, &length), wg_io_failed,
          "not a regular file");
    other = open_with_bundle("no_such_folder", path);
    CHECK(call_add_one(other) == wg_outcome_replayed);
    OK(wg_cache_close(other));

    FAILS(wg_save_cache_artifacts(NULL, 1, NULL, &none), wg_invalid_argument, "caches is null");
    FAILS(wg_load_cache_artifacts(NULL, g_device, bytes, size, NULL), wg_invalid_argument, "cache is null");
    FAILS(wg_cache_check_bundle(cache, g_device, NULL, json, sizeof json, &length), wg_invalid_argument,
          "file is null");
    OK(wg_artifacts_destroy(saved));
    OK(wg_cache_close(cache));
    OK(wg_program_destroy(g_program));
    g_program = shared;
}

static wg_cache* open_signing(const char* key)
{
    wg_cache_options options = cache_options("torch", wg_policy_default);
    options.sign_with = key;
    return open_with(options);
}

void what_pytorch_compiled_is_kept_and_given_under_a_key(void)
{
    const char* const key = "release:hmac-sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
    const wg_key_value facts[] = {{"torch", "2.11.0"}, {"model", "toy"}}, other[] = {{"torch", "2.12.0"}};
    const char data[] = "pickles, as far as anybody knows";
    wg_cache *signing = open_signing(key), *keyless = open_signing(NULL);
    const wg_cache* const caches[] = {signing};
    wg_artifacts* got = NULL;
    uint64_t size = 0;
    FAILS(wg_cache_put_artifact(keyless, "torch", facts, 2, data, sizeof data), wg_untrusted, "no key to sign with");
    OK(wg_cache_put_artifact(signing, "torch", facts, 2, data, sizeof data));
    FAILS(wg_cache_get_artifact(keyless, "torch", facts, 2, &got), wg_untrusted, "no key is accepted");
    FAILS(wg_cache_get_artifact(signing, "torch", other, 1, &got), wg_not_found, "under these facts");
    OK(wg_cache_get_artifact(signing, "torch", facts, 2, &got));
    const void* bytes = wg_artifacts_bytes(got, &size);
    CHECK(size == sizeof data && memcmp(bytes, data, sizeof data) == 0);
    OK(wg_artifacts_destroy(got));

    wg_artifact_options options = {sizeof options, 1};
    OK(wg_save_cache_artifacts(caches, 1, &options, &got));
    CHECK(contains(wg_artifacts_info(got), "\"kind\":\"torch\""));
    OK(wg_artifacts_destroy(got));
    FAILS(wg_save_cache_artifacts(caches, 1, NULL, &got), wg_not_found, "recorded nothing and hit nothing");
    options.size = 4;
    FAILS(wg_save_cache_artifacts(caches, 1, &options, &got), wg_invalid_argument, "wg_artifact_options");
    const wg_cache* const unsigned_caches[] = {keyless};
    options.size = sizeof options;
    FAILS(wg_save_cache_artifacts(unsigned_caches, 1, &options, &got), wg_invalid_argument, "signed artifacts");

    FAILS(wg_cache_put_artifact(signing, "torch", facts, 2, NULL, 5), wg_invalid_argument, "bytes is null");
    FAILS(wg_cache_put_artifact(signing, "torch", NULL, 0, data, sizeof data), wg_invalid_argument, "facts");
    FAILS(wg_cache_put_artifact(signing, "tuned", facts, 2, data, sizeof data), wg_invalid_argument,
          "the kind 'tuned': expected torch");
    FAILS(wg_cache_get_artifact(signing, "pickles", facts, 2, &got), wg_invalid_argument, "expected torch");
    FAILS(wg_cache_get_artifact(signing, NULL, facts, 2, &got), wg_invalid_argument, "kind is null");
    FAILS(wg_cache_get_artifact(NULL, "torch", facts, 2, &got), wg_invalid_argument, "cache is null");
    OK(wg_cache_close(keyless));
    OK(wg_cache_close(signing));
}
