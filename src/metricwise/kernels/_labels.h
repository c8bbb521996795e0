/* Rows that store few of very many labels: scores of a row, the best of them, and the passes made of these.
 *
 * A row is scored into a buffer first, where the labels' tables are read from all over memory, and then looked through
 * in the cache. The best k of a row are found without branches that depend on the scores: eight lanes keep their own
 * best k, the least of the best k of all lanes is the limit, and the entries that reach it are taken. Ties go to the
 * lower label, which is the earlier entry.
 */
#ifndef METRICWISE_LABELS_H
#define METRICWISE_LABELS_H

#include <float.h>

#include "_link.h"

#define MW_LANES 8
#define MW_MOST_IN_LANES 8 /* labels a row that lanes keep; of more, the limit is found by counting */
#define MW_TOGETHER 64 /* entries that are looked up together */
#define MW_FEW_SCORES 128 /* of which each is compared with each */
#define MW_LEAST_POSITIVE 0x0.0000000000001p-1022

typedef struct {
    const void *values; /* float, or double with wide_values; the sign is set where the label is true */
    const void *indices; /* int32_t, or int64_t with wide_indices; NULL: entry e of a row is label e */
    const int64_t *indptr;
    const int64_t *rows; /* that are read, in this order; NULL for all */
    const double *weight; /* NULL for ones */
    int64_t n_labels;
    int wide_values, wide_indices;
} mw_labels;

typedef struct {
    const double *scale, *offset;
    ptrdiff_t scale_step, offset_step; /* from one label to the next; 0 where all share */
    const int64_t *fill; /* labels by decreasing offset, for rows that do not store them */
    ptrdiff_t n_fill; /* 0: labels that are not stored take no part */
    int64_t low, high; /* high -1: no budget */
} mw_label_rule;

typedef struct {
    void *held;
    double *score; /* of the longest row and labels that it does not store, and room to fill up the lanes */
    int64_t *picked; /* positions of entries, -(label + 2) for labels that are not stored; by label */
    int64_t *before; /* those of the row before, in a pass that comes back to them */
    int64_t *others; /* labels that are not stored */
} mw_label_scratch;

static inline int64_t mw_label_row(const mw_labels *b, ptrdiff_t i) { return b->rows ? b->rows[i] : (int64_t)i; }

static inline double mw_value(const mw_labels *b, int64_t e)
{
    return b->wide_values ? ((const double *)b->values)[e] : (double)((const float *)b->values)[e];
}

static inline int64_t mw_label_at(const mw_labels *b, int64_t begin, int64_t e)
{
    if (!b->indices) return e - begin;
    return b->wide_indices ? ((const int64_t *)b->indices)[e] : (int64_t)((const int32_t *)b->indices)[e];
}

/* Room for rows of so many entries, and so many labels picked; -1 where there is none. */
static int mw_label_allocate(mw_label_scratch *s, size_t longest, size_t most)
{
    size_t room = (longest + most + MW_LANES) / MW_LANES * MW_LANES;
    s->score = mw_aligned(3 * room + most, &s->held);
    if (!s->score) return -1;
    s->picked = (int64_t *)(s->score + room);
    s->before = s->picked + room;
    s->others = s->before + room;
    return 0;
}

/* ------------------------------------------------------------------------------------------------ scores of a row */

#define MW_SCORE_LOOP(label, scale_step, offset_step)                            \
    for (ptrdiff_t e = 0; e < n; e++) {                                          \
        ptrdiff_t m = (ptrdiff_t)(label);                                        \
        out[e] = scale[m * (scale_step)] * fabs((double)v[e]) + offset[m * (offset_step)]; \
    }
/* Steps that the compiler knows: tables of pairs, columns, and one that all share. */
#define MW_SCORE_STEPS(label)                                                \
    if (scale_step == 2 && offset_step == 2) {                               \
        MW_SCORE_LOOP(label, 2, 2)                                           \
    } else if (scale_step == 1 && offset_step == 1) {                        \
        MW_SCORE_LOOP(label, 1, 1)                                           \
    } else {                                                                 \
        MW_SCORE_LOOP(label, scale_step, offset_step)                        \
    }
#define MW_DEFINE_SCORES(name, value, index)                                                                        \
    static void name(ptrdiff_t n, const value *restrict v, const index *restrict labels,                            \
                     const double *restrict scale, ptrdiff_t scale_step, const double *restrict offset,             \
                     ptrdiff_t offset_step, double *restrict out)                                                   \
    {                                                                                                               \
        MW_SCORE_STEPS(labels[e])                                                                                   \
    }
#define MW_DEFINE_DENSE_SCORES(name, value)                                                                         \
    MW_CLONES static void name(ptrdiff_t n, const value *restrict v, const double *restrict scale,                  \
                               ptrdiff_t scale_step, const double *restrict offset, ptrdiff_t offset_step,          \
                               double *restrict out)                                                                \
    {                                                                                                               \
        MW_SCORE_STEPS(e)                                                                                           \
    }
MW_DEFINE_SCORES(mw_scores_f32_i32, float, int32_t)
MW_DEFINE_SCORES(mw_scores_f32_i64, float, int64_t)
MW_DEFINE_SCORES(mw_scores_f64_i32, double, int32_t)
MW_DEFINE_SCORES(mw_scores_f64_i64, double, int64_t)
MW_DEFINE_DENSE_SCORES(mw_scores_f32, float)
MW_DEFINE_DENSE_SCORES(mw_scores_f64, double)

