/* Innermost loops of the compiled row passes: one tile of up to MW_ROWS rows of one output at a time.
 *
 * A tile is laid out class by class, tile[j * MW_STEP + b] for class j of row b, so that each step of a score is one
 * operation over neighbouring rows and the compiler can do eight of them at once. Plain C, for one reason: a C
 * function can be compiled for several processors and chosen when the library is loaded (MW_CLONES).
 *
 * Scores follow the package's one definition: products and sums in float64, in the order of the classes. The build
 * switches off the contraction of a product and a sum into one rounding (-ffp-contract=off); nothing here may be
 * compiled with -ffast-math.
 */
#ifndef METRICWISE_LOOPS_H
#define METRICWISE_LOOPS_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#ifdef _OPENMP
#include <omp.h>
static int mw_max_threads(void) { return omp_in_parallel() ? 1 : omp_get_max_threads(); }
static int mw_has_openmp(void) { return 1; }
static void mw_use_threads(int n_threads) { omp_set_num_threads(n_threads); } /* of the caller; others keep theirs */
#else
static int mw_max_threads(void) { return 1; }
static int mw_has_openmp(void) { return 0; }
static void mw_use_threads(int n_threads) { (void)n_threads; }
#endif

#define MW_ROWS 128
/* From one class of a tile to the next: not a power of two, or their reads and writes would look like one another to
 * the processor (addresses are compared by their last twelve bits first). */
#define MW_STEP (MW_ROWS + 8)

/* glibc's loader can choose among clones; elsewhere, and where a sanitizer looks on, the baseline is what there is. */
#if defined(__x86_64__) && defined(__linux__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__) && \
    __GNUC__ >= 12 && !defined(__SANITIZE_ADDRESS__)
#define MW_CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define MW_CLONES
#endif

/* Memory of so many numbers of eight bytes, at an address that whole vectors lie on; *held is what to free. */
static double *mw_aligned(size_t numbers, void **held)
{
    *held = calloc(numbers * 8 + 64, 1); /* zeros: what lies behind the last row must be numbers */
    return *held ? (double *)(((uintptr_t)*held + 63) & ~(uintptr_t)63) : NULL;
}

/* ------------------------------------------------------------------------------------------------ reading a tile */

#if defined(__GNUC__)
#define MW_PREFETCH(at) __builtin_prefetch(at)
#else
#define MW_PREFETCH(at)
#endif

/* Fetch a tile ahead what lies in `bytes` from `at` on in eight rows: rows that are far apart are no stream that the
 * processor would see by itself. Outputs that share a line of the cache fetch it once. */
static inline void mw_fetch(const char *at, ptrdiff_t row, ptrdiff_t bytes)
{
    if (row <= 64 && bytes <= 64) return; /* rows lie close together: that is a stream */
    for (int l = 0; l < 8; l++) {
        const char *from = at + (MW_ROWS + l) * row;
        if (((uintptr_t)from & 63) < (uintptr_t)bytes) MW_PREFETCH(from);
        for (ptrdiff_t q = 64; q < bytes; q += 64) MW_PREFETCH(from + q);
    }
}

/* Eight rows at a time: a column of eight numbers is one vector. */
#define MW_COLUMN(type, at, row, out)                                                        \
    do {                                                                                     \
        const char *restrict mw_at = (at);                                                   \
        double *restrict mw_out = (out);                                                     \
        mw_out[0] = (double)*(const type *)mw_at;                                            \
        mw_out[1] = (double)*(const type *)(mw_at + (row));                                  \
        mw_out[2] = (double)*(const type *)(mw_at + 2 * (row));                              \
        mw_out[3] = (double)*(const type *)(mw_at + 3 * (row));                              \
        mw_out[4] = (double)*(const type *)(mw_at + 4 * (row));                              \
        mw_out[5] = (double)*(const type *)(mw_at + 5 * (row));                              \
        mw_out[6] = (double)*(const type *)(mw_at + 6 * (row));                              \
        mw_out[7] = (double)*(const type *)(mw_at + 7 * (row));                              \
    } while (0)

