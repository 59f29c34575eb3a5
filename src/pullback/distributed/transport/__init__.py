"""How bytes get from one rank to another: sockets or shared memory. See `engine.py` for what all can do."""
