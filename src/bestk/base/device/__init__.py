"""How a device is reached: its driver, CuPy, and arrays on it."""