#define MW_DEFINE_LOAD(name, type)                                                                                   \
    MW_CLONES static void name(const char *base, ptrdiff_t row, ptrdiff_t cls, int n, int k, double *restrict tile) \
    {                                                                                                                \
        ptrdiff_t bytes = cls == (ptrdiff_t)sizeof(type) || k == 1 ? k * (ptrdiff_t)sizeof(type) : 0;                \
        int b = 0;                                                                                                   \
        if (row == (ptrdiff_t)sizeof(type)) { /* columns: each is a stream of its own, as those of a table are */    \
            for (int j = 0; j < k; j++) {                                                                            \
                const type *restrict column = (const type *)(base + j * cls);                                        \
                double *restrict out = tile + (ptrdiff_t)j * MW_STEP;                                                \
                for (b = 0; b < n; b++) out[b] = (double)column[b];                                                  \
            }                                                                                                        \
            return;                                                                                                  \
        }                                                                                                            \
        for (; b + 7 < n; b += 8) {                                                                                  \
            if (bytes) mw_fetch(base + b * row, row, bytes);                                                         \
            for (int j = 0; j < k; j++)                                                                              \
                MW_COLUMN(type, base + b * row + j * cls, row, tile + (ptrdiff_t)j * MW_STEP + b);                   \
        }                                                                                                            \
        for (; b < n; b++)                                                                                           \
            for (int j = 0; j < k; j++)                                                                              \
                tile[(ptrdiff_t)j * MW_STEP + b] = (double)*(const type *)(base + b * row + j * cls);                \
    }
MW_DEFINE_LOAD(mw_load_f32, float)
MW_DEFINE_LOAD(mw_load_f64, double)

/* Write the first k classes of a tile row by row. */
MW_CLONES static void mw_store(int n, int k, const double *restrict tile, ptrdiff_t row, double *restrict out)
{
    if (k == 2 && row == 2) { /* rows side by side, many at once */
        for (int b = 0; b < n; b++) {
            out[2 * b] = tile[b];
            out[2 * b + 1] = tile[MW_STEP + b];
        }
        return;
    }
    for (int b = 0; b < n; b++)
        for (int j = 0; j < k; j++) out[b * row + j] = tile[(ptrdiff_t)j * MW_STEP + b];
}

/* The probability of class 1 alone is given: class 0 has the rest. */
MW_CLONES static void mw_complement(int n, double *restrict tile, const double *restrict positive)
{
    for (int b = 0; b < n; b++) tile[b] = 1.0 - positive[b];
}

#define MW_DEFINE_CELLS(name, type)                                                                             \
    MW_CLONES static void name(const char *base, ptrdiff_t row, int n, int64_t k, int64_t *restrict cell)       \
    {                                                                                                           \
        if (row == sizeof(type))                                                                                \
            for (int b = 0; b < n; b++) cell[b] = ((int64_t)((const type *)base)[b] + 1) * k;                   \
        else                                                                                                    \
            for (int b = 0; b < n; b++) cell[b] = ((int64_t) * (const type *)(base + b * row) + 1) * k;         \
    }
MW_DEFINE_CELLS(mw_cells_i8, int8_t)
MW_DEFINE_CELLS(mw_cells_i32, int32_t)
MW_DEFINE_CELLS(mw_cells_i64, int64_t)

/* ---------------------------------------------------------------------------------------------- scores, decisions
 *
 * These go over all rows of a tile, also where it holds fewer: a number of steps that the compiler knows is worth more
 * than the rows of the last tile. What lies behind the last row is never looked at. */

MW_CLONES static void mw_line(const double *restrict eta, double d, double v, double *restrict out)
{
    for (int b = 0; b < MW_ROWS; b++) out[b] = eta[b] * d + v;
}

/* The same where rows need not sum to 1: the offset counts once per unit of the sum. */
MW_CLONES static void mw_line_of(const double *restrict eta, const double *restrict total, double d, double v,
                                 double *restrict out)
{
    for (int b = 0; b < MW_ROWS; b++) out[b] = eta[b] * d + total[b] * v;
}

