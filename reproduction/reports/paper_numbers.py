"""The numbers printed in the paper, for comparison.

Order of the sets: Car, Nursery, CMC, Phish, Student.
"""

from __future__ import annotations

__all__ = ["MOVIELENS", "SETS", "TABLE_2", "UCI", "paper_deviation", "paper_ratio", "paper_value"]

SETS = ("car", "nursery", "cmc", "phishing", "student")

# Instances, features, labels, classes.
TABLE_2 = {
    "car": (1727, 5, 2, 4),
    "nursery": (12960, 7, 2, 3),
    "cmc": (1473, 8, 2, 4),
    "phishing": (1353, 7, 3, 3),
    "student": (649, 30, 3, 5),
}

# Metric, average: set: means of LogReg, KNN, RF, DT, C-LogReg, C-DT.
UCI: dict[tuple[str, str], dict[str, tuple[float, ...]]] = {
    ("ordinal", "micro"): {
        "car": (0.6038, 0.5799, 0.6112, 0.6170, 0.6962, 0.6961),
        "nursery": (0.7047, 0.6223, 0.7084, 0.7173, 0.7671, 0.7666),
        "cmc": (0.7777, 0.7443, 0.7644, 0.7654, 0.7918, 0.7818),
        "phishing": (0.7967, 0.7787, 0.7888, 0.7981, 0.8016, 0.8070),
        "student": (0.7704, 0.7585, 0.7778, 0.7792, 0.7797, 0.7889),
    },
    ("micro_f1", "micro"): {
        "car": (0.2775, 0.1573, 0.2784, 0.2941, 0.3322, 0.3312),
        "nursery": (0.4836, 0.2896, 0.4531, 0.4815, 0.4961, 0.5116),
        "cmc": (0.4928, 0.4155, 0.4870, 0.4737, 0.4959, 0.4767),
        "phishing": (0.6931, 0.6860, 0.6868, 0.7029, 0.6941, 0.7040),
        "student": (0.2291, 0.2240, 0.2299, 0.2413, 0.2567, 0.2875),
    },
    ("weighted", "micro"): {
        "car": (0.1023, 0.0754, 0.0526, 0.0792, 0.2487, 0.2482),
        "nursery": (0.2218, 0.2203, 0.2361, 0.2405, 0.3562, 0.3563),
        "cmc": (0.1206, 0.1228, 0.1124, 0.1151, 0.1947, 0.1922),
        "phishing": (0.2260, 0.2270, 0.2286, 0.2541, 0.3151, 0.3139),
        "student": (0.3073, 0.3048, 0.3544, 0.3344, 0.3721, 0.3716),
    },
    ("ordinal", "macro"): {
        "car": (0.6060, 0.5788, 0.6131, 0.6185, 0.6960, 0.6972),
        "nursery": (0.7043, 0.6230, 0.7022, 0.7164, 0.7679, 0.7672),
        "cmc": (0.7748, 0.7445, 0.7643, 0.7642, 0.7911, 0.7804),
        "phishing": (0.7977, 0.7871, 0.7871, 0.7983, 0.8015, 0.8065),
        "student": (0.7698, 0.7581, 0.7761, 0.7778, 0.7785, 0.7886),
    },
    ("micro_f1", "macro"): {
        "car": (0.2759, 0.1562, 0.2762, 0.2939, 0.3336, 0.3289),
        "nursery": (0.4862, 0.2784, 0.4510, 0.4763, 0.5052, 0.5190),
        "cmc": (0.4898, 0.4113, 0.4837, 0.4722, 0.4909, 0.4737),
        "phishing": (0.6853, 0.6767, 0.6826, 0.6938, 0.6915, 0.7039),
        "student": (0.1728, 0.1887, 0.1189, 0.1522, 0.2444, 0.2848),
    },
    ("weighted", "macro"): {
        "car": (0.1027, 0.0736, 0.0529, 0.0788, 0.2483, 0.2480),
        "nursery": (0.2213, 0.2202, 0.2340, 0.2367, 0.3564, 0.3564),
        "cmc": (0.1187, 0.1216, 0.1092, 0.1111, 0.1938, 0.1915),
        "phishing": (0.2259, 0.2286, 0.2312, 0.2564, 0.3175, 0.3161),
        "student": (0.3117, 0.3047, 0.3540, 0.3360, 0.3706, 0.3700),
    },
}

