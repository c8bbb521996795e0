"""Build the compiled kernels where that is possible; everything else is in pyproject.toml.

Without Cython, a C compiler or OpenMP the package installs all the same: without the first two it runs on NumPy, and
without the last on one thread. ``metricwise.show_versions()`` says which.
"""

import os
import sys
import tempfile
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

KERNELS = "src/metricwise/kernels"
# Products and sums are rounded one by one, as NumPy rounds them: the twins agree to the last row.
FLAGS = {"unix": ["-O3", "-ffp-contract=off", "-std=c11"], "msvc": ["/O2", "/fp:precise", "/std:c11"]}
# METRICWISE_BUILD=sanitized, for make test-sanitized: a wrong access or an overflow ends the process.
SANITIZED = [
    *("-O1", "-g", "-fno-omit-frame-pointer", "-ffp-contract=off", "-std=c11"),
    *("-fsanitize=address,undefined", "-fno-sanitize-recover=undefined"),
]
OPENMP = {"unix": (["-fopenmp"], ["-fopenmp"]), "msvc": (["/openmp"], [])}


class BuildKernels(build_ext):
    """Compile with the flags of the compiler at hand, and with OpenMP if a program with it compiles and links."""

    def build_extensions(self):
        kind = "msvc" if self.compiler.compiler_type == "msvc" else "unix"
        compiling, linking = OPENMP[kind] if self._has_openmp(*OPENMP[kind]) else ([], [])
        flags = FLAGS[kind]
        if os.environ.get("METRICWISE_BUILD") == "sanitized":
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
            sys.stderr.write(f"metricwise: the kernels are not compiled ({error}); NumPy will do.\n")
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
    if os.environ.get("METRICWISE_BUILD") == "pure":  # a wheel for machines of any kind
        return []
    try:
        from Cython.Build import cythonize
    except ImportError:
        sys.stderr.write("metricwise: no Cython, so that the kernels are not compiled; NumPy will do.\n")
        return []
    kernels = Extension(
        "metricwise.kernels._compiled",
        [f"{KERNELS}/_compiled.pyx"],
        depends=[str(path) for kind in ("*.h", "*.pxi") for path in Path(KERNELS).glob(kind)],
        include_dirs=[KERNELS],
    )
    return cythonize([kernels])


setup(ext_modules=extensions(), cmdclass={"build_ext": BuildKernels})
