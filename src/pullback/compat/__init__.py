"""What lets programs written for torch run as they are."""

from pullback.compat.install import install as install
from pullback.compat.install import uninstall as uninstall
