"""Where nodes were made and histories were cut, in lines of source. Always on: see autograd/locations.py."""

from pullback.autograd.locations import Location, location_of, place_text, variables_of
from pullback.autograd.who import detached_at

__all__ = ["Location", "detached_at", "location_of", "place_text", "variables_of"]