/* sum_i tile[i] * column[i], in that order; four terms per trip to memory. */
MW_CLONES static void mw_dot(int k, const double *restrict tile, const double *restrict column, ptrdiff_t step,
                             double *restrict out)
{
    double c0 = column[0];
    for (int b = 0; b < MW_ROWS; b++) out[b] = tile[b] * c0;
    int i = 1;
    for (; i + 3 < k; i += 4) {
        const double *restrict t = tile + (ptrdiff_t)i * MW_STEP;
        double a0 = column[i * step], a1 = column[(i + 1) * step];
        double a2 = column[(i + 2) * step], a3 = column[(i + 3) * step];
        for (int b = 0; b < MW_ROWS; b++)
            out[b] = (((out[b] + t[b] * a0) + t[b + MW_STEP] * a1) + t[b + 2 * MW_STEP] * a2) + t[b + 3 * MW_STEP] * a3;
    }
    for (; i < k; i++) {
        const double *restrict t = tile + (ptrdiff_t)i * MW_STEP;
        double a = column[i * step];
        for (int b = 0; b < MW_ROWS; b++) out[b] += t[b] * a;
    }
}

/* The sum of each row's probabilities, which is not always 1. */
MW_CLONES static void mw_total(int width, const double *restrict tile, double *restrict total)
{
    for (int b = 0; b < MW_ROWS; b++) total[b] = tile[b];
    for (int i = 1; i < width; i++)
        for (int b = 0; b < MW_ROWS; b++) total[b] += tile[(ptrdiff_t)i * MW_STEP + b];
}

MW_CLONES static void mw_divide(const double *restrict total, double *restrict out)
{
    for (int b = 0; b < MW_ROWS; b++) out[b] /= total[b];
}

MW_CLONES static void mw_fill(int64_t value, int64_t *restrict out)
{
    for (int b = 0; b < MW_ROWS; b++) out[b] = value;
}

/* Keep the lower of two scores and its class; the earlier class wins ties. */
MW_CLONES static void mw_lower(const double *restrict score, int64_t j, double *restrict best,
                               int64_t *restrict code)
{
    for (int b = 0; b < MW_ROWS; b++) {
        int lower = score[b] < best[b];
        code[b] = lower ? j : code[b];
        best[b] = lower ? score[b] : best[b];
    }
}

/* The same with the score d * eta + v. */
MW_CLONES static void mw_lower_line(const double *restrict eta, double d, double v, int64_t j, double *restrict best,
                                    int64_t *restrict code)
{
    for (int b = 0; b < MW_ROWS; b++) {
        double score = eta[b] * d + v;
        int lower = score < best[b];
        code[b] = lower ? j : code[b];
        best[b] = lower ? score : best[b];
    }
}

/* The same with the score d * eta + v * total. */
MW_CLONES static void mw_lower_line_of(const double *restrict eta, const double *restrict total, double d, double v,
                                       int64_t j, double *restrict best, int64_t *restrict code)
{
    for (int b = 0; b < MW_ROWS; b++) {
        double score = eta[b] * d + total[b] * v;
        int lower = score < best[b];
        code[b] = lower ? j : code[b];
        best[b] = lower ? score : best[b];
    }
}

MW_CLONES static void mw_decide_diagonal(int k, const double *restrict tile, const double *restrict d,
                                         const double *restrict v, double *restrict best, int64_t *restrict code)
{
    double d0 = d[0], v0 = v[0];
    for (int b = 0; b < MW_ROWS; b++) {
        best[b] = tile[b] * d0 + v0;
        code[b] = 0;
    }
    int j = 1;
    for (; j + 2 < k; j += 3) { /* three classes per trip to memory */
        const double *restrict t = tile + (ptrdiff_t)j * MW_STEP;
        double d1 = d[j], d2 = d[j + 1], d3 = d[j + 2], v1 = v[j], v2 = v[j + 1], v3 = v[j + 2];
        for (int b = 0; b < MW_ROWS; b++) {
            double lowest = best[b], score = t[b] * d1 + v1;
            int64_t at = code[b];
            at = score < lowest ? j : at;
            lowest = score < lowest ? score : lowest;
            score = t[b + MW_STEP] * d2 + v2;
            at = score < lowest ? j + 1 : at;
            lowest = score < lowest ? score : lowest;
            score = t[b + 2 * MW_STEP] * d3 + v3;
            code[b] = score < lowest ? j + 2 : at;
            best[b] = score < lowest ? score : lowest;
        }
    }
    for (; j < k; j++) {
        const double *restrict t = tile + (ptrdiff_t)j * MW_STEP;
        double dj = d[j], vj = v[j];
        for (int b = 0; b < MW_ROWS; b++) {
            double score = t[b] * dj + vj;
            int lower = score < best[b];
            code[b] = lower ? j : code[b];
            best[b] = lower ? score : best[b];
        }
    }
}