static void mw_label_scores(const mw_labels *b, const mw_label_rule *r, int64_t begin, ptrdiff_t n, double *out)
{
    const float *narrow = (const float *)b->values + (b->wide_values ? 0 : begin);
    const double *wide = (const double *)b->values + (b->wide_values ? begin : 0);
    const int32_t *few = (const int32_t *)b->indices;
    const int64_t *many = (const int64_t *)b->indices;
    if (!b->indices) {
        if (b->wide_values)
            mw_scores_f64(n, wide, r->scale, r->scale_step, r->offset, r->offset_step, out);
        else
            mw_scores_f32(n, narrow, r->scale, r->scale_step, r->offset, r->offset_step, out);
    } else if (b->wide_indices) {
        if (b->wide_values)
            mw_scores_f64_i64(n, wide, many + begin, r->scale, r->scale_step, r->offset, r->offset_step, out);
        else
            mw_scores_f32_i64(n, narrow, many + begin, r->scale, r->scale_step, r->offset, r->offset_step, out);
    } else {
        if (b->wide_values)
            mw_scores_f64_i32(n, wide, few + begin, r->scale, r->scale_step, r->offset, r->offset_step, out);
        else
            mw_scores_f32_i32(n, narrow, few + begin, r->scale, r->scale_step, r->offset, r->offset_step, out);
    }
}

/* --------------------------------------------------------------------------------------------- the best of a row */

#define MW_LARGER(a, b) ((a) > (b) ? (a) : (b))
#define MW_SMALLER(a, b) ((a) > (b) ? (b) : (a))

/* Vectors of four: the compiler does not keep lanes in registers by itself. MW_EXCHANGE leaves the larger of two numbers
 * in the first and the smaller in the second, lane by lane. */
#if defined(__GNUC__)
typedef double mw_four __attribute__((vector_size(32), may_alias));
typedef int64_t mw_four_bits __attribute__((vector_size(32)));
#define MW_FOUR(at) (*(const mw_four *)(at)) /* an address that whole vectors lie on, as all of the scores' do */
#define MW_FOUR_OF(x) ((mw_four){(x), (x), (x), (x)})
#define MW_FOUR_LANE(x, l) ((x)[l])
#define MW_EXCHANGE(a, b)                                                                           \
    do {                                                                                            \
        mw_four_bits mw_more = (mw_four_bits)((a) > (b));                                           \
        mw_four mw_less = (mw_four)(((mw_four_bits)(b) & mw_more) | ((mw_four_bits)(a) & ~mw_more)); \
        (a) = (mw_four)(((mw_four_bits)(a) & mw_more) | ((mw_four_bits)(b) & ~mw_more));            \
        (b) = mw_less;                                                                              \
    } while (0)
#else
typedef struct {
    double lane[4];
} mw_four;
#define MW_FOUR(at) (*(const mw_four *)(at))
#define MW_FOUR_OF(x) ((mw_four){{(x), (x), (x), (x)}})
#define MW_FOUR_LANE(x, l) ((x).lane[l])
#define MW_EXCHANGE(a, b)                                                       \
    do {                                                                        \
        for (int mw_l = 0; mw_l < 4; mw_l++) {                                  \
            double mw_less = MW_SMALLER((a).lane[mw_l], (b).lane[mw_l]);        \
            (a).lane[mw_l] = MW_LARGER((a).lane[mw_l], (b).lane[mw_l]);         \
            (b).lane[mw_l] = mw_less;                                           \
        }                                                                       \
    } while (0)
#endif

/* The k-th largest of n scores, a multiple of MW_LANES: each lane keeps its k best in order, what is better than the
 * first pushes the others back. Then lanes are put into one another; of two lists in order, the j-th best of the one
 * is no better than the first j of both. */
#define MW_DEFINE_LIMIT(k)                                                                   \
    MW_CLONES static double mw_limit_##k(ptrdiff_t n, const double *restrict score)          \
    {                                                                                        \
        mw_four best[k], others[k];                                                          \
        double last[k];                                                                      \
        for (int i = 0; i < k; i++) best[i] = others[i] = MW_FOUR_OF(-HUGE_VAL);             \
        for (ptrdiff_t e = 0; e < n; e += MW_LANES) {                                        \
            mw_four x = MW_FOUR(score + e), y = MW_FOUR(score + e + 4);                      \
            for (int i = 0; i < k; i++) {                                                    \
                MW_EXCHANGE(best[i], x);                                                     \
                MW_EXCHANGE(others[i], y);                                                   \
            }                                                                                \
        }                                                                                    \
        for (int j = 0; j < k; j++)                                                          \
            for (int i = j; i < k; i++) MW_EXCHANGE(best[i], others[j]);                     \
        for (int j = 0; j < k; j++) last[j] = MW_FOUR_LANE(best[j], 0);                      \
        for (int l = 1; l < 4; l++)                                                          \
            for (int j = 0; j < k; j++) {                                                    \
                double x = MW_FOUR_LANE(best[j], l);                                         \
                for (int i = j; i < k; i++) {                                                \
                    double less = MW_SMALLER(last[i], x);                                    \
                    last[i] = MW_LARGER(last[i], x);                                         \
                    x = less;                                                                \
                }                                                                            \
            }                                                                                \
        return last[(k) - 1];                                                                \
    }
