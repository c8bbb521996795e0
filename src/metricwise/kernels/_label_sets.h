/* Best label sets of rows: distributions of numbers of true labels, and the expected metric of a row at each size.
 *
 * `_label_sets.py` says what is computed and why. Operations and their order are the same as there, so that the twins
 * see the same bits; labels of probability 0, which change nothing, are left out here. One row is worked on at a time:
 * its numbers stay in the first cache, and the loops over numbers of true labels are what the processor does at once.
 */
#ifndef METRICWISE_LABEL_SETS_H
#define METRICWISE_LABEL_SETS_H

#include <string.h>

#include "_loops.h"

#define MW_NEGLIGIBLE 0x1p-56 /* of a probability */
#define MW_SET_TIE 1e-12      /* share by which a larger size has to be better */

typedef struct {
    const char *values;
    int value_size; /* bytes */
    const char *indices;
    int index_size; /* bytes; 0 for dense rows */
    const double *factor; /* NULL for ones */
} mw_label_entries;

typedef struct {
    double beta2, zero_division;
    int jaccard;
} mw_set_metric;

/* A number of true labels: probabilities mass[first], ..., mass[last]. */
typedef struct {
    double *mass;
    double *spare; /* where the next distribution is written */
    ptrdiff_t first, last;
} mw_set_count;

/* Working memory of a part. */
typedef struct {
    void *held;
    double *p;        /* positive probabilities as stored */
    double *heap;     /* those that are not ranked yet */
    double *ranked;   /* the others, descending */
    double *expected; /* by size */
    double *missing;  /* distribution of the number of missing labels, from missing_first to missing_last */
    double *hits;     /* P(label i is true, N = s), summed over labels */
    double *scaled;   /* s times beta2 */
    double *share;
    mw_set_count count;
    ptrdiff_t missing_first, missing_last;
    double rate; /* of the distribution above */
} mw_set_room;

/* Numbers of missing labels that their distribution has room for: beyond, Chernoff's bound is below exp(-60). */
static ptrdiff_t mw_missing_room(double rate) { return (ptrdiff_t)(rate + 20.0 + sqrt(400.0 + 120.0 * rate)) + 2; }

static int mw_set_allocate(mw_set_room *room, ptrdiff_t longest, double rate, double beta2)
{
    ptrdiff_t entries = longest + 8, numbers = longest + mw_missing_room(rate) + 8;
    room->p = mw_aligned((size_t)(4 * entries + 6 * numbers), &room->held);
    if (!room->p) return -1;
    room->heap = room->p + entries;
    room->ranked = room->heap + entries;
    room->expected = room->ranked + entries;
    room->missing = room->expected + entries;
    room->hits = room->missing + numbers;
    room->scaled = room->hits + numbers;
    room->share = room->scaled + numbers;
    room->count.mass = room->share + numbers;
    room->count.spare = room->count.mass + numbers;
    room->rate = -1.0;
    for (ptrdiff_t s = 0; s < numbers; s++) room->scaled[s] = beta2 * (double)s;
    return 0;
}

/* ------------------------------------------------------------------------------------------- reading and ranking */

static inline int64_t mw_set_label(const mw_label_entries *entries, ptrdiff_t begin, ptrdiff_t e)
{
    if (entries->index_size == 4) return ((const int32_t *)entries->indices)[begin + e];
    if (entries->index_size == 8) return ((const int64_t *)entries->indices)[begin + e];
    return e;
}

/* Probabilities of n entries. */
static inline void mw_read_entries(const mw_label_entries *entries, ptrdiff_t begin, ptrdiff_t n, double *restrict p)
{
    if (entries->value_size == 4) {
        const float *restrict values = (const float *)entries->values + begin;
        for (ptrdiff_t e = 0; e < n; e++) p[e] = fabs((double)values[e]);
    } else {
        const double *restrict values = (const double *)entries->values + begin;
        for (ptrdiff_t e = 0; e < n; e++) p[e] = fabs(values[e]);
    }
    if (entries->factor)
        for (ptrdiff_t e = 0; e < n; e++) p[e] *= entries->factor[mw_set_label(entries, begin, e)];
    for (ptrdiff_t e = 0; e < n; e++) p[e] = p[e] < 1.0 ? p[e] : 1.0;
}

