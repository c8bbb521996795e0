/* Loops along the outputs of a row: two classes each, the probability of one given, up to MW_ROWS numbers at a time.
 *
 * Where the outputs of a row lie side by side in memory this reads it as a stream; the tiles of `_loops.h` would gather
 * each output from as many lines of the cache as there are rows. Scores, places and bins are those of `mw_two_f64` and
 * `mw_decide_and_count_two`, operation by operation.
 */
#ifndef METRICWISE_OUTPUTS_H
#define METRICWISE_OUTPUTS_H

#include <string.h>

#include "_loops.h"

/* Lanes: neighbouring outputs of one row, then those of the next rows as long as there is room. What belongs to each:
 * scores d * eta + v of both classes, and where the line of losses is followed. */
typedef struct {
    double eta[MW_ROWS];
    double d0[MW_ROWS], v0[MW_ROWS], d1[MW_ROWS], v1[MW_ROWS];
    double fall[MW_ROWS], begin[MW_ROWS], per_unit[MW_ROWS];
    int64_t flip[MW_ROWS];    /* 1 where class 1 is what is decided at g = -inf */
    int32_t segment[MW_ROWS]; /* of bin 0 */
    int32_t low[MW_ROWS];     /* the first and the last segment that is wanted */
    int32_t high[MW_ROWS];
    int32_t kind[MW_ROWS];    /* where the changes of its labels -1, 0 and 1 begin in a table of two times three */
    int32_t zeros[MW_ROWS];   /* labels seen */
    int32_t ones[MW_ROWS];
    int8_t codes[MW_ROWS];
    uint8_t hit[MW_ROWS];
} mw_lanes;

#define MW_DEFINE_LOAD_LANES(name, type)                                                                          \
    MW_CLONES static void name(const char *base, ptrdiff_t row, const char *codes, ptrdiff_t code_row, int rows, int m, \
                               mw_lanes *restrict o)                                                              \
    {                                                                                                             \
        for (int r = 0; r < rows; r++) {                                                                          \
            const type *restrict eta = (const type *)(base + r * row);                                            \
            const int8_t *restrict code = (const int8_t *)(codes + r * code_row);                                 \
            if (m < 64) MW_PREFETCH((const char *)eta + 4 * rows * row);                                          \
            for (int b = 0; b < m; b++) o->eta[r * m + b] = (double)eta[b];                                       \
            for (int b = 0; b < m; b++) o->codes[r * m + b] = code[b];                                            \
        }                                                                                                         \
    }
MW_DEFINE_LOAD_LANES(mw_load_lanes_f32, float)
MW_DEFINE_LOAD_LANES(mw_load_lanes_f64, double)

/* Where the lines of the two classes meet in each lane, and the segment of that. */
MW_CLONES static void mw_cross_lanes(int n, const mw_lanes *restrict o, int divided, int32_t n_bins, double *restrict g,
                                     int32_t *restrict segment)
{
    double top = (double)n_bins;
    for (int b = 0; b < n; b++) {
        double p = o->eta[b], h0 = (1.0 - p) * o->d0[b] + o->v0[b], h1 = p * o->d1[b] + o->v1[b];
        g[b] = o->flip[b] ? h0 - h1 : h1 - h0;
    }
    if (divided)
        for (int b = 0; b < n; b++) g[b] /= o->fall[b];
    for (int b = 0; b < n; b++) {
        double at = (g[b] - o->begin[b]) * o->per_unit[b];
        double capped = at < top ? at : top;
        int32_t inside = (int32_t)(capped > 0.0 ? capped : 0.0) + 1;
        segment[b] = o->segment[b] + (at < 0.0 ? 0 : inside);
    }
}

/* Count the labels, and the changes by segment and label. */
MW_CLONES static void mw_count_lanes(int n, mw_lanes *restrict o, const int32_t *restrict segment,
                                     const uint8_t *restrict which, int32_t *restrict counts)
{
    for (int b = 0; b < n; b++) {
        o->zeros[b] += o->codes[b] == 0;
        o->ones[b] += o->codes[b] == 1;
    }
    for (int b = 0; b < n; b++) counts[((ptrdiff_t)segment[b] << 3) + which[o->kind[b] + o->codes[b]]]++;
}

/* Lanes whose segment is wanted, in order; returns how many. */
MW_CLONES static int mw_pick_lanes(int n, mw_lanes *restrict o, const int32_t *restrict segment,
                                   const uint8_t *restrict wanted, int32_t *restrict picked)
{
    int found = 0;
    for (int b = 0; b < n; b++) o->hit[b] = (segment[b] >= o->low[b]) & (segment[b] <= o->high[b]);
    for (int b = 0; b < n; b += 8) {
        uint64_t some;
        memcpy(&some, o->hit + b, 8);
        if (!some) continue;
        for (int l = b; l < b + 8 && l < n; l++)
            if (wanted[segment[l]]) picked[found++] = l;
    }
    return found;
}

/* Count, by output, labels 0 and 1 of rows that are decided as class 1. */
#define MW_DEFINE_DECIDE_OUTPUTS(name, type)                                                                      \
    MW_CLONES static void name(const char *base, const int8_t *restrict codes, int m, const double *restrict d0,  \
                               const double *restrict v0, const double *restrict d1, const double *restrict v1,   \
                               int64_t *restrict zeros, int64_t *restrict ones)                                   \
    {                                                                                                             \
        const type *restrict eta = (const type *)base;                                                            \
        for (int b = 0; b < m; b++) {                                                                             \
            double p = (double)eta[b];                                                                            \
            int64_t one = (int64_t)(p * d1[b] + v1[b] < (1.0 - p) * d0[b] + v0[b]), code = codes[b];              \
            zeros[b] += one & (int64_t)(code == 0);                                                               \
            ones[b] += one & (int64_t)(code == 1);                                                                \
        }                                                                                                         \
    }
MW_DEFINE_DECIDE_OUTPUTS(mw_decide_outputs_f32, float)
MW_DEFINE_DECIDE_OUTPUTS(mw_decide_outputs_f64, double)

#endif