MW_CLONES static void mw_decide_offset(int k, const double *restrict tile, const double *restrict total,
                                       const double *restrict d, const double *restrict v, double *restrict best,
                                       int64_t *restrict code)
{
    double d0 = d[0], v0 = v[0];
    for (int b = 0; b < MW_ROWS; b++) {
        best[b] = tile[b] * d0 + total[b] * v0;
        code[b] = 0;
    }
    int j = 1;
    for (; j + 2 < k; j += 3) {
        const double *restrict t = tile + (ptrdiff_t)j * MW_STEP;
        double d1 = d[j], d2 = d[j + 1], d3 = d[j + 2], v1 = v[j], v2 = v[j + 1], v3 = v[j + 2];
        for (int b = 0; b < MW_ROWS; b++) {
            double sum = total[b], lowest = best[b], score = t[b] * d1 + sum * v1;
            int64_t at = code[b];
            at = score < lowest ? j : at;
            lowest = score < lowest ? score : lowest;
            score = t[b + MW_STEP] * d2 + sum * v2;
            at = score < lowest ? j + 1 : at;
            lowest = score < lowest ? score : lowest;
            score = t[b + 2 * MW_STEP] * d3 + sum * v3;
            code[b] = score < lowest ? j + 2 : at;
            best[b] = score < lowest ? score : lowest;
        }
    }
    for (; j < k; j++) {
        const double *restrict t = tile + (ptrdiff_t)j * MW_STEP;
        double dj = d[j], vj = v[j];
        for (int b = 0; b < MW_ROWS; b++) {
            double score = t[b] * dj + total[b] * vj;
            int lower = score < best[b];
            code[b] = lower ? j : code[b];
            best[b] = lower ? score : best[b];
        }
    }
}

/* ------------------------------------------------------------------------------------------------------- counting */

/* Two classes: cell is 0, 2 or 4 for a missing label, class 0 and class 1. */
MW_CLONES static void mw_count_two(int n, const int64_t *restrict cell, const int64_t *restrict code,
                                   int64_t *restrict counts)
{
    int64_t c00 = 0, c01 = 0, c10 = 0, c11 = 0;
    for (int b = 0; b < n; b++) {
        int64_t at = cell[b] + code[b];
        c00 += at == 2;
        c01 += at == 3;
        c10 += at == 4;
        c11 += at == 5;
    }
    counts[2] += c00;
    counts[3] += c01;
    counts[4] += c10;
    counts[5] += c11;
}

/* The same, decided on the way: class 1 where its score is lower. */
MW_CLONES static void mw_decide_and_count_two(int n, const double *restrict tile, const double *restrict d,
                                              const double *restrict v, const int64_t *restrict cell,
                                              int64_t *restrict counts)
{
    const double *restrict one = tile + MW_STEP;
    double d0 = d[0], v0 = v[0], d1 = d[1], v1 = v[1];
    int64_t c00 = 0, c01 = 0, c10 = 0, c11 = 0;
    for (int b = 0; b < n; b++) {
        int64_t at = cell[b] + (int64_t)(one[b] * d1 + v1 < tile[b] * d0 + v0);
        c00 += at == 2;
        c01 += at == 3;
        c10 += at == 4;
        c11 += at == 5;
    }
    counts[2] += c00;
    counts[3] += c01;
    counts[4] += c10;
    counts[5] += c11;
}

/* The sum of the first n of MW_ROWS numbers, which are written over: the second half is added to the first, again and
 * again, so that the order is the same whatever the processor adds at once. */