/* Copy the positive ones among n probabilities; returns how many. */
static inline ptrdiff_t mw_set_positive(ptrdiff_t n, const double *p, double *out)
{
    ptrdiff_t m = 0;
    for (ptrdiff_t e = 0; e < n; e++) {
        double one = p[e];
        out[m] = one;
        m += one > 0.0;
    }
    return m;
}

/* Let heap[i] sink until none below it is larger. */
static inline void mw_sink(double *heap, ptrdiff_t m, ptrdiff_t i)
{
    double one = heap[i];
    for (ptrdiff_t below = 2 * i + 1; below < m; below = 2 * i + 1) {
        below += below + 1 < m && heap[below + 1] > heap[below];
        if (!(heap[below] > one)) break;
        heap[i] = heap[below];
        i = below;
    }
    heap[i] = one;
}

static inline void mw_heap(double *heap, ptrdiff_t m)
{
    for (ptrdiff_t i = m / 2 - 1; i >= 0; i--) mw_sink(heap, m, i);
}

/* Take out the largest of m numbers. */
static inline double mw_pop(double *heap, ptrdiff_t m)
{
    double top = heap[0];
    heap[0] = heap[m - 1];
    mw_sink(heap, m - 1, 0);
    return top;
}

/* --------------------------------------------------------------------------------------- numbers of true labels */

/* Find the distribution of the number of missing labels, in units of its mode first: no rate is too high for them. */
static inline void mw_put_missing(mw_set_room *room, double rate)
{
    if (rate == room->rate) return;
    ptrdiff_t mode = (ptrdiff_t)rate, first = mode, last = mode;
    double *mass = room->missing, total = 0.0;
    mass[mode] = 1.0;
    for (double step = 1.0;;) {
        step = step * rate / (double)(last + 1);
        if (step < MW_NEGLIGIBLE) break;
        mass[++last] = step;
    }
    for (double step = 1.0; first > 0;) {
        step = step * (double)first / rate;
        if (step < MW_NEGLIGIBLE) break;
        mass[--first] = step;
    }
    for (ptrdiff_t s = first; s <= last; s++) total += mass[s];
    for (ptrdiff_t s = first; s <= last; s++) mass[s] /= total;
    while (mass[first] < MW_NEGLIGIBLE) first++;
    room->missing_first = first;
    room->missing_last = last;
    room->rate = rate;
}

/* Begin to count with the missing labels. */
static inline void mw_count_missing(mw_set_room *room)
{
    mw_set_count *count = &room->count;
    count->first = room->missing_first;
    count->last = room->missing_last;
    memcpy(count->mass + count->first, room->missing + count->first,
           (size_t)(count->last - count->first + 1) * sizeof *count->mass);
}

/* Count one more label of probability p. */
static inline void mw_count_label(mw_set_count *count, double p)
{
    ptrdiff_t first = count->first, last = count->last;
    const double *restrict before = count->mass;
    double *restrict after = count->spare;
    double rest = 1.0 - p, grown = p * before[last];
    after[first] = rest * before[first];
    for (ptrdiff_t s = first + 1; s <= last; s++) after[s] = rest * before[s] + p * before[s - 1];
    if (grown >= MW_NEGLIGIBLE) after[++last] = grown;
    while (after[first] < MW_NEGLIGIBLE) first++;
    count->first = first;
    count->last = last;
    count->spare = count->mass;
    count->mass = after;
}

/* Add the probabilities that a label of probability p, one of those counted, is true as well: to hits[first..last+1].
 * The recursion goes where its errors do not grow. */
static inline void mw_add_joint(const mw_set_count *count, double p, double *restrict hits)
{
    const double *restrict mass = count->mass;
    double joint = 0.0;
    if (p > 0.5) {
        double odds_against = (1.0 - p) / p;
        ptrdiff_t least = count->first > 1 ? count->first : 1;
        for (ptrdiff_t s = count->last; s >= least; s--) {
            joint = mass[s] - odds_against * joint;
            hits[s] += joint;
        }
    } else {
        double odds = p / (1.0 - p);
        for (ptrdiff_t s = count->first; s <= count->last; s++) {
            joint = odds * (mass[s] - joint);
            hits[s + 1] += joint;
        }
    }
}

/* sum_s mass[s] / (scaled[s] + size), added in order. */
static inline double mw_mean_share(ptrdiff_t first, ptrdiff_t last, const double *restrict mass,
                                   const double *restrict scaled, double size, double *restrict share)
{
    double total = 0.0;
    for (ptrdiff_t s = first; s <= last; s++) share[s] = mass[s] / (scaled[s] + size);
    for (ptrdiff_t s = first; s <= last; s++) total += share[s];
    return total;
}