# The standard deviations over splits that stand beside them.
_DEVIATIONS: dict[tuple[str, str], dict[str, tuple[float, ...]]] = {
    ("ordinal", "micro"): {
        "car": (0.0128, 0.0126, 0.0169, 0.0228, 0.0075, 0.0076),
        "nursery": (0.0090, 0.0035, 0.0148, 0.0132, 0.0032, 0.0030),
        "cmc": (0.0109, 0.0100, 0.0123, 0.0137, 0.0098, 0.0097),
        "phishing": (0.0087, 0.0103, 0.0157, 0.0096, 0.0084, 0.0089),
        "student": (0.0122, 0.0130, 0.0119, 0.0119, 0.0122, 0.0122),
    },
    ("micro_f1", "micro"): {
        "car": (0.0191, 0.0137, 0.0231, 0.0194, 0.0175, 0.0187),
        "nursery": (0.0084, 0.0067, 0.0307, 0.0159, 0.0074, 0.0070),
        "cmc": (0.0200, 0.0195, 0.0176, 0.0188, 0.0189, 0.0199),
        "phishing": (0.0175, 0.0182, 0.0226, 0.0168, 0.0182, 0.0191),
        "student": (0.0232, 0.0273, 0.0286, 0.0276, 0.0247, 0.0269),
    },
    ("weighted", "micro"): {
        "car": (0.0124, 0.0095, 0.0094, 0.0245, 0.0152, 0.0153),
        "nursery": (0.0144, 0.0045, 0.0172, 0.0253, 0.0060, 0.0060),
        "cmc": (0.0098, 0.0095, 0.0115, 0.0109, 0.0118, 0.0119),
        "phishing": (0.0164, 0.0169, 0.0211, 0.0194, 0.0210, 0.0208),
        "student": (0.0195, 0.0164, 0.0190, 0.0224, 0.0209, 0.0215),
    },
    ("ordinal", "macro"): {
        "car": (0.0127, 0.0107, 0.0176, 0.0219, 0.0078, 0.0085),
        "nursery": (0.0088, 0.0036, 0.0145, 0.0141, 0.0028, 0.0028),
        "cmc": (0.0104, 0.0095, 0.0119, 0.0146, 0.0087, 0.0083),
        "phishing": (0.0095, 0.0150, 0.0150, 0.0094, 0.0096, 0.0093),
        "student": (0.0119, 0.0118, 0.0136, 0.0132, 0.0111, 0.0114),
    },
    ("micro_f1", "macro"): {
        "car": (0.0163, 0.0153, 0.0191, 0.0184, 0.0167, 0.0166),
        "nursery": (0.0112, 0.0072, 0.0333, 0.0241, 0.0072, 0.0074),
        "cmc": (0.0210, 0.0195, 0.0206, 0.0211, 0.0188, 0.0204),
        "phishing": (0.0165, 0.0162, 0.0199, 0.0177, 0.0182, 0.0181),
        "student": (0.0252, 0.0267, 0.0143, 0.0208, 0.0218, 0.0292),
    },
    ("weighted", "macro"): {
        "car": (0.0111, 0.0097, 0.0099, 0.0238, 0.0121, 0.0120),
        "nursery": (0.0137, 0.0044, 0.0171, 0.0255, 0.0055, 0.0055),
        "cmc": (0.0108, 0.0116, 0.0120, 0.0125, 0.0130, 0.0128),
        "phishing": (0.0134, 0.0158, 0.0207, 0.0166, 0.0163, 0.0158),
        "student": (0.0214, 0.0209, 0.0231, 0.0233, 0.0242, 0.0261),
    },
}

_COLUMN = {"LogReg": 0, "KNN": 1, "RF": 2, "DT": 3, "C-LogReg": 4, "C-DT": 5}

# Table 3, the performance ratios that the paper prints: metric, average: model: one per set.
_RATIOS: dict[tuple[str, str], dict[str, tuple[float, ...]]] = {
    ("ordinal", "micro"): {
        "LogReg": (1.1530, 1.0885, 1.0181, 1.0006, 1.0121),
        "DT": (1.1266, 1.0687, 1.0214, 1.0112, 1.0124),
    },
    ("ordinal", "macro"): {
        "LogReg": (1.1485, 1.0903, 1.0210, 1.0005, 1.0103),
        "DT": (1.1272, 1.0712, 1.0212, 1.0112, 1.0139),
    },
    ("micro_f1", "micro"): {
        "LogReg": (1.1972, 1.0258, 1.0006, 1.0001, 1.1205),
        "DT": (1.1261, 1.0625, 1.0006, 1.0002, 1.1915),
    },
    ("micro_f1", "macro"): {
        "LogReg": (1.2091, 1.0391, 1.0022, 1.0090, 1.4144),
        "DT": (1.1190, 1.0899, 1.0032, 1.0146, 1.8712),
    },
    ("weighted", "micro"): {
        "LogReg": (2.4311, 1.6060, 1.6144, 1.3942, 1.1211),
        "DT": (3.1338, 1.4815, 1.6699, 1.1235, 1.1112),
    },
    ("weighted", "macro"): {
        "LogReg": (2.4177, 1.6105, 1.6327, 1.4055, 1.1890),
        "DT": (3.1472, 1.5057, 1.7237, 1.2328, 1.1012),
    },
}

# Average: OrdRec and C-OrdRec, mean and standard deviation, on the scale 1 - |i - j| / K.
MOVIELENS = {
    "micro": ((0.8603, 0.0010), (0.8640, 0.0009)),
    "macro": ((0.8577, 0.0032), (0.8643, 0.0022)),
}


def paper_value(metric: str, average: str, name: str, algorithm: str) -> float | None:
    """Return the mean that the paper prints; None where it prints none.

    Examples
    --------
    >>> from reproduction.reports.paper_numbers import paper_value
    >>> paper_value("ordinal", "micro", "car", "C-DT")
    0.6961
    """
    row = UCI[metric, average].get(name)
    return row[_COLUMN[algorithm]] if row and algorithm in _COLUMN else None


def paper_deviation(metric: str, average: str, name: str, algorithm: str) -> float | None:
    """Return the standard deviation that the paper prints beside that mean; None where it prints none.

    Examples
    --------
    >>> from reproduction.reports.paper_numbers import paper_deviation
    >>> paper_deviation("ordinal", "micro", "car", "C-DT")
    0.0076
    """
    row = _DEVIATIONS[metric, average].get(name)
    return row[_COLUMN[algorithm]] if row and algorithm in _COLUMN else None


def paper_ratio(metric: str, average: str, name: str, model: str) -> float | None:
    """Return the performance ratio of the paper's Table 3; None where it prints none."""
    row = _RATIOS[metric, average].get(model)
    return row[SETS.index(name)] if row and name in SETS else None