#define MW_HALVE(values, half) \
    for (int b = 0; b < (half); b++) (values)[b] += (values)[b + (half)]

static inline double mw_sum_up(int n, double *restrict values)
{
    for (int b = n; b < MW_ROWS; b++) values[b] = 0.0;
    MW_HALVE(values, MW_ROWS / 2);
    MW_HALVE(values, MW_ROWS / 4);
    MW_HALVE(values, MW_ROWS / 8);
    MW_HALVE(values, MW_ROWS / 16);
    return ((values[0] + values[1]) + (values[2] + values[3])) + ((values[4] + values[5]) + (values[6] + values[7]));
}

MW_CLONES static double mw_sum(int n, const double *restrict values)
{
    double copy[MW_ROWS];
    for (int b = 0; b < MW_ROWS; b++) copy[b] = values[b];
    return mw_sum_up(n, copy);
}

/* Two classes: probabilities by decision. */
MW_CLONES static void mw_expect_two(int n, const int64_t *restrict code, const double *restrict m0,
                                    const double *restrict m1, double *restrict sums)
{
    double part[4][MW_ROWS];
    for (int b = 0; b < MW_ROWS; b++) {
        part[0][b] = code[b] ? 0.0 : m0[b]; /* predicted 0: class 0, class 1 */
        part[1][b] = code[b] ? 0.0 : m1[b];
        part[2][b] = code[b] ? m0[b] : 0.0; /* predicted 1 */
        part[3][b] = code[b] ? m1[b] : 0.0;
    }
    for (int q = 0; q < 4; q++) sums[q] += mw_sum_up(n, part[q]);
}

MW_CLONES static void mw_scale(int n, const double *restrict factor, double *restrict out)
{
    for (int b = 0; b < n; b++) out[b] *= factor[b];
}

MW_CLONES static void mw_multiply(int n, const double *restrict a, const double *restrict b, double *restrict out)
{
    for (int i = 0; i < n; i++) out[i] = a[i] * b[i];
}

/* ------------------------------------------------------------------------------------------------------- crossing */

/* Where the rows of a tile stand on their envelopes, and where they go next. */
typedef struct {
    int64_t line[MW_ROWS]; /* the current line, and the one that is met next: -1 where there is none */
    int64_t next[MW_ROWS];
    int64_t code[MW_ROWS]; /* their classes */
    int64_t next_code[MW_ROWS];
    double height[MW_ROWS]; /* their heights at g = 0 and their slopes */
    double next_height[MW_ROWS];
    double slope[MW_ROWS];
    double next_slope[MW_ROWS];
    double g[MW_ROWS];    /* where the next line is met */
    double last[MW_ROWS]; /* the same, but not before the change that went before */
    int32_t bin[MW_ROWS];
    int32_t kind[MW_ROWS]; /* row of the table of changes */
} mw_envelope;

MW_CLONES static void mw_begin(const double *restrict lowest, const int64_t *restrict owner, double slope,
                               mw_envelope *restrict e)
{
    for (int b = 0; b < MW_ROWS; b++) {
        e->line[b] = 0;
        e->code[b] = owner[b];
        e->height[b] = lowest[b];
        e->slope[b] = slope;
        e->last[b] = -HUGE_VAL;
    }
}

/* Find the line that is met next, one line after the other: mw_look, mw_meet for each, mw_met. Lines fall ever more
 * steeply; of lines met at the same g the last one stays below afterwards. Rows behind the last stay where they are. */
MW_CLONES static void mw_look(mw_envelope *restrict e)
{
    for (int b = 0; b < MW_ROWS; b++) {
        e->g[b] = HUGE_VAL;
        e->next[b] = -1;
        e->next_code[b] = 0;
        e->next_height[b] = 0.0;
        e->next_slope[b] = 0.0;
    }
}