MW_DEFINE_LIMIT(1)
MW_DEFINE_LIMIT(2)
MW_DEFINE_LIMIT(3)
MW_DEFINE_LIMIT(4)
MW_DEFINE_LIMIT(5)
MW_DEFINE_LIMIT(6)
MW_DEFINE_LIMIT(7)
MW_DEFINE_LIMIT(8)

/* Numbers in the order of doubles, and back; 0 and -0 are one. */
static inline int64_t mw_place(double x)
{
    int64_t bits = (int64_t)mw_bits(x);
    return bits < 0 ? INT64_MIN - bits : bits;
}

static inline double mw_at_place(int64_t place)
{
    return mw_double((uint64_t)(place < 0 ? INT64_MIN - place : place));
}

MW_CLONES static int64_t mw_reach(ptrdiff_t n, const double *restrict score, double limit)
{
    int64_t count = 0;
    for (ptrdiff_t e = 0; e < n; e++) count += score[e] >= limit;
    return count;
}

/* The k-th largest of few scores: the least of those that fewer than k are above. */
MW_CLONES static double mw_limit_of_few(ptrdiff_t n, ptrdiff_t k, const double *restrict score)
{
    int64_t above[MW_FEW_SCORES];
    double limit = HUGE_VAL;
    for (ptrdiff_t e = 0; e < n; e++) above[e] = 0;
    for (ptrdiff_t other = 0; other < n; other++) {
        double x = score[other];
        for (ptrdiff_t e = 0; e < n; e++) above[e] += x > score[e];
    }
    for (ptrdiff_t e = 0; e < n; e++) {
        double x = above[e] < k ? score[e] : HUGE_VAL;
        limit = MW_SMALLER(limit, x);
    }
    return limit;
}

/* The k-th largest of many: halves what lies between the least and the largest, and counts. */
static double mw_limit_of_many(ptrdiff_t n, ptrdiff_t k, const double *score)
{
    double least = score[0], most = score[0];
    for (ptrdiff_t e = 1; e < n; e++) {
        least = MW_SMALLER(least, score[e]);
        most = MW_LARGER(most, score[e]);
    }
    int64_t low = mw_place(least), high = mw_place(most) + 1;
    while (low + 1 < high) {
        int64_t middle = low + (int64_t)(((uint64_t)high - (uint64_t)low) / 2);
        double limit = mw_at_place(middle);
        int64_t reach = mw_reach(n, score, limit);
        if (reach == k) { /* what lies between the k-th and the next */
            for (ptrdiff_t e = 0; e < n; e++) most = score[e] >= limit && score[e] < most ? score[e] : most;
            return most;
        }
        if (reach > k)
            low = middle;
        else
            high = middle;
    }
    return mw_at_place(low);
}

/* The k-th largest score of a row, k >= 1; -inf where there are not so many. */
static double mw_limit(ptrdiff_t n, ptrdiff_t k, mw_label_scratch *s)
{
    ptrdiff_t whole = (n + MW_LANES - 1) / MW_LANES * MW_LANES;
    if (n < k) return -HUGE_VAL;
    if (k > MW_MOST_IN_LANES)
        return n <= MW_FEW_SCORES ? mw_limit_of_few(n, k, s->score) : mw_limit_of_many(n, k, s->score);
    for (ptrdiff_t e = n; e < whole; e++) s->score[e] = -HUGE_VAL;
    switch (k) {
    case 1: return mw_limit_1(whole, s->score);
    case 2: return mw_limit_2(whole, s->score);
    case 3: return mw_limit_3(whole, s->score);
    case 4: return mw_limit_4(whole, s->score);
    case 5: return mw_limit_5(whole, s->score);
    case 6: return mw_limit_6(whole, s->score);
    case 7: return mw_limit_7(whole, s->score);
    default: return mw_limit_8(whole, s->score);
    }
}

/* Positions of the entries that reach a limit. */
static ptrdiff_t mw_reaching(ptrdiff_t n, const double *restrict score, double limit, int64_t begin,
                             int64_t *restrict picked)
{
    ptrdiff_t q = 0;
    for (ptrdiff_t e = 0; e < n; e++) {
        picked[q] = begin + e;
        q += score[e] >= limit;
    }
    return q;
}

/* The best k entries, by label; of those that tie at the limit the first. */
static ptrdiff_t mw_best(ptrdiff_t n, ptrdiff_t k, double limit, int64_t begin, mw_label_scratch *s)
{
    ptrdiff_t q = mw_reaching(n, s->score, limit, begin, s->picked);
    for (ptrdiff_t at = q - 1; q > k; at--)
        if (s->score[s->picked[at] - begin] == limit) {
            memmove(s->picked + at, s->picked + at + 1, (size_t)(q - 1 - at) * sizeof *s->picked);
            q--;
        }
    return q;
}

static inline double mw_shift(const mw_label_rule *r, int64_t label) { return r->offset[label * r->offset_step]; }

static int mw_is_stored(const mw_labels *b, int64_t begin, ptrdiff_t n, int64_t label)
{
    int64_t at = begin;
    if (n == 0) return 0;
    while (n > 1) { /* without a branch: either half is as likely */
        ptrdiff_t half = n / 2;
        at += mw_label_at(b, begin, at + half) <= label ? half : 0;
        n -= half;
    }
    return mw_label_at(b, begin, at) == label;
}

/* Where the ranking of n scores is cut: behind the last positive one, within the budget. Those of the best k reach the
 * limit. */
