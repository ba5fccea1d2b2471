"""Whether this machine can draw at all: tests of pictures need EGL or OSMesa."""

from __future__ import annotations

import ctypes.util

import pytest

HAS_EGL = ctypes.util.find_library("EGL") is not None
HAS_OSMESA = ctypes.util.find_library("OSMesa") is not None
needs_drawing = pytest.mark.skipif(not (HAS_EGL or HAS_OSMESA), reason="neither libEGL nor libOSMesa is installed")