MW_CLONES static void mw_meet(int64_t q, const double *restrict other, const int64_t *restrict whose, double slope,
                              mw_envelope *restrict e)
{
    for (int b = 0; b < MW_ROWS; b++) {
        double g = (other[b] - e->height[b]) / (e->slope[b] - slope);
        int met = (q > e->line[b]) & (g <= e->g[b]) & (g < HUGE_VAL) & (g > -HUGE_VAL);
        e->g[b] = met ? g : e->g[b];
        e->next[b] = met ? q : e->next[b];
        e->next_code[b] = met ? whose[b] : e->next_code[b];
        e->next_height[b] = met ? other[b] : e->next_height[b];
        e->next_slope[b] = met ? slope : e->next_slope[b];
    }
}

MW_CLONES static void mw_met(mw_envelope *restrict e)
{
    for (int b = 0; b < MW_ROWS; b++) e->last[b] = e->g[b] > e->last[b] ? e->g[b] : e->last[b];
}

/* Go there; returns whether a row may have another line to meet. */
MW_CLONES static int mw_go(int n, int lines, mw_envelope *restrict e)
{
    int64_t left = 0;
    for (int b = 0; b < n; b++) left += (int64_t)((e->next[b] >= 0) & (e->next[b] < lines - 1));
    for (int b = 0; b < MW_ROWS; b++) {
        e->line[b] = e->next[b] < 0 ? lines : e->next[b];
        e->code[b] = e->next_code[b];
        e->height[b] = e->next_height[b];
        e->slope[b] = e->next_slope[b];
    }
    return left > 0;
}

/* Where two lines meet, which every row goes from and to. */
MW_CLONES static void mw_cross(const double *restrict from, const double *restrict to, double fall,
                               mw_envelope *restrict e)
{
    for (int b = 0; b < MW_ROWS; b++) e->last[b] = (to[b] - from[b]) / fall;
}

/* The bin of each change: 0 before the first, n_bins + 1 behind the last. */
MW_CLONES static void mw_bins(double begin, double per_unit, int32_t n_bins, mw_envelope *restrict e)
{
    double top = (double)n_bins;
    for (int b = 0; b < MW_ROWS; b++) {
        double at = (e->last[b] - begin) * per_unit;
        double capped = at < top ? at : top;
        int32_t inside = (int32_t)(capped > 0.0 ? capped : 0.0) + 1;
        e->bin[b] = at < 0.0 ? 0 : inside;
    }
}

/* Its kind: true class, old class, new class; 0, which changes nothing, where there is none. */
MW_CLONES static void mw_kinds(int32_t k, const int64_t *restrict cell, const int64_t *restrict old,
                               const int64_t *restrict new, int32_t *restrict kind)
{
    for (int b = 0; b < MW_ROWS; b++) kind[b] = ((int32_t)cell[b] + (int32_t)old[b]) * k + (int32_t)new[b];
}

MW_CLONES static void mw_no_kind(const int64_t *restrict next, int32_t *restrict kind)
{
    for (int b = 0; b < MW_ROWS; b++) kind[b] = next[b] < 0 ? 0 : kind[b];
}

/* Rows whose bin is wanted, in order; returns how many. Wanted bins lie between `first` and `last` and hold few rows:
 * sixteen rows at a time are looked at together, and one by one only where one of them lies there. */
MW_CLONES static int mw_pick(int n, const int32_t *restrict bin, const uint8_t *restrict wanted, int32_t first,
                             int32_t last, int32_t *restrict picked)
{
    int found = 0, b = 0;
    for (; b + 15 < n; b += 16) {
        int32_t some = 0;
        for (int l = 0; l < 16; l++) some |= (bin[b + l] >= first) & (bin[b + l] <= last);
        if (!some) continue;
        for (int l = 0; l < 16; l++)
            if (wanted[bin[b + l]]) picked[found++] = b + l;
    }
    for (; b < n; b++)
        if (wanted[bin[b]]) picked[found++] = b;
    return found;
}

/* The same for two classes of which the probability of one is given, in one go: read it, find where the lines of the
 * two classes meet (d * eta + v each), and the bin. */
