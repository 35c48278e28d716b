/* Uses the C interface as main.cpp uses the C++ interface. */
#include <stdio.h>
#include <string.h>

#include <warmgraph/warmgraph.h>

int main(int argc, char** argv)
{
    wg_cache_options options;
    wg_cache* cache = NULL;
    if (argc != 2 || wg_cache_options_init(&options, sizeof options) != wg_ok) return 2;
    options.cache_dir = argv[1];

    options.model = "../elsewhere";
    if (wg_cache_open(&options, &cache) != wg_invalid_argument || strlen(wg_last_error()) == 0) {
        printf("a wrong model was taken\n");
        return 1;
    }
    options.model = "consumer";
    if (wg_cache_open(&options, &cache) != wg_ok || strlen(wg_cache_disabled_reason(cache)) != 0) {
        printf("no cache: %s%s\n", wg_last_error(), wg_cache_disabled_reason(cache));
        return 1;
    }
    printf("warmgraph %s in %s\n", wg_version(), wg_cache_directory(cache));
    return wg_cache_close(cache) == wg_ok ? 0 : 1;
}