static ptrdiff_t mw_cut(const mw_label_rule *r, ptrdiff_t n, mw_label_scratch *s, double *limit)
{
    ptrdiff_t k = (ptrdiff_t)r->high;
    *limit = MW_LEAST_POSITIVE;
    if (r->low < r->high) {
        ptrdiff_t positive = (ptrdiff_t)mw_reach(n, s->score, MW_LEAST_POSITIVE);
        if (positive < k && positive > r->low) return positive;
        if (positive < k) k = (ptrdiff_t)r->low;
    }
    if (k > 0) *limit = mw_limit(n, k, s);
    return k;
}

/* Write the labels that the row does not store and that may be predicted, as many as `high`, and their scores, the
 * offsets, behind those of the row; returns how many. */
static ptrdiff_t mw_find_others(const mw_labels *b, const mw_label_rule *r, int64_t begin, ptrdiff_t n, ptrdiff_t k,
                                double limit, mw_label_scratch *s)
{
    /* A positive score must reach the best `high` of the row, any other the best `low`; if these are not the best k,
     * the first are not all positive, or the second are. */
    double positive = k == r->high ? limit : -HUGE_VAL, other = k == r->low ? limit : HUGE_VAL;
    ptrdiff_t found = 0;
    for (ptrdiff_t i = 0; i < r->n_fill && found < r->high; i++) {
        int64_t label = r->fill[i];
        double score = mw_shift(r, label);
        if (score > 0.0 ? score < positive : score < other || found >= r->low) break;
        s->score[n + found] = score;
        s->others[found] = label;
        found += !mw_is_stored(b, begin, n, label);
    }
    return found;
}

/* What is predicted among all labels, where the best k of the row, those that reach the limit, would be alone. */
static ptrdiff_t mw_predict_with_others(const mw_labels *b, const mw_label_rule *r, int64_t begin, ptrdiff_t n,
                                        ptrdiff_t k, double limit, mw_label_scratch *s)
{
    ptrdiff_t found = mw_find_others(b, r, begin, n, k, limit, s), own, others = 0, at;
    double *scores = s->score + n;
    k = mw_cut(r, n + found, s, &limit);
    if (k == 0) return 0;
    own = mw_reaching(n, s->score, limit, begin, s->picked);
    for (ptrdiff_t i = 0; i < found; i++) { /* those that reach the limit, by label */
        int64_t label = s->others[i];
        double score = scores[i];
        if (score < limit) continue;
        for (at = others++; at > 0 && label < s->others[at - 1]; at--) {
            s->others[at] = s->others[at - 1];
            scores[at] = scores[at - 1];
        }
        s->others[at] = label;
        scores[at] = score;
    }
    while (own + others > k) { /* of those that tie at the limit, leave out that of the highest label */
        ptrdiff_t i = own - 1, j = others - 1;
        while (i >= 0 && s->score[s->picked[i] - begin] > limit) i--;
        while (j >= 0 && scores[j] > limit) j--;
        if (i < 0 && j < 0) break; /* of numbers that are none */
        if (j < 0 || (i >= 0 && mw_label_at(b, begin, s->picked[i]) > s->others[j])) {
            memmove(s->picked + i, s->picked + i + 1, (size_t)(own - 1 - i) * sizeof *s->picked);
            own--;
        } else {
            memmove(s->others + j, s->others + j + 1, (size_t)(others - 1 - j) * sizeof *s->others);
            memmove(scores + j, scores + j + 1, (size_t)(others - 1 - j) * sizeof *scores);
            others--;
        }
    }
    at = own + others;
    k = at;
    while (others > 0) { /* from the last on: there is room behind those of the row */
        int64_t label = s->others[others - 1];
        if (own > 0 && mw_label_at(b, begin, s->picked[own - 1]) > label) {
            s->picked[--at] = s->picked[own - 1];
            own--;
        } else {
            s->picked[--at] = -(label + 2);
            others--;
        }
    }
    return k;
}

/* What is predicted for a row: so many codes in s->picked, by label. */
static ptrdiff_t mw_predict(const mw_labels *b, const mw_label_rule *r, int64_t row, mw_label_scratch *s)
{
    int64_t begin = b->indptr[row];
    ptrdiff_t n = (ptrdiff_t)(b->indptr[row + 1] - begin), k;
    double limit;
    mw_label_scores(b, r, begin, n, s->score);
    if (r->high < 0) return mw_reaching(n, s->score, MW_LEAST_POSITIVE, begin, s->picked);
    k = mw_cut(r, n, s, &limit);
    if (r->n_fill) {
        double best = mw_shift(r, r->fill[0]);
        if (k == 0 ? best > 0.0 : n < k || best >= limit || (best > 0.0 && k < r->high))
            return mw_predict_with_others(b, r, begin, n, k, limit, s);
    }
    return k == 0 ? 0 : mw_best(n, k, limit, begin, s);
}

/* ------------------------------------------------------------------------------------------------------- passes */

/* The first entry of a row that is not as it should be, and why; 0 where all is well. */
#define MW_DEFINE_CHECK(name, value)                                                                                  \
    MW_CLONES static int name(ptrdiff_t n, const value *restrict v, double low, double high)                          \
    {                                                                                                                 \
        int wrong = 0;                                                                                                \
        for (ptrdiff_t e = 0; e < n; e++) {                                                                           \
            double x = (double)v[e];                                                                                  \
            wrong |= !(x >= low) | !(x <= high) | !(x - x == 0.0);                                                    \
        }                                                                                                             \
        return wrong;                                                                                                 \
    }