#define MW_DEFINE_TWO(name, type)                                                                                    \
    MW_CLONES static void name(const char *restrict base, ptrdiff_t row, int n, double d0, double v0, double d1,     \
                               double v1, int flip, double fall, double begin, double per_unit, int32_t n_bins,     \
                               mw_envelope *restrict e)                                                              \
    {                                                                                                                \
        double top = (double)n_bins;                                                                                 \
        int r = 0;                                                                                                   \
        if (row == (ptrdiff_t)sizeof(type))                                                                          \
            for (; r < n; r++) e->height[r] = (double)((const type *)base)[r];                                       \
        for (; r + 7 < n; r += 8) {                                                                                  \
            mw_fetch(base + r * row, row, sizeof(type));                                                             \
            MW_COLUMN(type, base + r * row, row, e->height + r);                                                     \
        }                                                                                                            \
        for (; r < n; r++) e->height[r] = (double)*(const type *)(base + r * row);                                   \
        for (int b = 0; b < MW_ROWS; b++) {                                                                          \
            double p = e->height[b];                                                                                 \
            double h0 = (1.0 - p) * d0 + v0, h1 = p * d1 + v1;                                                       \
            e->last[b] = flip ? h0 - h1 : h1 - h0;                                                                   \
        }                                                                                                            \
        if (fall != 1.0)                                                                                             \
            for (int b = 0; b < MW_ROWS; b++) e->last[b] /= fall;                                                    \
        for (int b = 0; b < MW_ROWS; b++) {                                                                          \
            double at = (e->last[b] - begin) * per_unit;                                                             \
            double capped = at < top ? at : top;                                                                     \
            int32_t inside = (int32_t)(capped > 0.0 ? capped : 0.0) + 1;                                             \
            e->bin[b] = at < 0.0 ? 0 : inside;                                                                       \
        }                                                                                                            \
    }
MW_DEFINE_TWO(mw_two_f32, float)
MW_DEFINE_TWO(mw_two_f64, double)

/* Count the changes of two classes by label, -1, 0 or 1; and the labels. */
MW_CLONES static void mw_count_by_label(int n, const char *restrict codes, ptrdiff_t row, const int32_t *restrict bin,
                              const uint8_t *restrict which, int32_t *restrict counts, int64_t *restrict labels)
{
    int8_t label[MW_ROWS];
    int32_t zeros = 0, ones = 0;
    for (int b = 0; b < n; b++) label[b] = *(const int8_t *)(codes + b * row);
    for (int b = 0; b < n; b++) { /* many at once, which counters in memory could not be */
        zeros += label[b] == 0;
        ones += label[b] == 1;
    }
    labels[0] += n - zeros - ones;
    labels[1] += zeros;
    labels[2] += ones;
    for (int b = 0; b < n; b++) counts[((ptrdiff_t)bin[b] << 3) + which[label[b] + 1]]++;
}

/* Add to the bins what each kind of change adds: four numbers, and whether any of them is not 0. */
MW_CLONES static void mw_add(int n, const mw_envelope *restrict e, const double *restrict table,
                             double *restrict sums, int64_t *restrict counts)
{
    for (int b = 0; b < n; b++) {
        const double *restrict change = table + 4 * (ptrdiff_t)e->kind[b];
        double *restrict sum = sums + 4 * (ptrdiff_t)e->bin[b];
        for (int f = 0; f < 4; f++) sum[f] += change[f];
        counts[e->bin[b]] += (change[2] + change[3]) > 0.0;
    }
}

/* What each row adds to both functionals if it is decided so, by the masses of its classes; worth is (K, K, 2), by true
 * class and decision. */
MW_CLONES static void mw_worth(int k, const double *restrict mass, const double *restrict worth,
                               const int64_t *restrict code, double *restrict one, double *restrict other)
{
    for (int b = 0; b < MW_ROWS; b++) one[b] = other[b] = 0.0;
    for (int i = 0; i < k; i++) {
        const double *restrict share = mass + (ptrdiff_t)i * MW_STEP, *restrict row = worth + (ptrdiff_t)i * k * 2;
        for (int b = 0; b < MW_ROWS; b++) {
            one[b] += share[b] * row[2 * code[b]];
            other[b] += share[b] * row[2 * code[b] + 1];
        }
    }
}

/* Add to the bins how both functionals change from before to after, (2, MW_STEP) each, as `mw_add` does; nothing where
 * next is given and negative. */
