"""Results as pages of HTML: the public name of :mod:`bestk.show.report`."""

from bestk.show.report import cv_page, discovery_page, path_page, result_page

__all__ = ["cv_page", "discovery_page", "path_page", "result_page"]