MW_DEFINE_CHECK(mw_check_f32, float)
MW_DEFINE_CHECK(mw_check_f64, double)

#define MW_DEFINE_ASCENDING(name, index)                                                     \
    MW_CLONES static int name(ptrdiff_t n, const index *restrict labels, int64_t n_labels)   \
    {                                                                                        \
        int wrong = n > 0 && (labels[0] < 0 || labels[n - 1] >= n_labels);                   \
        for (ptrdiff_t e = 1; e < n; e++) wrong |= labels[e] <= labels[e - 1];               \
        return wrong;                                                                        \
    }
MW_DEFINE_ASCENDING(mw_ascending_i32, int32_t)
MW_DEFINE_ASCENDING(mw_ascending_i64, int64_t)

static int mw_wrong_entry(const mw_labels *b, int64_t begin, int64_t e, double low, double high)
{
    double x = mw_value(b, e);
    if (b->indices) {
        int64_t label = mw_label_at(b, begin, e);
        if (label < 0 || label >= b->n_labels) return 1;
        if (e > begin && label <= mw_label_at(b, begin, e - 1)) return 2;
    }
    return x >= low && x <= high && x - x == 0.0 ? 0 : 3;
}

/* Returns the reason, and where. */
static int mw_label_check(const mw_labels *b, ptrdiff_t first, ptrdiff_t last, double low, double high, int64_t *where)
{
    for (ptrdiff_t row = first; row < last; row++) {
        int64_t begin = b->indptr[row];
        ptrdiff_t n = (ptrdiff_t)(b->indptr[row + 1] - begin);
        int wrong = b->wide_values ? mw_check_f64(n, (const double *)b->values + begin, low, high)
                                   : mw_check_f32(n, (const float *)b->values + begin, low, high);
        if (b->indices)
            wrong |= b->wide_indices ? mw_ascending_i64(n, (const int64_t *)b->indices + begin, b->n_labels)
                                     : mw_ascending_i32(n, (const int32_t *)b->indices + begin, b->n_labels);
        if (!wrong) continue;
        for (int64_t e = begin; e < begin + n; e++) {
            int reason = mw_wrong_entry(b, begin, e, low, high);
            if (reason) {
                *where = e;
                return reason;
            }
        }
    }
    *where = -1;
    return 0;
}

static inline void mw_mark(const mw_labels *b, int64_t e)
{
    if (b->wide_values)
        ((double *)b->values)[e] = -fabs(((double *)b->values)[e]);
    else
        ((float *)b->values)[e] = -fabsf(((float *)b->values)[e]);
}

/* Labels that are true, by row, are met with those that are stored. */
static void mw_label_mark(const mw_labels *b, ptrdiff_t first, ptrdiff_t last, const int64_t *true_begin,
                          const void *true_labels, int wide)
{
    for (ptrdiff_t row = first; row < last; row++) {
        int64_t e = b->indptr[row], begin = e, end = b->indptr[row + 1];
        for (int64_t at = true_begin[row]; at < true_begin[row + 1]; at++) {
            int64_t label = wide ? ((const int64_t *)true_labels)[at] : ((const int32_t *)true_labels)[at];
            if (!b->indices) {
                mw_mark(b, begin + label);
                continue;
            }
            while (e < end && mw_label_at(b, begin, e) < label) e++;
            if (e < end && mw_label_at(b, begin, e) == label) mw_mark(b, e);
        }
    }
}

/* sigmoid(t * logit(p) + bias) of up to MW_ROWS numbers; with floor 0 they are logits. */
MW_CLONES static void mw_label_link(double t, double bias, double floor, double *restrict x)
{
    double e[MW_ROWS];
    if (floor > 0.0) {
        /* Bounds are loops of their own: within the next loop they would become branches. */
        double top = 1.0 - floor;
        for (int b = 0; b < MW_ROWS; b++) x[b] = x[b] > floor ? x[b] : floor;
        for (int b = 0; b < MW_ROWS; b++) x[b] = x[b] < top ? x[b] : top;
        for (int b = 0; b < MW_ROWS; b++) x[b] = mw_log(x[b]) - mw_log(1.0 - x[b]);
    }
    for (int b = 0; b < MW_ROWS; b++) {
        x[b] = x[b] * t + bias;
        e[b] = -fabs(x[b]);
    }
    for (int b = 0; b < MW_ROWS; b++) e[b] = e[b] < MW_LEAST_EXPONENT ? MW_LEAST_EXPONENT : e[b];
    for (int b = 0; b < MW_ROWS; b++) {
        double odds = mw_exp(e[b]), r = 1.0 / (1.0 + odds), s = odds * r;
        x[b] = x[b] >= 0.0 ? r : s;
    }
}

#define MW_DEFINE_CALIBRATE(name, value)                                                                           \
    static void name(ptrdiff_t n, const value *restrict v, double t, double bias, double floor, value *restrict out) \
    {                                                                                                              \
        double x[MW_ROWS];                                                                                         \
        for (int b = 0; b < MW_ROWS; b++) x[b] = 0.5;                                                              \
        for (ptrdiff_t first = 0; first < n; first += MW_ROWS) {                                                   \
            int rows = n - first < MW_ROWS ? (int)(n - first) : MW_ROWS;                                           \
            const value *restrict from = v + first;                                                                \
            value *restrict to = out + first;                                                                      \
            if (floor > 0.0)                                                                                       \
                for (int b = 0; b < rows; b++) x[b] = fabs((double)from[b]);                                       \
            else                                                                                                   \
                for (int b = 0; b < rows; b++) x[b] = (double)from[b];                                             \
            mw_label_link(t, bias, floor, x);                                                                      \
            if (floor > 0.0)                                                                                       \
                for (int b = 0; b < rows; b++) to[b] = (value)copysign(from[b] == 0 ? 0.0 : x[b], (double)from[b]); \
            else                                                                                                   \
                for (int b = 0; b < rows; b++) to[b] = (value)x[b];                                                \
        }                                                                                                          \
    }
