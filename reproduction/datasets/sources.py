"""Where each data set comes from: address, file, sha256, licence and citation.

Owns the facts. Must not know how files are fetched or read.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["SOURCES", "Source"]

_UCI = "https://archive.ics.uci.edu/static/public"


@dataclass(frozen=True)
class Source:
    """One file of a data set, and where its owner publishes it.

    Parameters
    ----------
    name : str
        Name of the data set.
    path : str
        The file, below the folder that ``METRICWISE_DATA`` names.
    url : str
        Address of the archive, at the owner's.
    sha256 : str
        Of the file itself, not of the archive, which may be packed anew; of an ARFF file, of its data section.
    licence, citation : str
    """

    name: str
    path: str
    url: str
    sha256: str
    licence: str
    citation: str

    @property
    def member(self) -> str:
        """Name of the file inside the archive, without folders."""
        return self.path.rsplit("/", 1)[-1]


def _uci(name: str, path: str, number: int, archive: str, sha256: str, citation: str) -> Source:
    return Source(name, path, f"{_UCI}/{number}/{archive}.zip", sha256, "CC BY 4.0", citation)


SOURCES: dict[str, Source] = {
    source.name: source
    for source in (
        _uci(
            "car",
            "car/car.data",
            19,
            "car+evaluation",
            "b703a9ac69f11e64ce8c223c0a40de4d2e9d769f7fb20be5f8f2e8a619893d83",
            "Bohanec (1988), Car Evaluation, UCI Machine Learning Repository, doi:10.24432/C5JP48",
        ),
        _uci(
            "nursery",
            "nursery/nursery.data",
            76,
            "nursery",
            "8e0389c3dd37590248a921c2726d869ee96b817761a35eb8416afa24f31f931d",
            "Rajkovic (1989), Nursery, UCI Machine Learning Repository, doi:10.24432/C5P88W",
        ),
        _uci(
            "cmc",
            "cmc/cmc.data",
            30,
            "contraceptive+method+choice",
            "ad2a49da55df24b061a994ecc4d90c856aba35acd05138851aa251c4f06303c9",
            "Lim (1999), Contraceptive Method Choice, UCI Machine Learning Repository, doi:10.24432/C59W2D",
        ),
        _uci(
            "phishing",
            "phishing/PhishingData.arff",
            379,
            "website+phishing",
            "4a67b9cef70e7b2cba67f22d96b92c791195edf14c8ee11414d8a03ccdbad7ff",
            "Abdelhamid (2014), Website Phishing, UCI Machine Learning Repository, doi:10.24432/C5B301",
        ),
        _uci(
            "student",
            "student/student-por.csv",
            320,
            "student+performance",
            "a7594a11d7771c0efe1a740824e0e833da9c4cad07c39a9766a874575563fb3f",
            "Cortez (2008), Student Performance, UCI Machine Learning Repository, doi:10.24432/C5TG7T",
        ),
        _uci(
            "wiki4he",
            "wiki4he/wiki4HE.csv",
            334,
            "wiki4he",
            "2270c9b4cc6a9492c740f2bd42a2fee23c7afab383ec31364b08365cc1d43ae2",
            "Meseguer-Artola, Aibar, Lladós, Minguillón, Lerga (2015), wiki4HE, UCI Machine Learning Repository, "
            "doi:10.24432/C50031",
        ),
        Source(
            "movielens",
            "ml-100k/u.data",
            "https://files.grouplens.org/datasets/movielens/ml-100k.zip",
            "06416e597f82b7342361e41163890c81036900f418ad91315590814211dca490",
            "GroupLens terms: research use with acknowledgement; no redistribution, no commercial use",
            "Harper, Konstan (2015), The MovieLens Datasets: History and Context, ACM TiiS 5(4), doi:10.1145/2827872",
        ),
    )
}
