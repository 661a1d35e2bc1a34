"""From the name of a device to the device."""

from bestk.devices.tasks import Device


def open_device(name: str) -> Device | None:
    """The device with a name ("cuda" is "cuda:0"); None is the CPU. Raises DeviceUnavailable."""
    if name == "cpu":
        return None
    from bestk.devices.cuda import open_cuda  # imports CuPy

    return open_cuda(int(name.partition(":")[2] or 0))
