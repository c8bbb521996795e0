/* The log-partition function of the compiled passes: what a tile of rows adds to its value, gradient and Hessian.
 *
 * A tile holds the logits z of the classes but class 0, relative to it, z[j * MW_STEP + b] for class j + 1 of row b;
 * n is a multiple of eight, and rows behind the last one weigh 0. Sums are kept in eight lanes that are added in order:
 * they are the same whatever the processor adds at once. The compiler does not find such lanes by itself, so they are
 * written as vectors where it has them.
 */
#ifndef METRICWISE_PARTITION_H
#define METRICWISE_PARTITION_H

#include "_link.h"

#if defined(__GNUC__)
typedef double mw_eight __attribute__((vector_size(64), may_alias));
#define MW_EIGHT(at) (*(const mw_eight *)(at)) /* an address that whole vectors lie on, as all of a tile's do */
#define MW_LANE(x, l) ((x)[l])
#define MW_ADD(sum, x) ((sum) += (x))
#define MW_ADD_PRODUCT(sum, x, y) ((sum) += (x) * (y))
#else
typedef struct {
    double lane[8];
} mw_eight;
#define MW_EIGHT(at) (*(const mw_eight *)(at))
#define MW_LANE(x, l) ((x).lane[l])
#define MW_ADD(sum, x)                                                              \
    do {                                                                            \
        for (int mw_l = 0; mw_l < 8; mw_l++) (sum).lane[mw_l] += (x).lane[mw_l];    \
    } while (0)
#define MW_ADD_PRODUCT(sum, x, y)                                                                 \
    do {                                                                                          \
        for (int mw_l = 0; mw_l < 8; mw_l++) (sum).lane[mw_l] += (x).lane[mw_l] * (y).lane[mw_l]; \
    } while (0)
#endif
#define MW_ADD_LANES(to, x)                                              \
    do {                                                                 \
        double mw_sum = 0.0;                                             \
        for (int mw_l = 0; mw_l < 8; mw_l++) mw_sum += MW_LANE(x, mw_l); \
        (to) += mw_sum;                                                  \
    } while (0)

/* log(eta_j / eta_0) of a tile of probabilities, or of logits with floor 0; classes lie `step` apart in `out`. */
MW_CLONES static void mw_logits(int n, int k, double floor, double *restrict tile, double *restrict out, ptrdiff_t step)
{
    for (int j = 0; j < k; j++) {
        double *restrict eta = tile + (ptrdiff_t)j * MW_STEP;
        if (floor > 0.0) {
            for (int b = 0; b < MW_ROWS; b++) eta[b] = eta[b] > floor ? eta[b] : floor;
            for (int b = 0; b < MW_ROWS; b++) eta[b] = mw_log(eta[b]);
        }
        if (j > 0)
            for (int b = 0; b < n; b++) out[(j - 1) * step + b] = eta[b] - tile[b];
    }
}

/* Go on from `row` until a tile is full: rows that are taken and weigh something, and their weights; returns how many. */
static int mw_weighing(ptrdiff_t *row, ptrdiff_t end, const double *restrict weight, const uint8_t *restrict taken,
                       int32_t *restrict at, double *restrict w)
{
    int n = 0;
    ptrdiff_t r = *row;
    for (; r < end && n < MW_ROWS; r++) {
        at[n] = (int32_t)r;
        w[n] = weight[r];
        n += (weight[r] > 0.0) & (taken ? taken[r] != 0 : 1);
    }
    *row = r;
    return n;
}

/* Rows `at` of one class; neighbours are copied as they lie. */
MW_CLONES static void mw_gather(int n, const double *restrict from, const int32_t *restrict at, double *restrict out)
{
    if (at[n - 1] - at[0] == n - 1) {
        memcpy(out, from + at[0], (size_t)n * sizeof *out);
        return;
    }
    for (int b = 0; b < n; b++) out[b] = from[at[b]];
}

/* sum_b x y_j for four rows of a tile, which share the reads of x. */
MW_CLONES static void mw_four_products(int n, const double *restrict x, const double *restrict y, double *restrict out)
{
    mw_eight s0 = {0}, s1 = {0}, s2 = {0}, s3 = {0};
    for (int b = 0; b < n; b += 8) {
        mw_eight a = MW_EIGHT(x + b);
        MW_ADD_PRODUCT(s0, a, MW_EIGHT(y + b));
        MW_ADD_PRODUCT(s1, a, MW_EIGHT(y + MW_STEP + b));
        MW_ADD_PRODUCT(s2, a, MW_EIGHT(y + 2 * MW_STEP + b));
        MW_ADD_PRODUCT(s3, a, MW_EIGHT(y + 3 * MW_STEP + b));
    }
    MW_ADD_LANES(out[0], s0);
    MW_ADD_LANES(out[1], s1);
    MW_ADD_LANES(out[2], s2);
    MW_ADD_LANES(out[3], s3);
}

