"""From the name of a device to the device."""

from functools import cache

from bestk.base.device.cuda import Cuda, number_of
from bestk.devices.scanner import Scanner
from bestk.devices.tasks import Device


def open_device(name: str) -> Device | None:
    """The device with a name; None is the CPU. Raises DeviceUnavailable."""
    return None if name == "cpu" else _scanner(number_of(name))


@cache
def _scanner(number: int) -> Scanner:
    """One for all searches: it keeps its kernels and its memory."""
    return Scanner(Cuda(number))
