"""Devices that tests ask: the plain one, emulated kernels, and a real one where there is one."""

import pytest
from helpers.devices import Plain
from helpers.emulator import COMPILER, Emulator

from bestk.base.device.driver import DeviceUnavailable
from bestk.devices.opening import open_device
from bestk.devices.scanner import Scanner


@pytest.fixture(scope="session")
def emulated(tmp_path_factory):
    """Kernels compiled as plain C++: what they do is tested without a device."""
    if COMPILER is None:
        pytest.skip("no C++ compiler")
    return Scanner(Emulator(tmp_path_factory.mktemp("kernels")))


@pytest.fixture(scope="session")
def cuda():
    try:
        return open_device("cuda")
    except DeviceUnavailable as error:
        pytest.skip(str(error))


@pytest.fixture(
    params=["plain", "emulated", pytest.param("cuda", marks=pytest.mark.cuda)],
)
def device(request):
    return Plain() if request.param == "plain" else request.getfixturevalue(request.param)
