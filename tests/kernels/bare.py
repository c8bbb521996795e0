"""Kernels called with bare arrays, one by one: `Block` and `LineArrays` are put together here."""

from metricwise.kernels import Block, LineArrays


class Bare:
    """The twins of a module; what else it has is the module's own."""

    def __init__(self, module):
        vars(self)["module"] = module

    def __getattr__(self, name):
        return getattr(self.module, name)

    def __setattr__(self, name, value):
        setattr(self.module, name, value)

    def decide(self, eta, n_classes, loss, link=None):
        return self.module.decide(Block(eta, n_classes, link=link), loss)

    def count_labels(self, eta, codes, weight, n_classes, losses, link=None):
        return self.module.count_labels(Block(eta, n_classes, codes, weight, link=link), losses)

    def count_expected(self, eta, mass, weight, n_classes, losses, link=None):
        return self.module.count_expected(Block(eta, n_classes, None, weight, mass, link), losses)

    def recalibrate(self, eta, n_classes, link):
        return self.module.recalibrate(Block(eta, n_classes, link=link))

    def changes(self, eta, codes, mass, weight, n_classes, group, constant, slope, worth, grid, n_bins, *options):
        """Options are wanted, summed and the link."""
        options, link = options[:2], options[2] if len(options) > 2 else None
        line = LineArrays(group, constant, slope, worth)
        return self.module.changes(Block(eta, n_classes, codes, weight, mass, link), line, grid, n_bins, *options)
