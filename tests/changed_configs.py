"""The base config with a few other values, right or wrong."""

from ib_bench.configs import base


def changed(**values):
    """The base config with other values; "__" in a name stands for "."."""
    config = base.get_config()
    config.unlock()
    with config.ignore_type():  # a config that is made from scratch checks no types
        for key, value in values.items():
            if "__" in key:
                group, name = key.split("__")
                config[group][name] = value
            else:
                config[key] = value
    return config.lock()