/* ---------------------------------------------------------------------------------------------- values of sizes */

/* Expected value of size 0. */
static inline double mw_none(const mw_set_room *room, const mw_set_metric *metric, ptrdiff_t m)
{
    if (!metric->jaccard && metric->beta2 == 0.0) return metric->zero_division;
    double none = room->missing_first > 0 ? 0.0 : room->missing[0] * metric->zero_division;
    for (ptrdiff_t e = 0; e < m; e++) none *= 1.0 - room->p[e];
    return none;
}

/* Bound from above of the values of size j and all larger ones, of which the first j labels have this sum. */
static inline double mw_upper(const mw_set_metric *metric, double total, double j)
{
    return metric->jaccard ? total / j : (1.0 + metric->beta2) * total / (metric->beta2 * total + j);
}

/* Rank labels until no larger size can be better; returns how many may be. */
static inline ptrdiff_t mw_largest(mw_set_room *room, const mw_set_metric *metric, ptrdiff_t m, ptrdiff_t low,
                                   ptrdiff_t most, double none)
{
    double mean = room->rate, least = low == 0 ? none : 0.0, total = 0.0, squares = 0.0;
    for (ptrdiff_t e = 0; e < m; e++) mean += room->p[e];
    for (ptrdiff_t j = 1; j <= most; j++) {
        double one = mw_pop(room->heap, m - j + 1), size = (double)j, lower;
        room->ranked[j - 1] = one;
        total += one;
        if (!(mw_upper(metric, total, size) > least)) return j - 1;
        squares += one * one;
        if (j < low) continue;
        if (metric->jaccard)
            lower = total / (size + (mean - total));
        else
            lower = (1.0 + metric->beta2) * total / (metric->beta2 * (1.0 + (mean - squares / total)) + size);
        least = lower > least ? lower : least;
    }
    return most;
}

/* Expected F-beta of sizes first, ..., last, which are at least 1; returns the largest that was worth computing. */
static inline ptrdiff_t mw_f_betas(mw_set_room *room, const mw_set_metric *metric, ptrdiff_t m, ptrdiff_t first,
                                   ptrdiff_t last, double best)
{
    ptrdiff_t reach = last < m ? last : m;
    mw_set_count *count = &room->count;
    double total = 0.0;
    mw_count_missing(room);
    for (ptrdiff_t e = 0; e < m; e++) mw_count_label(count, room->p[e]);
    for (ptrdiff_t s = count->first; s <= count->last + 1; s++) room->hits[s] = 0.0;
    for (ptrdiff_t j = 1; j <= reach; j++) {
        ptrdiff_t size = j == reach ? last : j;
        total += room->ranked[j - 1];
        if (first < last && !(mw_upper(metric, total, (double)j) > best)) return j - 1;
        mw_add_joint(count, room->ranked[j - 1], room->hits);
        if (size < first) continue;
        double value = (1.0 + metric->beta2) * mw_mean_share(count->first, count->last + 1, room->hits, room->scaled,
                                                             (double)size, room->share);
        room->expected[size - first] = value;
        best = value > best ? value : best;
    }
    return last;
}

/* Expected Jaccard of sizes first, ..., last, which are at least 1. */
static inline void mw_jaccards(mw_set_room *room, ptrdiff_t m, ptrdiff_t first, ptrdiff_t last)
{
    ptrdiff_t reach = last < m ? last : m, equal = 0;
    mw_set_count *count = &room->count;
    double lowest = room->ranked[reach - 1], total = 0.0;
    mw_count_missing(room);
    for (ptrdiff_t e = 0; e < m; e++) {
        equal += room->p[e] == lowest;
        if (room->p[e] < lowest) mw_count_label(count, room->p[e]);
    }
    for (ptrdiff_t j = 0; j < reach; j++) {
        equal -= room->ranked[j] == lowest;
        total += room->ranked[j];
        room->heap[j] = total; /* nothing is ranked any more */
    }
    for (; equal > 0; equal--) mw_count_label(count, lowest);
    for (ptrdiff_t j = reach; j >= 1; j--) {
        ptrdiff_t size = j == reach ? last : j;
        if (size < first) break;
        room->expected[size - first] = room->heap[j - 1] * mw_mean_share(count->first, count->last, count->mass,
                                                                         room->scaled, (double)size, room->share);
        mw_count_label(count, room->ranked[j - 1]);
    }
}

