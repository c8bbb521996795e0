"""``python -m tests.fuzz.by_atheris``: rule files mutated by libFuzzer, which looks for inputs that reach new lines.

It needs atheris (``pip install atheris``), and stops at the first fault, with its traceback and the file.
Options are those of libFuzzer, such as ``-max_total_time=600``; one minute by default.
"""

import sys
import tempfile
import warnings
from pathlib import Path

TESTS = Path(__file__).parents[1]
if str(TESTS) not in sys.path:  # as pytest has it, for what tests share
    sys.path.insert(0, str(TESTS))

FAULTS = TESTS.parent / "build" / "fuzz"  # where libFuzzer writes the input of a fault
DEFAULT_OPTIONS = ["-max_total_time=60", "-max_len=8192", f"-artifact_prefix={FAULTS}/"]


def main():
    """Fuzz for as long as the options say."""
    try:
        import atheris
    except ImportError:
        sys.exit("by_atheris: atheris is not installed: pip install atheris")
    with atheris.instrument_imports(include=["metricwise.rules", "metricwise.core"]):
        import metricwise.rules.load  # noqa: F401  whose lines count
    from fuzz.kinds.rule_files import RECORDS, RuleFile, document
    from fuzz.verdicts import assert_refusal
    from metricwise.core.errors import Refusal

    def judge(content):
        if content[:1] != b"{":  # any other text is the path of a file
            return
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            try:
                RuleFile("full", content.decode("utf-8", "replace")).judge()
            except Refusal as error:
                assert_refusal(error)

    FAULTS.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as corpus:
        for at, name in enumerate(RECORDS):
            (Path(corpus) / f"{at}.json").write_text(document(name), encoding="utf-8")
        atheris.Setup([sys.argv[0], *DEFAULT_OPTIONS, *sys.argv[1:], corpus], judge)
        atheris.Fuzz()


if __name__ == "__main__":
    main()
