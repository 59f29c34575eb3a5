"""Where nodes were made and histories were cut, in lines of source. Always on: see autograd/places.py."""

from pullback.autograd.places import Place, place_of
from pullback.autograd.who import cut_of

__all__ = ["Place", "cut_of", "place_of"]