MW_DEFINE_CALIBRATE(mw_calibrate_f32, float)
MW_DEFINE_CALIBRATE(mw_calibrate_f64, double)

/* Rows first..last of those that are read, in each pass from here on. */

#define MW_EACH_ENTRY(value, index, label, body)                       \
    for (ptrdiff_t i = first; i < last; i++) {                         \
        int64_t row = mw_label_row(b, i);                              \
        int64_t begin = b->indptr[row], end = b->indptr[row + 1];      \
        double w = b->weight ? b->weight[row] : 1.0;                   \
        const value *restrict v = (const value *)b->values;            \
        const index *restrict labels = (const index *)b->indices;      \
        (void)labels;                                                  \
        for (int64_t e = begin; e < end; e++) {                        \
            double x = (double)v[e];                                   \
            int64_t m = (int64_t)(label);                              \
            body                                                       \
        }                                                              \
    }
/* One loop for each of the types that entries have. */
#define MW_EACH_TYPE(body)                                             \
    if (!b->indices && b->wide_values) {                               \
        MW_EACH_ENTRY(double, int32_t, e - begin, body)                \
    } else if (!b->indices) {                                          \
        MW_EACH_ENTRY(float, int32_t, e - begin, body)                 \
    } else if (b->wide_values && b->wide_indices) {                    \
        MW_EACH_ENTRY(double, int64_t, labels[e], body)                \
    } else if (b->wide_values) {                                       \
        MW_EACH_ENTRY(double, int32_t, labels[e], body)                \
    } else if (b->wide_indices) {                                      \
        MW_EACH_ENTRY(float, int64_t, labels[e], body)                 \
    } else {                                                           \
        MW_EACH_ENTRY(float, int32_t, labels[e], body)                 \
    }

static void mw_label_sums(const mw_labels *b, ptrdiff_t first, ptrdiff_t last, double *restrict sums)
{
    MW_EACH_TYPE({
        sums[2 * m] += w * fabs(x);
        sums[2 * m + 1] += signbit(x) ? w : 0.0;
    })
}

static inline int64_t mw_label_of(const mw_labels *b, int64_t begin, int64_t code)
{
    return code < 0 ? -code - 2 : mw_label_at(b, begin, code);
}

static inline void mw_count_picked(const mw_labels *b, int64_t row, ptrdiff_t n, const int64_t *restrict picked,
                                   double *restrict sums)
{
    if (n == 0) return; /* there may be no row */
    double w = b->weight ? b->weight[row] : 1.0;
    for (ptrdiff_t q = 0; q < n; q++) {
        int64_t e = picked[q];
        double *sum = sums + 3 * mw_label_of(b, b->indptr[row], e);
        double x = e < 0 ? 0.0 : mw_value(b, e);
        sum[0] += w * fabs(x);
        sum[1] += signbit(x) ? w : 0.0;
        sum[2] += w;
    }
}

/* Sums of labels lie all over memory: they are fetched when a row is decided, and added to when the next one is. */
static void mw_label_count(const mw_labels *b, const mw_label_rule *r, ptrdiff_t first, ptrdiff_t last,
                           mw_label_scratch *s, double *restrict sums)
{
    int64_t row_before = 0;
    ptrdiff_t n_before = 0;
    for (ptrdiff_t i = first; i < last; i++) {
        int64_t row = mw_label_row(b, i), begin = b->indptr[row];
        ptrdiff_t n = mw_predict(b, r, row, s);
        int64_t *picked = s->picked;
        for (ptrdiff_t q = 0; q < n; q++) MW_PREFETCH(sums + 3 * mw_label_of(b, begin, picked[q]));
        mw_count_picked(b, row_before, n_before, s->before, sums);
        s->picked = s->before;
        s->before = picked;
        row_before = row;
        n_before = n;
    }
    mw_count_picked(b, row_before, n_before, s->before, sums);
}

/* ----------------------------------------------------------------------------------------------- row after row */

enum { MW_COVERAGE, MW_GAIN, MW_DAMPED_GAIN, MW_SLOPE, MW_DAMPED_SLOPE };

#define MW_CERTAIN (1.0 - 1e-12) /* the largest probability of a hit: the logarithm of a miss is finite */
#define MW_RESIDUE 1e-9 /* what is left of sums by rounding, per unit of the weight taken out */
#define MW_LEAST_DENOMINATOR 1e-12

typedef struct {
    int kind;
    double numerator[4], denominator[4]; /* of hits, true, predicted and all rows */
    double total;
    const double *factor, *true_rows, *weight;
    double *tp, *predicted;
    double *table; /* pairs of scale and offset */
} mw_label_state;

/* (1 - exp(-x)) / x for x >= 0. */
static inline double mw_damping(double x)
{
    if (x < 1e-5) return 1.0 - x * (0.5 - x / 6.0);
    return (1.0 - mw_exp(x > -MW_LEAST_EXPONENT ? MW_LEAST_EXPONENT : -x)) / x;
}