/* sum_b x y and sum_b x. */
MW_CLONES static void mw_product_and_sum(int n, const double *restrict x, const double *restrict y,
                                         double *restrict product, double *restrict sum)
{
    mw_eight s0 = {0}, s1 = {0};
    for (int b = 0; b < n; b += 8) {
        mw_eight a = MW_EIGHT(x + b);
        MW_ADD_PRODUCT(s0, a, MW_EIGHT(y + b));
        MW_ADD(s1, a);
    }
    MW_ADD_LANES(*product, s0);
    MW_ADD_LANES(*sum, s1);
}

/* Probabilities p = softmax(t z + bias) of the k classes behind class 0, 0 for those that are not shown (class 0 comes
 * first in `shown`); the logarithm of what they were divided by, and the mean of z. */
MW_CLONES static void mw_softmax(int n, int k, const double *restrict z, double t, const double *restrict bias,
                                 const uint8_t *restrict shown, double *restrict p, double *restrict norm,
                                 double *restrict mean)
{
    double top[MW_ROWS], total[MW_ROWS];
    double start = shown[0] ? 0.0 : -HUGE_VAL;
    for (int b = 0; b < n; b++) top[b] = start;
    for (int j = 0; j < k; j++) {
        if (!shown[j + 1]) continue;
        const double *restrict x = z + (ptrdiff_t)j * MW_STEP;
        double *restrict y = p + (ptrdiff_t)j * MW_STEP;
        double c = bias[j];
        for (int b = 0; b < n; b++) {
            double logit = x[b] * t + c;
            y[b] = logit;
            top[b] = logit > top[b] ? logit : top[b];
        }
    }
    for (int b = 0; b < n; b++) {
        total[b] = 0.0 - top[b];
        mean[b] = 0.0;
    }
    if (shown[0]) {
        /* Bounds are loops of their own, here and below: within the next loop they would become branches. */
        for (int b = 0; b < n; b++) total[b] = total[b] < MW_LEAST_EXPONENT ? MW_LEAST_EXPONENT : total[b];
        for (int b = 0; b < n; b++) total[b] = mw_exp(total[b]);
    } else {
        for (int b = 0; b < n; b++) total[b] = 0.0;
    }
    for (int j = 0; j < k; j++) {
        const double *restrict x = z + (ptrdiff_t)j * MW_STEP;
        double *restrict y = p + (ptrdiff_t)j * MW_STEP;
        if (!shown[j + 1]) {
            for (int b = 0; b < n; b++) y[b] = 0.0;
            continue;
        }
        for (int b = 0; b < n; b++) {
            double below = y[b] - top[b];
            y[b] = below < MW_LEAST_EXPONENT ? MW_LEAST_EXPONENT : below;
        }
        for (int b = 0; b < n; b++) {
            double e = mw_exp(y[b]);
            y[b] = e;
            total[b] += e;
            mean[b] += e * x[b];
        }
    }
    for (int b = 0; b < n; b++) norm[b] = top[b] + mw_log(total[b]);
    for (int b = 0; b < n; b++) {
        total[b] = 1.0 / total[b];
        mean[b] *= total[b];
    }
    for (int j = 0; j < k; j++) {
        double *restrict y = p + (ptrdiff_t)j * MW_STEP;
        for (int b = 0; b < n; b++) y[b] *= total[b];
    }
}

/* The same of two classes, which need one exponential. */
MW_CLONES static void mw_logistic(int n, const double *restrict z, double t, double bias, double *restrict p,
                                  double *restrict norm, double *restrict mean)
{
    double x[MW_ROWS], e[MW_ROWS];
    for (int b = 0; b < n; b++) {
        x[b] = z[b] * t + bias;
        double below = x[b] > 0.0 ? 0.0 - x[b] : x[b];
        e[b] = below < MW_LEAST_EXPONENT ? MW_LEAST_EXPONENT : below;
    }
    for (int b = 0; b < n; b++) e[b] = mw_exp(e[b]);
    for (int b = 0; b < n; b++) norm[b] = (x[b] > 0.0 ? x[b] : 0.0) + mw_log(1.0 + e[b]);
    for (int b = 0; b < n; b++) {
        p[b] = (x[b] > 0.0 ? 1.0 : e[b]) / (1.0 + e[b]);
        mean[b] = p[b] * z[b];
    }
}

/* w p and w p (z - mean) of one class. */
MW_CLONES static void mw_shares(int n, const double *restrict z, const double *restrict w, const double *restrict p,
                                const double *restrict mean, double *restrict share, double *restrict away)
{
    for (int b = 0; b < n; b++) {
        share[b] = w[b] * p[b];
        away[b] = share[b] * (z[b] - mean[b]);
    }
}

#endif