MW_CLONES static void mw_add_changes(int n, const mw_envelope *restrict e, const int64_t *restrict next,
                                     const double *restrict before, const double *restrict after,
                                     double *restrict sums, int64_t *restrict counts)
{
    for (int b = 0; b < n; b++) {
        if (next && next[b] < 0) continue;
        double one = after[b] - before[b], other = after[MW_STEP + b] - before[MW_STEP + b];
        double *restrict sum = sums + 4 * (ptrdiff_t)e->bin[b];
        sum[0] += one;
        sum[1] += other;
        sum[2] += fabs(one);
        sum[3] += fabs(other);
        counts[e->bin[b]] += (one != 0.0) | (other != 0.0);
    }
}

/* Where kinds make few different changes, count those. */
static void mw_count_kinds(int n, const mw_envelope *restrict e, const uint8_t *restrict which, int32_t *restrict counts)
{
    for (int b = 0; b < n; b++) counts[((ptrdiff_t)e->bin[b] << 3) + which[e->kind[b]]]++;
}

/* -------------------------------------------------------------------------------------------------- reading labels */

#define MW_DEFINE_RANGE(name, type)                                                                   \
    MW_CLONES static void name(const char *base, ptrdiff_t n, int64_t *restrict low, int64_t *restrict high) \
    {                                                                                                 \
        const type *restrict at = (const type *)base;                                                 \
        type least = at[0], most = at[0];                                                             \
        for (ptrdiff_t b = 0; b < n; b++) {                                                           \
            least = at[b] < least ? at[b] : least;                                                    \
            most = at[b] > most ? at[b] : most;                                                       \
        }                                                                                             \
        *low = least < *low ? least : *low;                                                           \
        *high = most > *high ? most : *high;                                                          \
    }
MW_DEFINE_RANGE(mw_range_i8, int8_t)
MW_DEFINE_RANGE(mw_range_i32, int32_t)
MW_DEFINE_RANGE(mw_range_i64, int64_t)

#define MW_DEFINE_NARROW(name, from, to)                                              \
    MW_CLONES static void name(const char *base, ptrdiff_t n, char *out)              \
    {                                                                                 \
        const from *restrict at = (const from *)base;                                 \
        to *restrict into = (to *)out;                                                \
        for (ptrdiff_t b = 0; b < n; b++) into[b] = (to)at[b];                        \
    }
MW_DEFINE_NARROW(mw_narrow_8_32, int8_t, int32_t)
MW_DEFINE_NARROW(mw_narrow_32_8, int32_t, int8_t)
MW_DEFINE_NARROW(mw_narrow_64_8, int64_t, int8_t)
MW_DEFINE_NARROW(mw_narrow_64_32, int64_t, int32_t)

/* Labels 0 and 1 of neighbouring outputs of one row, all outputs at once. */
MW_CLONES static void mw_tally_two(ptrdiff_t m, const int8_t *restrict codes, int32_t *restrict zeros,
                                   int32_t *restrict ones)
{
    for (ptrdiff_t b = 0; b < m; b++) {
        zeros[b] += codes[b] == 0;
        ones[b] += codes[b] == 1;
    }
}

/* -------------------------------------------------------------------------------------------------------- checking */

/* Whether all of n numbers lie in [0, top]: false for NaN. */
MW_CLONES static int mw_within(int n, const double *restrict values, double top)
{
    int64_t fine = 0; /* as wide as a double, so that both are counted eight at a time */
    for (int b = 0; b < n; b++) fine += (int64_t)((values[b] >= 0.0) & (values[b] <= top));
    return fine == n;
}

MW_CLONES static int mw_sums_to_one(int n, int k, const double *restrict tile, double *restrict total, double tolerance)
{
    for (int b = 0; b < n; b++) total[b] = tile[b];
    for (int j = 1; j < k; j++) {
        const double *restrict t = tile + (ptrdiff_t)j * MW_STEP;
        for (int b = 0; b < n; b++) total[b] += t[b];
    }
    int64_t fine = 0;
    for (int b = 0; b < n; b++) {
        double off = total[b] - 1.0;
        fine += (int64_t)((off <= tolerance) & (-off <= tolerance));
    }
    return fine == n;
}

#endif
