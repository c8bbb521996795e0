/* The link of the compiled row passes: probabilities of a tile recalibrated in place, exp and log included.
 *
 * The C library's exp and log differ from one to the next in the last bit, and from NumPy's: these are ours, after
 * fdlibm's formulas (each within one unit in the last place), of exactly rounded operations in one order, the same as
 * in `_link.py`. So the twins see the same bits. Nothing branches: the compiler does eight rows at once.
 */
#ifndef METRICWISE_LINK_H
#define METRICWISE_LINK_H

#include <string.h>

#include "_loops.h"

#define MW_LN2_HIGH 0x1.62e42feep-1 /* times an exponent this is exact */
#define MW_LN2_LOW 0x1.a39ef35793c76p-33
#define MW_LOG2_E 0x1.71547652b82fep+0
#define MW_TO_WHOLE 0x1.8p52 /* added and taken away again, it rounds to a whole number */
#define MW_LEAST_EXPONENT (-746.0) /* exp is 0 from here on down */

static inline uint64_t mw_bits(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static inline double mw_double(uint64_t bits)
{
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* Logarithm of 5e-324 <= x <= 2^900: x = 2^e * m with m between sqrt(1/2) and sqrt(2). */
static inline double mw_log(double x)
{
    const uint64_t low = UINT64_C(0x3fe6a09e667f3bcd); /* sqrt(1/2) */
    uint64_t bits = mw_bits(x * 0x1p54) + (UINT64_C(0x3ff0000000000000) - low); /* scaled up, no number is subnormal */
    double e = mw_double((bits >> 52) | UINT64_C(0x4330000000000000)) - (0x1p52 + 1077.0);
    double f = mw_double((bits & UINT64_C(0x000fffffffffffff)) + low) - 1.0;
    double half = 0.5 * f * f;
    double s = f / (2.0 + f);
    double z = s * s;
    double w = z * z;
    double even = w * (3.999999999940941908e-01 + w * (2.222219843214978396e-01 + w * 1.531383769920937332e-01));
    double odd = z * (6.666666666666735130e-01 +
                      w * (2.857142874366239149e-01 + w * (1.818357216161805012e-01 + w * 1.479819860511658591e-01)));
    return s * (half + (odd + even)) + e * MW_LN2_LOW - half + f + e * MW_LN2_HIGH;
}

/* Exponential of MW_LEAST_EXPONENT <= x <= 0: x = e * ln 2 + r with r between -ln 2 / 2 and ln 2 / 2. */
static inline double mw_exp(double x)
{
    double shifted = x * MW_LOG2_E + MW_TO_WHOLE;
    double e = shifted - MW_TO_WHOLE;
    double high = x - e * MW_LN2_HIGH;
    double low = e * MW_LN2_LOW;
    double r = high - low;
    double z = r * r;
    double c =
        r - z * (1.66666666666666019037e-01 +
                 z * (-2.77777777770155933842e-03 +
                      z * (6.61375632143793436117e-05 + z * (-1.65339022054652515390e-06 + z * 4.13813679705723846039e-08))));
    double y = 1.0 - ((low - (r * c) / (2.0 - c)) - high);
    uint64_t both = (mw_bits(shifted) + 2046) & 0xfff; /* 2^e as two factors, for it may be no normal number */
    uint64_t one = both >> 1;
    return y * mw_double(one << 52) * mw_double((both - one) << 52);
}

/* Probabilities of two classes from their logits, with one exponential: that of the larger logit less itself is 1. */
static inline void mw_softmax_of_two(double *restrict first, double *restrict second)
{
    double lead[MW_ROWS], less[MW_ROWS];
    for (int b = 0; b < MW_ROWS; b++) {
        lead[b] = first[b] - second[b];
        less[b] = lead[b] > 0.0 ? 0.0 - lead[b] : lead[b];
    }
    for (int b = 0; b < MW_ROWS; b++) less[b] = less[b] < MW_LEAST_EXPONENT ? MW_LEAST_EXPONENT : less[b];
    for (int b = 0; b < MW_ROWS; b++) less[b] = mw_exp(less[b]);
    for (int b = 0; b < MW_ROWS; b++) {
        double larger = 1.0 / (1.0 + less[b]);
        double smaller = less[b] * larger;
        first[b] = lead[b] > 0.0 ? larger : smaller;
        second[b] = lead[b] > 0.0 ? smaller : larger;
    }
}

/* Probabilities of k classes from their logits, of which the largest are given. */
static inline void mw_softmax_of_many(int k, const double *restrict top, double *restrict tile)
{
    double total[MW_ROWS];
    for (int b = 0; b < MW_ROWS; b++) total[b] = 0.0;
    for (int j = 0; j < k; j++) {
        double *restrict eta = tile + (ptrdiff_t)j * MW_STEP;
        for (int b = 0; b < MW_ROWS; b++) {
            double x = eta[b] - top[b];
            eta[b] = x < MW_LEAST_EXPONENT ? MW_LEAST_EXPONENT : x;
        }
        for (int b = 0; b < MW_ROWS; b++) {
            eta[b] = mw_exp(eta[b]);
            total[b] += eta[b];
        }
    }
    for (int b = 0; b < MW_ROWS; b++) total[b] = 1.0 / total[b];
    for (int j = 0; j < k; j++) {
        double *restrict eta = tile + (ptrdiff_t)j * MW_STEP;
        for (int b = 0; b < MW_ROWS; b++) eta[b] *= total[b];
    }
}

/* softmax(t * log(max(eta, floor)) + bias) over the first k classes of a tile, 0 for the padding behind them. Where the
 * probability of class 1 alone was given, class 0 has the rest, as everywhere. With floor 0 the tile holds logits. */
MW_CLONES static void mw_link(int k, int width, double t, const double *restrict bias, double floor, int positive,
                              double *restrict tile)
{
    double top[MW_ROWS];
    for (int b = 0; b < MW_ROWS; b++) top[b] = -HUGE_VAL;
    for (int j = 0; j < k; j++) {
        double *restrict eta = tile + (ptrdiff_t)j * MW_STEP;
        double c = bias[j];
        /* Bounds are loops of their own, here and above: within the next loop they would become branches. */
        if (floor > 0.0) {
            for (int b = 0; b < MW_ROWS; b++) eta[b] = eta[b] > floor ? eta[b] : floor;
            for (int b = 0; b < MW_ROWS; b++) eta[b] = mw_log(eta[b]);
        }
        for (int b = 0; b < MW_ROWS; b++) {
            double logit = eta[b] * t + c;
            eta[b] = logit;
            top[b] = logit > top[b] ? logit : top[b];
        }
    }
    if (k == 2)
        mw_softmax_of_two(tile, tile + MW_STEP);
    else
        mw_softmax_of_many(k, top, tile);
    for (int j = k; j < width; j++)
        for (int b = 0; b < MW_ROWS; b++) tile[(ptrdiff_t)j * MW_STEP + b] = 0.0;
    if (positive)
        for (int b = 0; b < MW_ROWS; b++) tile[b] = 1.0 - tile[MW_STEP + b];
}

#endif