/* Best size of the row of n entries. */
MW_CLONES static int64_t mw_set_size(const mw_label_entries *entries, ptrdiff_t begin, ptrdiff_t n,
                                     const mw_set_metric *metric, double rate, ptrdiff_t low, ptrdiff_t high,
                                     mw_set_room *room)
{
    mw_read_entries(entries, begin, n, room->p);
    ptrdiff_t m = mw_set_positive(n, room->p, room->p);
    ptrdiff_t most = high >= 0 && high < m ? high : m, first = low > 0 ? low : 1, size = low, last;
    if (most <= low) return low;
    memcpy(room->heap, room->p, (size_t)m * sizeof *room->heap);
    mw_heap(room->heap, m);
    mw_put_missing(room, rate);
    double none = low == 0 ? mw_none(room, metric, m) : 0.0, best;
    last = mw_largest(room, metric, m, low, most, none);
    if (last <= low) return low;
    if (metric->jaccard)
        mw_jaccards(room, m, first, last);
    else
        last = mw_f_betas(room, metric, m, first, last, none);
    best = low == 0 ? none : room->expected[0];
    for (ptrdiff_t j = low + 1; j <= last; j++) {
        if (room->expected[j - first] > best * (1.0 + MW_SET_TIE)) {
            best = room->expected[j - first];
            size = j;
        }
    }
    return size;
}

/* Expected value of the row of n entries at a size. */
MW_CLONES static double mw_set_value(const mw_label_entries *entries, ptrdiff_t begin, ptrdiff_t n,
                                     const mw_set_metric *metric, double rate, ptrdiff_t size, mw_set_room *room)
{
    mw_read_entries(entries, begin, n, room->p);
    ptrdiff_t m = mw_set_positive(n, room->p, room->p);
    mw_put_missing(room, rate);
    if (size == 0) return mw_none(room, metric, m);
    if (m == 0) return 0.0;
    memcpy(room->heap, room->p, (size_t)m * sizeof *room->heap);
    mw_heap(room->heap, m);
    for (ptrdiff_t j = 0; j < size && j < m; j++) room->ranked[j] = mw_pop(room->heap, m - j);
    if (metric->jaccard)
        mw_jaccards(room, m, size, size);
    else
        mw_f_betas(room, metric, m, size, size, 0.0);
    return room->expected[0];
}

/* --------------------------------------------------------------------------------------------------- the labels */

static inline void mw_put_label(char *out, int size, ptrdiff_t at, int64_t label)
{
    if (size == 4)
        ((int32_t *)out)[at] = (int32_t)label;
    else
        ((int64_t *)out)[at] = label;
}

/* Write the most probable labels of the row of n entries, so many, ascending. */
MW_CLONES static void mw_set_labels(const mw_label_entries *entries, ptrdiff_t begin, ptrdiff_t n, ptrdiff_t size,
                                    double *restrict p, double *restrict heap, char *out, int out_size, ptrdiff_t at)
{
    if (size == 0) return;
    mw_read_entries(entries, begin, n, p);
    ptrdiff_t m = mw_set_positive(n, p, heap);
    if (size < m) {
        double lowest = 0.0;
        ptrdiff_t equal = 0;
        mw_heap(heap, m);
        for (ptrdiff_t j = 0; j < size; j++) {
            double one = mw_pop(heap, m - j);
            equal = one == lowest ? equal + 1 : 1;
            lowest = one;
        }
        for (ptrdiff_t e = 0; e < n; e++) {
            if (p[e] < lowest) continue;
            if (p[e] == lowest && equal-- <= 0) continue; /* the lower labels come first */
            mw_put_label(out, out_size, at++, mw_set_label(entries, begin, e));
        }
        return;
    }
    int64_t improbable = size - m, next = 0; /* labels of probability 0 that are wanted; the lowest that may be one */
    for (ptrdiff_t e = 0; e < n; e++) {
        if (!(p[e] > 0.0)) continue;
        int64_t label = mw_set_label(entries, begin, e);
        for (; improbable > 0 && next < label; next++, improbable--) mw_put_label(out, out_size, at++, next);
        mw_put_label(out, out_size, at++, label);
        next = label + 1;
    }
    for (; improbable > 0; next++, improbable--) mw_put_label(out, out_size, at++, next);
}

#endif
