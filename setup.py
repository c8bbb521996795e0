"""Build the compiled kernels where that is possible, and the page of the package; all else is in pyproject.toml.

Without Cython, a C compiler or OpenMP the package installs all the same: without the first two it runs on NumPy, and
without the last on one thread. ``metricwise.show_versions()`` says which, and the first call on many rows warns of
NumPy kernels. The environment variable METRICWISE_BUILD changes that: with "pure" nothing is compiled, for a wheel that
serves machines of any kind; with "compiled" a failure to compile is an error, as for wheels that are published; with
"sanitized" too, and the kernels are those of ``make test-sanitized``.
"""

import os
import re
import sys
import tempfile
import tomllib
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

KERNELS = "src/metricwise/kernels"
# Products and sums are rounded one by one, as NumPy rounds them: the twins agree to the last row.
FLAGS = {"unix": ["-O3", "-ffp-contract=off", "-std=c11"], "msvc": ["/O2", "/fp:precise", "/std:c11"]}
# For make test-sanitized: a wrong access or an overflow ends the process.
SANITIZED = [
    *("-O1", "-g", "-fno-omit-frame-pointer", "-ffp-contract=off", "-std=c11"),
    *("-fsanitize=address,undefined", "-fno-sanitize-recover=undefined"),
]
OPENMP = {"unix": (["-fopenmp"], ["-fopenmp"]), "msvc": (["/openmp"], [])}
BUILDS = ("auto", "compiled", "pure", "sanitized")
BUILD = os.environ.get("METRICWISE_BUILD") or "auto"
NOTICE = """
*******************************************************************************
metricwise: THE COMPILED KERNELS ARE NOT BUILT.
The package is complete, but the slower NumPy kernels will be used.
Install a C compiler and Cython, and install metricwise again, for the others.
Reason: {reason}
*******************************************************************************

"""


def give_up_compiling(reason):
    """Say that NumPy will serve, or raise an error if the compiled kernels were asked for."""
    if BUILD in ("compiled", "sanitized"):
        raise SystemExit(f"metricwise: METRICWISE_BUILD is {BUILD!r}, but the kernels cannot be compiled ({reason}).")
    sys.stderr.write(NOTICE.format(reason=reason))


class BuildKernels(build_ext):
    """Compile with the flags of the compiler at hand, and with OpenMP if a program with it compiles and links."""

    def build_extensions(self):
        kind = "msvc" if self.compiler.compiler_type == "msvc" else "unix"
        compiling, linking = OPENMP[kind] if self._has_openmp(*OPENMP[kind]) else ([], [])
        flags = FLAGS[kind]
        if BUILD == "sanitized":
            flags, linking = SANITIZED, [*linking, "-fsanitize=address,undefined"]
        for extension in self.extensions:
            extension.extra_compile_args += flags + compiling
            extension.extra_link_args += linking
        self.built = []
        super().build_extensions()
        self.extensions = self.built  # an editable installation would look for the others

    def build_extension(self, extension):
        """Leave the NumPy twins where this fails: setuptools forgives optional extensions some failures, not all."""
        try:
            super().build_extension(extension)
        except Exception as error:
            give_up_compiling(error)
        else:
            self.built.append(extension)

    def _has_openmp(self, compiling, linking):
        source = "#include <omp.h>\nint main(void) { return omp_get_max_threads() < 1; }\n"
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "openmp.c"
            path.write_text(source)
            try:
                objects = self.compiler.compile([str(path)], output_dir=folder, extra_postargs=compiling)
                self.compiler.link_executable(objects, "openmp", output_dir=folder, extra_postargs=linking)
            except Exception:
                return False
        return True


def extensions():
    """Return what is to be compiled: nothing, where that was not asked for or cannot be."""
    if BUILD not in BUILDS:
        raise SystemExit(f"metricwise: METRICWISE_BUILD must be one of {', '.join(BUILDS)}, got {BUILD!r}.")
    if BUILD == "pure":
        return []
    try:
        from Cython.Build import cythonize
    except ImportError:
        give_up_compiling("Cython is not installed")
        return []
    kernels = Extension(
        "metricwise.kernels._compiled",
        [f"{KERNELS}/_compiled.pyx"],
        depends=[str(path) for kind in ("*.h", "*.pxi") for path in Path(KERNELS).glob(kind)],
        include_dirs=[KERNELS],
    )
    return cythonize([kernels])


def package_page(readme, homepage):
    """Return README.md as a package index shows it: there, its paths lead to the repository.

    The address of the repository is written once, as the homepage in pyproject.toml.
    """
    sources = re.sub(r'(src|srcset)="(?!https?:)', rf'\1="{homepage}/raw/HEAD/', readme)
    return re.sub(r"\]\((?!https?:|#)", f"]({homepage}/blob/HEAD/", sources)


def long_description():
    """Return the page of the package."""
    project = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))["project"]
    return package_page(Path("README.md").read_text(encoding="utf-8"), project["urls"]["Homepage"])


if __name__ == "__main__":
    setup(
        ext_modules=extensions(),
        cmdclass={"build_ext": BuildKernels},
        long_description=long_description(),
        long_description_content_type="text/markdown",
    )