/* Its derivative. */
static inline double mw_damping_slope(double x)
{
    if (x < 1e-2)
        return -0.5 + x * (1.0 / 3.0 - x * (1.0 / 8.0 - x * (1.0 / 30.0 - x * (1.0 / 144.0 - x / 840.0))));
    return (mw_exp(x > -MW_LEAST_EXPONENT ? MW_LEAST_EXPONENT : -x) * (1.0 + x) - 1.0) / (x * x);
}

/* Scale and offset of a label: what one more row that it is predicted for adds. */
static inline void mw_refresh(const mw_label_state *s, int64_t m)
{
    double factor = s->factor[m], weight = s->weight[m], tp = s->tp[m], predicted = s->predicted[m];
    double *to = s->table + 2 * m;
    const double *n = s->numerator, *d = s->denominator;
    double den = d[0] * tp + d[1] * s->true_rows[m] + d[2] * predicted + d[3] * s->total;
    double before, after, x, steep, value;
    switch (s->kind) {
    case MW_COVERAGE:
        x = tp > 0.0 ? 0.0 : tp < MW_LEAST_EXPONENT ? MW_LEAST_EXPONENT : tp;
        to[0] = weight * factor * mw_exp(x);
        to[1] = 0.0;
        return;
    case MW_GAIN:
    case MW_DAMPED_GAIN:
        before = den / n[0];
        after = (den + d[2]) / n[0];
        if (s->kind == MW_DAMPED_GAIN) {
            before = mw_damping(MW_LARGER(before, 0.0));
            after = mw_damping(MW_LARGER(after, 0.0));
        } else {
            before = before > 0.0 ? 1.0 / before : 0.0;
            after = after > 0.0 ? 1.0 / after : 0.0;
        }
        to[0] = weight * factor * after;
        to[1] = weight * tp * (after - before);
        return;
    case MW_DAMPED_SLOPE:
        x = MW_LARGER(den / n[0], 0.0);
        steep = tp * mw_damping_slope(x) / n[0];
        to[0] = weight * factor * (mw_damping(x) + steep * d[0]);
        to[1] = weight * steep * d[2];
        return;
    default:
        if (den <= 0.0) {
            den += d[2];
            to[0] = weight * factor * n[0] / MW_LARGER(den, MW_LEAST_DENOMINATOR);
            to[1] = 0.0;
            return;
        }
        value = (n[0] * tp + n[1] * s->true_rows[m] + n[2] * predicted + n[3] * s->total) / den;
        to[0] = weight * factor * (n[0] - value * d[0]) / den;
        to[1] = weight * (n[2] - value * d[2]) / den;
    }
}

/* Count a label in for a row of this weight, or out for minus the weight. */
static inline void mw_move(const mw_label_state *s, int64_t m, double eta, double w)
{
    double hit = s->factor[m] * eta;
    if (s->kind == MW_COVERAGE) hit = mw_log(1.0 - (hit < MW_CERTAIN ? hit : MW_CERTAIN));
    s->tp[m] += w * hit;
    s->predicted[m] += w;
    if (w < 0.0 && fabs(s->predicted[m]) <= -MW_RESIDUE * w) { /* nothing is left but rounding */
        s->predicted[m] = 0.0;
        if (fabs(s->tp[m]) <= -MW_RESIDUE * w) s->tp[m] = 0.0;
    }
    mw_refresh(s, m);
}

static inline void mw_move_code(const mw_label_state *s, const mw_labels *b, int64_t begin, int64_t code, double w)
{
    if (code >= 0)
        mw_move(s, mw_label_at(b, begin, code), fabs(mw_value(b, code)), w);
    else if (code < -1)
        mw_move(s, -code - 2, 0.0, w);
}

/* The state of labels lies all over memory: it is fetched two rows ahead. */
static inline void mw_fetch_state(const mw_label_state *s, const mw_labels *b, int64_t row, int64_t high,
                                  const int64_t *chosen)
{
    for (int64_t q = 0; q < high && chosen[q] != -1; q++) {
        int64_t m = mw_label_of(b, b->indptr[row], chosen[q]);
        MW_PREFETCH(s->factor + m);
        MW_PREFETCH(s->true_rows + m);
        MW_PREFETCH(s->weight + m);
        MW_PREFETCH(s->tp + m);
        MW_PREFETCH(s->predicted + m);
        MW_PREFETCH(s->table + 2 * m);
    }
}

static void mw_label_ascend(const mw_labels *b, const mw_label_rule *r, ptrdiff_t n_rows, const mw_label_state *state,
                            mw_label_scratch *s, int64_t *chosen)
{
    for (ptrdiff_t i = 0; i < n_rows; i++) {
        int64_t row = mw_label_row(b, i), begin = b->indptr[row];
        int64_t *own = chosen + i * r->high;
        double w = b->weight ? b->weight[row] : 1.0;
        if (i + 2 < n_rows) mw_fetch_state(state, b, mw_label_row(b, i + 2), r->high, own + 2 * r->high);
        for (ptrdiff_t q = 0; q < r->high; q++) mw_move_code(state, b, begin, own[q], -w);
        ptrdiff_t n = mw_predict(b, r, row, s);
        for (ptrdiff_t q = 0; q < n; q++) {
            own[q] = s->picked[q];
            mw_move_code(state, b, begin, own[q], w);
        }
        for (ptrdiff_t q = n; q < r->high; q++) own[q] = -1;
    }
}

