/* The mean over classes of a ratio, at many points of one segment: points are the inner loops, which compilers turn into
 * vectors; a class is added after the other, as NumPy adds fewer than eight. */
#ifndef METRICWISE_SEGMENTS_H
#define METRICWISE_SEGMENTS_H

#include "_loops.h"

enum { MW_POINTS = 32, MW_FEW_CLASSES = 7 };

/* What all segments of one group share: functions are of hits, true shares, predicted shares, and all rows. */
typedef struct {
    double above[4], below[4], empty, zero_division;
} mw_ratio;

MW_CLONES static void mw_ratio_means(int n, int k, const double *restrict length, const double *restrict start,
                                     const double *restrict step, const double *restrict weight,
                                     const double *restrict prior, double total, const mw_ratio *restrict of,
                                     double *restrict out)
{
    for (int j = 0; j < k; j++) {
        double h0 = start[j], h1 = step[j], q0 = start[k + j], q1 = step[k + j], w = weight[j];
        double a0 = of->above[0], a1 = of->above[1] * prior[j], a2 = of->above[2], a3 = of->above[3] * total;
        double b0 = of->below[0], b1 = of->below[1] * prior[j], b2 = of->below[2], b3 = of->below[3] * total;
        double empty = of->empty, otherwise = of->zero_division;
        for (int i = 0; i < n; i++) {
            double h = h0 + length[i] * h1, q = q0 + length[i] * q1;
            double above = ((a0 * h + a1) + a2 * q) + a3;
            double below = ((b0 * h + b1) + b2 * q) + b3;
            double size = below < 0.0 ? -below : below;
            double ratio = above / (size <= empty ? 1.0 : below);
            double value = w * (size <= empty ? otherwise : ratio);
            out[i] = j == 0 ? value : out[i] + value;
        }
    }
}

#endif
