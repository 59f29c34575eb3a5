"""Sequences: attention, recurrent layers, alignments."""