/* -------------------------------------------------------------------------------------------------- thresholds */

/* How many labels are true, by label. */
static void mw_label_true(const mw_labels *b, ptrdiff_t first, ptrdiff_t last, int64_t *restrict counts)
{
    MW_EACH_TYPE({ counts[m] += signbit(x) ? 1 : 0; (void)w; })
}

/* Write the probabilities of true labels, each behind those of its label. */
static void mw_label_thresholds(const mw_labels *b, ptrdiff_t first, ptrdiff_t last, int64_t *restrict next,
                                double *restrict value)
{
    MW_EACH_TYPE({
        if (signbit(x)) value[next[m]++] = fabs(x);
        (void)w;
    })
}

static int mw_descending(const void *one, const void *other)
{
    double a = *(const double *)one, b = *(const double *)other;
    return (a < b) - (a > b);
}

/* Thresholds of a label, and bins of equal numbers of doubles between the least and the largest of them: of long lists,
 * few thresholds share a bin. */
typedef struct {
    double least, most;
    int64_t begin;
    int32_t n, shift; /* of bits, which are in the order of the numbers */
} mw_thresholds;

/* Sort the thresholds of some labels, and write the first of them that lies in each bin or below, at most as many as
 * there are thresholds, where these begin. */
static void mw_sort_thresholds(int64_t first, int64_t last, const int64_t *label_ptr, double *value, int32_t *bins,
                               mw_thresholds *thresholds)
{
    for (int64_t m = first; m < last; m++) {
        mw_thresholds *t = thresholds + m;
        double *own = value + label_ptr[m];
        int64_t n = label_ptr[m + 1] - label_ptr[m];
        t->begin = label_ptr[m];
        t->n = (int32_t)n;
        t->shift = 63;
        t->least = t->most = 0.0;
        if (n == 0) continue;
        if (n > 16) {
            qsort(own, (size_t)n, sizeof *own, mw_descending);
        } else {
            for (int64_t i = 1; i < n; i++) {
                double x = own[i];
                int64_t at = i;
                for (; at > 0 && x > own[at - 1]; at--) own[at] = own[at - 1];
                own[at] = x;
            }
        }
        t->least = own[n - 1];
        t->most = own[0];
        uint64_t lowest = mw_bits(t->least), bin = mw_bits(t->most) - lowest;
        if (n > 8)
            for (t->shift = 0; bin >> t->shift > (uint64_t)n / 2; t->shift++) {}
        int64_t at = 0;
        for (bin >>= t->shift;; bin--) {
            while ((mw_bits(own[at]) - lowest) >> t->shift > bin) at++;
            bins[t->begin + (int64_t)bin] = (int32_t)at;
            if (bin == 0) break;
        }
    }
}

/* Add each entry to the first threshold of its label that it reaches: pairs of the weight of true entries and of all.
 * What is read lies all over memory, each behind an address that is read before: some entries go step by step together,
 * and what the next step reads is fetched. */
static void mw_label_sweep(const mw_labels *b, ptrdiff_t first, ptrdiff_t last,
                           const mw_thresholds *restrict thresholds, const double *restrict value,
                           const int32_t *restrict bins, double *restrict sums)
{
    const mw_thresholds *own[MW_TOGETHER];
    double x[MW_TOGETHER];
    int64_t at[MW_TOGETHER], left[MW_TOGETHER];
    for (ptrdiff_t i = first; i < last; i++) {
        int64_t row = mw_label_row(b, i), begin = b->indptr[row], end = b->indptr[row + 1];
        double w = b->weight ? b->weight[row] : 1.0;
        for (int64_t from = begin; from < end; from += MW_TOGETHER) {
            int64_t to = end - from < MW_TOGETHER ? end : from + MW_TOGETHER;
            int some = 0;
            for (int64_t e = from; e < to; e++) MW_PREFETCH(thresholds + mw_label_at(b, begin, e));
            for (int64_t e = from; e < to; e++) { /* entries below all thresholds are left out */
                own[some] = thresholds + mw_label_at(b, begin, e);
                x[some] = mw_value(b, e);
                some += (own[some]->n > 0) & (fabs(x[some]) >= own[some]->least);
            }
            for (int q = 0; q < some; q++) {
                double eta = fabs(x[q]) < own[q]->most ? fabs(x[q]) : own[q]->most;
                at[q] = (int64_t)((mw_bits(eta) - mw_bits(own[q]->least)) >> own[q]->shift);
                MW_PREFETCH(bins + own[q]->begin + at[q]);
            }
            for (int q = 0; q < some; q++) {
                const int32_t *bin = bins + own[q]->begin + at[q];
                int64_t next = at[q] ? bin[-1] : own[q]->n;
                at[q] = own[q]->begin + bin[0];
                left[q] = next - bin[0];
                MW_PREFETCH(value + at[q]);
                MW_PREFETCH(sums + 2 * at[q]);
            }
            for (int q = 0; q < some; q++) {
                while (left[q] > 0) { /* without a branch: either half is as likely */
                    int64_t half = (left[q] + 1) / 2;
                    at[q] += value[at[q] + half - 1] > fabs(x[q]) ? half : 0;
                    left[q] -= half;
                }
                sums[2 * at[q]] += signbit(x[q]) ? w : 0.0;
                sums[2 * at[q] + 1] += w;
            }
        }
    }
}

#endif
